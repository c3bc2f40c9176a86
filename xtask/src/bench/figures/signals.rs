//! The cost of samples of CPU time, beside that of hooks.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::{Figure, truth};
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::Trials;
use crate::bench::subject::text;
use crate::bench::table::{Limit, Row};

pub(crate) const FIGURE: Figure = Figure {
    name: "signals",
    title: "Samples of CPU time beside hooks",
    method: "Recorded with samples, some thousand a second of CPU time, beside `--no-cpu-samples`; and \
             the program without hooks under `perf record -F 999`, beside alone: CPU time. lua with \
             `bench/programs/work.lua` makes calls all the time; `bench/truth/phases.c` loops.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let script = text(&lab.bench_file("programs/work.lua"));
    let lua = of(lab, "lua", Lab::lua, &[&script, lab.size("6", "1")])?;
    let phases = |lab: &Lab, hooks| lab.program(hooks, "truth/phases.c", &[]);
    let phases = of(lab, "phases", phases, &["phases", lab.size("100", "5")])?;
    Ok(vec![lua, phases])
}

type Build = fn(&Lab, Hooks) -> Result<PathBuf>;

fn of(lab: &Lab, name: &str, build: Build, arguments: &[&str]) -> Result<Row> {
    let (late, plain) = (build(lab, Hooks::Late)?, build(lab, Hooks::None)?);
    let recording = lab.scratch("signals.teeperf");
    let recorded = |options: &[&str]| {
        let options = [&["--clock", "tick"], options].concat();
        seconds(lab, lab.record(&recording, &options).arg(&late).args(arguments))
    };
    let data = lab.scratch("perf.data");
    let trials = Trials::run(
        lab.rounds(15),
        vec![
            ("with samples", Box::new(|| recorded(&[])) as Box<dyn FnMut() -> Result<f64>>),
            ("without", Box::new(|| recorded(&["--no-cpu-samples"]))),
            ("perf", Box::new(|| seconds(lab, lab.perf(&data).arg(&plain).args(arguments)))),
            ("alone", Box::new(|| seconds(lab, Command::new(&plain).args(arguments)))),
        ],
    )?;
    let added = |ours, theirs| trials.ratio(ours, theirs).map(|ratio| 100.0 * (ratio - 1.0));
    let perf = added("perf", "alone").map_or(String::new(), |more| format!(": {more:.1} % more"));
    Ok(Row::new(name, name, trials.medians(&["with samples", "without"], "s"))
        .beside(trials.medians(&["perf", "alone"], "s") + &perf)
        .limit(Limit::AtMost(0.5), added("with samples", "without"), "% more"))
}

/// Seconds of CPU time, as the program tells it.
fn seconds(lab: &Lab, command: &mut Command) -> Result<f64> {
    Ok(truth::cpu(&lab.run(command)?.out)? / 1e9)
}
