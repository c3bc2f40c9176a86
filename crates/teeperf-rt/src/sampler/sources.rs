//! Timer and events of each thread.
//!
//! They outlive a thread that ends without a word. The next threads that begin look through the
//! table of these, a few places each, and let go what belongs to threads that are gone.
//!
//! The kernel takes a thread's events off its processor and puts them on again each time that the
//! thread waits, which takes some microseconds. A thread that waits all the time loses its events
//! ([`without_events`]), and its timer alone tells of it until it waits seldom.

use crate::arch;
use crate::platform::{self, perf, perf::When, timer};
use crate::thread::Thread;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicUsize};

/// CPU time between two expirations of a thread's timer, nanoseconds. The kernel looks at timers of
/// CPU time at its tick, which may come less often.
pub(super) const TIMER_NS: u64 = 1_000_000;
/// Mean CPU time between two interruptions by a thread's event, and how much more or less that may
/// be in a thread, so that not all beat with a program.
const EVENT_NS: u64 = 1_000_000;
const SPREAD_NS: u64 = EVENT_NS / 3;
/// CPU time from which on a thread has another period.
const RENEWAL_NS: u64 = 128 * EVENT_NS;
/// Least CPU time of a thread at its first sample: what the kernel's timers can do.
const LEAST_NS: u64 = 10_000;

/// Timer and events of a thread, which outlive it.
struct Owned {
    /// Thread id, 0 while the place is free.
    thread: AtomicU32,
    /// Id of its timer plus one, 0 where it has none.
    timer: AtomicU32,
    /// Mappings of its events, 0 where it has none.
    events: [AtomicUsize; EVENTS],
    /// Time from one event to the next, nanoseconds; 0 where there are none.
    period_ns: AtomicU32,
}

/// One event comes again and again. The other comes once, before it: at any time of the first period
/// alike.
const EVENTS: usize = 2;
/// Threads for which there is no place are not sampled.
static OWNED: [Owned; PLACES] = [const {
    Owned {
        thread: AtomicU32::new(0),
        timer: AtomicU32::new(0),
        events: [const { AtomicUsize::new(0) }; EVENTS],
        period_ns: AtomicU32::new(0),
    }
}; PLACES];
const PLACES: usize = 4096;
/// Places that a thread looks through when it begins, for threads that are gone.
const LOOKED_THROUGH: usize = 4;
/// Where the next thread looks, and how many places were ever taken.
static NEXT: AtomicUsize = AtomicUsize::new(0);
static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// In a place that is being taken or let go.
const BUSY: u32 = u32::MAX;

impl Owned {
    /// Takes the place, if it has this owner; says whether it did.
    fn takes(&self, owner: u32) -> bool {
        self.thread.compare_exchange(owner, BUSY, AcqRel, Relaxed).is_ok()
    }

    /// Lets go of all that is in it.
    fn release(&self) {
        if let Some(timer) = self.timer.swap(0, Relaxed).checked_sub(1) {
            timer::delete(timer.cast_signed());
        }
        self.end_events();
    }

    fn end_events(&self) {
        for event in &self.events {
            end_event(event.swap(0, Relaxed));
        }
    }

    fn begin_timer(&self, thread: u32) {
        if let Some(timer) = timer::create(thread) {
            self.timer.store(timer.cast_unsigned().wrapping_add(1), Relaxed);
            timer::start(timer, LEAST_NS, TIMER_NS);
        }
    }

    /// Has the calling thread interrupted, whose id this is. Gives the time of its single event.
    fn begin(&self, thread: u32) -> u64 {
        let mut random = Random::of(thread);
        let period = random.period();
        let first = LEAST_NS + random.below(period);
        let whens = [When::Each(period), When::Once(first)];
        let has_events = perf::begin(thread, &whens, &self.events);
        if !has_events {
            self.end_events();
        }
        self.period_ns.store(if has_events { period as u32 } else { 0 }, Relaxed);
        // Last: the kernel may take longer to make events than a short thread works, and a tick
        // meanwhile would interrupt the thread behind that.
        self.begin_timer(thread);
        first
    }

    /// Tells the place's thread the period of its events, which is new at this CPU time.
    fn tell_period(&self, thread: &Thread, cpu_ns: u64) {
        let period_ns = self.period_ns.load(Relaxed);
        thread.period_ns.store(period_ns, Relaxed);
        thread.renewed_at.store(if period_ns == 0 { 0 } else { cpu_ns }, Relaxed);
    }

    /// Has a thread interrupted as before, by the signal that is used now.
    fn begin_again(&self, thread: u32) {
        self.begin_timer(thread);
        let period = self.period_ns.load(Relaxed);
        if period != 0 {
            let [again, ..] = &self.events;
            perf::begin(thread, &[When::Each(period.into())], core::slice::from_ref(again));
        }
    }
}

/// Ends the event with this mapping, if it is one.
fn end_event(mapping: usize) {
    if mapping != 0 {
        perf::end(mapping);
    }
}

/// Numbers at random.
struct Random(u64);

impl Random {
    fn of(thread: u32) -> Self {
        Self(arch::counter() ^ u64::from(thread) << 32)
    }

    fn below(&mut self, most: u64) -> u64 {
        // Marsaglia, "Xorshift RNGs", 2003.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    /// CPU time from one event to the next.
    fn period(&mut self) -> u64 {
        EVENT_NS - SPREAD_NS + self.below(2 * SPREAD_NS)
    }
}

/// CPU time that a sample of a thread's event stands for which comes again, by its number from 1.
///
/// Threads of a program may all do the same at the same age, so each age must have the same part in
/// samples. Up to the first period the event that comes once has it. The first sample of this one is
/// at ages of 2/3 to 4/3 of the mean period, where some threads have their single event still
/// before them, and the second at twice these. Each stands for the part of its age that others leave:
/// c(t) = P(p > t) + w1(t) g(t) + w2(t/2) g(t/2)/2 + w3(t/3) g(t/3)/3 + ... = 1, with the density g
/// of periods. From the third on each stands for its period, which is true within 0.3.
pub(super) fn stands_for_ns(period_ns: u32, number: u64) -> u32 {
    const MEAN: u32 = EVENT_NS as u32;
    const LEAST: u32 = (EVENT_NS - SPREAD_NS) as u32;
    match number {
        0 | 1 => period_ns.saturating_sub(LEAST),
        2 if period_ns < MEAN => MEAN / 3 * 4,
        2 => (MEAN - period_ns / 3) / 3 * 4,
        _ => period_ns,
    }
}

/// Whether an event that is to come at an age of `first_ns` comes at this age for the second time,
/// or later. An interrupt takes some microseconds.
pub(super) fn is_repeated(age_ns: u64, first_ns: u32) -> bool {
    let first_ns = u64::from(first_ns);
    age_ns > first_ns + first_ns / 2 + 2 * LEAST_NS
}

/// Forgets all, in a process that was attached just now: timers and events of the process that it
/// was forked from are not here.
pub(super) fn forget() {
    // No more of them: a child of a fork would copy the pages of all.
    for place in OWNED.iter().take(TAKEN.swap(0, Relaxed)) {
        place.thread.store(0, Relaxed);
        place.timer.store(0, Relaxed);
        place.events.iter().for_each(|event| event.store(0, Relaxed));
    }
}

/// Has the calling thread interrupted.
pub(super) fn begin_thread(thread: &Thread) {
    let taken = TAKEN.load(Relaxed).min(PLACES);
    let start = NEXT.fetch_add(LOOKED_THROUGH, Relaxed) % taken.max(1);
    let looked = OWNED.iter().take(taken).cycle().skip(start).take(LOOKED_THROUGH);
    let mut free = None;
    for place in looked {
        let owner = place.thread.load(Relaxed);
        if owner != 0 && owner != BUSY && !platform::has_thread(owner) && place.takes(owner) {
            place.release();
            place.thread.store(0, Release);
        }
        if free.is_none() && place.takes(0) {
            free = Some(place);
        }
    }
    let new = || {
        let place = OWNED.get(TAKEN.fetch_add(1, Relaxed))?;
        place.takes(0).then_some(place)
    };
    let Some(place) = free.or_else(new) else { return };
    let id = thread.tid.load(Relaxed);
    thread.single_event_ns.store(place.begin(id) as u32, Relaxed);
    // The events of a thread count from where it runs again, behind what has made them.
    thread.events_began_at.store(platform::thread_cpu_ns().unwrap_or(0), Relaxed);
    place.tell_period(thread, thread.events_began_at.load(Relaxed));
    place.thread.store(id, Release);
}

/// Whether a thread with events is to have another period at this CPU time.
pub(super) fn is_renewal_due(thread: &Thread, cpu_ns: u64) -> bool {
    cpu_ns.saturating_sub(thread.renewed_at.load(Relaxed)) > RENEWAL_NS
}

/// Whether the calling thread had events, and has none.
pub(super) fn has_lost_events(thread: &Thread) -> bool {
    thread.period_ns.load(Relaxed) == 0 && thread.renewed_at.load(Relaxed) != 0
}

/// Has the calling thread interrupted by another period, at random. A program that does the same
/// again and again would be met at the same few places for long otherwise.
pub(super) fn renew(thread: &Thread, cpu_ns: u64) {
    let Some(place) = take(thread) else { return };
    let id = thread.tid.load(Relaxed);
    let period = Random::of(id).period();
    let new = AtomicUsize::new(0);
    if perf::begin(id, &[When::Each(period)], core::slice::from_ref(&new)) {
        let [again, ..] = &place.events;
        end_event(again.swap(new.load(Relaxed), Relaxed));
        place.period_ns.store(period as u32, Relaxed);
    }
    place.tell_period(thread, cpu_ns);
    place.thread.store(id, Release);
}

/// Ends the events of the calling thread, whose timer goes on.
#[cold]
pub(super) fn without_events(thread: &Thread) {
    if let Some(place) = take(thread) {
        place.end_events();
        place.period_ns.store(0, Relaxed);
        place.thread.store(thread.tid.load(Relaxed), Release);
    }
}

/// Ends timer and events of the calling thread.
pub(super) fn end_thread(thread: &Thread) {
    if let Some(place) = take(thread) {
        place.release();
        place.thread.store(0, Release);
    }
}

/// Takes the place of the calling thread, whose events are no longer counted.
fn take(thread: &Thread) -> Option<&'static Owned> {
    let id = thread.tid.load(Relaxed);
    let place = taken().find(|place| place.takes(id))?;
    thread.period_ns.store(0, Relaxed);
    Some(place)
}

/// Lets all threads run.
pub(super) fn end() {
    for_each(|place, _| {
        place.release();
        0
    });
}

/// Lets all threads run, until [`go_on`].
pub(super) fn stop() {
    for_each(|place, owner| {
        place.release();
        owner
    });
}

/// Has all threads interrupted again, by the signal that is used now.
pub(super) fn go_on() {
    for_each(|place, owner| {
        place.begin_again(owner);
        owner
    });
}

/// Places that were ever taken.
fn taken() -> impl Iterator<Item = &'static Owned> {
    OWNED.iter().take(TAKEN.load(Relaxed))
}

/// Does something with the place of each thread, which has the owner then that this gives.
fn for_each(what: impl Fn(&Owned, u32) -> u32) {
    for place in taken() {
        let owner = place.thread.load(Relaxed);
        if owner != 0 && owner != BUSY && place.takes(owner) {
            place.thread.store(what(place, owner), Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: code of threads that are in the kernel for half of the time, told of twice.
    #[test]
    fn an_event_that_is_to_come_once_counts_once() {
        const KERNEL_NS: u64 = 100_000;
        let is_in_kernel = |age: u64| (age / KERNEL_NS).is_multiple_of(2);
        let (mut counted, mut all) = (0, 0);
        for first in (LEAST_NS..EVENT_NS).step_by(1000) {
            all += u64::from(!is_in_kernel(first));
            let seen = (1..100).map(|times| times * first).find(|&age| !is_in_kernel(age));
            counted += u64::from(seen.is_some_and(|age| !is_repeated(age, first as u32)));
        }
        assert!(counted.abs_diff(all) * 50 < all, "{counted} of {all}");
    }

    /// Guards: what a thread does at an age at which samples have more weight, or less.
    #[test]
    #[cfg_attr(miri, ignore = "counts many samples, which takes minutes")]
    fn each_age_has_the_same_part_in_samples() {
        const STEP: u64 = 1000;
        const AGES: usize = 12;
        let periods: Vec<u64> =
            (EVENT_NS - SPREAD_NS..EVENT_NS + SPREAD_NS).step_by(STEP as usize).collect();
        // By thirds of a mean period: nanoseconds that samples stand for of as many threads.
        let mut told = [0.0; AGES];
        let mut add = |age: u64, ns: f64| {
            if let Some(there) = told.get_mut((age * 3 / EVENT_NS) as usize) {
                *there += ns;
            }
        };
        for &period in &periods {
            // The single one, which is at all times of the first period alike.
            for age in (0..period).step_by(STEP as usize) {
                add(age, STEP as f64);
            }
            for number in 1..AGES as u64 {
                add(number * period, stands_for_ns(period as u32, number).into());
            }
        }
        let all = EVENT_NS as f64 / 3.0 * periods.len() as f64;
        for (age, told) in told.into_iter().enumerate() {
            let part = told / all;
            let slack = if age < 8 { 0.02 } else { 0.3 };
            assert!((part - 1.0).abs() < slack, "{age}: {part}");
        }
    }
}
