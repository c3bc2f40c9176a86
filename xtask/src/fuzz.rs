//! `cargo xtask fuzz`: runs every fuzz target for a short time from its seeds. Builds as
//! cargo-fuzz does, but without it: a nightly compiler suffices. What fuzzers are for and how
//! to run one for long stands in fuzz/README.md.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use crate::commands::{self, line, root, target, works};
use crate::steps::Outcome;

/// What cargo-fuzz passes to the compiler: coverage for libFuzzer, and AddressSanitizer. The checks of
/// a debug build stand in the profile, where one crate goes without.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Zsanitizer=address -Ccodegen-units=4";
/// Where the sanitizer and the coverage are known to work.
const HOST: &str = "x86_64-unknown-linux-gnu";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long each target runs
    #[arg(long, value_name = "N", default_value_t = 20)]
    seconds: u32,
    /// Targets to run; all if none is named
    targets: Vec<String>,
}

/// Builds all targets, runs each; an error when one of them found something.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match all(arguments.seconds, &arguments.targets)? {
        Outcome::Passed => Ok(()),
        Outcome::Skipped(why) => bail!("{why}"),
    }
}

/// The same as a step of `cargo xtask test`.
pub(crate) fn all(seconds: u32, only: &[String]) -> Result<Outcome> {
    if !works("cargo", &["+nightly", "--version"]) {
        return Ok(Outcome::Skipped("no nightly compiler is installed".into()));
    }
    let folder = root().join("fuzz");
    let names = names(&folder)?;
    if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
        bail!("there is no target {unknown}, but {}", names.join(", "));
    }
    let built = build(&folder)?;
    let wanted = names.iter().filter(|name| only.is_empty() || only.contains(name));
    // One for each processor: a fuzzer takes one.
    let (queue, failed) = (Mutex::new(wanted), Mutex::new(Vec::new()));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(name) = next() {
            match fuzz(&folder, &built, name, seconds) {
                Ok(runs) => println!("{name}: {runs} runs"),
                Err(error) => {
                    eprintln!("── {name}\n{error:#}");
                    show(&folder.join("artifacts").join(name));
                    failed.lock().unwrap_or_else(PoisonError::into_inner).push(name.as_str());
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failed.is_empty() {
        bail!("fuzzing found something in {}: see fuzz/artifacts", failed.join(", "));
    }
    Ok(Outcome::Passed)
}

/// Every source in `fuzz_targets` is a target.
fn names(folder: &Path) -> Result<Vec<String>> {
    let sources = folder.join("fuzz_targets");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&sources).with_context(|| sources.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Gives the folder of the built targets.
fn build(folder: &Path) -> Result<PathBuf> {
    let target = target()?.join("fuzz");
    let mut cargo = Command::new("cargo");
    cargo
        .args(["+nightly", "build", "--release", "--target", HOST, "--target-dir"])
        .arg(&target)
        .current_dir(folder)
        .env("RUSTFLAGS", FLAGS)
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    commands::run(&mut cargo)?;
    Ok(target.join(HOST).join("release"))
}

/// What is new is kept below the target folder, so that the seeds stay as they are. Gives how many inputs it tried.
fn fuzz(folder: &Path, built: &Path, name: &str, seconds: u32) -> Result<u64> {
    let found = target()?.join("fuzz-corpus").join(name);
    let artifacts = folder.join("artifacts").join(name);
    for folder in [&found, &artifacts] {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let mut fuzzer = Command::new(built.join(name));
    fuzzer
        .args(["-print_final_stats=1", "-verbosity=0", "-timeout=20", "-rss_limit_mb=2048"])
        .args(["-malloc_limit_mb=1024", "-max_len=65536"])
        // Workers that are just ending look like leaks; what leaks is no matter of safety.
        .arg("-detect_leaks=0")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(&found)
        .env("ASAN_OPTIONS", "detect_odr_violation=0");
    let seeds = folder.join("corpus").join(name);
    if seeds.is_dir() {
        fuzzer.arg(seeds);
    }
    let again = format!("{} <file below fuzz/artifacts/{name}>", built.join(name).display());
    let what = line(&fuzzer);
    let output = fuzzer.stdin(Stdio::null()).output().with_context(|| what.clone())?;
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{told}\n{what} ended with {}\nto see it again: {again}", output.status);
    }
    let runs = told.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    runs.and_then(|runs| runs.trim().parse().ok()).with_context(|| format!("{what} tells no runs"))
}

/// What was found, for whom there is only the output of a machine that is gone.
fn show(artifacts: &Path) {
    for found in std::fs::read_dir(artifacts).into_iter().flatten().flatten() {
        eprintln!("{}, by base64:", found.path().display());
        // Where there is no such program, the file is all there is.
        let _ = Command::new("base64").arg(found.path()).status();
    }
}
