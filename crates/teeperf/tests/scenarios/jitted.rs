//! Samples in code that a program made in memory, and told perf of.
#![cfg(target_arch = "x86_64")]

use crate::support::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Takes away what a program told, when nobody reads it any more.
struct Told(PathBuf);

impl Told {
    fn of(stdout: &str) -> Self {
        Self(stdout.lines().find_map(|line| line.strip_prefix("map ")).expect(stdout).into())
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

const OUTER: &str = "JS:*outer a.js:1:2";
/// As call paths have it, whose separators are no part of a name.
const LARGE: &str = "Large;::spin";

fn program(shop: &Workshop) -> PathBuf {
    let flags = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];
    shop.build_unhooked("jitted.c", Compiler::Gcc, &flags)
}

/// Checks that all three functions are there, with their shares, and lead to `main`.
#[track_caller]
fn has_names(paths: &BTreeMap<String, u64>, is_forked: bool) {
    let sum = |end: &str| {
        let ends = |path: &&String| path.ends_with(end);
        paths.iter().filter(|(path, _)| ends(path)).map(|(_, count)| count).sum::<u64>()
    };
    let [large, small] = [LARGE, "small"].map(|name| sum(&format!("main;work;{OUTER};{name}")));
    let later = sum("main;work_later;later");
    // The program asks for the time now and then, which takes what the machine makes of it.
    let is_clock = |path: &str| path.contains(";clock_gettime") || path.ends_with(";used_ms");
    let all: u64 = paths.iter().filter(|(path, _)| !is_clock(path)).map(|(_, count)| count).sum();
    assert!((large + small + later) * 20 > all * 18, "{paths:#?}");
    let share = 100 * large / (large + small);
    assert!((65..85).contains(&share), "{share} %, and three quarters are right: {paths:#?}");
    let share = 100 * later / all;
    let right = if is_forked { 20 } else { 33 };
    assert!((right - 12..right + 12).contains(&share), "{share} %: {paths:#?}");
}

/// Runs `record`, and gives the recording, with what the program told.
fn recorded(shop: &Workshop, command: &mut Command, name: &str) -> Option<(PathBuf, Told)> {
    let file = shop.path(name);
    let outcome = run(command.arg("-o").arg(&file).arg("--").arg(program(shop)).arg("800"));
    if outcome.stderr.contains("perf_event_open") && !outcome.success() {
        eprintln!("skipped: {}", outcome.stderr);
        return None;
    }
    outcome.expect_code(0);
    Some((file, Told::of(&outcome.stdout)))
}

/// Guards: names of code that was made, also later, with callers through it, whoever takes the samples.
#[test]
fn functions_that_were_made_in_memory() {
    let shop = Workshop::new();
    for (number, options) in [
        &["--sample"][..],
        &["--sample", "--call-graph", "fp"],
        &["--probe", "sample", "--sgx", "--call-graph", "fp"],
        &["--probe", "sample", "--sgx", "--call-graph", "dwarf"],
        &["--probe", "sample", "--sgx=outside"],
    ]
    .into_iter()
    .enumerate()
    {
        let mut command = teeperf();
        command.arg("record").args(options);
        let name = format!("{number}.teeperf");
        let Some((file, _told)) = recorded(&shop, &mut command, &name) else { continue };
        has_names(&Report::of(&file).paths(), false);
    }
    let mut command = teeperf();
    command.args(["record", "--sample"]);
    without_perf_event_open(&mut command);
    let (file, _told) = recorded(&shop, &mut command, "timers.teeperf").unwrap();
    has_names(&Report::of(&file).paths(), false);
}

/// Guards: the child of a fork has its parent's code, of which the parent told.
#[test]
fn a_child_runs_what_its_parent_made() {
    let shop = Workshop::new();
    let mut recording = shop.recording(&["--sample"], &program(&shop), &["600", "fork"]);
    let outcome = run(&mut recording.command);
    if !outcome.success() {
        eprintln!("skipped: {}", outcome.stderr);
        return;
    }
    let _told = Told::of(&outcome.stdout);
    has_names(&Report::of(&recording.file).paths(), true);
}

fn text(file: &Path, words: &[&str]) -> Outcome {
    let mut command = teeperf();
    run(command.args(words).arg(file))
}

/// Guards: `annotate` says why there is no source, perf finds the names of what is exported, and without the file functions are what the
/// system calls the memory.
#[test]
fn what_else_reads_such_samples() {
    let shop = Workshop::new();
    let mut command = teeperf();
    command.args(["record", "--sample"]);
    let Some((file, told)) = recorded(&shop, &mut command, "it.teeperf") else { return };
    let mut annotate = teeperf();
    let annotated = run(annotate.arg("annotate").arg(&file).arg("small"));
    annotated.expect_code(0);
    assert!(annotated.stderr.contains("just-in-time"), "{}", annotated.stderr);
    assert!(!annotated.stderr.contains("build with -g"), "{}", annotated.stderr);
    assert!(text(&file, &["report", "--by", "module"]).stdout.contains(" [JIT]\n"));
    let folded = text(&file, &["flame", "--folded", "-o", "-"]).stdout;
    assert!(folded.contains(";JS:*outer a.js:1:2;Large:::spin "), "{folded}");
    let exported = shop.path("it.data");
    let mut export = teeperf();
    run(export.args(["export", "--to", "perf", "-o"]).arg(&exported).arg(&file)).expect_code(0);
    has_names(&Report::of(&exported).paths(), false);
    if let Some(symbols) = by_perf(&exported) {
        assert!(symbols.contains(LARGE) && symbols.contains("later"), "{symbols}");
    }
    let packed = shop.path("it.tar.zst");
    run(teeperf().arg("pack").arg(&file).arg("-o").arg(&packed)).expect_code(0);
    drop(told);
    has_names(&Report::of(&packed).paths(), false);
    let folded = text(&file, &["flame", "--folded", "-o", "-"]).stdout;
    assert!(folded.contains(";main;work;[anon];[anon] ") && !folded.contains("small"), "{folded}");
}

/// Symbols of the samples in a file, as perf has them.
fn by_perf(file: &Path) -> Option<String> {
    let mut script = Command::new("perf");
    let output = script.args(["script", "-G", "-F", "ip,sym", "-i"]).arg(file).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Guards: of a file that perf itself recorded the same functions have the same samples as by perf.
#[test]
fn what_perf_recorded() {
    let shop = Workshop::new();
    let file = shop.path("perf.data");
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-g", "-o"]).arg(&file).arg("--").arg(program(&shop)).arg("800");
    let output = match record.output() {
        Ok(output) if output.status.success() => output,
        other => return eprintln!("skipped: {other:?}"),
    };
    let _told = Told::of(&String::from_utf8_lossy(&output.stdout));
    let paths = Report::of(&file).paths();
    has_names(&paths, false);
    let symbols = by_perf(&file).unwrap();
    for name in [LARGE, "small", "later"] {
        let is_of = |path: &str| path.ends_with(&format!(";{name}"));
        let ours: u64 = paths.iter().filter(|(path, _)| is_of(path)).map(|(_, n)| n).sum();
        let theirs = symbols.lines().filter(|line| line.ends_with(&format!(" {name}"))).count();
        assert_eq!(ours, theirs as u64, "{name}: {paths:#?}");
    }
}
