//! Source with figures in its margin: at the line where a function is defined its calls, self and total time, at lines
//! from which alone it calls another those calls and their time. And the same as JSON, without the source.

mod extent;

use crate::apart::Apart;
use crate::names::{cut_end, fit, printable};
use crate::style::{Paint, Style};
use crate::units;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use teeperf_profile::annotate::{Callee, Noted};
use teeperf_profile::model::{CallGraph, Profile, Time};

/// Columns of the margin, up to the line's number.
const MARGIN: usize = 13 + 1 + units::TIME_COLUMNS + 1 + 6 + 1 + units::TIME_COLUMNS + 1 + 6;
/// Most lines shown of one function.
const MOST_LINES: usize = 400;
/// Lines shown before and behind one that has samples, where not all are.
const AROUND: usize = 2;
/// Spaces that stand for a tab.
const TAB: &str = "    ";

/// Writes the functions, file by file. `sources` has the text of files by path, as far as they were found. Where `is_cut`,
/// no line of them is wider than the style has columns.
pub fn write(
    profile: &Profile,
    noted: &[Noted],
    sources: &BTreeMap<String, String>,
    style: &Style,
    is_cut: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let graph = profile.graph.as_ref().map_or(0.0, CallGraph::time);
    let threads = profile.threads.iter().map(|thread| thread.tree.framed_ns());
    let whole = graph + threads.sum::<f64>();
    let apart = Apart::of(&profile.functions);
    let view = View { profile, style, apart, is_cut, has_names: noted.len() > 1, whole };
    let mut shown = None;
    for function in noted {
        let file = function.function.file.as_deref();
        let text = file.and_then(|file| sources.get(file));
        if shown != Some(file) {
            view.head(file, text.is_some(), out)?;
            shown = Some(file);
        }
        match (text, function.function.line) {
            (Some(text), Some(line)) => view.with_source(function, text, line as usize, out)?,
            _ => view.without_source(function, out)?,
        }
        writeln!(out)?;
    }
    Ok(())
}

struct View<'a> {
    profile: &'a Profile,
    style: &'a Style,
    apart: Apart,
    is_cut: bool,
    /// Each function's name stands above its source.
    has_names: bool,
    whole: f64,
}

impl View<'_> {
    fn head(&self, file: Option<&str>, has_text: bool, out: &mut impl Write) -> io::Result<()> {
        let name = file.map_or("(no source file is known)".into(), printable);
        let name = if has_text || file.is_none() { name } else { format!("{name} (not found)") };
        writeln!(out, "{}", self.style.paint(Paint::Heading, name))?;
        let head = format!(
            "{:>13} {:>time$} {:>6} {:>time$} {:>6}    LINE",
            if self.profile.info.is_sampled() { "SAMPLES" } else { "CALLS" },
            "SELF ",
            "SELF%",
            "TOTAL ",
            "TOTAL%",
            time = units::TIME_COLUMNS
        );
        writeln!(out, "{}", self.style.paint(Paint::Faint, head))
    }

    fn figures(&self, noted: &Noted) -> String {
        let (row, unit) = (&noted.row, self.profile.info.unit);
        let time = |time: &Time| {
            let share = units::percent(units::share(time.value, self.whole));
            format!("{} {share}", units::time(unit, time.value))
        };
        format!("{:>13} {} {}", units::count(row.calls), time(&row.self_time), time(&row.total))
    }

    /// Samples at a line and what they stand for, in the columns of calls and self times.
    fn of_line(&self, samples: u64, ns: f64) -> String {
        let time = units::time(self.profile.info.unit, ns);
        let share = units::percent(units::share(ns, self.whole));
        format!(
            "{:>13} {time} {share} {:total$}",
            units::count(samples),
            "",
            total = units::TIME_COLUMNS + 7
        )
    }

    /// Calls and time of what is called, in the columns of calls and totals.
    fn called(&self, callee: &Callee) -> String {
        format!(
            "{:>13} {:time$} {:6} {} {}",
            units::count(callee.calls),
            "",
            "",
            units::time(self.profile.info.unit, callee.total_ns),
            units::percent(units::share(callee.total_ns, self.whole)),
            time = units::TIME_COLUMNS,
        )
    }

    fn with_source(
        &self,
        noted: &Noted,
        text: &str,
        line: usize,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let lines: Vec<&str> = text.lines().collect();
        if line == 0 || line > lines.len() {
            writeln!(
                out,
                "{:MARGIN$}  the file has no line {line}: it is not that of the build",
                ""
            )?;
            return self.without_source(noted, out);
        }
        let defined = line;
        let line = extent::begin_of(&lines, line);
        let highest = noted.highest.map(|line| line as usize);
        let end = extent::end_of(&lines, line, highest, self.next(noted, defined));
        let last = noted.lines.last().map_or(0, |own| own.0 as usize);
        let end = end.max(last.min(lines.len()));
        let whole = end;
        let shown = shown(noted, line..=end);
        let end = shown.last().copied().unwrap_or(line);
        if self.has_names {
            let name = self.apart.fit(noted.id, &noted.function.name, self.style.columns());
            writeln!(out, "{}", self.style.paint(Paint::Heading, name))?;
        }
        let mut at_lines: HashMap<usize, Vec<&Callee>> = HashMap::new();
        let mut elsewhere = Vec::new();
        for callee in &noted.callees {
            match single_line(noted, callee).filter(|at| shown.binary_search(at).is_ok()) {
                Some(at) => at_lines.entry(at).or_default().push(callee),
                None => elsewhere.push(callee),
            }
        }
        let paint = Paint::of_share(units::share(noted.row.self_time.value, self.whole));
        // Where lines have figures of their own, those of all stand above.
        let has_lines = !noted.lines.is_empty();
        if has_lines {
            writeln!(out, "{}", self.style.paint(paint, self.figures(noted)))?;
        }
        let mut before = line - 1;
        for at in shown {
            if at > before + 1 {
                let text = format!("{:MARGIN$}          …", "");
                writeln!(out, "{}", self.style.paint(Paint::Faint, text))?;
            }
            before = at;
            let own = noted.lines.iter().find(|own| own.0 as usize == at);
            let margin = match own {
                Some(&(_, samples, ns)) => self.of_line(samples, ns),
                None if at == line && !has_lines => self.figures(noted),
                None => " ".repeat(MARGIN),
            };
            let paint = own.map_or(paint, |own| Paint::of_share(units::share(own.2, self.whole)));
            let source = printable(&lines[at - 1].replace('\t', TAB));
            let source = match self.is_cut {
                true => cut_end(&source, self.style.columns().saturating_sub(MARGIN + 10).max(20)),
                false => source,
            };
            let told = format!("{} {at:>7}  {source}", self.style.paint(paint, margin));
            writeln!(out, "{}", told.trim_end())?;
            for callee in at_lines.get(&at).into_iter().flatten() {
                let name = self.name(&callee.name, 14);
                let told = format!("{} {:>7}    => {name}", self.called(callee), "");
                writeln!(out, "{}", self.style.paint(Paint::Warm, told))?;
            }
        }
        if whole > end {
            let text =
                format!("{:MARGIN$}          … {} more lines, to line {whole}", "", whole - end);
            writeln!(out, "{}", self.style.paint(Paint::Faint, text))?;
        }
        self.callees(noted, &elsewhere, out)
    }

    /// The next line of the file at which another function is defined, as far as such were called.
    fn next(&self, noted: &Noted, line: usize) -> Option<usize> {
        let others =
            self.profile.functions.iter().filter(|other| other.file == noted.function.file);
        let lines = others.filter_map(|other| other.line.map(|line| line as usize));
        lines.filter(|&other| other > line).min()
    }

    fn without_source(&self, noted: &Noted, out: &mut impl Write) -> io::Result<()> {
        let line = noted.function.line.map_or("?".into(), |line| line.to_string());
        let room = self.style.columns().saturating_sub(MARGIN + 10).max(24);
        let name = self.apart.fit(noted.id, &noted.function.name, room);
        writeln!(out, "{} {line:>7}  {name}", self.figures(noted))?;
        self.callees(noted, &noted.callees.iter().collect::<Vec<_>>(), out)
    }

    /// What is called from more than one line, or nobody knows from where.
    fn callees(&self, noted: &Noted, callees: &[&Callee], out: &mut impl Write) -> io::Result<()> {
        for callee in callees {
            let lines: Vec<String> = callee
                .sites
                .iter()
                .map(|(file, line)| match noted.function.file.as_deref() == Some(file.as_str()) {
                    true => line.to_string(),
                    false => {
                        format!("{}:{line}", printable(file.rsplit('/').next().unwrap_or(file)))
                    }
                })
                .collect();
            let from = match lines.len() {
                0 => String::new(),
                1 => format!(", from line {}", lines[0]),
                _ => format!(", from {} sites, lines {}", callee.places, lines.join(", ")),
            };
            let name = self.name(&callee.name, 14 + from.chars().count());
            let told = format!("{} {:>7}    => {name}{from}", self.called(callee), "");
            let told = if self.is_cut { cut_end(&told, self.style.columns()) } else { told };
            writeln!(out, "{}", self.style.paint(Paint::Faint, told))?;
        }
        Ok(())
    }

    fn name(&self, name: &str, others: usize) -> String {
        fit(name, self.style.columns().saturating_sub(MARGIN + others).max(24))
    }
}

/// The lines to show of a function, in order: the first, or, where there are more and lines have samples, those with most and
/// what is around them.
fn shown(noted: &Noted, all: RangeInclusive<usize>) -> Vec<usize> {
    if all.clone().count() <= MOST_LINES || noted.lines.is_empty() {
        return all.take(MOST_LINES).collect();
    }
    let mut hottest = noted.lines.clone();
    hottest.sort_by_key(|&(_, samples, _)| Reverse(samples));
    let mut shown = BTreeSet::from([*all.start()]);
    for (line, ..) in hottest {
        let line = line as usize;
        let around = line.saturating_sub(AROUND)..=line + AROUND;
        shown.extend(around.filter(|line| all.contains(line)));
        if shown.len() >= MOST_LINES {
            break;
        }
    }
    shown.into_iter().collect()
}

/// The line from which alone a function calls another, in its own file.
fn single_line(noted: &Noted, callee: &Callee) -> Option<usize> {
    match &callee.sites[..] {
        [(file, line)] if noted.function.file.as_ref() == Some(file) => Some(*line as usize),
        _ => None,
    }
}

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    units: Units,
    functions: Vec<Function<'a>>,
}

#[derive(Serialize)]
struct Units {
    time: &'static str,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    module: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    calls: u64,
    #[serde(rename = "self")]
    self_time: f64,
    total: f64,
    callees: Vec<Called<'a>>,
    lines: Vec<OfLine>,
}

/// Samples at a line of the function's file.
#[derive(Serialize)]
struct OfLine {
    line: u32,
    samples: u64,
    #[serde(rename = "self")]
    self_time: f64,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    calls: u64,
    total: f64,
    sites: Vec<Place<'a>>,
}

#[derive(Serialize)]
struct Place<'a> {
    file: &'a str,
    line: u32,
}

/// Writes the figures as one line of JSON.
pub fn write_json(profile: &Profile, noted: &[Noted], out: &mut impl Write) -> io::Result<()> {
    let functions = noted.iter().map(|noted| Function {
        name: &noted.function.name,
        module: &noted.function.module,
        file: noted.function.file.as_deref(),
        line: noted.function.line,
        calls: noted.row.calls,
        self_time: noted.row.self_time.value,
        total: noted.row.total.value,
        callees: noted.callees.iter().map(called).collect(),
        lines: noted
            .lines
            .iter()
            .map(|&(line, samples, self_time)| OfLine { line, samples, self_time })
            .collect(),
    });
    let document = Document {
        format: "teeperf-annotation",
        version: 1,
        units: Units { time: units::name(profile.info.unit) },
        functions: functions.collect(),
    };
    crate::json::harmless::write(&document, out)
}

fn called(callee: &Callee) -> Called<'_> {
    let sites = callee.sites.iter().map(|(file, line)| Place { file, line: *line });
    Called {
        name: &callee.name,
        calls: callee.calls,
        total: callee.total_ns,
        sites: sites.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_profile::aggregate::Row;
    use teeperf_profile::model;

    fn noted(lines: &[(u32, u64)]) -> Noted {
        Noted {
            function: model::Function::default(),
            id: model::FunctionId(0),
            row: Row {
                function: model::FunctionId(0),
                calls: 0,
                self_time: Time::default(),
                total: Time::default(),
                extremes: None,
                spent: Default::default(),
            },
            callees: Vec::new(),
            has_sites: false,
            lines: lines.iter().map(|&(line, samples)| (line, samples, 1.0)).collect(),
            highest: None,
        }
    }

    #[test]
    fn of_long_functions_the_lines_with_most_samples_are_shown() {
        assert_eq!(shown(&noted(&[(7, 1)]), 5..=9), [5, 6, 7, 8, 9]);
        assert_eq!(shown(&noted(&[]), 5..=9000), (5..405).collect::<Vec<_>>());
        let long = shown(&noted(&[(5, 1), (700, 3), (8999, 2), (9100, 9)]), 5..=9000);
        assert_eq!(long, [5, 6, 7, 698, 699, 700, 701, 702, 8997, 8998, 8999, 9000]);
        let many: Vec<(u32, u64)> = (0..900).map(|at| (10 + 10 * at, u64::from(at))).collect();
        let most = shown(&noted(&many), 5..=9000);
        assert!(most.len() < MOST_LINES + 5 && most[0] == 5 && most[1] > 5000);
    }
}
