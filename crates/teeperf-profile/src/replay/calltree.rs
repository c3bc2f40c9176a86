//! The tree of a thread, or of several: a [`Tree`] with counts that do not overflow and a
//! limit on how many call paths there can be. Beyond it, calls are counted by function alone:
//! all such functions stand side by side below one node, `[beyond limits]`, and what one of them
//! calls stands there too.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::hits::Spent;
use super::stack::MAX_DEPTH;
use crate::lengths::Lengths;

use super::tree::{FLAT, Tree, pseudo};

/// Functions that may stand below `[beyond limits]`, in all trees.
const MAX_FLAT: usize = 1 << 20;

/// Histograms of lengths, in all trees: a few KiB each.
const MAX_LENGTHS: usize = 1 << 17;

/// What may yet be made, in all trees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    paths: usize,
    flat: usize,
    /// Histograms of lengths.
    lengths: usize,
    /// Calls for whose lengths there was none.
    pub(crate) untimed: u64,
}

impl Room {
    /// For this many call paths.
    pub(crate) fn new(paths: usize) -> Self {
        Self { paths, flat: MAX_FLAT, lengths: MAX_LENGTHS, untimed: 0 }
    }

    fn lengths_in<'a>(
        &mut self,
        all: &'a mut HashMap<u32, Lengths>,
        word: u32,
        calls: u64,
    ) -> Option<&'a mut Lengths> {
        match all.entry(word) {
            Entry::Occupied(there) => Some(there.into_mut()),
            Entry::Vacant(_) if self.lengths == 0 => {
                self.untimed = self.untimed.saturating_add(calls);
                None
            }
            Entry::Vacant(free) => {
                self.lengths -= 1;
                Some(free.insert(Lengths::default()))
            }
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct CallTree {
    /// Its nodes; the root is node 0.
    pub(crate) tree: Tree,
    /// Process whose sites the words are.
    pub(crate) process: u32,
    /// Calls beyond 32 bits, in units of 2^32, by node.
    carried: HashMap<u32, u64>,
    /// Clock units of the shortest and the longest call of a node, where that is known.
    extremes: HashMap<u32, (u64, u64)>,
    /// Lengths of calls by word, where calls are timed.
    pub(crate) lengths: HashMap<u32, Lengths>,
    /// Likewise of calls that the counter times, in picoseconds.
    pub(crate) counted: HashMap<u32, Lengths>,
    /// Samples that threads' timers wrote, and waiting.
    pub(crate) spent: Spent,
}

impl CallTree {
    /// An empty tree.
    pub(crate) fn new(process: u32) -> Self {
        let mut tree = Tree::default();
        tree.add_root();
        Self {
            tree,
            process,
            carried: HashMap::new(),
            extremes: HashMap::new(),
            lengths: HashMap::new(),
            counted: HashMap::new(),
            spent: Spent::default(),
        }
    }

    /// Calls of a node.
    pub(crate) fn calls(&self, node: u32) -> u64 {
        let low = u64::from(self.tree.nodes()[node as usize].calls);
        low + (self.carried.get(&node).copied().unwrap_or(0) << 32)
    }

    /// Clock units of the shortest and the longest call of a node, where that is known.
    pub(crate) fn extremes(&self, node: u32) -> Option<(u64, u64)> {
        self.extremes.get(&node).copied()
    }

    /// A node's calls took so long at least and at most.
    pub(super) fn widen(&mut self, node: u32, (least, most): (u64, u64)) {
        let there = self.extremes.entry(node).or_insert((least, most));
        *there = (there.0.min(least), there.1.max(most));
    }

    /// The lengths of calls of this word; nothing when there is no room for them, and then `calls` count as not timed.
    pub(super) fn lengths_of(
        &mut self,
        room: &mut Room,
        word: u32,
        calls: u64,
    ) -> Option<&mut Lengths> {
        room.lengths_in(&mut self.lengths, word, calls)
    }

    /// Likewise those that the counter tells.
    pub(super) fn counted_of(
        &mut self,
        room: &mut Room,
        word: u32,
        calls: u64,
    ) -> Option<&mut Lengths> {
        room.lengths_in(&mut self.counted, word, calls)
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

    /// The child of a node, made if there is none; where a limit is reached, the function below
    /// `[beyond limits]`.
    pub(crate) fn child(&mut self, room: &mut Room, parent: u32, word: u32) -> u32 {
        let depth = self.tree.nodes()[parent as usize].depth;
        // Neither is there a path below a node that is flat.
        if depth < MAX_DEPTH && word != pseudo::BEYOND_LIMITS {
            if let Some(child) = self.tree.find(parent, word) {
                return child;
            }
            if room.paths > 0 {
                room.paths -= 1;
                return self.tree.add(parent, word);
            }
        }
        self.flat(room, word)
    }

    /// The function below `[beyond limits]`, or that itself.
    #[cold]
    fn flat(&mut self, room: &mut Room, word: u32) -> u32 {
        let beyond = match self.tree.find(0, pseudo::BEYOND_LIMITS) {
            Some(there) => there,
            None => self.tree.add_flat(0, pseudo::BEYOND_LIMITS),
        };
        if word == pseudo::BEYOND_LIMITS {
            return beyond;
        }
        match self.tree.find(beyond, word) {
            Some(there) => there,
            None if room.flat == 0 => beyond,
            None => {
                room.flat -= 1;
                self.tree.add_flat(beyond, word)
            }
        }
    }

    /// Adds the calls and times of another tree of the same process, which is to be dropped then:
    /// there is room for all of it. Gives the number here of each node there.
    pub(crate) fn absorb(&mut self, room: &mut Room, other: &Self) -> Vec<u32> {
        let nodes = other.tree.nodes();
        let flat = nodes.iter().filter(|node| node.depth == FLAT).count();
        room.paths += nodes.len() - 1 - flat;
        room.flat += flat.saturating_sub(1);
        let mut numbers: Vec<u32> = Vec::with_capacity(nodes.len());
        for (i, node) in nodes.iter().enumerate() {
            let parent = numbers.get(node.parent as usize).copied().unwrap_or(0);
            let here = match node.word {
                pseudo::ROOT => 0,
                word if node.depth == FLAT => self.flat(room, word),
                word => self.child(room, parent, word),
            };
            self.count(here, other.calls(i as u32), node.time);
            if let Some(extremes) = other.extremes(i as u32) {
                self.widen(here, extremes);
            }
            numbers.push(here);
        }
        self.spent.absorb(&other.spent, |node| numbers.get(node as usize).copied().unwrap_or(0));
        room.lengths += other.lengths.len() + other.counted.len();
        for (&word, lengths) in &other.lengths {
            if let Some(here) = self.lengths_of(room, word, lengths.calls()) {
                here.merge(lengths);
            }
        }
        for (&word, lengths) in &other.counted {
            if let Some(here) = self.counted_of(room, word, lengths.calls()) {
                here.merge(lengths);
            }
        }
        numbers
    }

    /// Calls counted by function alone.
    pub(crate) fn flat_calls(&self) -> u64 {
        let flat = self.tree.nodes().iter().zip(0..).filter(|(node, _)| node.depth == FLAT);
        flat.map(|(_, number)| self.calls(number)).fold(0, u64::saturating_add)
    }
}
