//! What hooks cost while nobody records, and while what is recorded leaves their functions out.

use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::Trials;
use crate::bench::table::{Limit, Row};

pub(crate) const FIGURE: Figure = Figure {
    name: "idle",
    title: "Hooks that are not recorded",
    method: "`calls.c` built with `teeperf cc` and run without the recorder, beside the same \
             linked with `bench/programs/empty_hook.c`, whose functions return at once; and recorded with \
             `--only NOTHING`, a filter that no function fits, and with `--events marks`.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let n = lab.size("38", "27");
    let [ours, empty, plain] = [Hooks::Teeperf, Hooks::Empty, Hooks::None]
        .map(|hooks| lab.program(hooks, "programs/calls.c", &[]));
    let (ours, empty, plain) = (ours?, empty?, plain?);
    let run = |program| lab.run(Command::new(program).arg(n))?.number("cpu_ns");
    let recording = lab.scratch("idle.teeperf");
    let recorded = |options: [&str; 2]| {
        let mut command = lab.record(&recording, &[&["--clock", "tick"], &options[..]].concat());
        lab.run(command.arg(&ours).arg(n))?.number("cpu_ns")
    };
    let trials = Trials::run(
        lab.rounds(7),
        vec![
            ("ours", Box::new(|| run(&ours))),
            ("left out", Box::new(|| recorded(["--only", "NOTHING"]))),
            ("marks alone", Box::new(|| recorded(["--events", "marks"]))),
            ("empty hook", Box::new(|| run(&empty))),
            ("no hooks", Box::new(|| run(&plain))),
        ],
    )?;
    Ok(vec![
        Row::new("idle", "hooks not recorded", trials.medians(&["ours"], "ns"))
            .beside(trials.medians(&["empty hook", "no hooks"], "ns"))
            .limit(Limit::AtMost(1.15), trials.ratio("ours", "empty hook"), "×"),
        Row::new("left-out", "functions left out by a filter", trials.medians(&["left out"], "ns"))
            .beside(trials.medians(&["ours"], "ns"))
            .limit(Limit::AtMost(1.5), trials.ratio("left out", "ours"), "× not recorded"),
        Row::new("marks", "while marks alone are recorded", trials.medians(&["marks alone"], "ns"))
            .beside(trials.medians(&["ours"], "ns"))
            .limit(Limit::AtMost(1.5), trials.ratio("marks alone", "ours"), "× not recorded"),
    ])
}
