//! Layout of the memory that the recorder and a traced process share. Both sides use
//! these offsets; neither believes the other. All fields are little-endian and naturally
//! aligned; times are in clock units (see [`crate::hello::Welcome::hz`]).
//!
//! Three kinds of memfd, each sealed against shrinking and growing before it is handed over:
//!
//! * the **clock page** ([`clock`]), written by the recorder alone and sealed against
//!   future writes, so a program can map it for reading only;
//! * **segments** ([`segment`]) of small and of large chunks, one set for each process.
//!
//! # Life of a chunk
//!
//! ```text
//! FREE ──runtime, compare-exchange──► TAKEN ──runtime, release store──► FULL
//!   ▲                                                                     │
//!   └──────── recorder: copied out, words zeroed, release store ──────────┘
//! ```
//!
//! Only its state tells whose a chunk is. A FREE chunk is all zero. While it is TAKEN, its
//! thread alone writes it, and anybody may read the words up to the first 0. A FULL chunk
//! with a 0 before its last word has a hole: a thread was interrupted between reserving
//! and writing. It is not given out again until the hole is filled, or its thread is dead.

/// First eight bytes of every shared page: "TEEPERF" and the layout's version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"TEEPERF\x01");
/// Page size the layout is made for; larger pages are multiples.
pub const PAGE: usize = 4096;

/// How time gets into a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ClockKind {
    /// A word that the recorder moves; time words are [`crate::word::code::TICK`] escapes.
    Tick = 1,
    /// A counter read at each event; each event word is followed by a time word.
    Cycle = 2,
}

impl ClockKind {
    /// The clock of this number, if there is one.
    pub const fn from_u32(value: u32) -> Option<Self> {
        match value {
            1 => Some(Self::Tick),
            2 => Some(Self::Cycle),
            _ => None,
        }
    }
}

/// What a thread does when no chunk is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum OnFull {
    /// Sleep until one is; after [`STALL_NS`] without progress of the drain, drop.
    Wait = 1,
    /// Leave events out, and say how many.
    Drop = 2,
    /// Stop recording in this process.
    Stop = 3,
}

impl OnFull {
    /// The policy of this number, if there is one.
    pub const fn from_u32(value: u32) -> Option<Self> {
        match value {
            1 => Some(Self::Wait),
            2 => Some(Self::Drop),
            3 => Some(Self::Stop),
            _ => None,
        }
    }
}

/// A waiting thread gives up when the drain made no progress for this long.
pub const STALL_NS: u64 = 1_000_000_000;

/// Bit of a thread's id where the thread must not ask for it: the rest is its serial number.
pub const UNKNOWN_THREAD: u32 = 1 << 31;

/// The clock page: byte offsets.
pub mod clock {
    /// Bytes of the memfd.
    pub const SIZE: usize = super::PAGE;
    /// u64, [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// u32, one more whenever [`CONTROL`] changes. The word a `cycle` hook watches.
    pub const GENERATION: usize = 128;
    /// u32, bits of [`super::control`].
    pub const CONTROL: usize = 132;
    /// u32, the filter that is to come ([`crate::filter`]), 0 where there never was one. As long as it is not that of
    /// [`FILTER_DUE`], hooks come to the runtime.
    pub const FILTER: usize = 136;
    /// u32, the filter that holds: whoever sees it puts it into effect. Written behind [`FILTER`], when no hook
    /// of a thread that has not seen that can be on its fast way any more.
    pub const FILTER_DUE: usize = 140;
    /// u64, when the tick was 0: nanoseconds of `CLOCK_MONOTONIC`, 0 where that is not this system's. So a time can be
    /// told more exactly than the tick moves.
    pub const ORIGIN: usize = 144;
    /// u64, time in pauses from outside ([`super::pauses`]).
    pub const PAUSES: usize = 152;
    /// u32, one more for each chunk drained: a waiting thread looks whether it moves.
    /// Threads with nothing to wait for never read this line.
    pub const PROGRESS: usize = 256;
    /// u32, low half of the time. The word a `tick` hook watches; alone on its line.
    pub const TICK: usize = 384;
    /// u32, high half of the time. The recorder writes high, then low, then high again
    /// in [`TICK_HIGH_AGAIN`]; a reader that sees both highs alike around the low has a
    /// whole time.
    pub const TICK_HIGH: usize = 388;
    /// u32, see [`TICK_HIGH`].
    pub const TICK_HIGH_AGAIN: usize = 392;
}

/// Bits of the control word.
pub mod control {
    /// Nothing is recorded until the bit is taken back.
    pub const PAUSED: u32 = 1;
    /// Together with [`PAUSED`]: the filter that holds names functions whose call has the recorder go on
    /// ([`crate::hello::want::BEGIN`]).
    pub const ARMED: u32 = 4;
    /// Recording has ended: hooks switch themselves off and let go of the memory.
    pub const STOPPED: u32 = 2;
}

/// A segment: byte offsets in its first page, and sizes.
pub mod segment {
    /// u64, [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// u32, bytes of one chunk: [`SMALL_CHUNK`] or [`LARGE_CHUNK`].
    pub const CHUNK_SIZE: usize = 8;
    /// u32, number of chunks.
    pub const CHUNKS: usize = 12;
    /// u32, first segment of a process only: threads that found nothing free and wait or
    /// drop. The recorder makes a further segment when it sees this move.
    pub const WANTED: usize = 64;
    /// u32, first segment only: futex that the recorder bumps and wakes when it has freed
    /// chunks or made a segment.
    pub const WAKE: usize = 68;
    /// u32, first segment only: how many segments of this process can be asked for.
    pub const SEGMENTS: usize = 72;
    /// u32, first segment only: how many filters of system calls (seccomp(2)) the recorder sees more than the process
    /// had when it attached.
    pub const FILTERS: usize = 76;
    /// u64, first segment only: time in pauses that the program itself made ([`super::pauses`]), by a clock that stands still
    /// while recording is paused from outside.
    pub const PAUSES: usize = 80;
    /// u32 for each chunk, [`super::state`].
    pub const STATES: usize = 1024;
    /// First segment only, u64 on each of [`LOSS_LINES`] cache lines: events that threads
    /// left out and have not said so in a chunk yet. A thread adds to the line of its serial,
    /// and takes off what it then says. What stands here when the process is gone was never said.
    pub const LOSSES: usize = 2048;
    /// Lines from [`LOSSES`] on, [`LOSS_LINE`] bytes each.
    pub const LOSS_LINES: usize = (DATA - LOSSES) / LOSS_LINE;
    /// A cache line: threads that lose events at once do not wait for each other.
    pub const LOSS_LINE: usize = 64;
    /// Where the first chunk begins.
    pub const DATA: usize = super::PAGE;

    /// Bytes of a small chunk, which is what a thread begins with.
    pub const SMALL_CHUNK: usize = 4096;
    /// Bytes of every later chunk.
    pub const LARGE_CHUNK: usize = 65536;
    /// Small chunks in a segment of them (1 MiB and a page).
    pub const SMALL_CHUNKS: usize = 256;
    /// Large chunks in a segment of them (4 MiB and a page).
    pub const LARGE_CHUNKS: usize = 64;
    /// Most segments of one process: 2 GiB of chunks, half a million threads that log a little.
    pub const MAX_SEGMENTS: usize = 2048;
    /// Most chunks a segment may have: so many states have room.
    pub const MAX_CHUNKS: usize = (LOSSES - STATES) / 4;

    /// Bytes of a segment of `trees` trees' memories of `tree_size` bytes, or nothing when there is no such
    /// segment: memory that is no tree's or not whole pages, none of it, or too much.
    pub const fn size_of_trees(tree_size: usize, trees: usize) -> Option<usize> {
        let is_size = tree_size.is_multiple_of(super::PAGE) && tree_size <= MAX_TREE;
        if is_size && crate::tree::nodes_in(tree_size).is_some() && trees > 0 && trees <= MAX_CHUNKS
        {
            Some(DATA + tree_size * trees)
        } else {
            None
        }
    }

    /// Most bytes of a tree's memory.
    pub const MAX_TREE: usize = 1 << 30;

    /// Bytes of a segment of `chunks` chunks of `chunk_size` bytes, or nothing when that is
    /// no segment: a size other than the two, no chunk, or too many.
    pub const fn size(chunk_size: usize, chunks: usize) -> Option<usize> {
        if (chunk_size == SMALL_CHUNK || chunk_size == LARGE_CHUNK)
            && chunks > 0
            && chunks <= MAX_CHUNKS
        {
            Some(DATA + chunk_size * chunks)
        } else {
            None
        }
    }
}

/// Time in pauses, as one word that whoever reads it has whole: twice the clock units of all pauses so far; in a pause twice
/// the units before it less the time at which it began, modulo 2^63, and one more.
pub mod pauses {
    const UNITS: u64 = u64::MAX >> 1;

    /// The word, once a pause has begun; the same where one had.
    pub const fn begin(word: u64, now: u64) -> u64 {
        if is_on(word) { word } else { ((word >> 1).wrapping_sub(now) & UNITS) << 1 | 1 }
    }

    /// The word, once the pause is over; the same where there is none.
    pub const fn end(word: u64, now: u64) -> u64 {
        if is_on(word) { units(word, now) << 1 } else { word }
    }

    /// Whether it is that of a pause.
    pub const fn is_on(word: u64) -> bool {
        word & 1 != 0
    }

    /// Units of all pauses up to now.
    pub const fn units(word: u64, now: u64) -> u64 {
        if is_on(word) { (word >> 1).wrapping_add(now) & UNITS } else { word >> 1 }
    }

    /// Units of all pauses from outside, and of those by the program besides.
    pub const fn of_both(outside: u64, inside: u64, now: u64) -> u64 {
        let outside = units(outside, now);
        outside.saturating_add(units(inside, now.saturating_sub(outside)))
    }
}

/// State of a chunk, and how it changes hands: whoever has it sees all that was done to the chunk before.
pub mod state {
    use core::sync::atomic::AtomicU32;
    #[cfg(target_has_atomic = "32")]
    use core::sync::atomic::Ordering::AcqRel;
    use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

    /// Zeroed, to be taken.
    pub const FREE: u32 = 0;
    /// A thread writes it.
    pub const TAKEN: u32 = 1;
    /// Handed over by its thread.
    pub const FULL: u32 = 2;

    /// A thread takes a chunk, if it is free.
    #[inline]
    #[cfg(target_has_atomic = "32")]
    pub fn take(state: &AtomicU32) -> bool {
        state.load(Relaxed) == FREE && state.compare_exchange(FREE, TAKEN, AcqRel, Relaxed).is_ok()
    }

    /// The only thread that takes chunks there takes one, if it is free: with no more than a load and a store, which
    /// every processor has in every kind of memory.
    #[inline]
    pub fn take_alone(state: &AtomicU32) -> bool {
        let is_free = state.load(Acquire) == FREE;
        if is_free {
            state.store(TAKEN, Release);
        }
        is_free
    }

    /// Its thread hands it over.
    #[inline]
    pub fn hand_over(state: &AtomicU32) {
        state.store(FULL, Release);
    }

    /// What the recorder sees of it; a chunk that is full is its own then.
    #[inline]
    pub fn look(state: &AtomicU32) -> u32 {
        state.load(Acquire)
    }

    /// The recorder, or a thread that wrote nothing, gives it back zeroed.
    #[inline]
    pub fn give_back(state: &AtomicU32) {
        state.store(FREE, Release);
    }
}

/// The count of threads that found nothing free ([`segment::WANTED`]). Either the recorder sees that a
/// thread wants a chunk, or that thread sees what was given back before the recorder looked.
pub mod wanted {
    use core::sync::atomic::Ordering::{Relaxed, SeqCst};
    use core::sync::atomic::{AtomicU32, fence};

    /// A thread says so, before it looks for a free chunk once more.
    #[inline]
    #[cfg(target_has_atomic = "32")]
    pub fn say(count: &AtomicU32) {
        count.fetch_add(1, Relaxed);
        fence(SeqCst);
    }

    /// The recorder looks, behind giving chunks back.
    #[inline]
    pub fn look(count: &AtomicU32) -> u32 {
        fence(SeqCst);
        count.load(Relaxed)
    }
}

/// First 64 bytes of a chunk, written by its thread before the first word.
pub mod chunk {
    /// u32, process id as the process knows it.
    pub const PID: usize = 0;
    /// u32, thread id as the process knows it.
    pub const TID: usize = 4;
    /// u32, number of the thread within its process, from 1, never used again.
    pub const SERIAL: usize = 8;
    /// u32, number of the chunk within its thread, from 1.
    pub const SEQUENCE: usize = 12;
    /// u64, absolute time at the chunk's start, clock units.
    pub const TIME: usize = 16;
    /// u64, CPU time of the thread at the chunk's start, nanoseconds; all ones: unknown.
    pub const CPU_NS: usize = 24;
    /// u64, id of the stack the thread is on, 0 its own; [`STACK_NOT_TOLD`]: the one that it was on behind the chunk before.
    pub const STACK: usize = 32;
    /// See [`STACK`].
    pub const STACK_NOT_TOLD: u64 = u64::MAX;
    /// u32, [`super::ClockKind`]. Written last: 0 says that the header is not there yet.
    pub const CLOCK: usize = 40;
    /// u32, 1 while the thread counts its events and does not write them, because recording is paused: which frames are
    /// open in it, the chunk does not tell.
    pub const APART: usize = 44;
    /// u64, clock units of all pauses up to the words here: they tell of those.
    pub const LEFT_OUT: usize = 48;
    /// Where the words begin.
    pub const WORDS: usize = 64;
}

/// A chunk's header as read once from shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkHeader {
    /// [`chunk::PID`].
    pub pid: u32,
    /// [`chunk::TID`].
    pub tid: u32,
    /// [`chunk::SERIAL`].
    pub serial: u32,
    /// [`chunk::SEQUENCE`].
    pub sequence: u32,
    /// [`chunk::TIME`].
    pub time: u64,
    /// [`chunk::CPU_NS`].
    pub cpu_ns: u64,
    /// [`chunk::STACK`].
    pub stack: u64,
    /// [`chunk::CLOCK`].
    pub clock: u32,
    /// [`chunk::APART`].
    pub apart: u32,
    /// [`chunk::LEFT_OUT`].
    pub left_out: u64,
}

impl ChunkHeader {
    /// Reads the header from a private copy of a chunk's first 64 bytes.
    pub fn decode(bytes: &[u8; chunk::WORDS]) -> Self {
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let u64_at = |at: usize| u32_at(at) as u64 | (u32_at(at + 4) as u64) << 32;
        Self {
            pid: u32_at(chunk::PID),
            tid: u32_at(chunk::TID),
            serial: u32_at(chunk::SERIAL),
            sequence: u32_at(chunk::SEQUENCE),
            time: u64_at(chunk::TIME),
            cpu_ns: u64_at(chunk::CPU_NS),
            stack: u64_at(chunk::STACK),
            clock: u32_at(chunk::CLOCK),
            apart: u32_at(chunk::APART),
            left_out: u64_at(chunk::LEFT_OUT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pauses::{begin, end, is_on, of_both, units};

    #[test]
    fn pauses_add_up_and_count_once() {
        let mut word = 0;
        for (from, to, sum) in [(100, 130, 30), (130, 131, 31), (1 << 40, (1 << 40) + 9, 40)] {
            word = begin(begin(word, from), from + 5);
            assert!(is_on(word));
            assert_eq!(units(word, to), sum);
            word = end(end(word, to), to + 7);
            assert_eq!((is_on(word), units(word, u64::MAX >> 1)), (false, sum));
        }
        // From 100 to 200 from outside, from 150 to 300 from inside, by a clock that stood still until 200.
        let outside = begin(0, 100);
        let inside = begin(0, 150 - units(outside, 150));
        assert_eq!(of_both(outside, inside, 170), 70);
        let outside = end(outside, 200);
        assert_eq!(of_both(outside, inside, 250), 150);
        let inside = end(inside, 300 - units(outside, 300));
        assert_eq!(of_both(outside, inside, 900), 200);
    }
}
