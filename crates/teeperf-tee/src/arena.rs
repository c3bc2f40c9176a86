//! Lent memory: checked when it is attached, and seen through here alone. Everything in it may be
//! written by the host at any time, so numbers are atomics, each is read once, and no address comes out
//! of it.

use core::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use teeperf_wire::arena::{self, ALIGNMENT, SEGMENT, head, item, request};
use teeperf_wire::shared::{ClockKind, OnFull, clock, control, segment, state};
// Where several threads write, several take chunks at a time; else an arena is one thread's.
#[cfg(feature = "threads")]
use teeperf_wire::shared::state::take;
#[cfg(not(feature = "threads"))]
use teeperf_wire::shared::state::take_alone as take;
use teeperf_wire::tree::NODE;

/// Why memory is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Refusal {
    /// This build may not be traced.
    Forbidden = -1,
    /// No memory, or not at a multiple of [`ALIGNMENT`].
    Misaligned = -2,
    /// Less than [`arena::MIN_LENGTH`], or it would not end within the address space.
    TooSmall = -3,
    /// Some of it is the trusted side's own.
    Inside = -4,
    /// It does not begin as an arena of this version does.
    Unknown = -5,
    /// The host's clock is one that is not read here.
    Clock = -6,
    /// An arena is attached already.
    Attached = -7,
}

/// An arena. The caller of [`Arena::check`] answers for its memory. Few bytes, of which copies are made without
/// a call of `memcpy`: that may be the image's own, and hooked.
#[derive(Clone, Copy, Debug)]
pub struct Arena {
    base: *mut u8,
    /// Says whether it is the one that was there before.
    pub cookie: u64,
    chunks: u16,
    has_large_chunks: bool,
    is_cycle: bool,
    on_full: u32,
}

impl Arena {
    /// No arena: all zero.
    pub(crate) const NONE: Self = Self {
        base: core::ptr::null_mut(),
        cookie: 0,
        chunks: 0,
        has_large_chunks: false,
        is_cycle: false,
        on_full: 0,
    };

    /// This, unless it is none.
    pub(crate) fn some(self) -> Option<Self> {
        (!self.base.is_null()).then_some(self)
    }

    /// Looks at memory that a host has lent. `is_outside` says whether all of a stretch is the host's.
    ///
    /// # Safety
    /// As long as the arena is used, `length` bytes at `base` can be read and written, unless
    /// `is_outside` says that they are not the host's.
    pub unsafe fn check(
        base: *mut u8,
        length: usize,
        is_outside: impl FnOnce(*const u8, usize) -> bool,
    ) -> Result<Self, Refusal> {
        if base.is_null() || !(base as usize).is_multiple_of(ALIGNMENT) {
            return Err(Refusal::Misaligned);
        }
        let Some((chunk_size, chunks)) = arena::shape(length) else {
            return Err(Refusal::TooSmall);
        };
        if (base as usize).checked_add(length).is_none() {
            return Err(Refusal::TooSmall);
        }
        if !is_outside(base, length) {
            return Err(Refusal::Inside);
        }
        let has_large_chunks = chunk_size == segment::LARGE_CHUNK;
        let mut found = Self { base, chunks: chunks as u16, has_large_chunks, ..Self::NONE };
        if found.wide(head::MAGIC) != arena::MAGIC {
            return Err(Refusal::Unknown);
        }
        let clock = ClockKind::from_u32(found.read(head::CLOCK)).ok_or(Refusal::Clock)?;
        found.is_cycle = clock == ClockKind::Cycle;
        found.on_full = found.read(head::ON_FULL);
        found.cookie = found.wide(head::COOKIE);
        Ok(found)
    }

    /// Which clock its words are to be timed by.
    pub fn clock(&self) -> ClockKind {
        if self.is_cycle { ClockKind::Cycle } else { ClockKind::Tick }
    }

    /// What to do when no chunk is free.
    pub fn on_full(&self) -> OnFull {
        OnFull::from_u32(self.on_full).unwrap_or(OnFull::Drop)
    }

    /// Clock units in a second.
    pub fn hz(&self) -> u64 {
        self.wide(head::HZ)
    }

    /// How many chunks it has.
    pub(crate) fn chunks(&self) -> usize {
        self.chunks.into()
    }

    fn chunk_size(&self) -> usize {
        if self.has_large_chunks { segment::LARGE_CHUNK } else { segment::SMALL_CHUNK }
    }

    /// A number of the arena. Offsets are ours, never the host's.
    fn number(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset.is_multiple_of(4));
        // SAFETY: every caller's offset lies in the head page, the segment's first page or a chunk of
        // `chunks`, all within the length that was checked; aligned, since the base is.
        unsafe { &*self.base.add(offset).cast() }
    }

    pub(crate) fn read(&self, offset: usize) -> u32 {
        self.number(offset).load(Relaxed)
    }

    pub(crate) fn write(&self, offset: usize, value: u32) {
        self.number(offset).store(value, Relaxed);
    }

    /// Two halves, low first.
    pub(crate) fn wide(&self, offset: usize) -> u64 {
        u64::from(self.read(offset)) | u64::from(self.read(offset + 4)) << 32
    }

    /// As [`Arena::wide`].
    pub(crate) fn write_wide(&self, offset: usize, value: u64) {
        self.write(offset, value as u32);
        self.write(offset + 4, (value >> 32) as u32);
    }

    /// The word that moves with the tick.
    pub(crate) fn tick_word(&self) -> *const u32 {
        self.number(clock::TICK).as_ptr()
    }

    /// The word that moves when the host asks for sums.
    pub(crate) fn word_of_requests(&self) -> *const u32 {
        self.number(request::ASKED).as_ptr()
    }

    /// The whole tick. Its halves are written high, low, high; a host that never lets them agree
    /// gets its own nonsense back.
    pub(crate) fn tick(&self) -> u64 {
        let mut time = 0;
        for _ in 0..16 {
            let again = self.number(clock::TICK_HIGH_AGAIN).load(Acquire);
            let low = self.number(clock::TICK).load(Acquire);
            let high = self.number(clock::TICK_HIGH).load(Acquire);
            time = u64::from(high) << 32 | u64::from(low);
            if again == high {
                break;
            }
        }
        time
    }

    /// Whether nothing is to be recorded now.
    pub(crate) fn is_paused(&self) -> bool {
        self.read(clock::CONTROL) & control::PAUSED != 0
    }

    /// Whether recording has ended.
    pub(crate) fn is_stopped(&self) -> bool {
        self.read(clock::CONTROL) & control::STOPPED != 0
    }

    /// Chunks that the host has drained.
    pub(crate) fn progress(&self) -> u32 {
        self.read(clock::PROGRESS)
    }

    /// Tells the host that nothing was free. A hint, so that it may be lost among threads.
    pub(crate) fn want(&self) {
        let count = self.number(SEGMENT + segment::WANTED);
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Counts events that are left out and not said of in a chunk, of the thread with this serial, or takes
    /// off what was said of them, by a negative number.
    #[inline(never)]
    pub(crate) fn count_losses(&self, serial: u32, events: i64) {
        let line = serial as usize % segment::LOSS_LINES;
        let offset = SEGMENT + segment::LOSSES + line * segment::LOSS_LINE;
        self.write_wide(offset, self.wide(offset).wrapping_add_signed(events));
    }

    /// Words that a chunk has room for.
    pub(crate) fn capacity(&self) -> usize {
        (self.chunk_size() - teeperf_wire::shared::chunk::WORDS) / 4
    }

    /// Items of arcs that a chunk has room for.
    pub(crate) fn items_of_chunk(&self) -> usize {
        (self.chunk_size() - teeperf_wire::shared::chunk::WORDS) / item::SIZE
    }

    /// Nodes of a tree that a chunk has room for.
    pub(crate) fn nodes_of_chunk(&self) -> usize {
        self.chunk_size() / NODE - 1
    }

    /// Offset of a chunk, where there is one of this index.
    pub(crate) fn chunk(&self, index: usize) -> Option<usize> {
        (index < self.chunks()).then(|| SEGMENT + segment::DATA + index * self.chunk_size())
    }

    /// The place of a word of a chunk: `at` is at most [`Arena::capacity`].
    pub(crate) fn place(&self, chunk: usize, at: usize) -> *mut u32 {
        let offset = chunk + teeperf_wire::shared::chunk::WORDS + at * 4;
        debug_assert!(offset <= chunk + self.chunk_size());
        // SAFETY: within the chunk or at its end.
        unsafe { self.base.add(offset).cast() }
    }

    fn state(&self, index: usize) -> &AtomicU32 {
        self.number(SEGMENT + segment::STATES + index * 4)
    }

    /// Whether a chunk of this index, which there is, is taken.
    pub(crate) fn is_taken(&self, index: usize) -> bool {
        self.state(index).load(Relaxed) == state::TAKEN
    }

    /// Takes a free chunk, if there is one; looks from `start` on.
    pub(crate) fn take(&self, start: usize) -> Option<usize> {
        let chunks = self.chunks();
        // Not by a division, which is a call on some processors.
        let mut start = start % segment::MAX_CHUNKS;
        while start >= chunks && start > 0 {
            start /= 2;
        }
        (start..chunks).chain(0..start).find(|&index| take(self.state(index)))
    }

    /// Hands a taken chunk over.
    pub(crate) fn hand_over(&self, index: usize) {
        state::hand_over(self.state(index));
    }

    /// All that was written before is seen by whoever sees this.
    pub(crate) fn publish(&self, offset: usize, value: u32) {
        self.number(offset).store(value, Release);
    }
}
