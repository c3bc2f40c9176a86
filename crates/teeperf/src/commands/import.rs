//! `teeperf import`: pieces that code without a system has handed over, as a recording.

use super::made;
use crate::{recordings, shell};
use anyhow::{Context, Result};
use clap::Args;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use teeperf_record::Search;
use teeperf_record::import::{File, Import, ImportError, import};

/// Makes a recording of what code without shared memory has summed, and handed over in pieces
///
/// Reads what teeperf_take() has written: pieces one behind the other, or lines of a console that
/// teeperf_take_line() has made, among whatever else is printed there. What is damaged is said, and left out; the
/// rest is kept, and the exit status is 1.
///
/// Files come in the order in which they were written. Pieces of an image's next run begin with number 0 again,
/// and are other threads.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf import taken.bin -o enclave.teeperf              what an enclave's call has returned
  teeperf import console.log --elf image.elf --hz 62500000    lines of a serial console, with names and times
  cat /dev/ttyUSB0 | teeperf import - -o board.teeperf     until Ctrl-D")]
pub(crate) struct Arguments {
    /// Files with pieces, or with lines that have some; - is standard input
    #[arg(required = true, value_name = "PIECES")]
    pieces: Vec<PathBuf>,
    /// The recording; - is standard output [default: the first file's name with .teeperf, here]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite a file that is no recording
    #[arg(long)]
    force: bool,
    /// A file with the symbols of an image
    #[arg(long, value_name = "FILE")]
    elf: Vec<PathBuf>,
    /// How much the image's clock counts in a second, where pieces do not say so; else there are calls without
    /// times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    hz: Option<u64>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let output = output(arguments);
    let read_from: Vec<&Path> = arguments.pieces.iter().map(PathBuf::as_path).collect();
    let sync = &teeperf_wire::packet::SYNC;
    let target = made::target(&output, arguments.force, &read_from, "recording", sync)?;
    let is_stdout = output == Path::new("-");
    let mut search = Search::default();
    search.images.clone_from(&arguments.elf);
    let imported = import(Import {
        files: arguments.pieces.iter().map(|path| read(path)).collect::<Result<_>>()?,
        hz: arguments.hz,
        search,
        writer: format!("teeperf {}", env!("CARGO_PKG_VERSION")),
        output: target.output(),
    });
    let imported = match imported {
        Err(ImportError::Output(error)) => {
            return Err(error).with_context(|| format!("cannot write {}", output.display()));
        }
        imported => imported?,
    };
    target.finish()?;
    for text in imported.damage.iter().chain(&imported.notices) {
        eprintln!("teeperf: {text}");
    }
    let count =
        |number: u64, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let mut line = format!(
        "teeperf: {} of {} in {}",
        count(imported.calls, "call"),
        count(imported.threads, "thread"),
        count(imported.pieces, "piece"),
    );
    if !is_stdout {
        line += &format!("; next: teeperf report {}", shell::typed(&output));
    }
    eprintln!("{line}");
    Ok(if imported.damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where the recording goes.
fn output(arguments: &Arguments) -> PathBuf {
    let usual = || match arguments.pieces.iter().find(|path| *path != Path::new("-")) {
        Some(path) => recordings::name_for(path.as_os_str()),
        None => recordings::name_for("pieces".as_ref()),
    };
    arguments.output.clone().unwrap_or_else(usual)
}

fn read(path: &Path) -> Result<File> {
    let mut bytes = Vec::new();
    let name = if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes).context("standard input")?;
        "standard input".into()
    } else {
        bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        path.display().to_string()
    };
    Ok(File { name, bytes })
}
