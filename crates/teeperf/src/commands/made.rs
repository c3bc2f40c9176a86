//! What the commands that make a recording of recordings have in common: where it goes, and what is said.

use super::live;
use crate::{recordings, shell};
use anyhow::{Result, bail, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use teeperf_record::Output;

/// Where the new recording goes.
#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct Arguments {
    /// The new recording; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite a file that is no recording
    #[arg(long)]
    force: bool,
}

impl Arguments {
    /// The output, which is none of what is read.
    pub(crate) fn output(&self, read: &[&Path]) -> Result<Output> {
        if self.is_stdout() {
            return Ok(Output::Stdout);
        }
        recordings::may_replace(
            &self.output,
            self.force,
            "recording",
            &teeperf_wire::packet::SYNC,
        )?;
        let is_read = read.iter().any(|path| {
            let both = [*path, &self.output].map(std::fs::canonicalize);
            matches!(both, [Ok(read), Ok(written)] if read == written)
        });
        ensure!(!is_read, "{} is read: name another with -o", self.output.display());
        if self.output.is_dir() {
            bail!("{} is a folder", self.output.display());
        }
        Ok(Output::File(self.output.clone()))
    }

    /// For messages.
    pub(crate) fn name(&self) -> String {
        self.output.display().to_string()
    }

    /// What came of it: what is told, and what may come next.
    pub(crate) fn tell(&self, made: &str, bytes: u64) {
        let mut line = format!("teeperf: {made}, {} in {}", live::bytes(bytes), self.name());
        if !self.is_stdout() {
            line += &format!("; next: teeperf report {}", shell::typed(&self.output));
        }
        eprintln!("{line}");
    }

    fn is_stdout(&self) -> bool {
        self.output == Path::new("-")
    }
}
