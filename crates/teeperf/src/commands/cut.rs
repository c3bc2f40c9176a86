//! `teeperf cut`: a window of a recording.

use super::progress::Progress;
use super::reading;
use super::{made, window};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use teeperf_edit::cut::{Cut, cut};

/// Makes a recording of a part of another: what was between two times, of some threads or processes
///
/// It reads as the whole does between these times: what is open where it begins stands in call paths, and counts no
/// calls; what passes at its borders is shared out between both sides. Parts that follow one another add up to
/// the whole.
#[derive(Args, Debug)]
#[command(after_help = "\
Times are from the recording's start on (1.5s, 200ms, 2m), shares of it (50%), or times of the clock on the wall in
UTC (2026-11-23T22:03:13.5Z).

Examples:
  teeperf cut program.teeperf --since 10s --until 12s -o slow.teeperf
  teeperf cut --since 90% -o end.teeperf          the last tenth of the newest recording here
  teeperf cut --process 4711 -o child.teeperf     one process")]
pub(crate) struct Arguments {
    /// The recording; - is standard input [default: the newest *.teeperf in this folder]
    recording: Option<PathBuf>,
    #[command(flatten)]
    window: window::Arguments,
    /// Only threads of this id
    #[arg(long, value_name = "TID")]
    thread: Vec<u32>,
    /// Only processes of this id
    #[arg(long, value_name = "PID")]
    process: Vec<u32>,
    #[command(flatten)]
    made: made::Arguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let path = arguments.made.recording(arguments.recording.as_deref())?;
    let recording = reading::open(&path)?.recording()?.0;
    let target = arguments.made.target(&[&path])?;
    let mut progress = Progress::of("cutting", &path);
    let wanted = Cut {
        threads: arguments.thread.clone(),
        processes: arguments.process.clone(),
        ..arguments.window.of(&path)?
    };
    let name = arguments.made.name();
    let cut = cut(recording, &wanted, target.output(), &name, &mut |bytes| progress.at(bytes))?;
    target.finish()?;
    drop(progress);
    for text in cut.warnings.iter().chain(&cut.notices) {
        note!("teeperf: {text}");
    }
    if cut.words == 0 && cut.sums == 0 {
        note!("teeperf: no thread that is wanted has called anything in this time, or returned");
    }
    let s = if cut.threads == 1 { "" } else { "s" };
    let sums = match cut.sums {
        0 => String::new(),
        sums => format!(" and {sums} packets of sums"),
    };
    let made = format!("{} words{sums} of {} thread{s}", cut.words, cut.threads);
    arguments.made.tell(&made, cut.bytes);
    Ok(())
}
