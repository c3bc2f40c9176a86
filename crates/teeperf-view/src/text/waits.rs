//! The table of async functions that waited.

use std::io::{self, Write};

use teeperf_profile::model::Profile;

use super::{Options, heading};
use crate::style::{Paint, Style};
use crate::{names, units};

pub(super) fn write(
    profile: &Profile,
    options: &Options,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let (waits, unit) = (&profile.waits, profile.info.unit);
    if waits.is_empty() {
        return Ok(());
    }
    let shown = &waits[..waits.len().min(options.limit)];
    let title = format!(
        "Async functions between polls, in no thread's time: {} of {}",
        shown.len(),
        waits.len()
    );
    heading(style, &title, out)?;
    let times = shown.iter().map(|waits| units::count(waits.times).len()).max();
    let times = times.unwrap_or(0).max(5);
    let head = format!(
        "{:>8}  {:>times$}  {:>8}  {:>8}  FUNCTION",
        "WAITED ", "TIMES", "MEAN ", "LONGEST "
    );
    writeln!(out, "{}", style.paint(Paint::Faint, head))?;
    let room = style.columns().saturating_sub(3 * 8 + times + 4 * 2).max(8);
    for waits in shown {
        let function = profile.functions.get(waits.function.0 as usize);
        writeln!(
            out,
            "{}  {:>times$}  {}  {}  {}",
            units::time(unit, waits.total_ns),
            units::count(waits.times),
            units::time(unit, waits.total_ns / waits.times.max(1) as f64),
            units::time(unit, waits.longest_ns),
            names::fit(function.map_or("[unknown]", |function| &function.name), room),
        )?;
    }
    if let Some(rest) = waits.get(shown.len()..).filter(|rest| !rest.is_empty()) {
        let text = format!("… {} more", units::counted(rest.len() as u64, "function"));
        writeln!(out, "{}", style.paint(Paint::Faint, text))?;
    }
    Ok(())
}
