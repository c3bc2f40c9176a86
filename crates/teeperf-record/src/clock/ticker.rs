//! The thread that moves the tick. It sleeps between half and one and a half periods, at
//! random, so that no program can beat in step with it.

use super::{ClockPage, Period, Time};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A running ticker. Dropping it ends it, and leaves the tick moved once more, so that
/// every hook looks up.
#[derive(Debug)]
pub(crate) struct Ticker {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Ticker {
    /// Starts to move the page's tick.
    pub(crate) fn start(page: Arc<ClockPage>, time: Time, period: Period) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("teeperf-tick".into()).spawn(move || {
            match period {
                Period::Sleeping(mean) => sleep_and_move(&page, &time, mean, &told),
                Period::Spinning => spin(&page, &time, &told),
            }
            page.set_time(time.ticks() + 1);
        })?;
        Ok(Self { thread: Some(thread), stop })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in it was already reported by the thread itself.
            let _ = thread.join();
        }
    }
}

fn sleep_and_move(page: &ClockPage, time: &Time, mean: Duration, stop: &AtomicBool) {
    sleep_exactly();
    let mut random = Random::new();
    let mut next = Instant::now();
    while !stop.load(Relaxed) {
        // From one wish to the next, not from one waking to the next: waking late does
        // not make the mean longer.
        next += random.around(mean);
        match next.checked_duration_since(Instant::now()) {
            Some(rest) => std::thread::sleep(rest),
            None => next = Instant::now(),
        }
        page.set_time(time.ticks());
    }
}

fn spin(page: &ClockPage, time: &Time, stop: &AtomicBool) {
    let mut last = 0;
    while !stop.load(Relaxed) {
        let now = time.ticks();
        if now != last {
            page.set_time(now);
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

    #[test]
    fn it_moves_until_it_is_dropped() {
        for period in [Period::Sleeping(Duration::from_micros(100)), Period::Spinning] {
            let time = Time::start(ClockKind::Tick);
            let page = Arc::new(ClockPage::create(1, 0).unwrap());
            let ticker = Ticker::start(Arc::clone(&page), time, period).unwrap();
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
