//! What interrupts a thread: a timer of its own. Periods are drawn at random around the mean, so that they fall in step with nothing
//! that the program does.
//!
//! A timer expires once and is armed again with a fresh period, so that however long a sample takes, the program goes on for a period
//! between two. To arm a timer is to set the processor's, which takes as long as all else of a sample where that is a virtual one, and
//! the kernel has just set it to whatever else it waits for. So an event whose samples take a small part of its period goes
//! on by itself, and has a fresh period every few samples.

use crate::system;

/// What periods are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The thread's processor time. The kernel looks at such timers at its own ticks (CONFIG_HZ, 250 a second as distributions have
    /// it), so more samples a second there are not.
    Processor,
    /// The same, by an event of the kernel's (`perf_event_open(2)`), which high-resolution timers keep, so that it is as often as is
    /// asked for. Where the kernel permits none, it is as of [`Clock::Processor`].
    Event,
}

/// A thread's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// By its number.
    Posix(i32),
    /// By its descriptor.
    Event(i32),
}

impl Timer {
    /// Set in the number of those that are events, as a place has it.
    const EVENT: i32 = 1 << 30;

    /// For the calling thread: its signal has `value` with it, or the descriptor.
    pub(crate) fn create(clock: Clock, signal: i32, value: u64, period_ns: u64) -> Option<Self> {
        let event = match clock {
            Clock::Event => system::open_event(signal, period_ns).map(Self::Event),
            Clock::Processor => None,
        };
        event.or_else(|| system::create_timer(signal, value).map(Self::Posix))
    }

    /// As the handler finds it.
    pub(crate) fn of(number: i32) -> Self {
        if number & Self::EVENT != 0 {
            Self::Event(number & !Self::EVENT)
        } else {
            Self::Posix(number)
        }
    }

    /// As a place has it.
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Posix(number) => number,
            Self::Event(file) => file | Self::EVENT,
        }
    }

    /// When a thread's first sample is.
    pub(crate) fn first(self, mean: u64, random: u64) -> First {
        match self {
            Self::Posix(_) => First::at_a_tick(mean, system::tick(), random),
            Self::Event(_) => First::anywhere(mean, random),
        }
    }

    pub(crate) fn arm(self, nanoseconds: u64) {
        match self {
            Self::Posix(number) => system::arm_timer(number, nanoseconds),
            Self::Event(file) => system::arm_event(file, nanoseconds),
        }
    }

    /// It stands while a sample is taken that may take longer than a period: a signal that it left meanwhile would have one sample
    /// follow the other.
    pub(crate) fn stand(self) {
        if let Self::Event(file) = self {
            system::stop_event(file);
        }
    }

    /// Lets it expire time and again.
    pub(crate) fn goes_on(self, nanoseconds: u64) {
        match self {
            Self::Posix(number) => system::arm_timer(number, nanoseconds),
            Self::Event(file) => system::let_event_go_on(file, nanoseconds),
        }
    }

    pub(crate) fn delete(self) {
        match self {
            Self::Posix(number) => system::delete_timer(number),
            Self::Event(file) => system::close(file),
        }
    }
}

/// Samples of an event that goes on by itself, to a period.
const RUN: u32 = 8;
/// Periods below this are too short for one: what the kernel takes for each signal is not seen here.
const SHORTEST_NS: u64 = 250_000;
/// Nor does one whose samples take more than this part of its period, which one in a run may: a virtual machine may have stood.
const PART: u64 = 4;
const SLOW: u32 = 2;

/// What a timer is to do next, when a sample is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: it goes on.
    Nothing,
    /// It goes on, with a fresh period.
    GoesOn,
    /// It expires once.
    Once,
}

/// How a thread's timer is armed, in a number of its place: samples of the run, and above these how many of them were slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arming(pub(crate) u32);

impl Arming {
    const ONCE: u32 = u32::MAX;

    /// Of a timer that expires for the first time.
    pub(crate) fn first(timer: Timer, mean: u64) -> Self {
        let may_go_on = matches!(timer, Timer::Event(_)) && mean >= SHORTEST_NS;
        Self(if may_go_on { 0 } else { Self::ONCE })
    }

    /// Whether the timer is to stand while a sample is taken.
    pub(crate) fn is_once(self) -> bool {
        self.0 == Self::ONCE
    }

    /// Behind a sample that took so long; and how it is armed then. What was once too slow to go on stays so: an event that is told to
    /// expire once would end one that goes on.
    pub(crate) fn next(self, took: u64, mean: u64) -> (Self, Next) {
        if self.is_once() {
            return (self, Next::Once);
        }
        let (at, slow) = (self.0 % RUN, self.0 / RUN + u32::from(took > mean / PART));
        if slow >= SLOW {
            return (Self(Self::ONCE), Next::Once);
        }
        let next = if at == 0 { Next::GoesOn } else { Next::Nothing };
        let is_last = at + 1 == RUN;
        (Self(if is_last { 0 } else { slow * RUN + at + 1 }), next)
    }
}

/// Whether the kernel permits this process the events of [`Clock::Event`].
pub fn has_events() -> bool {
    // Its signal is that of none.
    let event = system::open_event(0, 1_000_000_000);
    event.map(system::close).is_some()
}

/// The next state of a row of random numbers (xorshift64, Marsaglia 2003), which is never 0.
pub fn next_random(state: u64) -> u64 {
    let mut state = state.max(1);
    state ^= state << 13;
    state ^= state >> 7;
    state ^ state << 17
}

/// A period between half of the mean and half more than it.
pub fn period(mean: u64, random: u64) -> u64 {
    (mean / 2 + ((u128::from(random) * u128::from(mean)) >> 64) as u64).max(1)
}

/// A thread's first sample. It is anywhere in a span of time, and stands for all of that: so of threads that live shorter
/// as many have a sample as stand for the time of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct First {
    /// What the timer is armed with.
    pub(crate) armed: u64,
    /// When it has expired, unless something kept it: what is behind that, the sample stands for as well.
    pub(crate) latest: u64,
    /// The span.
    pub(crate) weight: u64,
}

impl First {
    /// By a timer that expires when it is due.
    fn anywhere(mean: u64, random: u64) -> Self {
        let due = first(mean, random);
        Self { armed: due, latest: due, weight: mean }
    }

    /// By one that the kernel looks at when it ticks, which is anywhere in a tick's length behind a thread's beginning. So one of as many
    /// ticks is drawn as a period has.
    fn at_a_tick(mean: u64, tick: u64, random: u64) -> Self {
        let ticks = mean.div_ceil(tick).max(1);
        let before = ((u128::from(random) * u128::from(ticks)) >> 64) as u64 * tick;
        Self {
            armed: before.max(1),
            latest: before.saturating_add(tick),
            weight: ticks.saturating_mul(tick),
        }
    }
}

/// Anywhere in a period.
pub fn first(mean: u64, random: u64) -> u64 {
    (((u128::from(random) * u128::from(mean)) >> 64) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn timers_are_known_by_their_numbers() {
        for timer in [Timer::Posix(0), Timer::Posix(77), Timer::Event(0), Timer::Event(3)] {
            assert_eq!(Timer::of(timer.number()), timer);
        }
    }

    #[test]
    fn events_go_on_by_themselves_while_samples_are_quick() {
        let mean = 1_000_000;
        let armed = |first: Arming, took: &[u64]| -> Vec<Next> {
            let mut arming = first;
            let mut next = |&took| {
                let (armed, next) = arming.next(took, mean);
                arming = armed;
                next
            };
            took.iter().map(&mut next).collect()
        };
        let event = Arming::first(Timer::Event(3), mean);
        let mut run = [Next::Nothing; 2 * RUN as usize];
        (run[0], run[RUN as usize]) = (Next::GoesOn, Next::GoesOn);
        assert_eq!(armed(event, &[10_000; 2 * RUN as usize]), run);
        // Two slow ones of a run end that for good.
        let slow = [Next::GoesOn, Next::Nothing, Next::Nothing, Next::Once, Next::Once];
        assert_eq!(armed(event, &[250_000, 250_001, 10_000, 250_001, 10_000]), slow);
        let mut apart = [10_000; 2 * RUN as usize];
        (apart[RUN as usize - 1], apart[RUN as usize]) = (300_000, 300_000);
        assert_eq!(armed(event, &apart), run);
        for once in
            [Arming::first(Timer::Posix(3), mean), Arming::first(Timer::Event(3), SHORTEST_NS - 1)]
        {
            assert_eq!(armed(once, &[1; 2]), [Next::Once; 2]);
        }
    }

    #[test]
    fn first_samples_stand_for_short_threads_too() {
        let (mut random, mut seen) = (0, 0);
        for _ in 0..10_000 {
            random = next_random(random);
            let first = first(1_000_000, random);
            assert!((1..1_000_000).contains(&first), "{first}");
            seen += u64::from(first < 250_000);
        }
        // A quarter of those that live a quarter of a period.
        assert!((2_350..2_650).contains(&seen), "{seen}");
        assert_eq!((first(1, 0), first(0, u64::MAX)), (1, 1));
    }

    /// What first samples stand for of threads that live so long, on average, where the kernel ticks: `phase` of 1,000 is when, behind a
    /// thread's beginning.
    fn stood_for(mean: u64, tick: u64, lives: u64) -> u64 {
        let (mut random, mut sum) = (0, 0);
        for phase in 0..1000 {
            random = next_random(random);
            let first = First::at_a_tick(mean, tick, random);
            assert!(first.armed > 0 && first.latest <= first.weight, "{first:?}");
            let ticks = (0..).map(|number| (number * 1000 + phase) * tick / 1000);
            let taken = ticks.into_iter().find(|&at| at >= first.armed).unwrap();
            assert!(taken <= first.latest, "{first:?} {taken}");
            sum += if taken < lives { first.weight } else { 0 };
        }
        sum / 1000
    }

    #[test]
    fn first_samples_at_ticks_stand_for_short_threads_too() {
        const TICK: u64 = 4_000_000;
        for lives in [100_000, 1_000_000, 3_400_000, 4_000_000] {
            for mean in [1, 1_000_000, TICK] {
                let stood = stood_for(mean, TICK, lives);
                assert!(stood.abs_diff(lives) < 10_000, "{mean}: {stood} of {lives}");
            }
        }
        for lives in [1_000_000, 3_400_000, 7_500_000] {
            for mean in [TICK + 1, 10_000_000, 3 * TICK] {
                let stood = stood_for(mean, TICK, lives);
                assert!(stood.abs_diff(lives) < 1_000_000, "{mean}: {stood} of {lives}");
            }
        }
        let first = |mean, random| First::at_a_tick(mean, TICK, random);
        let one = First { armed: 1, latest: TICK, weight: TICK };
        assert_eq!([first(0, u64::MAX), first(TICK, 0), first(TICK, u64::MAX)], [one; 3]);
        let last = First { armed: 2 * TICK, latest: 3 * TICK, weight: 3 * TICK };
        assert_eq!(first(2 * TICK + 1, u64::MAX), last);
        assert!(first(u64::MAX, u64::MAX).latest > u64::MAX / 2);
    }

    #[test]
    fn a_timer_has_the_first_sample_that_it_can_keep_to() {
        let (mean, random) = (1_000_000, u64::MAX / 2);
        let event = Timer::Event(3).first(mean, random);
        assert_eq!(event, First { armed: 499_999, latest: 499_999, weight: mean });
        let tick = system::tick();
        assert!((1_000_000..=10_000_000).contains(&tick), "{tick}");
        assert_eq!(Timer::Posix(3).first(mean, random).weight, tick);
    }

    #[test]
    fn periods_are_spread_around_the_mean() {
        let (mut random, mut sum, mut low, mut high) = (0, 0, 0, 0);
        for _ in 0..10_000 {
            random = next_random(random);
            let period = period(1_000_000, random);
            assert!((500_000..1_500_000).contains(&period), "{period}");
            sum += period;
            low += u64::from(period < 600_000);
            high += u64::from(period > 1_400_000);
        }
        assert!((985_000..1_015_000).contains(&(sum / 10_000)), "{sum}");
        assert!((800..1200).contains(&low) && (800..1200).contains(&high), "{low} {high}");
        assert_eq!(period(0, u64::MAX), 1);
    }
}
