//! What is told of all: a row for each program and kind of hooks, rows with limits for all of
//! them, and a file with each function of each run.

use std::fmt::Write;

use super::compare::{Figures, FunctionRun};
use super::kind::Kind;
use super::perf::USUAL_HZ;
use super::subject::Outcome;
use crate::bench::lab::Lab;
use crate::bench::table::{Limit, Row, digits};

/// Samples from which on errors of shares have limits.
const ENOUGH: f64 = 2000.0;

/// The row of a program with a kind of hooks.
pub(super) fn of(outcome: &Outcome) -> Row {
    let figures = Figures::of(outcome.runs.iter().flatten());
    let n = outcome.runs.iter().flatten().map(|run| run.n).fold(0.0, f64::max);
    let mut ours = format!("error {} points", errors(&figures));
    if !outcome.cpu.is_empty() {
        ours += &format!(", CPU time off by {} %", digits(largest(&outcome.cpu)));
    }
    let beside = format!(
        "{} functions; {}",
        figures.errors().div_ceil(outcome.runs.len().max(1)),
        intervals(&figures, n)
    );
    let (id, kind) = (&outcome.id, outcome.kind.name());
    Row::new(
        &format!("{id}-{kind}"),
        &format!("{id}, {}: {}", with(outcome.kind), outcome.what),
        ours,
    )
    .beside(beside)
}

fn with(kind: Kind) -> String {
    match kind {
        Kind::Perf => format!("perf -F {USUAL_HZ}"),
        _ => format!("{} hooks", kind.name()),
    }
}

/// `0.3 / 1.2 / 3`: median, 90th percentile, worst.
fn errors(figures: &Figures) -> String {
    let error = |percent| figures.error(percent).map_or("–".into(), digits);
    [50.0, 90.0, 100.0].map(error).join(" / ")
}

fn intervals(figures: &Figures, n: f64) -> String {
    match (figures.coverage(), figures.width()) {
        (Some(coverage), Some(width)) => format!(
            "{} % of {} intervals hold, {} × as wide as {n:.0} samples allow",
            digits(coverage),
            figures.intervals(),
            digits(width)
        ),
        _ => "no intervals".into(),
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// The row of a program that could not be judged.
pub(super) fn failed(id: &str, error: &anyhow::Error) -> Row {
    eprintln!("{id}: {error:#}");
    Row::new(id, id, "failed".into()).limit(Limit::AtMost(0.0), Some(f64::NAN), "failures")
}

/// Rows of all programs with a kind of hooks: with limits, unless it is perf.
pub(super) fn all(lab: &Lab, kind: Kind, outcomes: &[Outcome]) -> Vec<Row> {
    let mut rows = judged(lab, kind, outcomes);
    if kind == Kind::Perf {
        for row in &mut rows {
            row.limit = Limit::Told;
        }
    }
    rows
}

/// Rows with the limits. Where there is no such program, nothing was measured.
fn judged(lab: &Lab, kind: Kind, outcomes: &[Outcome]) -> Vec<Row> {
    let mine: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.kind == kind).collect();
    let runs = || mine.iter().flat_map(|outcome| outcome.runs.iter().flatten());
    let enough = lab.size(ENOUGH, ENOUGH / 40.0);
    let long = Figures::of(runs().filter(|run| run.n >= enough));
    let every = Figures::of(runs());
    let cpu: Vec<f64> = mine.iter().flat_map(|outcome| outcome.cpu.iter().copied()).collect();
    let name = kind.name();
    let with = with(kind);
    let row = |id: &str, what: &str, count: usize, of: &str| {
        let told = if mine.is_empty() {
            "the wrapper does not offer them".into()
        } else {
            format!("of {count} {of}")
        };
        Row::new(&format!("all-{id}-{name}"), &format!("all, {with}: {what}"), told)
    };
    let error = |id, what, percent, limit| {
        let row = row(id, what, long.errors(), "function runs of enough samples");
        row.limit(Limit::AtMost(limit), long.error(percent), "points")
    };
    let off = every.coverage().map(|coverage| (coverage - 95.0).abs());
    let worst = (!cpu.is_empty()).then(|| largest(&cpu));
    vec![
        error("median", "median error", 50.0, 0.5),
        error("90th", "90th percentile of errors", 90.0, 1.5),
        error("worst", "worst error", 100.0, 4.0),
        row("held", "intervals that hold the truth", every.intervals(), "function runs")
            .beside(every.coverage().map_or(String::new(), |held| format!("{} %", digits(held))))
            .limit(Limit::AtMost(2.0), off, "points from 95 %"),
        row("width", "width of intervals", every.intervals(), "function runs").limit(
            Limit::AtMost(1.2),
            every.width(),
            "×",
        ),
        row("cpu", "CPU time after sleeps, beside parked threads", cpu.len(), "runs").limit(
            Limit::AtMost(3.0),
            worst,
            "%",
        ),
    ]
}

/// A table of each function in each recorded run, with tabs between its columns.
pub(super) fn functions(outcomes: &[Outcome]) -> String {
    let mut text =
        String::from("program\thooks\trun\tn\tfunction\ttruth\ttold\tlow\thigh\terror\n");
    for outcome in outcomes {
        for (at, run) in outcome.runs.iter().enumerate() {
            let mut run: Vec<&FunctionRun> = run.iter().collect();
            run.sort_by(|a, b| b.truth.total_cmp(&a.truth));
            for function in run {
                let [low, told, high] = function.told.map(|share| 100.0 * share);
                let marks = if function.holds() { "" } else { "\tnot held" };
                // Writing into a text cannot fail.
                let _ = writeln!(
                    text,
                    "{}\t{}\t{at}\t{:.0}\t{}\t{:.2}\t{told:.2}\t{low:.2}\t{high:.2}\t{:.2}{marks}",
                    outcome.id,
                    outcome.kind.name(),
                    function.n,
                    function.name,
                    100.0 * function.truth,
                    function.error(),
                );
            }
        }
    }
    text
}
