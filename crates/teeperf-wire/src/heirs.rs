//! Memory for children of `fork` that cannot ask for their own: a server's master gives up its rights, or
//! forbids itself system calls, and forks workers then. A process that attaches gets this memory beside
//! its own, and its children inherit the mapping, and theirs. One that cannot reach the recorder claims a
//! **slot**, by nothing but stores, and has the process's segments there. All slots taken, or no system
//! call permitted that says which process it is, it says no more than that it is not recorded.
//!
//! One memfd ([`crate::shared`]): a page, and behind it the slots, each a segment of small chunks and one of
//! large chunks or trees. Neither side believes the other: the runtime reads the shape once, and
//! compares it with the file's size; the recorder asks the system whose process a claim is of.

use crate::shared::{PAGE, segment};

/// u64, [`crate::shared::MAGIC`].
pub const MAGIC: usize = 0;
/// u32 five times, [`Shape`].
pub const SHAPE: usize = 8;
/// u32, one more than what the recorder had drained ([`crate::shared::clock::PROGRESS`]) when a process in a slot
/// found that it drains nothing for as long as a thread waits; 0: none has. A process that would take a slot takes
/// none while that stands: the recorder was killed, most likely.
pub const STALLED: usize = 56;
/// u32 for each [`reason`]: processes that are not recorded.
pub const REFUSED: usize = 64;
/// u32 for each of the latest [`PIDS`] of these, the process's id as it knows itself; 0: it does not.
pub const REFUSED_PIDS: usize = 128;
/// How many ids there is room for.
pub const PIDS: usize = 16;
/// A [`slot`] each.
pub const SLOTS: usize = 1024;
/// Most slots.
pub const MAX_SLOTS: usize = 64;

/// Why a process is not recorded.
pub mod reason {
    /// It could not reach the recorder, and no slot was free.
    pub const NO_SLOT: usize = 0;
    /// A filter of system calls ends a process that asks for its own id.
    pub const FILTERED: usize = 1;
    /// Not a process but a library: a namespace of its own (`dlmopen`) has no runtime.
    pub const NAMESPACE: usize = 2;
    /// How many there are.
    pub const COUNT: usize = 3;
}

/// A slot: byte offsets from its beginning in the first page.
pub mod slot {
    /// Bytes.
    pub const SIZE: usize = 16;
    /// u32, one of the states.
    pub const STATE: usize = 0;
    /// u32, the process's id as it knows itself.
    pub const PID: usize = 4;
    /// u32, that of the process that it was forked from, likewise.
    pub const PARENT: usize = 8;

    /// All of the slot is zero.
    pub const FREE: u32 = 0;
    /// A process has it, and has not yet said which.
    pub const CLAIMED: u32 = 1;
    /// It has said so, and records.
    pub const READY: u32 = 2;
}

/// What slots there are, and what is in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Slots.
    pub slots: u32,
    /// Small chunks in each.
    pub small: u32,
    /// Bytes of a large chunk, or of a tree's memory.
    pub second_size: u32,
    /// How many of these in each.
    pub second: u32,
    /// Whether they are trees.
    pub of_trees: bool,
}

impl Shape {
    /// As numbers, from [`SHAPE`] on.
    pub const fn encode(self) -> [u32; 5] {
        [self.slots, self.small, self.second_size, self.second, self.of_trees as u32]
    }

    /// From numbers; nothing where there is no such memory.
    pub fn decode([slots, small, second_size, second, of_trees]: [u32; 5]) -> Option<Self> {
        let shape = Self { slots, small, second_size, second, of_trees: of_trees == 1 };
        (of_trees <= 1 && shape.size().is_some()).then_some(shape)
    }

    /// Bytes of the memory.
    pub fn size(self) -> Option<usize> {
        let slots = Some(self.slots as usize).filter(|&slots| slots <= MAX_SLOTS)?;
        self.slot_size()?.checked_mul(slots)?.checked_add(PAGE)
    }

    /// Where a slot's two segments begin.
    pub fn segments(self, slot: usize) -> Option<[usize; 2]> {
        (slot < self.slots as usize).then_some(())?;
        let first = PAGE + slot * self.slot_size()?;
        Some([first, first + self.first_size()?])
    }

    /// Bytes of one slot.
    pub fn slot_size(self) -> Option<usize> {
        self.first_size()?.checked_add(self.second_size()?)
    }

    fn first_size(self) -> Option<usize> {
        segment::size(segment::SMALL_CHUNK, self.small as usize)
    }

    fn second_size(self) -> Option<usize> {
        let (size, count) = (self.second_size as usize, self.second as usize);
        if self.of_trees { segment::size_of_trees(size, count) } else { segment::size(size, count) }
    }
}

const _: () = assert!(SLOTS + MAX_SLOTS * slot::SIZE <= PAGE);
const _: () = assert!(REFUSED + 4 * reason::COUNT <= REFUSED_PIDS);
const _: () = assert!(REFUSED_PIDS + 4 * PIDS <= SLOTS);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_shape_is_one_whose_slots_lie_in_it(numbers: [u32; 5]) {
            if let Some(shape) = Shape::decode(numbers) {
                prop_assert_eq!(shape.encode(), numbers);
                let size = shape.size().unwrap();
                for slot in 0..shape.slots as usize {
                    let [first, second] = shape.segments(slot).unwrap();
                    prop_assert!(PAGE <= first && first < second);
                    prop_assert!(first + shape.slot_size().unwrap() <= size);
                }
                prop_assert_eq!(shape.segments(shape.slots as usize), None);
            }
        }
    }

    #[test]
    fn slots_follow_each_other() {
        let large = segment::LARGE_CHUNK as u32;
        let numbers = [3, 31, large, 6, 0];
        let shape = Shape::decode(numbers).unwrap();
        let (first, second) = (32 * PAGE, PAGE + 6 * segment::LARGE_CHUNK);
        assert_eq!(shape.size(), Some(PAGE + 3 * (first + second)));
        assert_eq!(shape.segments(0), Some([PAGE, PAGE + first]));
        let behind = PAGE + first + second;
        assert_eq!(shape.segments(1), Some([behind, behind + first]));
        for (at, number) in [(0, 65), (1, 0), (1, 257), (2, 4), (3, 0), (4, 2)] {
            let mut wrong = numbers;
            wrong[at] = number;
            assert_eq!(Shape::decode(wrong), None, "{wrong:?}");
        }
    }
}
