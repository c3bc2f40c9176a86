//! Figures that one call makes most of: of what is called often, a mean says little then.

use super::{Finding, push};
use crate::{names, units};
use std::collections::{BTreeMap, BTreeSet};
use teeperf_profile::model::{FunctionId, Profile};

/// Fewest calls of a function whose mean one could take for a call's time.
const FEWEST: u64 = 3;
/// Least part of a function's time that one call takes, and least part of all time that the function has.
const LEAST_PART: f64 = 0.5;
const LEAST_OF_ALL: f64 = 0.05;
/// Most functions named.
const NAMED: usize = 3;

/// All calls of a function, or those on one path.
#[derive(Clone, Copy, Default)]
struct Calls {
    count: u64,
    sum_ns: f64,
    longest_ns: f64,
}

/// Functions of which one call took most, as far as lengths of calls are known.
pub(super) fn single(profile: &Profile, found: &mut Vec<Finding>) {
    let all = profile.framed_ns();
    let is_single = |calls: &Calls| {
        calls.count >= FEWEST
            && calls.longest_ns >= LEAST_PART * calls.sum_ns
            && calls.sum_ns >= LEAST_OF_ALL * all
            && calls.sum_ns > 0.0
    };
    let mut known: Vec<(FunctionId, Calls)> =
        timed(profile).into_iter().filter(|(_, calls)| is_single(calls)).collect();
    known.extend(summed(profile).filter(|(_, calls)| is_single(calls)));
    known.sort_by(|a, b| b.1.longest_ns.total_cmp(&a.1.longest_ns));
    let mut seen = BTreeSet::new();
    known.retain(|(function, _)| seen.insert(*function));
    for (function, calls) in known.into_iter().take(NAMED) {
        let name = profile.functions.get(function.0 as usize).map_or("[unknown]", |f| &f.name);
        let time = |ns| units::time_inline(profile.info.unit, ns);
        let what = format!(
            "One call of {} took {} of the {} of its {} calls: their mean says little.",
            names::fit(name, 60),
            time(calls.longest_ns),
            time(calls.sum_ns),
            units::count(calls.count),
        );
        push(found, false, what, "");
    }
}

/// Of functions whose calls were timed one by one.
fn timed(profile: &Profile) -> BTreeMap<FunctionId, Calls> {
    let mut all: BTreeMap<FunctionId, Calls> = BTreeMap::new();
    let Some(unit) = profile.length_unit_ns else { return all };
    for (function, lengths) in profile.threads.iter().flat_map(|thread| &thread.lengths) {
        let calls = all.entry(*function).or_default();
        calls.count += lengths.calls();
        calls.sum_ns += lengths.sum() as f64 * unit;
        let longest = lengths.extremes().map_or(0.0, |(_, most)| most as f64 * unit);
        calls.longest_ns = calls.longest_ns.max(longest);
    }
    all
}

/// Of call paths that were summed while the program ran.
fn summed(profile: &Profile) -> impl Iterator<Item = (FunctionId, Calls)> {
    let nodes = profile.threads.iter().flat_map(|thread| thread.tree.nodes.iter().skip(1));
    nodes.filter_map(|node| {
        let longest_ns = node.extremes?.longest_ns.min(node.total.value);
        Some((node.function, Calls { count: node.calls, sum_ns: node.total.value, longest_ns }))
    })
}
