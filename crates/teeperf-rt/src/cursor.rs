//! The cursor of a thread: where its next word goes and how many are left, in one word, so
//! that one instruction reserves and checks ([`teeperf_wire::hook::thread::CURSOR`]).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use teeperf_wire::hook::{FULL, STEP};

/// A cursor that reserves nothing: every event takes the slow path.
pub(crate) const PARKED: u64 = FULL;

/// No chunk lies in the first page of memory: such an address is left of [`PARKED`].
const PAGE: u64 = teeperf_wire::shared::PAGE as u64;

/// What [`Cursor::park`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parked {
    /// Words were left: the cursor to go on with.
    Room(u64),
    /// Every word was reserved: the cursor to go on with.
    Full(u64),
    /// It was parked already.
    Before,
}

/// The address of a cursor's next word.
pub(crate) const fn address(cursor: u64) -> usize {
    (cursor >> 16) as usize
}

/// Written by its thread and by signal handlers on it; never by another thread.
#[repr(transparent)]
#[cfg_attr(test, derive(Default))]
pub(crate) struct Cursor(AtomicU64);

impl Cursor {
    /// A cursor at this address with `words` words left, at most [`FULL`].
    pub(crate) const fn at(address: u64, words: u64) -> u64 {
        address << 16 | (FULL - words)
    }

    /// Where `count` words may be written, or nothing when they are not left; then nothing
    /// was reserved.
    pub(crate) fn reserve(&self, count: u64) -> Option<*mut u32> {
        let mut old = self.0.load(Relaxed);
        loop {
            if (old & 0xFFFF) + count > FULL {
                return None;
            }
            match self.0.compare_exchange_weak(old, old + count * STEP, Relaxed, Relaxed) {
                Ok(_) => return Some((old >> 16) as *mut u32),
                Err(now) => old = now,
            }
        }
    }

    /// Parks the cursor and says where it was.
    pub(crate) fn park(&self) -> Parked {
        match self.0.swap(PARKED, Relaxed) {
            old if old & 0xFFFF < FULL => Parked::Room(old),
            old if old >> 16 < PAGE => Parked::Before,
            old => Parked::Full(old & !0xFFFF | FULL),
        }
    }

    /// Parks the cursor, and gives what [`Cursor::set`] goes on with as if it had not been.
    pub(crate) fn keep(&self) -> u64 {
        match self.park() {
            Parked::Room(cursor) | Parked::Full(cursor) => cursor,
            Parked::Before => PARKED,
        }
    }

    /// Takes a count that hooks have moved beyond full back, so that it never wraps.
    pub(crate) fn settle(&self) {
        let now = self.0.load(Relaxed);
        if now & 0xFFFF > FULL {
            self.settle_seen(now);
        }
    }

    /// A signal handler may have changed the chunk meanwhile: then there is nothing to take back.
    fn settle_seen(&self, now: u64) {
        let _ = self.0.compare_exchange(now, now & !0xFFFF | FULL, Relaxed, Relaxed);
    }

    /// Sets what [`Cursor::at`] or [`Cursor::park`] gave.
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(address: u64, words: u64) -> Cursor {
        Cursor(AtomicU64::new(Cursor::at(address, words)))
    }

    #[test]
    fn words_are_given_out_once_and_in_order() {
        let cursor = cursor(0x7F12_3456_7000, 5);
        assert_eq!(cursor.reserve(2), Some(0x7F12_3456_7000 as *mut u32));
        assert_eq!(cursor.reserve(4), None);
        assert_eq!(cursor.reserve(3), Some(0x7F12_3456_7008 as *mut u32));
        assert_eq!(cursor.reserve(1), None);
        assert!(matches!(cursor.park(), Parked::Full(_)));
        assert_eq!(cursor.park(), Parked::Before);
    }

    #[test]
    fn a_parked_cursor_tells_where_it_was() {
        let cursor = cursor(0x1000, 9);
        cursor.reserve(1).unwrap();
        let Parked::Room(kept) = cursor.park() else { panic!("words were left") };
        assert_eq!(address(kept), 0x1004);
        assert_eq!(cursor.reserve(1), None);
        cursor.set(kept);
        assert_eq!(cursor.reserve(8), Some(0x1004 as *mut u32));
    }

    #[test]
    fn a_hook_that_overruns_leaves_a_full_cursor() {
        let cursor = cursor(0x7000, 1);
        for _ in 0..3 {
            cursor.0.fetch_add(STEP, Relaxed);
        }
        cursor.settle();
        assert_eq!(cursor.0.load(Relaxed) & 0xFFFF, FULL);
        let Parked::Full(kept) = cursor.park() else { panic!("none were left") };
        cursor.set(kept);
        assert_eq!(cursor.reserve(1), None);
        assert_eq!(cursor.park(), Parked::Full(kept));
    }

    /// The last word of a full chunk may be reserved and not written yet: where the chunk ends must not be
    /// looked for among its words then.
    #[test]
    fn a_kept_cursor_goes_on_as_it_was() {
        for (words, reserved) in [(9, 0), (9, 4), (9, 9), (1, 1)] {
            let (cursor, other) = (cursor(0x7000, words), cursor(0x7000, words));
            cursor.reserve(reserved);
            other.reserve(reserved);
            let kept = cursor.keep();
            assert_eq!(cursor.reserve(1), None);
            assert_eq!(cursor.keep(), PARKED);
            cursor.set(kept);
            assert_eq!(cursor.park(), other.park(), "{reserved} of {words}");
        }
    }

    #[test]
    fn a_chunk_that_was_begun_meanwhile_keeps_its_room() {
        let cursor = cursor(0x7000, 0);
        let seen = cursor.0.fetch_add(STEP, Relaxed) + STEP;
        let of_next_chunk = Cursor::at(0x9000, 5);
        cursor.set(of_next_chunk);
        cursor.settle_seen(seen);
        assert_eq!(cursor.park(), Parked::Room(of_next_chunk));
    }
}
