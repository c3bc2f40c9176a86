//! The table of functions.

use std::borrow::Cow;
use std::io::{self, Write};

use teeperf_profile::aggregate::{self, Row, Sort};
use teeperf_profile::model::{Extremes, Profile, Spent, Time};

use super::{Options, flagged, heading, is_unsure, left};
use crate::apart::Apart;
use crate::style::{Paint, Style};
use crate::{names, units};

/// Columns from which modules and averages have room.
const WIDE: usize = 118;
/// Columns from which averages have room.
const MIDDLE: usize = 96;
/// Columns of the shortest and the longest call.
const EXTREMES: usize = 2 * (units::TIME_COLUMNS + 4);
/// Columns of what threads waited, or hooks had, and of the gap before.
const BESIDE: usize = units::TIME_COLUMNS + 2;
/// Columns that names always have, where they need as many.
const NAME: usize = 20;
/// Of calls into which fewer ticks fell no mean is told, but what it is below: the deviation of a count of n is its root,
/// so that of fewer it is known to no better than two thirds.
const FEW_TICKS: f64 = 10.0;

pub(super) fn write(
    profile: &Profile,
    whole: f64,
    options: &Options,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut rows = aggregate::table(profile, options.sort);
    let all = rows.len();
    rows.truncate(options.limit);
    let shown: f64 = rows.iter().map(|row| row.self_time.value).sum();
    let title = format!(
        "Functions by {}: {} of {}, {} of {} in themselves",
        if profile.info.is_sampled() && options.sort == Sort::Calls {
            "samples"
        } else {
            by(options.sort)
        },
        units::count(rows.len() as u64),
        units::count(all as u64),
        units::percent_inline(units::share(shown, whole)),
        units::time_inline(profile.info.unit, whole),
    );
    heading(style, &title, out)?;
    let table = Table::new(&rows, profile, whole, style);
    table.head(out)?;
    for row in &rows {
        table.row(row, out)?;
    }
    table.notes(&rows, out)
}

fn by(sort: Sort) -> &'static str {
    match sort {
        Sort::Total => "total time",
        Sort::SelfTime => "self time",
        Sort::Calls => "calls",
        Sort::Mean => "mean time of a call",
        Sort::Shortest => "shortest call",
        Sort::Longest => "longest call",
        Sort::Name => "name",
    }
}

/// Name and module of a function; where it calls others in circles, with the cycle it belongs to.
fn described<'a>(profile: &'a Profile, row: &Row) -> (Cow<'a, str>, &'a str) {
    let Some(function) = profile.functions.get(row.function.0 as usize) else {
        return ("[unknown]".into(), "");
    };
    let vertex = profile.graph.as_ref().and_then(|graph| graph.vertex(row.function));
    let name = match vertex.and_then(|vertex| vertex.cycle) {
        Some(cycle) => format!("{} <cycle {}>", function.name, cycle + 1).into(),
        None => function.name.as_str().into(),
    };
    (name, &function.module)
}

/// Part of the whole that a function without samples may have, and is told to.
const LEAST_UNSEEN: f64 = 0.01;

struct Table<'a> {
    profile: &'a Profile,
    style: &'a Style,
    apart: Apart,
    whole: f64,
    calls: usize,
    /// Columns of the average, 0 for none.
    average: usize,
    /// Columns of the shortest and the longest call, 0 for none.
    extremes: usize,
    /// Whether there is room for what threads waited, and for the time of hooks.
    beside: [bool; 2],
    name: usize,
    /// Columns of the module, 0 for none.
    module: usize,
}

impl<'a> Table<'a> {
    fn new(rows: &[Row], profile: &'a Profile, whole: f64, style: &'a Style) -> Self {
        let is_sampled = profile.info.is_sampled();
        let calls = rows.iter().map(|row| units::count(row.calls).len()).max().unwrap_or(0);
        let calls = calls.max(units::calls_head(&profile.info).len());
        let times = 2 * (units::TIME_COLUMNS + 1 + 7);
        let apart = Apart::of(&profile.functions);
        let shown = |row: &Row| apart.fit(row.function, &described(profile, row).0, 1 << 20);
        let longest = rows.iter().map(|row| names::columns(&shown(row)));
        let longest = longest.max().unwrap_or(0).max(8);
        let has_extremes = rows.iter().any(|row| row.extremes.is_some());
        let has_room = style.columns() >= times + calls + 5 + EXTREMES + longest.min(NAME);
        let extremes = if has_extremes && has_room { EXTREMES } else { 0 };
        let mut width = style.columns() - extremes;
        let mut beside = [|spent: &Spent| spent.total_waiting_ns, |spent: &Spent| spent.hooks_ns]
            .map(|of| rows.iter().any(|row| of(&row.spent) > 0.0));
        for is_shown in &mut beside {
            *is_shown &= width >= times + calls + 5 + BESIDE + longest.min(NAME);
            width -= if *is_shown { BESIDE } else { 0 };
        }
        let average = if width >= MIDDLE && !is_sampled { units::TIME_COLUMNS + 3 } else { 0 };
        let modules = rows.iter().map(|row| names::columns(described(profile, row).1));
        let module = if width >= WIDE { modules.max().unwrap_or(0).clamp(6, 24) } else { 0 };
        let gaps = 5 + if average > 0 { 2 } else { 0 } + if module > 0 { 2 } else { 0 };
        let room = width.saturating_sub(times + calls + average + module + gaps);
        let name = longest.min(room.max(NAME));
        Self { profile, style, apart, whole, calls, average, extremes, beside, name, module }
    }

    fn head(&self, out: &mut impl Write) -> io::Result<()> {
        let mut line = format!(
            "{:>9}{:>7} {:>9}{:>7}{}{}  {:>calls$}",
            "SELF ",
            "SELF%",
            "TOTAL ",
            "TOTAL%",
            if self.beside[0] { "   WAITED " } else { "" },
            if self.beside[1] { "    HOOKS " } else { "" },
            units::calls_head(&self.profile.info),
            calls = self.calls,
        );
        if self.average > 0 {
            line.push_str(&format!("  {:>average$}", "PER CALL ", average = self.average));
        }
        if self.extremes > 0 {
            line.push_str(&format!(
                "  {:>column$}  {:>column$}",
                "SHORTEST",
                "LONGEST ",
                column = EXTREMES / 2 - 2
            ));
        }
        line.push_str("  FUNCTION");
        if self.module > 0 {
            line.push_str(&" ".repeat(self.name - 8));
            line.push_str("  MODULE");
        }
        writeln!(out, "{}", self.style.paint(Paint::Faint, line))
    }

    fn row(&self, row: &Row, out: &mut impl Write) -> io::Result<()> {
        let share = units::share(row.self_time.value, self.whole);
        let paint = Paint::of_share(share);
        let lack = self.profile.lack(row.function);
        write!(
            out,
            "{}{} {}{:>7}{}{}  {:>calls$}",
            flagged(self.profile.info.unit, &row.self_time, lack.self_ns > 0.0),
            self.style.paint(paint, format_args!("{:>7}", units::percent(share))),
            flagged(self.profile.info.unit, &row.total, self.lacks_total(row)),
            units::percent(units::share(row.total.value, self.whole)),
            self.column(0, row.spent.total_waiting_ns),
            self.column(1, row.spent.hooks_ns),
            units::count(row.calls),
            calls = self.calls,
        )?;
        if self.average > 0 {
            write!(out, "  {:>average$}", self.per_call(row), average = self.average)?;
        }
        if self.extremes > 0 {
            let column = EXTREMES / 2 - 2;
            let of = |which: fn(&Extremes) -> f64| {
                row.extremes.map_or_else(String::new, |extremes| self.length(which(&extremes)))
            };
            let (shortest, longest) = (of(|two| two.shortest_ns), of(|two| two.longest_ns));
            write!(out, "  {shortest:>column$}  {longest:>column$}")?;
        }
        let (name, module) = described(self.profile, row);
        if self.module > 0 {
            let module = names::fit(module, self.module);
            let name = self.apart.fit(row.function, &name, self.name);
            let line = format!("  {}  {module}", left(&name, self.name));
            writeln!(out, "{}", line.trim_end())
        } else {
            writeln!(out, "  {}", self.apart.fit(row.function, &name, self.name))
        }
    }

    /// What stands beside CPU time, where there is room for it.
    fn column(&self, at: usize, ns: f64) -> String {
        match self.beside[at] {
            true if ns > 0.0 => format!("  {}", units::time(self.profile.info.unit, ns)),
            true => " ".repeat(BESIDE),
            false => String::new(),
        }
    }

    /// Mean time of a call: as the time of all is known, so is that.
    fn per_call(&self, row: &Row) -> String {
        let (unit, calls) = (self.profile.info.unit, row.calls as f64);
        match row.calls {
            0 => String::new(),
            _ if self.lacks_much(row) => "–".into(),
            _ if self.is_untold(row) => {
                format!("< {} ", units::time(unit, row.total.high / calls).trim_start())
            }
            _ => {
                let [value, low, high] =
                    [row.total.value, row.total.low, row.total.high].map(|ns| ns / calls);
                flagged(unit, &Time { value, low, high }, false)
            }
        }
    }

    /// Whether so much of its total may be missing that the mean is not known.
    fn lacks_much(&self, row: &Row) -> bool {
        self.profile.lack(row.function).total_ns > 0.0 && is_unsure(&row.total, true)
    }

    /// Whether its total may be more than it is told: for want of room, or of samples.
    fn lacks_total(&self, row: &Row) -> bool {
        let has_no_sample =
            self.profile.info.timer_samples.is_some() && row.calls > 0 && row.total.value == 0.0;
        let is_unseen = has_no_sample && row.total.high > LEAST_UNSEEN * self.whole;
        is_unseen || self.profile.lack(row.function).total_ns > 0.0
    }

    /// Time of one call: below a tick no more is known of it.
    fn length(&self, ns: f64) -> String {
        let period = self.profile.info.period_ns;
        if ns < period {
            format!("< {}", units::time(self.profile.info.unit, period))
        } else {
            units::time(self.profile.info.unit, ns)
        }
    }

    /// Whether no more is known of the mean than what it is below: too few ticks fell into all calls together.
    fn is_untold(&self, row: &Row) -> bool {
        row.calls > 0 && row.total.value < FEW_TICKS * self.profile.info.period_ns
    }

    /// What the signs in the table mean, where there are any.
    fn notes(&self, rows: &[Row], out: &mut impl Write) -> io::Result<()> {
        let faint = |text: String| self.style.paint(Paint::Faint, text);
        if self.average > 0 && rows.iter().any(|row| self.is_untold(row)) {
            let period = units::time_inline(self.profile.info.unit, self.profile.info.period_ns);
            let has_timers = self.profile.info.timer_samples.is_some();
            let is_of_samples = self.profile.graph.is_some() || has_timers;
            let what = if is_of_samples { "samples" } else { "ticks" };
            let text = format!(
                "< fewer than ten {what}, {period} apart, fell into these calls: a call took less in the mean"
            );
            for line in super::wrap(&text, self.style.columns()) {
                writeln!(out, "{}", faint(line))?;
            }
        }
        if self.profile.info.is_sampled() {
            let is_unsure =
                |row: &Row| is_unsure(&row.self_time, false) || is_unsure(&row.total, false);
            if rows.iter().any(is_unsure) {
                let text =
                    "~ known no better than to 30 %: of n samples, to 2/√n of them".to_owned();
                writeln!(out, "{}", faint(text))?;
            }
            return Ok(());
        }
        let is_unsampled =
            self.profile.info.timer_samples == Some(0) && self.profile.framed_ns() == 0.0;
        let mut said = false;
        for row in rows {
            let lack = self.profile.lack(row.function);
            let is_self_unsure = is_unsure(&row.self_time, lack.self_ns > 0.0);
            let is_total_unsure = is_unsure(&row.total, self.lacks_total(row));
            if !is_self_unsure && !is_total_unsure {
                continue;
            }
            if is_unsampled {
                let text =
                    "~ no sample fell into a function: each may have had all of the CPU time";
                return writeln!(out, "{}", faint(text.to_owned()));
            }
            if !said {
                writeln!(out, "{}", faint("~ known no better than to 30 %; the bounds:".into()))?;
                said = true;
            }
            let mut parts = Vec::new();
            if is_self_unsure {
                parts.push(format!(
                    "self {}",
                    units::interval(self.profile.info.unit, &row.self_time)
                ));
            }
            if is_total_unsure {
                parts
                    .push(format!("total {}", units::interval(self.profile.info.unit, &row.total)));
            }
            let (name, _) = described(self.profile, row);
            let name = self.apart.fit(row.function, &name, 1 << 20);
            let figures = parts.join(", ");
            let room = self.style.columns().saturating_sub(names::columns(&figures) + 6);
            writeln!(
                out,
                "{}",
                faint(format!("    {figures}: {}", names::fit(&name, room.max(20))))
            )?;
        }
        Ok(())
    }
}
