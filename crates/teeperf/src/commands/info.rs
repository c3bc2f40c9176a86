//! `teeperf info`: what is in a recording, without replaying it.

use super::progress::Progress;
use super::reading;
use crate::recordings;
use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;
use teeperf_profile::info::Info;
use teeperf_view::info;

/// Tells what is in a recording, without replaying it
///
/// The run, its processes and threads, packets, bytes, what was lost, and what is damaged. Reads heads of packets
/// alone, which takes a moment for gigabytes; damage within packets is seen with --check, whose exit status is 1 then.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf info                                the newest recording in this folder
  teeperf info --check program.teeperf        reads all of it, and says what is damaged
  teeperf info --json program.teeperf | jq '.threads[].tid'")]
pub(crate) struct Arguments {
    /// The recording; - is standard input [default: the newest *.teeperf in this folder]
    recording: Option<PathBuf>,
    /// JSON on one line. Times are nanoseconds
    #[arg(long)]
    json: bool,
    /// Read all of it, and check each packet; the exit status is 1 where something is damaged
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let path = recordings::named_or_newest(arguments.recording.as_deref())?;
    let recording = reading::open(&path)?.recording()?.0;
    let mut progress = Progress::of("reading", &path);
    let found = match recordings::is_plain(&path) && !arguments.check {
        true => Info::skim(&path, &mut |bytes| progress.at(bytes))?,
        false => Info::check(recording, &mut |bytes| progress.at(bytes))?,
    };
    drop(progress);
    super::to_stdout(|out| {
        if arguments.json { info::json(&found, out) } else { info::text(&found, out) }
    })?;
    if arguments.check && !found.damage.is_empty() {
        bail!("{} is damaged; teeperf repair keeps what is right in it", path.display());
    }
    Ok(())
}
