//! CPU time by the samples that threads' timers and events wrote, in the place of the clock's: what each
//! sample stands for, and where it belongs in a tree of calls.
//!
//! Events interrupt a thread in user mode alone, each time it has had a certain CPU time: of all of these
//! times a sample stands for one. The rest of the thread's CPU time is the kernel's. The samples of its
//! timer tell which code called it. Where more of them should have been in the kernel than were behind
//! a system call, the others tell of page faults and interrupts.

use std::collections::HashMap;

use crate::model::{FunctionId, Node, Time};
use crate::names::Names;
use crate::replay::{CallTree, Hits, Interrupted, SpentInTree, pseudo};

/// CPU time that samples stand for.
struct Weights {
    /// One of a timer behind a system call, nanoseconds.
    kernel: f64,
    /// One of a timer elsewhere, nanoseconds, where there are no events.
    user: f64,
    /// Time of page faults and interrupts by node, nanoseconds, for each sample of a timer elsewhere.
    faults: HashMap<u32, f64>,
}

impl Weights {
    fn of(spent: &SpentInTree) -> Self {
        let (mut events_ns, mut behind_calls, mut elsewhere) = (0.0, 0.0, 0.0);
        // Samples of timers, and time by events.
        let mut by_node: HashMap<u32, (f64, f64)> = HashMap::new();
        for ((node, place), hits) in &spent.hits {
            let (timers, ns) = (hits.timers as f64, hits.events_ns as f64);
            events_ns += ns;
            if place.is_in_kernel() {
                behind_calls += timers;
            } else {
                elsewhere += timers;
                let there = by_node.entry(*node).or_default();
                *there = (there.0 + timers, there.1 + ns);
            }
        }
        let cpu_ns = spent.cpu_ns as f64;
        let all = behind_calls + elsewhere;
        let each = if all > 0.0 { cpu_ns / all } else { 0.0 };
        let faults = HashMap::new();
        if events_ns == 0.0 {
            return Self { kernel: each, user: each, faults };
        }
        let kernel_ns = (cpu_ns - events_ns).max(0.0);
        let due = if cpu_ns > 0.0 { kernel_ns / cpu_ns * all } else { 0.0 };
        let of_faults = due - behind_calls;
        // Fewer may have come by chance.
        if of_faults <= DEVIATIONS * elsewhere.sqrt() {
            let kernel = if behind_calls > 0.0 { kernel_ns / behind_calls } else { 0.0 };
            return Self { kernel, user: 0.0, faults };
        }
        // What timers tell of a node beyond what events do, where that is no chance either.
        let beyond = |&(timers, ns): &(f64, f64)| {
            let beyond = timers - ns / each;
            if beyond > DEVIATIONS * timers.sqrt() { beyond } else { 0.0 }
        };
        let known: f64 = by_node.values().map(beyond).sum();
        let part = |(timers, ns): (f64, f64)| match known > 0.0 {
            true => of_faults * beyond(&(timers, ns)) / known / timers.max(1.0),
            false => of_faults / elsewhere,
        };
        let faults = by_node.into_iter().map(|(node, told)| (node, each * part(told))).collect();
        Self { kernel: each, user: 0.0, faults }
    }
}

/// Standard deviations of a count that tell a difference from chance.
const DEVIATIONS: f64 = 2.0;

/// Samples that tell of CPU time.
pub(crate) fn samples(spent: &SpentInTree) -> u64 {
    let has_events = spent.hits.values().any(|hits| hits.events > 0);
    let count = |((_, place), hits): (&(u32, Interrupted), &Hits)| {
        let is_told_by_timers = !has_events || place.is_in_kernel();
        hits.events + if is_told_by_timers { hits.timers } else { 0 }
    };
    spent.hits.iter().map(count).fold(0, u64::saturating_add)
}

/// Puts CPU time by samples in the place of the clock's, and waiting beside it. Code that was interrupted
/// and is not the function's own stands below it, and the kernel below the code that called it. Nodes of
/// the replayed tree have these numbers.
pub(crate) fn put(
    tree: &CallTree,
    numbers: &[u32],
    out: &mut Vec<Node>,
    names: &mut Names,
    ns_per_unit: f64,
) {
    for node in out.iter_mut() {
        node.self_time = Time::default();
    }
    for (&node, &units) in &tree.spent.waiting {
        out[numbers[node as usize] as usize].spent.waiting_ns += units as f64 * ns_per_unit;
    }
    let weights = Weights::of(&tree.spent);
    let mut leaves = Leaves::of(out);
    // In an order that follows from the recording alone.
    let mut hits: Vec<_> = tree.spent.hits.iter().collect();
    hits.sort_unstable_by_key(|(place, _)| **place);
    for (&(node, place), hits) in hits {
        let own = numbers[node as usize];
        let timers = hits.timers as f64;
        let faults = weights.faults.get(&node).copied().unwrap_or(0.0);
        let is_in_kernel = place.is_in_kernel();
        let function = match place {
            Interrupted::Hook(_) => {
                let each = if is_in_kernel { weights.kernel } else { weights.user + faults };
                out[own as usize].spent.hooks_ns += hits.events_ns as f64 + timers * each;
                continue;
            }
            Interrupted::Site(site, _) => names.at(tree.process, site),
            Interrupted::Address(address, _) => names
                .site_at(tree.process, address)
                .map(|site| names.at(tree.process, site))
                .unwrap_or_else(|| names.function(tree.process, pseudo::NO_FILE)),
        };
        let is_own = own != 0 && out[own as usize].function == function;
        let there = if is_own { own } else { leaves.below(out, own, function) };
        let mut kernel = (0, 0.0);
        let mut user = (hits.events, hits.events_ns as f64);
        match is_in_kernel {
            true => kernel = (hits.timers, weights.kernel),
            false if faults > 0.0 => kernel = (hits.timers, faults),
            false if weights.user > 0.0 => user = (hits.timers, timers * weights.user),
            false => {}
        }
        add(&mut out[there as usize], user.0, user.1);
        if kernel.0 > 0 && kernel.1 > 0.0 {
            let function = names.function(tree.process, pseudo::KERNEL);
            let there = leaves.below(out, there, function);
            add(&mut out[there as usize], kernel.0, kernel.0 as f64 * kernel.1);
        }
    }
}

/// So many samples, which stand for this together.
fn add(node: &mut Node, samples: u64, ns: f64) {
    node.self_time += Time::from(ns);
    node.spent.samples += samples;
    node.spent.variance += ns * ns / samples.max(1) as f64;
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
}
