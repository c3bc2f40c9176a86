//! The archive: the command with its documents, the same bytes whoever makes it of the same build.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::build::{Built, PROGRAMS};
use super::{Release, demonstrate, empty};
use crate::commands::run_quietly;

/// Files of the sources that come along, and folders.
const FILES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Makes it, unpacks it somewhere, and runs the demo from there.
pub(super) fn make(release: &Release, built: &Built) -> Result<()> {
    let name = built.name();
    let stage = empty(release, "stage")?;
    let folder = stage.join(&name);
    fs::create_dir_all(folder.join("docs"))?;
    for (program, name) in built.programs().iter().zip(PROGRAMS) {
        fs::copy(program, folder.join(name))?;
    }
    for file in FILES {
        fs::copy(built.sources.join(file), folder.join(file))?;
    }
    copy_all(&built.sources.join("docs"), &folder.join("docs"))?;
    for part in ["man", "completions"] {
        fs::create_dir_all(folder.join(part))?;
        copy_all(&built.folder().join(part), &folder.join(part))?;
    }
    let archive = release.dist.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=go+rX,go-w",
        "--format=gnu",
    ]);
    tar.arg(format!("--mtime=@{}", built.epoch)).args(["-I", "gzip -9n", "-cf"]).arg(&archive);
    run_quietly(tar.arg("-C").arg(&stage).arg(&name))?;

    let elsewhere = empty(release, "unpacked")?;
    run_quietly(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&elsewhere))?;
    let command = elsewhere.join(&name).join("teeperf");
    let told = run_quietly(Command::new(&command).arg("--version"))?;
    ensure!(told.trim() == format!("teeperf {}", built.version), "{told}");
    demonstrate(&command, &elsewhere)
}

/// Files of a folder; folders in it stay behind.
fn copy_all(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if path.is_file() {
            fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}
