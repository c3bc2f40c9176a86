//! The eight map-reduce kernels: what recording costs a program that keeps both cores busy.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::{Lab, yardstick_run};
use crate::bench::measure::{Trial, Trials, geometric_mean};
use crate::bench::report::Report;
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "kernels",
    title: "Eight map-reduce kernels, two threads",
    method: "`bench/kernels`, gcc -O3, every function hooked: seconds of the kernel's own work, \
             which it prints, beside the unhooked program under `perf record -F 999 -g` and the \
             kernel with `drain_hook`, whose tick sleeps 100 µs; ours as long as it chooses for the \
             machine. Some are faster hooked than not, as the compiler lays their \
             loops out otherwise; in the mean they count as they are.",
    measure,
};

/// Names of the kernels.
pub(crate) const KERNELS: [&str; 8] = [
    "histogram",
    "kmeans",
    "linear_regression",
    "matrix_multiply",
    "pca",
    "string_match",
    "word_count",
    "reverse_index",
];

/// A kernel's program.
pub(crate) fn build(lab: &Lab, hooks: Hooks, kernel: &str) -> Result<PathBuf> {
    lab.program(hooks, &format!("kernels/{kernel}.c"), &["-O3"])
}

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let (mut perf, mut drain) = (Vec::new(), Vec::new());
    for kernel in KERNELS {
        let (trials, events) = run(lab, kernel)?;
        perf.extend(trials.ratio("ours", "perf"));
        drain.extend(trials.ratio("ours", "drain_hook"));
        let ours = format!(
            "{}, {} M events, {} × no profiler",
            trials.medians(&["ours"], "s"),
            digits(events / 1e6),
            digits(trials.ratio("ours", "no profiler").unwrap_or(f64::NAN))
        );
        let beside = trials.medians(&["perf", "no profiler"], "s");
        rows.push(Row::new(kernel, &format!("{kernel}, beside perf"), ours).beside(beside).limit(
            Limit::AtMost(1.4),
            trials.ratio("ours", "perf"),
            "×",
        ));
        rows.push(
            Row::new(
                &format!("{kernel}-drain"),
                &format!("{kernel}, beside `drain_hook`"),
                trials.medians(&["ours"], "s"),
            )
            .beside(trials.medians(&["drain_hook"], "s"))
            .limit(Limit::AtMost(1.1), trials.ratio("ours", "drain_hook"), "×"),
        );
    }
    let mean = |ratios: &[f64]| (!ratios.is_empty()).then(|| geometric_mean(ratios));
    rows.push(Row::new("mean", "geometric mean, beside perf", String::new()).limit(
        Limit::AtMost(1.15),
        mean(&perf),
        "×",
    ));
    rows.push(Row::new("mean-drain", "geometric mean, beside `drain_hook`", String::new()).limit(
        Limit::AtMost(1.1),
        mean(&drain),
        "×",
    ));
    Ok(rows)
}

/// The trials, and how many events the last recording has.
fn run(lab: &Lab, kernel: &str) -> Result<(Trials, f64)> {
    let (plain, ours) = (build(lab, Hooks::None, kernel)?, build(lab, Hooks::Teeperf, kernel)?);
    let recording = lab.scratch(&format!("{kernel}.teeperf"));
    let data = lab.scratch("perf.data");
    let mut events = f64::NAN;
    let seconds = |command: &mut Command| lab.run(command)?.number("seconds");
    let mut trials: Vec<Trial<'_>> = vec![
        (
            "ours",
            Box::new(|| {
                let seconds = seconds(lab.record(&recording, &["--clock", "tick"]).arg(&ours))?;
                events = Report::of_whole(lab, &recording)?.events;
                Ok(seconds)
            }),
        ),
        ("perf", Box::new(|| seconds(lab.perf(&data).arg(&plain)))),
        ("no profiler", Box::new(|| seconds(&mut Command::new(&plain)))),
    ];
    if lab.offers(Hooks::Drain) {
        let yardstick = build(lab, Hooks::Drain, kernel)?;
        let out = lab.scratch("drained");
        trials
            .push(("drain_hook", Box::new(move || seconds(&mut yardstick_run(&yardstick, &out)))));
    }
    let trials = Trials::run(lab.rounds(11), trials)?;
    Ok((trials, events))
}
