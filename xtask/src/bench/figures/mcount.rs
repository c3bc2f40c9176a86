//! Calls counted with `-pg`: what one costs, beside the C library's own counting.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::Trials;
use crate::bench::table::{Limit, Row, digits};
use crate::commands::run_quietly;

pub(crate) const FIGURE: Figure = Figure {
    name: "mcount",
    title: "Calls counted with -pg",
    method: "`calls.c` compiled with `-pg` and linked with `libteeperf_tee.a` (`install-sdk --threads tls`), beside the \
             same with glibc's `mcount`, and without: nanoseconds of the thread's processor time for a call and its \
             return. Compared is what counting adds. Then two threads at once, each with a table of its own, beside \
             one; glibc's have one table, into which one thread counts and the other does not meanwhile.",
    measure,
};

/// fib(24), threads, bursts.
const ARGUMENT: &str = "24";

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let bursts = lab.size("300", "20");
    let (ours, glibc, plain) = (
        ours(lab)?,
        lab.program(Hooks::Gprof, "programs/calls.c", &[])?,
        lab.program(Hooks::None, "programs/calls.c", &[])?,
    );
    let run = |program: &PathBuf, threads: &str| {
        lab.run(Command::new(program).args([ARGUMENT, threads, bursts]))?.number("cpu_ns")
    };
    let trials = Trials::run(
        lab.rounds(7),
        vec![
            ("ours", Box::new(|| run(&ours, "1"))),
            ("glibc", Box::new(|| run(&glibc, "1"))),
            ("without", Box::new(|| run(&plain, "1"))),
            ("ours, two threads", Box::new(|| run(&ours, "2"))),
            ("glibc, two threads", Box::new(|| run(&glibc, "2"))),
        ],
    )?;
    let added = |name| Some(trials.median(name)? - trials.median("without")?);
    let ratio = added("ours").zip(added("glibc")).map(|(ours, glibc)| ours / glibc);
    let told = added("ours").map_or(String::new(), |ns| format!(", adds {} ns", digits(ns)));
    Ok(vec![
        Row::new("one", "what counting adds", format!("{}{told}", trials.medians(&["ours"], "ns")))
            .beside(trials.medians(&["glibc", "without"], "ns"))
            .limit(Limit::AtMost(1.5), ratio, "×"),
        Row::new("two", "two threads against one", trials.medians(&["ours, two threads"], "ns"))
            .beside(trials.medians(&["ours", "glibc, two threads"], "ns"))
            .limit(Limit::AtMost(1.1), trials.ratio("ours, two threads", "ours"), "×"),
    ])
}

/// The program with the library's entries.
fn ours(lab: &Lab) -> Result<PathBuf> {
    let (source, memory) =
        (lab.bench_file("programs/calls.c"), lab.bench_file("programs/arcs_memory.c"));
    let (folder, program) = (lab.scratch("sdk"), lab.scratch("calls-mcount"));
    run_quietly(
        Command::new(&lab.teeperf).arg("install-sdk").arg(&folder).args(["--threads", "tls"]),
    )?;
    let library = folder.join("lib").join(std::env::consts::ARCH).join("libteeperf_tee.a");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-pg"]).args([&source, &memory, &library]).arg("-o").arg(&program);
    run_quietly(gcc.args(["-pthread", "-Wl,--no-warn-execstack"]))?;
    Ok(program)
}
