//! A calling-context tree while it grows: finds or makes the child of a node in a few
//! nanoseconds. Made for the innermost loop of replay: one half cache line for each node,
//! recently called children first, and a hash index behind that, so that a node with a
//! million children costs no more than one with twenty.
//!
//! Functions are words here ([`teeperf_wire::word::call`]), or one of [`pseudo`].

use std::hash::{BuildHasher, Hasher, RandomState};

/// Words of nodes that are no function of a window. All are escapes, so none is ever a call.
pub(crate) mod pseudo {
    use teeperf_wire::word::ESCAPE_BASE;

    /// Code outside every window: [`FAR`] and twice its number.
    pub(crate) const FAR: u32 = ESCAPE_BASE;
    /// Most such functions in one recording.
    pub(crate) const MAX_FAR: u32 = 1 << 20;
    /// Frames whose calls were not recorded.
    pub(crate) const UNKNOWN: u32 = 0xFF00_0000;
    /// Frames beyond the limits on depth and on call paths; below it functions stand flat.
    pub(crate) const BEYOND_LIMITS: u32 = 0xFF00_0002;
    /// Functions below it found no room on their own paths in the tree that summed them.
    pub(crate) const NO_ROOM: u32 = 0xFF00_0004;
    /// The kernel, below code that called it.
    pub(crate) const KERNEL: u32 = 0xFF00_0006;
    /// CPU time of which no sample tells.
    pub(crate) const NO_SAMPLE: u32 = 0xFF00_000A;
    /// Code that no file has.
    pub(crate) const NO_FILE: u32 = 0xFF00_0008;
    /// No frame: the ground under a stack. No return word ends it.
    pub(crate) const ROOT: u32 = 0xFFFF_FFFE;
}

/// A call path. `repr(C, align(32))`: two nodes in a cache line, none across two.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct Node {
    /// Call word of the function.
    pub(crate) word: u32,
    /// Node of the caller; of a root, itself.
    pub(crate) parent: u32,
    /// Child called last, 0 if none: node 0 is always a root, so never a child.
    child: u32,
    /// Next child of the same parent, 0 if none.
    sibling: u32,
    /// Clock units spent in the function itself.
    pub(crate) time: u64,
    /// Times called.
    pub(crate) calls: u32,
    /// Frames from the root, which has none; [`FLAT`] where it is not told.
    pub(crate) depth: u32,
}

/// Depth of nodes that tell no call path: `[beyond limits]`, and a function below it, by whomever
/// it was called.
pub(crate) const FLAT: u32 = u32::MAX;

/// Children looked at one by one before the index is asked.
const WALK: u32 = 12;
/// Places of the cache, as a power of two: 16 KiB, which leaves room beside it in a core's
/// fastest memory.
const CACHE_BITS: u32 = 12;

/// Nodes, parents before children.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// Open-addressed table of node numbers by parent and word, 0 for an empty place.
    index: Vec<u32>,
    /// Nodes that are in the index, all of those made before this number.
    indexed: usize,
    /// Odd, and not known to whoever made the recording.
    seed: u64,
    /// Nodes found last, by parent and word: where the children of a node take turns, this
    /// finds them without a walk. 0, a root, is never what is looked for. May be empty.
    cache: Vec<u32>,
}

impl Default for Tree {
    fn default() -> Self {
        let seed = RandomState::new().build_hasher().finish() | 1;
        Self { nodes: Vec::new(), index: Vec::new(), indexed: 0, seed, cache: Vec::new() }
    }
}

impl Tree {
    /// Forgets all nodes, keeps the memory, and makes ready for very many calls.
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.index.clear();
        self.indexed = 0;
        self.cache.clear();
        self.cache.resize(1 << CACHE_BITS, 0);
    }

    /// A new root.
    pub(crate) fn add_root(&mut self) -> u32 {
        let root = self.nodes.len() as u32;
        self.nodes.push(Node {
            word: pseudo::ROOT,
            parent: root,
            child: 0,
            sibling: 0,
            time: 0,
            calls: 0,
            depth: 0,
        });
        root
    }

    /// The nodes.
    #[inline(always)]
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes, to count calls and time in them.
    #[inline(always)]
    pub(crate) fn nodes_mut(&mut self) -> &mut [Node] {
        &mut self.nodes
    }

    /// The child of `parent` with this word, made if there is none.
    #[inline(always)]
    pub(crate) fn child(&mut self, parent: u32, word: u32) -> u32 {
        let first = self.nodes[parent as usize].child;
        // Without children this looks at node 0, a root, whose word is no call's.
        if self.nodes[first as usize].word == word { first } else { self.other_child(parent, word) }
    }

    /// As [`Tree::child`], when it is not the one called last.
    #[inline(never)]
    pub(crate) fn other_child(&mut self, parent: u32, word: u32) -> u32 {
        let mix = parent.wrapping_mul(0x9E37_79B1) ^ word.wrapping_mul(0x85EB_CA6B);
        let place = (mix >> (32 - CACHE_BITS)) as usize;
        if let Some(&cached) = self.cache.get(place) {
            let node = &self.nodes[cached as usize];
            if node.word == word && node.parent == parent {
                return cached;
            }
        }
        let found = self.find(parent, word).unwrap_or_else(|| self.add(parent, word));
        if let Some(cached) = self.cache.get_mut(place) {
            *cached = found;
        }
        found
    }

    /// The child of `parent` with this word.
    #[inline(always)]
    pub(crate) fn find(&mut self, parent: u32, word: u32) -> Option<u32> {
        let first = self.nodes[parent as usize].child;
        let mut before = 0;
        let mut at = first;
        for _ in 0..WALK {
            if at == 0 {
                return None;
            }
            let node = self.nodes[at as usize];
            if node.word == word {
                if at != first {
                    self.nodes[before as usize].sibling = node.sibling;
                    self.nodes[at as usize].sibling = first;
                    self.nodes[parent as usize].child = at;
                }
                return Some(at);
            }
            before = at;
            at = node.sibling;
        }
        if at == 0 { None } else { self.find_in_index(parent, word) }
    }

    /// A new child of `parent`; there must be none with this word.
    #[inline(always)]
    pub(crate) fn add(&mut self, parent: u32, word: u32) -> u32 {
        let new = self.nodes.len() as u32;
        let above = &mut self.nodes[parent as usize];
        let node = Node {
            word,
            parent,
            child: 0,
            sibling: above.child,
            time: 0,
            calls: 0,
            depth: above.depth.saturating_add(1),
        };
        above.child = new;
        self.nodes.push(node);
        new
    }

    /// As [`Tree::add`]; the child tells no call path.
    pub(crate) fn add_flat(&mut self, parent: u32, word: u32) -> u32 {
        let new = self.add(parent, word);
        self.nodes[new as usize].depth = FLAT;
        new
    }

    /// Brings the index up to date and asks it. Most trees never come here.
    #[cold]
    fn find_in_index(&mut self, parent: u32, word: u32) -> Option<u32> {
        if self.index.len() < 2 * self.nodes.len() {
            self.index.clear();
            self.index.resize((4 * self.nodes.len()).next_power_of_two(), 0);
            self.indexed = 0;
        }
        let mask = self.index.len() - 1;
        let shift = self.index.len().leading_zeros() + 1;
        for number in self.indexed..self.nodes.len() {
            let node = &self.nodes[number];
            if node.word == pseudo::ROOT {
                continue;
            }
            let mut place = self.slot(node.parent, node.word, shift);
            while self.index[place] != 0 {
                place = (place + 1) & mask;
            }
            self.index[place] = number as u32;
        }
        self.indexed = self.nodes.len();
        let mut place = self.slot(parent, word, shift);
        loop {
            let found = self.index[place];
            if found == 0 {
                return None;
            }
            let node = &self.nodes[found as usize];
            if node.parent == parent && node.word == word {
                return Some(found);
            }
            place = (place + 1) & mask;
        }
    }

    /// Multiply-shift hashing: with a seed that is not known, no input fills one place.
    fn slot(&self, parent: u32, word: u32, shift: u32) -> usize {
        let key = u64::from(parent) << 32 | u64::from(word);
        (key.wrapping_mul(self.seed) >> shift) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn a_child_is_found_again(calls in proptest::collection::vec((0usize..40, 1u32..200), 0..2000), cached: bool) {
            let mut tree = Tree::default();
            if cached {
                tree.clear();
            }
            tree.add_root();
            let mut known: HashMap<(u32, u32), u32> = HashMap::new();
            let mut made = vec![0];
            for (parent, word) in calls {
                let parent = made[parent % made.len()];
                let got = tree.child(parent, word);
                let expected = *known.entry((parent, word)).or_insert(got);
                prop_assert_eq!(got, expected);
                if !made.contains(&got) {
                    made.push(got);
                    prop_assert_eq!(tree.nodes()[got as usize].depth, tree.nodes()[parent as usize].depth + 1);
                }
            }
            prop_assert_eq!(tree.nodes().len(), known.len() + 1);
        }
    }

    #[test]
    fn a_million_children_are_no_list() {
        let mut tree = Tree::default();
        tree.add_root();
        for round in 0..3u32 {
            for word in 1..300_000 {
                assert_eq!(tree.child(0, word), word, "{round}");
            }
        }
    }

    #[test]
    fn a_node_is_half_a_cache_line() {
        assert_eq!(size_of::<Node>(), 32);
    }
}
