//! A chunk of an arena, from the moment a thread takes it until it is handed over.

use crate::arena::Arena;
use crate::thread::Who;
use teeperf_wire::arena::{OF_ARCS, OF_TREE, baton, item, items, piece};
use teeperf_wire::compose;
use teeperf_wire::shared::chunk;
use teeperf_wire::tree::NODE;
use teeperf_wire::word::{self, code};

/// Places at a chunk's end are kept for a last gap and the word that ends it.
const TAIL: usize = 8 + 1;

/// A chunk that a thread has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(crate) index: usize,
    /// Where it lies in the arena.
    pub(crate) offset: usize,
}

/// The chunk that whoever was in the arena before has left, and its number of words.
pub(crate) fn left(arena: &Arena) -> Option<(Chunk, usize)> {
    let index = (arena.read(baton::CHUNK) as usize).checked_sub(1)?;
    let used = arena.read(baton::USED) as usize;
    there(arena, index, used).map(|chunk| (chunk, used))
}

/// A chunk that a thread has begun, if there is one of this index, and room for so many words.
pub(crate) fn there(arena: &Arena, index: usize, used: usize) -> Option<Chunk> {
    let chunk = Chunk::of(arena, index)?;
    let is_place = used <= arena.capacity() - TAIL;
    (is_place && arena.is_taken(index) && chunk.has_header(arena)).then_some(chunk)
}

/// The last chunk of the thread of this serial, whose writer has ended without a word; its number among the
/// thread's, and its words.
pub(crate) fn abandoned(arena: &Arena, serial: u32) -> Option<(Chunk, u32, usize)> {
    let mut last: Option<(Chunk, u32)> = None;
    for chunk in (0..arena.chunks()).map_while(|index| Chunk::of(arena, index)) {
        if !arena.is_taken(chunk.index)
            || !chunk.has_header(arena)
            || arena.read(chunk.offset + chunk::SERIAL) != serial
        {
            continue;
        }
        let sequence = arena.read(chunk.offset + chunk::SEQUENCE);
        if last.is_none_or(|(_, before)| sequence > before) {
            last = Some((chunk, sequence));
        }
    }
    let (chunk, sequence) = last?;
    let most = arena.capacity() - TAIL;
    let words = chunk.offset + chunk::WORDS;
    let used = (0..most).find(|at| arena.read(words + 4 * at) == 0).unwrap_or(most);
    Some((chunk, sequence, used))
}

impl Chunk {
    /// No chunk: all zero. None lies at the arena's beginning.
    pub(crate) const NONE: Self = Self { index: 0, offset: 0 };

    /// This, unless it is none.
    pub(crate) fn some(self) -> Option<Self> {
        (self.offset != 0).then_some(self)
    }

    /// A free one. Threads begin their searches in different places.
    pub(crate) fn take(arena: &Arena, who: Who) -> Option<Self> {
        let index = arena.take((who.serial as usize).wrapping_mul(13))?;
        Self::of(arena, index)
    }

    /// That of this index, if there is one.
    fn of(arena: &Arena, index: usize) -> Option<Self> {
        arena.chunk(index).map(|offset| Self { index, offset })
    }

    fn has_header(&self, arena: &Arena) -> bool {
        arena.read(self.offset + chunk::CLOCK) == arena.clock() as u32
    }

    /// Says whose it is.
    pub(crate) fn write_header(&self, arena: &Arena, who: Who, time: u64) {
        arena.write(self.offset + chunk::PID, who.pid);
        arena.write(self.offset + chunk::TID, who.tid);
        arena.write(self.offset + chunk::SERIAL, who.serial);
        arena.write(self.offset + chunk::SEQUENCE, who.sequence);
        arena.write_wide(self.offset + chunk::TIME, time);
        arena.write_wide(self.offset + chunk::CPU_NS, u64::MAX);
        arena.write_wide(self.offset + chunk::STACK, 0);
        // Last, so that whoever sees it sees the rest.
        arena.publish(self.offset + chunk::CLOCK, arena.clock() as u32);
    }

    /// In place of words: a node of a tree, of those that there is room for.
    pub(crate) fn put_node(&self, arena: &Arena, at: usize, wides: &[u64; NODE / 8]) {
        if at < arena.nodes_of_chunk() {
            let start = self.offset + chunk::WORDS + at * NODE;
            for (number, wide) in wides.iter().enumerate() {
                arena.write_wide(start + number * 8, *wide);
            }
        }
    }

    /// Gives it to the host with so many nodes, whose sums are those of a span of time.
    pub(crate) fn hand_over_nodes(
        &self,
        arena: &Arena,
        who: Who,
        (first, count): (u32, u32),
        (begin, end): (u64, u64),
        began: u64,
        mended: u64,
    ) {
        arena.write(self.offset + chunk::PID, who.pid);
        arena.write(self.offset + chunk::TID, who.tid);
        arena.write(self.offset + chunk::SERIAL, who.serial);
        arena.write(self.offset + piece::FIRST, first);
        arena.write(self.offset + piece::COUNT, count);
        arena.write_wide(self.offset + piece::BEGIN, begin);
        arena.write_wide(self.offset + piece::END, end);
        arena.write_wide(self.offset + piece::BEGAN, began);
        arena.write_wide(self.offset + piece::MENDED, mended);
        arena.publish(self.offset + chunk::CLOCK, OF_TREE);
        arena.hand_over(self.index);
    }

    /// In place of words: an arc or a span, of those that there is room for; the words, then the addresses, of its
    /// two places.
    pub(crate) fn put_item(&self, arena: &Arena, at: usize, words: [u32; 2], wides: [u64; 3]) {
        if at < arena.items_of_chunk() {
            let start = self.offset + chunk::WORDS + at * item::SIZE;
            arena.write(start + item::FROM_WORD, words[0]);
            arena.write(start + item::TO_WORD, words[1]);
            for (offset, wide) in [item::FROM, item::TO, item::COUNT].into_iter().zip(wides) {
                arena.write_wide(start + offset, wide);
            }
        }
    }

    /// Gives it to the host with so many arcs, and items in all, whose sums are those of a span of time.
    pub(crate) fn hand_over_items(
        &self,
        arena: &Arena,
        who: Who,
        (arcs, count): (u32, u32),
        (begin, end): (u64, u64),
        lost: u64,
    ) {
        arena.write(self.offset + chunk::PID, who.pid);
        arena.write(self.offset + chunk::TID, who.tid);
        arena.write(self.offset + chunk::SERIAL, who.serial);
        arena.write(self.offset + items::ARCS, arcs);
        arena.write(self.offset + items::COUNT, count);
        arena.write_wide(self.offset + items::BEGIN, begin);
        arena.write_wide(self.offset + items::END, end);
        arena.write_wide(self.offset + items::LOST, lost);
        arena.publish(self.offset + chunk::CLOCK, OF_ARCS);
        arena.hand_over(self.index);
    }

    /// Where there is no more room.
    pub(crate) fn end(&self, arena: &Arena) -> *mut u32 {
        arena.place(self.offset, arena.capacity() - TAIL)
    }

    /// Words written, where the next one would go to `next`.
    pub(crate) fn used(&self, arena: &Arena, next: *mut u32) -> usize {
        (next as usize).saturating_sub(arena.place(self.offset, 0) as usize) / 4
    }

    /// Gives it to the host, with a word behind the last that ends it, and before that a gap of this reason, if
    /// there is one.
    pub(crate) fn hand_over(&self, arena: &Arena, next: *mut u32, reason: Option<u32>) {
        let mut at = self.used(arena, next).min(arena.capacity() - TAIL);
        let mut put = |word| {
            // SAFETY: within the chunk, since places are kept behind the last word.
            unsafe { arena.place(self.offset, at).write_volatile(word) };
            at += 1;
        };
        if let Some(reason) = reason {
            compose::gap(reason, 0, 0, 0, 0).into_iter().for_each(&mut put);
        }
        put(word::escape(code::PAD, 0));
        arena.hand_over(self.index);
    }
}
