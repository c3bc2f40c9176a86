//! How long it takes from the command to its first line, where there is little to read.

use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::median;
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "start",
    title: "A report of a small recording",
    method: "`lua -e 'print(1)'` is recorded. Wall time of the whole command, which is not less than that to its first line: the median of \
             30 runs of `teeperf report`, and of `/bin/true`, in turn.",
    measure,
};

/// What people do not notice, milliseconds.
const MOST_MS: f64 = 30.0;

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let lua = lab.lua(Hooks::Late)?;
    let recording = lab.scratch("start.teeperf");
    let mut record = lab.record(&recording, &[]);
    lab.run(record.arg(&lua).args(["-e", "print(1)"]))?;
    let report = |options: &[&str]| -> Result<f64> {
        let mut command = Command::new(&lab.teeperf);
        Ok(lab.run(command.arg("report").arg(&recording).args(options))?.seconds * 1e3)
    };
    let (mut nothing, mut ours, mut timed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..lab.rounds(30) {
        nothing.push(lab.run(&mut Command::new("/bin/true"))?.seconds * 1e3);
        ours.push(report(&[])?);
        timed.push(report(&["--since", "10%", "--around", "main"])?);
    }
    let [nothing, ours, timed] = [nothing, ours, timed].map(|runs| median(&runs));
    let row = |id: &str, what: &str, ms: f64| {
        Row::new(id, what, format!("{} ms", digits(ms)))
            .beside(format!("/bin/true {} ms", digits(nothing)))
            .limit(Limit::AtMost(MOST_MS), Some(ms), "ms")
    };
    Ok(vec![
        row("report", "`teeperf report`", ours),
        row("window", "`teeperf report --since 10% --around main`", timed),
    ])
}
