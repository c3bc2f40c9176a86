//! What hooks cost while nobody records, and while what is recorded leaves their functions out.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::Figure;
use super::hot_path::EVERY_CALL;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::{Trial, Trials};
use crate::bench::prototype::Prototype;
use crate::bench::subject::text;
use crate::bench::table::{Limit, Row};

pub(crate) const FIGURE: Figure = Figure {
    name: "idle",
    title: "Hooks that are not recorded",
    method: "`calls.c` built with `teeperf cc` and run without the recorder, beside the same \
             without hooks, and the prototype `late` beside its own program without hooks; and \
             recorded with `--only NOTHING`, a filter that no function fits, and with `--events \
             marks`: nanoseconds for a call and its return. With hooks of the source, it stands \
             beside the program linked with `bench/programs/empty_hook.c`, whose functions return \
             at once. Then lua and sqlite3 with late hooks and without the recorder, beside the \
             same without hooks: wall time.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let mut rows = calls(lab)?;
    let script = text(&lab.bench_file("programs/work.lua"));
    rows.push(program(lab, "lua", Lab::lua, &[&script, lab.size("8", "1")])?);
    let size = ["--size", lab.size("60", "5"), "--memdb"];
    rows.push(program(lab, "sqlite3", Lab::speedtest, &size)?);
    Ok(rows)
}

fn calls(lab: &Lab) -> Result<Vec<Row>> {
    let n = lab.size("38", "27");
    let [late, source, empty, plain] = [Hooks::Late, Hooks::Source, Hooks::Empty, Hooks::None]
        .map(|hooks| lab.program(hooks, "programs/calls.c", &[EVERY_CALL]));
    let (late, source, empty, plain) = (late?, source?, empty?, plain?);
    let prototype = Prototype::build(lab)?;
    let run = |program| lab.run(Command::new(program).arg(n))?.number("cpu_ns");
    let recording = lab.scratch("idle.teeperf");
    let recorded = |options: [&str; 2]| {
        let mut command = lab.record(&recording, &options);
        lab.run(command.arg(&late).arg(n))?.number("cpu_ns")
    };
    let mut trials: Vec<Trial<'_>> = vec![
        ("late", Box::new(|| run(&late))),
        ("no hooks", Box::new(|| run(&plain))),
        ("left out", Box::new(|| recorded(["--only", "NOTHING"]))),
        ("marks alone", Box::new(|| recorded(["--events", "marks"]))),
        ("source", Box::new(|| run(&source))),
        ("empty hook", Box::new(|| run(&empty))),
    ];
    if let Some(prototype) = &prototype {
        trials.push(("prototype", Box::new(|| prototype.idle(lab))));
        trials.push(("its program without hooks", Box::new(|| prototype.plain(lab))));
    }
    let trials = Trials::run(lab.rounds(7), trials)?;
    let told = |name| trials.medians(&[name], "ns");
    Ok(vec![
        Row::new("late", "late hooks, not recorded: above no hooks", told("late"))
            .beside(trials.medians(&["no hooks", "prototype", "its program without hooks"], "ns"))
            .limit(Limit::AtMost(0.3), trials.above("late", "no hooks"), "ns"),
        Row::new("filter", "functions left out by a filter", told("left out"))
            .beside(told("no hooks"))
            .limit(Limit::Told, trials.ratio("left out", "late"), "× not recorded"),
        Row::new("marks", "while marks alone are recorded", told("marks alone"))
            .beside(told("no hooks"))
            .limit(Limit::Told, trials.ratio("marks alone", "late"), "× not recorded"),
        Row::new("source", "hooks of the source, not recorded", told("source"))
            .beside(trials.medians(&["empty hook", "no hooks"], "ns"))
            .limit(Limit::AtMost(1.15), trials.ratio("source", "empty hook"), "× empty hook"),
    ])
}

type Build = fn(&Lab, Hooks) -> Result<PathBuf>;

fn program(lab: &Lab, name: &str, build: Build, arguments: &[&str]) -> Result<Row> {
    let (late, plain) = (build(lab, Hooks::Late)?, build(lab, Hooks::None)?);
    let seconds = |program| Ok(lab.run(Command::new(program).args(arguments))?.seconds);
    let trials = Trials::run(
        lab.rounds(15),
        vec![
            ("late", Box::new(|| seconds(&late)) as Box<dyn FnMut() -> Result<f64>>),
            ("no hooks", Box::new(|| seconds(&plain))),
        ],
    )?;
    Ok(Row::new(name, &format!("{name}, not recorded"), trials.medians(&["late"], "s"))
        .beside(trials.medians(&["no hooks"], "s"))
        .limit(Limit::AtMost(1.12), trials.ratio("late", "no hooks"), "×"))
}
