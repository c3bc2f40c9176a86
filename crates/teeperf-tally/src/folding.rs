//! Where to go back to from calls of functions that were open already, when those are folded: a stack of nodes,
//! in which one after the other that is the same is counted.

use crate::memory::Memory;
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;

/// See the module.
pub(crate) struct Ways {
    used: Cell<u32>,
}

impl Ways {
    pub(crate) const fn new() -> Self {
        Self { used: Cell::new(0) }
    }

    /// Says whether there was room.
    pub(crate) fn push(&self, memory: Memory, node: u32) -> bool {
        let used = self.used.get();
        if used > 0 {
            let [last, times] = memory.way(used - 1);
            let so_often = times.load(Relaxed);
            if last.load(Relaxed) == node && so_often < u32::MAX {
                times.store(so_often + 1, Relaxed);
                return true;
            }
        }
        if used >= memory.ways() {
            return false;
        }
        let [last, times] = memory.way(used);
        last.store(node, Relaxed);
        times.store(1, Relaxed);
        self.used.set(used + 1);
        true
    }

    pub(crate) fn pop(&self, memory: Memory) -> Option<u32> {
        let used = self.used.get().checked_sub(1)?;
        let [last, times] = memory.way(used);
        let so_often = times.load(Relaxed);
        times.store(so_often.wrapping_sub(1), Relaxed);
        if so_often <= 1 {
            self.used.set(used);
        }
        Some(last.load(Relaxed))
    }

    pub(crate) fn clear(&self) {
        self.used.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        let bytes = 4096;
        let memory = vec![0u64; bytes / 8].leak();
        // SAFETY: memory that nobody else has.
        unsafe { Memory::new(memory.as_mut_ptr().cast(), bytes) }.unwrap()
    }

    #[test]
    fn ways_come_back_in_turn() {
        let (memory, ways) = (memory(), Ways::new());
        for node in [3, 3, 3, 5, 3] {
            assert!(ways.push(memory, node));
        }
        let back: Vec<_> = std::iter::from_fn(|| ways.pop(memory)).collect();
        assert_eq!(back, [3, 5, 3, 3, 3]);
    }

    #[test]
    fn there_is_an_end_to_them() {
        let (memory, ways) = (memory(), Ways::new());
        assert!((0..memory.ways()).all(|node| ways.push(memory, node)));
        assert!(!ways.push(memory, 7));
        assert!(ways.push(memory, memory.ways() - 1), "the same once more");
        assert_eq!(ways.pop(memory), Some(memory.ways() - 1));
    }
}
