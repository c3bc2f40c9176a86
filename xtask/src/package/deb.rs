//! The Debian package, as `[package.metadata.deb]` of the command's manifest describes it: made by cargo-deb, unpacked and
//! installed into folders of their own, and tried from there.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::build::Built;
use super::{Release, demonstrate, empty, names, tools};
use crate::commands::{run_quietly, works};
use crate::steps::Outcome;

/// What is in it at least.
const FILES: [&str; 9] = [
    "usr/bin/teeperf",
    "usr/bin/cargo-teeperf",
    "usr/share/man/man1/teeperf.1.gz",
    "usr/share/man/man1/teeperf-record.1.gz",
    "usr/share/man/man1/cargo-teeperf.1.gz",
    "usr/share/bash-completion/completions/teeperf",
    "usr/share/zsh/vendor-completions/_teeperf",
    "usr/share/fish/vendor_completions.d/teeperf.fish",
    "usr/share/doc/teeperf/copyright",
];

pub(super) fn make(release: &Release, built: &Built) -> Result<Outcome> {
    if !tools::is_there("deb") {
        return release.without("cargo-deb");
    }
    let mut deb = Command::new("cargo");
    deb.args([
        "deb",
        "--package",
        "teeperf",
        "--no-build",
        "--no-strip",
        "--no-dbgsym",
        "--locked",
        "--output",
    ]);
    run_quietly(built.prepared(deb.arg(&release.dist)))?;
    let name = names(&release.dist)?.into_iter().find(|name| name.ends_with(".deb"));
    let package = release.dist.join(name.context("cargo-deb has written no package")?);
    if !works("dpkg-deb", &["--version"]) {
        return Ok(Outcome::Skipped("it was made; without dpkg it cannot be tried".into()));
    }
    let unpacked = empty(release, "deb")?;
    run_quietly(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&unpacked))?;
    for file in FILES {
        ensure!(unpacked.join(file).is_file(), "the package has no {file}");
    }
    let depends = run_quietly(Command::new("dpkg-deb").arg("-f").arg(&package).arg("Depends"))?;
    ensure!(depends.contains("libc6"), "it depends on {:?}: not worked out", depends.trim());
    let scratch = empty(release, "deb-demo")?;
    demonstrate(&unpacked.join("usr/bin/teeperf"), &scratch)?;
    installed(release, &package)?;
    if works("lintian", &["--version"]) {
        // As root it warns of itself, which is no fault of the package.
        let mut lintian = Command::new("lintian");
        println!(
            "{}",
            run_quietly(lintian.args(["--allow-root", "--fail-on", "error"]).arg(&package))?.trim()
        );
    } else {
        println!("lintian is not installed: the package is not looked at by it");
    }
    Ok(Outcome::Passed)
}

/// Installs it into an empty system, where that can be done, and removes it again.
fn installed(release: &Release, package: &Path) -> Result<()> {
    // SAFETY: asks for a number and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        println!("only root can install it into a folder: that is left out");
        return Ok(());
    }
    let root: PathBuf = empty(release, "deb-root")?;
    std::fs::create_dir_all(root.join("var/lib/dpkg/updates"))?;
    std::fs::create_dir_all(root.join("var/lib/dpkg/info"))?;
    std::fs::write(root.join("var/lib/dpkg/status"), "")?;
    std::fs::write(root.join("var/lib/dpkg/available"), "")?;
    let dpkg = || {
        let mut dpkg = Command::new("dpkg");
        // What it depends on is this machine's.
        dpkg.arg(format!("--root={}", root.display())).arg("--force-depends").env("LC_ALL", "C");
        dpkg
    };
    run_quietly(dpkg().arg("--install").arg(package))?;
    let listed = run_quietly(dpkg().args(["--listfiles", "teeperf"]))?;
    ensure!(
        listed.lines().any(|line| line == "/usr/bin/teeperf"),
        "dpkg lists no command:\n{listed}"
    );
    let told = run_quietly(Command::new(root.join("usr/bin/teeperf")).arg("version"))?;
    ensure!(told.starts_with("teeperf "), "{told}");
    run_quietly(dpkg().args(["--purge", "teeperf"]))?;
    ensure!(
        !root.join("usr/bin/teeperf").exists(),
        "it was removed, and its command is there still"
    );
    Ok(())
}
