//! OP-TEE's own way to count calls, where OP-TEE was built with it: what gprof makes of the file that a
//! trusted application leaves in the normal world. Its counts are a yardstick for others'.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::{Group, Ran};
use crate::checks::Checks;
use crate::commands::run_quietly;

pub(super) const GROUP: Group = Group {
    name: "gprof",
    script: "set -e\nbin/optee-demo calls 1000\ncp /tmp/gmon-* out/\n",
    prepare: |_, _| Ok(()),
    judge,
};

/// By how much OP-TEE tells addresses too high: it adds the size of what its linker script had before the code
/// once, and has behind it now (`adjust_pc` in 4.10's `libutee/arch/arm/gprof/gprof.c`).
const SHIFT: &str = "0x20";
/// The demo, as files are named after it.
const DEMO: &str = "80391883-0ed0-447a-a4d2-13769a2c6c84";

fn judge(ran: &Ran, checks: &mut Checks) {
    checks.add("gprof counts the demo's calls", counted(ran));
}

fn counted(ran: &Ran) -> Result<()> {
    ran.succeeded()?;
    let linked = ran.folder.join("linked").join(format!("{DEMO}.elf"));
    let shifted = linked.with_extension("shifted.elf");
    let mut shift = Command::new("aarch64-linux-gnu-objcopy");
    run_quietly(shift.args(["--change-addresses", SHIFT]).arg(&linked).arg(&shifted))?;
    has(
        &shifted,
        &ran.folder.join("out").join(format!("gmon-{DEMO}.out")),
        &[("outer", 1000), ("middle", 3000), ("leaf", 15_000)],
    )
}

/// Whether gprof finds these calls in a file.
pub(super) fn has(program: &Path, file: &Path, expected: &[(&str, u64)]) -> Result<()> {
    let mut gprof = Command::new("aarch64-linux-gnu-gprof");
    let shown = run_quietly(gprof.args(["-b", "-p"]).arg(program).arg(file))?;
    let counts = counts(&shown);
    for &(function, calls) in expected {
        let found = counts.get(function).copied();
        ensure!(found == Some(calls), "{function}: {found:?} calls, not {calls}:\n{shown}");
    }
    Ok(())
}

/// Calls of each function of a flat profile: behind three columns of times.
fn counts(shown: &str) -> BTreeMap<&str, u64> {
    let rows = shown.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some((*words.last()?, words.get(3)?.parse().ok()?))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_stand_behind_times() {
        let shown = "  %   cumulative   self\n time   seconds   seconds    calls  Ts/call  name\n\
                     \x20 0.00      0.00     0.00    15000     0.00     0.00  leaf\n";
        assert_eq!(counts(shown), BTreeMap::from([("leaf", 15_000)]));
    }
}
