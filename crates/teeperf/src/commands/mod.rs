//! One file for each subcommand: its options, its help with examples, and the calls that
//! make it happen.

mod amounts;
mod annotate;
mod cargo;
mod collect;
mod completions;
mod config;
mod ctl;
mod cut;
mod demo;
mod diff;
mod doctor;
mod dump;
mod export;
mod filtering;
mod flags;
mod flame;
mod gmon;
mod import;
mod info;
mod install_sdk;
mod install_wrappers;
mod interrupt;
mod live;
mod made;
mod man;
mod merge;
mod pack;
mod patterns;
mod pause;
mod progress;
mod reading;
mod record;
mod repair;
mod report;
mod sampling;
mod selection;
mod sent;
mod serve_memory;
mod servers;
mod sources;
mod suggest;
mod tables;
pub(crate) mod terminal;
mod transport;
mod version;
mod window;
mod writing;

use crate::cli::{Cli, Command};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use teeperf_record::control::Request;

pub(crate) use annotate::Arguments as Annotate;
pub(crate) use cargo::Arguments as Cargo;
pub(crate) use collect::Arguments as Collect;
pub(crate) use completions::Arguments as Completions;
pub(crate) use config::{Arguments as Config, look as settings};
pub(crate) use ctl::Arguments as Ctl;
pub(crate) use cut::Arguments as Cut;
pub(crate) use demo::Arguments as Demo;
pub(crate) use diff::Arguments as Diff;
pub(crate) use doctor::Arguments as Doctor;
pub(crate) use dump::Arguments as Dump;
pub(crate) use export::Arguments as Export;
pub(crate) use flags::Arguments as Flags;
pub(crate) use flame::Arguments as Flame;
pub(crate) use import::Arguments as Import;
pub(crate) use info::Arguments as Info;
pub(crate) use install_sdk::Arguments as InstallSdk;
pub(crate) use install_wrappers::Arguments as InstallWrappers;
pub(crate) use live::bytes;
pub(crate) use man::Arguments as Man;
pub(crate) use merge::Arguments as Merge;
pub(crate) use pack::Arguments as Pack;
pub(crate) use patterns::Arguments as Patterns;
pub(crate) use pause::Arguments as Pause;
pub(crate) use record::{Arguments as Record, can_be_preloaded, program};
pub(crate) use repair::Arguments as Repair;
pub(crate) use report::Arguments as Report;
pub(crate) use selection::{Arguments as Selection, unmet as unmet_patterns};
pub(crate) use serve_memory::Arguments as ServeMemory;
pub(crate) use suggest::Arguments as Suggest;
pub(crate) use terminal::Colour;
pub(crate) use transport::Place;

/// Runs what the user typed.
pub(crate) fn run(cli: Cli) -> Result<ExitCode> {
    terminal::colour_is(cli.color);
    match cli.command {
        // Taken before the command line is parsed; here only when help was wanted.
        Command::Cc(_) | Command::Cxx(_) => crate::cli::print_wrapper_help()?,
        Command::Cargo(arguments) => return cargo::run(&arguments),
        Command::Flags(arguments) => flags::run(&arguments)?,
        Command::Selection(arguments) => return selection::run(&arguments),
        Command::InstallWrappers(arguments) => install_wrappers::run(&arguments)?,
        Command::InstallSdk(arguments) => install_sdk::run(&arguments)?,
        Command::Record(arguments) => return record::run(&arguments),
        Command::ServeMemory(arguments) => return serve_memory::run(&arguments),
        Command::Import(arguments) => return import::run(&arguments),
        Command::Report(arguments) => report::run(&arguments)?,
        Command::Annotate(arguments) => annotate::run(&arguments)?,
        Command::Diff(arguments) => return diff::run(&arguments),
        Command::Suggest(arguments) => suggest::run(&arguments)?,
        Command::Flame(arguments) => flame::run(&arguments)?,
        Command::Export(arguments) => export::run(&arguments)?,
        Command::Dump(arguments) => dump::run(&arguments)?,
        Command::Info(arguments) => info::run(&arguments)?,
        Command::Cut(arguments) => cut::run(&arguments)?,
        Command::Repair(arguments) => repair::run(&arguments)?,
        Command::Merge(arguments) => merge::run(&arguments)?,
        Command::Pack(arguments) => pack::run(&arguments)?,
        Command::Collect(arguments) => collect::run(&arguments)?,
        Command::Demo(arguments) => demo::run(&arguments)?,
        Command::Patterns(arguments) => patterns::run(&arguments)?,
        Command::Pause(arguments) => pause::run(&arguments, &Request::Pause)?,
        Command::Resume(arguments) => pause::run(&arguments, &Request::Resume)?,
        Command::Ctl(arguments) => ctl::run(&arguments)?,
        Command::Doctor(arguments) => return doctor::run(&arguments),
        Command::Config(arguments) => config::run(&arguments)?,
        Command::Completions(arguments) => completions::run(&arguments)?,
        Command::Man(arguments) => man::run(&arguments)?,
        Command::Version => version::run()?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a file of this kind, which begins so, in the place of one of its kind alone, unless that is forced, and of none that is
/// read for it. It is there whole or not at all, also when a signal ends the process.
fn fill(
    path: &Path,
    force: bool,
    read: &[&Path],
    (what, begins): (&str, &[u8]),
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    let target = made::target(path, force, read, what, begins)?;
    let mut out = BufWriter::new(target.file()?);
    let written = write(&mut out).and_then(|()| out.flush());
    written.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(target.finish()?)
}

/// Writes to standard output, and says when that fails.
pub(crate) fn print(text: &[u8]) -> Result<()> {
    to_stdout(|out| out.write_all(text))
}

/// The same, of what is written bit by bit.
fn to_stdout(
    write: impl FnOnce(&mut BufWriter<io::StdoutLock<'static>>) -> io::Result<()>,
) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    write(&mut out).and_then(|()| out.flush()).context(STDOUT)
}

/// Whether it failed because nobody reads what is written.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let error = cause.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// What is named where standard output cannot be written.
const STDOUT: &str = "standard output";
