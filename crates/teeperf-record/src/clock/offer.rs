//! What the machine offers as a clock, and the choice among it.

use super::{TICK_HZ, counter, ticker};
use std::time::{Duration, Instant};
use teeperf_wire::shared::ClockKind;

/// Which clock the user wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// What suits the machine.
    #[default]
    Auto,
    /// A word that the recorder moves: cheap, as fine as its period.
    Tick,
    /// A counter read at each event: dear, fine enough for single calls.
    Cycle,
    /// The same, read when all work before it is done: dearer, right for calls of some tens of
    /// nanoseconds.
    Ordered,
}

/// How the tick moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// By a thread that sleeps this long on average.
    Sleeping(Duration),
    /// By a thread that never sleeps, and so takes a processor from the program.
    Spinning,
}

impl Default for Period {
    fn default() -> Self {
        Self::Sleeping(Duration::from_micros(100))
    }
}

impl Period {
    /// Shortest sleep that is believed; below it a thread does nothing but wake.
    pub const SHORTEST: Duration = Duration::from_micros(10);
    /// Longest sleep: a hook that waits for a change of the tick sees it within that time.
    pub const LONGEST: Duration = Duration::from_millis(100);

    fn within_bounds(self) -> Self {
        match self {
            Self::Sleeping(mean) => Self::Sleeping(mean.clamp(Self::SHORTEST, Self::LONGEST)),
            Self::Spinning => Self::Spinning,
        }
    }
}

/// The clock of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) kind: ClockKind,
    /// Whether the counter is read only when all work before it is done.
    pub(crate) is_ordered: bool,
    /// Units in a second.
    pub(crate) hz: u64,
    /// Units between two ticks on average, 0 for the counter.
    pub(crate) period_units: u64,
    pub(crate) period: Period,
    /// For the user.
    pub(crate) reason: String,
}

impl Chosen {
    /// What would have been asked for to get this.
    pub(crate) fn choice(&self) -> Choice {
        match self.kind {
            ClockKind::Tick => Choice::Tick,
            ClockKind::Cycle if self.is_ordered => Choice::Ordered,
            ClockKind::Cycle => Choice::Cycle,
        }
    }
}

/// Sleeps measured to learn how late the ticker wakes.
const SLEEPS: usize = 16;
/// How long the counter is watched.
const WINDOW: Duration = Duration::from_millis(20);

/// Measures and chooses. Takes some milliseconds.
pub(crate) fn choose(choice: Choice, period: Period) -> Chosen {
    let period = period.within_bounds();
    let sleep = match (choice, period) {
        (Choice::Auto, Period::Sleeping(mean)) => Some(measure_sleep(mean)),
        _ => None,
    };
    let (kind, reason) = decide(choice, period, sleep, counter::is_even());
    let (hz, period_units) = match (kind, period) {
        (ClockKind::Cycle, _) => (counter::measure_hz(WINDOW), 0),
        (ClockKind::Tick, Period::Sleeping(mean)) => (TICK_HZ, mean.as_micros() as u64),
        (ClockKind::Tick, Period::Spinning) => (TICK_HZ, 1),
    };
    let is_ordered = choice == Choice::Ordered;
    Chosen { kind, is_ordered, hz, period_units, period, reason }
}

/// How well a thread can sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sleep {
    /// What the system's timers can tell apart. Where they are coarse, no ticker wakes sooner.
    resolution: Duration,
    /// How late one wakes now, median. For the user alone: on a machine that is busy at the
    /// moment the tick still costs the program least.
    late: Duration,
}

fn decide(choice: Choice, period: Period, sleep: Option<Sleep>, even: bool) -> (ClockKind, String) {
    let uneven = if even { "" } else { "; it changes its speed on this machine: times are wrong" };
    match (choice, period, sleep) {
        (Choice::Cycle, ..) => (ClockKind::Cycle, format!("the counter was asked for{uneven}")),
        (Choice::Ordered, ..) => {
            (ClockKind::Cycle, format!("the counter, read in order, was asked for{uneven}"))
        }
        (Choice::Auto, Period::Sleeping(mean), Some(sleep)) if sleep.resolution > mean && even => {
            let resolution = sleep.resolution;
            let reason =
                format!("timers tell {resolution:?} apart here, a tick's period is {mean:?}");
            (ClockKind::Cycle, reason)
        }
        (Choice::Auto, _, Some(sleep)) => {
            (ClockKind::Tick, format!("the cheapest; its ticker wakes {:?} late now", sleep.late))
        }
        _ => (ClockKind::Tick, "the tick was asked for".into()),
    }
}

/// Over some sleeps.
fn measure_sleep(mean: Duration) -> Sleep {
    let mut late: Vec<Duration> = std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            ticker::sleep_exactly();
            let sleeps = (0..SLEEPS).map(|_| {
                let before = Instant::now();
                std::thread::sleep(mean);
                before.elapsed().saturating_sub(mean)
            });
            sleeps.collect()
        });
        sleeper.join().unwrap_or_default()
    });
    late.sort_unstable();
    let late = late.get(late.len() / 2).copied().unwrap_or_default();
    Sleep { resolution: timer_resolution(), late }
}

/// Of the clock that sleeps go by: clock_getres(2).
fn timer_resolution() -> Duration {
    let mut resolution = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the address is that of a timespec.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &mut resolution) };
    Duration::new(resolution.tv_sec as u64, resolution.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: Duration = Duration::from_micros(100);

    fn auto(resolution: Duration, even: bool) -> ClockKind {
        let sleep = Sleep { resolution, late: Duration::from_secs(1) };
        decide(Choice::Auto, Period::Sleeping(MEAN), Some(sleep), even).0
    }

    #[test]
    fn the_tick_unless_timers_are_coarse_and_the_counter_is_even() {
        let (fine, coarse) = (Duration::from_nanos(1), Duration::from_millis(4));
        assert_eq!(auto(fine, true), ClockKind::Tick);
        assert_eq!(auto(coarse, true), ClockKind::Cycle);
        assert_eq!(auto(coarse, false), ClockKind::Tick);
        assert!((fine..=Duration::from_millis(100)).contains(&timer_resolution()));
    }

    #[test]
    fn a_wish_is_granted_and_its_danger_said() {
        let cycle = |even| decide(Choice::Cycle, Period::default(), None, even);
        assert_eq!(cycle(true).0, ClockKind::Cycle);
        assert!(!cycle(true).1.contains("wrong"));
        assert!(cycle(false).1.contains("wrong"));
        assert_eq!(decide(Choice::Tick, Period::Spinning, None, true).0, ClockKind::Tick);
    }

    #[test]
    fn what_is_chosen_has_a_speed() {
        let tick = choose(Choice::Tick, Period::Sleeping(MEAN));
        assert_eq!((tick.hz, tick.period_units), (1_000_000, 100));
        let cycle = choose(Choice::Cycle, Period::default());
        assert!(cycle.hz > 1_000_000 && cycle.period_units == 0);
        assert_eq!(choose(Choice::Tick, Period::Sleeping(Duration::ZERO)).period_units, 10);
    }
}
