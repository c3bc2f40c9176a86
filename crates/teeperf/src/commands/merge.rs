//! `teeperf merge`: several recordings as one.

use super::made;
use super::progress::Progress;
use super::reading;
use crate::recordings;
use anyhow::{Result, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use teeperf_edit::merge::{Input, merge};
use teeperf_edit::target::is_part_of;

/// Makes one recording of several: runs of a program, processes recorded apart, several machines
///
/// Times are those of the first: recordings of one machine have one clock, others are put where the clocks on the wall
/// say. Clocks of different kinds or rates are refused.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf merge first.teeperf second.teeperf -o both.teeperf
  teeperf merge client.teeperf server.teeperf -o - | teeperf report -")]
pub(crate) struct Arguments {
    /// The recordings
    #[arg(required = true, num_args = 1.., value_name = "RECORDING")]
    recordings: Vec<PathBuf>,
    #[command(flatten)]
    made: made::Arguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let paths: Vec<&Path> = arguments.recordings.iter().map(PathBuf::as_path).collect();
    for (at, path) in paths.iter().enumerate() {
        let is_same = |other: &&Path| *other == *path || is_part_of(path, other);
        ensure!(!paths[..at].iter().any(is_same), "{} is named twice", path.display());
    }
    let (mut inputs, mut read) = (Vec::new(), Vec::new());
    for path in &paths {
        let path = recordings::named_or_newest(Some(path))?;
        let (recording, name) = reading::open(&path)?.recording()?;
        inputs.push(Input { recording, name });
        read.push(path);
    }
    let read: Vec<&Path> = read.iter().map(PathBuf::as_path).collect();
    let target = arguments.made.target(&read)?;
    let count = inputs.len();
    let mut progress = Progress::of_several("merging", &read);
    let name = arguments.made.name();
    let merged = merge(inputs, target.output(), &name, &mut |bytes| progress.at(bytes))?;
    target.finish()?;
    drop(progress);
    for text in merged.warnings.iter().chain(&merged.notices) {
        note!("teeperf: {text}");
    }
    let made = format!("{} processes of {count} recordings", merged.processes);
    arguments.made.tell(&made, merged.bytes);
    Ok(())
}
