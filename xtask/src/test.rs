//! `cargo xtask test`: everything that must hold before a change lands. Every cargo step
//! builds the same profile with the same features, so that nothing is compiled twice.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::commands::{self, cargo, root, target, works};
use crate::steps::{Beside, Outcome, Steps};

/// How long each fuzz target runs.
const FUZZ_SECONDS: u32 = 10;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Leaves out what takes long: documentation tests, browser tests, Miri, ThreadSanitizer
    #[arg(long)]
    quick: bool,
    /// Repeats scenarios of rare faults five times as often, with each compiler and kind of hooks;
    /// fuzzes
    #[arg(long)]
    thorough: bool,
    /// Tests on emulated machines too, as `cargo xtask optee` and `cargo xtask targets` do
    #[arg(long, conflicts_with = "quick")]
    emulated: bool,
}

impl Arguments {
    /// Variables of the environment that tests heed.
    fn variables(&self) -> Vec<(&'static str, &'static str)> {
        if self.thorough { vec![("TEEPERF_TEST_THOROUGH", "1")] } else { Vec::new() }
    }
}

/// Runs all steps; an error when one of them failed.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut steps = Steps::default();
    steps.run("format", || passed(cargo().args(["fmt", "--all", "--check"])));
    steps.run("lints", || {
        let lint = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        passed(cargo().args(lint))
    });
    steps.run("licences and sources", || deny(&["bans", "licenses", "sources"]));
    steps.run("advisories", || deny(&["advisories"]));
    steps.run("unit, property and scenario tests", || {
        cargo_tests(&["--lib", "--bins", "--test", "*"], &arguments.variables())
    });
    steps.run("scenarios with late hooks", || late_scenarios(&arguments.variables()));
    steps.run("reader in Python", python_reader);
    steps.run("workflows", || crate::workflows::check(false));
    steps.run("lock file of the fuzz targets", fuzz_lock);
    if !arguments.quick {
        steps.run("page in a browser", browser);
    }
    // Its machine takes one processor, and no step from here on is disturbed by a neighbour.
    let optee = arguments.emulated.then(|| {
        let mut command = cargo();
        command.args(["xtask", "optee"]);
        Beside::start("optee", command)
    });
    if !arguments.quick {
        steps.run("documentation tests", || passed(cargo().args(["test", "--workspace", "--doc"])));
        steps.run("documentation without warnings", documentation);
        steps.run("sums and the runtimes' core under Miri", miri);
        steps.run("chunks changing hands under ThreadSanitizer", thread_sanitizer);
    }
    if let Some(optee) = optee {
        steps.run("other processors", || passed(cargo().args(["xtask", "targets"])));
        steps.wait("OP-TEE", optee);
    }
    if arguments.thorough {
        steps.run("fuzz targets, for a short time", || crate::fuzz::all(FUZZ_SECONDS, &[]));
    }
    steps.finish()
}

fn passed(command: &mut Command) -> Result<Outcome> {
    commands::run(command)?;
    Ok(Outcome::Passed)
}

/// Of what is public, and of all there is.
fn documentation() -> Result<Outcome> {
    for more in [&[][..], &["--document-private-items"]] {
        let mut command = cargo();
        command.args(["doc", "--workspace", "--no-deps"]).args(more);
        commands::run(command.env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    Ok(Outcome::Passed)
}

fn deny(checks: &[&str]) -> Result<Outcome> {
    if !works("cargo", &["deny", "--version"]) {
        return Ok(Outcome::Skipped("cargo-deny is not installed".into()));
    }
    if checks.contains(&"advisories") && !works("cargo", &["deny", "fetch", "db"]) {
        return Ok(Outcome::Skipped("the advisory database cannot be reached".into()));
    }
    passed(cargo().args(["deny", "--all-features", "check"]).args(checks))
}

/// Tests of these targets. Always of the whole workspace: cargo builds much of one package anew.
fn cargo_tests(targets: &[&str], variables: &[(&str, &str)]) -> Result<Outcome> {
    let mut tests = cargo();
    tests.args(runner()).args(["--workspace", "--no-fail-fast"]).args(targets);
    passed(tests.envs(variables.iter().copied()))
}

/// Scenarios of which each mechanism of hooks has some, with programs that are built with late
/// hooks.
fn late_scenarios(variables: &[(&str, &str)]) -> Result<Outcome> {
    const MODULES: [&str; 18] = [
        "calls::",
        "ends::",
        "fibers::",
        "filters::",
        "interrupted::",
        "leaves::",
        "limits::",
        "modules::",
        "pauses::",
        "points::",
        "processes::",
        "sanitizers::",
        "signals::",
        "stacks::",
        "threads::",
        "timed::",
        "tree::",
        "triggers::",
    ];
    let targets = [&["--test", "scenarios", "--"][..], &MODULES].concat();
    cargo_tests(&targets, &[variables, &[("TEEPERF_TEST_HOOKS", "late")]].concat())
}

/// What runs tests: on all processors, if it is installed.
fn runner() -> &'static [&'static str] {
    if works("cargo", &["nextest", "--version"]) { &["nextest", "run"] } else { &["test"] }
}

/// Undefined behaviour and data races, where they can be looked for: in what sums in memory of its own and in the runtime for code without a system, and in what the
/// runtime of Linux programs has without assembly, such as chunks changing hands.
fn miri() -> Result<Outcome> {
    if !works("cargo", &["+nightly", "miri", "--version"]) {
        return Ok(Outcome::Skipped("Miri is not installed for a nightly compiler".into()));
    }
    // Runtimes keep addresses as numbers, and their tests leave them memory for ever.
    let runtime = "-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-ignore-leaks";
    for (kinds, flags, cases) in [
        (&["-p", "teeperf-tally", "-p", "teeperf-tee", "--lib"][..], runtime, "2"),
        (&["-p", "teeperf-rt", "--lib"], runtime, "8"),
        (&["-p", "teeperf-hooks", "--lib"], "", "8"),
    ] {
        let mut miri = Command::new("cargo");
        miri.args(["+nightly", "miri"]).args(runner()).args(kinds).current_dir(root());
        // Properties are tried with few cases: Miri is some hundred times slower.
        miri.env("MIRIFLAGS", flags).env("PROPTEST_CASES", cases);
        commands::run(&mut miri)?;
    }
    Ok(Outcome::Passed)
}

/// Data races where Miri is too slow to go round often. The standard library is built anew with the
/// sanitizer: it would see races in one that was not.
fn thread_sanitizer() -> Result<Outcome> {
    let sysroot = Command::new("rustc").args(["+nightly", "--print", "sysroot"]).output();
    let sources = sysroot.ok().filter(|output| output.status.success()).is_some_and(|output| {
        let sysroot = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Path::new(&sysroot).join("lib/rustlib/src/rust/library").is_dir()
    });
    if !sources {
        return Ok(Outcome::Skipped("a nightly compiler with rust-src is not installed".into()));
    }
    let mut test = Command::new("cargo");
    test.args(["+nightly", "test", "-Zbuild-std", "--target", "x86_64-unknown-linux-gnu"]);
    test.args(["-p", "teeperf-rt", "--lib", "pool"]).current_dir(root());
    // A folder of its own: with other flags cargo would build everything there anew each time.
    test.arg("--target-dir").arg(target()?.join("thread-sanitizer"));
    passed(test.env("RUSTFLAGS", "-Zsanitizer=thread"))
}

/// The reader written from docs/format.md alone, under `TEEPERF_PYTHON` where that is set.
fn python_reader() -> Result<Outcome> {
    let folder = root().join("tests/reader");
    if !folder.is_dir() {
        return Ok(Outcome::Skipped("tests/reader is not there".into()));
    }
    let python = std::env::var("TEEPERF_PYTHON").unwrap_or_else(|_| "python3".into());
    if !works(&python, &["-c", "import zstandard"]) {
        return Ok(Outcome::Skipped(format!("{python} with the module zstandard is not there")));
    }
    passed(Command::new(python).args(["-m", "unittest", "discover"]).current_dir(folder))
}

/// The fuzz targets are a workspace of their own, whose sources the tests compile, and whose lock
/// file nothing else looks at.
fn fuzz_lock() -> Result<Outcome> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version=1", "--locked", "--manifest-path"]);
    commands::run_quietly(metadata.arg(root().join("fuzz/Cargo.toml"))).map(|_| Outcome::Passed)
}

fn browser() -> Result<Outcome> {
    let folder = root().join("web");
    if !folder.join("package.json").is_file() {
        return Ok(Outcome::Skipped("web/package.json is not there".into()));
    }
    if !works("npm", &["--version"]) {
        return Ok(Outcome::Skipped("npm is not installed".into()));
    }
    if !folder.join("node_modules").is_dir() {
        let install = ["ci", "--no-audit", "--no-fund"];
        commands::run(Command::new("npm").args(install).current_dir(&folder))?;
    }
    passed(Command::new("npm").arg("test").current_dir(&folder))
}
