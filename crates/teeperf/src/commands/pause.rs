//! `teeperf pause` and `teeperf resume`: from another terminal, while a recording runs.

use anyhow::{Result, anyhow, bail};
use clap::Args;
use teeperf_record::control::{self, ControlError, Request, Status};

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
    let running = control::recorders();
    let pid = match (pid, &running[..]) {
        (Some(pid), _) => pid,
        (None, [only]) => *only,
        (None, []) => bail!("nothing is being recorded; next: teeperf record -- PROGRAM"),
        (None, several) => {
            bail!("several recordings run; next: name one by a number of\n{}", list(several))
        }
    };
    control::request(pid, request).map_err(|error| match (error, &running[..]) {
        (error @ ControlError::NoRecorder(_), []) => {
            anyhow!("{error}, and nothing else is; next: teeperf record -- PROGRAM")
        }
        (error @ ControlError::NoRecorder(_), running) => {
            anyhow!("{error}; next: leave the number out, or name one of\n{}", list(running))
        }
        (error, _) => error.into(),
    })
}

/// A line for each recording: process ids, programs, and where it goes.
fn list(recorders: &[u32]) -> String {
    let line = |&pid: &u32| {
        // One that ends just now has no answer.
        let status = control::request(pid, &Request::Status).unwrap_or_default();
        let values = |name: &str| -> Vec<String> {
            let lines = status.lines().filter_map(|line| line.split_once(": "));
            lines.filter(|(of, _)| *of == name).map(|(_, value)| value.to_owned()).collect()
        };
        let programs = values("program").join(", ");
        let into = values("output").join("");
        format!("  {pid} teeperf record, into {into}, of {programs}")
    };
    recorders.iter().map(line).collect::<Vec<_>>().join("\n")
}
