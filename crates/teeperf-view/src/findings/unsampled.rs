//! Processes whose threads could not be interrupted any more: their later CPU time is not told.

use std::collections::BTreeMap;

use teeperf_profile::model::{PointKind, Profile};

use super::{Finding, push};
use crate::names::printable;

/// How the runtime's notes of it end (`teeperf-rt/src/signals.rs`).
const ENDING: &str = "its CPU time is not sampled from here on";

/// Where the runtime left the signal of samples to the program.
pub(super) fn unsampled(profile: &Profile, found: &mut Vec<Finding>) {
    let notes = profile.points.iter().filter(|point| point.kind == PointKind::Note);
    let ours = notes.filter(|point| point.name.ends_with(ENDING));
    let by_process: BTreeMap<u32, &str> = ours.map(|point| (point.pid, &*point.name)).collect();
    for (pid, text) in by_process {
        let what = format!("In process {pid} {}.", printable(text));
        let next = "`teeperf record --no-cpu-samples` has the clock tell its times.";
        push(found, true, what, next);
    }
}
