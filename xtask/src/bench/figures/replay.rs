//! How fast a recording is read back.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::{Lab, yardstick_run};
use crate::bench::measure::{Trial, Trials};
use crate::bench::report::Report;
use crate::bench::table::{Limit, Row, digits};
use crate::commands::run_quietly;

pub(crate) const FIGURE: Figure = Figure {
    name: "replay",
    title: "Replay of sqlite3's trace to a report",
    method: "Millions of calls and returns a second. Ours: all of `teeperf report`, from the \
             compressed file to the printed text, symbols included, with as many threads as it \
             likes. `replay_loop`: the loop alone, on one core, over uncompressed words that are \
             in memory already, written by `drain_hook` from the same program.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let arguments = ["--size", lab.size("60", "3"), "--memdb"];
    let recording = lab.scratch("replay.teeperf");
    let ours = lab.speedtest(Hooks::Late)?;
    lab.run(lab.record(&recording, &["--clock", "tick"]).arg(&ours).args(arguments))?;
    let report = Report::of(lab, &recording)?;
    let mut trials: Vec<Trial<'_>> = vec![(
        "ours",
        Box::new(|| {
            let ran = lab.run(Command::new(&lab.teeperf).arg("report").arg(&recording))?;
            Ok(report.events / 1e6 / ran.seconds)
        }),
    )];
    if lab.offers(Hooks::Drain) {
        let (program, words) = (replay_loop(lab)?, lab.scratch("words.raw"));
        let drained = lab.speedtest(Hooks::Drain)?;
        lab.run(yardstick_run(&drained, &words).env("CODEC", "raw").args(arguments))?;
        trials.push((
            "replay_loop",
            Box::new(move || lab.run(Command::new(&program).arg(&words))?.number("Mevents/s")),
        ));
    }
    let trials = Trials::run(lab.rounds(5), trials)?;
    let told =
        format!("{}, {} M events", trials.medians(&["ours"], "M/s"), digits(report.events / 1e6));
    Ok(vec![
        Row::new("sqlite3", "replay of sqlite3 to a report", told)
            .beside(trials.medians(&["replay_loop"], "M/s"))
            .limit(Limit::AtLeast(1.2), trials.ratio("ours", "replay_loop"), "×"),
    ])
}

fn replay_loop(lab: &Lab) -> Result<PathBuf> {
    let source = lab.yardstick("replay_loop.c")?;
    lab.built(Hooks::None, "replay_loop", &[&source], |compilers, out| {
        run_quietly(compilers.command(false).arg("-O2").arg(&source).arg("-o").arg(out)).map(drop)
    })
}
