//! What this machine offers a recorder, asked without recording anything.

use crate::clock::{self, Choice};
use crate::memory::{SEAL_READ_ONLY, SharedMemory};
use crate::sample::{self, Refused, Sampling};
use crate::socket::Listener;
use std::io;
use std::time::Duration;
use teeperf_wire::shared::ClockKind;

/// The clock that a recording would have which asks for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockOffer {
    /// The clock, as one would ask for it.
    pub choice: Choice,
    /// Mean time between two ticks, where it ticks.
    pub period: Option<Duration>,
    /// Why that one.
    pub reason: String,
    /// Whether the processor's counter runs at one speed.
    pub counter_is_even: bool,
}

/// Measures and chooses, as a recording does at its beginning. Takes some milliseconds.
pub fn clock() -> ClockOffer {
    let chosen = clock::choose(Choice::Auto, None);
    let period = (chosen.kind == ClockKind::Tick).then(|| {
        Duration::from_nanos(chosen.period_units.saturating_mul(1_000_000_000) / chosen.hz)
    });
    let choice = chosen.choice();
    ClockOffer { choice, period, reason: chosen.reason, counter_is_even: clock::counter_is_even() }
}

/// Whether memory can be shared with a program, and sealed so that neither side can take it from the other.
///
/// # Errors
///
/// What the system says to that.
pub fn shared_memory() -> io::Result<()> {
    SharedMemory::create(c"teeperf-offer", 4096, SEAL_READ_ONLY).map(drop)
}

/// Whether programs can find a recorder: by a socket with an abstract name.
///
/// # Errors
///
/// What the system says to that.
pub fn socket() -> io::Result<()> {
    Listener::bind(&format!("teeperf.offer-{}", std::process::id())).map(drop)
}

/// What `--sample` would take samples of.
///
/// # Errors
///
/// Where the kernel lets nothing be sampled.
pub fn sampling() -> Result<String, Refused> {
    sample::choose(&Sampling::default()).map(|chosen| chosen.told())
}

/// Whether the kernel permits events to time threads with, from within their process.
pub fn timer_events() -> bool {
    teeperf_aex::sampler::has_events()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_record() {
        shared_memory().unwrap();
        socket().unwrap();
        let offer = clock();
        let is_tick = offer.choice == Choice::Tick;
        assert!(!offer.reason.is_empty() && offer.period.is_some() == is_tick, "{offer:?}");
        let periods = Duration::from_micros(100)..=Duration::from_micros(500);
        assert!(offer.period.is_none_or(|period| periods.contains(&period)), "{offer:?}");
    }
}
