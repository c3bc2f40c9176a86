//! Call paths of a thread, from pieces of its trees ([`teeperf_wire::arena::piece`]). Several trees may be one
//! thread's: those of all the images that it calls, and of one image each time that it is loaded. They are told apart by
//! when they began, or when they came. What is kept is kept by path, and of a few trees no more than which path the nodes
//! are that came last.

use super::widened;
use crate::trees::{Grown, Growth, least_of, narrow, those_wanted, wide, word_of};
use std::collections::HashMap;
use teeperf_wire::arena::piece;
use teeperf_wire::body::tree::{Header, word};
use teeperf_wire::shared::chunk;
use teeperf_wire::tree::{NODE, OVERFLOW, ROOT, node};

/// See the module.
#[derive(Default)]
pub(super) struct Paths {
    /// Callers come first; of the first one the rest is that of the thread itself. Calls and times are those that were
    /// not written yet.
    nodes: Vec<Grown>,
    /// By caller's path, word and address.
    children: HashMap<(u32, u32, u64), u32>,
    /// Those that pieces came of last, the latest first.
    trees: Vec<Tree>,
    tid: u32,
    /// From when to when what was not written yet is; nothing, where all was.
    span: Option<(u64, u64)>,
    mended: u64,
}

/// A tree that comes in pieces, callers in earlier ones than those that they call.
struct Tree {
    began: u64,
    /// Paths of its nodes, by index.
    numbers: HashMap<u32, u32>,
}

/// Most trees of a thread, as far as there is room.
pub(super) const MOST_TREES: usize = 8;

impl Paths {
    /// How many there are, and indices of nodes if these are more.
    pub(super) fn size(&self) -> usize {
        self.nodes.len().max(self.numbers())
    }

    /// Adds a piece. So many paths there is room for; events on others are returned.
    pub(super) fn add(&mut self, head: &[u64], nodes: &[u64], room: usize) -> u64 {
        let most = self.size().saturating_add(room);
        self.come_to(wide(head, piece::BEGAN));
        if nodes.len() / (NODE / 8) > room {
            self.trees.truncate(1);
        }
        self.tid = narrow(head, chunk::TID);
        self.span = widened(self.span, wide(head, piece::BEGIN), wide(head, piece::END));
        self.mended = self.mended.saturating_add(wide(head, piece::MENDED));
        if self.nodes.is_empty() {
            self.nodes.push(Grown { word: word::FAR, ..Grown::default() });
        }
        let mut lost = 0u64;
        let nodes = nodes.as_chunks::<{ NODE / 8 }>().0;
        let first = narrow(head, piece::FIRST);
        for (index, node) in (first..first.saturating_add(nodes.len() as u32)).zip(nodes) {
            let calls = wide(node, node::CALLS);
            let Some(path) = self.path(index, node, most) else {
                lost = lost.saturating_add(calls.saturating_mul(2));
                continue;
            };
            let path = &mut self.nodes[path as usize];
            path.calls = path.calls.saturating_add(if index == ROOT { 0 } else { calls });
            path.own = path.own.saturating_add(wide(node, node::SELF));
            path.least = match (path.least, least_of(node)) {
                (0, other) | (other, 0) => other,
                (one, other) => one.min(other),
            };
            path.most = path.most.max(wide(node, node::MOST));
        }
        lost
    }

    /// How many nodes of trees are known.
    fn numbers(&self) -> usize {
        self.trees.iter().map(|tree| tree.numbers.len()).sum()
    }

    /// The tree that began then is the first one.
    fn come_to(&mut self, began: u64) {
        if let Some(at) = self.trees.iter().position(|tree| tree.began == began) {
            self.trees[..=at].rotate_right(1);
        } else {
            self.trees.truncate(MOST_TREES - 1);
            self.trees.insert(0, Tree { began, numbers: HashMap::new() });
        }
    }

    /// Path of a node of the first tree, if it is there or finds room.
    fn path(&mut self, index: u32, node: &[u64], most: usize) -> Option<u32> {
        if index == ROOT {
            return Some(0);
        }
        let word = word_of(index, node);
        let address = if word == word::FAR { wide(node, node::ADDRESS) } else { 0 };
        let caller = match narrow(node, node::PARENT) {
            caller if index == OVERFLOW || caller == ROOT || caller >= index => 0,
            caller => match self.trees[0].numbers.get(&caller) {
                Some(&caller) => caller,
                // What it is was in a piece that did not come.
                None => self.child(0, word::FAR, 0, most)?,
            },
        };
        let path = match self.trees[0].numbers.get(&index) {
            Some(&path) if self.is(path, caller, word, address) => path,
            _ => self.child(caller, word, address, most)?,
        };
        if self.numbers() < most || self.trees[0].numbers.contains_key(&index) {
            self.trees[0].numbers.insert(index, path);
        }
        Some(path)
    }

    fn is(&self, path: u32, caller: u32, word: u32, address: u64) -> bool {
        let path = &self.nodes[path as usize];
        (path.parent, path.word, path.address) == (caller, word, address)
    }

    fn child(&mut self, caller: u32, word: u32, address: u64, most: usize) -> Option<u32> {
        let key = (caller, word, address);
        if let Some(&path) = self.children.get(&key) {
            return Some(path);
        }
        if self.nodes.len() >= most {
            return None;
        }
        let path = self.nodes.len() as u32;
        self.nodes.push(Grown { parent: caller, word, address, ..Grown::default() });
        self.children.insert(key, path);
        Some(path)
    }

    /// What was not written yet, if there is anything.
    pub(super) fn take(&mut self, process: u32, serial: u32) -> Option<Growth> {
        let (begin, end) = self.span.take()?;
        let mended = std::mem::take(&mut self.mended);
        let grown = self.take_grown();
        if grown.is_empty() && mended == 0 {
            return None;
        }
        let (thread, tid) = (serial, self.tid);
        let header = Header { process, thread, tid, begin, end, mended, ..Header::default() };
        Some(Growth::of(header, &grown))
    }

    /// Nodes that grew, and their ancestors.
    fn take_grown(&mut self) -> Vec<Grown> {
        let nodes = &mut self.nodes;
        let wanted = those_wanted(
            nodes.len(),
            |at| nodes[at].parent as usize,
            |at| (nodes[at].calls, nodes[at].own) != (0, 0),
        );
        let mut take = |(at, parent): (usize, u32)| {
            let grown = Grown { parent, ..nodes[at] };
            (nodes[at].calls, nodes[at].own) = (0, 0);
            grown
        };
        wanted.into_iter().map(&mut take).collect()
    }
}
