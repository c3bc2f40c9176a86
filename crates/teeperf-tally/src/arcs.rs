//! Calls between places of code, in memory of a fixed size: from where, to where, how often; and what the
//! clock moved by between two entries.
//!
//! A hook at entries alone does not know when a function was left. When it sees that the clock moved, it knows
//! two things: which function was entered last, and who calls now. If that is one function, the time was spent
//! in it, or in what it called that has no hook. If not, the one that was entered last has returned meanwhile,
//! and the time was spent in it, in the caller of now, or in between. Which of that it was cannot be known here, so
//! both places are kept with the time, and readers divide it as they see fit ([`Span`](Kind::Span)).
//!
//! ```text
//! places for arcs    seven of eight; three quarters of them for arcs as they are, then for arcs from nobody
//!                    known, and an eighth stays empty, so that searches end soon
//! places for spans   one of eight
//! ```
//!
//! One writer, and nobody reads but the writer: the memory is the trusted side's own. Hooks in assembly find
//! arcs that are known, and count them; all else is done here. Interrupts may run hooked code at any
//! time: what such code finds unknown while something is being made is counted as left out.

use core::cell::Cell;
use core::ptr::null_mut;
use core::sync::atomic::{Ordering::SeqCst, compiler_fence};

/// See the module. A new one is all zero, so that it can lie in thread-local storage that nobody has set up.
#[repr(C)]
pub struct Arcs {
    /// The first place, and behind the last: both null while there is no memory.
    first: Cell<*mut Place>,
    end: Cell<*mut Place>,
    /// A word that moves with the clock. Looked at only where an arc was found.
    watched: Cell<*const u32>,
    /// The arc that was counted last; null: nobody was entered since the clock was set.
    latest: Cell<*mut Place>,
    /// Places for arcs.
    places: Cell<usize>,
    /// What `watched` was when it was last looked at.
    last: Cell<u32>,
    /// A number that says whose `watched` is: assembly may look at it only while that is the present one.
    epoch: Cell<u32>,
    /// What assembly has no need of.
    spans: Cell<u32>,
    made: Cell<u32>,
    made_spans: Cell<u32>,
    is_busy: Cell<bool>,
    time: Cell<u64>,
    lost_calls: Cell<u64>,
    lost_time: Cell<u64>,
}

/// Two places of code and a number.
#[repr(C)]
pub struct Place {
    from: Cell<usize>,
    to: Cell<usize>,
    count: Cell<u64>,
}

/// Where assembly finds what it reads: byte offsets.
pub mod layout {
    use super::{Arcs, Place};
    use core::mem::offset_of;

    /// Of [`Arcs`].
    pub const FIRST: usize = offset_of!(Arcs, first);
    /// Likewise.
    pub const END: usize = offset_of!(Arcs, end);
    /// Likewise.
    pub const WATCHED: usize = offset_of!(Arcs, watched);
    /// Likewise.
    pub const LATEST: usize = offset_of!(Arcs, latest);
    /// Likewise.
    pub const PLACES: usize = offset_of!(Arcs, places);
    /// Likewise.
    pub const LAST: usize = offset_of!(Arcs, last);
    /// Likewise.
    pub const EPOCH: usize = offset_of!(Arcs, epoch);
    /// Bytes of [`Arcs`].
    pub const SIZE: usize = size_of::<Arcs>();
    /// Bytes of a [`Place`].
    pub const PLACE: usize = size_of::<Place>();
    /// Of [`Place`].
    pub const FROM: usize = offset_of!(Place, from);
    /// Likewise.
    pub const TO: usize = offset_of!(Place, to);
    /// Likewise.
    pub const COUNT: usize = offset_of!(Place, count);
}

/// The first place to look at is this times `from + 4 to`, of whose lowest 32 bits the product with the number of
/// places has it in the bits above. (2^32 over the golden ratio: Knuth, The Art of Computer Programming 3, 6.4.)
pub const SPREAD: u32 = 0x9E37_79B1;

/// In place of a caller's address: arcs from there found no room of their own. No code is there.
pub const NOBODY: usize = 1;

/// One in so many places is for spans.
const SPANS: usize = 8;
/// Fewest places that make sense.
const MIN_PLACES: usize = 16;
/// Most: so that a number of them has 32 bits.
const MAX_PLACES: usize = 1 << 24;

/// What a place is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Calls: an address behind the call, or [`NOBODY`]; one in the function that was called; how many.
    Arc,
    /// Time: an address in the function that was entered last, or 0; that behind the call that came next, or 0 for
    /// none; clock units between the two.
    Span,
}

/// What a place has grown by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// See there.
    pub kind: Kind,
    /// See [`Kind`].
    pub from: usize,
    /// See [`Kind`].
    pub to: usize,
    /// See [`Kind`].
    pub count: u64,
}

/// How many arcs with callers of their own have room in so many bytes.
pub const fn arcs_in(bytes: usize) -> usize {
    let (arcs, _) = places_in(bytes);
    arcs - arcs / 4
}

/// Places for arcs and for spans.
const fn places_in(bytes: usize) -> (usize, usize) {
    let places = bytes / size_of::<Place>();
    if places < MIN_PLACES {
        return (0, 0);
    }
    let places = if places < MAX_PLACES { places } else { MAX_PLACES };
    (places - places / SPANS, places / SPANS)
}

impl Arcs {
    /// Without memory.
    pub const fn new() -> Self {
        Self {
            first: Cell::new(null_mut()),
            end: Cell::new(null_mut()),
            watched: Cell::new(core::ptr::null()),
            latest: Cell::new(null_mut()),
            places: Cell::new(0),
            last: Cell::new(0),
            epoch: Cell::new(0),
            spans: Cell::new(0),
            made: Cell::new(0),
            made_spans: Cell::new(0),
            is_busy: Cell::new(false),
            time: Cell::new(0),
            lost_calls: Cell::new(0),
            lost_time: Cell::new(0),
        }
    }

    /// Whether it has memory.
    pub fn has_memory(&self) -> bool {
        !self.first.get().is_null()
    }

    /// Takes zeroed memory; says whether it is large enough, at a multiple of eight, and all zero: else it may be what
    /// another thread counts in (which is not seen where both begin at one time). `watched` is a word that moves with the clock.
    ///
    /// # Safety
    /// The memory stays, and nobody else uses it. `watched` can be read until another is given.
    pub unsafe fn begin(&self, base: *mut u8, bytes: usize, watched: *const u32) -> bool {
        let (arcs, spans) = places_in(bytes);
        if arcs == 0 || base.is_null() || !(base as usize).is_multiple_of(8) {
            return false;
        }
        let first = base.cast::<Place>();
        // SAFETY: within the memory: there is room for so many places.
        let mut places = (0..arcs + spans).map(|at| unsafe { &*first.add(at) });
        if !places.all(|place| place.is_empty() && place.count.get() == 0) {
            return false;
        }
        // SAFETY: the caller's promise about the word.
        unsafe { self.watch(watched, 0) };
        self.spans.set(spans as u32);
        self.places.set(arcs);
        // Places that can be looked at have to be there first.
        compiler_fence(SeqCst);
        self.first.set(first);
        // SAFETY: within the memory: there is room for so many places, and those for spans behind them.
        self.end.set(unsafe { first.add(arcs) });
        true
    }

    /// Another clock: what lies between is nobody's.
    ///
    /// # Safety
    /// `watched` can be read until another is given.
    pub unsafe fn watch(&self, watched: *const u32, now: u64) {
        // SAFETY: the caller's promise.
        self.last.set(unsafe { watched.read_volatile() });
        self.time.set(now);
        self.latest.set(null_mut());
        self.watched.set(watched);
    }

    /// The time up to now is nobody's.
    pub fn skip_to(&self, now: u64) {
        self.time.set(now);
    }

    /// What `watched` is from now on: see the field.
    pub fn set_epoch(&self, epoch: u32) {
        self.epoch.set(epoch);
    }

    /// Calls that cannot be counted.
    pub fn miss(&self, calls: u64) {
        self.lost_calls.set(self.lost_calls.get().wrapping_add(calls));
    }

    /// Whether there are such.
    pub fn has_missed(&self) -> bool {
        self.lost_calls.get() > 0
    }

    /// A call from one place to another, where assembly has found it unknown, or that the clock moved.
    pub fn call(&self, from: usize, to: usize, now: Option<u64>) {
        if self.is_busy.replace(true) {
            self.miss(1);
            return;
        }
        compiler_fence(SeqCst);
        if let Some(now) = now {
            self.spent(from, now);
        }
        let places = self.places.get() as u32;
        let there = self
            .arc(from, to, places - places / 4)
            .or_else(|| self.arc(NOBODY, to, places - places / 8));
        match there {
            Some(there) => {
                there.add(1);
                self.latest.set(core::ptr::from_ref(there).cast_mut());
            }
            None => {
                self.miss(1);
                self.latest.set(null_mut());
            }
        }
        compiler_fence(SeqCst);
        self.is_busy.set(false);
    }

    /// The time up to now was spent somewhere between the function that was entered last and this place; 0: nobody
    /// calls.
    pub fn spent(&self, from: usize, now: u64) {
        let since = now.saturating_sub(self.time.get());
        self.time.set(now);
        // SAFETY: `watched` can be read, as was promised when it was given.
        self.last.set(unsafe { self.watched.get().read_volatile() });
        // SAFETY: null, or a place of the memory.
        let entered = unsafe { self.latest.get().as_ref() }.map_or(0, |arc| arc.to.get());
        if since == 0 || (entered, from) == (0, 0) {
            return;
        }
        let table = Table { first: self.end.get(), places: self.spans.get() };
        match table.find(entered, from, &self.made_spans, self.spans.get() - 1) {
            Some(there) => there.add(since),
            None => self.lost_time.set(self.lost_time.get().wrapping_add(since)),
        }
    }

    fn arc(&self, from: usize, to: usize, most: u32) -> Option<&Place> {
        let table = Table { first: self.first.get(), places: self.places.get() as u32 };
        table.find(from, to, &self.made, most)
    }

    /// Time up to which all is there.
    pub fn time(&self) -> u64 {
        self.time.get()
    }

    /// Takes out what was left out: calls, and time.
    pub fn take_lost(&self) -> (u64, u64) {
        (self.lost_calls.replace(0), self.lost_time.replace(0))
    }

    /// Calls that were counted in the place at `next` and later ones, or in none, and not taken.
    pub fn calls_from(&self, next: u32) -> u64 {
        let counts = (next..self.places.get() as u32).map(|at| self.count(at));
        counts.fold(self.lost_calls.get(), u64::wrapping_add)
    }

    fn count(&self, at: u32) -> u64 {
        // SAFETY: within the memory: every caller's number is below that of its places.
        unsafe { &*self.first.get().add(at as usize) }.count.get()
    }

    /// Moves `next` to a place that has grown, from where it is on; says whether there is one.
    pub fn has_grown(&self, next: &mut u32) -> bool {
        let all = self.places.get() as u32 + self.spans.get();
        while *next < all && self.count(*next) == 0 {
            *next += 1;
        }
        *next < all
    }

    /// Takes out what places have grown by, from the one at `next` on, which moves behind the last that was
    /// looked at; nothing when there are no more.
    pub fn take(&self, next: &mut u32) -> Option<Growth> {
        let (arcs, spans) = (self.places.get() as u32, self.spans.get());
        while *next < arcs + spans {
            let at = *next;
            *next += 1;
            // SAFETY: within the memory: there are so many places.
            let there = unsafe { &*self.first.get().add(at as usize) };
            let count = there.count.replace(0);
            if count > 0 {
                let kind = if at < arcs { Kind::Arc } else { Kind::Span };
                return Some(Growth { kind, from: there.from.get(), to: there.to.get(), count });
            }
        }
        None
    }
}

impl Default for Arcs {
    fn default() -> Self {
        Self::new()
    }
}

impl Place {
    fn add(&self, more: u64) {
        self.count.set(self.count.get().wrapping_add(more));
    }

    fn is_empty(&self) -> bool {
        self.from.get() == 0 && self.to.get() == 0
    }
}

/// Places, by what they are about. Not all are filled.
struct Table {
    first: *mut Place,
    places: u32,
}

impl Table {
    /// The place of these two; a new one, as long as fewer than `most` were `made`.
    fn find(&self, from: usize, to: usize, made: &Cell<u32>, most: u32) -> Option<&'static Place> {
        let key = (from as u32).wrapping_add((to as u32) << 2).wrapping_mul(SPREAD);
        let mut at = ((u64::from(key) * u64::from(self.places)) >> 32) as u32;
        for _ in 0..self.places {
            // SAFETY: below the number of places, of which there are so many in the memory, which stays.
            let there = unsafe { &*self.first.add(at as usize) };
            if there.from.get() == from && there.to.get() == to {
                return Some(there);
            }
            if there.is_empty() {
                if made.get() >= most {
                    return None;
                }
                made.set(made.get() + 1);
                there.to.set(to);
                // An interrupt that sees the one sees the other.
                compiler_fence(SeqCst);
                there.from.set(from);
                return Some(there);
            }
            at = if at + 1 < self.places { at + 1 } else { 0 };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    static STANDS: u32 = 0;
    /// Most calls of a case. Miri is some hundred times slower.
    const STEPS: usize = if cfg!(miri) { 20 } else { 600 };

    fn arcs(bytes: usize) -> Arcs {
        let memory = vec![0u64; bytes / 8].leak();
        let arcs = Arcs::new();
        // SAFETY: memory that nobody else has, and a word that stays.
        assert!(unsafe { arcs.begin(memory.as_mut_ptr().cast(), bytes, &raw const STANDS) });
        arcs
    }

    fn taken(arcs: &Arcs) -> HashMap<(bool, usize, usize), u64> {
        let (mut next, mut out) = (0, HashMap::new());
        while let Some(growth) = arcs.take(&mut next) {
            let key = (growth.kind == Kind::Span, growth.from, growth.to);
            assert_eq!(out.insert(key, growth.count), None, "{key:?} has two places");
        }
        out
    }

    proptest! {
        #[test]
        fn sums_are_those_of_a_map(
            steps in proptest::collection::vec((2usize..40, 2usize..40, 0u64..3, 0u8..30), 0..STEPS),
        ) {
            let arcs = arcs(STEPS * 24 * 16);
            let mut slow: HashMap<(bool, usize, usize), u64> = HashMap::new();
            let (mut now, mut entered) = (0, 0);
            for (from, to, later, what) in steps {
                now += later;
                if later > 0 {
                    *slow.entry((true, entered, from)).or_default() += later;
                }
                *slow.entry((false, from, to)).or_default() += 1;
                entered = to;
                arcs.call(from, to, (later > 0).then_some(now));
                if what == 0 {
                    prop_assert_eq!(taken(&arcs), std::mem::take(&mut slow));
                }
            }
            prop_assert_eq!(taken(&arcs), slow);
            prop_assert_eq!(arcs.take_lost(), (0, 0));
        }

        /// However little room there is, every call and every moment is somewhere, and of each function no more
        /// than there were.
        #[test]
        fn what_finds_no_room_is_counted(
            steps in proptest::collection::vec((2usize..90, 2usize..60), 0..STEPS * 3 / 2), places in 16usize..60,
        ) {
            let arcs = arcs(places * size_of::<Place>());
            let mut called: HashMap<usize, u64> = HashMap::new();
            for (now, &(from, to)) in steps.iter().enumerate() {
                *called.entry(to).or_default() += 1;
                arcs.call(from, to, Some(now as u64 + 1));
            }
            let sums = taken(&arcs);
            let sum = |span| sums.iter().filter(|(key, _)| key.0 == span).map(|sum| sum.1).sum::<u64>();
            let (calls, time) = arcs.take_lost();
            prop_assert_eq!(sum(false) + calls, steps.len() as u64);
            prop_assert_eq!(sum(true) + time, steps.len() as u64);
            for ((_, _, to), _) in sums.iter().filter(|(key, _)| !key.0) {
                let found: u64 = sums.iter().filter(|(key, _)| !key.0 && key.2 == *to).map(|sum| sum.1).sum();
                prop_assert!(found <= called[to]);
            }
        }
    }

    #[test]
    fn as_many_arcs_fit_as_are_promised() {
        let sizes: &[usize] = if cfg!(miri) { &[384, 1024] } else { &[384, 1024, 4096, 65536] };
        for &bytes in sizes {
            let arcs = arcs(bytes);
            let room = arcs_in(bytes);
            (0..room).for_each(|at| arcs.call(1000 + 16 * at, 7, None));
            let own = taken(&arcs).keys().filter(|key| key.1 != NOBODY).count();
            assert!(own >= room, "{own} of {room} in {bytes} bytes");
        }
    }

    #[test]
    fn memory_that_is_too_small_is_not_taken() {
        let mut memory = [0u64; 600];
        let base = memory.as_mut_ptr().cast::<u8>();
        let arcs = Arcs::new();
        // SAFETY: memory that nobody else has, and a word that stays.
        let begin =
            |at: usize, bytes| unsafe { arcs.begin(base.add(at), bytes, &raw const STANDS) };
        assert!(!begin(0, 383) && !begin(4, 4096) && !arcs.has_memory());
        assert!(begin(0, 384) && arcs.has_memory());
    }

    #[test]
    fn what_comes_in_the_midst_is_counted_as_lost() {
        let arcs = arcs(4096);
        arcs.is_busy.set(true);
        arcs.call(5, 6, None);
        assert_eq!(arcs.take_lost(), (1, 0));
    }
}
