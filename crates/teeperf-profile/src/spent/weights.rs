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
    /// How often they waited.
    waits: u64,
}

impl Sums {
    fn of(spent: &SpentInTree) -> Self {
        let (cpu_ns, cpu_alone_ns) = (spent.cpu_ns as f64, spent.cpu_alone_ns as f64);
        let waits = spent.waits.values().fold(0, |all: u64, &waits| all.saturating_add(waits));
        let mut sums = Self { cpu_ns, cpu_alone_ns, waits, ..Self::default() };
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
        self.waits = self.waits.saturating_add(other.waits);
    }

    /// Of so much time of the kernel in system calls, that around waits which no tick sees: the kernel
    /// keeps its tick back when it leaves a processor idle. Ticks elsewhere, in code and in page
    /// faults, tell what one stands for.
    fn around_waits_ns(&self, of_calls: f64, of_faults: f64) -> f64 {
        let each = match self.elsewhere.samples {
            0..FEW_IN_KERNEL => 1.0,
            _ => part(self.events.ns + of_faults, self.elsewhere.ns),
        };
        let rest = of_calls - each * self.behind_calls.ns;
        let chance = (self.events.squares + each * each * self.behind_calls.squares).sqrt();
        if self.waits > 0 && rest > DEVIATIONS * chance { rest } else { 0.0 }
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
    /// Time of the kernel around each wait, and the square of its deviation, nanoseconds.
    pub(super) wait_ns: f64,
    pub(super) wait_variance: f64,
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
        let around_waits = sums.around_waits_ns(of_calls, of_faults);
        let of_faults = of_faults * part(own.faults.ns, sums.faults.ns);
        let of_calls = of_calls - around_waits;
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
            wait_ns: part(around_waits, sums.waits as f64),
            wait_variance: part(
                sums.events.squares + sums.behind_calls.squares,
                (sums.waits as f64).powi(2),
            ),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Interrupted;

    const MS: f64 = 1e6;

    /// So many samples, each of so many milliseconds.
    fn hits(samples: u64, each_ms: f64) -> Hits {
        let (n, each) = (samples as f64, each_ms * MS);
        Hits { samples, ns: n * each, squares: n * each * each }
    }

    /// Of a thread with samples of events, and of its timer in the kernel.
    fn weights(events: Hits, in_kernel: Hits, cpu_ms: u64) -> Weights {
        let mut tree = CallTree::new(0);
        let user = Kinds { events, ..Kinds::default() };
        let kernel = Kinds { timers: in_kernel, ..Kinds::default() };
        tree.spent.hits.insert((1, Interrupted::Site(7, false)), user);
        tree.spent.hits.insert((1, Interrupted::Site(8, true)), kernel);
        tree.spent.cpu_ns = cpu_ms * MS as u64;
        Weights::of(&tree, &Pools::of([&tree].into_iter()))
    }

    /// Guards: CPU time that is in no column.
    #[test]
    fn time_that_no_sample_tells_of_is_told() {
        let few = weights(hits(20, 1.0), Hits::default(), 25);
        assert_eq!((few.unsampled_ns, few.unplaced_ns), (5.0 * MS, 0.0));
        // As much is not by chance.
        let much = weights(hits(20, 1.0), Hits::default(), 60);
        assert_eq!((much.unsampled_ns, much.unplaced_ns), (0.0, 40.0 * MS));
    }

    /// Guards: time around waits that is given to whatever else called the kernel.
    #[test]
    fn time_around_waits_is_where_the_thread_waited() {
        let mut tree = CallTree::new(0);
        let kinds = |events, timers| Kinds { events, timers, ..Kinds::default() };
        let user = kinds(hits(400, 1.0), hits(100, 4.0));
        tree.spent.hits.insert((1, Interrupted::Site(7, false)), user);
        tree.spent
            .hits
            .insert((1, Interrupted::Site(8, true)), kinds(Hits::default(), hits(25, 4.0)));
        tree.spent.cpu_ns = 700_000_000;
        let pools = |tree: &CallTree| Pools::of([tree].into_iter());
        // Without waits all of it is what samples tell of.
        let none = Weights::of(&tree, &pools(&tree));
        assert_eq!((none.kernel, none.wait_ns), (3.0, 0.0));
        tree.spent.waits.insert(2, 1000);
        let some = Weights::of(&tree, &pools(&tree));
        assert_eq!((some.kernel, some.wait_ns), (1.0, 0.2 * MS));
    }

    /// Guards: system calls told as waits, where page faults have most of the timers' samples.
    #[test]
    fn system_calls_beside_page_faults_keep_their_time() {
        let mut tree = CallTree::new(0);
        let (events, faults) = (hits(400, 1.0), hits(300, 4.0));
        let user = Kinds { events, timers: hits(400, 4.0), faults, ..Kinds::default() };
        let call = Kinds { timers: hits(100, 4.0), ..Kinds::default() };
        tree.spent.hits.insert((1, Interrupted::Site(7, false)), user);
        tree.spent.hits.insert((1, Interrupted::Site(8, true)), call);
        tree.spent.cpu_ns = 2_000_000_000;
        tree.spent.waits.insert(2, 1000);
        let weights = Weights::of(&tree, &Pools::of([&tree].into_iter()));
        assert_eq!((weights.kernel, weights.wait_ns), (1.0, 0.0));
    }

    /// Guards: one sample of the kernel that stands for all that the kernel took.
    #[test]
    fn few_samples_of_the_kernel_tell_of_little_time() {
        let one = weights(hits(20, 1.0), hits(1, 4.0), 60);
        assert_eq!((one.kernel, one.unplaced_ns), (2.5, 30.0 * MS));
        let many = weights(hits(20, 1.0), hits(8, 4.0), 120);
        assert_eq!((many.kernel, many.unplaced_ns), (100.0 / 32.0, 0.0));
    }
}
