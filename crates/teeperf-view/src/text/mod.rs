//! The report for a terminal: what is missing first, then what is known of the run, then
//! the tables that were asked for.

mod calls;
mod flat;
mod paths;
mod threads;
mod waits;

use std::io::{self, Write};

pub use teeperf_profile::aggregate::Sort;
use teeperf_profile::crossings::Crossing;
use teeperf_profile::model::{Profile, Time, Unit};

use crate::findings::{self, Finding};
use crate::style::{Paint, Painted, Style};
use crate::{about, advice, names, tables, units};

/// What a report shows.
#[derive(Clone, Debug)]
pub struct Options {
    /// Order of functions.
    pub sort: Sort,
    /// Most functions and threads.
    pub limit: usize,
    /// Whether to show the table of functions.
    pub functions: bool,
    /// Whether to show the call tree.
    pub call_tree: bool,
    /// Whether to show the table of threads.
    pub threads: bool,
    /// Least share of the time, `0.0..=1.0`, of a call path in the call tree.
    pub least_share: f64,
    /// Most lines of the call tree.
    pub most_paths: usize,
    /// What of the recording is shown, such as `focus on "parse"`; empty when it is all.
    pub selection: String,
    /// Functions whose time is that of crossings: advice about the first of them.
    pub crossings: Vec<Crossing>,
}

/// Most functions that advice is given about.
const MOST_ADVICE: usize = 3;

impl Default for Options {
    fn default() -> Self {
        Self {
            sort: Sort::SelfTime,
            limit: 20,
            functions: true,
            call_tree: false,
            threads: true,
            least_share: 0.005,
            most_paths: 200,
            selection: String::new(),
            crossings: Vec::new(),
        }
    }
}

/// Writes the report.
pub fn write(
    profile: &Profile,
    options: &Options,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    written(profile, about::of(profile), options, style, out)
}

/// Writes what another profile of a run has beside the first: what that says of the run is not said again.
pub fn write_beside(
    profile: &Profile,
    options: &Options,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let title = format!("Samples of {}", names::printable(&profile.info.event));
    writeln!(out, "{}", style.paint(Paint::Heading, title))?;
    written(profile, about::beside(profile), options, style, out)
}

fn written(
    profile: &Profile,
    about: Vec<(&'static str, String)>,
    options: &Options,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let findings = findings::of(profile);
    for finding in findings.iter().filter(|finding| finding.warning) {
        say(finding, style, out)?;
    }
    for (what, text) in about {
        labelled(style.paint(Paint::Faint, what), &text, style, out)?;
    }
    for finding in findings.iter().filter(|finding| !finding.warning) {
        say(finding, style, out)?;
    }
    shown(profile, &options.selection, style, out)?;
    for crossing in options.crossings.iter().take(MOST_ADVICE) {
        let advice = advice::of(profile, crossing);
        let text = format!("{} {}", advice.what, advice.next);
        labelled(style.paint(Paint::Heading, "Advice"), &text, style, out)?;
    }
    if profile.threads.is_empty() && profile.graph.is_none() {
        return Ok(());
    }
    let whole = tables::whole(profile);
    if options.functions {
        flat::write(profile, whole, options, style, out)?;
        waits::write(profile, options, style, out)?;
        let marks = tables::marks(profile, options.limit);
        if !marks.rows.is_empty() {
            tables::write_text(&marks, &profile.functions, style, out)?;
        }
    }
    let has_threads = !profile.threads.is_empty();
    if options.call_tree && has_threads {
        paths::write(profile, whole, options, style, out)?;
    }
    // It knows neither paths nor threads.
    if let Some(graph) = &profile.graph
        && (options.functions || !has_threads)
    {
        calls::write(profile, graph, options, style, out)?;
    }
    if options.threads && has_threads {
        threads::write(profile, options, style, out)?;
    }
    Ok(())
}

/// How much of the time a part is: its percentages are of that part.
fn share_of_all(profile: &Profile) -> String {
    let Some(all) = profile.part_of_ns else { return String::new() };
    let part = profile.framed_ns();
    let time = |ns| units::time_inline(profile.info.unit, ns);
    let share = units::percent_inline(units::share(part, all));
    format!(": {} of {}, {share}. Shares below are of these {}", time(part), time(all), time(part))
}

/// Writes what a reader of any table must know: warnings, and what of the recording is shown.
pub fn write_head(
    profile: &Profile,
    selection: &str,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    for finding in findings::of(profile).iter().filter(|finding| finding.warning) {
        say(finding, style, out)?;
    }
    shown(profile, selection, style, out)
}

/// What of the recording is shown, where it is not all.
fn shown(
    profile: &Profile,
    selection: &str,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    if selection.is_empty() {
        return Ok(());
    }
    let text = names::printable(selection) + &share_of_all(profile);
    labelled(style.paint(Paint::Faint, "Shown"), &text, style, out)
}

pub(crate) fn say(finding: &Finding, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let (word, paint) =
        if finding.warning { ("WARNING", Paint::Warning) } else { ("Note", Paint::Faint) };
    let text = format!("{} {}", finding.what, finding.next);
    labelled(style.paint(paint, word), text.trim_end(), style, out)
}

/// A word and a text beside it, on as many lines as it takes.
pub(crate) fn labelled(
    word: Painted<&str>,
    text: &str,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    const INDENT: usize = 11;
    let lines = wrap(text, style.columns() - INDENT);
    writeln!(out, "{word:<10} {}", lines.join(&format!("\n{:INDENT$}", "")))
}

/// Lines of at most `width` columns, broken at spaces; a word that is longer is cut.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let word = names::cut_middle(word, width);
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() && names::columns(line) + 1 + names::columns(&word) > width {
            lines.push(word);
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
    }
    lines
}

/// A section's heading with an empty line before it.
pub(crate) fn heading(style: &Style, text: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n{}\n", style.paint(Paint::Heading, text))
}

/// Text at the left of a column, cut and padded to it.
pub(crate) fn left(text: &str, width: usize) -> String {
    let fitted = names::fit(text, width);
    let padding = width.saturating_sub(names::columns(&fitted));
    fitted + &" ".repeat(padding)
}

/// Whether a time's bounds are further apart than 30 % of it. Of no time that says nothing, unless it may lack some.
fn is_unsure(time: &Time, lacks: bool) -> bool {
    (time.value > 0.0 || lacks) && time.is_uncertain()
}

/// A time, and `~` behind it where [`is_unsure`].
fn flagged(unit: Unit, time: &Time, lacks: bool) -> String {
    let flag = if is_unsure(time, lacks) { '~' } else { ' ' };
    format!("{}{flag}", units::time(unit, time.value))
}
