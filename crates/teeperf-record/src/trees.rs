//! Trees of a process ([`teeperf_wire::tree`]) as the recorder sees them: read while their threads write
//! them, and written out as what they grew by since they were last read.
//!
//! Believes nothing: indices are checked, and counters that shrank count as not grown.

use crate::segment::Segment;
use std::collections::HashMap;
use std::sync::Arc;
use teeperf_wire::arena::piece;
use teeperf_wire::body::tree::{self as packet, Header, MAX_NODES, encoding, word};
use teeperf_wire::shared::chunk;
use teeperf_wire::tree::{MAGIC, NODE, OVERFLOW, ROOT, header, node};

/// Memories of trees, in one segment.
pub(crate) struct Trees {
    pub(crate) segment: Arc<Segment>,
    /// What was written out of each.
    written: Vec<Written>,
}

/// What was written out of a tree.
#[derive(Clone, Debug, Default)]
struct Written {
    /// Thread and beginning of the tree that the rest is about.
    owner: (u32, u64),
    /// Up to when.
    end: u64,
    mended: u64,
    /// Calls and time of each node.
    sums: Vec<(u64, u64)>,
}

/// A tree as it stood at one moment.
#[derive(Default)]
struct Look {
    wides: Vec<u64>,
    nodes: usize,
}

/// What a tree grew by, to be written.
pub(crate) struct Growth {
    /// Payloads of packets.
    pub(crate) payloads: Vec<Vec<u8>>,
    /// Words of the functions in them.
    pub(crate) words: Vec<u32>,
    /// Calls in them.
    pub(crate) calls: u64,
    /// Of the thread.
    pub(crate) serial: u32,
    /// Whether nothing of this tree was written before.
    pub(crate) is_first: bool,
}

impl Growth {
    fn of(header: Header, grown: &[Grown], is_first: bool) -> Self {
        let words = grown.iter().map(|node| node.word).filter(|&word| word > word::OVERFLOW);
        Self {
            words: words.collect(),
            calls: grown.iter().fold(0, |sum: u64, node| sum.saturating_add(node.calls)),
            payloads: payloads(header, grown),
            serial: header.thread,
            is_first,
        }
    }
}

/// Trees of an arena's threads, which come in pieces ([`teeperf_wire::arena::piece`]): what their nodes are.
#[derive(Default)]
pub(crate) struct Pieces {
    /// By serial and beginning.
    known: HashMap<(u32, u64), Look>,
}

/// Most nodes of a tree that comes in pieces, and most such trees of a process.
const MOST_NODES: usize = 1 << 16;
const MOST_TREES: usize = 16;

impl Pieces {
    /// What the piece in a chunk says; nothing when it makes no sense.
    pub(crate) fn growth(
        &mut self,
        segment: &Segment,
        index: usize,
        process: u32,
    ) -> Option<Growth> {
        let mut wides = vec![0; segment.class().shape().0 / 8];
        segment.copy_of(index, &mut wides);
        let (head, nodes) = wides.split_at_checked(chunk::WORDS / 8)?;
        let (first, count) = (narrow(head, piece::FIRST), narrow(head, piece::COUNT));
        let count = count as usize;
        let end = (first as usize).checked_add(count).filter(|&end| end <= MOST_NODES)?;
        let nodes = nodes.get(..count * NODE / 8)?;
        let key = (narrow(head, chunk::SERIAL), wide(head, piece::BEGAN));
        let is_first = !self.known.contains_key(&key);
        if is_first && self.known.len() >= MOST_TREES {
            self.known.clear();
        }
        let look = self.known.entry(key).or_default();
        look.nodes = look.nodes.max(end);
        look.wides.resize((1 + look.nodes) * NODE / 8, 0);
        let at = (1 + first as usize) * NODE / 8;
        look.wides[at..at + nodes.len()].copy_from_slice(nodes);
        let grown = look.grown(&mut Vec::new());
        for node in look.wides[at..at + nodes.len()].chunks_mut(NODE / 8) {
            for sum in [node::CALLS, node::SELF, node::LEAST, node::MOST] {
                node[sum / 8] = 0;
            }
        }
        let header = Header {
            process,
            thread: key.0,
            tid: narrow(head, chunk::TID),
            begin: wide(head, piece::BEGIN),
            end: wide(head, piece::END),
            ..Header::default()
        };
        Some(Growth::of(header, &grown, is_first))
    }
}

/// Most looks at a tree whose thread changes halves of numbers meanwhile.
const MOST_LOOKS: usize = 64;

impl Trees {
    pub(crate) fn new(segment: Arc<Segment>) -> Self {
        let written = vec![Written::default(); segment.chunks()];
        Self { segment, written }
    }

    /// Thread id and process id of the tree in this memory, if there is one.
    pub(crate) fn owner(&self, index: usize) -> Option<(u32, u32)> {
        let head = self.look_at_head(index)?;
        Some((narrow(&head, header::TID), narrow(&head, header::PID)))
    }

    /// What a tree grew by since this was asked last; `process` is the number of its process. Nothing when there
    /// is no tree, or nothing was called there.
    pub(crate) fn growth(&mut self, index: usize, process: u32) -> Option<Growth> {
        let look = self.look(index)?;
        let [head, ..] = look.wides.as_chunks::<{ NODE / 8 }>().0 else { return None };
        let (serial, began) = (narrow(head, header::SERIAL), wide(head, header::BEGAN));
        let written = &mut self.written[index];
        let is_first = written.owner != (serial, began);
        if is_first {
            *written = Written { owner: (serial, began), end: began, ..Written::default() };
        }
        let end = wide(head, header::TIME).max(written.end);
        let mended = wide(head, header::MENDED).saturating_sub(written.mended);
        let header = Header {
            process,
            thread: serial,
            tid: narrow(head, header::TID),
            begin: written.end,
            end,
            mended,
            flags: if narrow(head, header::FOLDS) == 1 { packet::FOLDS } else { 0 },
            ..Header::default()
        };
        let grown = look.grown(&mut written.sums);
        if grown.is_empty() {
            return None;
        }
        written.end = end;
        written.mended = wide(head, header::MENDED);
        Some(Growth::of(header, &grown, is_first))
    }

    /// Gives a memory back, zeroed.
    pub(crate) fn give_back(&mut self, index: usize) {
        self.written[index] = Written::default();
        self.segment.give_back_whole(index);
    }

    fn look_at_head(&self, index: usize) -> Option<[u64; NODE / 8]> {
        let mut head = [0; NODE / 8];
        self.segment.copy_of(index, &mut head);
        (head[0] == MAGIC).then_some(head)
    }

    fn look(&self, index: usize) -> Option<Look> {
        let room = (self.segment.class().shape().0 - NODE) / NODE;
        for _ in 0..MOST_LOOKS {
            let head = self.look_at_head(index)?;
            let carry = narrow(&head, header::CARRY);
            let nodes = (narrow(&head, header::USED) as usize).min(room);
            let mut wides = vec![0; (1 + nodes) * NODE / 8];
            self.segment.copy_of(index, &mut wides);
            let again = self.look_at_head(index)?;
            if carry.is_multiple_of(2) && narrow(&again, header::CARRY) == carry {
                return Some(Look { wides, nodes });
            }
            std::thread::yield_now();
        }
        None
    }
}

/// A field of four bytes.
fn narrow(wides: &[u64], offset: usize) -> u32 {
    (wides[offset / 8] >> (offset % 8 * 8)) as u32
}

/// A field of eight bytes.
fn wide(wides: &[u64], offset: usize) -> u64 {
    wides[offset / 8]
}

/// A node with what it grew by, or an ancestor of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Grown {
    /// Index of its caller's among these; of the root 0.
    parent: u32,
    /// [`word`], or that of a call.
    word: u32,
    address: u64,
    calls: u64,
    own: u64,
    /// Shortest call, and one more; 0: none.
    least: u64,
    most: u64,
}

impl Look {
    fn node(&self, index: usize) -> &[u64] {
        let at = (1 + index) * NODE / 8;
        &self.wides[at..at + NODE / 8]
    }

    /// Nodes that grew, and their ancestors, callers first; `sums` is what they were, and is what they are.
    fn grown(&self, sums: &mut Vec<(u64, u64)>) -> Vec<Grown> {
        sums.resize(self.nodes, (0, 0));
        // What it grew by, and whether it or anything below it did.
        let mut growth = vec![(0, 0); self.nodes];
        let mut wanted = vec![false; self.nodes];
        for index in (0..self.nodes).rev() {
            let here = self.node(index);
            let (calls, own) = (wide(here, node::CALLS), wide(here, node::SELF));
            growth[index] =
                (calls.saturating_sub(sums[index].0), own.saturating_sub(sums[index].1));
            sums[index] = (calls, own);
            wanted[index] |= growth[index] != (0, 0);
            if wanted[index] {
                wanted[self.parent(index)] = true;
            }
        }
        if !wanted.first().is_some_and(|&wanted| wanted) {
            return Vec::new();
        }
        let mut numbers = vec![0u32; self.nodes];
        let mut out = Vec::new();
        for index in (0..self.nodes).filter(|&index| wanted[index]) {
            let here = self.node(index);
            numbers[index] = out.len() as u32;
            let (calls, own) = growth[index];
            let least = wide(here, node::LEAST);
            out.push(Grown {
                parent: numbers[self.parent(index)],
                word: match index as u32 {
                    ROOT => word::FAR,
                    OVERFLOW => word::OVERFLOW,
                    _ => match narrow(here, node::WORD) {
                        word::OVERFLOW => word::FAR,
                        word => word,
                    },
                },
                address: wide(here, node::ADDRESS),
                calls,
                own,
                least: if least == 0 { 0 } else { (!least).saturating_add(1) },
                most: wide(here, node::MOST),
            });
        }
        out
    }

    /// Index of the caller's node, always smaller but for the root.
    fn parent(&self, index: usize) -> usize {
        let parent = narrow(self.node(index), node::PARENT) as usize;
        if parent < index { parent } else { ROOT as usize }
    }
}

/// Most nodes of a packet that are there for themselves; their ancestors come with them.
const OWN_NODES: usize = MAX_NODES / 2;

/// Packets with all these nodes, each with the ancestors of those it has. Deeper paths than a packet has room for
/// begin at the root with what is left.
fn payloads(header: Header, nodes: &[Grown]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut from = 0;
    while from < nodes.len() {
        let mut piece = Piece::default();
        let mut at = from;
        while at < nodes.len() && at - from < OWN_NODES && piece.add(nodes, at) {
            at += 1;
        }
        // A path that has no room even alone is cut: its node goes to the root.
        if at == from {
            piece = Piece::default();
            piece.cut(nodes, at);
            at += 1;
        }
        let first = from == 0;
        let header = Header { mended: if first { header.mended } else { 0 }, ..header };
        out.push(piece.payload(header));
        from = at;
    }
    out
}

/// Nodes of one packet.
#[derive(Default)]
struct Piece {
    nodes: Vec<Grown>,
    /// By index among all, index here.
    numbers: HashMap<u32, u32>,
}

impl Piece {
    /// Adds a node and its ancestors; says whether there was room.
    fn add(&mut self, nodes: &[Grown], index: usize) -> bool {
        let mut missing = vec![index as u32];
        let mut there = nodes[index].parent;
        while *missing.last().unwrap_or(&0) != 0 && !self.numbers.contains_key(&there) {
            missing.push(there);
            there = nodes[there as usize].parent;
        }
        if self.nodes.len() + missing.len() > MAX_NODES {
            return false;
        }
        for &number in missing.iter().rev() {
            if self.numbers.contains_key(&number) {
                // It was there as an ancestor, and now is for itself.
                continue;
            }
            let node = nodes[number as usize];
            let parent = self.numbers.get(&node.parent).copied().unwrap_or(0);
            self.numbers.insert(number, self.nodes.len() as u32);
            self.nodes.push(Grown { parent, calls: 0, own: 0, ..node });
        }
        if let Some(here) = self.numbers.get(&(index as u32)) {
            let (here, node) = (&mut self.nodes[*here as usize], nodes[index]);
            (here.calls, here.own) = (node.calls, node.own);
        }
        true
    }

    /// A node right below the root.
    fn cut(&mut self, nodes: &[Grown], index: usize) {
        self.nodes = vec![Grown::default(), Grown { parent: 0, ..nodes[index] }];
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
fn leb128(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
