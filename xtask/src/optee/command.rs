//! `teeperf` for 64-bit Arm under Linux: the command as it would run beside OP-TEE. Built without
//! optimisation, but for what takes most of its time: that takes a third of the time.
//! Cargo sees what has changed.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::lab::Lab;
use crate::commands::cargo;
use crate::cross::{ARM64_LINUX, Toolchain};
use crate::limited;

/// From nothing it takes three minutes.
const LIMIT: Duration = Duration::from_secs(900);
const COMPILER: &str = "aarch64-linux-gnu-gcc";
/// Packages that record, compress and read the command line.
const OPTIMISED: [(&str, u8); 5] =
    [("zstd-sys", 2), ("memchr", 1), ("teeperf-wire", 1), ("object", 1), ("clap_builder", 1)];

/// Builds it.
pub(super) fn build(lab: &Lab, toolchain: &Toolchain) -> Result<PathBuf> {
    let out = lab.path("command");
    let mut build = cargo();
    build.args(["build", "-j2", "--locked", "--release", "-p", "teeperf"]);
    build.args(["--target", ARM64_LINUX, "--target-dir"]).arg(&out);
    for (name, value) in [
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER),
        ("CC_aarch64_unknown_linux_gnu", COMPILER),
        ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
        ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
        ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
        ("CARGO_PROFILE_RELEASE_STRIP", "symbols"),
    ] {
        build.env(name, value);
    }
    for (package, level) in OPTIMISED {
        build.arg("--config").arg(format!("profile.release.package.{package}.opt-level={level}"));
    }
    toolchain.set_for(&mut build, ARM64_LINUX)?;
    limited::run(&build, LIMIT, &lab.log("command"))?;
    Ok(out.join(ARM64_LINUX).join("release/teeperf"))
}
