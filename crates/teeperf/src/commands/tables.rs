//! Which table of a report is wanted, beside the usual ones, and the writing of it.

use super::reading::{Part, Wanted};
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use std::io::Write;
use teeperf_profile::aggregate::{self, Sort};
use teeperf_profile::around::{Around, around};
use teeperf_profile::groups::{self, Group, groups};
use teeperf_profile::inlined;
use teeperf_profile::model::{FunctionId, Profile};
use teeperf_profile::pattern::Pattern;
use teeperf_symbols::Search;
use teeperf_view::tables::{self, Order, Table};
use teeperf_view::{json, text};

/// Functions that are looked at one by one, at most, where all are for programs.
const MOST_AROUND: usize = 100;

/// One of these at a time.
#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Who called a function, and what it called (see `teeperf help patterns`)
    #[arg(long, value_name = "PATTERN", group = "table", value_parser = Pattern::new)]
    around: Option<Pattern>,
    /// Who called a function
    #[arg(long, value_name = "PATTERN", group = "table", value_parser = Pattern::new)]
    callers: Option<Pattern>,
    /// What a function called
    #[arg(long, value_name = "PATTERN", group = "table", value_parser = Pattern::new)]
    callees: Option<Pattern>,
    /// Functions of each thread, process, module or source file
    #[arg(long, value_enum, value_name = "WHAT", group = "table")]
    by: Option<By>,
    /// How long single calls took: mean, percentiles, longest
    #[arg(long, group = "table")]
    lengths: bool,
    /// How many calls of a function took how long, with bars
    #[arg(long, value_name = "PATTERN", group = "table", value_parser = Pattern::new)]
    histogram: Option<Pattern>,
    /// Functions with those that the compiler inlined into them, as the debug information of the files tells
    #[arg(long, group = "table")]
    inlined: bool,
    /// What the program put on the time line: marks, values of counters, notes
    #[arg(long, group = "table")]
    time_line: bool,
    /// Functions with the file and line of their definition
    #[arg(long, group = "table")]
    lines: bool,
    /// Calls between worlds, as `record --sgx` and --optee record them: how many, how long, and the page faults and context
    /// switches in them
    #[arg(long, group = "table")]
    crossings: bool,
}

/// What functions are put together by.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// The thread that called them
    Thread,
    /// The process that called them
    Process,
    /// The program or library that they are in
    Module,
    /// The source file that they are written in
    File,
}

impl Arguments {
    /// Whether one was asked for.
    pub(crate) fn is_any(&self) -> bool {
        let is_plain =
            self.lengths || self.lines || self.inlined || self.time_line || self.crossings;
        self.pattern().is_some() || self.by.is_some() || is_plain
    }

    /// Whether it is the table of lengths.
    pub(crate) fn is_of_lengths(&self) -> bool {
        self.lengths
    }

    /// Whether it tells how long single calls took.
    pub(crate) fn is_of_single_calls(&self) -> bool {
        self.lengths || self.histogram.is_some()
    }

    /// Whether it takes the files of programs and libraries.
    pub(crate) fn needs_files(&self) -> bool {
        self.inlined
    }

    /// Whether it is of threads, or of single calls.
    pub(crate) fn needs_threads(&self) -> bool {
        let is_of_events = self.wanted().lengths || self.time_line || self.crossings;
        is_of_events || self.inlined || matches!(self.by, Some(By::Thread | By::Process))
    }

    /// What it takes to know.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted {
            lengths: self.is_of_single_calls() || self.crossings,
            by_place: self.inlined,
            ..Wanted::default()
        }
    }

    /// What JSON has besides.
    pub(crate) fn json(&self, profile: &Profile, part: &Part) -> Result<json::Options> {
        let is_around = self.pattern().is_some() && self.histogram.is_none();
        Ok(json::Options {
            around: if is_around { Some(self.around(profile, part, MOST_AROUND)?.0) } else { None },
            by: self.groups(profile, Sort::SelfTime),
            histogram: self.histogram.as_ref().map(|pattern| part.found(pattern, profile)),
            ..json::Options::default()
        })
    }

    /// Writes the table as CSV.
    pub(crate) fn csv(
        &self,
        profile: &Profile,
        part: &Part,
        order: (Sort, Order),
        limit: usize,
        threads: bool,
        code: &Search,
    ) -> Result<()> {
        if let Some(pattern) = &self.histogram {
            let found = self.histograms(profile, part, pattern, limit)?.0;
            let mut all = Table::default();
            for table in found {
                all.columns.clone_from(&table.columns);
                all.unit = table.unit;
                all.rows.extend(table.rows);
            }
            return super::to_stdout(|out| tables::write_csv(&all, out));
        }
        let table = if self.pattern().is_some() {
            let (list, _) = self.around(profile, part, MOST_AROUND.min(limit))?;
            tables::neighbours(profile, &list, self.has_callers(), self.has_callees())
        } else if let Some((by, groups)) = self.groups(profile, order.0) {
            tables::by(profile, &groups, by, limit, false)
        } else if self.lengths {
            tables::lengths(profile, order.1, limit)
        } else if self.time_line {
            tables::time_line(profile, limit)
        } else if self.crossings {
            tables::crossings(profile, order.0, limit)
        } else if self.lines {
            tables::lines(profile, order.0, limit)
        } else if self.inlined {
            self.inlined(profile, order.0, limit, code)
        } else if threads {
            tables::threads(profile, limit)
        } else {
            tables::functions(profile, order.0, limit)
        };
        super::to_stdout(|out| tables::write_csv(&table, out))
    }

    /// Writes it for people.
    pub(crate) fn text(
        &self,
        profile: &Profile,
        part: &Part,
        order: (Sort, Order),
        limit: usize,
        code: &Search,
    ) -> Result<()> {
        let style = super::terminal::style();
        let selection = part.selection_in_words();
        let (list, more) = self.tables(profile, part, order, limit, code)?;
        super::to_stdout(|out| {
            text::write_head(profile, &selection, &style, out)?;
            for table in &list {
                tables::write_text(table, &profile.functions, &style, out)?;
            }
            if more > 0 {
                let s = if more == 1 { "" } else { "s" };
                writeln!(out, "\n… {more} more function{s} that fit; --limit shows more")?;
            }
            Ok(())
        })
    }

    /// The tables, and how many functions that fit have none.
    fn tables(
        &self,
        profile: &Profile,
        part: &Part,
        order: (Sort, Order),
        limit: usize,
        code: &Search,
    ) -> Result<(Vec<Table>, usize)> {
        if let Some(pattern) = &self.histogram {
            let (found, all) = self.histograms(profile, part, pattern, limit)?;
            let more = all - found.len();
            return Ok((found, more));
        }
        if self.pattern().is_some() {
            let (list, all) = self.around(profile, part, limit)?;
            let of = |one: &Around| {
                tables::around(profile, one, self.has_callers(), self.has_callees(), limit)
            };
            return Ok((list.iter().flat_map(of).collect(), all - list.len()));
        }
        let table = match self.groups(profile, order.0) {
            Some((by, groups)) => tables::by(profile, &groups, by, limit, true),
            None if self.lengths => tables::lengths(profile, order.1, limit),
            None if self.inlined => self.inlined(profile, order.0, limit, code),
            None if self.time_line => tables::time_line(profile, limit),
            None if self.crossings => tables::crossings(profile, order.0, limit),
            None => tables::lines(profile, order.0, limit),
        };
        Ok((vec![table], 0))
    }

    fn inlined(&self, profile: &Profile, sort: Sort, limit: usize, code: &Search) -> Table {
        let rows = aggregate::table(profile, sort);
        let functions: Vec<FunctionId> = rows.iter().take(limit).map(|row| row.function).collect();
        tables::inlined(profile, &inlined::of(profile, &functions, code), sort)
    }

    fn around(&self, profile: &Profile, part: &Part, most: usize) -> Result<(Vec<Around>, usize)> {
        let Some(pattern) = self.pattern() else { return Ok((Vec::new(), 0)) };
        let (list, all) = around(profile, &part.found(pattern, profile), most);
        if all == 0 {
            let text = pattern.text();
            bail!(
                "no function that was called fits {text:?}; `teeperf help patterns` says how functions are named"
            );
        }
        Ok((list, all))
    }

    fn histograms(
        &self,
        profile: &Profile,
        part: &Part,
        pattern: &Pattern,
        limit: usize,
    ) -> Result<(Vec<Table>, usize)> {
        let (found, all) = tables::histogram(profile, &part.found(pattern, profile), limit);
        if all == 0 {
            bail!("of no function that fits {:?} there is a call that was timed", pattern.text());
        }
        Ok((found, all))
    }

    fn groups(&self, profile: &Profile, sort: Sort) -> Option<(groups::By, Vec<Group>)> {
        let by = match self.by? {
            By::Thread => groups::By::Thread,
            By::Process => groups::By::Process,
            By::Module => groups::By::Module,
            By::File => groups::By::File,
        };
        Some((by, groups(profile, by, sort)))
    }

    /// The function that was named.
    fn pattern(&self) -> Option<&Pattern> {
        let of_calls = self.around.as_ref().or(self.callers.as_ref()).or(self.callees.as_ref());
        of_calls.or(self.histogram.as_ref())
    }

    fn has_callers(&self) -> bool {
        self.callees.is_none()
    }

    fn has_callees(&self) -> bool {
        self.callers.is_none()
    }
}
