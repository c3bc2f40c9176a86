//! What a tree grew by as packets ([`teeperf_wire::body::tree`]), each with the ancestors of the nodes it has.
//!
//! However deep the paths are, the work is in proportion to the nodes: of a path that is longer than
//! [`MOST_LEVELS`] a packet that goes on with it has so much of its end, right below the thread.

use super::Grown;
use std::collections::HashMap;
use teeperf_wire::body::tree::{Header, MAX_NODES, encoding, word};

/// Most nodes of a packet that are there for themselves; their ancestors come with them.
const OWN_NODES: usize = MAX_NODES / 2;
/// Most ancestors that come with a node.
const MOST_LEVELS: usize = MAX_NODES / 4;

/// Packets with all these nodes, of which the first is the thread itself, and callers come first.
pub(crate) fn of(header: Header, nodes: &[Grown]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut from = 0;
    while from < nodes.len().max(1) {
        let mut piece = Piece::new(nodes);
        let mut at = from;
        while at < nodes.len() && at - from < OWN_NODES && piece.add(nodes, at) {
            at += 1;
        }
        let mended = if from == 0 { header.mended } else { 0 };
        out.push(piece.payload(Header { mended, ..header }));
        from = at.max(from + 1);
    }
    out
}

/// Nodes of one packet.
struct Piece {
    nodes: Vec<Grown>,
    /// By index among all, index here.
    numbers: HashMap<u32, u32>,
}

impl Piece {
    /// With the thread itself, and nothing of its own.
    fn new(nodes: &[Grown]) -> Self {
        let thread = nodes.first().copied().unwrap_or_default();
        let nodes = vec![Grown { calls: 0, own: 0, ..thread }];
        Self { nodes, numbers: HashMap::from([(0, 0)]) }
    }

    /// Adds a node and its ancestors; says whether there was room, as there is in a piece that has none yet.
    fn add(&mut self, nodes: &[Grown], index: usize) -> bool {
        let mut missing = Vec::new();
        let mut there = index as u32;
        while !self.numbers.contains_key(&there) && missing.len() <= MOST_LEVELS {
            missing.push(there);
            there = nodes[there as usize].parent;
        }
        if self.nodes.len() + missing.len() > MAX_NODES {
            return false;
        }
        for &number in missing.iter().rev() {
            let node = nodes[number as usize];
            let parent = self.numbers.get(&node.parent).copied().unwrap_or(0);
            self.numbers.insert(number, self.nodes.len() as u32);
            self.nodes.push(Grown { parent, calls: 0, own: 0, ..node });
        }
        if let Some(&here) = self.numbers.get(&(index as u32)) {
            let (here, node) = (&mut self.nodes[here as usize], nodes[index]);
            (here.calls, here.own) = (node.calls, node.own);
        }
        true
    }

    fn payload(&self, header: Header) -> Vec<u8> {
        let mut data = Vec::with_capacity(self.nodes.len() * 8);
        for (at, node) in self.nodes.iter().enumerate() {
            leb128(&mut data, at as u64 - u64::from(node.parent));
            leb128(&mut data, node.word.into());
            if node.word == word::FAR {
                leb128(&mut data, node.address);
            }
            for number in [node.calls, node.own, node.least, node.most] {
                leb128(&mut data, number);
            }
        }
        let compressed = zstd::bulk::compress(&data, 1);
        let header = Header {
            nodes: self.nodes.len() as u32,
            encoding: if compressed.is_ok() { encoding::ZSTD } else { encoding::PLAIN },
            ..header
        };
        [&header.encode()[..], &compressed.unwrap_or(data)].concat()
    }
}

/// An unsigned number, seven bits a byte, low ones first (DWARF 5, 7.6).
pub(crate) fn leb128(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trees::tests::read;

    /// A recursion: a chain of nodes, each of which is called once.
    fn chain(length: usize) -> Vec<Grown> {
        let node = |at: usize| Grown {
            parent: at.saturating_sub(1) as u32,
            word: if at == 0 { word::FAR } else { 0x2000 },
            calls: 1,
            own: 2,
            ..Grown::default()
        };
        (0..length).map(node).collect()
    }

    #[test]
    fn deep_paths_go_on_in_the_next_packet() {
        let nodes = chain(500_000);
        let packets = of(Header { mended: 7, ..Header::default() }, &nodes);
        assert!(packets.len() < 2 * nodes.len() / OWN_NODES, "{}", packets.len());
        let packets: Vec<_> = packets.iter().map(|payload| read(payload)).collect();
        let all = || packets.iter().flat_map(|(_, nodes)| nodes);
        assert_eq!(all().map(|node| node.calls).sum::<u64>(), 500_000);
        assert_eq!(all().map(|node| node.own).sum::<u64>(), 1_000_000);
        assert_eq!(packets.iter().map(|(header, _)| header.mended).sum::<u64>(), 7);
        for (_, nodes) in &packets[1..] {
            let levels = nodes.iter().skip(1).take_while(|node| node.calls == 0).count();
            assert_eq!(levels, MOST_LEVELS);
        }
    }

    #[test]
    fn wide_trees_come_in_pieces_with_their_ancestors() {
        let mut nodes = chain(20);
        for at in 0..40_000u32 {
            nodes.push(Grown {
                parent: 1 + at % 19,
                word: 0x4000 + 2 * at,
                calls: 3,
                ..Grown::default()
            });
        }
        let packets = of(Header::default(), &nodes);
        assert!(packets.len() < 7);
        let mut calls = 0;
        for payload in &packets {
            let (_, nodes) = read(payload);
            for (at, node) in nodes.iter().enumerate() {
                assert!(at == 0 || node.parent < at as u32);
                assert!(
                    node.word < 0x4000
                        || node.word % 38 != 0
                        || nodes[node.parent as usize].word == 0x2000
                );
                calls += node.calls;
            }
        }
        assert_eq!(calls, 20 + 3 * 40_000);
    }

    #[test]
    fn what_was_mended_is_told_where_nothing_grew() {
        let packets = of(Header { mended: 3, ..Header::default() }, &[]);
        let [payload] = &packets[..] else { panic!() };
        assert_eq!((read(payload).0.mended, read(payload).1.len()), (3, 1));
    }
}
