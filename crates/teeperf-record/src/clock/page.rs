//! The clock page: the one page that every traced process maps, for reading only. And the clocks at the
//! beginning of arenas, which go as it does.

use crate::memory::{SEAL_READ_ONLY, SharedMemory};
use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, Mutex, TryLockError};
use teeperf_wire::shared::{MAGIC, clock, control, pauses};

/// What the system calls its memory.
pub(crate) const NAME: &CStr = c"teeperf-clock";

/// The recorder's writable view. Tickers alone set the time.
#[derive(Debug)]
pub(crate) struct ClockPage {
    memory: Arc<SharedMemory>,
    /// Clocks that go as this one does.
    followers: Mutex<Vec<Arc<ClockPage>>>,
    /// When the last pause began.
    paused_at: AtomicU64,
}

impl ClockPage {
    /// A new page with this time and control word.
    pub(crate) fn create(time: u64, bits: u32) -> io::Result<Self> {
        let memory = SharedMemory::create(NAME, clock::SIZE, SEAL_READ_ONLY)?;
        let page = Self {
            memory: Arc::new(memory),
            followers: Mutex::default(),
            paused_at: AtomicU64::new(time),
        };
        page.begin(time, bits);
        if bits & control::PAUSED != 0 {
            page.memory.wide(clock::PAUSES).store(pauses::begin(0, time), Relaxed);
        }
        page.memory.wide(clock::MAGIC).store(MAGIC, Release);
        Ok(page)
    }

    /// The clock at the beginning of an arena, which goes as this one does from now on.
    pub(crate) fn lead(&self, arena: Arc<SharedMemory>) -> Arc<Self> {
        let follower = Arc::new(Self {
            memory: arena,
            followers: Mutex::default(),
            paused_at: AtomicU64::new(0),
        });
        // Behind a change of the control word that this one has made, or before it is told of.
        let mut followers = self.followers();
        let time = |half| u64::from(self.memory.number(half).load(Relaxed));
        let control = self.memory.number(clock::CONTROL).load(Acquire);
        follower.begin(time(clock::TICK_HIGH) << 32 | time(clock::TICK), control);
        followers.push(Arc::clone(&follower));
        follower
    }

    /// The arena is not used any more.
    pub(crate) fn leave(&self, follower: &Arc<Self>) {
        self.followers().retain(|one| !Arc::ptr_eq(one, follower));
    }

    fn begin(&self, time: u64, control: u32) {
        self.set_own_time(time);
        self.memory.number(clock::CONTROL).store(control, Relaxed);
        self.memory.number(clock::GENERATION).store(1, Relaxed);
    }

    fn followers(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Self>>> {
        // Nothing that can panic runs under this lock.
        self.followers.lock().unwrap_or_else(|lock| lock.into_inner())
    }

    /// To be sent to a process.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.memory.file()
    }

    /// Moves the tick, unless somebody else is just about that, whom this one does not wait for: it may be away
    /// with its processor.
    pub(crate) fn try_to_move(&self, time: impl FnOnce() -> u64) {
        let followers = match self.followers.try_lock() {
            Ok(followers) => followers,
            Err(TryLockError::Poisoned(lock)) => lock.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        // Asked for under the lock, so that it never goes back.
        self.set_all(time(), &followers);
    }

    /// Moves the tick in any case.
    pub(crate) fn set_time(&self, time: u64) {
        self.set_all(time, &self.followers());
    }

    fn set_all(&self, time: u64, followers: &[Arc<Self>]) {
        self.set_own_time(time);
        followers.iter().for_each(|follower| follower.set_own_time(time));
    }

    fn set_own_time(&self, time: u64) {
        let high = (time >> 32) as u32;
        let high_word = self.memory.number(clock::TICK_HIGH);
        if high_word.load(Relaxed) == high {
            // Both highs stay as they are, and only one line changes hands.
            self.memory.number(clock::TICK).store(time as u32, Release);
            return;
        }
        high_word.store(high, Release);
        self.memory.number(clock::TICK).store(time as u32, Release);
        self.memory.number(clock::TICK_HIGH_AGAIN).store(high, Release);
    }

    /// Pauses recording, or goes on with it, at this time.
    pub(crate) fn turn(&self, is_paused: bool, now: u64) {
        let turned = if is_paused { pauses::begin } else { pauses::end };
        let word = self.memory.wide(clock::PAUSES);
        {
            // Who pauses and who resumes may be two threads.
            let _alone = self.followers();
            let before = word.load(Relaxed);
            if is_paused && !pauses::is_on(before) {
                self.paused_at.store(now, Relaxed);
            }
            // Before who sees that it is over looks for how long it was.
            word.store(turned(before, now), Release);
        }
        match is_paused {
            true => self.control(control::PAUSED, 0),
            false => self.control(0, control::PAUSED),
        }
    }

    /// Whether recording waits for a call.
    pub(crate) fn is_armed(&self) -> bool {
        self.memory.number(clock::CONTROL).load(Acquire) & control::ARMED != 0
    }

    /// Whether recording is paused from outside, or waits for a call.
    pub(crate) fn is_paused(&self) -> bool {
        self.memory.number(clock::CONTROL).load(Acquire) & control::PAUSED != 0
    }

    /// Time in pauses, as [`pauses`] has it, and when the one that is on began.
    pub(crate) fn pauses(&self) -> (u64, Option<u64>) {
        let word = self.memory.wide(clock::PAUSES).load(Acquire);
        (word, pauses::is_on(word).then(|| self.paused_at.load(Relaxed)))
    }

    /// Sets and takes back bits of [`teeperf_wire::shared::control`].
    pub(crate) fn control(&self, set: u32, take_back: u32) {
        let followers = self.followers();
        self.set_own_control(set, take_back);
        followers.iter().for_each(|follower| follower.set_own_control(set, take_back));
    }

    fn set_own_control(&self, set: u32, take_back: u32) {
        let control = self.memory.number(clock::CONTROL);
        let changed = |bits| Some(bits & !take_back | set);
        // Never an error: the closure always gives a value.
        let _ = control.fetch_update(AcqRel, Acquire, changed);
        self.have_hooks_look();
    }

    /// Has each hook go to the runtime with its next event, where the counter is the clock.
    pub(crate) fn have_hooks_look(&self) {
        self.memory.number(clock::GENERATION).fetch_add(1, AcqRel);
    }

    /// When the tick was 0 ([`clock::ORIGIN`]).
    pub(crate) fn set_origin(&self, ns: u64) {
        self.memory.wide(clock::ORIGIN).store(ns, Relaxed);
    }

    /// The filter that is to come ([`teeperf_wire::filter`]). Hooks look up with the next tick, or, under the counter,
    /// now.
    pub(crate) fn set_filter(&self, word: u32) {
        self.memory.number(clock::FILTER).store(word, Release);
        // The exchange is also a barrier: whoever moves the tick from here on does so behind the store.
        self.memory.number(clock::GENERATION).fetch_add(1, SeqCst);
    }

    /// The filter that holds.
    pub(crate) fn set_filter_due(&self, word: u32) {
        self.memory.number(clock::FILTER_DUE).store(word, Release);
    }

    /// The word that hooks watch under the tick.
    pub(crate) fn tick(&self) -> u32 {
        self.memory.number(clock::TICK).load(Acquire)
    }

    /// The tick as a process reads it.
    pub(crate) fn time(&self) -> u64 {
        let half = |at| self.memory.number(at).load(Acquire) as u64;
        loop {
            let (again, low, high) =
                (half(clock::TICK_HIGH_AGAIN), half(clock::TICK), half(clock::TICK_HIGH));
            if again == high {
                return high << 32 | low;
            }
        }
    }

    /// Says that a chunk was drained.
    pub(crate) fn progress(&self) {
        self.memory.number(clock::PROGRESS).fetch_add(1, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(page: &ClockPage, at: usize) -> u32 {
        page.memory.number(at).load(Acquire)
    }

    #[test]
    fn the_highs_agree_with_the_low_when_it_wraps() {
        let page = ClockPage::create(1, 0).unwrap();
        for time in [5, u32::MAX as u64, 1 << 32, (1 << 32) + 9, 7 << 32] {
            page.set_time(time);
            assert_eq!(read(&page, clock::TICK), time as u32);
            assert_eq!(read(&page, clock::TICK_HIGH), (time >> 32) as u32);
            assert_eq!(read(&page, clock::TICK_HIGH_AGAIN), (time >> 32) as u32);
        }
    }

    #[test]
    fn an_arenas_clock_goes_as_the_page_does() {
        let page = ClockPage::create(5, 2).unwrap();
        let memory = SharedMemory::create(c"test", 4096, SEAL_READ_ONLY).unwrap();
        let follower = page.lead(Arc::new(memory));
        assert_eq!((follower.time(), read(&follower, clock::CONTROL)), (5, 2));
        page.set_time(3 << 32);
        page.control(1, 2);
        assert_eq!((follower.time(), read(&follower, clock::CONTROL)), (3 << 32, 1));
        page.leave(&follower);
        page.set_time(4 << 32);
        assert_eq!(follower.time(), 3 << 32);
    }

    #[test]
    fn a_change_of_control_is_a_new_generation() {
        let page = ClockPage::create(1, 2).unwrap();
        let before = read(&page, clock::GENERATION);
        page.control(5, 2);
        assert_eq!(read(&page, clock::CONTROL), 5);
        assert_eq!(read(&page, clock::GENERATION), before + 1);
    }
}
