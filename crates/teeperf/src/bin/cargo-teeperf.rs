//! `cargo teeperf`, which cargo looks for by this name: becomes `teeperf`, of the same folder, else of `PATH`, called so.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("teeperf"));
    let command = beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("teeperf"));
    let error =
        Command::new(&command).arg0("cargo-teeperf").args(std::env::args_os().skip(1)).exec();
    eprintln!(
        "cargo-teeperf: cannot run {}: {error}; it is installed along with teeperf",
        command.display()
    );
    ExitCode::FAILURE
}
