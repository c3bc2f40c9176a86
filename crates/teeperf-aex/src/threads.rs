//! The memory that threads' samples are in: a row of places, each for one thread at a time. The recorder maps the same.
//!
//! A thread takes a place when it begins and leaves it when it ends; the place is free again when the reader has emptied it.

use crate::ring::{Ends, Ring};
use crate::state::Room;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::*};

/// What a place is, beside a thread's id.
const FREE: u32 = 0;
const ENDED: u32 = 1 << 31;

/// Places that it is told of whether they ever had a thread.
const BEGUN: usize = 256;

/// Before a place's ring.
#[repr(C)]
#[derive(Debug)]
pub struct Head {
    /// The thread's id, `FREE`, or the id and `ENDED`.
    owner: AtomicU32,
    pub(crate) timer: AtomicI32,
    ends: Ends,
    /// Processor time of the thread from which on all is its next sample's.
    pub(crate) since: AtomicU64,
    pub(crate) random: AtomicU64,
    /// Where its stack is.
    pub(crate) stack: [AtomicU64; 2],
    /// The thread itself takes a sample, so that its signal handler takes none.
    pub(crate) is_taking: AtomicBool,
    /// How the timer is armed (`timer::Arming`).
    pub(crate) arming: AtomicU32,
    /// Samples inside enclaves, inside those that cannot be read, and outside.
    pub inside: AtomicU64,
    /// See there.
    pub unreadable: AtomicU64,
    /// See there.
    pub outside: AtomicU64,
    /// Reads of enclaves' memory, and words of eight bytes in them.
    pub reads: AtomicU64,
    /// See there.
    pub words: AtomicU64,
    /// Of the first place's: threads that found none.
    left_out: AtomicU64,
    /// Of the first place's: a bit for each place that ever had a thread, as far as there are bits.
    begun: [AtomicU64; BEGUN / 64],
    /// What the thread's first sample stands for beside its time since `since`; 0 when it has been taken.
    pub(crate) first: AtomicU64,
    /// Where the signal handler puts a state together.
    room: core::cell::UnsafeCell<Room>,
}

/// A row of places.
#[derive(Debug)]
pub struct Threads {
    memory: *mut u8,
    places: usize,
    capacity: usize,
}

// SAFETY: what is in the memory is atomic, or belongs to who owns the place.
unsafe impl Sync for Threads {}
// SAFETY: as above.
unsafe impl Send for Threads {}

/// Bytes before a ring; a multiple of a page.
const HEAD: usize = size_of::<Head>().next_multiple_of(4096);

impl Threads {
    /// Bytes of memory for so many threads, with rings of `capacity` bytes each.
    pub const fn bytes(places: usize, capacity: usize) -> usize {
        places * (HEAD + capacity)
    }

    /// # Safety
    /// `memory` has [`Threads::bytes`], aligned as a page, zeroed before its first use, and stays. `capacity` is a power of two.
    pub unsafe fn new(memory: *mut u8, places: usize, capacity: usize) -> Self {
        debug_assert!(capacity.is_power_of_two());
        Self { memory, places, capacity }
    }

    /// A place's head.
    pub fn head(&self, place: usize) -> Option<&Head> {
        let at = (place < self.places).then(|| Self::bytes(place, self.capacity))?;
        // SAFETY: within the memory, which stays; any bytes are a head.
        Some(unsafe { &*self.memory.add(at).cast::<Head>() })
    }

    /// A place's ring.
    pub fn ring(&self, place: usize) -> Option<Ring<'_>> {
        let head = self.head(place)?;
        // SAFETY: the bytes behind the head are the ring's.
        Some(unsafe {
            Ring::new(
                &head.ends,
                self.memory.add(Self::bytes(place, self.capacity) + HEAD),
                self.capacity,
            )
        })
    }

    /// Gives a thread a place. Nothing, and counted, when none is free.
    pub fn begin(&self, thread: u32) -> Option<(usize, &Head)> {
        let found = self.from(thread).find_map(|place| {
            let head = self.head(place)?;
            head.owner.compare_exchange(FREE, thread, Acquire, Relaxed).ok()?;
            Some((place, head))
        });
        let Some((place, head)) = found else {
            self.head(0)?.left_out.fetch_add(1, Relaxed);
            return None;
        };
        self.ring(place)?.clear();
        if let Some(word) = self.head(0)?.begun.get(place / 64) {
            word.fetch_or(1 << (place % 64), Release);
        }
        for count in [&head.inside, &head.unreadable, &head.outside, &head.reads, &head.words] {
            count.store(0, Relaxed);
        }
        head.is_taking.store(false, Relaxed);
        Some((place, head))
    }

    /// Leaves the place that a thread has.
    pub(crate) fn end(&self, thread: u32) -> Option<&Head> {
        let (_, head) = self.of(thread)?;
        head.owner.store(thread | ENDED, Release);
        Some(head)
    }

    /// The place that a thread has.
    pub(crate) fn of(&self, thread: u32) -> Option<(usize, &Head)> {
        let heads = self.from(thread).filter_map(|place| Some((place, self.head(place)?)));
        heads.into_iter().find(|(_, head)| head.owner() == Some(thread))
    }

    /// All places, from the one on where a thread is looked for first, so that it is found at once.
    fn from(&self, thread: u32) -> impl Iterator<Item = usize> + use<> {
        let (places, first) = (self.places, thread as usize % self.places.max(1));
        (first..places).chain(0..first)
    }

    /// The reader's: a thread that has a place is not there any more, and did not say so.
    pub fn give_up(&self, place: usize, thread: u32) {
        if let Some(head) = self.head(place) {
            // Otherwise it has said so meanwhile.
            let _ = head.owner.compare_exchange(thread, thread | ENDED, AcqRel, Relaxed);
        }
    }

    /// The reader's: frees a place whose thread has ended and whose ring it has emptied.
    pub fn free(&self, place: usize) {
        if let Some(head) = self.head(place) {
            let owner = head.owner.load(Acquire);
            if owner & ENDED != 0 {
                head.owner.store(FREE, Release);
            }
        }
    }

    /// The reader's: whether a place ever had a thread. Of others nothing is to be read, which would take memory.
    pub fn has_begun(&self, place: usize) -> bool {
        let word = self.head(0).and_then(|head| head.begun.get(place / 64));
        word.is_none_or(|word| word.load(Acquire) >> (place % 64) & 1 != 0)
    }

    /// How many places there are.
    pub fn places(&self) -> usize {
        self.places
    }

    /// Threads that found no place.
    pub fn left_out(&self) -> u64 {
        self.head(0).map_or(0, |head| head.left_out.load(Relaxed))
    }
}

impl Head {
    /// The thread that has the place.
    pub fn owner(&self) -> Option<u32> {
        let owner = self.owner.load(Acquire);
        (owner != FREE && owner & ENDED == 0).then_some(owner)
    }

    /// The thread that has the place or had it last, while what it left is to be read, and whether it has ended.
    pub fn occupant(&self) -> Option<(u32, bool)> {
        let owner = self.owner.load(Acquire);
        (owner & !ENDED != FREE).then_some((owner & !ENDED, owner & ENDED != 0))
    }

    /// Room for a state.
    ///
    /// # Safety
    /// The caller is the owner's signal handler, once at a time.
    #[expect(clippy::mut_from_ref, reason = "it is one handler's, which does not interrupt itself")]
    pub(crate) unsafe fn room(&self) -> &mut Room {
        // SAFETY: the caller's promise; any bytes are a room.
        unsafe { &mut *self.room.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn places_are_given_kept_until_they_are_read_and_given_again() {
        #[repr(align(4096))]
        #[derive(Clone)]
        struct Page {
            _bytes: [u8; 4096],
        }
        let mut memory = vec![Page { _bytes: [0; 4096] }; Threads::bytes(2, 4096) / 4096];
        // SAFETY: the memory outlives it.
        let threads = unsafe { Threads::new(memory.as_mut_ptr().cast(), 2, 4096) };
        let (first, head) = threads.begin(10).unwrap();
        assert!(threads.has_begun(first) && !threads.has_begun(1));
        let (second, _) = threads.begin(11).unwrap();
        assert!(threads.has_begun(second) && threads.has_begun(BEGUN));
        assert_eq!(
            (first, second, threads.begin(12).is_none(), threads.left_out()),
            (0, 1, true, 1)
        );
        assert!(threads.ring(first).unwrap().push(&[b"ten"]));
        head.inside.store(5, Relaxed);
        threads.free(first);
        assert_eq!(head.owner(), Some(10));
        assert!(threads.end(10).is_some() && threads.end(10).is_none());
        assert_eq!((head.owner(), head.occupant()), (None, Some((10, true))));
        assert!(threads.begin(12).is_none());
        let mut out = [0; 8];
        assert_eq!(threads.ring(first).unwrap().take(&mut out), Some(3));
        threads.free(first);
        assert_eq!(threads.begin(12).map(|(place, _)| place), Some(0));
        assert_eq!(head.inside.load(Relaxed), 0);
        threads.give_up(0, 10);
        assert_eq!(head.occupant(), Some((12, false)));
        threads.give_up(0, 12);
        assert_eq!(head.occupant(), Some((12, true)));
        assert_eq!(threads.ring(second).unwrap().take(&mut out), Some(0));
        assert!(threads.head(2).is_none() && threads.ring(2).is_none());
    }
}
