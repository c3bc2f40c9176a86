//! Whether threads get in each other's way.

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::Trials;
use crate::bench::table::{Limit, Row};

pub(crate) const FIGURE: Figure = Figure {
    name: "threads",
    title: "Two threads on two cores",
    method: "`calls.c` with two threads that begin each burst together, beside one: the slower \
             thread's processor time for a call and its return, the tick moving meanwhile. Wall \
             time is told as well: two busy threads and the recorder, which must drain twice as \
             much, share two cores.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let bursts = lab.size("150", "10");
    let program = lab.program(Hooks::Late, "programs/calls.c", &[])?;
    let recording = lab.scratch("threads.teeperf");
    let run = |threads: &str, key: &str| {
        let mut command = lab.record(&recording, &["--clock", "tick"]);
        lab.run(command.arg(&program).args(["24", threads, bursts]))?.number(key)
    };
    let trials = Trials::run(
        lab.rounds(5),
        vec![
            ("two", Box::new(|| run("2", "cpu_ns"))),
            ("one", Box::new(|| run("1", "cpu_ns"))),
            ("two, wall", Box::new(|| run("2", "wall_ns"))),
            ("one, wall", Box::new(|| run("1", "wall_ns"))),
        ],
    )?;
    Ok(vec![
        Row::new("two", "two threads against one", trials.medians(&["two", "two, wall"], "ns"))
            .beside(trials.medians(&["one", "one, wall"], "ns"))
            .limit(Limit::AtMost(1.1), trials.ratio("two", "one"), "×"),
    ])
}
