//! Processes whose threads could not be interrupted any more: their later CPU time is not told.

use std::collections::{BTreeMap, BTreeSet};

use teeperf_profile::model::{PointKind, Profile};

use super::{Finding, push};
use crate::names::printable;

/// How the runtime's notes of it end (`teeperf-rt/src/signals.rs`, `sampler.rs`).
const ENDING: &str = "its CPU time is not sampled from here on";
/// How the one begins that is of a filter.
const OF_FILTER: &str = "the program filters its system calls";

/// Where the runtime left the signal of samples to the program, or a filter of system calls ended
/// samples.
pub(super) fn unsampled(profile: &Profile, found: &mut Vec<Finding>) {
    let notes = profile.points.iter().filter(|point| point.kind == PointKind::Note);
    let ours = notes.filter(|point| point.name.ends_with(ENDING));
    let mut by_text: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for point in ours {
        by_text.entry(&point.name).or_default().insert(point.pid);
    }
    for (text, processes) in by_text {
        let first: Vec<_> = processes.iter().take(MOST_NAMED).map(u32::to_string).collect();
        let first = first.join(", ");
        let these = match processes.len() {
            1 => format!("process {first}"),
            number if number <= MOST_NAMED => format!("processes {first}"),
            number => format!("{number} processes (first: {first})"),
        };
        let (times, next) = match text.starts_with(OF_FILTER) {
            false => (
                "",
                "The clock tells where that went, which may be wrong: let the program leave \
                    one of these signals alone.",
            ),
            true => (
                ": times are the clock's, which has waiting in them",
                "Samples go on where a filter by prctl lets clock_gettime and rt_sigreturn pass.",
            ),
        };
        let what = format!("In {these} {}{times}.", printable(text));
        push(found, true, what, next);
    }
}

/// Most process ids that are named.
const MOST_NAMED: usize = 8;
