//! What the commands that make a recording of recordings have in common: where it goes, and what is said.

use super::{interrupt, live};
use crate::{recordings, shell};
use anyhow::Result;
use clap::Args;
use std::path::{Path, PathBuf};
use teeperf_edit::target::Target;

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
    /// The place, which is none of what is read. What is not finished is gone when the process ends.
    pub(crate) fn target(&self, read: &[&Path]) -> Result<Target> {
        target(&self.output, self.force, read, "recording", &teeperf_wire::packet::SYNC)
    }

    /// The newest recording here but for the one that is to be made, or the one that is named.
    pub(crate) fn recording(&self, named: Option<&Path>) -> Result<PathBuf> {
        recordings::named_or_newest_but(named, &self.output)
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
        note!("{line}");
    }

    fn is_stdout(&self) -> bool {
        self.output == Path::new("-")
    }
}

/// A place for what begins so, while this is read; nothing is left there of what a signal ends.
pub(crate) fn target(
    output: &Path,
    force: bool,
    read: &[&Path],
    what: &str,
    begins: &[u8],
) -> Result<Target> {
    if output != Path::new("-") {
        recordings::may_replace(output, force, what, begins)?;
    }
    interrupt::before_end(|| {
        let target = Target::open(output, read)?;
        let unfinished = target.unfinished().map(Path::to_owned);
        let remove = || _ = unfinished.map(std::fs::remove_file);
        Ok((target, remove))
    })
}
