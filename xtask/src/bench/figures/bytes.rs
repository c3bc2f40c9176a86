//! How large a recording is.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::Figure;
use super::kernels::{KERNELS, build};
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::report::Report;
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "bytes",
    title: "Bytes an event on disk",
    method: "Size of the whole file, symbols and all, divided by the calls and returns in it. \
             The kernels count together, as one run of all eight, in which those of many events \
             weigh most; each is told beside. A kernel of few events keeps little but its ticks, \
             ten thousand or so a second and thread, which no limit for an event can hold.",
    measure,
};

struct Size {
    bytes: f64,
    events: f64,
}

impl Size {
    fn each(&self) -> f64 {
        self.bytes / self.events
    }
}

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut all = Size { bytes: 0.0, events: 0.0 };
    let mut told = Vec::new();
    for kernel in KERNELS {
        let size = record(lab, "tick", &build(lab, Hooks::Late, kernel)?, &[])?;
        told.push(format!("{kernel} {} of {} M", digits(size.each()), digits(size.events / 1e6)));
        all.bytes += size.bytes;
        all.events += size.events;
    }
    rows.push(row("kernels", "tick, the eight kernels", &told.join(", "), 0.05, &all));
    let (script, arguments) = (lab.bench_file("programs/work.lua"), ["--size", "20", "--memdb"]);
    let script = [script.to_str().context("a path that is no text")?];
    let (lua, sqlite) = (lab.lua(Hooks::Late)?, lab.speedtest(Hooks::Late)?);
    for (clock, most) in [("tick", 0.2), ("cycle", 3.0)] {
        for (name, program, arguments) in
            [("lua", &lua, &script[..]), ("sqlite3", &sqlite, &arguments[..])]
        {
            let size = record(lab, clock, program, arguments)?;
            let id = format!("{name}-{clock}");
            let told = format!("{} M events", digits(size.events / 1e6));
            rows.push(row(&id, &format!("{clock}, {name}"), &told, most, &size));
        }
    }
    Ok(rows)
}

fn row(id: &str, what: &str, ours: &str, most: f64, size: &Size) -> Row {
    Row::new(id, what, ours.into()).limit(Limit::AtMost(most), Some(size.each()), "bytes")
}

fn record(lab: &Lab, clock: &str, program: &Path, arguments: &[&str]) -> Result<Size> {
    let recording = lab.scratch("bytes.teeperf");
    let mut command: Command = lab.record(&recording, &["--clock", clock]);
    lab.run(command.arg(program).args(arguments))?;
    let bytes = std::fs::metadata(&recording)?.len() as f64;
    Ok(Size { bytes, events: Report::of(lab, &recording)?.events })
}
