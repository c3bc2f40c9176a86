//! Checksums of all that is made, as sha256sum(1) writes and reads them.

use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};

use super::{Release, names};
use crate::commands::run_quietly;

const NAME: &str = "SHA256SUMS";

pub(super) fn make(release: &Release) -> Result<()> {
    let files = names(&release.dist)?;
    ensure!(!files.is_empty(), "there is nothing to sum");
    let mut sum = Command::new("sha256sum");
    let sums = run_quietly(sum.args(&files).current_dir(&release.dist))?;
    fs::write(release.dist.join(NAME), sums)?;
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--strict", NAME]).current_dir(&release.dist);
    let told = run_quietly(&mut check)?;
    ensure!(told.lines().count() == files.len(), "{told}");
    Ok(())
}
