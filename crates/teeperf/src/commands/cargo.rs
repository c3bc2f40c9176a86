//! `teeperf cargo`, and `cargo teeperf`: Rust programs with hooks in all functions of their crates.

use crate::compiler::{Options, Settings};
use crate::rust::{self, Plan};
use crate::{bundle, shell};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Builds a Rust program with hooks in all functions of its workspace, on stable; also `cargo teeperf`
///
/// Nothing is changed in the source. Cargo is run with the words behind this, and what it compiles of the workspace
/// calls hooks: functions, methods, closures, each instantiation of a generic one, as calls stand in the source,
/// before anything is inlined. Code of other crates, of the standard library and of build scripts has none.
///
/// teeperf.toml's `[build]` says which functions: only, exclude (`mycrate::parse::*`, `file:src/generated/`),
/// after-inlining; TEEPERF_CC_OPTIONS has the same as options. Functions are named as reports name them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo teeperf build --release
  teeperf record -- target/teeperf/release/program
  cargo teeperf --dependency regex-automata build --release
  cargo teeperf --attributes build --release       hooks where the source has #[profile] alone

What is built is in target/teeperf, beside what cargo builds without hooks; --target-dir names another folder.

What it takes: rustc 1.95 or later, x86-64. The crates are compiled twice, in one piece each, without link-time
optimisation; names and line information stay in the program, whatever the profile says. Where a panic passes a call
that was inlined, the report counts that call as mended.")]
pub(crate) struct Arguments {
    /// Hooks in functions of this dependency too; what is built is then in a folder of its own, as is told
    #[arg(long, value_name = "CRATE")]
    dependency: Vec<String>,
    /// Hooks where the source asks for them alone: with the feature teeperf-hooks/on
    #[arg(long, conflicts_with = "dependency")]
    attributes: bool,
    /// Words for cargo: build, run, test, bench or rustc, and what belongs to it
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "CARGO ARGUMENTS"
    )]
    words: Vec<OsString>,
}

/// Where hooked programs are built, in the target folder: a plain build would put its own programs in their place.
const PLACE: &str = "teeperf";

/// Subcommands of cargo that make programs.
const BUILDING: [&str; 9] = ["build", "b", "run", "r", "test", "t", "bench", "rustc", "nextest"];

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    bundle::needs_hooks()?;
    let words = &arguments.words;
    let is_building = |word: &OsString| word.to_str().is_some_and(|word| BUILDING.contains(&word));
    ensure!(
        words.iter().any(is_building),
        "{} makes no program: say one of {}",
        words[0].display(),
        BUILDING.join(", ")
    );
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    let workspace = Workspace::read(&cargo, words)?;
    if arguments.attributes {
        build_in(&mut command, &workspace.target.join(PLACE), words);
        let (own, rest) = split_at_dashes(words);
        command.args(own).args(["--features", "teeperf-hooks/on"]).args(rest);
        note!(
            "teeperf: hooks in functions that have #[profile], or stand in what has it; no others are recorded"
        );
        return finish(&cargo, &mut command);
    }
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    rust::check(&rustc).context(
        "hooks cannot be put into Rust code without a word in its source; --attributes records the functions that have \
         #[teeperf_hooks::profile], with any compiler from 1.88 on",
    )?;
    let mut options = Options::of_environment()?;
    options.add(Settings::here()?.build)?;
    if options.selection.min_size > 0 {
        note!(
            "teeperf: of Rust functions sizes are not known (min-size); leave them out by name or file"
        );
        options.selection.min_size = 0;
    }
    let mut crates = workspace.crates;
    crates.extend(arguments.dependency.iter().map(|name| as_crate(name)));
    let plan =
        Plan { crates, selection: options.selection, after_inlining: options.after_inlining };
    let folder = plan.folder()?;
    let compiler = folder.join(rust::COMPILER);
    let mut place = workspace.target.join(PLACE);
    if arguments.dependency.is_empty() {
        command.env("RUSTC_WORKSPACE_WRAPPER", compiler);
    } else {
        // Cargo tells the workspace's own crates alone apart by their compiler.
        place.push(folder.file_name().unwrap_or_default());
        command.env("RUSTC_WRAPPER", compiler);
    }
    build_in(&mut command, &place, words);
    command.args(words).env("CARGO_INCREMENTAL", "0");
    for profile in ["DEV", "RELEASE", "TEST", "BENCH"]
        .into_iter()
        .map(str::to_owned)
        .chain(named_profile(words))
    {
        command.env(format!("CARGO_PROFILE_{profile}_LTO"), "off");
    }
    finish(&cargo, &mut command)
}

/// Has cargo build in this folder, unless its words name one, and says so.
fn build_in(command: &mut Command, place: &Path, words: &[OsString]) {
    if value(words, "--target-dir").is_none() {
        note!("teeperf: what is built is in {}", shell::typed(place));
        command.env("CARGO_TARGET_DIR", place);
    }
}

/// Runs cargo; its exit status.
fn finish(cargo: &OsStr, command: &mut Command) -> Result<ExitCode> {
    let status = command.status().with_context(|| format!("cannot run {}", cargo.display()))?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// What cargo knows of the workspace.
struct Workspace {
    /// Crates of its members, as the compiler calls them.
    crates: BTreeSet<String>,
    /// Where it builds.
    target: PathBuf,
}

impl Workspace {
    fn read(cargo: &OsStr, words: &[OsString]) -> Result<Self> {
        let mut command = Command::new(cargo);
        command.args(["metadata", "--no-deps", "--format-version=1"]);
        if let Some(manifest) = value(words, "--manifest-path") {
            command.arg("--manifest-path").arg(manifest);
        }
        let output = command.output().with_context(|| format!("cannot run {}", cargo.display()))?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let metadata: serde_json::Value =
            serde_json::from_slice(&output.stdout).context("what cargo metadata says")?;
        let list = |value: &serde_json::Value, name: &str| {
            value[name].as_array().cloned().unwrap_or_default()
        };
        let targets =
            list(&metadata, "packages").into_iter().flat_map(|package| list(&package, "targets"));
        Ok(Self {
            crates: targets.filter_map(|target| target["name"].as_str().map(as_crate)).collect(),
            target: Path::new(metadata["target_directory"].as_str().unwrap_or("target")).to_owned(),
        })
    }
}

/// As the compiler calls it.
fn as_crate(name: &str) -> String {
    name.replace('-', "_")
}

/// The value of an option, in one word or two.
fn value<'a>(words: &'a [OsString], name: &str) -> Option<&'a str> {
    let (words, _) = split_at_dashes(words);
    words.iter().enumerate().find_map(|(at, word)| {
        let rest = word.to_str()?.strip_prefix(name)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value),
            None if rest.is_empty() => words.get(at + 1)?.to_str(),
            None => None,
        }
    })
}

/// A profile that is named, as variables of cargo spell it.
fn named_profile(words: &[OsString]) -> Option<String> {
    Some(as_crate(value(words, "--profile")?).to_uppercase())
}

/// Words up to `--`, and the rest.
fn split_at_dashes(words: &[OsString]) -> (&[OsString], &[OsString]) {
    words.split_at(words.iter().position(|word| word == "--").unwrap_or(words.len()))
}
