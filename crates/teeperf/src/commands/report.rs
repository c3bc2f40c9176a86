//! `teeperf report`: text for people, JSON for programs.

use super::gmon;
use super::reading::{self, Source};
use super::tables;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use teeperf_profile::aggregate::Pattern;
use teeperf_profile::crossings::{self, Crossing};
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
  teeperf report --around malloc              who called it, and what it called
  teeperf report --by process                 functions of each process
  teeperf report --lengths --sort calls       how long single calls took: mean, percentiles, longest
  teeperf report --histogram parse            the same of parse, as a histogram
  teeperf report --lines                      where functions are defined
  teeperf report --inlined                    what clang inlined into them, whose time is theirs
  teeperf report --crossing 'host_*'          advice about functions that leave an enclave, too
  teeperf report --csv > functions.csv        for a spreadsheet; likewise the other tables
  teeperf report --json program.teeperf | jq '.functions[0]'
  teeperf report gmon.out --elf program       a file of gprof; several are summed
  teeperf report log --elf program            a log of the original TEE-Perf")]
pub(crate) struct Arguments {
    #[command(flatten)]
    recording: reading::Arguments,
    /// More gmon files, to be summed
    more: Vec<PathBuf>,
    /// JSON on one line; with --tree, with call paths; likewise with what other tables have. Times are nanoseconds
    #[arg(long, conflicts_with_all = ["threads", "sort", "limit", "csv", "lines", "inlined"])]
    json: bool,
    /// The table as CSV, with a header, all columns and rows, and nothing rounded
    #[arg(long, conflicts_with = "tree")]
    csv: bool,
    /// The call tree instead of the table of functions
    #[arg(long, conflicts_with_all = ["sort", "limit"], group = "table")]
    tree: bool,
    /// The table of threads alone
    #[arg(long, group = "table")]
    threads: bool,
    #[command(flatten)]
    table: tables::Arguments,
    /// Order of functions
    #[arg(long, value_enum, value_name = "BY", default_value_t = Sort::SelfTime)]
    sort: Sort,
    /// Most functions, threads and groups to print [default: 20; of CSV: all]
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Functions that leave an enclave or go into the kernel, beside those whose names or code say so: advice where they take much
    /// of the time; a name, a part of one, or a pattern with *
    #[arg(long, value_name = "FUNCTION")]
    crossing: Vec<String>,
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

impl From<Sort> for text::Sort {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::SelfTime => Self::SelfTime,
            Sort::Total => Self::Total,
            Sort::Calls => Self::Calls,
            Sort::Name => Self::Name,
        }
    }
}

impl Arguments {
    /// Whether it takes call paths, threads or events to know what was asked for.
    fn needs_paths(&self) -> bool {
        let table = &self.table;
        self.tree || self.threads || table.needs_threads() || self.recording.is_of_paths()
    }

    /// Functions whose time is that of crossings.
    fn crossings(&self, profile: &Profile) -> Vec<Crossing> {
        let patterns: Vec<Pattern> = self.crossing.iter().map(Pattern::new).collect();
        crossings::find(profile, &patterns)
    }

    fn profile(&self) -> Result<Profile> {
        let unsaid = &self.recording.unsaid;
        match self.recording.open()? {
            Source::Gmon(..) if self.needs_paths() => bail!(
                "a gmon file knows neither call paths, threads nor single calls: --tree, --threads, --by thread and \
                 process, --lengths, --histogram, --inlined, --thread, --focus, --ignore, --path, --since and --until are for \
                 recordings"
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
            source => self.recording.profile_with(source, self.table.wanted()),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let profile = arguments.profile()?;
    let selection = arguments.recording.selection_in_words();
    let sort = arguments.sort.into();
    if arguments.json {
        let call_tree = arguments.tree;
        let crossings = arguments.crossings(&profile);
        let options =
            json::Options { call_tree, selection, crossings, ..arguments.table.json(&profile)? };
        return super::to_stdout(|out| json::write(&profile, &options, out));
    }
    if arguments.csv {
        let limit = arguments.limit.unwrap_or(usize::MAX);
        return arguments.table.csv(&profile, sort, limit, arguments.threads);
    }
    let limit = arguments.limit.unwrap_or(text::Options::default().limit);
    if arguments.table.is_any() {
        return arguments.table.text(&profile, sort, limit, &selection);
    }
    let options = text::Options {
        sort,
        limit,
        functions: !arguments.tree && !arguments.threads,
        call_tree: arguments.tree,
        threads: !arguments.tree,
        selection,
        crossings: arguments.crossings(&profile),
        ..text::Options::default()
    };
    super::to_stdout(|out| text::write(&profile, &options, &super::terminal::style(), out))
}
