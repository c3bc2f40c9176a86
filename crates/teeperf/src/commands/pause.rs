//! `teeperf pause` and `teeperf resume`: from another terminal, while a recording runs.

use anyhow::{Result, bail};
use clap::Args;
use teeperf_record::control::{self, Request, Status};

/// Which recording.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf record --paused -- ./server    in one terminal
  teeperf resume                         in another, when it becomes interesting
  teeperf pause $(pidof server)          where several recordings run")]
pub(crate) struct Arguments {
    /// Process id of `teeperf record`, or of a program that it records [default: the only
    /// recording that runs]
    pid: Option<u32>,
}

pub(crate) fn run(arguments: &Arguments, request: &Request) -> Result<()> {
    ask(arguments.pid, request).map(drop)
}

/// Asks the recording that has this process id, or records that process; or the only one that runs. Its answer.
pub(super) fn ask(pid: Option<u32>, request: &Request) -> Result<Status> {
    let pid = match (pid, &control::recorders()[..]) {
        (Some(pid), _) => pid,
        (None, [only]) => *only,
        (None, []) => bail!("nothing is being recorded; start with `teeperf record -- PROGRAM`"),
        (None, several) => bail!("name one of the process ids that record: {several:?}"),
    };
    Ok(control::request(pid, request)?)
}
