//! `cargo xtask`: the only door to the project's tests and benchmarks, for people and for
//! CI alike. It starts other programs and judges their exit status; what is tested or
//! measured stands elsewhere.

mod bench;
mod checks;
mod commands;
mod compare_perf;
mod cross;
mod emulator;
mod fuzz;
mod limited;
mod lock;
mod mirror;
mod optee;
mod package;
mod packages;
/// What gprof prints: as the command's tests take it apart.
#[path = "../../crates/teeperf/tests/commands/gmon/printed.rs"]
mod printed;
mod sdk;
mod stamp;
mod steps;
mod targets;
mod test;
mod tools;
mod workflows;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tests, benchmarks and packages of teeperf")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Format, lints, licences, tests of every kind
    Test(test::Arguments),
    /// Runs every fuzz target for a short time
    Fuzz(fuzz::Arguments),
    /// Measures the figures and writes docs/performance.md
    Bench(bench::Arguments),
    /// Reads files of perf with perf and with the command, and compares both sample by sample
    ComparePerf(compare_perf::Arguments),
    /// Boots OP-TEE in QEMU and tests trusted applications and the command on it
    Optee(optee::Arguments),
    /// Makes what a release consists of, of the last commit, and checks it
    Package(package::Arguments),
    /// Runs the runtime for code without a system on this processor and on emulated ones
    Targets(targets::Arguments),
}

fn main() -> anyhow::Result<()> {
    // A shell without job control has what it puts into the background ignore Ctrl-C, and so would
    // all that is started here, which teeperf heeds: but tests end recorders by that signal.
    // SAFETY: no other thread runs yet, and the default is no code of anybody's.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    match Arguments::parse().task {
        Task::Test(arguments) => test::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::Bench(arguments) => bench::run(&arguments),
        Task::ComparePerf(arguments) => compare_perf::run(&arguments),
        Task::Optee(arguments) => optee::run(&arguments),
        Task::Package(arguments) => package::run(&arguments),
        Task::Targets(arguments) => targets::run(&arguments),
    }
}
