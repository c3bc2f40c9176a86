//! Calls summed by call path while the program runs: what a call costs, and what a run without end.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Figure;
use super::hot_path::{BURSTS, QUICK_BURSTS, ROUNDS};
use crate::bench::hooks::Hooks;
use crate::bench::lab::{Lab, yardstick_run};
use crate::bench::measure::{Trial, Trials};
use crate::bench::report::Report;
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "tree",
    title: "Tree: a call and its return, and long runs",
    method: "`bench/programs/calls.c` under `--probe tree`, nanoseconds of the thread's processor time for \
             one call and its return, beside `word_hook` as in the first figure; and ten thousand million calls \
             in one run, with what was summed written at intervals that begin at 1 ms: as many are \
             written as in weeks at 10 s. What the program and the recorder have resident is read from \
             `/proc` each 50 ms; told is by how much it is more at the end than when a tenth of the time had \
             passed.",
    measure,
};

/// What the recursion calls before it is measured: fib(10).
const BEFORE: u64 = 177;

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let mut rows = vec![hook(lab, "tick")?, hook(lab, "cycle")?];
    rows.extend(long(lab)?);
    Ok(rows)
}

fn hook(lab: &Lab, clock: &'static str) -> Result<Row> {
    let build = |hooks| lab.program(hooks, "programs/calls.c", &[]);
    let (ours, plain) = (build(Hooks::Late)?, build(Hooks::None)?);
    let arguments = lab.size(BURSTS, QUICK_BURSTS);
    let cost = |command: &mut Command| lab.run(command.args(arguments))?.number("cpu_ns");
    let (recording, out) = (lab.scratch("tree.teeperf"), lab.scratch("drained"));
    let record = |options: &[&str]| {
        let mut command = lab.record(&recording, &[&["--clock", clock], options].concat());
        command.arg(&ours);
        command
    };
    let yardstick = lab.offers(Hooks::Word).then(|| build(Hooks::Word)).transpose()?;
    let mut trials: Vec<Trial<'_>> = vec![
        ("tree", Box::new(|| cost(&mut record(&["--probe", "tree"])))),
        ("trace", Box::new(|| cost(&mut record(&[])))),
        ("no hooks", Box::new(|| cost(&mut Command::new(&plain)))),
    ];
    if let Some(yardstick) = &yardstick {
        let run = || cost(yardstick_run(yardstick, &out).env("SLEEP_US", "50"));
        trials.push(("word_hook", Box::new(run)));
    }
    let trials = Trials::run(lab.rounds(ROUNDS), trials)?;
    let limit = if clock == "tick" { Limit::AtMost(2.0) } else { Limit::Told };
    Ok(Row::new(clock, &format!("tree, {clock}"), trials.medians(&["tree"], "ns"))
        .beside(trials.medians(&["trace", "word_hook", "no hooks"], "ns"))
        .limit(limit, trials.ratio("tree", "word_hook"), "× word_hook"))
}

fn long(lab: &Lab) -> Result<[Row; 3]> {
    let program = lab.program(Hooks::Late, "programs/calls.c", &[])?;
    let (recording, said) = (lab.scratch("long.teeperf"), lab.scratch("long.txt"));
    let mut record = lab.record(&recording, &["--probe", "tree", "--interval", "1ms"]);
    record.arg(&program).arg(lab.size("48", "32")).stdout(File::create(&said)?);
    let began = Instant::now();
    let mut child = record.spawn().context("teeperf record")?;
    let resident = watch(&mut child)?;
    let seconds = began.elapsed().as_secs_f64();
    ensure!(child.wait()?.success(), "the program failed");
    let said = fs::read_to_string(&said)?;
    let calls = said.split_whitespace().find_map(|word| word.strip_prefix("calls="));
    let calls: u64 = calls.context("no calls")?.parse()?;

    let trials: Vec<Trial<'_>> = vec![(
        "report",
        Box::new(|| {
            let ran = lab.run(Command::new(&lab.teeperf).arg("report").arg(&recording))?;
            Ok(ran.seconds * 1e3)
        }),
    )];
    let trials = Trials::run(lab.rounds(5), trials)?;
    let report = Report::of(lab, &recording)?;
    let seen = report.functions.iter().find(|function| function.name == "fib");
    let seen = seen.context("no fib in the report")?.calls;
    let told = format!("{} M calls in {} s", digits(calls as f64 / 1e6), digits(seconds));
    let tenth = resident.get(resident.len() / 10).copied().context("it was too short")?;
    let last = resident.last().copied().context("it was too short")?;
    let bytes = fs::metadata(&recording)?.len() as f64 / 1024.0;
    Ok([
        Row::new("long", "calls that a long run counts otherwise", told).limit(
            Limit::AtMost(0.0),
            Some((calls + BEFORE).abs_diff(seen) as f64),
            "calls",
        ),
        Row::new(
            "flat",
            "growth of what is resident in it",
            format!("program {} MiB, recorder {} MiB", digits(last.0), digits(last.1)),
        )
        .limit(Limit::AtMost(1.0), Some(last.0 + last.1 - tenth.0 - tenth.1), "MiB"),
        Row::new(
            "report",
            "report of it",
            format!("{}, {} KiB", trials.medians(&["report"], "ms"), digits(bytes)),
        )
        .limit(Limit::AtMost(100.0), trials.median("report"), "ms"),
    ])
}

/// MiB resident of the recorder's program and of the recorder, again and again to the program's end.
fn watch(recorder: &mut Child) -> Result<Vec<(f64, f64)>> {
    let pid = recorder.id();
    let mut seen = Vec::new();
    loop {
        std::thread::sleep(Duration::from_millis(50));
        if recorder.try_wait()?.is_some() {
            return Ok(seen);
        }
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let child = children.ok().and_then(|text| text.split_whitespace().next()?.parse().ok());
        let both = child.and_then(|child: u32| Some((resident_mib(child)?, resident_mib(pid)?)));
        seen.extend(both);
    }
}

fn resident_mib(pid: u32) -> Option<f64> {
    let status =
        fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|kib| kib / 1024.0)
}
