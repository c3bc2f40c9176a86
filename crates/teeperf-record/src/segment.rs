//! A segment of chunks as the recorder sees it: states, headers and words, each read once.
//!
//! Says nothing about what the words mean, and believes nothing: every number that comes
//! out of here was written by the traced process.

use crate::clock::ClockPage;
use crate::memory::{SEAL_SIZE, SharedMemory, copy_out, wake_all, zero};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use teeperf_wire::arena::{self, request};
use teeperf_wire::shared::{ChunkHeader, MAGIC, chunk, segment, state, wanted};

/// Words of the largest chunk.
pub(crate) const MAX_WORDS: usize = (segment::LARGE_CHUNK - chunk::WORDS) / 4;

/// Which chunks a segment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A thread's first.
    Small,
    /// Every later one.
    Large,
    /// Small or large ones in a slot for heirs ([`crate::heirs`]).
    OfHeir {
        /// Bytes of one.
        chunk_size: usize,
        /// How many.
        chunks: usize,
    },
    /// Those of an arena.
    Arena {
        /// Bytes of one.
        chunk_size: usize,
        /// How many.
        chunks: usize,
    },
    /// Memories of trees.
    Trees {
        /// Bytes of one.
        bytes: usize,
        /// How many.
        trees: usize,
    },
}

impl Class {
    /// Bytes of a chunk, and chunks in a segment.
    pub(crate) fn shape(self) -> (usize, usize) {
        match self {
            Self::Small => (segment::SMALL_CHUNK, segment::SMALL_CHUNKS),
            Self::Large => (segment::LARGE_CHUNK, segment::LARGE_CHUNKS),
            Self::OfHeir { chunk_size, chunks } | Self::Arena { chunk_size, chunks } => {
                (chunk_size, chunks)
            }
            Self::Trees { bytes, trees } => (bytes, trees),
        }
    }

    /// The first memories of trees of a process.
    pub(crate) fn first_trees(bytes: usize) -> Self {
        Self::more_trees(bytes, 0, segment::MAX_CHUNKS)
    }

    /// Memories of trees for a process that has so many, and may have so many more: as many again, so that it soon
    /// has enough for thousands of threads. What is not used takes no memory.
    pub(crate) fn more_trees(bytes: usize, has: usize, room: usize) -> Self {
        let least = (FIRST_TREES / bytes).max(LEAST_TREES);
        Self::Trees { bytes, trees: has.max(least).min(room).min(segment::MAX_CHUNKS) }
    }
}

/// Bytes of a process's first trees, if that are enough of them.
const FIRST_TREES: usize = 16 << 20;
/// Fewest trees in a segment.
const LEAST_TREES: usize = 4;

/// A segment in shared memory.
#[derive(Debug)]
pub(crate) struct Segment {
    memory: Arc<SharedMemory>,
    /// Where it begins in the memory.
    at: usize,
    class: Class,
    /// Of an arena, its own clock.
    clock: Option<Arc<ClockPage>>,
}

impl Segment {
    /// A new one, all chunks free.
    pub(crate) fn create(class: Class) -> io::Result<Self> {
        let (chunk_size, chunks) = class.shape();
        let length = segment::DATA + chunk_size * chunks;
        let memory = SharedMemory::create(c"teeperf-segment", length, SEAL_SIZE)?;
        Ok(Self::begin(Arc::new(memory), 0, class, None))
    }

    /// A new one; of fewer trees where so much memory cannot be had (`ulimit -f`).
    pub(crate) fn create_what_fits(class: Class) -> io::Result<Self> {
        match (Self::create(class), class) {
            (Err(_), Class::Trees { bytes, trees }) if trees > 1 => {
                Self::create_what_fits(Class::Trees { bytes, trees: trees / 2 })
            }
            (result, _) => result,
        }
    }

    /// One that lies at a place in memory where a process writes already.
    pub(crate) fn inside(memory: Arc<SharedMemory>, at: usize, class: Class) -> Self {
        Self::begin(memory, at, class, None)
    }

    /// That of an arena, whose memory is zeroed and has room for it.
    pub(crate) fn of_arena(
        memory: Arc<SharedMemory>,
        (chunk_size, chunks): (usize, usize),
        clock: Arc<ClockPage>,
    ) -> Self {
        let class = Class::Arena { chunk_size, chunks };
        Self::begin(memory, arena::SEGMENT, class, Some(clock))
    }

    fn begin(
        memory: Arc<SharedMemory>,
        at: usize,
        class: Class,
        clock: Option<Arc<ClockPage>>,
    ) -> Self {
        let (chunk_size, chunks) = class.shape();
        memory.number(at + segment::CHUNK_SIZE).store(chunk_size as u32, Relaxed);
        memory.number(at + segment::CHUNKS).store(chunks as u32, Relaxed);
        memory.wide(at + segment::MAGIC).store(MAGIC, Release);
        Self { memory, at, class, clock }
    }

    /// The clock that its threads look at, where it is not the page.
    pub(crate) fn clock(&self) -> Option<&Arc<ClockPage>> {
        self.clock.as_ref()
    }

    /// To be sent to the process.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.memory.file()
    }

    /// First segment only: to be sent instead, so that [`Segment::is_lent`] can tell.
    pub(crate) fn lend(&self) -> io::Result<OwnedFd> {
        self.memory.lend()
    }

    /// Whether the process has it, or a child that was forked from it and has neither attached nor
    /// executed another program.
    pub(crate) fn is_lent(&self) -> bool {
        self.memory.is_lent()
    }

    /// Small or large.
    pub(crate) fn class(&self) -> Class {
        self.class
    }

    /// Number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.class.shape().1
    }

    /// Words that a chunk has room for.
    pub(crate) fn capacity(&self) -> usize {
        (self.class.shape().0 - chunk::WORDS) / 4
    }

    /// State of each chunk, [`teeperf_wire::shared::state`]; anything else is the process's fault.
    pub(crate) fn states(&self) -> impl Iterator<Item = u32> + '_ {
        let states = self.memory.numbers(self.at + segment::STATES, self.chunks());
        states.iter().map(state::look)
    }

    fn state(&self, index: usize) -> &AtomicU32 {
        &self.memory.numbers(self.at + segment::STATES, self.chunks())[index]
    }

    /// Header of a chunk, read once.
    pub(crate) fn header(&self, index: usize) -> ChunkHeader {
        let mut bytes = [0; chunk::WORDS];
        let wides = self.memory.wides(self.start(index), chunk::WORDS);
        for (out, wide) in bytes.chunks_exact_mut(8).zip(wides) {
            out.copy_from_slice(&wide.load(Acquire).to_le_bytes());
        }
        ChunkHeader::decode(&bytes)
    }

    /// One word of a chunk; `at` is below [`Segment::capacity`].
    pub(crate) fn word(&self, index: usize, at: usize) -> u32 {
        self.memory.number(self.start(index) + chunk::WORDS + at * 4).load(Acquire)
    }

    /// Copies a chunk's words from `first` on. Returns them as they stood, each read once.
    pub(crate) fn copy<'a>(&self, index: usize, first: usize, into: &'a mut Copy) -> &'a mut [u32] {
        let even = first & !1;
        let bytes = (self.capacity() - even) * 4;
        let wides = self.memory.wides(self.start(index) + chunk::WORDS + even * 4, bytes);
        copy_out(wides, &mut into.wides[..bytes / 8]);
        &mut into.words()[first - even..bytes / 4]
    }

    /// Zeroes a chunk's header and its first `words` words, and gives it back to the process.
    pub(crate) fn give_back(&self, index: usize, words: usize) {
        let bytes = (chunk::WORDS + words * 4).next_multiple_of(8);
        zero(self.memory.wides(self.start(index), bytes));
        state::give_back(self.state(index));
    }

    /// Copies the first bytes of a chunk, from its header on.
    pub(crate) fn copy_of(&self, index: usize, into: &mut [u64]) {
        copy_out(self.memory.wides(self.start(index), into.len() * 8), into);
    }

    /// All of a chunk, as the process would write it.
    #[cfg(test)]
    pub(crate) fn all_of(&self, index: usize) -> &[std::sync::atomic::AtomicU64] {
        self.memory.wides(self.start(index), self.class.shape().0)
    }

    /// Zeroes all of a tree's memory, and gives it back to the process.
    pub(crate) fn give_back_tree(&self, index: usize) {
        self.memory.forget(self.start(index), self.class.shape().0);
        state::give_back(self.state(index));
    }

    /// First segment only: moves when a thread found nothing free.
    pub(crate) fn wanted(&self) -> u32 {
        wanted::look(self.memory.number(self.at + segment::WANTED))
    }

    /// First segment only: events left out that no chunk speaks of. What is counted in one line
    /// may be taken off in another, while they are read, too.
    pub(crate) fn losses(&self) -> u64 {
        let bytes = segment::LOSS_LINES * segment::LOSS_LINE;
        let lines =
            self.memory.wides(self.at + segment::LOSSES, bytes).chunks(segment::LOSS_LINE / 8);
        let sum = lines.fold(0, |sum: u64, line| sum.wrapping_add(line[0].load(Acquire)));
        (sum as i64).max(0) as u64
    }

    /// First segment only: tells how many filters of system calls the process has that it had not at first.
    pub(crate) fn tell_filters(&self, filters: u32) {
        self.memory.number(self.at + segment::FILTERS).store(filters, Release);
    }

    /// First segment only: time in pauses that the program made.
    pub(crate) fn pauses(&self) -> u64 {
        self.memory.wide(self.at + segment::PAUSES).load(Acquire)
    }

    /// Of an arena: asks who sums inside for what there is.
    pub(crate) fn ask_for_sums(&self) {
        if self.clock.is_some() {
            let asked = self.memory.number(request::ASKED);
            let next = asked.load(Relaxed).wrapping_add(1).max(1);
            asked.store(next, Release);
        }
    }

    /// Of an arena: whether somebody is inside who sums, and has not handed over what there was when that was asked for.
    pub(crate) fn owes_sums(&self) -> bool {
        let answered = || self.memory.number(request::ANSWERED).load(Acquire);
        let asked = || self.memory.number(request::ASKED).load(Relaxed);
        self.clock.is_some() && ![0, asked()].contains(&answered())
    }

    /// Of an arena: whether somebody who sums has ended inside without a word, and another has entered since.
    pub(crate) fn has_lost_sums(&self) -> bool {
        self.clock.is_some() && self.memory.number(request::ENDED).load(Relaxed) != 0
    }

    /// First segment only: says that chunks were freed or a segment was made.
    pub(crate) fn wake(&self) {
        self.memory.number(self.at + segment::WAKE).fetch_add(1, SeqCst);
    }

    /// First segment only: wakes those who sleep until that is said.
    pub(crate) fn wake_sleepers(&self) {
        wake_all(self.memory.number(self.at + segment::WAKE));
    }

    /// First segment only: how many segments can be asked for.
    pub(crate) fn announce(&self, segments: usize) {
        self.memory.number(self.at + segment::SEGMENTS).store(segments as u32, SeqCst);
    }

    fn start(&self, index: usize) -> usize {
        self.at + segment::DATA + index * self.class.shape().0
    }
}

/// Private memory for one chunk's words.
pub(crate) struct Copy {
    wides: Box<[u64]>,
}

impl Copy {
    /// Room for the largest chunk.
    pub(crate) fn new() -> Self {
        Self { wides: vec![0; MAX_WORDS / 2].into() }
    }

    /// As words, in the order of memory.
    fn words(&mut self) -> &mut [u32] {
        let words = self.wides.len() * 2;
        // SAFETY: eight bytes are two words of four, with less alignment; any bits are a
        // number; lifetime and uniqueness are those of self.
        unsafe { std::slice::from_raw_parts_mut(self.wides.as_mut_ptr().cast(), words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second view of the segment, as the process has it.
    fn process_writes(segment: &Segment, index: usize, at: usize, word: u32) {
        segment.memory.number(segment.start(index) + chunk::WORDS + at * 4).store(word, Release);
    }

    #[test]
    fn losses_are_summed_over_all_lines_and_never_negative() {
        let segment = Segment::create(Class::Small).unwrap();
        let line = |at: usize| {
            let bytes = segment::LOSS_LINES * segment::LOSS_LINE;
            &segment.memory.wides(segment::LOSSES, bytes)[at * segment::LOSS_LINE / 8]
        };
        line(0).store(5, Release);
        line(segment::LOSS_LINES - 1).store(7, Release);
        assert_eq!(segment.losses(), 12);
        line(1).store(-9i64 as u64, Release);
        assert_eq!(segment.losses(), 3);
        line(1).store(-90i64 as u64, Release);
        assert_eq!(segment.losses(), 0);
    }

    #[test]
    fn words_come_out_and_a_chunk_goes_back_zeroed() {
        for class in [Class::Small, Class::Large] {
            let segment = Segment::create(class).unwrap();
            let last = segment.capacity() - 1;
            for index in [0, segment.chunks() - 1] {
                state::hand_over(segment.state(index));
                process_writes(&segment, index, 0, 5);
                process_writes(&segment, index, 1, 6);
                process_writes(&segment, index, last, 7);
                let mut copy = Copy::new();
                assert_eq!(segment.copy(index, 0, &mut copy)[..3], [5, 6, 0]);
                assert_eq!(segment.copy(index, 1, &mut copy)[..2], [6, 0]);
                assert_eq!(segment.copy(index, 1, &mut copy).len(), last);
                assert_eq!(segment.copy(index, last, &mut copy), [7]);
                segment.give_back(index, last + 1);
                assert!(segment.copy(index, 0, &mut copy).iter().all(|&word| word == 0));
                assert_eq!(segment.states().nth(index), Some(state::FREE));
            }
        }
    }
}
