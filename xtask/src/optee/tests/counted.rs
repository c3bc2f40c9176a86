//! Trusted applications compiled with `-pg`, whose calls our library counts: whether the counts are what they did,
//! here and in the file that gprof reads.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::recorded::{Profile, leaps, prepare, whole};
use super::rounds::{DEMO, clients, counts, often};
use super::{Group, Ran, demo, gprof, teeperf};
use crate::checks::Checks;

pub(super) const GROUP: Group = Group { name: "counted", script: clients!(), prepare, judge };

fn judge(ran: &Ran, checks: &mut Checks) {
    checks.add("counted clients end", ran.succeeded());
    demo::answers(ran, checks, "while counted");
    checks.add("counted calls: in both worlds", counts(ran, "calls", 7, 1, &[]));
    checks.add("counted sessions", counts(ran, "sessions", 20, 21, &[]));
    checks.add("counted calls with and without free parameters", slots(ran));
    checks.add("counted: five hundred calls in a row", often(ran));
    checks.add("counted: out of functions by leaps", leaps(ran, 0));
    checks
        .add("four million calls, counted: none is missing", counts(ran, "many", 200_000, 1, &[]));
    checks.add("counted: the time of a computation", time(ran));
    checks.add("counted calls as gprof reads them", exported(ran));
}

fn slots(ran: &Ran) -> Result<()> {
    whole(ran, "slots.teeperf", &[("TA_InvokeCommandEntryPoint", 11), ("leaf", 75)])
}

fn time(ran: &Ran) -> Result<()> {
    let profile = Profile::of(ran, "compute.teeperf", &[])?;
    let inside = profile.time("compute", "self");
    let outside = profile.time("TEEC_InvokeCommand", "total");
    ensure!(inside > outside / 2.0, "compute has {inside} of {outside} ns");
    Ok(())
}

fn exported(ran: &Ran) -> Result<()> {
    let linked = ran.folder.join("linked").join(DEMO);
    let elf = linked.to_str().context("a path that is no text")?;
    let file = ran.folder.join("out/gmon.out");
    let to = file.to_str().context("a path that is no text")?;
    teeperf(ran, &["export", "--to", "gmon", "--elf", elf, "-o", to], "many.teeperf")?;
    ensure!(fs::read(&file)?.starts_with(b"gmon"), "{} is no file of gprof", file.display());
    gprof::has(&linked, &file, &[("outer", 200_000), ("middle", 600_000), ("leaf", 3_000_000)])?;
    let arcs = [("outer", "middle", 600_000), ("middle", "leaf", 3_000_000)];
    gprof::has_arcs(&linked, &file, &arcs)
}
