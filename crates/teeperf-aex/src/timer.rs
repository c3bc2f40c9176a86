//! What interrupts a thread: a timer of its own, which expires once and is armed again with a fresh period. Periods are drawn at
//! random around the mean, so that they fall in step with nothing that the program does.

use crate::system;

/// What periods are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The thread's processor time. The kernel looks at such timers at its own ticks (CONFIG_HZ, 250 a second as distributions have
    /// it), so more samples a second there are not.
    Processor,
    /// Time that passes, to the microsecond. A thread that waits is interrupted too, so this is for threads that do not.
    Passing,
}

/// A thread's timer.
#[derive(Debug)]
pub(crate) struct Timer(i32);

impl Timer {
    /// For the calling thread: its signal has `value` with it.
    pub(crate) fn create(clock: Clock, signal: i32, value: u64) -> Option<Self> {
        let clock = match clock {
            Clock::Processor => system::clock::THREAD_CPUTIME,
            Clock::Passing => system::clock::MONOTONIC,
        };
        system::create_timer(clock, signal, value).map(Self)
    }

    /// By its number, as the handler finds it.
    pub(crate) fn of(number: i32) -> Self {
        Self(number)
    }

    pub(crate) fn number(&self) -> i32 {
        self.0
    }

    pub(crate) fn arm(&self, nanoseconds: u64) {
        system::arm_timer(self.0, nanoseconds);
    }

    pub(crate) fn delete(self) {
        system::delete_timer(self.0);
    }
}

/// The next state of a row of random numbers (xorshift64, Marsaglia 2003), which is never 0.
pub(crate) fn next_random(state: u64) -> u64 {
    let mut state = state.max(1);
    state ^= state << 13;
    state ^= state >> 7;
    state ^ state << 17
}

/// A period between half of the mean and half more than it.
pub(crate) fn period(mean: u64, random: u64) -> u64 {
    (mean / 2 + ((u128::from(random) * u128::from(mean)) >> 64) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

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
