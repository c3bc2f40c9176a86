//! The differences as text: what is to know first, then the whole, then a line for each function.

use super::{Sort, alike, function, signed, signed_percent, sorted, told};
use crate::apart::Apart;
use crate::style::{Paint, Style};
use crate::text::{heading, labelled, say};
use crate::{names, units};
use std::io::{self, Write};
use teeperf_profile::diff::{Change, Diff, Figure, Presence};

/// Columns from which modules have room.
const WIDE: usize = 118;
/// Columns of the module.
const MODULE: usize = 16;
/// Functions named for most of the change.
const FIRST: usize = 3;

/// What is shown.
#[derive(Clone, Debug)]
pub struct Options {
    /// Order of functions.
    pub sort: Sort,
    /// Most functions.
    pub limit: usize,
    /// Functions whose self time differs by less than this part of what it was are left out, but for those that are new
    /// or gone.
    pub threshold: f64,
    /// What of the recordings is compared, such as `focus on "parse"`; empty when it is all.
    pub selection: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { sort: Sort::SelfTime, limit: 20, threshold: 0.0, selection: String::new() }
    }
}

/// Writes the comparison.
pub fn write(
    diff: &Diff,
    options: &Options,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let findings = alike::findings(diff);
    for finding in findings.iter().filter(|finding| finding.warning) {
        say(finding, style, out)?;
    }
    let whole = format!("{} ({})", told(diff.unit, &diff.whole), alike::runs(diff));
    labelled(style.paint(Paint::Heading, "Time"), &whole, style, out)?;
    labelled(style.paint(Paint::Faint, "Most of it"), &most_of_it(diff), style, out)?;
    for finding in findings.iter().filter(|finding| !finding.warning) {
        say(finding, style, out)?;
    }
    if !options.selection.is_empty() {
        let shown = names::printable(&options.selection);
        labelled(style.paint(Paint::Faint, "Shown"), &shown, style, out)?;
    }
    let is_large = |change: &&Change| {
        let part = change.self_time.relative();
        change.is_one_sided() || part.is_none_or(|part| part.abs() >= options.threshold)
    };
    let mut changes: Vec<&Change> =
        sorted(diff, options.sort).into_iter().filter(is_large).collect();
    let all = changes.len();
    changes.truncate(options.limit);
    let by = match options.sort {
        Sort::SelfTime => "change of self time",
        Sort::Total => "change of total time",
        Sort::Calls => "change of calls",
        Sort::Name => "name",
    };
    let title = format!(
        "Functions by {by}: {} of {}",
        units::count(changes.len() as u64),
        units::count(all as u64)
    );
    heading(style, &title, out)?;
    Table::new(diff, &changes, style).write(&changes, out)
}

/// The functions that account for most of the change.
fn most_of_it(diff: &Diff) -> String {
    let changed: Vec<&Change> =
        diff.changes.iter().filter(|change| change.self_time.is_change).collect();
    if changed.is_empty() {
        return "no function's self time changed by more than noise explains".into();
    }
    let named: Vec<String> = changed
        .iter()
        .take(FIRST)
        .map(|change| {
            let name = names::label(&function(diff, change).name, 40);
            format!("{name} {}", signed(diff.unit, change.self_time.difference()))
        })
        .collect();
    let rest = match changed.len().saturating_sub(FIRST) {
        0 => String::new(),
        rest => format!("; {} more changed", units::counted(rest as u64, "function")),
    };
    named.join(", ") + &rest
}

struct Table<'a> {
    diff: &'a Diff,
    style: &'a Style,
    /// What the column of calls is called.
    calls_head: &'static str,
    calls: usize,
    more: usize,
    name: usize,
    has_module: bool,
    apart: Apart,
}

impl<'a> Table<'a> {
    fn new(diff: &'a Diff, changes: &[&Change], style: &'a Style) -> Self {
        let widest = |of: &dyn Fn(&Change) -> String| {
            changes.iter().map(|change| names::columns(&of(change))).max().unwrap_or(0)
        };
        let calls_head =
            diff.runs.after.first().map_or("CALLS", |run| units::calls_head(&run.info));
        let calls = widest(&|change| count(change.calls.after)).max(calls_head.len());
        let more = widest(&|change| calls_difference(&change.calls)).max(6);
        let has_module = style.columns() >= WIDE;
        let others = 8 + 1 + 8 + 1 + 11 + 1 + 9 + 1 + 9 + 2 + calls + 1 + more + 2;
        let module = if has_module { MODULE + 2 } else { 0 };
        let name = style.columns().saturating_sub(others + module).max(20);
        let apart = Apart::of(&diff.functions);
        let longest =
            widest(&|change| apart.fit(change.function, &named(diff, change), 1 << 20)).max(8);
        let name = name.min(longest);
        Self { diff, style, calls_head, calls, more, name, has_module, apart }
    }

    fn write(&self, changes: &[&Change], out: &mut impl Write) -> io::Result<()> {
        let module = if self.has_module {
            format!("{:1$}  MODULE", "", self.name - 8)
        } else {
            String::new()
        };
        let head = format!(
            "{:>8} {:>8} {:>11} {:>9} {:>9}  {:>calls$} {:>more$}  FUNCTION{module}",
            "BEFORE ",
            "AFTER ",
            "CHANGE ",
            "SELF% ",
            "TOTAL% ",
            self.calls_head,
            "CHANGE",
            calls = self.calls,
            more = self.more,
        );
        writeln!(out, "{}", self.style.paint(Paint::Faint, head))?;
        for change in changes {
            self.row(change, out)?;
        }
        let is_noise = |figure: &Figure| !figure.is_change && figure.difference() != 0.0;
        if changes.iter().any(|change| is_noise(&change.self_time) || is_noise(&change.total)) {
            let text = "≈ within noise";
            writeln!(out, "{}", self.style.paint(Paint::Faint, text))?;
        }
        Ok(())
    }

    fn row(&self, change: &Change, out: &mut impl Write) -> io::Result<()> {
        let unit = self.diff.unit;
        let function = function(self.diff, change);
        let difference = change.self_time.difference();
        let sign = if difference < 0.0 { '-' } else { '+' };
        let part = |figure: &Figure| match (figure.is_change, change.presence) {
            _ if figure.difference() == 0.0 => "=".into(),
            (true, Presence::New) => "new".into(),
            (true, Presence::Gone) => "gone".into(),
            (true, Presence::Both) => signed_percent(figure),
            (false, _) => format!("≈{}", signed_percent(figure)),
        };
        let mark = if change.self_time.is_change { ' ' } else { '≈' };
        let shown = match difference {
            0.0 => format!("{:>11}", "=  "),
            _ => format!(" {mark}{sign}{}", units::time(unit, difference.abs()).trim_start()),
        };
        let mut line = format!(
            "{} {} {shown:>11} {:>9} {:>9}  {:>calls$} {:>more$}  {}",
            units::time(unit, change.self_time.before),
            units::time(unit, change.self_time.after),
            part(&change.self_time),
            part(&change.total),
            count(change.calls.after),
            calls_difference(&change.calls),
            crate::text::left(
                &self.apart.fit(change.function, &named(self.diff, change), self.name),
                self.name
            ),
            calls = self.calls,
            more = self.more,
        );
        if self.has_module {
            line.push_str(&format!("  {}", names::fit(&function.module, MODULE)));
        }
        let is_change =
            change.self_time.is_change || change.total.is_change || change.calls.is_change;
        let paint = match (is_change, change.self_time.is_change, difference > 0.0) {
            (false, ..) => Paint::Faint,
            (_, true, true) => Paint::Hot,
            (_, true, false) => Paint::Better,
            _ => Paint::Plain,
        };
        writeln!(out, "{}", self.style.paint(paint, line.trim_end()))
    }
}

/// The name; of what was called on one side alone that is said.
fn named(diff: &Diff, change: &Change) -> String {
    let name = &function(diff, change).name;
    match change.presence {
        Presence::Both => name.clone(),
        Presence::New => format!("[new] {name}"),
        Presence::Gone => format!("[gone] {name}"),
    }
}

/// A mean of counts.
fn count(calls: f64) -> String {
    if calls.fract() == 0.0 || calls >= 100.0 {
        units::count(calls.round() as u64)
    } else {
        format!("{calls:.1}")
    }
}

fn calls_difference(calls: &Figure) -> String {
    let difference = calls.difference();
    if difference == 0.0 {
        return "=".into();
    }
    let sign = if difference < 0.0 { '-' } else { '+' };
    let mark = if calls.is_change { "" } else { "≈" };
    format!("{mark}{sign}{}", count(difference.abs()))
}
