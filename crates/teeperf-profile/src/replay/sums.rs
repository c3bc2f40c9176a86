//! Sums that a thread's own tree brings, put together: packets of one thread add up, in whatever order.

use std::collections::BTreeMap;

use teeperf_wire::body::tree::{Header, word};

use super::apply::Shared;
use super::calltree::CallTree;
use super::threads::ThreadKey;
use super::tree::pseudo;
use crate::trees::{Node, nodes};

/// What the packets of a thread said so far.
#[derive(Debug)]
pub(crate) struct Summed {
    pub(super) tree: CallTree,
    pub(super) tid: u32,
    /// First and last moment.
    pub(super) span: (u64, u64),
    pub(super) calls: u64,
}

/// By thread.
#[derive(Debug, Default)]
pub(crate) struct Sums(pub(super) BTreeMap<ThreadKey, Summed>);

/// Most threads whose sums are told apart; those of later ones go to the last of their process that is.
const MAX_THREADS: usize = 1 << 16;

impl Sums {
    /// Adds a packet, which begins at `offset`.
    pub(super) fn add(&mut self, offset: u64, header: &Header, data: &[u8], shared: &mut Shared) {
        let (nodes, error) = nodes(header, data);
        if let Some(error) = error {
            shared.warnings.add(|| format!("tree at offset {offset}: {error}"));
        }
        let mut key = (header.process, header.thread);
        if self.0.len() >= MAX_THREADS
            && !self.0.contains_key(&key)
            && let Some((&known, _)) = self.0.range(..=key).next_back().or(self.0.iter().next())
        {
            key = known;
        }
        let summed = self.0.entry(key).or_insert_with(|| Summed {
            tree: CallTree::new(key.0),
            tid: header.tid,
            span: (header.begin, header.end),
            calls: 0,
        });
        summed.span.0 = summed.span.0.min(header.begin);
        summed.span.1 = summed.span.1.max(header.end);
        shared.counts.mended = shared.counts.mended.saturating_add(header.mended);
        summed.put(&nodes, shared);
    }
}

impl Summed {
    fn put(&mut self, nodes: &[Node], shared: &mut Shared) {
        let mut numbers: Vec<u32> = Vec::with_capacity(nodes.len());
        for (at, node) in nodes.iter().enumerate() {
            let parent = numbers.get(node.parent as usize).copied().unwrap_or(0);
            let here = match node.word {
                _ if at == 0 => 0,
                word::FAR if node.address == 0 => {
                    self.tree.child(&mut shared.room, parent, pseudo::UNKNOWN)
                }
                word::FAR => {
                    let word = pseudo::FAR + 2 * shared.far_number(node.address);
                    self.tree.child(&mut shared.room, parent, word)
                }
                word::OVERFLOW => self.tree.child(&mut shared.room, 0, pseudo::NO_ROOM),
                // No function's: the word of a return, or an escape.
                word if word & 1 == 1 || word >= pseudo::FAR => parent,
                word => self.tree.child(&mut shared.room, parent, word),
            };
            let is_swallowed = node.word == word::OVERFLOW
                || nodes
                    .get(node.parent as usize)
                    .is_some_and(|caller| caller.word == word::OVERFLOW);
            if is_swallowed {
                shared.no_room = shared.no_room.saturating_add(node.calls);
            }
            // What is swallowed by the node itself is no call of a function, and frames whose calls were not
            // seen are none.
            let is_function = node.word > word::OVERFLOW || node.address != 0;
            self.tree.count(here, if is_function { node.calls } else { 0 }, node.own);
            self.calls = self.calls.saturating_add(node.calls);
            if let Some(extremes) = node.extremes {
                self.tree.widen(here, extremes);
            }
            numbers.push(here);
        }
    }
}
