//! OP-TEE from Debian's newest source, as Debian does not package it: with gprof and ftrace, and a kit for
//! 32-bit applications too. It takes minutes, so it is built only when asked for.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::fetch::Kit;
use super::firmware::{Firmware, flash};
use super::lab::Lab;
use crate::limited;
use crate::packages::Packages;
use crate::stamp::Stamp;
use crate::tools;

const SOURCE: &str = "optee-os";
const LIMIT: Duration = Duration::from_secs(1200);
/// What its release and Debian's build differ in. With `CFG_TEE_CORE_DEBUG` an application that panics while
/// its calls are counted stops the whole machine.
const OPTIONS: [&str; 8] = [
    "PLATFORM=vexpress-qemu_armv8a",
    "CFG_ARM64_core=y",
    "CFG_ARM_GICV3=y",
    "CFG_TEE_CORE_LOG_LEVEL=2",
    "CFG_TEE_CORE_DEBUG=n",
    "CFG_TA_GPROF_SUPPORT=y",
    "CFG_ULIBS_MCOUNT=y",
    "CFG_FTRACE_SUPPORT=y",
];

/// Fetches and builds it.
pub(super) fn build(lab: &Lab, kit: &Kit) -> Result<Firmware> {
    tools::install(&["gcc-arm-linux-gnueabihf", "libc6-dev-armhf-cross"])?;
    let packages = Packages::open(lab.path("source-packages"), "arm64", &["deb-src sid"]);
    let source = packages.source(SOURCE, "optee-os/sid")?;
    let out = lab.path("op-tee");
    let stamp = Stamp::of(&out).word(&packages.version(SOURCE)?).word(&OPTIONS.join(" "));
    if !stamp.is_current() {
        compile(lab, kit, &source, &out)?;
        stamp.keep()?;
    }
    Ok(Firmware {
        name: "from-source",
        flash: flash(lab, kit, "from-source", &out.join("core"))?,
        kit: out.join("export-ta_arm64"),
        kit_32: Some(out.join("export-ta_arm32")),
        has_gprof: true,
        has_tests: false,
        has_timer: true,
    })
}

fn compile(lab: &Lab, kit: &Kit, source: &Path, out: &Path) -> Result<()> {
    // The packaged tests are signed with the packaged key, which is another than the newest source has.
    let key = lab.path("default_ta.pem");
    let packaged = kit.development_kit().join("keys/default_ta.pem");
    fs::copy(&packaged, &key).with_context(|| packaged.display().to_string())?;
    let mut make = Command::new("make");
    make.arg("-C").arg(source).arg("-j2").arg(format!("O={}", out.display())).args(OPTIONS);
    make.arg("CFG_USER_TA_TARGETS=ta_arm64 ta_arm32");
    make.arg(format!("TA_SIGN_KEY={}", key.display())).arg("PYTHON3=/usr/bin/python3");
    make.args(["CROSS_COMPILE64=aarch64-linux-gnu-", "CROSS_COMPILE32=arm-linux-gnueabihf-"]);
    make.args(["CROSS_COMPILE=aarch64-linux-gnu-", "all"]);
    limited::run(&make, LIMIT, &lab.log("op-tee"))
}
