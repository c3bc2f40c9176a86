//! The evaluation of TEE-Perf's paper (Bailleu and others, DSN 2019) done again: where a database's mixed run spends its time, and what
//! crossings cost an I/O loop; each with what the mending gains beside what the report says of it. docs/paper.md tells of it.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::{Trial, Trials, median};
use crate::bench::mixed::Stamps;
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "paper",
    title: "The paper's programs: time stamps in a database, crossings in an I/O loop",
    method: "leveldb's db_bench with a mixed run (four reads for each write, each operation timed for the histogram), and \
             `bench/programs/crossing.c`, an I/O loop in memory that asks for the process's id and the time with each command. Both \
             without enclaves; `2 µs` has each time stamp, or each crossing, take 2 µs more, as ways out of an enclave do. Shares are what \
             `teeperf report` says, the median of the rounds; gains are of unhooked programs, with and without what was mended, in turn. \
             What the report says of the share is compared with what the unhooked program gains: the part of the time that is gone.",
    measure,
};

/// What a way out of an enclave and back takes, nanoseconds.
const WAY_OUT_NS: &str = "2000";

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let mut rows = database(lab, "leveldb", "db_bench", "0")?;
    rows.extend(database(lab, "leveldb-out", "db_bench, stamps of 2 µs", WAY_OUT_NS)?);
    rows.extend(loops(lab, "system", "I/O loop, system calls", "system")?);
    rows.extend(loops(lab, "out", "I/O loop, crossings of 2 µs", WAY_OUT_NS)?);
    Ok(rows)
}

/// The mixed run of db_bench, over a database of a tenth as many keys as it does operations.
fn database(lab: &Lab, id: &str, what: &str, cost_ns: &str) -> Result<Vec<Row>> {
    let (keys, operations) = lab.size((20_000, 200_000), (2_000, 20_000));
    let command = |program: &std::path::Path, recorder: Option<Command>| {
        let db = lab.scratch("leveldb-mixed");
        let mut command = recorder.unwrap_or_else(|| Command::new(program));
        if command.get_program() != program {
            command.arg(program);
        }
        command.env("CLOCK_COST_NS", cost_ns).arg(format!("--db={}", db.display()));
        command.args(["--benchmarks=fillrandom,mixed", "--histogram=1"]);
        command.arg(format!("--num={keys}")).arg(format!("--reads={operations}"));
        command
    };
    let hooked = lab.mixed_bench(Hooks::Late, Stamps::Each)?;
    let recording = lab.scratch("mixed.teeperf");
    let (mut stamps, mut random) = (Vec::new(), Vec::new());
    for _ in 0..lab.rounds(3) {
        lab.run(&mut command(&hooked, Some(lab.record(&recording, &[]))))?;
        let mixed = ["--focus", "*Benchmark::Mixed*"];
        let [now, numbers] = shares(lab, &recording, &mixed, ["NowMicros", "leveldb::Random::"])?;
        stamps.push(100.0 * now);
        random.push(100.0 * numbers);
    }
    let [stamps, random] = [stamps, random].map(|all| median(&all));
    let each = lab.mixed_bench(Hooks::None, Stamps::Each)?;
    let hundredth = lab.mixed_bench(Hooks::None, Stamps::Hundredth)?;
    let micros = |program: &std::path::Path| -> Result<f64> {
        let ran = lab.run(&mut command(program, None))?;
        let (_, mixed) =
            ran.out.split_once("mixed").context("db_bench says nothing of the mixed run")?;
        let text = mixed.split("micros/op=").nth(1).and_then(|rest| rest.split_whitespace().next());
        text.context("no micros/op= in what db_bench says")?.parse().context("micros/op")
    };
    let trials: Vec<Trial<'_>> =
        vec![("each", Box::new(|| micros(&each))), ("hundredth", Box::new(|| micros(&hundredth)))];
    let trials = Trials::run(lab.rounds(5), trials)?;
    let gain = trials.ratio("each", "hundredth");
    let told = format!("time stamps {} %, random numbers {} %", digits(stamps), digits(random));
    Ok(vec![
        Row::new(&format!("{id}-shares"), &format!("{what}: shares of the mixed run"), told),
        Row::new(
            &format!("{id}-gain"),
            &format!("{what}: a stamp for every hundredth operation"),
            trials.medians(&["hundredth"], "µs"),
        )
        .beside(trials.medians(&["each"], "µs"))
        .limit(Limit::Told, gain, "×"),
        against(&format!("{id}-told"), what, stamps, gain),
    ])
}

/// The loop of `crossing.c`.
fn loops(lab: &Lab, id: &str, what: &str, way: &str) -> Result<Vec<Row>> {
    let commands = lab.size("1000000", "20000");
    let hooked = lab.program(Hooks::Late, "programs/crossing.c", &[])?;
    let plain = lab.program(Hooks::None, "programs/crossing.c", &[])?;
    let recording = lab.scratch("crossing.teeperf");
    let (mut shares, mut said) = (Vec::new(), String::new());
    for _ in 0..lab.rounds(3) {
        let mut record = lab.record(&recording, &[]);
        lab.run(record.arg(&hooked).args([way, "plain", commands]))?;
        let report = report(lab, &recording, &[])?;
        let advice = report["advice"].as_array().context("the report has no advice")?;
        ensure!(advice.len() == 2, "advice about {} functions, not about two", advice.len());
        let share = |one: &Value| one["share"].as_f64().context("advice without share");
        shares.push(100.0 * (share(&advice[0])? + share(&advice[1])?));
        said = advice.iter().filter_map(|one| one["what"].as_str()).collect::<Vec<_>>().join(" ");
    }
    let crossings = median(&shares);
    let speed = |mode: &'static str| -> Trial<'_> {
        let plain = &plain;
        let run = move || -> Result<f64> {
            lab.run(Command::new(plain).args([way, mode, commands]))?.number("iops")
        };
        (mode, Box::new(run))
    };
    let trials = Trials::run(lab.rounds(5), vec![speed("plain"), speed("cached")])?;
    let gain = trials.ratio("cached", "plain");
    Ok(vec![
        Row::new(&format!("{id}-advice"), &format!("{what}: what the report advises about"), said),
        Row::new(
            &format!("{id}-gain"),
            &format!("{what}: id and time kept"),
            trials.medians(&["cached"], "a second"),
        )
        .beside(trials.medians(&["plain"], "a second"))
        .limit(Limit::Told, gain, "×"),
        against(&format!("{id}-told"), what, crossings, gain),
    ])
}

/// A share that the report tells, beside the part of the time that the mending takes away.
fn against(id: &str, what: &str, share: f64, gain: Option<f64>) -> Row {
    let gone = gain.map(|gain| 100.0 * (1.0 - 1.0 / gain));
    Row::new(id, &format!("{what}: share told, beside what goes"), format!("{} %", digits(share)))
        .beside(format!("{} % of the time goes", digits(gone.unwrap_or(f64::NAN))))
        .limit(Limit::Told, gone.map(|gone| (share - gone).abs()), "points")
}

fn report(lab: &Lab, recording: &std::path::Path, options: &[&str]) -> Result<Value> {
    let mut command = Command::new(&lab.teeperf);
    let ran = lab.run(command.args(["report", "--json"]).arg(recording).args(options))?;
    serde_json::from_str(&ran.out).context("report --json")
}

/// Parts of the time of what `options` choose that functions have whose names contain these, themselves; the same by a query of call
/// paths, which is held against it.
fn shares(
    lab: &Lab,
    recording: &std::path::Path,
    options: &[&str],
    names: [&str; 2],
) -> Result<[f64; 2]> {
    let threads = &report(lab, recording, options)?["threads"];
    let threads = threads.as_array().context("no threads in the report")?;
    let whole: f64 = threads.iter().filter_map(|thread| thread["recorded"].as_f64()).sum();
    let share = |name: &str| -> Result<f64> {
        let focused = own(
            &report(lab, recording, &[options, &["--focus", &format!("*{name}*")]].concat())?,
            name,
        )?;
        let queried = own(&report(lab, recording, &[options, &["--path", name]].concat())?, name)?;
        let is_same = (focused - queried).abs() <= 1e-6 * whole;
        ensure!(is_same, "{name}: --focus {focused}, --path {queried}");
        Ok(focused / whole.max(1.0))
    };
    Ok([share(names[0])?, share(names[1])?])
}

/// Time of functions whose names contain this, themselves.
fn own(report: &Value, name: &str) -> Result<f64> {
    let functions = report["functions"].as_array().context("no functions in the report")?;
    let fits = functions.iter().filter(|f| f["name"].as_str().is_some_and(|it| it.contains(name)));
    Ok(fits.filter_map(|function| function["self"].as_f64()).sum())
}
