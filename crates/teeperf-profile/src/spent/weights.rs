//! How much CPU time a sample stands for.

use std::collections::HashMap;

use teeperf_wire::word::off_cpu;

use crate::contents::Process;
use crate::replay::{CallTree, Hits, Kinds, LONGEST_NS, SpentInTree, pseudo};

/// Part of CPU time that samples may cost.
const OWN_COST: f64 = 0.05;
/// Standard deviations of a count that tell a difference from chance.
const DEVIATIONS: f64 = 2.0;
/// Threads with fewer samples have the weights of all of these in their program. A thread that
/// lives for less than a period may have no sample, or one that stands for more than its time.
const FEW: u64 = 200;
/// CPU time around a wait in the mean, and the deviation of that, nanoseconds.
const OF_A_WAIT_NS: f64 = 10e3;
/// Least of it: the thread leaves its processor and comes back.
const LEAST_OF_A_WAIT_NS: f64 = 1e3;
/// Samples that are too few to tell of more time than they may stand for.
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

/// CPU time that a tick stands for, as a part of the time from one tick to the next.
#[derive(Clone, Copy)]
struct Each {
    part: f64,
    /// Variance of that.
    error: f64,
}

impl Each {
    /// A thread that waits has this before its samples tell: the kernel keeps some ticks back, and
    /// looks at timers at the others alone.
    const KNOWN: Self = Self { part: 1.0, error: 0.01 };

    /// Few samples tell less than is known before.
    fn beside_what_is_known(self) -> Self {
        let told = part(Self::KNOWN.error, Self::KNOWN.error + self.error);
        let known = Self::KNOWN.part;
        Self { part: known + told * (self.part - known), error: told * self.error }
    }
}

/// Time of the kernel by where it is, nanoseconds.
struct Kernel {
    each: Each,
    faults_ns: f64,
    /// In system calls that samples tell of.
    calls_ns: f64,
    unseen: Unseen,
    /// Of that around waits, and likewise of that in calls.
    variance: f64,
}

/// Time of the kernel of which ticks do not tell, nanoseconds.
#[derive(Clone, Copy, Default)]
struct Unseen {
    /// Around waits, where no tick comes: the kernel keeps its tick back when it leaves a processor
    /// idle.
    waits_ns: f64,
    /// Of no known place.
    unplaced_ns: f64,
}

impl Sums {
    fn of(spent: &SpentInTree) -> Self {
        let (cpu_ns, cpu_alone_ns) = (spent.cpu_ns as f64, spent.cpu_alone_ns as f64);
        let waits = spent.waits.values().fold(0, |all: u64, &waits| all.saturating_add(waits));
        let mut sums = Self { cpu_ns, cpu_alone_ns, waits, ..Self::default() };
        for ((_, place), hits) in &spent.hits {
            sums.alone.add(hits.alone);
            match place.is_in_kernel() {
                // Events that came late, when a system call had ended, tell nothing: timers do.
                true => sums.behind_calls.add(hits.timers),
                false => {
                    sums.events.add(hits.events);
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

    fn all_cpu_ns(&self) -> f64 {
        self.cpu_ns + self.cpu_alone_ns
    }

    /// The kernel's time of threads with events. All ticks that come to a thread which never waits
    /// stand for equal parts of its CPU time. One that waits misses some.
    fn kernel(&self) -> Kernel {
        let all_ns = (self.cpu_ns - self.events.ns).max(0.0);
        let of_tick = self.each_tick();
        let Each { part: each, error } = of_tick;
        let faults_ns = (each * self.elsewhere.ns - self.events.ns).max(0.0);
        let of_each = error * self.elsewhere.ns * self.elsewhere.ns;
        let most_ns = all_ns.min(each * self.faults.ns);
        // As much may have come by chance.
        let of_ticks = each * each * self.elsewhere.squares + of_each;
        let is_chance = faults_ns <= DEVIATIONS * (self.events.squares + of_ticks).sqrt();
        let faults_ns = faults_ns.min(most_ns);
        let of_calls = all_ns - faults_ns;
        if self.waits == 0 {
            let (calls_ns, unseen, variance) = (of_calls, Unseen::default(), 0.0);
            return Kernel { each: of_tick, faults_ns, calls_ns, unseen, variance };
        }
        // Of threads without page faults, ticks in user code tell what one stands for.
        let is_told = is_chance && self.elsewhere.samples >= FEW_IN_KERNEL;
        let Each { part: each, error } =
            if is_told { self.each_in_user_code() } else { Each::KNOWN };
        let seen_ns = each * self.behind_calls.ns;
        let of_count = each * each * self.behind_calls.squares;
        let of_faults = if faults_ns > 0.0 { of_ticks } else { 0.0 };
        let variance = self.events.squares + of_faults + of_count + error * seen_ns * seen_ns;
        let unseen = self.unseen(of_calls, seen_ns, variance);
        let calls_ns = of_calls - unseen.waits_ns - unseen.unplaced_ns;
        Kernel { each: of_tick, faults_ns, calls_ns, unseen, variance }
    }

    /// Events and ticks in user code tell this of a thread that waits.
    fn each_in_user_code(&self) -> Each {
        let each = part(self.events.ns, self.elsewhere.ns);
        let error = self.elsewhere.relative_variance() + self.events.relative_variance();
        Each { part: each, error: each * each * error }.beside_what_is_known()
    }

    /// Samples of timers of threads with events, wherever these were.
    fn ticks(&self) -> Hits {
        let mut ticks = self.behind_calls;
        ticks.add(self.elsewhere);
        ticks
    }

    /// Whether ticks do not tell of all CPU time, and that is no chance.
    fn misses_ticks(&self) -> bool {
        let ticks = self.ticks();
        let deviation_ns = variance_of_ticks(&ticks, self.cpu_ns).sqrt();
        self.waits > 0 && self.cpu_ns - ticks.ns > DEVIATIONS * deviation_ns
    }

    /// All ticks and the CPU time tell this.
    fn each_tick(&self) -> Each {
        let ticks = self.ticks();
        let each = part(self.cpu_ns, ticks.ns);
        if self.waits == 0 {
            return Each { part: each, error: 0.0 };
        }
        if self.misses_ticks() {
            return Each::KNOWN;
        }
        let of_waits = part(self.waits as f64 * OF_A_WAIT_NS, self.cpu_ns).min(1.0);
        let error = ticks.relative_variance() + of_waits * of_waits;
        Each { part: each * (1.0 - of_waits), error: each * each * error }.beside_what_is_known()
    }

    /// Time of which ticks do not tell, of a thread that waits and has so much where they tell of
    /// `seen_ns`, with the variance of that: it is around waits, as far as these take so much.
    fn unseen(&self, of_ns: f64, seen_ns: f64, variance: f64) -> Unseen {
        let unseen_ns = (of_ns - seen_ns).max(0.0);
        let most_ns = match self.samples() {
            0..FEW_IN_KERNEL => 0.0,
            // Where more is missing, the program works in step with the ticks.
            _ => self.waits as f64 * off_cpu::MOST_OF_A_WAIT_NS as f64,
        };
        let least_ns = most_ns.min(self.waits as f64 * LEAST_OF_A_WAIT_NS).min(of_ns);
        let waits_ns = unseen_ns.clamp(least_ns, most_ns);
        let beyond_ns = (unseen_ns - waits_ns).max(0.0);
        let is_chance = beyond_ns <= DEVIATIONS * variance.sqrt();
        Unseen { waits_ns, unplaced_ns: if is_chance { 0.0 } else { beyond_ns } }
    }

    /// Time that samples of threads without events tell of, as a part of what they stand for by
    /// their periods, and the time of which they do not tell, also for want of any sample.
    fn alone(&self) -> (f64, Unseen, f64) {
        let unseen = match self.waits {
            0 => Unseen::default(),
            _ => {
                let variance = variance_of_ticks(&self.alone, self.cpu_alone_ns);
                self.unseen(self.cpu_alone_ns, self.alone.ns, variance)
            }
        };
        let placed_ns = self.cpu_alone_ns - unseen.waits_ns - unseen.unplaced_ns;
        let unsampled_ns = if self.alone.samples == 0 { placed_ns } else { 0.0 };
        (part(placed_ns, self.alone.ns), unseen, unsampled_ns)
    }

    /// Most time of the kernel that samples behind system calls tell the place of, nanoseconds. Where
    /// the kernel keeps its tick back, one of very few would stand for all of it.
    fn placed_ns(&self) -> f64 {
        match self.behind_calls.samples {
            samples @ 0..FEW_IN_KERNEL => (samples as f64 * LONGEST_NS).max(self.behind_calls.ns),
            _ => f64::INFINITY,
        }
    }

    fn samples(&self) -> u64 {
        let kinds = [self.events, self.behind_calls, self.elsewhere, self.alone];
        kinds.iter().map(|hits| hits.samples).fold(0, u64::saturating_add)
    }

    fn are_few(&self) -> bool {
        self.samples() < FEW
    }
}

/// Samples that tell of CPU time.
pub(crate) fn samples(spent: &SpentInTree) -> u64 {
    let Sums { events, behind_calls, elsewhere, alone, .. } = Sums::of(spent);
    let elsewhere = if events.samples == 0 { elsewhere.samples } else { 0 };
    let all = [events.samples, behind_calls.samples, alone.samples, elsewhere];
    all.into_iter().fold(0, u64::saturating_add)
}

/// Threads with few samples, together.
struct Pool {
    cpu_ns: f64,
    /// Those of page faults by the word of the function on top.
    weights: Weights,
}

/// Threads with few samples, by the executable of their process: a process may live as shortly as a
/// thread, and the kernel's part of one alone cannot be told.
pub(crate) struct Pools<'a> {
    pools: HashMap<&'a str, Pool>,
    processes: &'a HashMap<u32, Process>,
    /// Some thread has a sample.
    has_samples: bool,
}

impl<'a> Pools<'a> {
    pub(crate) fn of<'t>(
        processes: &'a HashMap<u32, Process>,
        trees: impl Iterator<Item = &'t CallTree>,
    ) -> Self {
        let mut all = Self { pools: HashMap::new(), processes, has_samples: false };
        let mut samples: HashMap<&str, (Sums, HashMap<u32, Kinds>)> = HashMap::new();
        for tree in trees {
            let sums = Sums::of(&tree.spent);
            all.has_samples |= sums.samples() > 0;
            if sums.are_few() {
                let (all_sums, by_function) = samples.entry(all.executable(tree)).or_default();
                all_sums.add(&sums);
                count(&tree.spent, by_function, |node| word(tree, node));
            }
        }
        let pool = |(executable, (sums, by_function)): (_, (Sums, _))| {
            let weights = Weights::of_sums(&sums, by_function);
            (executable, Pool { cpu_ns: sums.all_cpu_ns(), weights })
        };
        all.pools = samples.into_iter().map(pool).collect();
        all
    }

    /// Empty where it is not known.
    fn executable(&self, tree: &CallTree) -> &'a str {
        self.processes.get(&tree.process).map_or("", |process| &process.executable)
    }

    fn pool(&self, tree: &CallTree) -> Option<&Pool> {
        self.pools.get(self.executable(tree))
    }
}

/// Word of the function of a node.
fn word(tree: &CallTree, node: u32) -> u32 {
    tree.tree.nodes().get(node as usize).map_or(pseudo::ROOT, |node| node.word)
}

/// Adds samples in user code by a key of their nodes.
fn count(spent: &SpentInTree, by_key: &mut HashMap<u32, Kinds>, key: impl Fn(u32) -> u32) {
    for ((node, place), hits) in &spent.hits {
        if !place.is_in_kernel() {
            by_key.entry(key(*node)).or_default().add(*hits);
        }
    }
}

/// CPU time that samples stand for, as parts of what they stand for by their periods.
#[derive(Default)]
pub(crate) struct Weights {
    /// Those of timers behind a system call.
    pub(super) kernel: f64,
    /// Deviation of the time that they tell, as a part of what they stand for by their periods: what
    /// is around waits is no part of it.
    pub(super) kernel_deviation: f64,
    /// Those of timers elsewhere, where there are no events.
    pub(super) user: f64,
    /// Those of timers of threads without events.
    pub(super) alone: f64,
    /// Page faults by node, in a pool by function.
    pub(super) faults: HashMap<u32, Faults>,
    /// All page faults, nanoseconds.
    faults_ns: f64,
    /// Variance of what a tick stands for, and that of all page faults by their square, where the
    /// place of some time is a guess.
    faults_error: f64,
    faults_doubt: f64,
    /// Time of the kernel of which no sample tells the place, nanoseconds. Where there is some,
    /// that around waits may be elsewhere too.
    pub(crate) unplaced_ns: f64,
    pub(crate) doubtful_ns: f64,
    /// Time of the kernel around each wait, and the deviation of that, nanoseconds.
    pub(super) wait_ns: f64,
    pub(super) wait_deviation_ns: f64,
    /// Time of which no sample tells, and which may be as much by chance, nanoseconds.
    pub(super) unsampled_ns: f64,
}

/// Page faults of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Faults {
    /// As a part of the samples of timers elsewhere.
    pub(super) part: f64,
    /// How much they differ with the time that these samples tell.
    pub(super) slope: f64,
}

impl Weights {
    /// Of a tree, which may be one of few samples in its program.
    pub(crate) fn of(tree: &CallTree, pools: &Pools<'_>) -> Self {
        let own = Sums::of(&tree.spent);
        if !pools.has_samples {
            return Self::default();
        }
        if let Some(pool) = pools.pool(tree).filter(|_| own.are_few()) {
            return pool.weights.part(tree, part(own.all_cpu_ns(), pool.cpu_ns));
        }
        let mut by_node = HashMap::new();
        count(&tree.spent, &mut by_node, |node| node);
        Self::of_sums(&own, by_node)
    }

    /// Of a tree that has such a part of a pool's CPU time.
    fn part(&self, tree: &CallTree, of_all: f64) -> Self {
        let faults = |&(node, _): &(u32, _)| Some((node, *self.faults.get(&word(tree, node))?));
        Self {
            faults: tree.spent.hits.keys().filter_map(faults).collect(),
            unplaced_ns: self.unplaced_ns * of_all,
            doubtful_ns: self.doubtful_ns * of_all,
            unsampled_ns: self.unsampled_ns * of_all,
            ..*self
        }
    }

    /// Of samples, of which `by_key` has those in user code by a key of their nodes.
    fn of_sums(sums: &Sums, by_key: HashMap<u32, Kinds>) -> Self {
        let (alone, unseen, none_alone_ns) = sums.alone();
        if sums.events.samples == 0 {
            let ticks = sums.ticks();
            let each = part(sums.cpu_ns, ticks.ns);
            let none_ns = if ticks.samples == 0 { sums.cpu_ns } else { 0.0 };
            let unsampled_ns = none_ns + none_alone_ns;
            let weights = Self { kernel: each, user: each, alone, unsampled_ns, ..Self::default() };
            return weights.with_unseen(unseen, sums.alone.squares, sums);
        }
        let Kernel { each, faults_ns, calls_ns, unseen: of_events, variance } = sums.kernel();
        // Samples cost time of the kernel themselves.
        let least = DEVIATIONS * sums.events.squares.sqrt() + OWN_COST * sums.cpu_ns;
        let placed = sums.placed_ns().min(calls_ns);
        let rest = calls_ns - placed;
        let (rest, unsampled_ns) = if rest > least { (rest, 0.0) } else { (0.0, rest) };
        let unseen = Unseen {
            waits_ns: of_events.waits_ns + unseen.waits_ns,
            unplaced_ns: of_events.unplaced_ns + rest + unseen.unplaced_ns,
        };
        let of_waits = if of_events.waits_ns > 0.0 { variance } else { 0.0 };
        let of_doubt = (unseen.doubtful_ns() / 2.0).powi(2);
        let error = of_waits + of_doubt;
        let weights = Self {
            kernel: part(placed, sums.behind_calls.ns),
            kernel_deviation: part(error.sqrt(), sums.behind_calls.ns),
            alone,
            faults: faults(by_key, each.part, faults_ns),
            faults_ns,
            faults_error: each.error,
            faults_doubt: part(of_doubt, faults_ns * faults_ns),
            unsampled_ns: unsampled_ns + none_alone_ns,
            ..Self::default()
        };
        weights.with_unseen(unseen, variance + sums.alone.squares, sums)
    }

    /// Error of the page faults that these samples of a timer tell, beside that of the samples: page
    /// faults are what code without them leaves of all these. Variance of what is each sample's own,
    /// and deviation of what all share, nanoseconds.
    pub(super) fn error_of_faults(&self, timers: &Hits, faults: Faults) -> (f64, f64) {
        let Faults { part, slope } = faults;
        let most = self.faults_ns * self.faults_ns;
        let squares = timers.squares * (slope.max(1.0).powi(2) - part * part).max(0.0);
        let of_each = (self.faults_error * timers.ns * timers.ns).min(most);
        let of_doubt = self.faults_doubt * (timers.ns * part).powi(2);
        (squares.min(most), (of_each + of_doubt).sqrt())
    }

    /// With time of which ticks do not tell, that has such a variance.
    fn with_unseen(self, unseen: Unseen, variance: f64, sums: &Sums) -> Self {
        let (waits, doubtful_ns) = (sums.waits as f64, unseen.doubtful_ns());
        let of_doubt = if doubtful_ns > 0.0 { (unseen.waits_ns / 2.0).powi(2) } else { 0.0 };
        let deviation_ns = part((variance + of_doubt).sqrt(), waits);
        Self {
            unplaced_ns: unseen.unplaced_ns,
            doubtful_ns,
            wait_ns: part(unseen.waits_ns, waits),
            wait_deviation_ns: deviation_ns.min(off_cpu::MOST_OF_A_WAIT_NS as f64),
            ..self
        }
    }
}

impl Unseen {
    /// Time of which it is not known where it is: that around waits is no more than a guess where
    /// there is more than they can take.
    fn doubtful_ns(&self) -> f64 {
        if self.unplaced_ns > 0.0 { self.unplaced_ns + self.waits_ns } else { 0.0 }
    }
}

/// Page faults by a key of nodes, where so much time is.
fn faults(mut by_key: HashMap<u32, Kinds>, each: f64, of_faults: f64) -> HashMap<u32, Faults> {
    if of_faults <= 0.0 {
        return HashMap::new();
    }
    by_key.retain(|_, told| told.faults.samples > 0);
    // Timers tell more time of a node than events do: its faults, the less surely the more of it
    // may be chance. With the slope of that.
    let beyond = |Kinds { events, timers, .. }: &Kinds| {
        let beyond = (each * timers.ns - events.ns).max(0.0);
        let variance = each * each * timers.squares + events.squares;
        let sure = part(beyond * beyond, beyond * beyond + DEVIATIONS * variance);
        (beyond * sure, sure * (3.0 - 2.0 * sure))
    };
    let known: f64 = by_key.values().map(|told| beyond(told).0).sum();
    let all: f64 = by_key.values().map(|told| told.timers.ns).sum();
    let of = |(key, told): (u32, Kinds)| match known > 0.0 {
        true => {
            let (ns, slope) = beyond(&told);
            let each = of_faults / known;
            (key, Faults { part: each * part(ns, told.timers.ns), slope: each * slope })
        }
        false => (key, Faults { part: part(of_faults, all), slope: 1.0 }),
    };
    by_key.into_iter().map(of).collect()
}

/// Variance of the time that ticks like these tell of so much CPU time.
fn variance_of_ticks(ticks: &Hits, cpu_ns: f64) -> f64 {
    let each_ns = if ticks.ns > 0.0 { ticks.squares / ticks.ns } else { LONGEST_NS };
    cpu_ns * each_ns
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
        Hits::of(samples, each_ms * MS)
    }

    /// Of a thread with samples of events, and of its timer in the kernel.
    fn weights(events: Hits, in_kernel: Hits, cpu_ms: u64) -> Weights {
        let mut tree = CallTree::new(0);
        let user = Kinds { events, ..Kinds::default() };
        let kernel = Kinds { timers: in_kernel, ..Kinds::default() };
        tree.spent.hits.insert((1, Interrupted::Site(7, false)), user);
        tree.spent.hits.insert((1, Interrupted::Site(8, true)), kernel);
        tree.spent.cpu_ns = cpu_ms * MS as u64;
        alone(&tree)
    }

    /// Of a recording of one thread.
    fn alone(tree: &CallTree) -> Weights {
        Weights::of(tree, &Pools::of(&HashMap::new(), [tree].into_iter()))
    }

    /// Guards: the kernel's time in processes of some milliseconds, of which few have a sample.
    #[test]
    fn processes_of_a_program_that_live_shortly_are_told_together() {
        let process = |id| Process { id, executable: "/bin/short".into(), ..Process::default() };
        let processes: HashMap<u32, Process> = (1..=4).map(|id| (id, process(id))).collect();
        // 2 ms of each are the program's and 2 the kernel's, in whose time one of the four is met.
        let tree = |id: u32| {
            let mut tree = CallTree::new(id);
            let events =
                Kinds { events: hits(if id == 1 { 5 } else { 1 }, 1.0), ..Kinds::default() };
            tree.spent.hits.insert((1, Interrupted::Site(7, false)), events);
            if id == 4 {
                let timers = Kinds { timers: hits(2, 4.0), ..Kinds::default() };
                tree.spent.hits.insert((1, Interrupted::Site(8, true)), timers);
            }
            tree.spent.cpu_ns = 4 * MS as u64;
            tree
        };
        let trees: Vec<CallTree> = (1..=4).map(tree).collect();
        let pools = Pools::of(&processes, trees.iter());
        let weights: Vec<Weights> = trees.iter().map(|tree| Weights::of(tree, &pools)).collect();
        assert!(weights.iter().all(|weights| weights.kernel == 1.0 && weights.unplaced_ns == 0.0));
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
        // Without waits all of it is what samples tell of.
        let none = alone(&tree);
        assert_eq!((none.kernel, none.wait_ns), (3.0, 0.0));
        tree.spent.waits.insert(2, 10_000);
        let some = alone(&tree);
        assert_eq!((some.kernel, some.wait_ns), (1.0, 0.02 * MS));
        // No wait takes so long: the program works in step with the kernel's ticks.
        tree.spent.waits.insert(2, 1000);
        let in_step = alone(&tree);
        assert_eq!((in_step.kernel, in_step.wait_ns), (1.0, 0.04 * MS));
        assert_eq!(in_step.unplaced_ns, 160.0 * MS);
    }

    /// Guards: few ticks that stand for all CPU time of a thread without events, where the kernel
    /// kept most of them back.
    #[test]
    fn time_around_waits_of_a_thread_without_events_is_where_it_waited() {
        let mut tree = CallTree::new(0);
        let alone_hits = Kinds { alone: hits(100, 4.0), ..Kinds::default() };
        tree.spent.hits.insert((1, Interrupted::Site(7, false)), alone_hits);
        tree.spent.cpu_alone_ns = 600_000_000;
        assert_eq!(alone(&tree).alone, 1.5);
        tree.spent.waits.insert(2, 10_000);
        let some = alone(&tree);
        assert_eq!((some.alone, some.wait_ns, some.unplaced_ns), (1.0, 0.02 * MS, 0.0));
        tree.spent.waits.insert(2, 2000);
        let in_step = alone(&tree);
        assert_eq!((in_step.wait_ns, in_step.unplaced_ns), (0.04 * MS, 120.0 * MS));
        assert_eq!(in_step.doubtful_ns, 200.0 * MS);
        // As much may be missing by chance, where it is more than waits can take.
        tree.spent.cpu_alone_ns = 440_000_000;
        tree.spent.waits.insert(2, 100);
        let by_chance = alone(&tree);
        assert_eq!((by_chance.alone, by_chance.wait_ns), (1.09, 0.04 * MS));
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
        let weights = alone(&tree);
        assert_eq!(weights.kernel, 1.0);
        assert!(weights.wait_ns <= OF_A_WAIT_NS, "{}", weights.wait_ns);
    }

    /// Guards: a long call of a short run, told as time of no known place where others met page
    /// faults.
    #[test]
    fn a_long_call_beside_page_faults_keeps_its_time() {
        let mut tree = CallTree::new(0);
        let (events, timers) = (hits(35, 1.0), hits(25, 4.0));
        let user = Kinds { events, timers, faults: timers, ..Kinds::default() };
        let call = Kinds { timers: hits(1, 160.0), ..Kinds::default() };
        tree.spent.hits.insert((1, Interrupted::Site(7, false)), user);
        tree.spent.hits.insert((1, Interrupted::Site(8, true)), call);
        tree.spent.cpu_ns = 260_000_000;
        tree.spent.waits.insert(2, 20);
        let weights = alone(&tree);
        assert!((weights.kernel - 1.0).abs() < 1e-3, "{}", weights.kernel);
        assert_eq!(weights.unplaced_ns, 0.0);
    }

    /// Guards: events that came late, behind a system call, told as user time.
    #[test]
    fn events_behind_system_calls_tell_nothing() {
        let of = |late: u64| {
            let mut tree = CallTree::new(0);
            let (events, timers) = (hits(400, 1.0), hits(300, 4.0));
            let user = Kinds { events, timers, faults: timers, ..Kinds::default() };
            let call =
                Kinds { events: hits(late, 1.0), timers: hits(100, 4.0), ..Kinds::default() };
            tree.spent.hits.insert((1, Interrupted::Site(7, false)), user);
            tree.spent.hits.insert((1, Interrupted::Site(8, true)), call);
            tree.spent.cpu_ns = 1_600_000_000;
            let Weights { kernel, faults, .. } = alone(&tree);
            (kernel, faults)
        };
        assert_eq!(of(200), of(0));
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
