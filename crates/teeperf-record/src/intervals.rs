//! When trees are written: each time an interval has passed. In long runs the interval grows, so that what is
//! written stays in proportion to the logarithm of the run's length, and reading it takes no longer.

use std::time::{Duration, Instant};

/// See the module. By default they are not written before the end.
#[derive(Debug, Default)]
pub(crate) struct Intervals {
    interval: Option<Duration>,
    due: Option<Instant>,
    written: u32,
}

/// So many of one length, then half as many of twice that, and so on.
const OF_ONE_LENGTH: u32 = 256;

impl Intervals {
    /// From now on.
    pub(crate) fn every(interval: Option<Duration>) -> Self {
        Self { interval, due: after(Instant::now(), interval), written: 0 }
    }

    /// Whether they are to be written now; then they are.
    pub(crate) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        if self.due.is_none_or(|due| due > now) {
            return false;
        }
        self.written += 1;
        if self.written >= OF_ONE_LENGTH {
            self.written = OF_ONE_LENGTH / 2;
            self.interval = self.interval.map(|interval| interval.saturating_mul(2));
        }
        self.due = after(now, self.interval);
        true
    }
}

/// Nothing where it would be beyond all time.
fn after(now: Instant, interval: Option<Duration>) -> Option<Instant> {
    now.checked_add(interval?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_a_run_the_longer_its_intervals() {
        let mut intervals = Intervals::every(Some(Duration::from_nanos(1)));
        for _ in 0..OF_ONE_LENGTH + OF_ONE_LENGTH / 2 {
            std::thread::sleep(Duration::from_micros(1));
            assert!(intervals.is_due());
        }
        assert_eq!(intervals.interval, Some(Duration::from_nanos(4)));
        assert!(!Intervals::every(None).is_due());
        assert!(!Intervals::every(Some(Duration::MAX)).is_due());
    }
}
