//! Sums that a thread's own tree brings, put together: packets of one thread add up, in whatever order.

use std::collections::BTreeMap;

use teeperf_wire::body::tree::{Header, word};

use super::apply::{Shared, warn_of_counts};
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
        let (mut nodes, error) = nodes(header, data);
        if let Some(error) = error {
            shared.warnings.add(|| format!("tree at offset {offset}: {error}"));
        }
        let credit = &mut shared.credit;
        let mut beyond = 0;
        for node in &mut nodes {
            beyond += usize::from(credit.take_calls(&mut node.calls));
            beyond += usize::from(credit.take_units(&mut node.own));
        }
        warn_of_counts(&mut shared.warnings, "tree", offset, beyond);
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
        shared.mended.add_nameless(header.mended);
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
            if node.word == word::OVERFLOW {
                shared.nameless = shared.nameless.saturating_add(node.calls);
            }
            // Frames whose calls were not seen are none.
            let are_calls = node.word != word::FAR || node.address != 0;
            self.tree.count(here, if are_calls { node.calls } else { 0 }, node.own);
            self.calls = self.calls.saturating_add(node.calls);
            if let Some(extremes) = node.extremes {
                self.tree.widen(here, extremes);
            }
            numbers.push(here);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::threads::Threads;
    use super::*;
    use teeperf_wire::body::tree::encoding;

    /// A packet with one function called so often, in so many units.
    fn packet(calls: u64, own: u64) -> Vec<u8> {
        let mut data = vec![0, 0, 0, 0, 0, 0, 0, 1, 0x82, 0x40];
        for mut number in [calls, own] {
            while number >= 0x80 {
                data.push(number as u8 | 0x80);
                number >>= 7;
            }
            data.push(number as u8);
        }
        data.extend([0, 0]);
        data
    }

    #[test]
    fn what_cannot_have_been_is_left_out() {
        let header = Header { nodes: 2, encoding: encoding::PLAIN, ..Header::default() };
        let mut threads = Threads::new(100);
        let mut sums = Sums::default();
        for (thread, calls) in [(1, 7), (2, u64::MAX), (3, 1 << 56), (4, 5), (1, u64::MAX)] {
            let header = Header { thread, ..header };
            sums.add(0, &header, &packet(calls, calls), &mut threads.shared);
        }
        let calls: Vec<u64> = sums.0.values().map(|summed| summed.calls).collect();
        assert_eq!(calls, [7, 0, 0, 5]);
        threads.take_sums(sums);
        assert_eq!(threads.shared.counts.events, 24);
        assert_eq!(threads.shared.warnings.into_vec().len(), 3);
    }
}
