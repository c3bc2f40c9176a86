//! How long calls took.

use std::collections::HashMap;

use teeperf_profile::aggregate::{self, Sort};
use teeperf_profile::lengths::Lengths;
use teeperf_profile::model::{Extremes, FunctionId, Profile};

use super::{Cell, Column, Kind, Row, Table, module_of, name_of};
use crate::units;

/// A length that a tick tells is off by up to so many of its mean periods, since one lasts half of that to one and a half.
const TICKS: f64 = 1.5;

/// Of so few ticks a mean says little.
const FEW_TICKS: f64 = 10.0;

/// Lengths of a function's calls, in the profile's unit of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Percentiles {
    /// Mean time between two steps of what timed them, nanoseconds; 0 for a counter.
    period_ns: f64,
    pub(crate) timed: u64,
    pub(crate) shortest: f64,
    pub(crate) mean: f64,
    /// 50, 90, 99, 99.9.
    pub(crate) percentiles: [f64; 4],
    pub(crate) longest: f64,
}

/// Lengths of a function's calls: those that the processor's counter timed, where it timed any.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) lengths: Lengths,
    /// Whether the counter timed them, beside a tick.
    pub(crate) by_counter: bool,
}

impl Known {
    /// Nanoseconds of their unit.
    pub(crate) fn unit_ns(&self, profile: &Profile) -> f64 {
        if self.by_counter { 1e-3 } else { profile.length_unit_ns.unwrap_or(1.0) }
    }

    /// What single lengths are known to: 0 where each is.
    pub(crate) fn resolution(&self, profile: &Profile) -> f64 {
        if self.by_counter { 0.0 } else { resolution(profile) }
    }

    /// What timed them.
    pub(crate) fn by<'a>(&self, profile: &'a Profile) -> &'a str {
        if self.by_counter { "counter" } else { &profile.info.clock }
    }
}

impl Percentiles {
    pub(crate) fn of(known: &Known, profile: &Profile) -> Option<Self> {
        let (lengths, unit_ns) = (&known.lengths, known.unit_ns(profile));
        let (least, most) = lengths.extremes()?;
        let ns = |units: u64| units as f64 * unit_ns;
        let percentile = |part| lengths.percentile(part).map_or(0.0, ns);
        Some(Self {
            period_ns: if known.by_counter { 0.0 } else { profile.info.period_ns },
            timed: lengths.calls(),
            shortest: ns(least),
            mean: lengths.sum() as f64 * unit_ns / lengths.calls() as f64,
            percentiles: [0.5, 0.9, 0.99, 0.999].map(percentile),
            longest: ns(most),
        })
    }

    /// The mean, or what it is below where few ticks fell into all these calls.
    pub(crate) fn known_mean(&self) -> Cell {
        let ticks = match self.period_ns {
            0.0 => f64::INFINITY,
            period => self.mean * self.timed as f64 / period,
        };
        // Twice the deviation of their number above it, as in the table of functions.
        let most = (ticks + 2.0 * ticks.sqrt() + 3.0) * self.period_ns;
        if ticks < FEW_TICKS {
            Cell::Below(most / self.timed as f64)
        } else {
            Cell::Time(self.mean)
        }
    }
}

/// Lengths of calls by function, over all threads.
pub(crate) fn lengths_by_function(profile: &Profile) -> HashMap<FunctionId, Known> {
    let mut out: HashMap<FunctionId, Known> = HashMap::new();
    for (function, lengths) in profile.threads.iter().flat_map(|thread| &thread.counted) {
        let known = out.entry(*function).or_default();
        known.by_counter = true;
        known.lengths.merge(lengths);
    }
    for (function, lengths) in profile.threads.iter().flat_map(|thread| &thread.lengths) {
        let known = out.entry(*function).or_default();
        if !known.by_counter {
            known.lengths.merge(lengths);
        }
    }
    out
}

/// What single lengths are known to that the clock tells: 0 where each is.
pub(crate) fn resolution(profile: &Profile) -> f64 {
    profile.info.period_ns * TICKS
}

/// A length as far as it is known.
pub(crate) fn known(ns: f64, resolution: f64) -> Cell {
    if ns < resolution { Cell::Below(resolution) } else { Cell::Time(ns) }
}

/// What lengths are sorted by, largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As tables of functions are.
    Table(Sort),
    /// The mean of the calls that were timed.
    Mean,
    /// The shortest.
    Shortest,
    /// The longest.
    Longest,
    /// 50, 90, 99 or 99.9 % took no longer: which of these, by its place.
    Percentile(usize),
}

impl Order {
    fn of(self, known: Option<&Percentiles>, extremes: Option<Extremes>) -> f64 {
        let found = match self {
            Self::Table(_) => None,
            Self::Mean => known.map(|known| known.mean),
            Self::Shortest => {
                known.map(|known| known.shortest).or(extremes.map(|both| both.shortest_ns))
            }
            Self::Longest => {
                known.map(|known| known.longest).or(extremes.map(|both| both.longest_ns))
            }
            Self::Percentile(at) => known.and_then(|known| known.percentiles.get(at).copied()),
        };
        found.unwrap_or(f64::NEG_INFINITY)
    }
}

/// The table.
pub fn lengths(profile: &Profile, order: Order, limit: usize) -> Table {
    let sort = if let Order::Table(sort) = order { sort } else { Sort::SelfTime };
    let mut all = aggregate::table(profile, sort);
    let known_lengths = lengths_by_function(profile);
    let any_counted = known_lengths.values().any(|known| known.by_counter);
    if order != Order::Table(sort) {
        let of = |row: &aggregate::Row| {
            let known = known_lengths.get(&row.function);
            let known = known.and_then(|known| Percentiles::of(known, profile));
            order.of(known.as_ref(), row.extremes)
        };
        all.sort_by_cached_key(|row| std::cmp::Reverse(Total(of(row))));
    }
    if order == Order::Table(Sort::SelfTime) {
        // Who had some timed asks for these. Stable: within both the order stays.
        let is_counted = |row: &aggregate::Row| {
            known_lengths.get(&row.function).is_some_and(|known| known.by_counter)
        };
        all.sort_by_key(|row| !is_counted(row));
    }
    let columns = vec![
        Column::new("MEAN", "mean", Kind::Time),
        Column::new("SHORTEST", "shortest", Kind::Time).from(120),
        Column::new("50 %", "p50", Kind::Time),
        Column::new("90 %", "p90", Kind::Time).from(110),
        Column::new("99 %", "p99", Kind::Time),
        Column::new("99.9 %", "p99_9", Kind::Time).from(132),
        Column::new("LONGEST", "longest", Kind::Time),
        Column::new("CALLS", "calls", Kind::Count),
        Column::new(if any_counted { "BY" } else { "" }, "timed_by", Kind::Text),
        Column::new("FUNCTION", "function", Kind::Name),
        Column::hidden("module", Kind::Text),
        Column::hidden("timed_calls", Kind::Count),
    ];
    let shown = &all[..all.len().min(limit)];
    let mut untimed = 0;
    let rows = shown.iter().map(|row| {
        let known_lengths = known_lengths.get(&row.function);
        let found = known_lengths.and_then(|lengths| Percentiles::of(lengths, profile));
        let resolution =
            known_lengths.map_or(resolution(profile), |known| known.resolution(profile));
        let by = known_lengths.map_or("", |known| known.by(profile));
        let mut cells = match (found, row.extremes) {
            (Some(found), _) => {
                let [p50, p90, p99, p999] = found.percentiles;
                let single = [found.shortest, p50, p90, p99, p999, found.longest];
                let mut cells = vec![found.known_mean()];
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
        cells.extend([
            Cell::Count(row.calls),
            Cell::Text(by.to_owned()),
            name_of(profile, id, ""),
            module_of(profile, id),
        ]);
        cells.push(Cell::Count(timed));
        Row { cells, ..Row::default() }
    });
    let rows = rows.collect();
    let title = format!(
        "Lengths of calls: {} of {} functions",
        units::count(shown.len() as u64),
        units::count(all.len() as u64),
    );
    Table {
        title,
        columns,
        rows,
        notes: notes(profile, any_counted, untimed),
        unit: profile.info.unit,
    }
}

/// Numbers in the order that IEEE 754 gives all of them.
#[derive(PartialEq)]
struct Total(f64);

impl Eq for Total {}

impl PartialOrd for Total {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Total {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The steps in which the counter was read, where there are such and no ticks, nanoseconds.
pub(crate) fn step(profile: &Profile) -> Option<f64> {
    if profile.info.period_ns > 0.0 {
        return None;
    }
    let mut all = Lengths::default();
    let lists = profile.threads.iter().flat_map(|thread| &thread.lengths);
    lists.for_each(|(_, lengths)| all.merge(lengths));
    Some(all.step()? * profile.length_unit_ns?)
}

/// What is to be known of lengths, where the counter timed some, and where it timed those that are told alone.
pub(crate) fn notes(profile: &Profile, any_counted: bool, untimed: u64) -> Vec<String> {
    let mut notes = vec![
        "From call to return, with all that was called, with what hooks cost; percentiles are known to 2 %".to_owned(),
    ];
    let resolution = resolution(profile);
    if any_counted {
        notes.push(
            "The processor's counter timed each call of functions with `counter` (`--timed`): their lengths are known to some \
             nanoseconds, but for calls in which recording paused or waited"
                .to_owned(),
        );
    }
    if resolution > 0.0 {
        notes.push(format!(
            "The clock was a tick: single lengths {}are known to {} only, and of shorter ones no more than that; means of many \
             calls are right. `record --timed FUNCTION` times each call of some functions, `--clock cycle` all",
            if any_counted { "of the others " } else { "" },
            units::time_inline(profile.info.unit, resolution)
        ));
    }
    if let Some(step) = step(profile) {
        notes.push(format!(
            "This machine's counter goes on in steps of {}: each single length is known to one step; means of many calls are right",
            units::time_inline(profile.info.unit, step)
        ));
    }
    if untimed > 0 {
        notes.push(format!(
            "{} no length: not returned, or begun before, or left by a jump or an exception{}",
            match untimed {
                1 => "1 call has".into(),
                several => format!("{} calls have", units::count(several)),
            },
            if any_counted {
                ", or not timed by the counter yet, or so short that recording waited or paused for longer"
            } else {
                ""
            },
        ));
    }
    notes
}
