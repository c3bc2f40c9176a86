//! Programs of `bench/truth`, whose truth is known: each tries to have a profiler lie.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::kind::{Kind, fits};
use super::subject::Told::{self, Clock, Perf, SameRun};
use super::subject::{Subject, cpu_of, source};
use super::task::Task;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::subject::text;
use crate::commands::{cargo, run_quietly};

/// A scenario of a program.
pub(super) struct Made {
    /// File and name of the scenario.
    scenario: (&'static str, &'static str),
    what: &'static str,
    told: Told,
    size: Size,
}

/// How long a run is.
#[derive(Clone, Copy, PartialEq)]
enum Size {
    /// As long as 2,000 samples take, and some.
    Normal,
    /// It sleeps most of the time; its CPU time is judged.
    Sleeps,
    /// As `Normal`; its CPU time is judged.
    Parks,
    /// 5 ms.
    Blink,
    /// 10 s.
    Long,
}

impl Size {
    /// CPU time without hooks, milliseconds.
    fn cpu_ms(self, lab: &Lab) -> f64 {
        match self {
            Self::Normal | Self::Parks => lab.size(2200.0, 100.0),
            Self::Sleeps => lab.size(800.0, 20.0),
            Self::Blink => 5.0,
            Self::Long => lab.size(10_000.0, 200.0),
        }
    }

    fn rounds(self) -> usize {
        if self == Self::Long { 1 } else { 3 }
    }

    fn repeats(self, lab: &Lab) -> usize {
        if self == Self::Blink { lab.size(10, 2) } else { 1 }
    }
}

const fn made(
    scenario: (&'static str, &'static str),
    what: &'static str,
    told: Told,
    size: Size,
) -> Made {
    Made { scenario, what, told, size }
}

pub(super) const MADE: &[Made] = &[
    made(("mixed.c", "even"), "3 ns to 1 ms, like shares", Clock, Size::Normal),
    made(("mixed.c", "steep"), "3 ns to 1 ms, steep shares", Clock, Size::Normal),
    made(("mixed.c", "rare"), "1 ns 10^8 times, 1 ms seldom", Clock, Size::Normal),
    made(("mixed.c", "single"), "1 ns to 10 µs one by one", Perf, Size::Normal),
    made(("mixed.c", "tiny"), "1 ns and their callers", Perf, Size::Normal),
    made(("mixed.c", "fine"), "a run of 5 ms", Clock, Size::Blink),
    made(("mixed.c", "steep"), "a run of 10 s", Clock, Size::Long),
    made(("recursion.c", "tree"), "recursion, two calls each", Perf, Size::Normal),
    made(("recursion.c", "mutual"), "recursion of two functions", Perf, Size::Normal),
    made(("recursion.c", "deep"), "recursion, 2,000 levels", Perf, Size::Normal),
    made(("getters.c", "near"), "getters that overlap", Perf, Size::Normal),
    made(("getters.c", "missing"), "getters during cache misses", Perf, Size::Normal),
    made(("cache.c", "chase"), "cache hits and misses", Clock, Size::Normal),
    made(("branches.c", "calls"), "branches by chance", Clock, Size::Normal),
    made(("branches.c", "indirect"), "indirect calls by chance", Perf, Size::Normal),
    made(("threads.c", "two"), "two threads", Clock, Size::Normal),
    made(("threads.c", "four"), "four threads, work 1:2:4:8", Clock, Size::Normal),
    made(("threads.c", "parked"), "five parked threads", SameRun, Size::Parks),
    made(("threads.c", "mutex"), "three threads and a mutex", Perf, Size::Normal),
    made(("threads.c", "short"), "threads of 1 ms", Clock, Size::Normal),
    made(("bursts.c", "short"), "30 µs after 0.4 ms", SameRun, Size::Sleeps),
    made(("bursts.c", "long"), "1 ms after 4 ms", SameRun, Size::Sleeps),
    made(("bursts.c", "random"), "30 µs to 1 ms, 0.4 to 4 ms", SameRun, Size::Sleeps),
    made(("bursts.c", "aligned"), "awake at each millisecond", SameRun, Size::Sleeps),
    made(("phases.c", "phases"), "phases of half a second", Clock, Size::Normal),
    made(("beats.c", "100us"), "a beat of 100 µs", SameRun, Size::Normal),
    made(("beats.c", "1ms"), "a beat of 1 ms", SameRun, Size::Normal),
    made(("beats.c", "4ms"), "a beat of 4 ms", SameRun, Size::Normal),
    made(("beats.c", "cpu"), "a beat of 1 ms CPU time", SameRun, Size::Normal),
    made(("io.c", "files"), "reads and writes", Clock, Size::Normal),
    made(("io.c", "echo"), "bytes to and fro in pipes", SameRun, Size::Normal),
    made(("io.c", "forks"), "processes that fork", Perf, Size::Normal),
    made(("kernel.c", "children"), "processes of 2 ms", Clock, Size::Normal),
    made(("kernel.c", "brief"), "threads of half a ms", Clock, Size::Normal),
    made(("kernel.c", "naps"), "naps beside page faults", SameRun, Size::Normal),
    made(("kernel.c", "loop"), "a regular loop of 60 µs", SameRun, Size::Normal),
    made(("kernel.c", "step"), "in step with the tick", SameRun, Size::Normal),
    made(("jumps.c", "longjmp"), "functions left by longjmp", Perf, Size::Normal),
    made(("jumps.c", "contexts"), "two stacks by swapcontext", Perf, Size::Normal),
    made(("jumps.c", "tails"), "tail calls", Perf, Size::Normal),
    made(("objects.cpp", "shapes"), "C++: virtual, inlined calls", Perf, Size::Normal),
    made(("objects.cpp", "words"), "C++: strings, maps, sorting", Perf, Size::Normal),
    made(("objects.cpp", "throws"), "C++: exceptions", Perf, Size::Normal),
    made(("rust", "batches"), "Rust", Clock, Size::Normal),
];

impl Made {
    pub(super) fn id(&self) -> String {
        let (file, name) = self.scenario;
        let stem = file.split('.').next().unwrap_or_default();
        let suffix = if self.size == Size::Long { "-long" } else { "" };
        format!("{stem}-{name}{suffix}")
    }

    /// Builds it and finds out how many rounds are as long as wanted.
    pub(super) fn subject<'a>(&self, lab: &'a Lab, kinds: &[Kind]) -> Result<Subject<'a>> {
        let (file, name) = self.scenario;
        let plain = text(&build(lab, Hooks::None, file)?);
        let task =
            move |program: &str, rounds: f64| Task::of([program, name, &format!("{rounds:.0}")]);
        let wanted = self.size.cpu_ms(lab) * 1e6;
        let mut rounds = 20.0;
        // The first run is too short for more than a guess; the second is long enough.
        for part in [(wanted / 10.0).max(5e6), wanted] {
            rounds = (rounds * part / cpu_of(lab, &task(&plain, rounds))?).ceil().max(1.0);
        }
        let kinds = kinds.iter().copied().filter(|kind| fits(*kind, Path::new(file)));
        Ok(Subject {
            id: self.id(),
            what: self.what.to_owned(),
            told: self.told,
            judges_cpu: matches!(self.size, Size::Sleeps | Size::Parks),
            rounds: self.size.rounds(),
            repeats: self.size.repeats(lab),
            file: file_name(&build(lab, Hooks::None, file)?),
            kinds: kinds.collect(),
            task: Box::new(move |hooks| Ok(task(&text(&build(lab, hooks, file)?), rounds))),
        })
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A program of `bench/truth`: one source, or the package of Rust.
fn build(lab: &Lab, hooks: Hooks, file: &str) -> Result<PathBuf> {
    if file == "rust" {
        return rust(lab, hooks);
    }
    let path = source(lab, file);
    let header = source(lab, "truth.h");
    let stem = file.split('.').next().unwrap_or_default();
    lab.built(hooks, &format!("truth-{stem}"), &[&path, &header], |compilers, out| {
        let is_cxx = file.ends_with(".cpp");
        let mut command = compilers.command(is_cxx);
        command.args(["-O2", "-g", if is_cxx { "-std=gnu++17" } else { "-std=gnu11" }]);
        command.arg(&path).arg("-o").arg(out).arg("-pthread");
        run_quietly(&mut command).map(drop)
    })
}

fn rust(lab: &Lab, hooks: Hooks) -> Result<PathBuf> {
    let is_on = hooks != Hooks::None;
    let target = lab.work.join("truth-rust").join(if is_on { "on" } else { "off" });
    let mut build = cargo();
    build.args(["build", "-q", "--release", "--manifest-path"]);
    build.arg(source(lab, "rust/Cargo.toml")).arg("--target-dir").arg(&target);
    if is_on {
        build.args(["--features", "on"]);
    }
    run_quietly(&mut build)?;
    Ok(target.join("release/truth"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_scenarios_apart() {
        let mut ids: Vec<String> = MADE.iter().map(Made::id).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert!(count >= 20);
    }
}
