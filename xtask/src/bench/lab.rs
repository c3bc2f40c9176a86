//! Where measuring happens: folders, the `teeperf` under test, the yardsticks, and how a
//! program is run under each recorder. Nothing outside the target folder is written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::hooks::Hooks;
use super::measure::{Ran, run, run_into};
use crate::commands;

/// Variable with the folder of `word_hook.c`, `cycle_hook.c`, `drain_hook.c` and
/// `replay_loop.c`.
pub(crate) const YARDSTICKS: &str = "TEEPERF_YARDSTICKS";

/// Variable with the command to measure, instead of a release build of these sources.
const BINARY: &str = "TEEPERF_BINARY";

/// Folders and tools of one measurement.
pub(crate) struct Lab {
    /// The repository.
    pub(crate) root: PathBuf,
    /// `target/bench`: what is built and written.
    pub(crate) work: PathBuf,
    /// `target/bench-src`: sources from Debian.
    pub(crate) sources: PathBuf,
    /// The release build of the command, or the one that [`BINARY`] names.
    pub(crate) teeperf: PathBuf,
    /// Folder with the yardsticks.
    pub(crate) yardsticks: Option<PathBuf>,
    /// Fewer rounds and smaller inputs: shows that all works, measures little.
    pub(crate) quick: bool,
    rounds: Option<usize>,
}

impl Lab {
    /// Builds the command unless one is named, and makes the folders.
    pub(crate) fn open(quick: bool, rounds: Option<usize>) -> Result<Self> {
        let target = commands::target()?;
        let teeperf = match std::env::var_os(BINARY) {
            Some(named) => {
                fs::canonicalize(&named).with_context(|| format!("{BINARY}: {named:?}"))?
            }
            None => {
                let mut build = commands::cargo();
                commands::run(build.args(["build", "--release", "-q", "-p", "teeperf"]))?;
                target.join("release/teeperf")
            }
        };
        let lab = Self {
            root: commands::root(),
            work: target.join("bench"),
            sources: target.join("bench-src"),
            teeperf,
            yardsticks: std::env::var_os(YARDSTICKS).map(PathBuf::from),
            quick,
            rounds,
        };
        fs::create_dir_all(lab.work.join("scratch"))?;
        Ok(lab)
    }

    /// How often to run: what the user said, 1 when quick, else `normal`.
    pub(crate) fn rounds(&self, normal: usize) -> usize {
        self.rounds.unwrap_or(if self.quick { 1 } else { normal })
    }

    /// The larger size, or the smaller when quick.
    pub(crate) fn size<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Whether programs can be built with these hooks here.
    pub(crate) fn offers(&self, hooks: Hooks) -> bool {
        hooks.yardstick().is_none() || self.yardsticks.is_some()
    }

    /// Source of a yardstick.
    pub(crate) fn yardstick(&self, file: &str) -> Result<PathBuf> {
        let folder =
            self.yardsticks.as_ref().with_context(|| format!("{YARDSTICKS} is not set"))?;
        Ok(folder.join(file))
    }

    /// A program of `bench/`.
    pub(crate) fn bench_file(&self, name: &str) -> PathBuf {
        self.root.join("bench").join(name)
    }

    /// Where files of a run go; cleared by nobody, overwritten by the next.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.work.join("scratch").join(name)
    }

    /// Runs a command in the scratch folder.
    pub(crate) fn run(&self, command: &mut Command) -> Result<Ran> {
        let scratch = self.work.join("scratch");
        command.current_dir(&scratch);
        run(command, &scratch)
    }

    /// The same of a program whose output is long and of no interest: what it takes to keep that is not measured.
    pub(crate) fn run_unheard(&self, command: &mut Command) -> Result<Ran> {
        let scratch = self.work.join("scratch");
        command.current_dir(&scratch);
        run_into(Path::new("/dev/null"), command, &scratch)
    }

    /// `teeperf record` with options, before `--` and the program.
    pub(crate) fn record(&self, recording: &Path, options: &[&str]) -> Command {
        let mut command = Command::new(&self.teeperf);
        command.args(["record", "-o"]).arg(recording).args(options).arg("--");
        command
    }

    /// `perf record` as it is commonly used. Virtual machines often have no cycle counter;
    /// then the clock of the processor takes its place.
    pub(crate) fn perf(&self, data: &Path) -> Command {
        let mut command = Command::new("perf");
        command.args(["record", "-q", "-F", "999", "-g"]);
        if !commands::works("perf", &["stat", "-x,", "-e", "cycles:u", "--", "true"])
            || !self.has_cycles()
        {
            command.args(["-e", "cpu-clock"]);
        }
        command.arg("-o").arg(data).arg("--");
        command
    }

    fn has_cycles(&self) -> bool {
        let output = Command::new("perf").args(["stat", "-x,", "-e", "cycles:u", "true"]).output();
        output.is_ok_and(|o| !String::from_utf8_lossy(&o.stderr).contains("<not supported>"))
    }
}

/// `program` with its environment for a hook that sleeps between ticks and drains to `out`.
pub(crate) fn yardstick_run(program: &Path, out: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("SLEEP_US", "100").env("CODEC", "zstd").env("OUT", out);
    command
}
