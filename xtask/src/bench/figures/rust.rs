//! A call of a Rust function with `#[profile]` and its return, beside the least that such a hook can cost.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::{Lab, yardstick_run};
use crate::bench::measure::{Trial, Trials};
use crate::bench::table::{Limit, Row};
use crate::commands::{cargo, run_quietly};

pub(crate) const FIGURE: Figure = Figure {
    name: "rust",
    title: "Rust: a call and its return",
    method: "`bench/rust`, which is `calls.c` in Rust with `#[teeperf_hooks::profile]` on the recursion, built by \
             cargo's release profile: recorded as for hooks of the source above, beside `calls.c` \
             with `word_hook`; and without the recorder, beside `calls.c` with hooks that return at once. Without the feature `on` the \
             machine's code is that of a program without the attribute, which a test compares.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let (ours, plain) = (program(lab, true)?, program(lab, false)?);
    Ok(vec![recorded(lab, &ours, &plain)?, idle(lab, &ours, &plain)?])
}

fn program(lab: &Lab, on: bool) -> Result<PathBuf> {
    let target = lab.work.join("rust").join(if on { "on" } else { "off" });
    let mut build = cargo();
    build.args(["build", "-q", "--release", "--manifest-path"]);
    build.arg(lab.bench_file("rust/Cargo.toml")).arg("--target-dir").arg(&target);
    if on {
        build.args(["--features", "on"]);
    }
    run_quietly(&mut build)?;
    Ok(target.join("release/calls"))
}

fn recorded(lab: &Lab, ours: &PathBuf, plain: &PathBuf) -> Result<Row> {
    let bursts = lab.size(["24", "50"], ["24", "10"]);
    let yardstick = lab
        .offers(Hooks::Word)
        .then(|| lab.program(Hooks::Word, "programs/calls.c", &[]))
        .transpose()?;
    let cost = |command: &mut Command| lab.run(command)?.number("cpu_ns");
    let (recording, out) = (lab.scratch("rust.teeperf"), lab.scratch("drained"));
    let record = || {
        let mut command = lab.record(&recording, &["--clock", "tick", "--period", "100us"]);
        command.arg(ours).args(bursts);
        command
    };
    let mut trials: Vec<Trial<'_>> = vec![
        ("ours", Box::new(|| cost(&mut record()))),
        ("no hooks", Box::new(|| cost(Command::new(plain).args(bursts)))),
    ];
    if let Some(yardstick) = &yardstick {
        let [n, bursts] = bursts;
        let run = move || {
            let mut command = yardstick_run(yardstick, &out);
            cost(command.args([n, "1", bursts]).env("SLEEP_US", "50"))
        };
        trials.push(("word_hook", Box::new(run)));
    }
    let trials = Trials::run(lab.rounds(super::hot_path::ROUNDS), trials)?;
    Ok(Row::new("rust", "Rust, tick trace", trials.medians(&["ours"], "ns"))
        .beside(trials.medians(&["word_hook", "no hooks"], "ns"))
        .limit(Limit::AtMost(1.3), trials.ratio("ours", "word_hook"), "×"))
}

fn idle(lab: &Lab, ours: &PathBuf, plain: &PathBuf) -> Result<Row> {
    let n = lab.size("38", "27");
    let empty = lab.program(Hooks::Empty, "programs/calls.c", &[])?;
    let run = |program: &PathBuf| lab.run(Command::new(program).arg(n))?.number("cpu_ns");
    let trials = Trials::run(
        lab.rounds(7),
        vec![
            ("ours", Box::new(|| run(ours))),
            ("empty hook", Box::new(|| run(&empty))),
            ("no hooks", Box::new(|| run(plain))),
        ],
    )?;
    Ok(Row::new("rust-idle", "Rust, hooks not recorded", trials.medians(&["ours"], "ns"))
        .beside(trials.medians(&["empty hook", "no hooks"], "ns"))
        .limit(Limit::AtMost(1.15), trials.ratio("ours", "empty hook"), "×"))
}
