//! The whole trace of a real program, to disk, with nothing lost.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::{Lab, yardstick_run};
use crate::bench::measure::{Trial, Trials};
use crate::bench::report::Report;
use crate::bench::subject::text;
use crate::bench::table::{Limit, Row, digits};
use crate::commands::works;

pub(crate) const FIGURE: Figure = Figure {
    name: "whole",
    title: "Whole traces, to disk",
    method: "lua 5.4 with `bench/programs/work.lua`, sqlite3's `speedtest1 --memdb`, RocksDB's \
             `db_bench` with four reads for each write (its mixed run), and CPython with \
             `bench/truth/work.py`, all with late hooks in every function. Wall time of the whole \
             command, so for us from `teeperf record` to the prompt, with samples of CPU time. \
             gprof is the same program built with `-pg`; it counts arcs, and its samples know no \
             paths. `drain_hook` is called by hooks of the source, and writes with zstd at level \
             1 and a tick of 100 µs.",
    measure,
};

/// A program, and the arguments that make it work for some seconds.
struct Subject {
    name: &'static str,
    what: &'static str,
    build: fn(&Lab, Hooks) -> Result<PathBuf>,
    arguments: Vec<String>,
    /// A variable of its environment.
    variable: Option<(&'static str, String)>,
    /// Most times that it may take as long as without hooks.
    limit: f64,
    /// Whether the yardsticks and uftrace run as well.
    has_yardsticks: bool,
}

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for subject in subjects(lab)? {
        rows.extend(of(lab, &subject)?);
    }
    Ok(rows)
}

fn subjects(lab: &Lab) -> Result<Vec<Subject>> {
    let script = text(&lab.bench_file("programs/work.lua"));
    let work = text(&lab.bench_file("truth/work.py"));
    let library = text(&lab.python_for_truth(Hooks::None)?.1);
    let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect();
    let db = format!("--db={}", text(&lab.scratch("rocksdb")));
    let keys = lab.size("--num=200000", "--num=5000");
    Ok(vec![
        Subject {
            name: "lua",
            what: "lua",
            build: Lab::lua,
            arguments: words(&[&script, lab.size("6", "1")]),
            variable: None,
            limit: 2.2,
            has_yardsticks: true,
        },
        Subject {
            name: "sqlite3",
            what: "sqlite3",
            build: Lab::speedtest,
            arguments: words(&["--size", lab.size("100", "5"), "--memdb"]),
            variable: None,
            limit: 1.7,
            has_yardsticks: true,
        },
        Subject {
            name: "rocksdb",
            what: "RocksDB, mixed run",
            build: Lab::rocksdb_bench,
            arguments: words(&[
                "--benchmarks=fillrandom,readrandomwriterandom",
                "--compression_type=none",
                "--readwritepercent=80",
                &db,
                keys,
                "--threads=1",
            ]),
            variable: None,
            limit: 1.7,
            has_yardsticks: false,
        },
        Subject {
            name: "cpython",
            what: "CPython",
            build: |lab, hooks| Ok(lab.python_for_truth(hooks)?.0),
            arguments: words(&["-S", &work, lab.size("24", "1")]),
            variable: Some(("PYTHONPATH", library)),
            limit: 2.5,
            has_yardsticks: false,
        },
    ])
}

fn of(lab: &Lab, subject: &Subject) -> Result<Vec<Row>> {
    let [plain, late, gprof] =
        [Hooks::None, Hooks::Late, Hooks::Gprof].map(|hooks| (subject.build)(lab, hooks));
    let (plain, late, gprof) = (plain?, late?, gprof?);
    let recording = lab.scratch(&format!("{}.teeperf", subject.name));
    let mut events = f64::NAN;
    let time = |mut command: Command| {
        command.envs(subject.variable.clone());
        Ok(lab.run(command.args(&subject.arguments))?.seconds)
    };
    let mut trials: Vec<Trial<'_>> = vec![
        (
            "ours",
            Box::new(|| {
                let seconds = time(recorded(lab, &recording, &late))?;
                events = Report::of_whole(lab, &recording)?.events;
                Ok(seconds)
            }),
        ),
        ("no hooks", Box::new(|| time(Command::new(&plain)))),
        ("gprof", Box::new(|| time(Command::new(&gprof)))),
    ];
    if subject.has_yardsticks && lab.offers(Hooks::Drain) {
        let yardstick = (subject.build)(lab, Hooks::Drain)?;
        let out = lab.scratch("drained");
        trials.push(("drain_hook", Box::new(move || time(yardstick_run(&yardstick, &out)))));
    }
    let trials = Trials::run(lab.rounds(5), trials)?;
    let (name, what) = (subject.name, subject.what);
    let mut beside = trials.medians(&["no hooks", "drain_hook"], "s");
    if subject.has_yardsticks && works("uftrace", &["--version"]) {
        beside += &format!(", uftrace {} s", digits(uftrace(lab, &gprof, &subject.arguments)?));
    }
    let ours = trials.medians(&["ours"], "s");
    let told = format!("{ours}, {} M events, none lost", digits(events / 1e6));
    Ok(vec![
        Row::new(name, &format!("{what}, beside no hooks"), told).beside(beside).limit(
            Limit::AtMost(subject.limit),
            trials.ratio("ours", "no hooks"),
            "×",
        ),
        Row::new(&format!("{name}-gprof"), &format!("{what}, beside gprof"), ours)
            .beside(trials.medians(&["gprof"], "s"))
            .limit(Limit::AtMost(1.0), trials.ratio("ours", "gprof"), "×"),
    ])
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
