//! Whether calls of code that is compiled with `-pg` are counted as they were, on every processor that the library has
//! entries for: the program of `teeperf-tee`'s own test, under an emulator of the processor alone.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::checks::Checks;
use super::lab::{Lab, emptied};
use super::sdk;
use crate::commands::{root, run_quietly};
use crate::cross::{ARM64_LINUX, Toolchain};
use crate::limited;
use crate::packages::Unavailable;

/// A target of Rust's, a compiler of C, an emulator, and flags that make code of different kinds.
const TARGETS: [(&str, &str, &str, &[&str]); 3] = [
    (ARM64_LINUX, "aarch64-linux-gnu-gcc", "qemu-aarch64", &["-O2", "-O0"]),
    (
        "armv7a-none-eabihf",
        "arm-linux-gnueabihf-gcc",
        "qemu-arm",
        &["-O2 -marm", "-O2 -mthumb", "-O0 -mthumb"],
    ),
    ("riscv64gc-unknown-none-elf", "riscv64-linux-gnu-gcc", "qemu-riscv64", &["-O2", "-O0"]),
];
const LIMIT: Duration = Duration::from_secs(60);

/// Builds and runs it for each.
pub(super) fn check(lab: &Lab, checks: &mut Checks) {
    match Toolchain::open(&lab.path("rust")) {
        Ok(toolchain) => {
            for (target, compiler, emulator, flags) in TARGETS {
                let name = format!("calls counted on {target}");
                checks
                    .add(&name, target_counts(lab, &toolchain, target, compiler, emulator, flags));
            }
        }
        Err(error) => checks.add("calls counted on other processors", Err(error)),
    }
}

fn target_counts(
    lab: &Lab,
    toolchain: &Toolchain,
    target: &str,
    compiler: &str,
    emulator: &str,
    flags: &[&str],
) -> Result<()> {
    for tool in [compiler, emulator] {
        if run_quietly(Command::new(tool).arg("--version")).is_err() {
            return Err(Unavailable(format!("{tool} is not installed")).into());
        }
    }
    let folder = lab.path("entries").join(target);
    emptied(&folder)?;
    let library = sdk::library(lab, toolchain, target, &folder)?;
    for flags in flags {
        counts(lab, &folder, &library, compiler, emulator, flags)?;
    }
    Ok(())
}

fn counts(
    lab: &Lab,
    folder: &Path,
    library: &Path,
    compiler: &str,
    emulator: &str,
    flags: &str,
) -> Result<()> {
    let (tee, built) = (root().join("crates/teeperf-tee"), folder.join("counted"));
    let mut compile = Command::new(compiler);
    compile.args(["-pg", "-static", "-fno-toplevel-reorder", "-Wno-psabi"]).args(flags.split(' '));
    compile.args(["-Wl,--no-warn-execstack", "-I"]).arg(tee.join("include"));
    compile.arg(tee.join("tests/programs/counted.c")).arg(library).arg("-o").arg(&built);
    limited::run(&compile, LIMIT, &lab.log("entries"))?;
    let shown = run_quietly(Command::new(emulator).arg(&built))?;
    for line in shown.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let is_right = words.len() == 3 && words[1] == words[2];
        ensure!(is_right, "with {flags}: {line} in\n{shown}");
    }
    let lines = shown.lines().count();
    ensure!(lines == 14, "with {flags}: {lines} lines, not 14:\n{shown}");
    Ok(())
}
