//! What trusted applications are built with to have hooks: `integrations/optee/sdk`, header and library
//! in one folder, laid out as the makefile of the SDK expects it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::lab::{Lab, emptied};
use crate::commands::root;
use crate::cross::{ARM64_LINUX, Toolchain};
use crate::limited;

const LIMIT: Duration = Duration::from_secs(120);
/// Platform functions of which the library has one each.
const PORT: [&str; 4] = ["is_outside", "pause", "counter", "name"];

/// Builds it anew: it takes a few seconds.
pub(super) fn build(lab: &Lab, toolchain: &Toolchain) -> Result<PathBuf> {
    let folder = lab.path("sdk");
    emptied(&folder)?;
    let libraries = folder.join("lib/aarch64");
    fs::create_dir_all(&libraries)?;
    fs::create_dir(folder.join("include"))?;
    for file in fs::read_dir(root().join("integrations/optee/sdk"))? {
        let file = file?;
        fs::copy(file.path(), folder.join(file.file_name()))?;
    }
    let header = root().join("crates/teeperf-tee/include/teeperf_tee.h");
    fs::copy(header, folder.join("include/teeperf_tee.h"))?;

    let compile = |source: &str, output: &str, more: &[&str]| -> Result<PathBuf> {
        let output = lab.path(output);
        let mut command = Command::new(toolchain.compiler());
        command.arg(root().join("crates").join(source)).arg("--edition=2024");
        command.args(["--target", ARM64_LINUX, "-Copt-level=3", "-Ccodegen-units=1"]);
        command.args(["-Cpanic=abort", "-Crelocation-model=pic", "--cap-lints=allow"]);
        command.args(["-Cforce-unwind-tables=no", "-Ctarget-feature=-outline-atomics"]);
        command.arg("--sysroot").arg(toolchain.sysroot_for(ARM64_LINUX)?);
        if source.starts_with("teeperf-tee/src") {
            let wire = lab.path("libteeperf_wire.rlib");
            command.arg("--extern").arg(format!("teeperf_wire={}", wire.display()));
        }
        command.args(more).arg("-o").arg(&output);
        limited::run(&command, LIMIT, &lab.log("sdk"))?;
        Ok(output)
    };
    let rlib = ["--crate-name=teeperf_wire", "--crate-type=rlib"];
    compile("teeperf-wire/src/lib.rs", "libteeperf_wire.rlib", &rlib)?;
    let object = ["--crate-type=staticlib", "--emit=obj", "-Clto=fat"];
    let runtime = ["--crate-name=teeperf_tee", r#"--cfg=feature="object""#];
    let runtime = [&object[..], &runtime].concat();
    let mut members = vec![compile("teeperf-tee/src/lib.rs", "teeperf_tee.o", &runtime)?];
    for part in PORT {
        let feature = format!(r#"--cfg=feature="{part}""#);
        let port = ["--crate-name=port", "--crate-type=lib", "--emit=obj", &feature];
        members.push(compile("teeperf-tee/port/port.rs", &format!("port_{part}.o"), &port)?);
    }
    let mut archive = Command::new("aarch64-linux-gnu-ar");
    archive.arg("crs").arg(libraries.join("libteeperf_tee.a")).args(&members);
    limited::run(&archive, LIMIT, &lab.log("sdk")).context("the library")?;
    Ok(folder)
}
