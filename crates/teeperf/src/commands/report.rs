//! `teeperf report`: text for people, JSON for programs.

use super::gmon;
use super::reading::{self, Source};
use super::tables;
use crate::recordings;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::PathBuf;
use teeperf_profile::aggregate;
use teeperf_profile::crossings::{self, Crossing};
use teeperf_profile::join::join;
use teeperf_profile::model::Profile;
use teeperf_profile::pattern::Pattern;
use teeperf_symbols::Search;
use teeperf_view::tables::Order;
use teeperf_view::{json, text};

/// Prints where the time went: functions, call tree, threads
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf report                              the newest recording in this folder
  teeperf report --tree --focus 'parse*'      the call tree of what has to do with parsing
  teeperf report --sort calls --limit 50      what is called most
  teeperf report --since 10s --until 12s      what happened then; times as in `teeperf help cut`
  teeperf report --path '^main;.*;malloc$'    calls of malloc, by whatever way from main
  teeperf report --tree --root parse          the call tree below parse, whoever called it
  teeperf report --fold-unhooked              time in libraries and the kernel is that of the function that called
  teeperf report --group 'alloc=malloc,free'  functions as one
  teeperf report --around malloc              who called it, and what it called
  teeperf report --by process                 functions of each process
  teeperf report --lengths --sort p99         how long single calls took: mean, percentiles, longest
  teeperf report --histogram parse            the same of parse, as a histogram
  teeperf report --crossings --sort total     ECALLs and OCALLs of enclaves, calls of trusted applications
  teeperf report --lines                      where functions are defined
  teeperf report --inlined                    what clang inlined into them, whose time is theirs
  teeperf report --crossing 'host_*'          advice about functions that leave an enclave, too
  teeperf report --csv > functions.csv        for a spreadsheet; likewise the other tables
  teeperf report --json program.teeperf | jq '.functions[0]'
  teeperf report a.data b.data                files of perf, or recordings: their sum
  teeperf report gmon.out --elf program       a file of gprof; several are summed
  teeperf report log --elf program            a log of the original TEE-Perf")]
pub(crate) struct Arguments {
    #[command(flatten)]
    recording: reading::Arguments,
    /// More files, to be summed: recordings, files of perf, or gmon files
    more: Vec<PathBuf>,
    /// JSON on one line; with --tree, with call paths; likewise with what other tables have. Times are nanoseconds
    #[arg(long, conflicts_with_all = ["threads", "sort", "limit", "csv", "lines", "inlined", "crossings"])]
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
    /// Order of functions; percentiles are for --lengths
    #[arg(long, value_enum, value_name = "BY", default_value_t = Sort::SelfTime)]
    sort: Sort,
    /// Most functions, threads and groups to print [default: 20; of CSV: all]
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Functions that leave an enclave or go into the kernel, beside those whose names or code say so: advice where they take much
    /// of the time (see `teeperf help patterns`)
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::new)]
    crossing: Vec<Pattern>,
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
    /// Mean time of a call
    Mean,
    /// Its shortest call, where they were timed
    Min,
    /// Its longest call, where they were timed
    Max,
    /// What half of its calls did not exceed
    P50,
    /// Likewise nine tenths
    P90,
    /// Likewise 99 of a hundred
    P99,
    /// Likewise 999 of a thousand
    #[value(name = "p99.9", alias = "p999")]
    P99_9,
    /// Name
    Name,
}

impl Sort {
    /// Of a table of functions; nothing where it takes lengths of calls.
    fn of_functions(self) -> Option<text::Sort> {
        Some(match self {
            Self::SelfTime => text::Sort::SelfTime,
            Self::Total => text::Sort::Total,
            Self::Calls => text::Sort::Calls,
            Self::Mean => text::Sort::Mean,
            Self::Min => text::Sort::Shortest,
            Self::Max => text::Sort::Longest,
            Self::Name => text::Sort::Name,
            Self::P50 | Self::P90 | Self::P99 | Self::P99_9 => return None,
        })
    }

    /// Of a table of lengths.
    fn of_lengths(self) -> Order {
        match self {
            Self::Mean => Order::Mean,
            Self::Min => Order::Shortest,
            Self::Max => Order::Longest,
            Self::P50 => Order::Percentile(0),
            Self::P90 => Order::Percentile(1),
            Self::P99 => Order::Percentile(2),
            Self::P99_9 => Order::Percentile(3),
            Self::SelfTime => Order::Table(text::Sort::SelfTime),
            Self::Total => Order::Table(text::Sort::Total),
            Self::Calls => Order::Table(text::Sort::Calls),
            Self::Name => Order::Table(text::Sort::Name),
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
        crossings::find(profile, &self.crossing)
    }

    /// Whether an option means nothing beside the others.
    pub(crate) fn leaves_idle(&self, option: &str) -> bool {
        option == "sort" && !self.table.is_of_lengths() && self.sort.of_functions().is_none()
    }

    /// The order of functions, and that of a table of lengths.
    fn order(&self, profile: &Profile) -> Result<(text::Sort, Order)> {
        let order = self.sort.of_lengths();
        if self.table.is_of_lengths() {
            return Ok((text::Sort::SelfTime, order));
        }
        let rows = aggregate::table(profile, text::Sort::Name);
        let is_timed = rows.iter().any(|row| row.extremes.is_some());
        match self.sort.of_functions() {
            Some(text::Sort::Shortest | text::Sort::Longest) if !is_timed => {}
            Some(sort) => return Ok((sort, order)),
            None => {}
        }
        bail!(
            "single calls are timed for --lengths: --sort min, max and percentiles are for that table"
        )
    }

    /// Where tables find the code of functions, as far as they look at that.
    fn code(&self) -> Result<Search> {
        match self.table.needs_files() {
            true => Ok(self.recording.unsaid.search_for_code(&self.recording.path()?)),
            false => Ok(Search::default()),
        }
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
            source => {
                let wanted = self.table.wanted();
                let first = self.recording.profile_with(source, wanted)?;
                if self.more.is_empty() {
                    return Ok(first);
                }
                let path = self.recording.path()?;
                let mut all = vec![(path.display().to_string(), first)];
                for path in &self.more {
                    let path = recordings::named_or_newest(Some(path))?;
                    let name = path.display().to_string();
                    let part: &reading::Part = &self.recording;
                    let profile = match reading::open(&path)? {
                        Source::Gmon(..) => bail!(
                            "{name} is a gmon file, and the files before it are none: each kind is summed by itself"
                        ),
                        source => part.profile_with(source, &path, wanted)?,
                    };
                    all.push((name, profile));
                }
                join(all).context("there is no file to be read")
            }
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let profile = arguments.profile()?;
    ensure!(
        !profile.info.is_sampled() || !arguments.table.is_of_single_calls(),
        "samples tell where time went, and not how long a call took: --lengths and --histogram are for calls of programs \
         that were built with hooks; next: the same report without, or teeperf cc, and teeperf record without --probe sample"
    );
    let part: &reading::Part = &arguments.recording;
    let selection = part.selection_in_words();
    let order = arguments.order(&profile)?;
    if arguments.json {
        let call_tree = arguments.tree;
        let crossings = arguments.crossings(&profile);
        let more = arguments.table.json(&profile, part)?;
        let of_beside = |profile: &Profile| {
            let more = arguments.table.json(profile, part)?;
            let (selection, crossings) = (selection.clone(), arguments.crossings(profile));
            Ok(json::Options { call_tree, selection, crossings, ..more })
        };
        let beside = profile.beside.iter().map(of_beside).collect::<Result<_>>()?;
        let options = json::Options { call_tree, selection, crossings, beside, ..more };
        return super::to_stdout(|out| json::write(&profile, &options, out));
    }
    let code = arguments.code()?;
    if arguments.csv || arguments.table.is_any() {
        part.say_what_is_left_out(&profile);
    }
    if arguments.csv {
        let limit = arguments.limit.unwrap_or(usize::MAX);
        return arguments.table.csv(&profile, part, order, limit, arguments.threads, &code);
    }
    let limit = arguments.limit.unwrap_or(text::Options::default().limit);
    if arguments.table.is_any() {
        return arguments.table.text(&profile, part, order, limit, &code);
    }
    let mut options = text::Options {
        sort: order.0,
        limit,
        functions: !arguments.tree && !arguments.threads,
        call_tree: arguments.tree,
        threads: !arguments.tree,
        selection,
        crossings: arguments.crossings(&profile),
        ..text::Options::default()
    };
    let style = super::terminal::style();
    super::to_stdout(|out| {
        text::write(&profile, &options, &style, out)?;
        for profile in &profile.beside {
            options.crossings = arguments.crossings(profile);
            writeln!(out)?;
            text::write_beside(profile, &options, &style, out)?;
        }
        Ok(())
    })
}
