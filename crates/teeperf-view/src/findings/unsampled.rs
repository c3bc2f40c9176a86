//! Processes whose threads could not be interrupted any more: their later CPU time is not told.

use std::collections::{BTreeMap, BTreeSet};

use teeperf_profile::model::{PointKind, Profile};

use super::{Finding, push};
use crate::names::printable;

/// How the runtime's notes of it end (`teeperf-rt/src/signals.rs`).
const ENDING: &str = "its CPU time is not sampled from here on";

/// Where the runtime left the signal of samples to the program.
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
        let what = format!("In {these} {}.", printable(text));
        let next = "The clock tells where that went, which may be wrong: let the program leave \
            one of these signals alone.";
        push(found, true, what, next);
    }
}

/// Most process ids that are named.
const MOST_NAMED: usize = 8;
