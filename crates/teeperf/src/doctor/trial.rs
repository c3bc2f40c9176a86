//! A program of three functions, built, recorded and read back: whether hooks really get in, and out again.

use crate::config::files;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

const SOURCE: &str = "\
volatile int teeperf_sum;
__attribute__((noinline)) void third(int n) { teeperf_sum += n; }
__attribute__((noinline)) void second(int n) { for (int i = 0; i < 3; i++) third(n); }
int main(void) { for (int i = 0; i < 5; i++) second(i); return 0; }
";
/// Its functions, and how often each is called.
const CALLS: [(&str, u64); 3] = [("main", 1), ("second", 5), ("third", 15)];

/// What did not work, as its own words say, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) text: String,
    pub(super) next: String,
}

impl Failure {
    fn new(text: impl Into<String>, next: impl Into<String>) -> Self {
        Self { text: text.into(), next: next.into() }
    }
}

/// Tries the wrapper in place of a compiler, `cc` or `c++`.
pub(super) fn run(wrapper: &str, compiler: &OsStr) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|error| {
        Failure::new(
            format!("there is no folder for a trial: {error}"),
            "set TMPDIR to a folder that you can write",
        )
    })?;
    let source = if wrapper == "cc" { "three.c" } else { "three.cc" };
    let written = std::fs::write(folder.path().join(source), SOURCE);
    written.map_err(|error| {
        Failure::new(format!("a trial cannot be written: {error}"), "make room where TMPDIR is")
    })?;
    let mut word = std::ffi::OsString::from("--teeperf-compiler=");
    word.push(compiler);
    let shown = compiler.to_string_lossy();
    let words = [
        wrapper.as_ref(),
        &*word,
        "-O1".as_ref(),
        source.as_ref(),
        "-o".as_ref(),
        "three".as_ref(),
    ];
    step(folder.path(), &words).map_err(|said| {
        Failure::new(
            format!("{shown} builds nothing: {said}"),
            format!("see that `{shown}` alone compiles and links a program, with the C library's headers"),
        )
    })?;
    let record = ["record", "-q", "-o", "three.teeperf", "--", "./three"].map(OsStr::new);
    step(folder.path(), &record).map_err(|said| {
        Failure::new(
            format!("what {shown} built cannot be recorded: {said}"),
            "see what else is missing here; a strict seccomp filter, as of some containers, keeps memory from being shared",
        )
    })?;
    let report = ["report", "--json", "three.teeperf"].map(OsStr::new);
    let read = step(folder.path(), &report).map_err(|said| {
        Failure::new(
            format!("what {shown} built was recorded, and cannot be read: {said}"),
            "report this, with `teeperf version`",
        )
    })?;
    let counted = counted(&read.stdout);
    if counted != CALLS.map(|(_, calls)| Some(calls)) {
        let pairs = CALLS.iter().zip(counted).map(|((name, calls), counted)| match counted {
            Some(counted) => format!("{counted} calls of {name} for {calls}"),
            None => format!("none of {name} for {calls}"),
        });
        let pairs = pairs.collect::<Vec<_>>().join(", ");
        return Err(Failure::new(
            format!("what {shown} built does not count right: {pairs}"),
            "report this, with `teeperf version` and the compiler's version",
        ));
    }
    Ok(())
}

/// How often each function was called, by the report's JSON.
fn counted(report: &[u8]) -> [Option<u64>; 3] {
    let report: Value = serde_json::from_slice(report).unwrap_or_default();
    let functions = report["functions"].as_array().map(Vec::as_slice).unwrap_or_default();
    CALLS.map(|(wanted, _)| {
        let is_it = |function: &&Value| {
            // C++ has parameters behind the name.
            let name = function["name"].as_str().unwrap_or_default();
            name.split('(').next() == Some(wanted)
        };
        functions.iter().find(is_it)?["calls"].as_u64()
    })
}

/// Runs this command with other words; otherwise the first line of what it said.
fn step(folder: &Path, words: &[&OsStr]) -> Result<Output, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(own);
    command.args(words).current_dir(folder).env(files::VARIABLE, "");
    // A recorder that this one runs under is not to record the trial; the user's own options may break it.
    for variable in [teeperf_wire::hello::SOCKET_VARIABLE, "TEEPERF_CC_OPTIONS", "LD_PRELOAD"] {
        command.env_remove(variable);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.map(|line| line.strip_prefix("teeperf: ").unwrap_or(line).to_owned());
    Err(line.unwrap_or_else(|| output.status.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_by_name() {
        let report =
            br#"{"functions":[{"name":"main","calls":1},{"name":"second(int)","calls":5}]}"#;
        assert_eq!(counted(report), [Some(1), Some(5), None]);
        assert_eq!(counted(b"no JSON"), [None; 3]);
    }
}
