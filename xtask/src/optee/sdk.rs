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
const PORT: [&str; 6] = ["is_outside", "pause", "counter", "name", "tree", "sums"];

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
        for library in ["wire", "tally"].map(|name| lab.path(&format!("libteeperf_{name}.rlib"))) {
            let name = library.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            if !source.contains("port") && library.is_file() && !source.starts_with("teeperf-wire")
            {
                let name = name.trim_start_matches("lib");
                command.arg("--extern").arg(format!("{name}={}", library.display()));
            }
        }
        command.args(more).arg("-o").arg(&output);
        limited::run(&command, LIMIT, &lab.log("sdk"))?;
        Ok(output)
    };
    // What the others use of them is in their own objects.
    let mut members = Vec::new();
    for name in ["wire", "tally"] {
        let source = format!("teeperf-{name}/src/lib.rs");
        let name = format!("--crate-name=teeperf_{name}");
        let output = |ending: &str| format!("{}{ending}", name.trim_start_matches("--crate-name="));
        compile(&source, &format!("lib{}", output(".rlib")), &[&name, "--crate-type=rlib"])?;
        members.push(compile(&source, &output(".o"), &[&name, "--crate-type=rlib", "--emit=obj"])?);
    }
    let object = ["--crate-type=staticlib", "--emit=obj", "-Clto=fat"];
    let runtime = ["--crate-name=teeperf_tee", r#"--cfg=feature="object""#];
    let runtime = [&object[..], &runtime].concat();
    members.push(compile("teeperf-tee/src/lib.rs", "teeperf_tee.o", &runtime)?);
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
