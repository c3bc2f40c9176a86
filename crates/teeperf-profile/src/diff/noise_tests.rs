//! The statistics on runs that are made up: how often no change is told for one, and how often a change is found.

use super::*;
use crate::random::Random;

const PERIOD: f64 = 100_000.0;

/// A run of a function that takes so long and differs so much from run to run, seen by ticks.
fn run(random: &mut Random, ns: f64, noise: f64, period: f64) -> Measured {
    let ns = ns * (1.0 + noise * random.normal());
    let ticks = ns + (ns * period).sqrt() * random.normal();
    Measured { ns: ticks.max(0.0), less: 0.002 * ns, more: 0.002 * ns, period, variance: None }
}

/// A program of functions of 2 ms to 7 s: which of them are told, where each `every`th becomes longer by `change`.
fn program(
    random: &mut Random,
    runs: usize,
    (noise, uneven): (f64, bool),
    (every, change): (usize, f64),
) -> Vec<bool> {
    const FUNCTIONS: usize = 60;
    let pairs: Vec<Pair> = (0..FUNCTIONS)
        .map(|at| {
            let ns = 2e6 * 1.15f64.powi(at as i32);
            let noise = if uneven && at % 4 == 0 { 3.0 * noise } else { noise };
            let longer = if at % every == every - 1 { ns * (1.0 + change) } else { ns };
            let mut side = |ns| (0..runs).map(|_| run(random, ns, noise, PERIOD)).collect();
            Pair { before: side(ns), after: side(longer) }
        })
        .collect();
    let spread = Spread::of(pairs.iter(), 0.03);
    let all: Vec<f64> = pairs.iter().map(|pair| pair.judge(spread).probability).collect();
    told(&all)
}

#[test]
fn no_change_is_seldom_told() {
    for (runs, uneven) in
        [(1, false), (2, false), (3, false), (5, false), (2, true), (3, true), (5, true)]
    {
        let mut random = Random(20_261_124);
        let (mut flagged, mut all, mut programs) = (0, 0, 0);
        for _ in 0..300 {
            // With one run a side, what is allowed for is what there is.
            let told = program(&mut random, runs, (0.03, uneven), (1000, 0.0));
            let count = told.iter().filter(|&&told| told).count();
            programs += usize::from(count > 0);
            flagged += count;
            all += told.len();
        }
        let rate = flagged as f64 / all as f64;
        assert!(rate <= 0.05, "{runs} runs, {uneven}: {rate}");
        // Nor is any of them in most programs: that is what a build against itself shows.
        assert!(
            programs <= if uneven { 45 } else { 15 },
            "{runs} runs, {uneven}: in {programs} of 300"
        );
    }
}

#[test]
fn among_changes_few_are_none() {
    for runs in [1, 2, 3, 5] {
        let mut random = Random(7);
        let (mut false_ones, mut nulls) = (0, 0);
        for _ in 0..200 {
            let told = program(&mut random, runs, (0.03, false), (4, 0.3));
            let unchanged = told.iter().enumerate().filter(|(at, _)| at % 4 != 3);
            false_ones += unchanged.clone().filter(|(_, told)| **told).count();
            nulls += unchanged.count();
        }
        let rate = f64::from(false_ones as u32) / f64::from(nulls as u32);
        assert!(rate <= 0.05, "{runs} runs: {rate}");
    }
}

#[test]
fn a_fifth_over_three_hundredths_is_found() {
    // A single run does not tell its noise, and looking at 60 functions costs some of what is found.
    for (runs, least) in [(1, 0.9), (2, 0.9), (3, 0.95), (5, 0.99)] {
        let mut random = Random(99);
        let (mut found, mut all) = (0, 0);
        for _ in 0..200 {
            let told = program(&mut random, runs, (0.03, false), (6, 0.2));
            // Those with so many ticks that these hide nothing.
            for at in (5..60).step_by(6).filter(|at| 2e6 * 1.15f64.powi(*at) > 10_000.0 * PERIOD) {
                found += usize::from(told[at as usize]);
                all += 1;
            }
        }
        let power = f64::from(found as u32) / f64::from(all);
        assert!(power >= least, "{runs} runs: {power} of {all}");
    }
}

#[test]
fn of_few_functions_paths_are_held_against_what_these_differ_by() {
    let of = |times: &[f64]| {
        let side = |scale: f64| {
            times.iter().map(move |ns| Measured {
                ns: scale * ns,
                period: PERIOD,
                ..Measured::default()
            })
        };
        let pair = Pair { before: side(1e8).collect(), after: side(1e8).collect() };
        Spread::of([pair].iter(), 0.03)
    };
    assert!(of(&[1.0, 2.0, 3.0]).relative > 0.4 && !of(&[1.0, 2.0, 3.0]).is_measured);
    assert_eq!(of(&[1.0, 1.0]).relative, 0.03);
    assert_eq!(of(&[1.0]).relative, 0.03);
}

#[test]
fn ticks_alone_explain_little_figures() {
    let of = |before: f64, after: f64| {
        let one = |ticks: f64| {
            vec![Measured { ns: ticks * PERIOD, period: PERIOD, ..Measured::default() }]
        };
        let spread = Spread { relative: 0.0, is_measured: false };
        is_told(&Pair { before: one(before), after: one(after) }.judge(spread))
    };
    assert!(!of(4.0, 9.0));
    assert!(!of(0.0, 3.0));
    assert!(of(4.0, 25.0));
    assert!(of(10_000.0, 10_400.0));
}

#[test]
fn bounds_are_no_change_of_one_run() {
    let of = |runs: usize, widths: (f64, f64)| {
        let side = |ns, width| {
            vec![Measured { ns, less: width / 2.0, more: width / 2.0, ..Measured::default() }; runs]
        };
        let pair = Pair { before: side(1e9, widths.0), after: side(1.2e9, widths.1) };
        is_told(&pair.judge(Spread { relative: 0.01, is_measured: false }))
    };
    assert!(of(1, (0.0, 0.0)));
    assert!(!of(1, (0.5e9, 0.5e9)));
    // What both sides have in common goes away where runs show what differs.
    assert!(of(3, (0.5e9, 0.5e9)));
    assert!(!of(3, (0.1e9, 0.9e9)));
}

#[test]
fn calls_are_exact_where_runs_agree() {
    assert!(is_told(&calls(&[1000.0], &[1001.0])));
    assert!(is_told(&calls(&[1000.0; 3], &[1001.0; 3])));
    assert!(!is_told(&calls(&[1000.0; 3], &[1000.0; 3])));
    assert!(!is_told(&calls(&[990.0, 1000.0, 1010.0], &[991.0, 1001.0, 1011.0])));
    assert!(is_told(&calls(&[990.0, 1000.0, 1010.0], &[1990.0, 2000.0, 2010.0])));
}

#[test]
fn many_figures_are_told_by_their_order() {
    assert_eq!(told(&[]), [false; 0]);
    assert_eq!(told(&[0.04]), [true]);
    assert_eq!(told(&[0.04, 0.5, 0.6]), [false; 3]);
    assert_eq!(told(&[0.01, 0.03, 0.6]), [true, true, false]);
}

#[test]
fn under_a_counter_noise_is_that_of_the_time_and_not_of_short_functions() {
    // Three functions make nearly all of the time and differ by 2 %; two hundred of a microsecond differ by half.
    let mut random = Random(7);
    let mut runs = |ns: f64, noise: f64| -> Vec<Measured> {
        let run = |_| Measured {
            ns: ns * (1.0 + noise * random.normal()).max(0.1),
            ..Measured::default()
        };
        (0..5).map(run).collect()
    };
    let mut pairs = Vec::new();
    for at in 0..206 {
        let (ns, noise) = if at < 6 { (300e6, 0.02) } else { (1e3, 0.5) };
        pairs.push(Pair { before: runs(ns, noise), after: runs(ns, noise) });
    }
    let spread = Spread::of(pairs.iter(), 0.03);
    assert!(spread.is_measured && (0.012..0.03).contains(&spread.relative), "{spread:?}");
}

/// Guards: changes told of figures whose bounds lie one in the other.
#[test]
fn bounds_of_samples_are_their_noise() {
    let one =
        |value: f64, low, high| vec![Measured::by_samples(&Time { value, low, high }, PERIOD)];
    let spread = Spread { relative: 0.0, is_measured: false };
    let is_change = |before, after| is_told(&Pair { before, after }.judge(spread));
    // 1,000 samples have a deviation of 3.2 %, and the difference one of 4.6.
    assert!(is_change(one(1e8, 0.94e8, 1.06e8), one(1.12e8, 1.05e8, 1.19e8)));
    // The kernel's time is known to 70 ms.
    assert!(!is_change(one(31e6, 6e6, 148e6), one(117e6, 70e6, 184e6)));
}
