//! The whole trace of a real program, to disk, with nothing lost.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::{Lab, yardstick_run};
use crate::bench::measure::{Trial, Trials};
use crate::bench::report::Report;
use crate::bench::table::{Limit, Row, digits};
use crate::commands::works;

pub(crate) const FIGURE: Figure = Figure {
    name: "whole",
    title: "Whole trace of lua and sqlite3, to disk",
    method: "lua 5.4 with `bench/programs/work.lua`, and sqlite3's `speedtest1 --memdb`, every \
             function hooked, inlined ones too. Wall time of the whole command, so for us from \
             `teeperf record` to the prompt; `drain_hook` with zstd at level 1 and a tick of \
             100 µs, ours with the one that it chooses for the machine. gprof is the same program built with `-pg`, and counts arcs alone.",
    measure,
};

/// A program, and the arguments that make it work for some tenths of a second.
struct Subject {
    name: &'static str,
    build: fn(&Lab, Hooks) -> Result<PathBuf>,
    arguments: Vec<String>,
    gprof_matters: bool,
    uftrace: bool,
}

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let script = lab.bench_file("programs/work.lua").display().to_string();
    let lua = Subject {
        name: "lua",
        build: Lab::lua,
        arguments: vec![script, "2".into()],
        gprof_matters: true,
        uftrace: true,
    };
    let size = lab.size("100", "5");
    let sqlite = Subject {
        name: "sqlite3",
        build: Lab::speedtest,
        arguments: ["--size", size, "--memdb"].map(String::from).into(),
        gprof_matters: false,
        uftrace: false,
    };
    let mut rows = of(lab, &lua)?;
    rows.extend(of(lab, &sqlite)?);
    Ok(rows)
}

fn of(lab: &Lab, subject: &Subject) -> Result<Vec<Row>> {
    let [plain, ours, gprof] =
        [Hooks::None, Hooks::Teeperf, Hooks::Gprof].map(|hooks| (subject.build)(lab, hooks));
    let (plain, ours, gprof) = (plain?, ours?, gprof?);
    let recording = lab.scratch(&format!("{}.teeperf", subject.name));
    let mut events = f64::NAN;
    let time = |mut command: Command| Ok(lab.run(command.args(&subject.arguments))?.seconds);
    let mut trials: Vec<Trial<'_>> = vec![
        (
            "ours",
            Box::new(|| {
                let seconds = time(recorded(lab, &recording, &ours))?;
                events = Report::of_whole(lab, &recording)?.events;
                Ok(seconds)
            }),
        ),
        ("no profiler", Box::new(|| time(Command::new(&plain)))),
        ("gprof", Box::new(|| time(Command::new(&gprof)))),
    ];
    if lab.offers(Hooks::Drain) {
        let yardstick = (subject.build)(lab, Hooks::Drain)?;
        let out = lab.scratch("drained");
        trials.push(("drain_hook", Box::new(move || time(yardstick_run(&yardstick, &out)))));
    }
    let trials = Trials::run(lab.rounds(5), trials)?;
    let name = subject.name;
    let mut beside = trials.medians(&["drain_hook", "no profiler", "gprof"], "s");
    if subject.uftrace && works("uftrace", &["--version"]) {
        beside += &format!(", uftrace {} s", digits(uftrace(lab, &gprof, &subject.arguments)?));
    }
    let told = format!(
        "{}, {} M events, none lost, {} × no profiler",
        trials.medians(&["ours"], "s"),
        digits(events / 1e6),
        digits(trials.ratio("ours", "no profiler").unwrap_or(f64::NAN)),
    );
    let mut rows =
        vec![Row::new(name, &format!("{name}, beside `drain_hook`"), told).beside(beside).limit(
            Limit::AtMost(1.2),
            trials.ratio("ours", "drain_hook"),
            "×",
        )];
    if subject.gprof_matters {
        rows.push(
            Row::new("gprof", &format!("{name}, beside gprof"), trials.medians(&["ours"], "s"))
                .beside(trials.medians(&["gprof"], "s"))
                .limit(Limit::AtMost(1.0), trials.ratio("ours", "gprof"), "×"),
        );
    }
    Ok(rows)
}

fn recorded(lab: &Lab, recording: &Path, program: &Path) -> Command {
    let mut command = lab.record(recording, &["--clock", "tick"]);
    command.arg(program);
    command
}

/// One run: it takes long, and its folder of data gigabytes, which are deleted.
fn uftrace(lab: &Lab, program: &Path, arguments: &[String]) -> Result<f64> {
    let data = lab.scratch("uftrace.data");
    let mut command = Command::new("uftrace");
    command.args(["record", "--no-libcall", "--no-pager", "-d"]).arg(&data);
    let seconds = lab.run(command.arg(program).args(arguments))?.seconds;
    std::fs::remove_dir_all(&data)?;
    Ok(seconds)
}
