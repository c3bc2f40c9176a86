//! What interrupts a thread: a timer of its own, which expires once and is armed again with a fresh period. Periods are drawn at
//! random around the mean, so that they fall in step with nothing that the program does.

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
    /// Time that passes, to the microsecond. A thread that waits is interrupted too, so this is for threads that do not.
    Passing,
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
        let clock = match clock {
            Clock::Event => {
                let event = system::open_event(signal, period_ns).map(Self::Event);
                if event.is_some() {
                    return event;
                }
                system::clock::THREAD_CPUTIME
            }
            Clock::Processor => system::clock::THREAD_CPUTIME,
            Clock::Passing => system::clock::MONOTONIC,
        };
        system::create_timer(clock, signal, value).map(Self::Posix)
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

    pub(crate) fn arm(self, nanoseconds: u64) {
        match self {
            Self::Posix(number) => system::arm_timer(number, nanoseconds),
            Self::Event(file) => system::arm_event(file, nanoseconds),
        }
    }

    pub(crate) fn delete(self) {
        match self {
            Self::Posix(number) => system::delete_timer(number),
            Self::Event(file) => system::close(file),
        }
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

/// Until a thread's first sample, which stands for a whole period: anywhere in one. So of threads that live shorter than a period
/// as many have a sample as stand for the time of all.
pub fn first(mean: u64, random: u64) -> u64 {
    (((u128::from(random) * u128::from(mean)) >> 64) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_known_by_their_numbers() {
        for timer in [Timer::Posix(0), Timer::Posix(77), Timer::Event(0), Timer::Event(3)] {
            assert_eq!(Timer::of(timer.number()), timer);
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
