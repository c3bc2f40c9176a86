//! How many calls of a function took how long.

use teeperf_profile::lengths::Lengths;
use teeperf_profile::model::{FunctionId, Profile};
use teeperf_profile::pattern::Found;

use super::lengths::{Known, Percentiles, known, lengths_by_function, notes};
use super::{Cell, Column, Kind, Row, Table, module_of, name_of, text_of};
use crate::units;

/// Steps of a decade, where lengths are within few of them and where they are not.
const FINE: [f64; 6] = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0];
const COARSE: [f64; 3] = [1.0, 2.0, 5.0];
/// Decades that are few.
const FEW: f64 = 1e3;

/// A table for each function that is wanted and has lengths, the one with most calls first; and how many there are.
pub fn histogram(profile: &Profile, wanted: &Found, limit: usize) -> (Vec<Table>, usize) {
    let mut found: Vec<(FunctionId, Known)> = lengths_by_function(profile).into_iter().collect();
    found.sort_by(|a, b| b.1.lengths.calls().cmp(&a.1.lengths.calls()).then(a.0.cmp(&b.0)));
    found.retain(|(id, _)| wanted.has(*id));
    let tables = found.iter().take(limit).filter_map(|(id, lengths)| table(profile, *id, lengths));
    (tables.collect(), found.len())
}

fn table(profile: &Profile, id: FunctionId, found: &Known) -> Option<Table> {
    let (lengths, unit_ns) = (&found.lengths, found.unit_ns(profile));
    let unit = profile.info.unit;
    let told = Percentiles::of(found, profile)?;
    let resolution = found.resolution(profile);
    let is_wide = told.longest / told.shortest.max(resolution).max(unit_ns) > FEW;
    let bins = bins(lengths, unit_ns, is_wide, resolution);
    let most = bins.iter().map(|bin| bin.2).max()?.max(1) as f64;
    let all = lengths.calls() as f64;
    let mut so_far = 0u64;
    let rows = bins.iter().map(|&(from, below, calls)| {
        so_far += calls;
        let cells = vec![
            name_of(profile, Some(id), ""),
            module_of(profile, Some(id)),
            Cell::Time(from as f64 * unit_ns),
            Cell::Time(below as f64 * unit_ns),
            Cell::Count(calls),
            Cell::Share(calls as f64 / all),
            Cell::Share(so_far as f64 / all),
            Cell::Text(found.by(profile).to_owned()),
            Cell::Share(calls as f64 / most),
        ];
        Row { cells, ..Row::default() }
    });
    let rows = rows.collect();
    let columns = vec![
        Column::hidden("function", Kind::Name),
        Column::hidden("module", Kind::Text),
        Column::new("FROM", "from", Kind::Time),
        Column::new("BELOW", "below", Kind::Time),
        Column::new("CALLS", "calls", Kind::Count),
        Column::new("CALLS%", "share", Kind::Share),
        Column::new("SO FAR", "share_so_far", Kind::Share),
        Column::hidden("timed_by", Kind::Text),
        Column::new(" ", "", Kind::Bar),
    ];
    let name = text_of(profile, id);
    let title = format!(
        "{}: {}{}, {} on average. Half of them took {}, 99 of a hundred {}, the longest {}",
        crate::names::fit(&name, 60),
        units::counted(told.timed, "call"),
        if found.by_counter { ", timed by the counter" } else { "" },
        said(profile, &told.known_mean(), ""),
        said(profile, &known(told.percentiles[0], resolution), "up to "),
        said(profile, &known(told.percentiles[2], resolution), "up to "),
        said(profile, &known(told.longest, resolution), ""),
    );
    let calls: u64 = profile
        .threads
        .iter()
        .flat_map(|thread| &thread.tree.nodes[1.min(thread.tree.nodes.len())..])
        .filter(|node| node.function == id)
        .map(|node| node.calls)
        .sum();
    let notes = notes(profile, found.by_counter, calls.saturating_sub(told.timed));
    Some(Table { title, columns, rows, notes, unit })
}

/// A time as far as it is known, in running text.
fn said(profile: &Profile, cell: &Cell, before: &str) -> String {
    let time = |ns: f64| units::time_inline(profile.info.unit, ns);
    match *cell {
        Cell::Below(ns) => format!("less than {}", time(ns)),
        Cell::Time(ns) => before.to_owned() + &time(ns),
        _ => String::new(),
    }
}

/// Bins from the first to the last, also those without calls: each with its first length, that which follows its last, and
/// its calls. They end where buckets do, at the next one behind a round figure, so that no call is in a wrong one.
fn bins(lengths: &Lengths, unit_ns: f64, is_wide: bool, resolution: f64) -> Vec<(u64, u64, u64)> {
    let Some((least, most)) = lengths.extremes() else { return Vec::new() };
    let border = |ns: f64| Lengths::border((ns / unit_ns).ceil() as u64);
    let shortest = least as f64 * unit_ns;
    let mut at = match shortest < resolution {
        true => 0.0,
        false => step_below(shortest, is_wide).max(resolution),
    };
    let mut buckets = lengths.buckets().peekable();
    let first = buckets.peek().map_or(0, |bucket| bucket.first);
    let mut from = border(at).min(first);
    let mut out = Vec::new();
    while from <= most {
        at = if at < resolution { resolution } else { step_above(at.max(1.0), is_wide) };
        let below = border(at);
        if below <= from {
            continue;
        }
        let mut calls = 0u64;
        while let Some(bucket) = buckets.next_if(|bucket| bucket.first < below) {
            calls = calls.saturating_add(bucket.calls);
        }
        out.push((from, below, calls));
        from = below;
        if below == u64::MAX {
            break;
        }
    }
    out
}

fn steps(is_wide: bool) -> &'static [f64] {
    if is_wide { &COARSE } else { &FINE }
}

fn decade(ns: f64) -> f64 {
    10f64.powi((ns * (1.0 + 1e-9)).log10().floor() as i32)
}

/// The last step that is not above this; 0 for less than a nanosecond.
fn step_below(ns: f64, is_wide: bool) -> f64 {
    if ns < 1.0 {
        return 0.0;
    }
    let decade = decade(ns);
    let step = steps(is_wide).iter().rev().find(|&&step| step * decade <= ns * (1.0 + 1e-9));
    step.map_or(decade, |step| step * decade)
}

/// The first step that is above this.
fn step_above(ns: f64, is_wide: bool) -> f64 {
    let decade = decade(ns);
    let step = steps(is_wide).iter().find(|&&step| step * decade > ns * (1.0 + 1e-9));
    step.map_or(10.0 * decade, |step| step * decade)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_in_the_bin_that_has_its_length() {
        let mut lengths = Lengths::default();
        let all: Vec<u64> = (1..4000u64).map(|at| at * at % 90_001 + at).collect();
        all.iter().for_each(|&length| lengths.add(length));
        for (unit_ns, resolution) in [(0.41, 0.0), (1.0, 150.0), (1000.0, 0.0)] {
            for is_wide in [false, true] {
                let bins = bins(&lengths, unit_ns, is_wide, resolution);
                for &(from, below, calls) in &bins {
                    let within = all.iter().filter(|&&length| (from..below).contains(&length));
                    assert_eq!(calls, within.count() as u64, "{unit_ns} {from}");
                }
                assert!(bins.windows(2).all(|pair| pair[0].1 == pair[1].0));
                assert_eq!(bins.iter().map(|bin| bin.2).sum::<u64>(), all.len() as u64);
            }
        }
        let mut long = Lengths::default();
        long.add(u64::MAX);
        assert_eq!(super::bins(&long, 1.0, false, 0.0).last().map(|bin| bin.2), Some(1));
    }

    #[test]
    fn steps_follow_one_another() {
        for is_wide in [false, true] {
            let mut at = 1.0;
            for _ in 0..40 {
                let next = step_above(at, is_wide);
                assert!(next > at && step_below(next, is_wide) == next, "{at} {next}");
                assert_eq!(step_below(next * 0.999, is_wide), at);
                at = next;
            }
        }
        assert_eq!(step_below(0.5, true), 0.0);
    }
}
