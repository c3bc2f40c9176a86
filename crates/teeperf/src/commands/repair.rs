//! `teeperf repair`: a damaged recording made whole.

use super::made;
use super::progress::Progress;
use super::reading;
use crate::recordings;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use teeperf_edit::repair::repair;

/// Makes a whole recording of a damaged or cut-off one
///
/// Keeps each packet that is right, and says what was left out. The new recording says so too: what is missing stays
/// known. The exit status is 0 when there is a recording that is whole, 1 when there is nothing to make one of.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf repair program.teeperf -o whole.teeperf
  teeperf info --check program.teeperf            what is damaged, without repair")]
pub(crate) struct Arguments {
    /// The recording; - is standard input
    recording: PathBuf,
    #[command(flatten)]
    made: made::Arguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let path = recordings::named_or_newest(Some(&arguments.recording))?;
    let recording = reading::open(&path)?.recording()?.0;
    let target = arguments.made.target(&[&path])?;
    let mut progress = Progress::of("repairing", &path);
    let name = arguments.made.name();
    let repaired = repair(recording, target.output(), &name, &mut |bytes| progress.at(bytes))?;
    target.finish()?;
    drop(progress);
    for text in &repaired.mended {
        note!("teeperf: {text}");
    }
    let what = if repaired.mended.is_empty() { "nothing was wrong; " } else { "" };
    arguments.made.tell(&format!("{what}{} packets kept", repaired.packets), repaired.bytes);
    Ok(())
}
