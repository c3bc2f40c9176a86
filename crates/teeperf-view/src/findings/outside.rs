//! Time of a processor that threads had outside of all recorded calls: no table shows it.

use super::{Finding, push};
use crate::{names, units};
use teeperf_profile::model::{Profile, Thread};

/// Least part of a thread's CPU time that is said, and least time, nanoseconds.
const LEAST_PART: f64 = 0.5;
const LEAST_NS: f64 = 100e6;
/// Most threads named.
const NAMED: usize = 3;

/// Where threads ran outside of hooked code for most of their CPU time.
pub(super) fn outside(profile: &Profile, found: &mut Vec<Finding>) {
    let is_filtered = profile.info.filters.iter().any(|rules| !rules.is_empty());
    let is_part = profile.part_of_ns.is_some();
    if profile.info.is_sampled() || profile.graph.is_some() || is_filtered || is_part {
        return;
    }
    let of = |thread| Some((least_outside(thread)?, thread));
    let mut threads: Vec<(f64, &Thread)> = profile.threads.iter().filter_map(of).collect();
    threads.sort_by(|a, b| b.0.total_cmp(&a.0));
    if threads.is_empty() {
        return;
    }
    let time = |ns| units::time_inline(profile.info.unit_of_durations(), ns);
    let named = threads.iter().take(NAMED).map(|(ns, thread)| {
        let cpu = thread.cpu_ns.unwrap_or(0) as f64;
        let name = names::fit(&thread.name, 40);
        format!("{name} (thread {}) for {} of {}", thread.tid, time(*ns), time(cpu))
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match threads.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {} more", units::counted(more as u64, "thread")),
    };
    let what = format!(
        "Threads had a processor outside of all recorded calls for most of their CPU time, at least: {named}{more}. No function \
         has that time."
    );
    let next = "That code has no hooks: build it with `teeperf cc` too, or take samples of all code beside, by \
                `record --sample`.";
    push(found, false, what, next);
}

/// The CPU time that a thread must have had outside of calls, had it run through all of the time in them; nothing where that
/// is little.
fn least_outside(thread: &Thread) -> Option<f64> {
    let cpu = thread.cpu_ns? as f64;
    let root = thread.tree.nodes.first()?;
    let outside = root.self_time.low + thread.left_out_ns as f64 + thread.waited_ns as f64;
    let least = (cpu - (thread.wall_ns as f64 - outside).max(0.0)).min(root.self_time.low);
    (least >= LEAST_NS && least >= LEAST_PART * cpu).then_some(least)
}
