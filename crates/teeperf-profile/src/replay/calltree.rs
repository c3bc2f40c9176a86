//! The tree of a thread, or of several: a [`Tree`] with counts that do not overflow and a
//! limit on how many call paths there can be.

use std::collections::HashMap;

use super::stack::MAX_DEPTH;
use super::tree::{Tree, pseudo};

/// See the module.
#[derive(Debug)]
pub(crate) struct CallTree {
    /// Its nodes; the root is node 0.
    pub(crate) tree: Tree,
    /// Process whose sites the words are.
    pub(crate) process: u32,
    /// Calls beyond 32 bits, in units of 2^32, by node.
    carried: HashMap<u32, u64>,
}

impl CallTree {
    /// An empty tree.
    pub(crate) fn new(process: u32) -> Self {
        let mut tree = Tree::default();
        tree.add_root();
        Self { tree, process, carried: HashMap::new() }
    }

    /// Calls of a node.
    pub(crate) fn calls(&self, node: u32) -> u64 {
        let low = u64::from(self.tree.nodes()[node as usize].calls);
        low + (self.carried.get(&node).copied().unwrap_or(0) << 32)
    }

    /// Adds calls and clock units to a node.
    pub(crate) fn count(&mut self, node: u32, calls: u64, time: u64) {
        let there = &mut self.tree.nodes_mut()[node as usize];
        there.time = there.time.wrapping_add(time);
        let sum = u64::from(there.calls) + calls;
        there.calls = sum as u32;
        if sum >> 32 != 0 {
            *self.carried.entry(node).or_default() += sum >> 32;
        }
    }

    /// The child of a node, made if there is none; `[too deep]` where a limit is reached.
    pub(crate) fn child(&mut self, paths_left: &mut usize, parent: u32, word: u32) -> u32 {
        let above = self.tree.nodes()[parent as usize];
        if above.word == pseudo::TOO_DEEP {
            return parent;
        }
        if let Some(child) = self.tree.find(parent, word) {
            return child;
        }
        if *paths_left == 0 {
            return self.tree.child(0, pseudo::TOO_DEEP);
        }
        *paths_left -= 1;
        if above.depth >= MAX_DEPTH {
            return self.tree.child(parent, pseudo::TOO_DEEP);
        }
        self.tree.add(parent, word)
    }

    /// Adds the calls and times of another tree of the same process. Gives the number here
    /// of each node there.
    pub(crate) fn absorb(&mut self, paths_left: &mut usize, other: &Self) -> Vec<u32> {
        let mut numbers: Vec<u32> = Vec::with_capacity(other.tree.nodes().len());
        for (i, node) in other.tree.nodes().iter().enumerate() {
            let here = match node.word {
                pseudo::ROOT => 0,
                word => self.child(paths_left, numbers[node.parent as usize], word),
            };
            self.count(here, other.calls(i as u32), node.time);
            numbers.push(here);
        }
        numbers
    }
}
