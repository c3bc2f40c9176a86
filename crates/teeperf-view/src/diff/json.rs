//! The differences as JSON, for programs: `docs/json.md` describes it.

use super::{alike, function, presence};
use crate::findings::Finding;
use crate::units;
use serde::Serialize;
use std::io::{self, Write};
use teeperf_profile::diff::{self, Diff};

/// Writes the comparison as one line.
pub fn write(diff: &Diff, out: &mut impl Write) -> io::Result<()> {
    let runs = |runs: &'_ [diff::Run]| -> Vec<Run> { runs.iter().map(run).collect() };
    let functions = diff.changes.iter().map(|change| {
        let function = function(diff, change);
        Changed {
            name: &function.name,
            module: &function.module,
            file: function.file.as_deref(),
            line: function.line,
            presence: presence(change.presence),
            calls: figure(&change.calls),
            self_time: figure(&change.self_time),
            total: figure(&change.total),
        }
    });
    let document = Document {
        format: "teeperf-diff",
        version: 1,
        units: Units { time: units::name(diff.unit) },
        before: runs(&diff.runs.before),
        after: runs(&diff.runs.after),
        normalized: diff.is_normalized,
        noise: diff
            .spread
            .map(|spread| Noise { relative: spread.relative, measured: spread.is_measured }),
        findings: alike::findings(diff).into_iter().map(said).collect(),
        whole: figure(&diff.whole),
        functions: functions.collect(),
    };
    crate::json::harmless::write(&document, out)
}

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    units: Units,
    before: Vec<Run>,
    after: Vec<Run>,
    normalized: bool,
    noise: Option<Noise>,
    findings: Vec<Said>,
    whole: Figure,
    functions: Vec<Changed<'a>>,
}

#[derive(Serialize)]
struct Units {
    time: &'static str,
}

#[derive(Serialize)]
struct Run {
    recording: String,
    command: Vec<String>,
    clock: String,
    period: f64,
    started: u64,
    duration: u64,
    time: f64,
    events: u64,
    lost: u64,
    exit_status: Option<i64>,
    signal: Option<i64>,
}

#[derive(Serialize)]
struct Noise {
    relative: f64,
    measured: bool,
}

#[derive(Serialize)]
struct Said {
    warning: bool,
    what: String,
    next: String,
}

#[derive(Serialize)]
struct Figure {
    before: f64,
    after: f64,
    difference: f64,
    margin: f64,
    probability: f64,
    is_change: bool,
}

#[derive(Serialize)]
struct Changed<'a> {
    name: &'a str,
    module: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    presence: &'static str,
    calls: Figure,
    #[serde(rename = "self")]
    self_time: Figure,
    total: Figure,
}

fn run(run: &diff::Run) -> Run {
    let info = &run.info;
    Run {
        recording: run.name.clone(),
        command: info.command.clone(),
        clock: info.clock.clone(),
        period: info.period_ns,
        started: info.started_ns,
        duration: info.duration_ns,
        time: run.time_ns,
        events: run.health.events,
        lost: run.health.lost,
        exit_status: info.exit_status,
        signal: info.signal,
    }
}

fn figure(figure: &diff::Figure) -> Figure {
    let diff::Figure { before, after, margin, probability, is_change } = *figure;
    Figure { before, after, difference: figure.difference(), margin, probability, is_change }
}

fn said(finding: Finding) -> Said {
    Said { warning: finding.warning, what: finding.what, next: finding.next }
}
