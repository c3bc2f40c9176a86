//! Samples that a thread's own timer wrote into its stream: where its CPU time went, and how much
//! of the time that passed it waited.
//!
//! A sample stands for the CPU time that its period says. For how long it was off its processor, the
//! thread tells as well. What passed on the clock between samples is known in pieces, each with the
//! call path that was open then: for threads that could not be interrupted.

use std::collections::HashMap;

use teeperf_wire::word::off_cpu;

use crate::escape::Sample;

/// Most pieces of time since a thread's last sample that are known. Of threads that could not be
/// interrupted, the clock tells by the latest ones where their time went.
const MOST_PIECES: usize = 1 << 14;
/// Most pieces of a thread whose time the clock tells, and so many of the latest of these. What
/// is left out may be known a little later.
const MOST_CLOCKED: usize = 256;
const KEPT_CLOCKED: usize = 16;
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
    /// So many samples, each of which stands for so much.
    pub(crate) fn of(samples: u64, each_ns: f64) -> Self {
        let count = samples as f64;
        Self { samples, ns: count * each_ns, squares: count * each_ns * each_ns }
    }

    /// Adds others.
    pub(crate) fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.ns += other.ns;
        self.squares += other.squares;
    }

    /// Variance of the time that they tell, by its square.
    pub(crate) fn relative_variance(&self) -> f64 {
        if self.ns > 0.0 { self.squares / (self.ns * self.ns) } else { 0.0 }
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
    /// Clock units of waiting by node, and how often the thread waited there.
    pub(crate) waiting: HashMap<u32, u64>,
    pub(crate) waits: HashMap<u32, u64>,
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
        let pairs = [
            (&other.waiting, &mut self.waiting),
            (&other.waits, &mut self.waits),
            (&other.clocked, &mut self.clocked),
        ];
        for (from, to) in pairs {
            from.iter().for_each(|(&node, &units)| count(to, number(node), units));
        }
    }

    fn clear(&mut self) {
        self.hits.clear();
        self.waiting.clear();
        self.waits.clear();
        self.clocked.clear();
        (self.cpu_ns, self.cpu_alone_ns) = (0, 0);
    }

    /// The thread was off its processor for so many clock units, and waited so often.
    fn was_off(&mut self, node: u32, units: u64, waits: u32) {
        count(&mut self.waiting, node, units);
        if waits > 0 {
            count(&mut self.waits, node, waits.into());
        }
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
            hits.of(sample).add(Hits::of(sample.missed.into(), each_ns));
        }
        if sample.is_end {
            return;
        }
        let hits = self.at(node, sample.interrupted());
        hits.of(sample).add(Hits::of(1, each_ns));
        if sample.has_faults {
            hits.faults.add(Hits::of(1, each_ns));
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

/// How often a thread waited that was off its processor for so many clock units, where it did not
/// tell.
pub(super) fn waits(units: u64, ns_per_unit: f64) -> u32 {
    u32::from(units as f64 * ns_per_unit >= off_cpu::LEAST_WAIT_NS as f64)
}

/// Longest time that a sample of a timer stands for where nothing keeps the kernel's tick from it,
/// nanoseconds.
pub(crate) const LONGEST_NS: f64 = 10e6;

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

/// Time in which a thread ran since its last sample, by the clock: pieces, each with the node that
/// was on top, and its clock units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pieces {
    pieces: Vec<(u32, u64)>,
    /// Clock units that are left out of the next pieces.
    debt: u64,
    /// In a batch, which does not know the time before it: clock units that are left out of that.
    owed: u64,
    /// The thread cannot tell its CPU time: all of these are that.
    is_clocked: bool,
}

impl Pieces {
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        (self.debt, self.owed, self.is_clocked) = (0, 0, false);
    }

    /// From here on the clock alone tells the thread's time.
    fn begins_clocked(&mut self, spent: &mut Spent) {
        self.is_clocked = true;
        self.clocked(0, spent);
    }

    /// All but so many of the latest pieces are CPU time, where the clock alone tells that.
    fn clocked(&mut self, kept: usize, spent: &mut Spent) {
        if self.is_clocked {
            let told = self.pieces.len().saturating_sub(kept);
            for (node, units) in self.pieces.drain(..told) {
                count(&mut spent.clocked, node, units);
            }
        }
    }

    /// So many clock units passed, likewise.
    fn passed_in(&mut self, node: u32, units: u64, spent: &mut Spent) {
        self.passed(node, units);
        if self.pieces.len() > MOST_CLOCKED {
            self.clocked(KEPT_CLOCKED, spent);
        }
    }

    /// So many clock units passed while this node was on top.
    pub(crate) fn passed(&mut self, node: u32, units: u64) {
        let left_out = units.min(self.debt);
        self.debt -= left_out;
        let units = units - left_out;
        match self.pieces.last_mut() {
            _ if units == 0 => {}
            // The last one is waiting, at the thread's end.
            Some(last) if last.0 == node && !self.is_clocked => {
                last.1 = last.1.saturating_add(units)
            }
            _ => {
                if self.pieces.len() >= MOST_PIECES {
                    self.pieces.clear();
                }
                self.pieces.push((node, units));
            }
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
            units -= left_out;
            if last.1 == 0 {
                self.pieces.pop();
            }
        }
        units
    }

    /// Clock units of all.
    fn units(&self) -> u64 {
        self.pieces.iter().map(|&(_, units)| units).fold(0, u64::saturating_add)
    }

    /// Appends others, whose nodes have these numbers here.
    fn append(&mut self, others: &Self, spent: &mut Spent, number: impl Fn(u32) -> u32) {
        self.leave_out(others.owed);
        for &(node, units) in &others.pieces {
            self.passed_in(number(node), units, spent);
        }
        self.debt = self.debt.saturating_add(others.debt);
    }

    /// No sample tells of so much CPU time in these: the clock tells where it went.
    fn unsampled(&mut self, cpu_ns: u64, spent: &mut Spent, ns_per_unit: f64) {
        let (all, cpu) = (self.units(), cpu_ns as f64 / ns_per_unit);
        for (node, units) in self.pieces.drain(..) {
            count(&mut spent.clocked, node, (units as f64 * cpu / all as f64) as u64);
        }
    }

    /// A chunk tells the thread's CPU time, which was `last` at the last sample. Gives the time up to
    /// which it is known where that went.
    fn told(&mut self, cpu_ns: u64, last: u64, spent: &mut Spent, ns_per_unit: f64) -> u64 {
        let since = cpu_ns.saturating_sub(last);
        if since < UNSAMPLED_NS || self.is_clocked {
            return last;
        }
        self.unsampled(since, spent, ns_per_unit);
        cpu_ns
    }

    /// A sample tells of so much CPU time since the one before. Gives the time that it can be a
    /// sample of: where it is much less, the thread was not sampled.
    fn sampled(&mut self, sample: &Sample, cpu_ns: u64, spent: &mut Spent, ns: f64) -> u64 {
        self.clocked(0, spent);
        self.is_clocked = false;
        let each = u64::from(sample.period_ns);
        let samples = u64::from(sample.missed) + u64::from(!sample.is_end);
        let of_it = each.saturating_mul(samples);
        let beyond = cpu_ns.saturating_sub(of_it);
        if beyond < UNSAMPLED_NS {
            self.pieces.clear();
            return cpu_ns;
        }
        self.unsampled(beyond, spent, ns);
        cpu_ns - beyond
    }
}

/// Samples of a batch of chunks, told without knowing what came before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampled {
    /// All but the first sample, and the first time off the processor.
    pub(crate) spent: Spent,
    /// Time up to the first sample, or all.
    before: Pieces,
    /// The first sample, and its node.
    first: Option<(u32, Sample)>,
    /// The first time off the processor, if nothing else is known before it.
    first_off: Option<Off>,
    /// Something is known of the thread.
    is_known: bool,
    /// CPU time before the first sample, where a thread's first chunk tells it.
    begin: Option<u64>,
    /// CPU time when it was told last before the first sample, by a chunk.
    told: Option<u64>,
    /// Time since the last sample, where there is one.
    since: Pieces,
    /// CPU time at the last sample, where there is one.
    last: Option<u64>,
}

/// Time off the processor.
#[derive(Clone, Copy, Debug)]
struct Off {
    node: u32,
    units: u64,
    waits: u32,
    /// Clock units that passed before in the batch.
    passed: u64,
}

impl Sampled {
    pub(crate) fn clear(&mut self) {
        self.spent.clear();
        self.before.clear();
        self.since.clear();
        (self.first, self.first_off, self.is_known) = (None, None, false);
        (self.begin, self.told, self.last) = (None, None, None);
    }

    /// A chunk tells the thread's CPU time.
    pub(super) fn told(&mut self, cpu_ns: u64, ns_per_unit: f64) {
        match self.last {
            _ if self.since.is_clocked => {}
            None => self.told = Some(cpu_ns),
            Some(last) => {
                let last = self.since.told(cpu_ns, last, &mut self.spent, ns_per_unit);
                self.last = Some(last);
            }
        }
    }

    /// A thread begins here, with this CPU time.
    pub(super) fn begins(&mut self, cpu_ns: u64) {
        self.is_known = true;
        if self.first.is_none() {
            self.begin = Some(cpu_ns);
        }
    }

    pub(super) fn passed(&mut self, node: u32, units: u64) {
        match self.is_behind_first() {
            true => self.since.passed_in(node, units, &mut self.spent),
            false => self.before.passed(node, units),
        }
    }

    /// Whether there was a sample, or a word that the clock tells the thread's time.
    fn is_behind_first(&self) -> bool {
        self.first.is_some() || self.since.is_clocked
    }

    /// From here on the clock alone tells the thread's time.
    pub(super) fn is_clocked(&mut self) {
        self.since.begins_clocked(&mut self.spent);
    }

    pub(super) fn leave_out(&mut self, units: u64) {
        match self.is_behind_first() {
            true => self.since.leave_out(units),
            false => self.before.leave_out_or_owe(units),
        }
    }

    /// The thread was off its processor for so many clock units, and waited so often, with this
    /// node on top.
    pub(super) fn was_off(&mut self, node: u32, units: u64, waits: u32) {
        if std::mem::replace(&mut self.is_known, true) {
            self.spent.was_off(node, units, waits);
        } else {
            self.first_off = Some(Off { node, units, waits, passed: self.before.units() });
        }
        self.leave_out(units);
    }

    /// The thread was interrupted with this node on top.
    pub(super) fn take(&mut self, node: u32, sample: Sample, ns_per_unit: f64) {
        self.is_known = true;
        let Some(last) = self.last.replace(sample.cpu_ns) else {
            self.since.clocked(0, &mut self.spent);
            self.since.is_clocked = false;
            self.first = Some((node, sample));
            return;
        };
        let cpu_ns = sample.cpu_ns.saturating_sub(last);
        let sampled_ns = self.since.sampled(&sample, cpu_ns, &mut self.spent, ns_per_unit);
        self.spent.take(node, &sample, sampled_ns);
    }

    /// Puts it behind what a thread did before; nodes have these numbers in its tree.
    pub(super) fn put_behind(
        &self,
        thread: &mut Since,
        spent: &mut Spent,
        number: impl Fn(u32) -> u32,
        ns_per_unit: f64,
    ) {
        if let Some(Off { node, units, waits, passed }) = self.first_off {
            // Of a window of a recording, time before that is no part.
            let here = passed.saturating_add(thread.pieces.units());
            let most = if thread.is_known { u64::MAX } else { here };
            spent.was_off(number(node), units.min(most), waits);
        }
        thread.is_known |= self.is_known;
        thread.pieces.append(&self.before, spent, &number);
        let last = self.begin.or(thread.last).map(|last| match self.told {
            Some(cpu_ns) => thread.pieces.told(cpu_ns, last, spent, ns_per_unit),
            None => last,
        });
        spent.absorb(&self.spent, &number);
        let Some((node, sample)) = &self.first else {
            thread.last = last;
            if self.since.is_clocked {
                thread.pieces.begins_clocked(spent);
                thread.pieces.append(&self.since, spent, &number);
            }
            return;
        };
        // Of a window of a recording it is not known what came before: what the sample stands for.
        let cpu_ns =
            last.map_or(sample.period_ns.into(), |last| sample.cpu_ns.saturating_sub(last));
        let sampled_ns = thread.pieces.sampled(sample, cpu_ns, spent, ns_per_unit);
        spent.take(number(*node), sample, sampled_ns);
        thread.pieces.is_clocked = self.since.is_clocked;
        thread.pieces.append(&self.since, spent, &number);
        thread.last = self.last;
    }
}

/// A thread behind its last sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since {
    pieces: Pieces,
    last: Option<u64>,
    /// Something was known of it.
    is_known: bool,
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

    /// Nothing more comes. Of a thread that waits until the end the recorder tells for how long, in
    /// the last piece. Where the thread did not tell its CPU time at its end, the clock tells what
    /// it had behind its last sample: less than from one to the next.
    pub(super) fn end(&mut self, spent: &mut Spent, ns_per_unit: f64) {
        if let Some((node, units)) = self.pieces.pieces.pop() {
            count(&mut spent.waiting, node, units);
        }
        self.pieces.clocked(0, spent);
        if self.last.is_some() && !spent.is_empty() {
            let cpu_ns = (self.pieces.units() as f64 * ns_per_unit).min(LONGEST_NS) as u64;
            let all_ns = if spent.cpu_ns > 0 { &mut spent.cpu_ns } else { &mut spent.cpu_alone_ns };
            *all_ns = all_ns.saturating_add(cpu_ns);
        }
        self.pieces.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(lengths: &[u64]) -> Pieces {
        let mut pieces = Pieces::default();
        (0..).zip(lengths).for_each(|(node, &units)| pieces.passed(node, units));
        pieces
    }

    /// The clock may be late: the thread was off for longer than has passed on it.
    #[test]
    fn a_late_clock_makes_no_cpu_time() {
        let mut pieces = pieces(&[40]);
        pieces.leave_out(100);
        pieces.passed(3, 70);
        assert_eq!(pieces.pieces, [(3, 10)]);
    }

    /// Guards: a window of a recording that has more waiting than time.
    #[test]
    fn a_window_has_no_waiting_from_before() {
        let (mut since, mut spent) = (Since::default(), Spent::default());
        let mut batch = Sampled::default();
        since.passed(1, 30);
        batch.passed(1, 20);
        batch.was_off(1, 900, 1);
        batch.passed(2, 50);
        batch.was_off(2, 40, 1);
        batch.put_behind(&mut since, &mut spent, |node| node, 1e3);
        assert_eq!((spent.waiting[&1], spent.waiting[&2]), (50, 40));
        assert_eq!((spent.waits[&1], spent.waits[&2]), (1, 1));
        // All that a known thread tells is true.
        batch.clear();
        batch.was_off(3, 900, 1);
        batch.put_behind(&mut since, &mut spent, |node| node, 1e3);
        assert_eq!(spent.waiting[&3], 900);
    }

    #[test]
    fn a_thread_waits_until_its_end() {
        let (mut since, mut spent) = (Since::default(), Spent::default());
        since.passed(2, 40);
        since.passed(1, 300);
        since.passed(2, 5000);
        since.passed(2, 600);
        since.end(&mut spent, 1.0);
        assert_eq!(spent.waiting, HashMap::from([(2, 5600)]));
        assert!(spent.is_empty());
    }

    /// Guards: processes that end by `_exit` after few samples, which lack what each had behind its
    /// last one.
    #[test]
    fn the_clock_tells_of_time_behind_the_last_sample() {
        let cpu_ns = |units: u64| {
            let (mut since, mut spent) = (Since::default(), Spent::default());
            spent.cpu_ns = 5_000_000;
            since.last = Some(5_000_000);
            since.passed(2, units);
            since.passed(1, 300);
            since.end(&mut spent, 1000.0);
            assert_eq!((spent.waiting[&1], spent.cpu_alone_ns), (300, 0));
            spent.cpu_ns
        };
        assert_eq!(cpu_ns(700), 5_700_000);
        assert_eq!(cpu_ns(70_000), 15_000_000);
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
            is_clocked: false,
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
        batch.was_off(3, 499 * MS, 1);
        batch.told(101 * MS, 1.0);
        batch.put_behind(&mut since, &mut spent, |node| node, 1.0);
        assert_eq!((spent.cpu_ns, spent.clocked.get(&1)), (MS, None));
        assert!(spent.clocked[&2] > 98 * MS, "{:?}", spent.clocked);
        assert_eq!(spent.waiting[&3], 499 * MS);
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

    /// Guards: time behind a filter of system calls that is nowhere. Waiting for room is none, and
    /// the last piece is waiting.
    #[test]
    fn the_clock_tells_all_time_of_a_thread_that_cannot() {
        const MS: u64 = 1_000_000;
        let (mut since, mut spent) = (Since::default(), Spent::default());
        let mut batch = Sampled::default();
        batch.begins(0);
        batch.passed(1, 2 * MS);
        batch.is_clocked();
        (0..1000).for_each(|_| batch.passed(2, MS));
        batch.put_behind(&mut since, &mut spent, |node| node, 1.0);
        // The next chunk says so again, behind a wait for room.
        batch.clear();
        batch.passed(2, 300 * MS);
        batch.leave_out(300 * MS);
        batch.is_clocked();
        (0..1000).for_each(|_| batch.passed(3, MS));
        batch.put_behind(&mut since, &mut spent, |node| node, 1.0);
        batch.clear();
        batch.passed(3, 40 * MS);
        batch.put_behind(&mut since, &mut spent, |node| node, 1.0);
        since.end(&mut spent, 1.0);
        let clocked = HashMap::from([(1, 2 * MS), (2, 1000 * MS), (3, 1000 * MS)]);
        assert_eq!((spent.clocked, spent.waiting), (clocked, HashMap::from([(3, 40 * MS)])));
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
        thread.append(&batch, &mut Spent::default(), |node| node);
        assert_eq!(thread.pieces, [(0, 50), (7, 30)]);
        // More than there was is left out of what comes.
        let mut batch = Pieces::default();
        batch.leave_out_or_owe(100);
        batch.passed(8, 30);
        thread.append(&batch, &mut Spent::default(), |node| node);
        assert_eq!(thread.pieces, [(8, 10)]);
    }
}
