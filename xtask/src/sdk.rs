//! What code without a system is built with, installed as a user would: by `teeperf install-sdk`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::commands::{self, cargo, run_quietly};
use crate::cross::Toolchain;
use crate::limited;

/// A library takes some seconds.
const LIMIT: Duration = Duration::from_secs(180);

/// The command, built.
pub(crate) fn teeperf() -> Result<PathBuf> {
    run_quietly(cargo().args(["build", "-j2", "-q", "-p", "teeperf"]))?;
    Ok(commands::target()?.join("debug/teeperf"))
}

/// Installs into a folder: for each target with a toolchain, or without one with the compiler in `PATH`. `options`
/// are those of the command.
pub(crate) fn install(
    folder: &Path,
    targets: &[(&str, Option<&Toolchain>)],
    options: &[&str],
    log: &Path,
) -> Result<()> {
    let teeperf = teeperf()?;
    for (target, toolchain) in targets {
        let mut command = Command::new(&teeperf);
        command.arg("install-sdk").arg(folder).args(["--target", target]).args(options);
        if let Some(toolchain) = toolchain {
            command.env("RUSTC", toolchain.compiler());
            command.arg("--sysroot").arg(toolchain.sysroot_for(target)?);
        }
        limited::run(&command, LIMIT, log)?;
    }
    Ok(())
}
