//! A call and its return, recorded with the tick, beside the least that such a hook can cost.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::{Lab, yardstick_run};
use crate::bench::measure::{Trial, Trials};
use crate::bench::table::{Limit, Row};
use crate::commands::run_quietly;

pub(crate) const FIGURE: Figure = Figure {
    name: "hot-path",
    title: "Tick trace: a call and its return",
    method: "`bench/programs/calls.c`, Fibonacci by recursion: nanoseconds of the thread's \
             processor time for one call and its return, the call itself included. The calls come \
             in bursts of 300,000 events with pauses between them, in which the recorder catches \
             up: so it is the hook that is measured, taking chunks and writing to memory that \
             another core reads and clears included, and no waiting. `word_hook`, with its tick \
             sleeping 50 µs or so (ours 100), overwrites one buffer again and again; `drain_hook` \
             hands over its chunks, as we do. In a shared library the yardsticks are linked into the \
             library, with thread-local storage found as fast as it can be (initial-exec). \
             Without pauses the recorder is the limit: the last row, in wall time.",
    measure,
};

const LIMIT: Limit = Limit::AtMost(1.3);
/// Arguments of `calls`: fib(24), one thread, 50 bursts.
pub(super) const BURSTS: &[&str] = &["24", "1", "50"];
/// The same, shorter.
pub(super) const QUICK_BURSTS: &[&str] = &["24", "1", "10"];
/// Many short runs: a virtual machine's processor goes at one of two speeds for seconds at a time.
pub(super) const ROUNDS: usize = 21;

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let fixed = programs(lab, |hooks| lab.program(hooks, "programs/calls.c", &[]))?;
    let shared = programs(lab, |hooks| library(lab, hooks))?;
    Ok(vec![
        row(lab, "static", "in a program", &fixed)?,
        row(lab, "shared", "in a shared library", &shared)?,
        sustained(lab, &fixed)?,
    ])
}

struct Programs {
    plain: PathBuf,
    ours: PathBuf,
    yardstick: Option<PathBuf>,
    drained: Option<PathBuf>,
}

fn programs(lab: &Lab, build: impl Fn(Hooks) -> Result<PathBuf>) -> Result<Programs> {
    let offered = |hooks| lab.offers(hooks).then(|| build(hooks)).transpose();
    Ok(Programs {
        plain: build(Hooks::None)?,
        ours: build(Hooks::Teeperf)?,
        yardstick: offered(Hooks::Word)?,
        drained: offered(Hooks::Drain)?,
    })
}

/// The recursion in a library, the rest in a program that has hooks of the same kind.
fn library(lab: &Lab, hooks: Hooks) -> Result<PathBuf> {
    let source = lab.bench_file("programs/calls.c");
    let library = lab.built(hooks, "libcalls.so", &[&source], |compilers, out| {
        let mut command = compilers.command(false);
        command.args(["-O2", "-fPIC", "-shared", "-DLIBRARY"]).arg(&source);
        if hooks.yardstick().is_some() {
            let flags = ["-fPIC", "-ftls-model=initial-exec", "-fvisibility=hidden"];
            command.arg(lab.hook_object(hooks, &flags)?).args(hooks.libraries());
        }
        run_quietly(command.arg("-o").arg(out)).map(drop)
    })?;
    let own = if hooks.yardstick().is_some() { Hooks::None } else { hooks };
    lab.built(hooks, "calls-shared", &[&library], |_, out| {
        let mut command = lab.compilers(own)?.command(false);
        command.args(["-O2", "-DDRIVER"]).arg(&source).arg("-o").arg(out).arg(&library);
        run_quietly(command.args(["-Wl,-rpath,$ORIGIN", "-pthread"])).map(drop)
    })
}

fn row(lab: &Lab, id: &str, place: &str, programs: &Programs) -> Result<Row> {
    let trials = trials(lab, programs, lab.size(BURSTS, QUICK_BURSTS), "cpu_ns")?;
    Ok(Row::new(id, &format!("tick trace, {place}"), trials.medians(&["ours"], "ns"))
        .beside(trials.medians(&["word_hook", "drain_hook", "no hooks"], "ns"))
        .limit(LIMIT, trials.ratio("ours", "word_hook"), "×"))
}

fn sustained(lab: &Lab, programs: &Programs) -> Result<Row> {
    let trials = trials(lab, programs, &[lab.size("34", "27")], "wall_ns")?;
    let row = Row::new("sustained", "without pauses, wall time", trials.medians(&["ours"], "ns"));
    let beside = trials.medians(&["word_hook", "drain_hook", "no hooks"], "ns");
    Ok(row.beside(beside).limit(Limit::Told, trials.ratio("ours", "drain_hook"), "× drain_hook"))
}

fn trials(lab: &Lab, programs: &Programs, arguments: &[&str], key: &'static str) -> Result<Trials> {
    let cost = |command: &mut Command| lab.run(command.args(arguments))?.number(key);
    let (recording, out) = (lab.scratch("calls.teeperf"), lab.scratch("drained"));
    let record = |program: &Path| {
        let mut command = lab.record(&recording, &["--clock", "tick", "--period", "100us"]);
        command.arg(program);
        command
    };
    let mut trials: Vec<Trial<'_>> = vec![
        ("ours", Box::new(|| cost(&mut record(&programs.ours)))),
        ("no hooks", Box::new(|| cost(&mut Command::new(&programs.plain)))),
    ];
    if let Some(yardstick) = &programs.yardstick {
        let run = || cost(yardstick_run(yardstick, &out).env("SLEEP_US", "50"));
        trials.push(("word_hook", Box::new(run)));
    }
    if let Some(drained) = &programs.drained {
        trials.push(("drain_hook", Box::new(|| cost(&mut yardstick_run(drained, &out)))));
    }
    Trials::run(lab.rounds(ROUNDS), trials)
}
