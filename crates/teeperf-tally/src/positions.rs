//! Where a thread was when it made a mark (`setjmp`), and where it is on stacks that it left: a few records in
//! the tree's memory, found by key. When there is no room, a new one takes the place of another; who looks for
//! that finds nothing, and frames are mended at a later return.

use crate::memory::{Memory, Node};
use teeperf_wire::tree::record;

/// A place in the tree: the node on top, of those that found room, the frames above it that did not, and, where
/// calls are folded, how many frames are open up to that node. From memory: only the node is within bounds.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    pub(crate) top: Node,
    pub(crate) swallowed: u32,
    pub(crate) depth: u32,
}

/// Of marks or of stacks: each has half of the memory's records.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Mark,
    Stack,
}

/// A key is looked for in so many records.
const TRIES: u32 = 8;

/// Keeps a position under a key, with the stack it is on.
pub(crate) fn keep(memory: Memory, kind: Kind, key: u64, stack: u64, position: Position) {
    let records = || near(memory, kind, key);
    let is_keys = |there: &Node| there.wide(record::KEY) == name(key);
    let is_free = |there: &Node| there.wide(record::KEY) == 0;
    let there = records().find(is_keys).or_else(|| records().find(is_free));
    // Whoever is pushed out is the one that the key's own sum points to.
    let Some(there) = there.or_else(|| records().next()) else { return };
    // Whoever finds the key finds what it stands for, unless a handler comes in between.
    there.set(record::KEY, 0);
    there.set(record::STACK, stack);
    there.put(record::TOP, memory.index(position.top));
    there.put(record::SWALLOWED, position.swallowed);
    there.put(record::DEPTH, position.depth);
    there.set(record::KEY, name(key));
}

/// The position kept under a key, and its stack.
pub(crate) fn find(memory: Memory, kind: Kind, key: u64) -> Option<(Position, u64)> {
    let there = near(memory, kind, key).find(|there| there.wide(record::KEY) == name(key))?;
    let position = Position {
        top: memory.node(there.get(record::TOP)),
        swallowed: there.get(record::SWALLOWED),
        depth: there.get(record::DEPTH),
    };
    let stack = there.wide(record::STACK);
    // A handler may have kept another there meanwhile.
    (there.wide(record::KEY) == name(key)).then_some((position, stack))
}

/// Forgets what is kept under a key.
pub(crate) fn forget(memory: Memory, kind: Kind, key: u64) {
    if let Some(there) = near(memory, kind, key).find(|there| there.wide(record::KEY) == name(key))
    {
        there.set(record::KEY, 0);
    }
}

/// Forgets all that is kept, of both kinds.
pub(crate) fn forget_all(memory: Memory) {
    for there in (0..memory.records()).filter_map(|at| memory.record(at)) {
        there.set(record::KEY, 0);
    }
}

/// As it stands in a record, never 0.
fn name(key: u64) -> u64 {
    key.wrapping_add(1).max(1)
}

/// The records that a key may be in.
fn near(memory: Memory, kind: Kind, key: u64) -> impl Iterator<Item = Node> {
    let count = memory.records() / 2;
    let begin = match kind {
        Kind::Mark => 0,
        Kind::Stack => count,
    };
    // Fibonacci hashing, see `tree`.
    let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let first = ((hash * u64::from(count)) >> 32) as u32;
    let wrapped = move |at: u32| if at < count { at } else { at - count };
    (0..TRIES.min(count)).filter_map(move |n| memory.record(begin + wrapped(first + n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of a test of many. Miri is some hundred times slower.
    const MANY: u64 = if cfg!(miri) { 20 } else { 10_000 };

    fn memory(bytes: usize) -> Memory {
        let memory = vec![0u64; bytes / 8].leak();
        // SAFETY: memory that nobody else has.
        unsafe { Memory::new(memory.as_mut_ptr().cast(), bytes, false) }.unwrap()
    }

    fn at(memory: Memory, index: u32) -> Position {
        Position { top: memory.node(index), swallowed: index + 1, depth: index + 2 }
    }

    fn found(memory: Memory, kind: Kind, key: u64) -> Option<(u32, u32, u32, u64)> {
        let (position, stack) = find(memory, kind, key)?;
        Some((memory.index(position.top), position.swallowed, position.depth, stack))
    }

    #[test]
    fn what_was_kept_last_is_found() {
        let memory = memory(1 << 16);
        for key in [0, 1, 7, u64::MAX] {
            keep(memory, Kind::Mark, key, 4, at(memory, 9));
            keep(memory, Kind::Mark, key, 5, at(memory, 3));
            assert_eq!(found(memory, Kind::Mark, key), Some((3, 4, 5, 5)));
            assert_eq!(found(memory, Kind::Stack, key), None);
        }
        forget(memory, Kind::Mark, 7);
        assert_eq!(found(memory, Kind::Mark, 7), None);
        assert!(found(memory, Kind::Mark, 1).is_some());
    }

    #[test]
    fn the_last_of_many_are_found_and_none_is_another() {
        for bytes in [1504, 4096, 1 << 16] {
            let memory = memory(bytes);
            for key in 0..MANY {
                keep(memory, Kind::Stack, key, key, at(memory, key as u32 % 16));
                let last = found(memory, Kind::Stack, key);
                assert_eq!(last.is_some(), memory.records() > 1);
            }
            let kept = (0..MANY).filter(|&key| found(memory, Kind::Stack, key).is_some());
            assert!(kept.count() as u32 <= memory.records() / 2);
        }
    }
}
