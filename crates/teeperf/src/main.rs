//! The command. Reads what the user typed and calls the rooms that do the work: it has no
//! logic of its own beyond that. One file for each subcommand in [`commands`].

mod bundle;
mod calibration;
mod cli;
mod commands;
mod compiler;
mod completions;
mod config;
mod doctor;
mod help;
mod manual;
mod recordings;
mod rust;
mod sdk;
mod shell;

use compiler::Driver;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use teeperf_record::RecordError;
use teeperf_record::control::ControlError;

fn main() -> ExitCode {
    if let Err(error) = teeperf_record::file_limit_is_an_error() {
        eprintln!("teeperf: {error}; a limit of files' sizes will end it without a word");
    }
    let words = as_subcommand_of_cargo(std::env::args_os().collect());
    let rust = words.first().and_then(|name| rust::folder_of(name.as_ref()));
    let plan = words.first().and_then(|name| compiler::plan_of(name.as_ref()));
    let mut failure = ExitCode::FAILURE;
    let mut from_files = Vec::new();
    let outcome = match (rust, plan, as_compiler(&words)) {
        (Some(folder), _, _) => {
            rust::become_rustc(&folder, words[1..].to_vec()).map(ExitCode::from)
        }
        (None, Some(plan), _) => {
            compiler::become_assembler(&plan, words[1..].to_vec()).map(ExitCode::from)
        }
        (None, None, Some((driver, arguments))) => {
            compiler::become_compiler(driver, arguments).map(ExitCode::from)
        }
        (None, None, None) => {
            let typed = config::Typed::read(words);
            failure = typed.cli.command.failure();
            typed.with_files().and_then(|(cli, settings)| {
                from_files = settings;
                commands::run(cli)
            })
        }
    };
    match outcome {
        Ok(code) => code,
        Err(error) if is_unread(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("teeperf: {}", told(&error));
            for setting in &from_files {
                eprintln!("teeperf: {} was set in {}", setting.as_words(), setting.place());
            }
            failure
        }
    }
}

/// `cargo-teeperf teeperf build`, as cargo calls it, is `teeperf cargo build`.
fn as_subcommand_of_cargo(words: Vec<OsString>) -> Vec<OsString> {
    let name = words.first().and_then(|name| std::path::Path::new(name).file_name());
    if name != Some(OsStr::new("cargo-teeperf")) {
        return words;
    }
    let is_said_again = words.get(1).is_some_and(|word| word == "teeperf");
    let rest = words.into_iter().skip(1 + usize::from(is_said_again));
    ["teeperf".into(), "cargo".into()].into_iter().chain(rest).collect()
}

/// Whether this call stands in for a compiler, and with which words for it. Looked at before
/// anything else, because every word behind it is the compiler's, `--help` too.
fn as_compiler(words: &[OsString]) -> Option<(Driver, Vec<OsString>)> {
    let name = std::path::Path::new(words.first()?).file_name();
    match name.and_then(OsStr::to_str) {
        Some("teeperf-cc") => return Some((Driver::C, words[1..].to_vec())),
        Some("teeperf-c++") => return Some((Driver::Cxx, words[1..].to_vec())),
        _ => {}
    }
    let driver = match words.get(1)?.to_str() {
        Some("cc") => Driver::C,
        Some("c++") => Driver::Cxx,
        _ => return None,
    };
    let rest = &words[2..];
    (rest.first().and_then(|word| word.to_str()) != Some("--teeperf-help"))
        .then(|| (driver, rest.to_vec()))
}

/// An error and its causes, but for those that it names itself.
fn told(error: &anyhow::Error) -> String {
    error.chain().skip(1).fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// Whoever read our output has seen enough: not worth a word. Where a recording does not begin, or a
/// recorder does not answer, nothing has been done.
fn is_unread(error: &anyhow::Error) -> bool {
    let is_undone = error.is::<RecordError>() || error.is::<ControlError>();
    !is_undone && commands::is_broken_pipe(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn only_whoever_reads_our_output_may_stop_doing_so() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_unread(&anyhow::Error::from(broken()).context("while writing")));
        assert!(!is_unread(&io::Error::from(io::ErrorKind::StorageFull).into()));
        assert!(!is_unread(&RecordError::System(broken()).into()));
        assert!(!is_unread(&ControlError::NoAnswer(broken()).into()));
    }
}
