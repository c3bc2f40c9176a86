//! How much memory a report takes, from small recordings to large ones.

use std::process::Command;

use anyhow::{Context, Result};

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::report::Report;
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "memory",
    title: "Memory of report",
    method: "Most memory resident while `teeperf report` runs, for sqlite3's speed test of three \
             sizes: the call tree is nearly the same, so that what grows is what the length of a \
             recording costs. The limit is for all of it, the result included.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let program = lab.speedtest(Hooks::Late)?;
    let recording = lab.scratch("memory.teeperf");
    let (mut peaks, mut told) = (Vec::new(), Vec::new());
    for size in lab.size(["1", "10", "100"], ["1", "2", "3"]) {
        let mut record = lab.record(&recording, &["--clock", "tick"]);
        lab.run(record.arg(&program).args(["--size", size, "--memdb"]))?;
        let events = Report::of(lab, &recording)?.events;
        let ran = lab.run(Command::new(&lab.teeperf).arg("report").arg(&recording))?;
        told.push(format!("{} M events {} MiB", digits(events / 1e6), digits(ran.peak_mib)));
        peaks.push(ran.peak_mib);
    }
    let (first, last) = (peaks.first().context("no sizes")?, peaks.last().context("no sizes")?);
    Ok(vec![
        Row::new("peak", "peak of the largest", told.join(", ")).limit(
            Limit::AtMost(100.0),
            Some(*last),
            "MiB",
        ),
        Row::new("growth", "growth from the smallest to the largest", String::new()).limit(
            Limit::AtMost(30.0),
            Some(last - first),
            "MiB",
        ),
    ])
}
