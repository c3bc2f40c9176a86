//! How long calls took.

use std::collections::HashMap;

use teeperf_profile::aggregate::{self, Sort};
use teeperf_profile::lengths::Lengths;
use teeperf_profile::model::{FunctionId, Profile};

use super::{Cell, Column, Kind, Row, Table, module_of, name_of};
use crate::units;

/// A length that a tick tells is off by up to so many of its mean periods, since one lasts half of that to one and a half.
const TICKS: f64 = 1.5;

/// Of so few ticks a mean says little.
const FEW_TICKS: f64 = 10.0;

/// Lengths of a function's calls, in the profile's unit of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Percentiles {
    pub(crate) timed: u64,
    pub(crate) shortest: f64,
    pub(crate) mean: f64,
    /// 50, 90, 99, 99.9.
    pub(crate) percentiles: [f64; 4],
    pub(crate) longest: f64,
}

impl Percentiles {
    pub(crate) fn of(lengths: &Lengths, unit_ns: f64) -> Option<Self> {
        let (least, most) = lengths.extremes()?;
        let ns = |units: u64| units as f64 * unit_ns;
        let percentile = |part| lengths.percentile(part).map_or(0.0, ns);
        Some(Self {
            timed: lengths.calls(),
            shortest: ns(least),
            mean: lengths.sum() as f64 * unit_ns / lengths.calls() as f64,
            percentiles: [0.5, 0.9, 0.99, 0.999].map(percentile),
            longest: ns(most),
        })
    }

    /// The mean, or what it is below where few ticks fell into all these calls.
    pub(crate) fn known_mean(&self, profile: &Profile) -> Cell {
        let ticks = match profile.info.period_ns {
            0.0 => f64::INFINITY,
            period => self.mean * self.timed as f64 / period,
        };
        // Twice the deviation of their number above it, as in the table of functions.
        let most = (ticks + 2.0 * ticks.sqrt() + 3.0) * profile.info.period_ns;
        if ticks < FEW_TICKS {
            Cell::Below(most / self.timed as f64)
        } else {
            Cell::Time(self.mean)
        }
    }
}

/// Lengths of calls by function, over all threads.
pub(crate) fn lengths_by_function(profile: &Profile) -> HashMap<FunctionId, Lengths> {
    let mut out: HashMap<FunctionId, Lengths> = HashMap::new();
    for (function, lengths) in profile.threads.iter().flat_map(|thread| &thread.lengths) {
        out.entry(*function).or_default().merge(lengths);
    }
    out
}

/// What single lengths are known to: 0 where each is.
pub(crate) fn resolution(profile: &Profile) -> f64 {
    profile.info.period_ns * TICKS
}

/// A length as far as it is known.
pub(crate) fn known(ns: f64, resolution: f64) -> Cell {
    if ns < resolution { Cell::Below(resolution) } else { Cell::Time(ns) }
}

/// The table.
pub fn lengths(profile: &Profile, sort: Sort, limit: usize) -> Table {
    let all = aggregate::table(profile, sort);
    let known_lengths = lengths_by_function(profile);
    let unit_ns = profile.length_unit_ns.unwrap_or(1.0);
    let resolution = resolution(profile);
    let columns = vec![
        Column::new("MEAN", "mean", Kind::Time),
        Column::new("SHORTEST", "shortest", Kind::Time).from(100),
        Column::new("50 %", "p50", Kind::Time),
        Column::new("90 %", "p90", Kind::Time).from(90),
        Column::new("99 %", "p99", Kind::Time),
        Column::new("99.9 %", "p99_9", Kind::Time).from(112),
        Column::new("LONGEST", "longest", Kind::Time),
        Column::new("CALLS", "calls", Kind::Count),
        Column::new("FUNCTION", "function", Kind::Name),
        Column::hidden("module", Kind::Text),
        Column::hidden("timed_calls", Kind::Count),
    ];
    let shown = &all[..all.len().min(limit)];
    let mut untimed = 0;
    let rows = shown.iter().map(|row| {
        let found = known_lengths.get(&row.function);
        let found = found.and_then(|lengths| Percentiles::of(lengths, unit_ns));
        let mut cells = match (found, row.extremes) {
            (Some(found), _) => {
                let [p50, p90, p99, p999] = found.percentiles;
                let single = [found.shortest, p50, p90, p99, p999, found.longest];
                let mut cells = vec![found.known_mean(profile)];
                cells.extend(single.map(|ns| known(ns, resolution)));
                cells
            }
            // Summed while the program ran.
            (None, Some(extremes)) => {
                let mut cells = vec![Cell::Empty; 7];
                cells[1] = known(extremes.shortest_ns, resolution);
                cells[6] = known(extremes.longest_ns, resolution);
                cells
            }
            (None, None) => vec![Cell::Empty; 7],
        };
        let timed = found.map_or(0, |found| found.timed);
        untimed += row.calls.saturating_sub(timed);
        let id = Some(row.function);
        cells.extend([Cell::Count(row.calls), name_of(profile, id, ""), module_of(profile, id)]);
        cells.push(Cell::Count(timed));
        Row { cells, ..Row::default() }
    });
    let rows = rows.collect();
    let title = format!(
        "Lengths of calls: {} of {} functions",
        units::count(shown.len() as u64),
        units::count(all.len() as u64),
    );
    Table { title, columns, rows, notes: notes(profile, untimed), unit: profile.info.unit }
}

/// What is to be known of lengths.
pub(crate) fn notes(profile: &Profile, untimed: u64) -> Vec<String> {
    let mut notes = vec![
        "From call to return, with all that was called, with what hooks cost; percentiles are known to 2 %".to_owned(),
    ];
    let resolution = resolution(profile);
    if resolution > 0.0 {
        notes.push(format!(
            "The clock was a tick: single lengths are known to {} only, and of shorter ones no more than that; means of many \
             calls are right. `record --clock cycle` times each call",
            units::time_inline(profile.info.unit, resolution)
        ));
    }
    if untimed > 0 {
        notes.push(format!(
            "{} have no length: they had not returned, or began before, or were left by a jump or an exception",
            units::counted(untimed, "call")
        ));
    }
    notes
}
