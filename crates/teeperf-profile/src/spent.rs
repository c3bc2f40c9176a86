//! CPU time by the samples that threads' timers and events wrote, in the place of the clock's: what
//! each sample stands for, and where it belongs in a tree of calls.
//!
//! Events interrupt a thread in user mode alone, each time it has had a certain CPU time: of all of
//! these times a sample stands for one. The rest of the thread's CPU time is the kernel's. The
//! samples of its timer tell which code called it. Where more of them should have been in the
//! kernel than were behind a system call, the others tell of page faults and interrupts. Where the
//! kernel had more time than that, and the thread waited, it is around the waits.

#[cfg(test)]
mod coverage;
mod weights;

use std::collections::{BTreeMap, HashMap};

use crate::model::{FunctionId, Node, Time};
use crate::names::Names;
use crate::replay::{CallTree, Hits, Interrupted, LONGEST_NS, pseudo};
pub(crate) use weights::{Pools, Weights, samples};

/// Most functions that are inlined into one another.
const MOST_INLINED: u32 = 64;
/// Nodes of a tree from which on what was inlined has none of its own.
const MOST_NODES: usize = 1 << 22;

/// How samples are told.
#[derive(Clone, Copy)]
pub(crate) struct How<'a> {
    pub(crate) weights: &'a Weights,
    /// Inlined functions stand below the function that they are part of.
    pub(crate) with_inlined: bool,
    /// Samples tell of CPU time, of some thread at least.
    pub(crate) is_sampled: bool,
}

/// Puts CPU time by samples in the place of the clock's, and waiting beside it. Code that was
/// interrupted and is not the function's own stands below it, and the kernel below the code that
/// called it. Nodes of the replayed tree have these numbers.
pub(crate) fn put(
    tree: &CallTree,
    numbers: &[u32],
    out: &mut Vec<Node>,
    names: &mut Names,
    ns_per_unit: f64,
    how: How<'_>,
) {
    for node in out.iter_mut() {
        node.self_time = Time::default();
    }
    for (&node, &units) in &tree.spent.waiting {
        out[numbers[node as usize] as usize].spent.waiting_ns += units as f64 * ns_per_unit;
    }
    for (&node, &units) in &tree.spent.clocked {
        let node = &mut out[numbers[node as usize] as usize];
        let ns = units as f64 * ns_per_unit;
        node.self_time += Time::from(ns);
        // No better known than by samples that are as rare as they may be.
        node.spent.variance += ns * LONGEST_NS;
    }
    let weights = how.weights;
    let mut leaves = Leaves::of(out);
    let kernel = |names: &mut Names| names.function(tree.process, pseudo::KERNEL);
    if weights.unplaced_ns > 0.0 {
        let there = leaves.add(out, 0, kernel(names), weights.unplaced_ns, 0.0);
        there.spent.unplaced_ns += weights.unplaced_ns;
    }
    if weights.wait_ns > 0.0 {
        let kernel = kernel(names);
        let mut waits: Vec<_> = tree.spent.waits.iter().collect();
        waits.sort_unstable();
        for (&node, &waits) in waits {
            let (own, waits) = (numbers[node as usize], waits as f64);
            let there = leaves.add(out, own, kernel, weights.wait_ns * waits, 0.0);
            there.spent.shared_ns += weights.wait_deviation_ns * waits;
        }
    }
    if weights.unsampled_ns > 0.0 {
        let none = names.function(tree.process, pseudo::NO_SAMPLE);
        let variance = weights.unsampled_ns * LONGEST_NS;
        let there = leaves.add(out, 0, none, weights.unsampled_ns, variance);
        there.spent.unsampled_ns += weights.unsampled_ns;
    }
    // Samples of timers among page faults: what a tick stands for is the same at each instruction.
    let mut faulted: BTreeMap<(u32, u32), Hits> = BTreeMap::new();
    // In an order that follows from the recording alone.
    let mut hits: Vec<_> = tree.spent.hits.iter().collect();
    hits.sort_unstable_by_key(|(place, _)| **place);
    for (&(node, place), hits) in hits {
        let own = numbers[node as usize];
        let faults = weights.faults.get(&node).map_or(0.0, |faults| faults.part);
        let is_in_kernel = place.is_in_kernel();
        let events = if is_in_kernel { 0.0 } else { 1.0 };
        let (function, site) = match place {
            Interrupted::Hook(_) => {
                let each = if is_in_kernel { weights.kernel } else { weights.user + faults };
                let of_timers = hits.timers.ns * each + hits.alone.ns * weights.alone;
                out[own as usize].spent.hooks_ns += hits.events.ns * events + of_timers;
                continue;
            }
            Interrupted::Site(site, _) => (names.at(tree.process, site), Some(site)),
            Interrupted::Address(address, _) => match names.site_at(tree.process, address) {
                Some(site) => (names.at(tree.process, site), Some(site)),
                None => (names.function(tree.process, pseudo::NO_FILE), None),
            },
        };
        let there = match is_within(out, own, function) {
            true => own,
            false => leaves.below(out, own, function),
        };
        let inlined = site.filter(|_| how.with_inlined && out.len() < MOST_NODES);
        let inlined = inlined.map(|site| names.inlined_at(tree.process, site)).unwrap_or_default();
        let inlined = not_open(&inlined, out[there as usize].function, function);
        let there = inlined.iter().fold(there, |there, &each| leaves.below(out, there, each));
        let (user, kernel, alone, alone_in_kernel) = match is_in_kernel {
            true => (0.0, weights.kernel, 0.0, weights.alone),
            false => (weights.user, faults, weights.alone, 0.0),
        };
        add(&mut out[there as usize], &hits.events, events);
        add(&mut out[there as usize], &hits.timers, user);
        add(&mut out[there as usize], &hits.alone, alone);
        let parts = [(&hits.timers, kernel), (&hits.alone, alone_in_kernel)];
        if parts.iter().any(|(hits, part)| hits.samples > 0 && *part > 0.0) {
            let function = names.function(tree.process, pseudo::KERNEL);
            let there = leaves.below(out, there, function);
            let kernel = &mut out[there as usize];
            for (hits, part) in parts {
                add(kernel, hits, part);
                kernel.spent.kernel_ns += hits.ns * part;
            }
            if is_in_kernel {
                out[there as usize].spent.shared_ns += hits.timers.ns * weights.kernel_deviation;
            } else {
                faulted.entry((there, node)).or_default().add(hits.timers);
            }
        }
    }
    for ((there, node), timers) in faulted {
        let faults = weights.faults.get(&node).copied().unwrap_or_default();
        let (variance, shared_ns) = weights.error_of_faults(&timers, faults);
        let spent = &mut out[there as usize].spent;
        spent.variance += variance;
        spent.shared_ns += shared_ns;
    }
}

/// Whether code of a function belongs to a node: it is the node's own, or that of a function that
/// called it, into which the compiler inlined it.
fn is_within(nodes: &[Node], node: u32, function: FunctionId) -> bool {
    let mut at = node;
    for _ in 0..MOST_INLINED {
        let Node { parent, function: here, .. } = nodes[at as usize];
        match at {
            0 => return false,
            _ if here == function => return true,
            _ => at = parent,
        }
    }
    false
}

/// Of functions that were inlined into `whole`, the outermost first, those that are not open where
/// `own` is the innermost call: hooks of the source tell of some.
fn not_open(inlined: &[FunctionId], own: FunctionId, whole: FunctionId) -> &[FunctionId] {
    match inlined.iter().rposition(|&each| each == own) {
        Some(at) => &inlined[at + 1..],
        None if own == whole => inlined,
        None => &[],
    }
}

/// Samples, which stand for such a part of what they stand for by their periods.
fn add(node: &mut Node, hits: &Hits, part: f64) {
    if part > 0.0 {
        node.self_time += Time::from(hits.ns * part);
        node.spent.samples += hits.samples;
        node.spent.variance += hits.squares * part * part;
    }
}

/// Nodes by caller and function.
struct Leaves(HashMap<(u32, FunctionId), u32>);

impl Leaves {
    fn of(nodes: &[Node]) -> Self {
        let all = nodes.iter().zip(0..).skip(1);
        Self(all.map(|(node, at)| ((node.parent, node.function), at)).collect())
    }

    /// The node of a function below another, made if there is none.
    fn below(&mut self, out: &mut Vec<Node>, parent: u32, function: FunctionId) -> u32 {
        *self.0.entry((parent, function)).or_insert_with(|| {
            let (self_time, total) = (Time::default(), Time::default());
            let (calls, extremes, spent) = (0, None, Default::default());
            out.push(Node { parent, function, calls, self_time, total, extremes, spent });
            out.len() as u32 - 1
        })
    }

    /// Adds CPU time that no sample is of to a function below another, nanoseconds, and its variance.
    /// Gives its node.
    fn add<'a>(
        &mut self,
        out: &'a mut Vec<Node>,
        parent: u32,
        function: FunctionId,
        ns: f64,
        variance: f64,
    ) -> &'a mut Node {
        let there = self.below(out, parent, function);
        let node = &mut out[there as usize];
        node.self_time += Time::from(ns);
        node.spent.variance += variance;
        node
    }
}
