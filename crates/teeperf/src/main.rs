//! The command. Reads what the user typed and calls the rooms that do the work: it has no
//! logic of its own beyond that. One file for each subcommand in [`commands`].

/// Writes a line to standard error, if anybody reads that: it may be closed, or a full disk's.
macro_rules! note {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod bundle;
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
        note!("teeperf: {error}; a limit of files' sizes will end it without a word");
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
            // A name in it may be of a recording that anybody has made.
            note!("teeperf: {}", teeperf_view::printable_lines(&told(&error)));
            for setting in &from_files {
                note!("teeperf: {} was set in {}", setting.as_words(), setting.place());
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
    let Some(driver) = driver_of(words.get(1)?) else { return as_linker(&words[1..]) };
    let rest = &words[2..];
    (rest.first().and_then(|word| word.to_str()) != Some("--teeperf-help"))
        .then(|| (driver, rest.to_vec()))
}

/// The compiler that a word behind this command's name stands for.
fn driver_of(word: &OsStr) -> Option<Driver> {
    match word.to_str()? {
        "cc" => Some(Driver::C),
        "c++" => Some(Driver::Cxx),
        _ => None,
    }
}

/// Meson has Rust's compiler link by the C compiler: of `CC="teeperf cc"` it makes `-C linker=teeperf -C link-arg=cc`, so the
/// second word stands somewhere behind rustc's own. These begin with an option of a compiler's, an object, or a file of words.
fn as_linker(words: &[OsString]) -> Option<(Driver, Vec<OsString>)> {
    let first = words.first()?.as_encoded_bytes();
    let is_of_rustc = [&b"-m"[..], b"-Wl,", b"@"].iter().any(|start| first.starts_with(start))
        || first.ends_with(b".o");
    if !is_of_rustc {
        return None;
    }
    let mut words = compiler::opened(words.to_vec(), |word| driver_of(word).is_some());
    let at = words.iter().position(|word| driver_of(word).is_some())?;
    let driver = driver_of(&words.remove(at))?;
    Some((driver, words))
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
    fn rustc_puts_the_second_word_of_its_linker_behind_its_own() {
        let linker = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let (driver, words) = as_compiler(&words)?;
            Some((driver, words.join(OsStr::new(" ")).into_string().unwrap()))
        };
        let c = |words: &str| Some((Driver::C, words.to_owned()));
        assert_eq!(linker("teeperf -m64 a.o -o a cc -pie"), c("-m64 a.o -o a -pie"));
        assert_eq!(linker("teeperf /t/a.o -o a cc --teeperf-no-hooks").unwrap().0, Driver::C);
        assert_eq!(linker("teeperf -m64 a.o c++").unwrap().0, Driver::Cxx);
        assert_eq!(linker("teeperf cc -c cc"), c("-c cc"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("words");
        std::fs::write(&file, "-m64\na\\ b.o\ncc\n").unwrap();
        assert_eq!(linker(&format!("teeperf @{}", file.display())), c("-m64 a b.o"));
        for line in ["teeperf -m64 a.o", "teeperf report cc", "teeperf --version cc", "teeperf"] {
            assert_eq!(linker(line), None, "{line}");
        }
    }

    #[test]
    fn only_whoever_reads_our_output_may_stop_doing_so() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_unread(&anyhow::Error::from(broken()).context("while writing")));
        assert!(!is_unread(&io::Error::from(io::ErrorKind::StorageFull).into()));
        assert!(!is_unread(&RecordError::System(broken()).into()));
        assert!(!is_unread(&ControlError::NoAnswer(broken()).into()));
    }
}
