//! What the machine offers as a clock, and the choice among it.

use super::{TICK_HZ, counter, ticker};
use crate::machine;
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

impl Period {
    /// Shortest sleep that is believed; below it a thread does nothing but wake.
    pub const SHORTEST: Duration = Duration::from_micros(10);
    /// Longest sleep: a hook that waits for a change of the tick sees it within that time.
    pub const LONGEST: Duration = Duration::from_millis(100);

    /// Of sleeps that nobody asked for. A thread whose waking takes so long needs no more than a
    /// twenty-fifth of a processor with it: where the program has them all busy, that is what a tick costs it.
    fn affordable(cost: Duration) -> Self {
        let mean = (25 * cost).clamp(FINE, COARSE).as_micros() as u64;
        Self::Sleeping(Duration::from_micros(mean.next_multiple_of(50)))
    }

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
    /// A counter that the code inside reads, and this machine does not: of so many counts in a second.
    pub(crate) fn elsewhere(hz: u64) -> Self {
        Self {
            kind: ClockKind::Cycle,
            is_ordered: false,
            hz,
            period_units: 0,
            period: Period::Sleeping(FINE),
            reason: format!("a counter of the code inside, which was said to count {hz} a second"),
        }
    }

    /// What would have been asked for to get this.
    pub(crate) fn choice(&self) -> Choice {
        match self.kind {
            ClockKind::Tick => Choice::Tick,
            ClockKind::Cycle if self.is_ordered => Choice::Ordered,
            ClockKind::Cycle => Choice::Cycle,
        }
    }
}

/// Mean sleep of a ticker where waking costs next to nothing, and where it costs much.
const FINE: Duration = Duration::from_micros(100);
const COARSE: Duration = Duration::from_micros(500);
/// Sleeps measured to learn how late a ticker wakes, and what that costs.
const SLEEPS: usize = 16;
/// How long the counter is watched.
const WINDOW: Duration = Duration::from_millis(20);

/// Measures and chooses. Takes some milliseconds.
pub(crate) fn choose(choice: Choice, period: Option<Period>) -> Chosen {
    let sleep = match (choice, period) {
        (Choice::Auto, Some(Period::Sleeping(mean))) => Some(measure_sleep(mean)),
        (Choice::Auto | Choice::Tick, None) => Some(measure_sleep(FINE)),
        _ => None,
    };
    let cost = sleep.map_or(Duration::ZERO, |sleep| sleep.cost);
    let period = period.unwrap_or_else(|| Period::affordable(cost)).within_bounds();
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
    /// CPU time that one takes, median.
    cost: Duration,
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
        (Choice::Auto, _, Some(Sleep { late, cost, .. })) => {
            let reason =
                format!("the cheapest; a tick takes {cost:.1?} and comes {late:.1?} late now");
            (ClockKind::Tick, reason)
        }
        _ => (ClockKind::Tick, "the tick was asked for, or is what --timed and others need".into()),
    }
}

/// Over some sleeps.
fn measure_sleep(mean: Duration) -> Sleep {
    let (late, cost) = std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            ticker::sleep_exactly();
            machine::go_first();
            let sleeps = (0..SLEEPS).map(|_| {
                let (before, cpu_ns) = (Instant::now(), machine::thread_cpu_ns());
                std::thread::sleep(mean);
                let cost = Duration::from_nanos(machine::thread_cpu_ns() - cpu_ns);
                (before.elapsed().saturating_sub(mean), cost)
            });
            sleeps.collect::<(Vec<_>, Vec<_>)>()
        });
        sleeper.join().unwrap_or_default()
    });
    Sleep { resolution: timer_resolution(), late: median(late), cost: median(cost) }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
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
        let late = Duration::from_secs(1);
        let sleep = Sleep { resolution, late, cost: Duration::ZERO };
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
        let cycle = |even| decide(Choice::Cycle, Period::Sleeping(MEAN), None, even);
        assert_eq!(cycle(true).0, ClockKind::Cycle);
        assert!(!cycle(true).1.contains("wrong"));
        assert!(cycle(false).1.contains("wrong"));
        assert_eq!(decide(Choice::Tick, Period::Spinning, None, true).0, ClockKind::Tick);
    }

    #[test]
    fn what_is_chosen_has_a_speed() {
        let tick = choose(Choice::Tick, Some(Period::Sleeping(MEAN)));
        assert_eq!((tick.hz, tick.period_units), (1_000_000, 100));
        let cycle = choose(Choice::Cycle, None);
        assert!(cycle.hz > 1_000_000 && cycle.period_units == 0);
        let short = Some(Period::Sleeping(Duration::ZERO));
        assert_eq!(choose(Choice::Tick, short).period_units, 10);
        assert_eq!(choose(Choice::Auto, short).period_units, 10);
    }

    #[test]
    fn the_dearer_it_is_to_wake_the_fewer_ticks() {
        let mean = |cost| match Period::affordable(Duration::from_nanos(cost)) {
            Period::Sleeping(mean) => mean.as_micros(),
            Period::Spinning => panic!("that costs most"),
        };
        assert_eq!([0, 4_000, 4_001, 15_000, 50_000].map(mean), [100, 100, 100, 400, 500]);
        assert_eq!(mean(12_345), 350);
        for choice in [Choice::Auto, Choice::Tick] {
            let units = choose(choice, None).period_units;
            assert!((100..=500).contains(&units), "{choice:?}: {units}");
        }
    }
}
