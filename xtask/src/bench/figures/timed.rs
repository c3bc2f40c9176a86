//! Calls that the counter times beside the tick, and those of other functions meanwhile.

use anyhow::Result;

use super::Figure;
use super::hot_path::{BURSTS, QUICK_BURSTS, ROUNDS};
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::Trials;
use crate::bench::table::{Limit, Row};

pub(crate) const FIGURE: Figure = Figure {
    name: "timed",
    title: "Some functions timed by the counter",
    method: "`calls.c` as for hooks of the source, recorded with `--clock tick` and `--timed fib`, \
             so that the counter times each call; with `--timed main`, so that another function is timed and `fib` is not; without; and with \
             `--clock cycle`.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let bursts = lab.size(BURSTS, QUICK_BURSTS);
    let program = lab.program(Hooks::Late, "programs/calls.c", &[])?;
    let recording = lab.scratch("timed.teeperf");
    let run = |options: &[&str]| {
        let mut command = lab.record(&recording, options);
        lab.run(command.arg(&program).args(bursts))?.number("cpu_ns")
    };
    let trials = Trials::run(
        lab.rounds(ROUNDS),
        vec![
            ("timed", Box::new(|| run(&["--clock", "tick", "--timed", "fib"]))),
            ("another timed", Box::new(|| run(&["--clock", "tick", "--timed", "main"]))),
            ("tick", Box::new(|| run(&["--clock", "tick"]))),
            ("cycle", Box::new(|| run(&["--clock", "cycle"]))),
        ],
    )?;
    Ok(vec![
        Row::new("timed", "a call that is timed", trials.medians(&["timed"], "ns"))
            .beside(trials.medians(&["tick", "cycle"], "ns"))
            .limit(Limit::Told, trials.ratio("timed", "cycle"), "× cycle"),
        Row::new(
            "other",
            "a call while another is timed",
            trials.medians(&["another timed"], "ns"),
        )
        .beside(trials.medians(&["tick"], "ns"))
        .limit(Limit::AtMost(1.5), trials.ratio("another timed", "tick"), "×"),
    ])
}
