//! Ways back from calls of functions that were open already, when those are folded: for each node a stack of
//! the nodes it was called from, in which one after the other that is the same is counted. So of a recursion
//! through however many functions each node has one way, however deep it goes.
//!
//! A signal handler that comes in between leaves each stack as it was. Which ways are free it may change.

use crate::memory::{Memory, Node, Whole};
use teeperf_wire::tree::{node, way};

/// In [`node::OPEN`]: a call is open, and none beside it.
const ONE: u32 = 1;

/// Ways that are free, of the memory's: in the lower half one more than the number of the first that is free again,
/// in the upper half the number of the first that never was used. One number, since who interrupts a change gives
/// back what it has taken, in turn: where this is as it was before, so is all that it leads to.
pub(crate) struct Ways(Whole);

impl Ways {
    pub(crate) const fn new() -> Self {
        Self(Whole::new(0))
    }

    /// Whether a call of this node is open.
    pub(crate) fn is_open(there: Node) -> bool {
        there.get(node::OPEN) > 0
    }

    /// A call of a node of which none was open.
    pub(crate) fn open(there: Node) {
        there.put(node::OPEN, ONE);
    }

    /// A further call, from another node; says whether there was room.
    pub(crate) fn push(&self, memory: Memory, there: Node, from: Node) -> bool {
        let open = there.get(node::OPEN);
        let from = memory.index(from);
        if let Some(last) = open.checked_sub(ONE + 1).and_then(|last| memory.way(last)) {
            let times = last.get(way::TIMES);
            if last.get(way::TO) == from && times < u32::MAX {
                last.put(way::TIMES, times + 1);
                return true;
            }
        }
        let Some((number, fresh)) = self.take(memory) else { return false };
        fresh.put(way::TO, from);
        fresh.put(way::TIMES, 1);
        fresh.put(way::NEXT, open.saturating_sub(ONE));
        there.put(node::OPEN, number + 1 + ONE);
        true
    }

    /// The only call of a node that is open ends.
    pub(crate) fn close(there: Node) {
        there.put(node::OPEN, 0);
    }

    /// The last call of a node ends: the node to go back to, or nothing where it is the first.
    pub(crate) fn pop(&self, memory: Memory, there: Node) -> Option<Node> {
        let number = there.get(node::OPEN).checked_sub(ONE + 1)?;
        let last = memory.way(number)?;
        let (to, times) = (memory.node(last.get(way::TO)), last.get(way::TIMES));
        if times > 1 {
            last.put(way::TIMES, times - 1);
        } else {
            there.put(node::OPEN, last.get(way::NEXT).saturating_add(ONE));
            self.give_back(number, last);
        }
        Some(to)
    }

    fn give_back(&self, number: u32, way: Node) {
        loop {
            let before = self.0.get();
            way.put(way::NEXT, before as u32);
            if self.0.replace(before, before >> 32 << 32 | u64::from(number + 1)) {
                return;
            }
        }
    }

    fn take(&self, memory: Memory) -> Option<(u32, Node)> {
        loop {
            let before = self.0.get();
            let unused = (before >> 32) as u32;
            let (number, after) = match (before as u32).checked_sub(1) {
                Some(number) => {
                    (number, before >> 32 << 32 | u64::from(memory.way(number)?.get(way::NEXT)))
                }
                None => (unused, u64::from(unused + 1) << 32),
            };
            let taken = memory.way(number)?;
            if self.0.replace(before, after) {
                return Some((number, taken));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        let bytes = 4096;
        let memory = vec![0u64; bytes / 8].leak();
        // SAFETY: memory that nobody else has.
        unsafe { Memory::new(memory.as_mut_ptr().cast(), bytes, true) }.unwrap()
    }

    fn back(memory: Memory, ways: &Ways, there: Node) -> Option<u32> {
        let to = ways.pop(memory, there);
        if to.is_none() {
            Ways::close(there);
        }
        to.map(|to| memory.index(to))
    }

    #[test]
    fn ways_come_back_in_turn_for_each_node() {
        let (memory, ways) = (memory(), Ways::new());
        let [a, b] = [7, 8].map(|index| memory.node(index));
        Ways::open(a);
        Ways::open(b);
        for from in [3, 3, 3, 5, 3] {
            assert!(ways.push(memory, a, memory.node(from)));
            assert!(ways.push(memory, b, memory.node(from + 1)));
        }
        for from in [3, 5, 3, 3, 3] {
            assert_eq!(back(memory, &ways, a), Some(from));
            assert_eq!(back(memory, &ways, b), Some(from + 1));
        }
        assert!(Ways::is_open(a));
        assert_eq!(back(memory, &ways, a), None);
        assert!(!Ways::is_open(a));
    }

    #[test]
    fn there_is_an_end_to_them_and_they_are_used_again() {
        let (memory, ways) = (memory(), Ways::new());
        let there = memory.node(7);
        for _ in 0..2 {
            Ways::open(there);
            let pushed = (0..).take_while(|from| ways.push(memory, there, memory.node(from % 40)));
            let pushed = pushed.count() as u32;
            assert_eq!(pushed, 12, "192 bytes");
            assert!(ways.push(memory, there, memory.node(pushed - 1)), "the same once more");
            assert_eq!(back(memory, &ways, there), Some(pushed - 1));
            for from in (0..pushed).rev() {
                assert_eq!(back(memory, &ways, there), Some(from));
            }
            assert_eq!(back(memory, &ways, there), None);
        }
    }

    /// Who else writes the memory makes it wrong, and no more.
    #[test]
    fn ways_that_lead_nowhere() {
        let (memory, ways) = (memory(), Ways::new());
        let there = memory.node(7);
        there.put(node::OPEN, u32::MAX);
        assert!(ways.push(memory, there, memory.node(3)));
        memory.way(0).unwrap().put(way::NEXT, u32::MAX);
        memory.way(0).unwrap().put(way::TO, u32::MAX);
        assert_eq!(back(memory, &ways, there), Some(0));
        assert_eq!(back(memory, &ways, there), None);
        memory.way(0).unwrap().put(way::NEXT, 99);
        Ways::open(there);
        assert!(ways.push(memory, there, memory.node(3)));
        assert!(!ways.push(memory, there, memory.node(4)));
    }
}
