//! How much CPU time a sample stands for.

use std::collections::HashMap;

use super::LONGEST_NS;
use crate::replay::{CallTree, Hits, Kinds, SpentInTree};

/// Part of CPU time that samples may cost.
const OWN_COST: f64 = 0.05;
/// Standard deviations of a count that tell a difference from chance.
const DEVIATIONS: f64 = 2.0;
/// Threads with fewer samples have the weights of all of these in their process. A thread that
/// lives for less than a period may have no sample, or one that stands for more than its time.
const FEW: u64 = 200;
/// Samples behind system calls that are too few to tell of more time than they may stand for.
const FEW_IN_KERNEL: u64 = 8;

/// Samples of one or more threads, and their CPU time.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    events: Hits,
    /// Of timers beside events: those behind a system call, all others, and of these those that may
    /// have met page faults.
    behind_calls: Hits,
    elsewhere: Hits,
    faults: Hits,
    /// Of timers of threads without events.
    alone: Hits,
    cpu_ns: f64,
    cpu_alone_ns: f64,
}

impl Sums {
    fn of(spent: &SpentInTree) -> Self {
        let (cpu_ns, cpu_alone_ns) = (spent.cpu_ns as f64, spent.cpu_alone_ns as f64);
        let mut sums = Self { cpu_ns, cpu_alone_ns, ..Self::default() };
        for ((_, place), hits) in &spent.hits {
            sums.events.add(hits.events);
            sums.alone.add(hits.alone);
            match place.is_in_kernel() {
                true => sums.behind_calls.add(hits.timers),
                false => {
                    sums.elsewhere.add(hits.timers);
                    sums.faults.add(hits.faults);
                }
            }
        }
        sums
    }

    fn add(&mut self, other: &Self) {
        self.events.add(other.events);
        self.behind_calls.add(other.behind_calls);
        self.elsewhere.add(other.elsewhere);
        self.faults.add(other.faults);
        self.alone.add(other.alone);
        self.cpu_ns += other.cpu_ns;
        self.cpu_alone_ns += other.cpu_alone_ns;
    }

    /// Most time of the kernel that samples behind system calls tell the place of, nanoseconds. Where
    /// the kernel keeps its tick back, one of very few would stand for all of it.
    fn placed_ns(&self) -> f64 {
        match self.behind_calls.samples {
            samples @ 0..FEW_IN_KERNEL => (samples as f64 * LONGEST_NS).max(self.behind_calls.ns),
            _ => f64::INFINITY,
        }
    }

    fn are_few(&self) -> bool {
        let kinds = [self.events, self.behind_calls, self.elsewhere, self.alone];
        kinds.iter().map(|hits| hits.samples).fold(0, u64::saturating_add) < FEW
    }
}

/// Samples that tell of CPU time.
pub(crate) fn samples(spent: &SpentInTree) -> u64 {
    let Sums { events, behind_calls, elsewhere, alone, .. } = Sums::of(spent);
    let elsewhere = if events.samples == 0 { elsewhere.samples } else { 0 };
    let all = [events.samples, behind_calls.samples, alone.samples, elsewhere];
    all.into_iter().fold(0, u64::saturating_add)
}

/// Threads with few samples, by process.
pub(crate) struct Pools(HashMap<u32, Sums>);

impl Pools {
    pub(crate) fn of<'a>(trees: impl Iterator<Item = &'a CallTree>) -> Self {
        let mut pools: HashMap<u32, Sums> = HashMap::new();
        for tree in trees {
            let sums = Sums::of(&tree.spent);
            if sums.are_few() {
                pools.entry(tree.process).or_default().add(&sums);
            }
        }
        Self(pools)
    }
}

/// CPU time that samples stand for, as parts of what they stand for by their periods.
#[derive(Default)]
pub(super) struct Weights {
    /// Those of timers behind a system call.
    pub(super) kernel: f64,
    /// Those of timers elsewhere, where there are no events.
    pub(super) user: f64,
    /// Those of timers of threads without events.
    pub(super) alone: f64,
    /// Page faults by node, as parts of the samples of timers elsewhere.
    pub(super) faults: HashMap<u32, f64>,
    /// Time of the kernel of which no sample tells the place, nanoseconds.
    pub(super) unplaced_ns: f64,
    /// Time of which no sample tells, and which may be as much by chance, nanoseconds.
    pub(super) unsampled_ns: f64,
}

impl Weights {
    /// Of a tree, which may be one of few samples in its process.
    pub(super) fn of(tree: &CallTree, pools: &Pools) -> Self {
        let own = Sums::of(&tree.spent);
        let sums = pools.0.get(&tree.process).filter(|_| own.are_few()).unwrap_or(&own);
        let alone = part(sums.cpu_alone_ns, sums.alone.ns);
        let each = part(sums.cpu_ns, sums.behind_calls.ns + sums.elsewhere.ns);
        if sums.events.samples == 0 {
            return Self { kernel: each, user: each, alone, ..Self::default() };
        }
        let kernel_ns = (sums.cpu_ns - sums.events.ns).max(0.0);
        let of_faults = (kernel_ns - each * sums.behind_calls.ns).min(each * sums.faults.ns);
        // As much may have come by chance.
        let is_chance = of_faults <= DEVIATIONS * each * sums.faults.squares.sqrt();
        let of_faults = if is_chance { 0.0 } else { of_faults };
        let of_calls = kernel_ns - of_faults;
        // Samples cost time of the kernel themselves.
        let least = DEVIATIONS * sums.events.squares.sqrt() + OWN_COST * sums.cpu_ns;
        let of_faults = of_faults * part(own.faults.ns, sums.faults.ns);
        let placed = sums.placed_ns().min(of_calls);
        let rest = of_calls - placed;
        let rest_here = rest * part(own.cpu_ns, sums.cpu_ns);
        let (unplaced_ns, rest_here) =
            if rest > least { (rest_here, 0.0) } else { (0.0, rest_here) };
        Self {
            kernel: part(placed, sums.behind_calls.ns),
            user: 0.0,
            alone,
            faults: faults(&tree.spent, each, of_faults),
            unplaced_ns,
            unsampled_ns: rest_here,
        }
    }
}

/// Parts of the samples of timers by node that are its page faults, where so much time is.
fn faults(spent: &SpentInTree, each: f64, of_faults: f64) -> HashMap<u32, f64> {
    if of_faults <= 0.0 {
        return HashMap::new();
    }
    let mut by_node: HashMap<u32, Kinds> = HashMap::new();
    for ((node, place), hits) in &spent.hits {
        if !place.is_in_kernel() {
            by_node.entry(*node).or_default().add(*hits);
        }
    }
    by_node.retain(|_, told| told.faults.samples > 0);
    // Timers tell more time of a node than events do: its faults, if that is no chance.
    let beyond = |Kinds { events, timers, .. }: &Kinds| {
        let beyond = each * timers.ns - events.ns;
        if beyond > DEVIATIONS * each * timers.squares.sqrt() { beyond } else { 0.0 }
    };
    let known: f64 = by_node.values().map(beyond).sum();
    let all: f64 = by_node.values().map(|told| told.timers.ns).sum();
    let of = |(node, told): (u32, Kinds)| match known > 0.0 {
        true => (node, of_faults * part(beyond(&told), known * told.timers.ns)),
        false => (node, part(of_faults, all)),
    };
    by_node.into_iter().map(of).collect()
}

fn part(ns: f64, of: f64) -> f64 {
    if of > 0.0 { ns / of } else { 0.0 }
}
