//! `teeperf report`: text for people, JSON for programs.

use super::gmon;
use super::reading::{self, Source};
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use teeperf_profile::model::Profile;
use teeperf_view::{json, text};

/// Prints where the time went: functions, call tree, threads
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf report                              the newest recording in this folder
  teeperf report --tree --focus parse         the call tree of what has to do with parsing
  teeperf report --sort calls --limit 50      what is called most
  teeperf report --since 10s --until 12s      what happened then; times as in `teeperf help cut`
  teeperf report --path '^main;.*;malloc$'    calls of malloc, by whatever way from main
  teeperf report --json program.teeperf | jq '.functions[0]'
  teeperf report gmon.out --elf program       a file of gprof; several are summed
  teeperf report log --elf program            a log of the original TEE-Perf")]
pub(crate) struct Arguments {
    #[command(flatten)]
    recording: reading::Arguments,
    /// More gmon files, to be summed
    more: Vec<PathBuf>,
    /// JSON on one line; with --tree, with call paths. Times are nanoseconds
    #[arg(long, conflicts_with_all = ["threads", "sort", "limit"])]
    json: bool,
    /// The call tree instead of the table of functions
    #[arg(long, conflicts_with_all = ["sort", "limit"])]
    tree: bool,
    /// The table of threads alone
    #[arg(long, conflicts_with = "tree")]
    threads: bool,
    /// Order of functions
    #[arg(long, value_enum, value_name = "BY", default_value_t = Sort::SelfTime)]
    sort: Sort,
    /// Most functions and threads to print
    #[arg(long, value_name = "COUNT", default_value_t = text::Options::default().limit)]
    limit: usize,
}

/// Order of functions.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sort {
    /// Time in the function itself
    #[value(name = "self")]
    SelfTime,
    /// Time in it and all it called
    Total,
    /// Number of calls
    Calls,
    /// Name
    Name,
}

impl Arguments {
    fn profile(&self) -> Result<Profile> {
        let unsaid = &self.recording.unsaid;
        match self.recording.open()? {
            Source::Gmon(..) if self.tree || self.threads || self.recording.is_of_paths() => bail!(
                "a gmon file knows neither call paths nor threads: --tree, --threads, --thread, --focus, \
                 --ignore, --path, --since and --until are for recordings"
            ),
            Source::Gmon(_, name) if unsaid.counter_hz.is_some() => {
                bail!(
                    "{name} is a gmon file, which says its rate itself: --counter-hz is for logs of TEE-Perf"
                )
            }
            Source::Gmon(file, name) => {
                let bias = unsaid.bias.unwrap_or_default();
                gmon::profile(file, &name, &self.more, unsaid.program()?, bias)
            }
            Source::Recording(_, name) | Source::Log(_, name) if !self.more.is_empty() => bail!(
                "{name} does not begin as a gmon file does: several files are for these. {}",
                reading::old_gmon(&name)
            ),
            source => self.recording.profile_of(source, false),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let profile = arguments.profile()?;
    if arguments.json {
        let options = json::Options { call_tree: arguments.tree };
        return super::to_stdout(|out| json::write(&profile, &options, out));
    }
    let options = text::Options {
        sort: match arguments.sort {
            Sort::SelfTime => text::Sort::SelfTime,
            Sort::Total => text::Sort::Total,
            Sort::Calls => text::Sort::Calls,
            Sort::Name => text::Sort::Name,
        },
        limit: arguments.limit,
        functions: !arguments.tree && !arguments.threads,
        call_tree: arguments.tree,
        threads: !arguments.tree,
        selection: arguments.recording.selection_in_words(),
        ..text::Options::default()
    };
    super::to_stdout(|out| text::write(&profile, &options, &reading::style(), out))
}
