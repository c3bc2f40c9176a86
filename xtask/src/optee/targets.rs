//! Whether the words that cross between a traced program and the recorder compile for every processor whose
//! secure world may have hooks one day, with an operating system or without.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::lab::Lab;
use crate::checks::Checks;
use crate::commands::root;
use crate::cross::{ARM64_LINUX, Toolchain};
use crate::limited;

const TARGETS: [&str; 4] =
    ["x86_64-unknown-linux-gnu", ARM64_LINUX, "armv7a-none-eabi", "riscv64gc-unknown-none-elf"];
const LIMIT: Duration = Duration::from_secs(60);

/// Compiles `teeperf-wire` for each.
pub(super) fn check(lab: &Lab, checks: &mut Checks) {
    match Toolchain::open(&lab.path("rust")) {
        Ok(toolchain) => {
            for target in TARGETS {
                checks.add(&format!("wire for {target}"), compile(lab, &toolchain, target));
            }
        }
        Err(error) => checks.add("wire for other targets", Err(error)),
    }
}

fn compile(lab: &Lab, toolchain: &Toolchain, target: &str) -> Result<()> {
    let sysroot = toolchain.sysroot_for(target)?;
    let mut command = Command::new(toolchain.compiler());
    command.arg(root().join("crates/teeperf-wire/src/lib.rs"));
    command.args(["--crate-name=teeperf_wire", "--crate-type=rlib", "--edition=2024"]);
    command.args(["--target", target, "-Cpanic=abort", "-Copt-level=1", "--sysroot"]).arg(sysroot);
    command.arg("-o").arg(lab.path(&format!("libteeperf_wire-{target}.rlib")));
    limited::run(&command, LIMIT, &lab.log(&format!("wire-{target}")))
}
