//! `teeperf ctl`: asks a recording that runs for something, from another terminal.

use super::pause;
use anyhow::Result;
use clap::{Args, ValueEnum};
use teeperf_record::control::Request;

/// Asks a recording that runs to pause, to go on, or to write out what it has summed
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf record --probe tree -- ./server    in one terminal
  teeperf ctl $(pidof server) snapshot       in another: what it did so far can be read now")]
pub(crate) struct Arguments {
    /// Process id of `teeperf record`, or of a program that it records
    pid: u32,
    /// What it is to do
    #[arg(value_enum)]
    what: What,
}

/// What a recording can be asked for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// Record nothing until it is resumed
    Pause,
    /// Go on
    Resume,
    /// Write out what threads have summed in their trees since it was written last
    Snapshot,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let request = match arguments.what {
        What::Pause => Request::Pause,
        What::Resume => Request::Resume,
        What::Snapshot => Request::Snapshot,
    };
    pause::ask(Some(arguments.pid), request)
}
