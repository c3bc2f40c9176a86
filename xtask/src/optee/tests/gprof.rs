//! OP-TEE's own way to count calls, where OP-TEE was built with it: whether the report of the file that a trusted
//! application leaves in the normal world has what gprof reads there, and what the application did; and whether
//! we count the same where it is built with `TEEPERF_PROBE=gprof` instead.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Error, Result, ensure};

use super::recorded::{Profile, prepare, whole};
use super::rounds::DEMO;
use super::{Group, Ran, teeperf};
use crate::checks::{self, Checks};
use crate::commands::run_quietly;
use crate::printed;

/// OP-TEE looks where an application is whenever the normal world interrupts it: here with what is read meanwhile. The
/// folder `ours` has the applications as we count them, `both` those that OP-TEE counts and that have hooks.
pub(super) const GROUP: Group = Group {
    name: "gprof",
    script: "set -e\n\
             DEMO=80391883-0ed0-447a-a4d2-13769a2c6c84\n\
             bin/optee-demo calls 1000\n\
             cp /tmp/gmon-$DEMO.out out/calls.out\n\
             echo 1 >/proc/irq/$(sed -n 's/^ *\\([0-9]*\\):.*virtio.*requests.*/\\1/p' /proc/interrupts)/smp_affinity\n\
             while :; do cat /host/bin/teeperf >/dev/null; done & reads=$!\n\
             taskset 1 bin/optee-demo compute 200000000\n\
             kill $reads\n\
             cp /tmp/gmon-$DEMO.1.out out/compute.out\n\
             record() { cp $1/*.ta /lib/optee_armtz/; bin/teeperf record -q --optee --elf $1/$DEMO.elf -o out/$1.teeperf -- bin/optee-demo calls 1000; }\n\
             record ours\n\
             rm /tmp/gmon-$DEMO.*\n\
             record both\n\
             cp /tmp/gmon-$DEMO.out out/both.out\n",
    prepare,
    judge,
};

/// By how much OP-TEE tells addresses too high since 4.0: it adds the size of what its linker script had before the
/// code once, and has behind it now (`adjust_pc` in `libutee/arch/arm/gprof/gprof.c`).
const BIAS: &str = "0x20";

/// What `calls 1000` makes of the demo's functions, up to where ours are handed over last.
const CALLS: [(&str, u64); 6] = [
    ("TA_CreateEntryPoint", 1),
    ("TA_OpenSessionEntryPoint", 1),
    ("TA_InvokeCommandEntryPoint", 1),
    ("outer", 1000),
    ("middle", 3000),
    ("leaf", 15_000),
];

/// What OP-TEE's own libraries call before the application's first function, in libutee and in libutils.
const LIBRARIES: [&str; 5] =
    ["TEE_GetPropertyAsU32", "TEE_Malloc", "raw_malloc_flags", "calloc", "strcmp"];

fn judge(ran: &Ran, checks: &mut Checks) {
    checks.add("clients whose applications OP-TEE counts end", ran.succeeded());
    checks.add("OP-TEE's own file: the demo's calls", counted(ran));
    checks.add("OP-TEE's own file: samples of a computation", sampled(ran));
    checks.add("OP-TEE's own counts and ours are the same", beside(ran));
    checks.add("OP-TEE's own counts of an application that has hooks", both(ran));
}

/// The report of one of OP-TEE's files.
fn own(ran: &Ran, file: &str, applications: &str) -> Result<Profile> {
    Profile::of(ran, file, &["--elf", &format!("{applications}/{DEMO}"), "--bias", BIAS])
}

/// Likewise, if gprof says the same of it, whose program has to be where the file says.
fn as_gprof(ran: &Ran, file: &str) -> Result<Profile> {
    let profile = own(ran, file, "linked")?;
    let linked = ran.folder.join("linked").join(DEMO);
    let shifted = linked.with_extension("shifted.elf");
    let mut shift = tool(&linked, "objcopy")?;
    run_quietly(shift.args(["--change-addresses", BIAS]).arg(&linked).arg(&shifted))?;
    let file = ran.folder.join("out").join(file);
    let [flat, graph] = ["-p", "-q"].map(|style| gprof(style, &shifted, &file));
    printed::agree(&profile.0, &flat?, &graph?).map_err(Error::msg)?;
    Ok(profile)
}

fn counted(ran: &Ran) -> Result<()> {
    as_gprof(ran, "calls.out")?.has(&CALLS)
}

fn sampled(ran: &Ran) -> Result<()> {
    let profile = as_gprof(ran, "compute.out")?;
    profile.has(&[("compute", 1)])?;
    let (compute, all) = (profile.time("compute", "self"), profile.time("__utee_entry", "total"));
    let is_most = compute > 0.0 && compute > 0.9 * all;
    ensure!(is_most, "compute has {compute} of {all} ns");
    Ok(())
}

/// Ours, as they are written for gprof.
fn beside(ran: &Ran) -> Result<()> {
    let elf = format!("ours/{DEMO}");
    teeperf(ran, &["export", "--to", "gmon", "--elf", &elf, "-o", "out/ours.out"], "ours.teeperf")?;
    let ours = Profile::of(ran, "ours.out", &["--elf", &elf])?;
    ours.has(&CALLS)?;
    let theirs = own(ran, "calls.out", "linked")?;
    for function in LIBRARIES {
        let calls = [&ours, &theirs].map(|profile| profile.calls(function));
        let is_same = calls[0] == calls[1] && calls[0] > 0;
        ensure!(is_same, "{function}: we have counted {} calls, OP-TEE {}", calls[0], calls[1]);
    }
    let is_demo = |name: &str| CALLS.iter().any(|(function, _)| *function == name);
    let [ours, theirs] = [ours, theirs].map(|profile| {
        let mut arcs = printed::arcs(&profile.0);
        arcs.retain(|(caller, callee, _)| is_demo(caller) && is_demo(callee));
        arcs
    });
    ensure!(ours == theirs && ours.len() == 3, "ours are {ours:?}, OP-TEE's {theirs:?}");
    Ok(())
}

/// Neither disturbs the other.
fn both(ran: &Ran) -> Result<()> {
    own(ran, "both.out", "both")?.has(&CALLS)?;
    whole(ran, "both.teeperf", &CALLS)
}

/// Whether gprof finds these calls in a file.
pub(super) fn has(program: &Path, file: &Path, expected: &[(&str, u64)]) -> Result<()> {
    let shown = gprof("-p", program, file)?;
    let rows = printed::flat(&shown);
    for &(function, calls) in expected {
        let found = rows.iter().find(|row| row.0 == function).map(|row| row.2);
        ensure!(found == Some(calls), "{function}: {found:?} calls, not {calls}:\n{shown}");
    }
    Ok(())
}

/// Whether gprof finds so many calls of one function by another there.
pub(super) fn has_arcs(program: &Path, file: &Path, expected: &[(&str, &str, u64)]) -> Result<()> {
    checks::has_arcs(&gprof("-q", program, file)?, expected)
}

fn gprof(style: &str, program: &Path, file: &Path) -> Result<String> {
    run_quietly(tool(program, "gprof")?.args(["-b", style]).arg(program).arg(file))
}

/// One of binutils, for a linked application: its fifth byte says how wide it is.
fn tool(program: &Path, name: &str) -> Result<Command> {
    let is_narrow = fs::read(program)?.get(4) == Some(&1);
    let target = if is_narrow { "arm-linux-gnueabihf" } else { "aarch64-linux-gnu" };
    Ok(Command::new(format!("{target}-{name}")))
}
