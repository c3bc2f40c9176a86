//! Samples that a thread's own timer wrote into its stream: where its CPU time went, and how much
//! of the time that passed it waited.
//!
//! A sample stands for the CPU time that its period says. What passed on the clock between samples
//! is known in pieces, each with the call path that was open then. CPU time is no more than a
//! certain length of each piece, and the rest of it is waiting.

use std::collections::HashMap;

use crate::escape::Sample;

/// Most pieces of time between two samples that are told apart.
const MOST_PIECES: usize = 1 << 16;
/// Most places in a tree that are told apart. A recording of a day of one thread has some ten
/// thousand.
const MOST_PLACES: usize = 1 << 20;

/// Where a thread was interrupted, beside its call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Interrupted {
    /// In a hook, perhaps in a call of the kernel.
    Hook(bool),
    /// At a site, perhaps in a call of the kernel.
    Site(u32, bool),
    /// At an address that had no site then, likewise.
    Address(u64, bool),
}

impl Interrupted {
    /// Whether the kernel was interrupted.
    pub(crate) fn is_in_kernel(self) -> bool {
        let (Self::Hook(is_so) | Self::Site(_, is_so) | Self::Address(_, is_so)) = self;
        is_so
    }
}

/// Samples of one place and kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Hits {
    /// How many.
    pub(crate) samples: u64,
    /// CPU time that they stand for by their periods, nanoseconds.
    pub(crate) ns: f64,
    /// Sum of the squares of these.
    pub(crate) squares: f64,
}

impl Hits {
    /// Adds samples that stand for so much together, each for an equal part.
    fn count(&mut self, samples: u64, each_ns: f64) {
        self.add(Self {
            samples,
            ns: samples as f64 * each_ns,
            squares: samples as f64 * each_ns * each_ns,
        });
    }

    /// Adds others.
    pub(crate) fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.ns += other.ns;
        self.squares += other.squares;
    }
}

/// Samples of a place by the source that interrupted the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Kinds {
    /// Events, in user mode alone.
    pub(crate) events: Hits,
    /// Its timer, beside events.
    pub(crate) timers: Hits,
    /// Of these, those behind which there may have been page faults.
    pub(crate) faults: Hits,
    /// Its timer, where it had no events.
    pub(crate) alone: Hits,
}

impl Kinds {
    fn of(&mut self, sample: &Sample) -> &mut Hits {
        match (sample.is_of_user_mode, sample.is_alone) {
            (true, _) => &mut self.events,
            (false, true) => &mut self.alone,
            (false, false) => &mut self.timers,
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.events.add(other.events);
        self.timers.add(other.timers);
        self.faults.add(other.faults);
        self.alone.add(other.alone);
    }
}

/// Samples and waiting by nodes of a tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    /// Samples by node and place.
    pub(crate) hits: HashMap<(u32, Interrupted), Kinds>,
    /// Clock units of waiting by node.
    pub(crate) waiting: HashMap<u32, u64>,
    /// Clock units of CPU time by node, of time in which the thread was not sampled.
    pub(crate) clocked: HashMap<u32, u64>,
    /// CPU time up to the last sample of each thread while it had events, and without them,
    /// nanoseconds.
    pub(crate) cpu_ns: u64,
    pub(crate) cpu_alone_ns: u64,
}

impl Spent {
    /// Whether no samples tell of CPU time.
    pub(crate) fn is_empty(&self) -> bool {
        self.hits.is_empty() && self.cpu_ns == 0 && self.cpu_alone_ns == 0
    }

    /// Adds what another has, whose nodes have these numbers here.
    pub(crate) fn absorb(&mut self, other: &Self, number: impl Fn(u32) -> u32) {
        for (&(node, place), &hits) in &other.hits {
            self.at(number(node), place).add(hits);
        }
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.cpu_alone_ns = self.cpu_alone_ns.saturating_add(other.cpu_alone_ns);
        for (from, to) in [(&other.waiting, &mut self.waiting), (&other.clocked, &mut self.clocked)]
        {
            from.iter().for_each(|(&node, &units)| count(to, number(node), units));
        }
    }

    fn clear(&mut self) {
        self.hits.clear();
        self.waiting.clear();
        self.clocked.clear();
        (self.cpu_ns, self.cpu_alone_ns) = (0, 0);
    }

    /// The samples of a place. Where there are too many places, all others are one.
    fn at(&mut self, node: u32, place: Interrupted) -> &mut Kinds {
        let is_new = self.hits.len() >= MOST_PLACES && !self.hits.contains_key(&(node, place));
        let key = match is_new {
            true => (0, Interrupted::Address(0, place.is_in_kernel())),
            false => (node, place),
        };
        self.hits.entry(key).or_default()
    }

    fn take(&mut self, node: u32, sample: &Sample, cpu_ns: u64) {
        let all_ns = if sample.is_alone { &mut self.cpu_alone_ns } else { &mut self.cpu_ns };
        *all_ns = all_ns.saturating_add(cpu_ns);
        let each_ns = f64::from(sample.period_ns);
        // Those that found no place interrupted hooks.
        if sample.missed > 0 {
            // Of a timer they are expirations, of which this one may stand for several.
            let is_of_event = sample.is_of_user_mode;
            let each_ns = if is_of_event { each_ns } else { each_ns.min(TIMER_NS) };
            let hits = self.at(node, Interrupted::Hook(false));
            hits.of(sample).count(sample.missed.into(), each_ns);
        }
        if sample.is_end {
            return;
        }
        let hits = self.at(node, sample.interrupted());
        hits.of(sample).count(1, each_ns);
        if sample.has_faults {
            hits.faults.count(1, each_ns);
        }
    }
}

/// Adds clock units to those of a node.
fn count(units_of: &mut HashMap<u32, u64>, node: u32, units: u64) {
    let there = units_of.entry(node).or_default();
    *there = there.saturating_add(units);
}

/// CPU time without a sample that tells that a thread is not sampled, nanoseconds.
const UNSAMPLED_NS: u64 = 50_000_000;

/// CPU time between two expirations of a timer, nanoseconds.
const TIMER_NS: f64 = 1e6;

impl Sample {
    fn interrupted(&self) -> Interrupted {
        match (self.is_in_hook, self.site) {
            (true, _) => Interrupted::Hook(self.is_in_kernel),
            (false, 0) => Interrupted::Address(self.address, self.is_in_kernel),
            (false, site) => Interrupted::Site(site, self.is_in_kernel),
        }
    }
}

/// Time that passed, piece by piece: the node that it is time of, and clock units; and the CPU time
/// in it, as far as samples tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pieces {
    pieces: Vec<(u32, u64)>,
    /// Clock units of all of them.
    units: u64,
    /// Clock units that are left out of the next pieces.
    debt: u64,
    /// In a batch, which does not know the time before it: clock units that are left out of that.
    owed: u64,
    /// CPU time of the thread meanwhile, nanoseconds.
    cpu_ns: u64,
    /// Pieces up to the last sample.
    until_sample: usize,
}

/// Pieces are split when they come to so many nanoseconds. The clock may be late by some tens of
/// microseconds, so that of shorter times too little would be CPU time, and then too much.
const SPLIT_NS: f64 = 10e6;

impl Pieces {
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        (self.units, self.debt, self.owed, self.cpu_ns) = (0, 0, 0, 0);
        self.until_sample = 0;
    }

    /// So many clock units passed while this node was on top.
    pub(crate) fn passed(&mut self, node: u32, units: u64) {
        let left_out = units.min(self.debt);
        self.debt -= left_out;
        let units = units - left_out;
        self.units = self.units.saturating_add(units);
        let is_full = self.pieces.len() >= MOST_PIECES;
        match self.pieces.last_mut().filter(|_| is_full) {
            _ if units == 0 => {}
            Some(last) => last.1 = last.1.saturating_add(units),
            None => self.pieces.push((node, units)),
        }
    }

    /// So many of the latest clock units are left out, or of the next.
    pub(crate) fn leave_out(&mut self, units: u64) {
        let rest = self.take_off(units);
        self.debt = self.debt.saturating_add(rest);
    }

    /// So many of the latest clock units are left out, or of those before these pieces.
    fn leave_out_or_owe(&mut self, units: u64) {
        let rest = self.take_off(units);
        self.owed = self.owed.saturating_add(rest);
    }

    /// Takes so many of the latest clock units off; gives those that there were not.
    fn take_off(&mut self, mut units: u64) -> u64 {
        while let Some(last) = self.pieces.last_mut().filter(|_| units > 0) {
            let left_out = last.1.min(units);
            last.1 -= left_out;
            self.units = self.units.saturating_sub(left_out);
            units -= left_out;
            if last.1 == 0 {
                self.pieces.pop();
            }
        }
        units
    }

    /// Appends others, whose nodes have these numbers here.
    pub(crate) fn append(&mut self, others: &Self, number: impl Fn(u32) -> u32) {
        self.leave_out(others.owed);
        for (at, &(node, units)) in others.pieces.iter().enumerate() {
            self.passed(number(node), units);
            if at + 1 == others.until_sample {
                self.until_sample = self.pieces.len();
            }
        }
        self.debt = self.debt.saturating_add(others.debt);
        self.cpu_ns = self.cpu_ns.saturating_add(others.cpu_ns);
    }

    /// A sample tells of so much CPU time in the latest of them.
    fn sampled(&mut self, cpu_ns: u64, spent: &mut Spent, ns_per_unit: f64) {
        self.cpu_ns = self.cpu_ns.saturating_add(cpu_ns);
        self.until_sample = self.pieces.len();
        if self.pieces.len() >= MOST_PIECES || self.units as f64 * ns_per_unit >= SPLIT_NS {
            self.split(spent, ns_per_unit, false);
        }
    }

    /// The thread had so much CPU time in those behind its last sample: the clock tells where.
    fn unsampled(&mut self, cpu_ns: u64, spent: &mut Spent, ns_per_unit: f64) {
        let behind = self.pieces.split_off(self.until_sample.min(self.pieces.len()));
        let units = behind.iter().map(|&(_, units)| units).fold(0, u64::saturating_add);
        self.units = self.units.saturating_sub(units);
        self.split(spent, ns_per_unit, false);
        (self.pieces, self.units) = (behind, units);
        self.cpu_ns = self.cpu_ns.saturating_add(cpu_ns);
        self.split(spent, ns_per_unit, true);
    }

    /// A chunk tells the thread's CPU time, which was `last` at the last sample. Gives the time up to
    /// which it is known where that went.
    fn told(&mut self, cpu_ns: u64, last: u64, spent: &mut Spent, ns_per_unit: f64) -> u64 {
        let since = cpu_ns.saturating_sub(last);
        if since < UNSAMPLED_NS {
            return last;
        }
        self.unsampled(since, spent, ns_per_unit);
        cpu_ns
    }

    /// A sample tells of so much CPU time since the one before. Gives the time that it can be a
    /// sample of: where it is much less, the thread was not sampled.
    fn before(&mut self, sample: &Sample, cpu_ns: u64, spent: &mut Spent, ns: f64) -> u64 {
        let each = u64::from(sample.period_ns);
        let samples = u64::from(sample.missed) + u64::from(!sample.is_end);
        let of_it = each.saturating_mul(samples);
        let beyond = cpu_ns.saturating_sub(of_it);
        if beyond < UNSAMPLED_NS {
            return cpu_ns;
        }
        self.unsampled(beyond, spent, ns);
        cpu_ns - beyond
    }

    /// Splits all pieces into CPU time and waiting. No piece has more than a certain length of CPU
    /// time, which is the same for all. CPU time for which the clock has not moved yet is that of
    /// later ones.
    fn split(&mut self, spent: &mut Spent, ns_per_unit: f64, by_clock: bool) {
        let all = std::mem::take(&mut self.units);
        let cpu = (self.cpu_ns as f64 / ns_per_unit) as u64;
        let most = most_of_each(&self.pieces, cpu);
        for (node, units) in self.pieces.drain(..) {
            let waited = units.saturating_sub(most);
            if waited > 0 {
                count(&mut spent.waiting, node, waited);
            }
            if by_clock && units > waited {
                count(&mut spent.clocked, node, units - waited);
            }
        }
        self.cpu_ns = (cpu.saturating_sub(all) as f64 * ns_per_unit) as u64;
        self.until_sample = 0;
    }
}

/// The length for which the pieces, none longer than that, come to `cpu`.
fn most_of_each(pieces: &[(u32, u64)], cpu: u64) -> u64 {
    let mut lengths: Vec<u64> = pieces.iter().map(|&(_, units)| units).collect();
    lengths.sort_unstable();
    let mut left = cpu;
    for (shorter, &length) in lengths.iter().enumerate() {
        let others = (lengths.len() - shorter) as u64;
        let each = left / others;
        if each <= length {
            return each;
        }
        left -= length;
    }
    u64::MAX
}

/// Samples of a batch of chunks, told without knowing what came before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampled {
    /// All but the first sample.
    pub(crate) spent: Spent,
    /// Time up to the first sample, or all.
    before: Pieces,
    /// The first sample, and its node.
    first: Option<(u32, Sample)>,
    /// CPU time before the first sample, where a thread's first chunk tells it.
    begin: Option<u64>,
    /// CPU time when it was told last before the first sample, by a chunk.
    told: Option<u64>,
    /// Time since the last sample, where there is one.
    since: Pieces,
    /// CPU time at the last sample, where there is one.
    last: Option<u64>,
}

impl Sampled {
    pub(crate) fn clear(&mut self) {
        self.spent.clear();
        self.before.clear();
        self.since.clear();
        (self.first, self.begin, self.told, self.last) = (None, None, None, None);
    }

    /// A chunk tells the thread's CPU time.
    pub(super) fn told(&mut self, cpu_ns: u64, ns_per_unit: f64) {
        match self.last {
            None => self.told = Some(cpu_ns),
            Some(last) => {
                let last = self.since.told(cpu_ns, last, &mut self.spent, ns_per_unit);
                self.last = Some(last);
            }
        }
    }

    /// A thread begins here, with this CPU time.
    pub(super) fn begins(&mut self, cpu_ns: u64) {
        if self.first.is_none() {
            self.begin = Some(cpu_ns);
        }
    }

    pub(super) fn passed(&mut self, node: u32, units: u64) {
        if self.first.is_some() { &mut self.since } else { &mut self.before }.passed(node, units);
    }

    pub(super) fn leave_out(&mut self, units: u64) {
        match self.first.is_some() {
            true => self.since.leave_out(units),
            false => self.before.leave_out_or_owe(units),
        }
    }

    /// The thread was interrupted with this node on top.
    pub(super) fn take(&mut self, node: u32, sample: Sample, ns_per_unit: f64) {
        let Some(last) = self.last.replace(sample.cpu_ns) else {
            self.first = Some((node, sample));
            return;
        };
        let cpu_ns = sample.cpu_ns.saturating_sub(last);
        let sampled_ns = self.since.before(&sample, cpu_ns, &mut self.spent, ns_per_unit);
        self.spent.take(node, &sample, sampled_ns);
        self.since.sampled(sampled_ns, &mut self.spent, ns_per_unit);
    }

    /// Puts it behind what a thread did before; nodes have these numbers in its tree.
    pub(super) fn put_behind(
        &self,
        thread: &mut Since,
        spent: &mut Spent,
        number: impl Fn(u32) -> u32,
        ns_per_unit: f64,
    ) {
        thread.pieces.append(&self.before, &number);
        let last = self.begin.or(thread.last).map(|last| match self.told {
            Some(cpu_ns) => thread.pieces.told(cpu_ns, last, spent, ns_per_unit),
            None => last,
        });
        let Some((node, sample)) = &self.first else {
            thread.last = last;
            return;
        };
        // Of a window of a recording it is not known what came before: what the sample stands for.
        let cpu_ns =
            last.map_or(sample.period_ns.into(), |last| sample.cpu_ns.saturating_sub(last));
        let sampled_ns = thread.pieces.before(sample, cpu_ns, spent, ns_per_unit);
        spent.take(number(*node), sample, sampled_ns);
        thread.pieces.sampled(sampled_ns, spent, ns_per_unit);
        spent.absorb(&self.spent, &number);
        thread.pieces.append(&self.since, &number);
        thread.last = self.last;
    }
}

/// A thread behind its last sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since {
    pieces: Pieces,
    last: Option<u64>,
}

impl Since {
    /// So many clock units passed while this node was on top.
    pub(super) fn passed(&mut self, node: u32, units: u64) {
        self.pieces.passed(node, units);
    }

    /// So many of the next clock units are left out.
    pub(super) fn leave_out_of_next(&mut self, units: u64) {
        self.pieces.debt = units;
    }

    /// The thread goes on in another tree, in which nodes have these numbers.
    pub(super) fn renumber(&mut self, numbers: &[u32]) {
        for (node, _) in &mut self.pieces.pieces {
            *node = numbers.get(*node as usize).copied().unwrap_or(0);
        }
    }

    /// Nothing more comes. CPU time behind the last sample is not known, where the thread did not
    /// tell of it at its end: it is less than from one to the next, and taken for none.
    pub(super) fn end(&mut self, spent: &mut Spent, ns_per_unit: f64) {
        self.pieces.split(spent, ns_per_unit, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(lengths: &[u64]) -> Pieces {
        let mut pieces = Pieces::default();
        (0..).zip(lengths).for_each(|(node, &units)| pieces.passed(node, units));
        pieces
    }

    fn waiting(lengths: &[u64], cpu: u64) -> Vec<u64> {
        let mut spent = Spent::default();
        Pieces { cpu_ns: cpu, ..pieces(lengths) }.split(&mut spent, 1.0, false);
        let waited = |node| spent.waiting.get(&node).copied().unwrap_or(0);
        (0..lengths.len() as u32).map(waited).collect()
    }

    #[test]
    fn a_long_piece_among_short_ones_is_waiting() {
        // Works for 1 ms in tenths, sleeps for 5 ms, works on.
        let lengths = [100, 100, 100, 100, 100, 5100, 100, 100, 100, 100, 100];
        let waited = waiting(&lengths, 1100);
        assert_eq!(waited.iter().sum::<u64>(), 5000);
        assert_eq!(waited[5], 5000);
    }

    #[test]
    fn many_alike_have_their_share() {
        assert_eq!(waiting(&[1030, 1030, 1030, 1030], 120), [1000; 4]);
    }

    /// The clock moves when the thread has had its CPU time, and samples lie between.
    #[test]
    fn a_late_clock_makes_no_waiting() {
        let (mut pieces, mut spent) = (Pieces::default(), Spent::default());
        for _ in 0..100 {
            pieces.sampled(90_000, &mut spent, 1000.0);
            pieces.passed(3, 100);
            pieces.sampled(10_000, &mut spent, 1000.0);
        }
        pieces.split(&mut spent, 1000.0, false);
        assert_eq!(spent, Spent::default());
    }

    /// Guards: CPU time that no sample tells of taken for waiting, or for the kernel's.
    #[test]
    fn the_clock_tells_of_time_without_samples() {
        const MS: u64 = 1_000_000;
        let sample = |cpu_ms: u64, is_end| Sample {
            is_in_hook: false,
            is_in_kernel: false,
            is_of_user_mode: true,
            has_faults: false,
            is_alone: false,
            is_end,
            site: 7,
            address: 0,
            cpu_ns: cpu_ms * MS,
            missed: 0,
            period_ns: MS as u32,
        };
        let (mut since, mut spent) = (Since::default(), Spent::default());
        let mut batch = Sampled::default();
        // Works for 300 ms in pieces, of which one has a sample, and waits once.
        batch.begins(0);
        batch.passed(1, MS);
        batch.take(1, sample(1, false), 1.0);
        for _ in 0..100 {
            batch.passed(2, MS);
        }
        batch.passed(3, 500 * MS);
        batch.told(101 * MS, 1.0);
        batch.put_behind(&mut since, &mut spent, |node| node, 1.0);
        assert_eq!((spent.cpu_ns, spent.clocked.get(&1)), (MS, None));
        assert!(spent.clocked[&2] > 98 * MS, "{:?}", spent.clocked);
        assert_eq!(spent.waiting[&3] + spent.clocked[&3], 500 * MS);
        assert!(spent.clocked[&3] < 2 * MS, "{:?}", spent.clocked);
        // The next batch has no sample, and what follows tells the thread's end.
        batch.clear();
        (0..100).for_each(|_| batch.passed(4, MS));
        batch.told(201 * MS, 1.0);
        batch.put_behind(&mut since, &mut spent, |node| node, 1.0);
        assert_eq!(spent.clocked[&4], 100 * MS);
        batch.clear();
        (0..99).for_each(|_| batch.passed(5, MS));
        batch.take(5, sample(300, true), 1.0);
        batch.put_behind(&mut since, &mut spent, |node| node, 1.0);
        assert!(spent.clocked[&5] >= 98 * MS, "{:?}", spent.clocked);
        assert_eq!(spent.hits.len(), 1);
    }

    #[test]
    fn what_is_left_out_is_neither() {
        let mut pieces = pieces(&[100, 200]);
        pieces.leave_out(250);
        assert_eq!(pieces.pieces, [(0, 50)]);
        pieces.leave_out(70);
        pieces.passed(3, 100);
        assert_eq!(pieces.pieces, [(3, 80)]);
    }

    /// A gap may be told in a batch of chunks behind that in which its time passed.
    #[test]
    fn what_is_left_out_may_have_passed_before() {
        let mut thread = pieces(&[100, 200]);
        let mut batch = Pieces::default();
        batch.leave_out_or_owe(250);
        batch.passed(7, 40);
        batch.leave_out_or_owe(10);
        thread.append(&batch, |node| node);
        assert_eq!(thread.pieces, [(0, 50), (7, 30)]);
        // More than there was is left out of what comes.
        let mut batch = Pieces::default();
        batch.leave_out_or_owe(100);
        batch.passed(8, 30);
        thread.append(&batch, |node| node);
        assert_eq!(thread.pieces, [(8, 10)]);
    }

    proptest! {
        #[test]
        fn waiting_and_cpu_time_are_all_there_is(
            lengths in proptest::collection::vec(1u64..9000, 1..50), cpu in 0u64..100_000,
        ) {
            let waited: u64 = waiting(&lengths, cpu).iter().sum();
            let all: u64 = lengths.iter().sum();
            let cpu = cpu.min(all);
            prop_assert!(waited >= all - cpu && waited < all - cpu + lengths.len() as u64);
        }
    }
}
