//! `teeperf doctor`: what is ready and what is missing. Finding that out is `crate::doctor`'s.

use super::progress::{Progress, Steps};
use super::reading::{self, Wanted};
use super::terminal;
use crate::doctor::{self, Finding, Verdict};
use crate::recordings;
use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use teeperf_profile::info::Info;
use teeperf_view::style::{Paint, Style};

/// Tells what is ready and what is missing, with the next step: on this machine, in a program, a recording, a process
///
/// Without words it looks at this machine: compilers, each of which builds, records and reads back a program of three
/// functions; folders, limits, clock, settings. Of a program it tells whether it has hooks, of which version, and what keeps
/// the recorder from it; of a recording why there is nothing in it or why names are missing; of a process the same while it
/// runs. The exit status is 1 where something is missing without which nothing works.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf doctor                              this machine
  teeperf doctor --sgx                        can hosts of SGX enclaves be sampled here?
  teeperf doctor ./program                    has it hooks, and will they be heard?
  teeperf doctor program.teeperf              why are names missing?
  teeperf doctor $(pidof server)              why is nothing recorded of it?
  teeperf doctor --json | jq '.findings[] | select(.verdict != \"ready\")'")]
pub(crate) struct Arguments {
    /// A program, a recording, or the number of a process [default: this machine]
    #[arg(conflicts_with_all = ["recording", "pid"], value_hint = clap::ValueHint::AnyPath)]
    what: Option<OsString>,
    /// A recording
    #[arg(long, value_name = "FILE", conflicts_with = "pid")]
    recording: Option<PathBuf>,
    /// A process that runs
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// What this machine has for SGX enclaves, and for samples of them
    #[arg(long, conflicts_with_all = ["what", "recording", "pid"])]
    sgx: bool,
    /// JSON on one line
    #[arg(long)]
    json: bool,
}

/// What was looked at, and what was found.
#[derive(Serialize)]
struct Told {
    format: &'static str,
    version: u32,
    /// `machine`, `program`, `recording` or `process`.
    about: &'static str,
    subject: String,
    /// Whether nothing is missing.
    ready: bool,
    findings: Vec<Finding>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (about, subject, findings) = match (&arguments.what, &arguments.recording, arguments.pid) {
        (_, Some(path), _) => of_recording(path)?,
        (_, _, Some(pid)) => of_process(pid),
        (Some(what), ..) => of_what(what)?,
        (None, None, None) if arguments.sgx => ("machine", String::new(), doctor::sgx()),
        (None, None, None) => ("machine", String::new(), of_machine()),
    };
    let ready = findings.iter().all(|finding| finding.verdict != Verdict::Missing);
    let told = Told { format: "teeperf-doctor", version: 1, about, subject, ready, findings };
    match arguments.json {
        true => super::to_stdout(|out| teeperf_view::json::harmless::write(&told, out))?,
        false => super::to_stdout(|out| write(&told, &terminal::style(), out))?,
    }
    Ok(if ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn of_machine() -> Vec<Finding> {
    let mut steps = Steps;
    doctor::machine(&mut |what| steps.at(what))
}

type Found = (&'static str, String, Vec<Finding>);

/// Which of them is meant: a file counts before a number, and what a file is its first bytes say.
fn of_what(what: &OsStr) -> Result<Found> {
    let path = Path::new(what);
    let pid = what.to_str().and_then(|text| text.parse().ok());
    if is_recording(path) {
        return of_recording(path);
    }
    match pid {
        Some(pid) if !path.exists() => Ok(of_process(pid)),
        _ => Ok(("program", what.to_string_lossy().into_owned(), doctor::program(what))),
    }
}

fn is_recording(path: &Path) -> bool {
    let is_folder = path.is_dir() && teeperf_edit::rotate::is_recording(path);
    is_folder || recordings::is_plain(path) || recordings::is_archive(path)
}

fn of_process(pid: u32) -> Found {
    ("process", pid.to_string(), doctor::process(pid))
}

fn of_recording(path: &Path) -> Result<Found> {
    let path = recordings::named_or_newest(Some(path))?;
    if !path.is_file() && !path.is_dir() || path == Path::new("/dev/stdin") {
        bail!("{} is read twice: name a file", path.display());
    }
    let mut progress = Progress::of("reading", &path);
    let packets = reading::open(&path)?.recording()?.0;
    let info = Info::check(packets, &mut |bytes| progress.at(bytes))?;
    drop(progress);
    let source = reading::open(&path)?;
    let profile = reading::whole(source, &path, Wanted { by_place: true, ..Wanted::default() })?;
    Ok(("recording", path.display().to_string(), doctor::recording(&info, &profile)))
}

fn write(told: &Told, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let mut area = "";
    for finding in &told.findings {
        if finding.area != area {
            area = finding.area;
            writeln!(out, "{}", style.paint(Paint::Heading, area))?;
        }
        let (word, paint) = match finding.verdict {
            Verdict::Ready => ("ready", Paint::Better),
            Verdict::Note => ("note", Paint::Plain),
            Verdict::Warning => ("warning", Paint::Warning),
            Verdict::Missing => ("MISSING", Paint::Hot),
        };
        writeln!(
            out,
            "  {:<8} {}",
            style.paint(paint, word),
            teeperf_view::printable(&finding.text)
        )?;
        if let Some(next) = &finding.next {
            writeln!(out, "  {:<8} next: {}", "", teeperf_view::printable(next))?;
        }
    }
    let count = |verdict| told.findings.iter().filter(|finding| finding.verdict == verdict).count();
    let (missing, warnings) = (count(Verdict::Missing), count(Verdict::Warning));
    match (missing, warnings) {
        (0, 0) => writeln!(out, "\nall is ready"),
        (0, _) => writeln!(out, "\nnothing is missing; warnings: {warnings}"),
        _ => writeln!(out, "\nmissing: {missing}, warnings: {warnings}"),
    }
}
