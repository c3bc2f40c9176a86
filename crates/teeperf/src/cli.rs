//! What can be typed: the one definition from which parsing, help, completions and manual
//! pages are made.

use crate::commands;
use crate::config;
use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// Profiles a program by every call it makes: exact call counts, full call paths, and the
/// time in each
#[derive(Parser, Debug)]
#[command(
    name = "teeperf",
    version,
    disable_help_subcommand = false,
    after_help = "\
Start here:
  teeperf demo                    see it work on a bundled program
  make CC=\"teeperf cc\"            build your program with hooks
  teeperf record -- ./program     run it; writes program.teeperf
  teeperf report                  where the time went, as text
  teeperf flame                   the same as a flame graph in one HTML file"
)]
pub(crate) struct Cli {
    /// When text has colour. Otherwise NO_COLOR and CLICOLOR_FORCE say, and whether it is read on a terminal
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = commands::Colour::Auto)]
    pub(crate) color: commands::Colour,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Cc(WrapperArguments),
    #[command(name = "c++")]
    Cxx(WrapperArguments),
    Cargo(commands::Cargo),
    Flags(commands::Flags),
    Selection(commands::Selection),
    InstallWrappers(commands::InstallWrappers),
    InstallSdk(commands::InstallSdk),
    Record(commands::Record),
    ServeMemory(commands::ServeMemory),
    Import(commands::Import),
    Report(Box<commands::Report>),
    Annotate(commands::Annotate),
    Diff(commands::Diff),
    Suggest(commands::Suggest),
    Flame(commands::Flame),
    Export(commands::Export),
    Dump(commands::Dump),
    Info(commands::Info),
    Cut(commands::Cut),
    Repair(commands::Repair),
    Merge(commands::Merge),
    Pack(commands::Pack),
    Collect(commands::Collect),
    Demo(commands::Demo),
    Patterns(commands::Patterns),
    /// Pauses a recording: nothing is recorded until it is resumed
    Pause(commands::Pause),
    /// Resumes a paused recording
    Resume(commands::Pause),
    Ctl(commands::Ctl),
    Doctor(commands::Doctor),
    Config(commands::Config),
    Completions(commands::Completions),
    Man(commands::Man),
    /// Prints the version, and which versions of recordings and programs it understands
    #[command(after_help = "\
Examples:
  teeperf version      all versions
  teeperf --version    the command's alone")]
    Version,
}

impl Command {
    /// What the command exits with when it fails: where 1 says something else, 2, as diff(1) and cmp(1) do.
    pub(crate) fn failure(&self) -> ExitCode {
        match self {
            Self::Diff(_) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }

    /// Whether an option means nothing beside the others. Who types it is told so; a file's waits until it does.
    pub(crate) fn leaves_idle(&self, option: &str) -> bool {
        match self {
            Self::Record(arguments) => arguments.leaves_idle(option),
            Self::ServeMemory(arguments) => arguments.leaves_idle(option),
            Self::Report(arguments) => arguments.leaves_idle(option),
            Self::Flame(arguments) => arguments.leaves_idle(option),
            _ => false,
        }
    }
}

/// Stands in for gcc or clang, and builds with hooks
///
/// Takes every option of the compiler and hands it on. When code is made, functions get
/// hooks; when a program is linked, the runtime comes with it. Every other use of the
/// compiler is left as it is. Functions of the system's headers get no hooks.
///
/// Which compiler: --teeperf-compiler, else TEEPERF_CC or TEEPERF_CXX, else the first of
/// cc, gcc, clang (c++, g++, clang++) in PATH.
#[derive(Args, Debug)]
#[command(
    disable_help_flag = true,
    after_long_help = "\
The wrapper's own options (also in TEEPERF_CC_OPTIONS, separated by spaces):
  --teeperf-compiler=NAME          the compiler to stand in for
  --teeperf-only=PATTERN           hooks only in functions of this pattern, or of another --teeperf-only
  --teeperf-exclude=PATTERN        no hooks in functions of this pattern, whatever --teeperf-only says
  --teeperf-min-size=N             no hooks in functions of fewer than N instructions, as they are compiled
                                   with hooks, without what calls these; with what was inlined into them
  --teeperf-hooks=late             hooks in the compiler's assembly, when its work is done: calls are those of the machine,
                                   after inlining. This is the default wherever there is such assembly
  --teeperf-hooks=source           hooks in the functions of the source, by the compiler: exact
                                   calls of the source. They cost more, most of all where nothing
                                   is recorded
  --teeperf-after-inlining         with hooks of the source, no hooks in functions where they are inlined (clang, which always
                                   does so)
  --teeperf-no-hooks               no hooks at all; link as if there were
  --teeperf-system-headers         hooks in functions of the system's headers too
  --teeperf-help                   this text

Patterns:
  parse            functions of this name; in C++ without parameters and template arguments, or with them: 'parse(int)'
  'ns::*' 'get_?'  a glob; \\ takes the meaning of the next character away
  '/^get_[xy]/'    a regular expression, to be found in the name
  file:a.c         functions written in a file of this name, such as a header
  file:src/a.c     or in one whose path ends so; file:/… is a whole path, file:src/ all below a folder,
  'file:src/*.h'   a glob, in which ** crosses folders

A function that is inlined has hooks of its own where it is (gcc): they come and go with the function.
The same, for a project, in teeperf.toml in its folder, or in the file that TEEPERF_CONFIG names:
  [build]
  only = [\"file:src/\"]
  exclude = [\"file:src/generated/\", \"get_*\"]
  min-size = 10
  hooks = \"source\"
  after-inlining = false
  system-headers = false

They are those of `teeperf help patterns`. `teeperf selection PROGRAM` tells which fit no function of it; `teeperf record` warns of them.

Examples:
  make CC=\"teeperf cc\" CXX=\"teeperf c++\"
  CC=\"teeperf cc\" CXX=\"teeperf c++\" cmake -B build
  CC=\"teeperf cc\" ./configure
  CC=\"teeperf cc\" meson setup build
  TEEPERF_CC=clang-18 teeperf cc -O2 a.c -o a
  TEEPERF_CC_OPTIONS=--teeperf-exclude=file:third_party/ make CC=\"teeperf cc\""
)]
pub(crate) struct WrapperArguments {
    /// Words for the compiler
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMPILER ARGUMENTS")]
    _words: Vec<OsString>,
}

/// What `teeperf cc --teeperf-help` shows; `teeperf help cc` is the same.
pub(crate) fn print_wrapper_help() -> Result<()> {
    let mut cli = config::definition();
    cli.build();
    if let Some(wrapper) = cli.find_subcommand_mut("cc") {
        // Every word behind the wrapper's name is the compiler's.
        let mut wrapper = wrapper.clone().mut_arg("color", |arg| arg.hide(true));
        commands::print(wrapper.render_long_help().to_string().as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }
}
