//! How many calls of a function took how long.

use teeperf_profile::aggregate::Pattern;
use teeperf_profile::model::{FunctionId, Profile};

use super::lengths::{Known, Percentiles, known, lengths_by_function, notes};
use super::{Cell, Column, Kind, Row, Table, module_of, name_of};
use crate::units;

/// Steps of a decade, where lengths are within few of them and where they are not.
const FINE: [f64; 6] = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0];
const COARSE: [f64; 3] = [1.0, 2.0, 5.0];
/// Decades that are few.
const FEW: f64 = 1e3;

/// A table for each function that fits and has lengths, the one with most calls first; and how many there are.
pub fn histogram(profile: &Profile, pattern: &Pattern, limit: usize) -> (Vec<Table>, usize) {
    let name = |id: FunctionId| profile.functions.get(id.0 as usize).map(|f| f.name.as_str());
    let mut found: Vec<(FunctionId, Known)> = lengths_by_function(profile).into_iter().collect();
    found.sort_by(|a, b| b.1.lengths.calls().cmp(&a.1.lengths.calls()).then(a.0.cmp(&b.0)));
    let exact = |id: FunctionId| name(id).is_some_and(|name| pattern.is(name));
    let any_exact = found.iter().any(|(id, _)| exact(*id));
    found.retain(|(id, _)| match any_exact {
        true => exact(*id),
        false => name(*id).is_some_and(|name| pattern.fits(name)),
    });
    let tables = found.iter().take(limit).filter_map(|(id, lengths)| table(profile, *id, lengths));
    (tables.collect(), found.len())
}

fn table(profile: &Profile, id: FunctionId, found: &Known) -> Option<Table> {
    let (lengths, unit_ns) = (&found.lengths, found.unit_ns(profile));
    let unit = profile.info.unit;
    let told = Percentiles::of(found, profile)?;
    let resolution = found.resolution(profile);
    let mut bins: Vec<(f64, u64)> = Vec::new();
    let is_wide = told.longest / told.shortest.max(resolution).max(unit_ns) > FEW;
    for bucket in lengths.buckets() {
        let middle = bucket.middle() as f64 * unit_ns;
        let from =
            if middle < resolution { 0.0 } else { step_below(middle, is_wide).max(resolution) };
        match bins.last_mut() {
            Some((last, calls)) if *last == from => *calls += bucket.calls,
            _ => bins.push((from, bucket.calls)),
        }
    }
    let bins = with_empty(&bins, is_wide, resolution);
    let most = bins.iter().map(|bin| bin.2).max()?.max(1) as f64;
    let all = lengths.calls() as f64;
    let mut so_far = 0u64;
    let rows = bins.iter().map(|&(from, below, calls)| {
        so_far += calls;
        let cells = vec![
            name_of(profile, Some(id), ""),
            module_of(profile, Some(id)),
            Cell::Time(from),
            Cell::Time(below),
            Cell::Count(calls),
            Cell::Share(calls as f64 / all),
            Cell::Share(so_far as f64 / all),
            Cell::Text(found.by(profile).to_owned()),
            Cell::Share(calls as f64 / most),
        ];
        Row { cells, ..Row::default() }
    });
    let rows = rows.collect();
    let columns = vec![
        Column::hidden("function", Kind::Name),
        Column::hidden("module", Kind::Text),
        Column::new("FROM", "from", Kind::Time),
        Column::new("BELOW", "below", Kind::Time),
        Column::new("CALLS", "calls", Kind::Count),
        Column::new("CALLS%", "share", Kind::Share),
        Column::new("SO FAR", "share_so_far", Kind::Share),
        Column::hidden("timed_by", Kind::Text),
        Column::new(" ", "", Kind::Bar),
    ];
    let Cell::Text(name) = name_of(profile, Some(id), "") else { return None };
    let title = format!(
        "{}: {}{}, {} on average. Half of them took {}, 99 of a hundred {}, the longest {}",
        crate::names::fit(&name, 60),
        units::counted(told.timed, "call"),
        if found.by_counter { ", timed by the counter" } else { "" },
        said(profile, &told.known_mean(), ""),
        said(profile, &known(told.percentiles[0], resolution), "up to "),
        said(profile, &known(told.percentiles[2], resolution), "up to "),
        said(profile, &known(told.longest, resolution), ""),
    );
    let calls: u64 = profile
        .threads
        .iter()
        .flat_map(|thread| &thread.tree.nodes[1.min(thread.tree.nodes.len())..])
        .filter(|node| node.function == id)
        .map(|node| node.calls)
        .sum();
    let notes = notes(profile, found.by_counter, calls.saturating_sub(told.timed));
    Some(Table { title, columns, rows, notes, unit })
}

/// A time as far as it is known, in running text.
fn said(profile: &Profile, cell: &Cell, before: &str) -> String {
    let time = |ns: f64| units::time_inline(profile.info.unit, ns);
    match *cell {
        Cell::Below(ns) => format!("less than {}", time(ns)),
        Cell::Time(ns) => before.to_owned() + &time(ns),
        _ => String::new(),
    }
}

/// Bins from the first to the last, each with where it ends: those without calls too.
fn with_empty(bins: &[(f64, u64)], is_wide: bool, resolution: f64) -> Vec<(f64, f64, u64)> {
    let mut out: Vec<(f64, f64, u64)> = Vec::new();
    for &(from, calls) in bins {
        while let Some(&(_, below, _)) = out.last()
            && below < from * (1.0 - 1e-9)
        {
            out.push((below, step_above(below, is_wide), 0));
        }
        let below = if from == 0.0 { resolution.max(1.0) } else { step_above(from, is_wide) };
        out.push((from, below, calls));
    }
    out
}

fn steps(is_wide: bool) -> &'static [f64] {
    if is_wide { &COARSE } else { &FINE }
}

fn decade(ns: f64) -> f64 {
    10f64.powi((ns * (1.0 + 1e-9)).log10().floor() as i32)
}

/// The last step that is not above this; 0 for less than a nanosecond.
fn step_below(ns: f64, is_wide: bool) -> f64 {
    if ns < 1.0 {
        return 0.0;
    }
    let decade = decade(ns);
    let step = steps(is_wide).iter().rev().find(|&&step| step * decade <= ns * (1.0 + 1e-9));
    step.map_or(decade, |step| step * decade)
}

/// The first step that is above this.
fn step_above(ns: f64, is_wide: bool) -> f64 {
    let decade = decade(ns);
    let step = steps(is_wide).iter().find(|&&step| step * decade > ns * (1.0 + 1e-9));
    step.map_or(10.0 * decade, |step| step * decade)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_one_another() {
        for is_wide in [false, true] {
            let mut at = 1.0;
            for _ in 0..40 {
                let next = step_above(at, is_wide);
                assert!(next > at && step_below(next, is_wide) == next, "{at} {next}");
                assert_eq!(step_below(next * 0.999, is_wide), at);
                at = next;
            }
        }
        assert_eq!(step_below(0.5, true), 0.0);
    }
}
