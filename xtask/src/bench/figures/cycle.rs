//! A call and its return, recorded with the cycle counter.

use std::process::Command;

use anyhow::Result;

use super::Figure;
use super::hot_path::{BURSTS, QUICK_BURSTS, ROUNDS};
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::{Trial, Trials};
use crate::bench::table::{Limit, Row};

pub(crate) const FIGURE: Figure = Figure {
    name: "cycle",
    title: "Cycle trace: a call and its return",
    method: "As above with `--clock cycle`, beside `cycle_hook`, which keeps 16 bytes an event in \
             a buffer that it overwrites again and again.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let bursts = lab.size(BURSTS, QUICK_BURSTS);
    let ours = lab.program(Hooks::Late, "programs/calls.c", &[])?;
    let recording = lab.scratch("cycle.teeperf");
    let run = |command: &mut Command, key: &str| lab.run(command.args(bursts))?.number(key);
    let record = || {
        let mut command = lab.record(&recording, &["--clock", "cycle"]);
        command.arg(&ours);
        command
    };
    let mut trials: Vec<Trial<'_>> = vec![
        ("ours", Box::new(|| run(&mut record(), "cpu_ns"))),
        ("ours, wall", Box::new(|| run(&mut record(), "wall_ns"))),
    ];
    if lab.offers(Hooks::Cycle) {
        let yardstick = lab.program(Hooks::Cycle, "programs/calls.c", &[])?;
        trials.push(("cycle_hook", Box::new(move || run(&mut Command::new(&yardstick), "cpu_ns"))));
    }
    let trials = Trials::run(lab.rounds(ROUNDS), trials)?;
    Ok(vec![
        Row::new(
            "program",
            "cycle trace, in a program",
            trials.medians(&["ours", "ours, wall"], "ns"),
        )
        .beside(trials.medians(&["cycle_hook"], "ns"))
        .limit(Limit::AtMost(1.1), trials.ratio("ours", "cycle_hook"), "×"),
    ])
}
