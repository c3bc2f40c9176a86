//! The thread that moves the tick. It sleeps between half and one and a half periods, at
//! random, so that no program can beat in step with it.
//!
//! Where processors leave the system for another world, their timers stand still meanwhile: TF-A switches the timers
//! along with the worlds (NS_TIMER_SWITCH, which it sets for OP-TEE). A thread that sleeps on such a processor does
//! not wake until it is back, so then there is a thread on each.

use super::{ClockPage, Period, Time};
use crate::machine;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A running ticker. Dropping it ends it, and leaves the tick moved once more, so that
/// every hook looks up.
#[derive(Debug)]
pub(crate) struct Ticker {
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    page: Arc<ClockPage>,
    time: Time,
    late: Arc<Late>,
}

/// How late the tick came.
#[derive(Debug, Default)]
struct Late {
    /// Nanoseconds in which it stood for longer than another mean period, and the longest of these.
    all_ns: AtomicU64,
    most_ns: AtomicU64,
}

impl Late {
    fn add(&self, late: Duration, mean: Duration) {
        let ns = late.saturating_sub(mean).as_nanos() as u64;
        self.all_ns.fetch_add(ns, Relaxed);
        self.most_ns.fetch_max(ns, Relaxed);
    }

    fn told(&self, run: Duration) -> Option<String> {
        let [all, most] = [&self.all_ns, &self.most_ns].map(|ns| ns.load(Relaxed));
        let part = Duration::from_nanos(all).as_secs_f64() / run.as_secs_f64().max(1e-9);
        (part > LATE_FOR).then(|| {
            format!(
                "the tick was late for {:.1} % of the time, by up to {:.1?}: functions that ran \
                 meanwhile may have the time of others, and others theirs",
                100.0 * part,
                Duration::from_nanos(most),
            )
        })
    }
}

/// Part of a run for which the tick may be late without a word.
const LATE_FOR: f64 = 0.01;

/// Whether anybody may look at the tick. Until then, which may be never where programs are sampled, it moves slowly.
#[derive(Debug)]
pub(crate) struct Audience {
    is_there: Mutex<bool>,
    came: Condvar,
}

/// Pause between two moves meanwhile.
const SLOWLY: Duration = Duration::from_millis(20);

impl Audience {
    pub(crate) fn new(is_there: bool) -> Self {
        Self { is_there: Mutex::new(is_there), came: Condvar::new() }
    }

    /// Somebody is about to look. Says whether there was nobody before.
    pub(crate) fn arrives(&self) -> bool {
        let was_there = std::mem::replace(&mut *self.lock(), true);
        self.came.notify_all();
        !was_there
    }

    /// Waits for somebody, or so long as the tick may stand; false where there is somebody already.
    fn wait(&self) -> bool {
        let is_there = self.lock();
        if *is_there {
            return false;
        }
        // A failure is that of another thread, and as good as a while that has passed.
        drop(self.came.wait_timeout(is_there, SLOWLY));
        true
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, bool> {
        // Nothing that can panic runs under this lock.
        self.is_there.lock().unwrap_or_else(|lock| lock.into_inner())
    }
}

/// Where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// Wherever the system wants.
    Anywhere,
    /// On each processor that this process may use, and less often on each: with half of them away the period is
    /// still what was asked for.
    Everywhere,
}

impl Where {
    /// Threads: the processor that each stays on, and the mean of its sleeps.
    fn sleepers(self, mean: Duration) -> Vec<(Option<usize>, Duration)> {
        let processors = match self {
            Self::Anywhere => Vec::new(),
            Self::Everywhere => machine::processors(),
        };
        let mean = mean * (processors.len() as u32 / 2).max(1);
        match processors[..] {
            [] => vec![(None, mean)],
            _ => processors.into_iter().map(|processor| (Some(processor), mean)).collect(),
        }
    }
}

impl Ticker {
    /// Starts to move the page's tick.
    pub(crate) fn start(
        page: Arc<ClockPage>,
        time: Time,
        period: Period,
        place: Where,
        audience: &Arc<Audience>,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let late = Arc::new(Late::default());
        let mut ticker = Self { threads: Vec::new(), stop, page, time, late: Arc::clone(&late) };
        match (period, place) {
            (Period::Sleeping(mean), place) => {
                for (processor, mean) in place.sleepers(mean) {
                    let (audience, late) = (Arc::clone(audience), Arc::clone(&late));
                    ticker.spawn(move |page, time, stop| {
                        // A thread on each processor could leave the drain thread none.
                        let order = processor.is_none().then(Order::first);
                        processor.into_iter().for_each(machine::stay_on);
                        sleep_and_move(page, time, mean, order, (&audience, stop, &late));
                    })?;
                }
            }
            (Period::Spinning, _) => ticker.spawn(spin)?,
        }
        Ok(ticker)
    }

    /// Says that the tick was late for a good part of so long a run, if it was.
    pub(crate) fn lateness(&self, run: Duration) -> Option<String> {
        self.late.told(run).filter(|_| self.threads.len() == 1)
    }

    fn spawn(
        &mut self,
        work: impl FnOnce(&ClockPage, &Time, &AtomicBool) + Send + 'static,
    ) -> io::Result<()> {
        let (page, time, stop) = (Arc::clone(&self.page), self.time, Arc::clone(&self.stop));
        let builder = std::thread::Builder::new().name("teeperf-tick".into());
        self.threads.push(builder.spawn(move || work(&page, &time, &stop))?);
        Ok(())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // A panic in it was already reported by the thread itself.
            let _ = thread.join();
        }
        self.page.set_time(self.time.ticks() + 1);
    }
}

fn sleep_and_move(
    page: &ClockPage,
    time: &Time,
    mean: Duration,
    mut order: Option<Order>,
    (audience, stop, late): (&Audience, &AtomicBool, &Late),
) {
    sleep_exactly();
    let mut schedule = Schedule { mean, random: Random::new(), next: Instant::now() };
    while !stop.load(Relaxed) {
        if audience.wait() {
            schedule.next = Instant::now();
        } else if let Some(rest) = schedule.rest(Instant::now()) {
            match &mut order {
                Some(order) => order.sleep(rest),
                None => std::thread::sleep(rest),
            }
            late.add(schedule.next.elapsed(), mean);
        }
        page.try_to_move(|| time.ticks());
    }
}

/// A thread that runs before ordinary ones, where it may. The kernel leaves it on its processor,
/// also where the program runs there and another is idle. So it sleeps as an ordinary thread now
/// and then, which wakes where there is room.
struct Order {
    at: Instant,
}

/// Time from one look for room to the next.
const LOOK_FOR_ROOM: Duration = Duration::from_millis(100);

impl Order {
    fn first() -> Self {
        machine::go_first();
        Self { at: Instant::now() }
    }

    fn sleep(&mut self, rest: Duration) {
        if self.at.elapsed() < LOOK_FOR_ROOM {
            return std::thread::sleep(rest);
        }
        machine::go_along();
        std::thread::sleep(rest);
        *self = Self::first();
    }
}

/// When the tick is to move.
struct Schedule {
    mean: Duration,
    random: Random,
    next: Instant,
}

impl Schedule {
    /// How long to sleep from now on until it is to move again; nothing where that is past.
    fn rest(&mut self, now: Instant) -> Option<Duration> {
        // From one wish to the next, not from one waking to the next: waking late does
        // not make the mean longer.
        self.next += self.random.around(self.mean);
        let rest = self.next.checked_duration_since(now);
        if rest.is_none() {
            self.next = now;
        }
        rest
    }
}

fn spin(page: &ClockPage, time: &Time, stop: &AtomicBool) {
    let mut last = 0;
    while !stop.load(Relaxed) {
        let now = time.ticks();
        if now != last {
            page.try_to_move(|| now);
            last = now;
        }
        std::hint::spin_loop();
    }
}

/// Lets this thread's sleeps end when they should, rather than up to 50 µs later.
pub(super) fn sleep_exactly() {
    // SAFETY: no pointers are involved. A refusal only makes the tick later.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Xorshift, which is random enough to be out of step.
struct Random(u64);

impl Random {
    fn new() -> Self {
        use std::hash::{BuildHasher, Hasher, RandomState};
        Self(RandomState::new().build_hasher().finish() | 1)
    }

    /// Between half and one and a half `mean`, evenly.
    fn around(&mut self, mean: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let mean = mean.as_nanos() as u64;
        Duration::from_nanos(mean / 2 + self.0 % mean.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_wire::shared::ClockKind;

    #[test]
    fn pauses_are_spread_over_the_period() {
        let mut random = Random::new();
        let mean = Duration::from_micros(100);
        let pauses: Vec<_> = (0..10_000).map(|_| random.around(mean).as_nanos()).collect();
        assert!(pauses.iter().all(|pause| (50_000..150_000).contains(pause)));
        for tenth in 5..15 {
            let share = pauses.iter().filter(|&&pause| pause / 10_000 == tenth).count();
            assert!((700..1_300).contains(&share), "{share} of 10,000 in one tenth");
        }
    }

    /// Guards: a recording whose ticks were late without a word.
    #[test]
    fn a_late_tick_is_told_where_it_was_so_for_long() {
        let (late, mean) = (Late::default(), Duration::from_micros(300));
        (0..100).for_each(|_| late.add(mean, mean));
        late.add(mean + Duration::from_millis(9), mean);
        late.add(mean + Duration::from_millis(21), mean);
        assert_eq!(late.told(Duration::from_secs(4)), None);
        let text = late.told(Duration::from_secs(1)).unwrap();
        assert!(text.contains("for 3.0 % of the time, by up to 21.0ms"), "{text}");
    }

    /// Every sleep ends late by what its number says. Gives the moves of so many periods of 100 µs.
    fn moves(late: impl Fn(u64) -> Duration) -> Vec<Duration> {
        let begin = Instant::now();
        let mean = Duration::from_micros(100);
        let mut schedule = Schedule { mean, random: Random::new(), next: begin };
        let mut now = begin;
        let moves = (0..PERIODS).map(|number| {
            if let Some(rest) = schedule.rest(now) {
                now += rest + late(number);
            }
            now - begin
        });
        moves.collect()
    }

    const PERIODS: u64 = 50_000;

    /// A program that does one thing in the first half of each period and another in the second
    /// gets the time from one move to the next for what it does at the second of them. Whatever the
    /// two began with, half of the time goes to each.
    #[test]
    fn a_program_that_beats_with_the_tick_is_seen_as_it_is() {
        for offset in [0, 25, 50, 75] {
            let (mut first_half, mut last) = (Duration::ZERO, Duration::ZERO);
            for at in moves(|_| Duration::ZERO) {
                let phase = (at + Duration::from_micros(offset)).as_nanos() % 100_000;
                first_half += if phase < 50_000 { at - last } else { Duration::ZERO };
                last = at;
            }
            let share = first_half.as_secs_f64() / last.as_secs_f64();
            assert!((0.47..0.53).contains(&share), "{share} of the time, {offset} µs behind");
        }
    }

    #[test]
    fn without_an_audience_it_waits_for_one() {
        let audience = Audience::new(false);
        assert!(audience.wait());
        assert!(audience.arrives() && !audience.arrives());
        let began = Instant::now();
        assert!(!audience.wait() && began.elapsed() < SLOWLY);
    }

    /// A sleep that ends late, as all do a little, is made up for by the next.
    #[test]
    fn the_mean_period_is_kept() {
        for late in [|_| Duration::from_micros(40), |number| Duration::from_micros(number % 50)] {
            let moves = moves(late);
            let mean = moves[moves.len() - 1].as_secs_f64() / PERIODS as f64;
            assert!((98e-6..102e-6).contains(&mean), "{mean} s");
        }
    }

    #[test]
    fn it_moves_until_it_is_dropped() {
        let sleeping = Period::Sleeping(Duration::from_micros(100));
        let all = [(sleeping, Where::Anywhere), (sleeping, Where::Everywhere)];
        for (period, place) in all.into_iter().chain([(Period::Spinning, Where::Everywhere)]) {
            let time = Time::start(ClockKind::Tick);
            let page = Arc::new(ClockPage::create(1, 0).unwrap());
            let audience = Arc::new(Audience::new(true));
            let ticker = Ticker::start(Arc::clone(&page), time, period, place, &audience).unwrap();
            while page.time() < 1_000 {
                std::thread::sleep(Duration::from_micros(100));
            }
            let seen = page.time();
            drop(ticker);
            let end = page.time();
            assert!(end > seen);
            std::thread::sleep(Duration::from_millis(1));
            assert_eq!(page.time(), end);
        }
    }
}
