//! Time of a recording: which clock, how fast it runs, and the page through which a
//! traced process sees it and is told to pause or stop.

mod counter;
mod offer;
mod page;
mod ticker;

pub use offer::{Choice, Period};

pub(crate) use counter::{is_even as counter_is_even, measure_hz as counter_hz, read as counter};
pub(crate) use offer::{Chosen, choose};
pub(crate) use page::{ClockPage, NAME};
pub(crate) use ticker::{Audience, Ticker, Where};

use crate::machine::monotonic_ns;
use std::time::{Duration, Instant};
use teeperf_wire::shared::ClockKind;

/// The present moment in the recording's own units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    /// Nothing: it is a counter that this machine does not have.
    kind: Option<ClockKind>,
    start: Instant,
    /// That moment by `CLOCK_MONOTONIC`, nanoseconds.
    start_ns: u64,
}

/// Ticks in a second: the tick counts microseconds.
pub(crate) const TICK_HZ: u64 = 1_000_000;
/// First value of the tick. Not 0, which a thread that has seen no time yet may hold.
const TICK_START: u64 = 1;

impl Time {
    /// Starts now.
    pub(crate) fn start(kind: ClockKind) -> Self {
        Self { kind: Some(kind), start: Instant::now(), start_ns: monotonic_ns() }
    }

    /// Starts now, of another machine's counter.
    pub(crate) fn start_elsewhere() -> Self {
        Self { kind: None, start: Instant::now(), start_ns: 0 }
    }

    /// Clock units: microseconds since the start, or the machine's counter; 0 where it is not known.
    pub(crate) fn now(&self) -> u64 {
        match self.kind {
            Some(ClockKind::Tick) => self.ticks(),
            Some(ClockKind::Cycle) => counter::read(),
            None => 0,
        }
    }

    /// The same as [`Time::now`], and that moment by `CLOCK_MONOTONIC`, nanoseconds.
    pub(crate) fn now_both(&self) -> (u64, u64) {
        let now = self.now();
        match self.kind {
            Some(ClockKind::Tick) => (now, self.origin_ns() + 1000 * now),
            _ => (now, monotonic_ns()),
        }
    }

    /// When the tick was 0, by `CLOCK_MONOTONIC`, nanoseconds; 0 where there is none.
    pub(crate) fn origin_ns(&self) -> u64 {
        match self.kind {
            Some(ClockKind::Tick) => self.start_ns.saturating_sub(TICK_START * 1000),
            _ => 0,
        }
    }

    /// Since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Microseconds since the start, whatever the clock.
    fn ticks(&self) -> u64 {
        TICK_START + self.start.elapsed().as_micros() as u64
    }
}
