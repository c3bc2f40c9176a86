//! Where to go back to from calls of functions that were open already, when those are folded: a stack of nodes,
//! in which one after the other that is the same is counted.

/// Different nodes on the stack at most.
const MOST: usize = 256;

/// See the module.
pub(crate) struct Ways {
    ways: [(u32, u32); MOST],
    used: usize,
}

impl Ways {
    pub(crate) const fn new() -> Self {
        Self { ways: [(0, 0); MOST], used: 0 }
    }

    /// Says whether there was room.
    pub(crate) fn push(&mut self, node: u32) -> bool {
        if let Some((last, times)) = self.used.checked_sub(1).and_then(|at| self.ways.get_mut(at))
            && *last == node
            && *times < u32::MAX
        {
            *times += 1;
            return true;
        }
        let Some(way) = self.ways.get_mut(self.used) else { return false };
        *way = (node, 1);
        self.used += 1;
        true
    }

    pub(crate) fn pop(&mut self) -> Option<u32> {
        let (node, times) = self.ways.get_mut(self.used.checked_sub(1)?)?;
        *times -= 1;
        if *times == 0 {
            self.used -= 1;
        }
        Some(*node)
    }

    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_come_back_in_turn() {
        let mut ways = Ways::new();
        for node in [3, 3, 3, 5, 3] {
            assert!(ways.push(node));
        }
        let back: Vec<_> = std::iter::from_fn(|| ways.pop()).collect();
        assert_eq!(back, [3, 5, 3, 3, 3]);
    }

    #[test]
    fn there_is_an_end_to_them() {
        let mut ways = Ways::new();
        assert!((0..MOST as u32).all(|node| ways.push(node)));
        assert!(!ways.push(7));
        assert!(ways.push(MOST as u32 - 1), "the same once more");
        assert_eq!(ways.pop(), Some(MOST as u32 - 1));
    }
}
