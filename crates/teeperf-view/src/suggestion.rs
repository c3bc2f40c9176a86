//! What to leave out of a next recording: as a table, and as JSON for programs.

use crate::style::{Paint, Style};
use crate::{names, units};
use serde::Serialize;
use std::io::{self, Write};
use teeperf_profile::model::Unit;
use teeperf_profile::suggest::{Left, Options, Suggestion};

/// Columns in front of the names.
const FIGURES: usize = 59;

/// Writes a table with a line for each function, most events first, and what comes of it.
pub fn write(
    suggestion: &Suggestion,
    options: &Options,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let head = format!(
        "{:>8} {:>7}  {:>13}  {:>7} {:>7} {:>7}  FUNCTION",
        "EVENTS%", "SUM", "CALLS", "MOVED%", "SUM", "LEVELS%"
    );
    writeln!(out, "{}", style.paint(Paint::Faint, head))?;
    let percent = |part: f64, whole: f64| units::percent(units::share(part, whole));
    let calls = suggestion.calls as f64;
    let (mut gone, mut moved) = (0.0, 0.0);
    let mut functions: Vec<&Left> = suggestion.functions.iter().collect();
    functions.sort_by_key(|left| std::cmp::Reverse(left.calls));
    for left in functions {
        gone += left.calls as f64;
        moved += left.moved_ns;
        writeln!(
            out,
            "{:>8} {:>7}  {:>13}  {:>7} {:>7} {:>7}  {}",
            percent(left.calls as f64, calls),
            percent(gone, calls),
            units::count(left.calls),
            percent(left.moved_ns, suggestion.time_ns),
            percent(moved, suggestion.time_ns),
            percent(left.levels_ns, suggestion.time_ns),
            names::fit(&left.name, style.columns().saturating_sub(FIGURES).max(20)),
        )?;
    }
    let inline = |part: f64, whole: f64| units::percent_inline(units::share(part, whole));
    writeln!(
        out,
        "\nWithout {}: {} of the events are gone, and {} of the time moves to callers.",
        units::counted(suggestion.functions.len() as u64, "function"),
        inline(gone, calls),
        inline(moved, suggestion.time_ns),
    )?;
    if let Some((name, gained)) = &suggestion.most_gained {
        let name = name.as_deref().unwrap_or("time outside of all functions");
        writeln!(
            out,
            "Most moves to {}: {}. Totals of what stays do not change.",
            names::printable(name),
            inline(*gained, suggestion.time_ns)
        )?;
    }
    if let Some(hooks) = suggestion.hooks_ns {
        let left = 1.0 - suggestion.events();
        writeln!(
            out,
            "While this was recorded hooks took {} of CPU time; without these they would have taken {}.",
            units::time_inline(Unit::Nanoseconds, hooks),
            units::time_inline(Unit::Nanoseconds, hooks * left),
        )?;
    }
    if suggestion.events() < options.events {
        let more = match &suggestion.first_kept {
            Some(name) => format!(
                "{}, for one, stays, or more than {} (--shares) would have moved to one function or gone from its level",
                names::printable(name),
                units::percent_inline(options.shares)
            ),
            None => "no other function has a thousandth of them".into(),
        };
        let line = format!(
            "That is less than {} of the events: {more}.",
            units::percent_inline(options.events)
        );
        writeln!(out, "{}", style.paint(Paint::Warning, line))?;
    }
    if !suggestion.functions.is_empty() {
        writeln!(
            out,
            "Next: `teeperf suggest --write` adds them to the project's teeperf.toml; then build again from scratch."
        )?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Told<'a> {
    format: &'static str,
    version: u32,
    calls: u64,
    time: f64,
    hooks: Option<f64>,
    events_removed: f64,
    share_moved: f64,
    most_gained: Option<Gain<'a>>,
    functions: Vec<Function<'a>>,
}

#[derive(Serialize)]
struct Gain<'a> {
    function: Option<&'a str>,
    share: f64,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    calls: u64,
    moved: f64,
    levels: f64,
}

/// Writes it as one line of JSON: times in nanoseconds, shares and parts from 0 to 1.
pub fn write_json(suggestion: &Suggestion, out: &mut impl Write) -> io::Result<()> {
    let moved: f64 = suggestion.functions.iter().map(|left| left.moved_ns).sum();
    let gain = |(name, gained): &'_ (Option<String>, f64)| {
        (name.clone(), units::share(*gained, suggestion.time_ns))
    };
    let most = suggestion.most_gained.as_ref().map(gain);
    let told = Told {
        format: "teeperf-suggestion",
        version: 1,
        calls: suggestion.calls,
        time: suggestion.time_ns,
        hooks: suggestion.hooks_ns,
        events_removed: suggestion.events(),
        share_moved: units::share(moved, suggestion.time_ns),
        most_gained: most
            .as_ref()
            .map(|(name, share)| Gain { function: name.as_deref(), share: *share }),
        functions: suggestion
            .functions
            .iter()
            .map(|left| Function {
                name: &left.name,
                calls: left.calls,
                moved: left.moved_ns,
                levels: left.levels_ns,
            })
            .collect(),
    };
    crate::json::harmless::write(&told, out)
}
