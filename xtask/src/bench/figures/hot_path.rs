//! A call and its return, recorded and not, beside the least that such a hook can cost.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::{Lab, yardstick_run};
use crate::bench::measure::{Trial, Trials};
use crate::bench::prototype::Prototype;
use crate::bench::table::{Limit, Row};
use crate::commands::run_quietly;

pub(crate) const FIGURE: Figure = Figure {
    name: "hot-path",
    title: "A call and its return",
    method: "`bench/programs/calls.c`, Fibonacci by recursion: nanoseconds of the thread's \
             processor time for one call and its return, the call itself included. The calls come \
             in bursts of 300,000 events with pauses between them, in which the recorder catches \
             up. So the hook is measured, with taking chunks and writing to memory that \
             another core reads and clears, and no waiting. Late hooks stand beside `late`, a \
             prototype of them for one thread that overwrites one buffer: compared is the time \
             above the same program without hooks. Hooks of the source stand beside `word_hook`, \
             which the compiler calls in the same places, and which overwrites one buffer too. All \
             are built with `-fno-optimize-sibling-calls`, so that each call is one of the machine. \
             Samples of CPU time are taken meanwhile, as by default. Without pauses the recorder \
             is the limit: the last row, in wall time.",
    measure,
};

/// As the prototype is built: each call of the source is one of the machine.
pub(super) const EVERY_CALL: &str = "-fno-optimize-sibling-calls";
/// Arguments of `calls`: fib(24), one thread, 50 bursts.
pub(super) const BURSTS: &[&str] = &["24", "1", "50"];
/// The same, shorter.
pub(super) const QUICK_BURSTS: &[&str] = &["24", "1", "10"];
/// Many short runs: a virtual machine's processor goes at one of two speeds for seconds at a time.
pub(super) const ROUNDS: usize = 21;

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let prototype = Prototype::build(lab)?;
    let build = |hooks| lab.program(hooks, "programs/calls.c", &[EVERY_CALL]);
    let plain = build(Hooks::None)?;
    let (late, source) = (build(Hooks::Late)?, build(Hooks::Source)?);
    let bursts = lab.size(BURSTS, QUICK_BURSTS);
    let fixed = Programs { plain: &plain, late: &late, prototype: prototype.as_ref() };
    let (plain_host, late_host) = (library(lab, Hooks::None)?, library(lab, Hooks::Late)?);
    let shared = Programs { plain: &plain_host, late: &late_host, prototype: prototype.as_ref() };
    Ok(vec![
        fixed.row(lab, "late", "late hooks, in a program", bursts, Limit::AtMost(1.3))?,
        shared.row(lab, "late-shared", "late hooks, in a shared library", bursts, Limit::Told)?,
        source_hooks(lab, &plain, &source, bursts)?,
        sustained(lab, &plain, &late)?,
    ])
}

/// One program built in several ways.
struct Programs<'a> {
    plain: &'a Path,
    late: &'a Path,
    prototype: Option<&'a Prototype>,
}

impl Programs<'_> {
    fn row(&self, lab: &Lab, id: &str, what: &str, bursts: &[&str], limit: Limit) -> Result<Row> {
        let mut trials: Vec<Trial<'_>> = vec![
            ("late", Box::new(|| recorded(lab, self.late, bursts, "cpu_ns"))),
            ("no hooks", Box::new(|| cost(lab, &mut Command::new(self.plain), bursts, "cpu_ns"))),
        ];
        if let Some(prototype) = self.prototype {
            trials.push(("prototype", Box::new(|| prototype.recording(lab))));
            trials.push(("its program without hooks", Box::new(|| prototype.plain(lab))));
        }
        let trials = Trials::run(lab.rounds(ROUNDS), trials)?;
        let ours = trials.above("late", "no hooks");
        let least = trials.above("prototype", "its program without hooks");
        let told = format!("{}, {} above", trials.medians(&["late"], "ns"), nanoseconds(ours));
        let beside = trials.medians(&["no hooks", "prototype", "its program without hooks"], "ns");
        let reached = ours.zip(least).map(|(ours, least)| ours / least);
        Ok(Row::new(id, what, told)
            .beside(format!("{beside}, {} above", nanoseconds(least)))
            .limit(limit, reached, "× the prototype"))
    }
}

/// A difference, for a cell.
fn nanoseconds(value: Option<f64>) -> String {
    value.map_or("not measured".into(), |value| format!("{value:.2} ns"))
}

/// The recursion in a library, the rest in a program that has hooks of the same kind.
fn library(lab: &Lab, hooks: Hooks) -> Result<PathBuf> {
    let source = lab.bench_file("programs/calls.c");
    let library = lab.built(hooks, "libcalls.so", &[&source], |compilers, out| {
        let mut command = compilers.command(false);
        command.args(["-O2", EVERY_CALL, "-fPIC", "-shared", "-DLIBRARY"]).arg(&source);
        run_quietly(command.arg("-o").arg(out)).map(drop)
    })?;
    lab.built(hooks, "calls-shared", &[&library], |compilers, out| {
        let mut command = compilers.command(false);
        command.args(["-O2", "-DDRIVER"]).arg(&source).arg("-o").arg(out).arg(&library);
        run_quietly(command.args(["-Wl,-rpath,$ORIGIN", "-pthread"])).map(drop)
    })
}

fn source_hooks(lab: &Lab, plain: &Path, source: &Path, bursts: &[&str]) -> Result<Row> {
    let yardstick = yardstick(lab, Hooks::Word)?;
    let out = lab.scratch("drained");
    let mut trials: Vec<Trial<'_>> = vec![
        ("source", Box::new(|| recorded(lab, source, bursts, "cpu_ns"))),
        ("no hooks", Box::new(|| cost(lab, &mut Command::new(plain), bursts, "cpu_ns"))),
    ];
    if let Some(program) = &yardstick {
        let run =
            || cost(lab, yardstick_run(program, &out).env("SLEEP_US", "50"), bursts, "cpu_ns");
        trials.push(("word_hook", Box::new(run)));
    }
    let trials = Trials::run(lab.rounds(ROUNDS), trials)?;
    let row =
        Row::new("source", "hooks of the source, in a program", trials.medians(&["source"], "ns"));
    let beside = trials.medians(&["word_hook", "no hooks"], "ns");
    Ok(row.beside(beside).limit(
        Limit::AtMost(1.3),
        trials.ratio("source", "word_hook"),
        "× word_hook",
    ))
}

fn sustained(lab: &Lab, plain: &Path, late: &Path) -> Result<Row> {
    let n = &[lab.size("36", "27")];
    let yardstick = yardstick(lab, Hooks::Drain)?;
    let out = lab.scratch("drained");
    let mut trials: Vec<Trial<'_>> = vec![
        ("late", Box::new(|| recorded(lab, late, n, "wall_ns"))),
        ("no hooks", Box::new(|| cost(lab, &mut Command::new(plain), n, "wall_ns"))),
    ];
    if let Some(program) = &yardstick {
        trials.push((
            "drain_hook",
            Box::new(|| cost(lab, &mut yardstick_run(program, &out), n, "wall_ns")),
        ));
    }
    let trials = Trials::run(lab.rounds(ROUNDS.min(7)), trials)?;
    let row = Row::new("sustained", "without pauses, wall time", trials.medians(&["late"], "ns"));
    let beside = trials.medians(&["no hooks", "drain_hook"], "ns");
    Ok(row.beside(beside).limit(Limit::AtMost(2.0), trials.ratio("late", "no hooks"), "× no hooks"))
}

fn yardstick(lab: &Lab, hooks: Hooks) -> Result<Option<PathBuf>> {
    lab.offers(hooks).then(|| lab.program(hooks, "programs/calls.c", &[EVERY_CALL])).transpose()
}

fn cost(lab: &Lab, command: &mut Command, arguments: &[&str], key: &str) -> Result<f64> {
    lab.run(command.args(arguments))?.number(key)
}

fn recorded(lab: &Lab, program: &Path, arguments: &[&str], key: &str) -> Result<f64> {
    let mut command = lab.record(&lab.scratch("calls.teeperf"), &["--clock", "tick"]);
    cost(lab, command.arg(program), arguments, key)
}
