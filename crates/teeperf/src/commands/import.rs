//! `teeperf import`: pieces that code without a system has handed over, as a recording.

use super::made;
use super::progress::Progress;
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
    let reading = Progress::of_several("reading", &read_from);
    let files = read_all(&arguments.pieces, reading)?;
    let all = files.iter().map(|file| file.bytes.len() as u64).sum();
    let wanted = Import {
        files,
        hz: arguments.hz,
        search,
        writer: format!("teeperf {}", env!("CARGO_PKG_VERSION")),
        output: target.output(),
    };
    let mut importing = Progress::of_bytes("importing", all);
    let imported = import(wanted, &mut |bytes| importing.at(bytes));
    drop(importing);
    let imported = match imported {
        Err(ImportError::Output(error)) => {
            return Err(error).with_context(|| format!("cannot write {}", output.display()));
        }
        imported => imported?,
    };
    target.finish()?;
    for text in imported.damage.iter().chain(&imported.notices) {
        note!("teeperf: {text}");
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
    note!("{line}");
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

/// All that is in the files, one by one.
fn read_all(paths: &[PathBuf], mut progress: Progress) -> Result<Vec<File>> {
    let mut before = 0;
    let mut read = |path: &PathBuf| {
        let file = read(path, &mut |bytes| progress.at(before + bytes))?;
        before += file.bytes.len() as u64;
        Ok(file)
    };
    paths.iter().map(&mut read).collect()
}

fn read(path: &Path, progress: &mut dyn FnMut(u64)) -> Result<File> {
    let name = match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let bytes = match path == Path::new("-") {
        true => bytes(&mut std::io::stdin().lock(), progress),
        false => std::fs::File::open(path).and_then(|mut file| bytes(&mut file, progress)),
    };
    Ok(File { bytes: bytes.with_context(|| name.clone())?, name })
}

/// To its end, as it comes: who writes may take their time.
fn bytes(from: &mut dyn Read, progress: &mut dyn FnMut(u64)) -> std::io::Result<Vec<u8>> {
    let (mut bytes, mut some) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match from.read(&mut some) {
            Ok(0) => return Ok(bytes),
            Ok(read) => bytes.extend_from_slice(&some[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        progress(bytes.len() as u64);
    }
}
