//! The eight map-reduce kernels: what recording costs a program that keeps both cores busy.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::{Trial, Trials, geometric_mean};
use crate::bench::report::Report;
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "kernels",
    title: "Eight map-reduce kernels, two threads",
    method: "`bench/kernels`, gcc -O3, late hooks in every function: seconds of the kernel's own work, \
             which it prints, beside the unhooked program under `perf record -F 999 -g`. Samples of \
             CPU time are taken in both.",
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
    let mut perf = Vec::new();
    for kernel in KERNELS {
        let (trials, events) = run(lab, kernel)?;
        perf.extend(trials.ratio("late", "perf"));
        let ours = format!(
            "{}, {} M events, {} × no profiler",
            trials.medians(&["late"], "s"),
            digits(events / 1e6),
            digits(trials.ratio("late", "no profiler").unwrap_or(f64::NAN))
        );
        let beside = trials.medians(&["perf", "no profiler"], "s");
        rows.push(Row::new(kernel, &format!("{kernel}, beside perf"), ours).beside(beside).limit(
            Limit::AtMost(1.2),
            trials.ratio("late", "perf"),
            "×",
        ));
    }
    rows.push(Row::new("mean", "geometric mean, beside perf", String::new()).limit(
        Limit::AtMost(1.05),
        Some(geometric_mean(&perf)),
        "×",
    ));
    Ok(rows)
}

/// The trials, and how many events the last recording has.
fn run(lab: &Lab, kernel: &str) -> Result<(Trials, f64)> {
    let (plain, late) = (build(lab, Hooks::None, kernel)?, build(lab, Hooks::Late, kernel)?);
    let recording = lab.scratch(&format!("{kernel}.teeperf"));
    let data = lab.scratch("perf.data");
    let mut events = f64::NAN;
    let seconds = |command: &mut Command| lab.run(command)?.number("seconds");
    let trials: Vec<Trial<'_>> = vec![
        (
            "late",
            Box::new(|| {
                let seconds = seconds(lab.record(&recording, &["--clock", "tick"]).arg(&late))?;
                events = Report::of_whole(lab, &recording)?.events;
                Ok(seconds)
            }),
        ),
        ("perf", Box::new(|| seconds(lab.perf(&data).arg(&plain)))),
        ("no profiler", Box::new(|| seconds(&mut Command::new(&plain)))),
    ];
    let trials = Trials::run(lab.rounds(11), trials)?;
    Ok((trials, events))
}
