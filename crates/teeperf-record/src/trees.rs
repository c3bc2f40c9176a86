//! Trees of a process ([`teeperf_wire::tree`]) as the recorder sees them: read while their threads write
//! them, and written out as what they grew by since they were last read.
//!
//! Believes nothing: indices are checked, and counters that shrank count as not grown.

pub(crate) mod packets;

use crate::segment::Segment;
use std::sync::Arc;
use teeperf_wire::body::tree::{self as packet, Header, word};
use teeperf_wire::packet::kind;
use teeperf_wire::shared::state;
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
struct Look {
    wides: Vec<u64>,
    nodes: usize,
}

/// What a tree grew by, to be written.
pub(crate) struct Growth {
    /// Their kind of packet.
    pub(crate) kind: u16,
    /// Payloads of packets.
    pub(crate) payloads: Vec<Vec<u8>>,
    /// Words of the functions in them.
    pub(crate) words: Vec<u32>,
    /// Calls in them.
    pub(crate) calls: u64,
    /// Returns in them.
    pub(crate) returns: u64,
    /// Calls that are missing.
    pub(crate) lost: u64,
    /// Of the thread.
    pub(crate) serial: u32,
    /// Whether nothing was written of the thread before: of those with chunks, chunks are.
    pub(crate) is_first: bool,
}

impl Growth {
    pub(crate) fn of(header: Header, grown: &[Grown]) -> Self {
        let words = grown.iter().map(|node| node.word).filter(|&word| word > word::OVERFLOW);
        let calls = grown.iter().fold(0, |sum: u64, node| sum.saturating_add(node.calls));
        Self {
            kind: kind::TREE,
            words: words.collect(),
            calls,
            returns: calls,
            lost: 0,
            // Of a tree that comes in pieces many have not grown.
            payloads: match (grown, header.mended) {
                ([], 0) => Vec::new(),
                _ => packets::of(header, grown),
            },
            serial: header.thread,
            is_first: false,
        }
    }
}

/// Most looks at a tree whose thread changes halves of numbers meanwhile.
const MOST_LOOKS: usize = 4;

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

    /// Which memories threads have, or had when they died.
    pub(crate) fn taken(&self) -> Vec<usize> {
        let states = self.segment.states().enumerate();
        states.filter(|&(_, state)| state != state::FREE).map(|(index, _)| index).collect()
    }

    /// What a tree grew by since this was asked last; `process` is the number of its process. Nothing when there
    /// is no tree, or nothing was called there.
    pub(crate) fn growth(&mut self, index: usize, process: u32) -> Option<Growth> {
        let look = self.look(index)?;
        self.written[index].growth(&look, process)
    }

    /// Gives the memory of a thread that is gone back, zeroed. Returns what it held: to make packets of that takes
    /// longer, for which no thread has to wait.
    pub(crate) fn give_back(&mut self, index: usize) -> Last {
        let look = self.look(index);
        let written = std::mem::take(&mut self.written[index]);
        self.segment.give_back_tree(index);
        Last { look, written }
    }

    fn look_at_head(&self, index: usize) -> Option<[u64; NODE / 8]> {
        let mut head = [0; NODE / 8];
        self.segment.copy_of(index, &mut head);
        (head[0] == MAGIC).then_some(head)
    }

    fn look(&self, index: usize) -> Option<Look> {
        let room = (self.segment.class().shape().0 - NODE) / NODE;
        for looks in 1..=MOST_LOOKS {
            let head = self.look_at_head(index)?;
            let carry = narrow(&head, header::CARRY);
            let nodes = (narrow(&head, header::USED) as usize).min(room);
            let mut wides = vec![0; (1 + nodes) * NODE / 8];
            self.segment.copy_of(index, &mut wides);
            let again = self.look_at_head(index)?;
            // Whoever was killed in the midst of it, or is no friend, leaves it odd: then a number may be too small.
            let is_whole = carry.is_multiple_of(2) && narrow(&again, header::CARRY) == carry;
            if is_whole || looks == MOST_LOOKS {
                return Some(Look { wides, nodes });
            }
            std::thread::yield_now();
        }
        None
    }
}

/// What a tree held when its memory was given back.
pub(crate) struct Last {
    look: Option<Look>,
    written: Written,
}

impl Last {
    /// As [`Trees::growth`].
    pub(crate) fn growth(mut self, process: u32) -> Option<Growth> {
        self.written.growth(&self.look?, process)
    }
}

impl Written {
    fn growth(&mut self, look: &Look, process: u32) -> Option<Growth> {
        let [head, ..] = look.wides.as_chunks::<{ NODE / 8 }>().0 else { return None };
        let (serial, began) = (narrow(head, header::SERIAL), wide(head, header::BEGAN));
        if self.owner != (serial, began) {
            *self = Self { owner: (serial, began), end: began, ..Self::default() };
        }
        let end = wide(head, header::TIME).max(self.end);
        let mended = wide(head, header::MENDED).saturating_sub(self.mended);
        let header = Header {
            process,
            thread: serial,
            tid: narrow(head, header::TID),
            begin: self.end,
            end,
            mended,
            flags: if narrow(head, header::FOLDS) == 1 { packet::FOLDS } else { 0 },
            ..Header::default()
        };
        let grown = look.grown(&mut self.sums);
        if grown.is_empty() && mended == 0 {
            return None;
        }
        self.end = end;
        self.mended = wide(head, header::MENDED);
        Some(Growth::of(header, &grown))
    }
}

/// A field of four bytes.
pub(crate) fn narrow(wides: &[u64], offset: usize) -> u32 {
    (wides[offset / 8] >> (offset % 8 * 8)) as u32
}

/// A field of eight bytes.
pub(crate) fn wide(wides: &[u64], offset: usize) -> u64 {
    wides[offset / 8]
}

/// A node with what it grew by, or an ancestor of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grown {
    /// Index of its caller's among these; of the root 0.
    pub(crate) parent: u32,
    /// [`word`], or that of a call.
    pub(crate) word: u32,
    pub(crate) address: u64,
    pub(crate) calls: u64,
    pub(crate) own: u64,
    /// Shortest call, and one more; 0: none.
    pub(crate) least: u64,
    pub(crate) most: u64,
}

/// Which of so many nodes grew, or have one below them that did, and the place of each one's caller among these. Callers
/// come first.
pub(crate) fn those_wanted(
    nodes: usize,
    parent: impl Fn(usize) -> usize,
    grew: impl Fn(usize) -> bool,
) -> Vec<(usize, u32)> {
    let mut wanted = vec![false; nodes];
    for index in (0..nodes).rev() {
        wanted[index] |= grew(index);
        if wanted[index] {
            wanted[parent(index)] = true;
        }
    }
    let mut places = vec![0u32; nodes];
    let mut out = Vec::new();
    for index in (0..nodes).filter(|&index| wanted[index]) {
        places[index] = out.len() as u32;
        out.push((index, places[parent(index)]));
    }
    out
}

/// Word of a node of this index, as packets have it.
pub(crate) fn word_of(index: u32, node: &[u64]) -> u32 {
    match index {
        ROOT => word::FAR,
        OVERFLOW => word::OVERFLOW,
        _ => match narrow(node, node::WORD) {
            word::OVERFLOW => word::FAR,
            word => word,
        },
    }
}

/// Shortest call of a node, and one more; 0: none. It stands there as its complement.
pub(crate) fn least_of(node: &[u64]) -> u64 {
    match wide(node, node::LEAST) {
        0 => 0,
        least => (!least).saturating_add(1),
    }
}

impl Look {
    fn node(&self, index: usize) -> &[u64] {
        let at = (1 + index) * NODE / 8;
        &self.wides[at..at + NODE / 8]
    }

    /// Nodes that grew, and their ancestors, callers first; `sums` is what they were, and is what they are.
    fn grown(&self, sums: &mut Vec<(u64, u64)>) -> Vec<Grown> {
        sums.resize(self.nodes, (0, 0));
        let mut growth = vec![(0, 0); self.nodes];
        for (index, (sums, growth)) in sums.iter_mut().zip(&mut growth).enumerate() {
            let here = self.node(index);
            let (calls, own) = (wide(here, node::CALLS), wide(here, node::SELF));
            *growth = (calls.saturating_sub(sums.0), own.saturating_sub(sums.1));
            *sums = (calls, own);
        }
        let grew = |index: usize| growth[index] != (0, 0);
        let wanted = those_wanted(self.nodes, |index| self.parent(index), grew);
        let grown = |(index, parent)| {
            let here = self.node(index);
            let (calls, own) = growth[index];
            Grown {
                parent,
                word: word_of(index as u32, here),
                address: wide(here, node::ADDRESS),
                calls,
                own,
                least: least_of(here),
                most: wide(here, node::MOST),
            }
        };
        wanted.into_iter().map(grown).collect()
    }

    /// Index of the caller's node, always smaller but for the root.
    fn parent(&self, index: usize) -> usize {
        let parent = narrow(self.node(index), node::PARENT) as usize;
        if parent < index { parent } else { ROOT as usize }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::segment::Class;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use teeperf_tally::tree::{Beginning, Tree};

    /// Header and nodes of a packet, which must be right to its end.
    pub(crate) fn read(payload: &[u8]) -> (Header, Vec<Grown>) {
        let (header, data) = Header::decode(payload).unwrap();
        let data = zstd::bulk::decompress(data, packet::MAX_BYTES).unwrap();
        let mut bytes = data.iter();
        let mut number = || {
            let mut number = 0;
            for shift in (0..).step_by(7) {
                let byte = *bytes.next().unwrap();
                number |= u64::from(byte & 0x7F) << shift;
                if byte < 0x80 {
                    break;
                }
            }
            number
        };
        let mut nodes = Vec::new();
        for at in 0..u64::from(header.nodes) {
            let parent = at.checked_sub(number()).unwrap() as u32;
            let word = number() as u32;
            let address = if word == word::FAR { number() } else { 0 };
            let [calls, own, least, most] = [(); 4].map(|()| number());
            nodes.push(Grown { parent, word, address, calls, own, least, most });
        }
        assert!(bytes.next().is_none());
        (header, nodes)
    }

    fn trees(bytes: usize) -> Trees {
        Trees::new(Arc::new(Segment::create(Class::first_trees(bytes)).unwrap()))
    }

    /// Any bytes behind a head that is one.
    fn fill(trees: &Trees, used: u32, carry: u32, wides: &[u64]) {
        let memory = trees.segment.all_of(0);
        for (at, place) in memory.iter().enumerate() {
            let wide = wides[at % wides.len()].rotate_left(at as u32 / 64);
            place.store(wide, std::sync::atomic::Ordering::Relaxed);
        }
        let set = |offset: usize, wide: u64| {
            memory[offset / 8].store(wide, std::sync::atomic::Ordering::Relaxed);
        };
        set(header::MAGIC, MAGIC);
        set(header::NODES, u64::from(used) << 32 | 7);
        set(header::CARRY, u64::from(carry));
    }

    proptest! {
        /// Parents that lead in circles, numbers beyond all bounds, counters that shrink: no more than the
        /// memory has room for is written, and it can be read.
        #[test]
        fn memory_of_any_content(used: u32, carry: u32, wides in proptest::collection::vec(any::<u64>(), 1..40), then in proptest::collection::vec(any::<u64>(), 1..40)) {
            let mut trees = trees(4096);
            for wides in [wides, then] {
                fill(&trees, used, carry, &wides);
                let Some(growth) = trees.growth(0, 1) else { continue };
                let nodes: usize = growth.payloads.iter().map(|payload| read(payload).1.len()).sum();
                prop_assert!(nodes <= 64);
            }
        }

        /// What a tree grows by, taken at any time, adds up to the tree.
        #[test]
        fn differences_add_up(steps in proptest::collection::vec((0u8..5, 1u64..9, 0u64..3), 0..300)) {
            let mut trees = trees(1 << 16);
            let beginning = Beginning { pid: 3, tid: 4, serial: 5, clock: 1, ..Beginning::default() };
            let base = trees.segment.all_of(0).as_ptr().cast_mut().cast();
            // SAFETY: the segment's memory, which lives as long as the trees, and nobody else writes.
            let tree = unsafe { Tree::begin(base, 1 << 16, &beginning) }.unwrap();
            let (mut open, mut now) = (Vec::new(), 0);
            let mut made: HashMap<Vec<u64>, u64> = HashMap::new();
            let (mut seen, mut time, mut end) = (HashMap::new(), 0, 0);
            let mut take = |trees: &mut Trees| {
                let Some(growth) = trees.growth(0, 9) else { return };
                for payload in &growth.payloads {
                    let (header, nodes) = read(payload);
                    assert_eq!((header.process, header.thread, header.tid), (9, 5, 4));
                    assert!(header.begin >= end && header.end >= header.begin);
                    end = header.end;
                    let mut paths: Vec<Vec<u64>> = Vec::new();
                    for (at, node) in nodes.iter().enumerate() {
                        let mut path = if at == 0 { Vec::new() } else { paths[node.parent as usize].clone() };
                        if at > 0 {
                            path.push(node.word.into());
                        }
                        *seen.entry(path.clone()).or_insert(0) += node.calls;
                        time += node.own;
                        paths.push(path);
                    }
                }
            };
            for (what, address, later) in steps {
                now += later;
                tree.moved(now);
                match what {
                    0 | 1 => {
                        tree.call_anew(address, 0, (0x2000 + 2 * address) as u32);
                        open.push(0x2000 + 2 * address);
                        *made.entry(open.clone()).or_insert(0) += 1;
                    }
                    2 | 3 => {
                        if let Some(word) = open.pop() {
                            tree.ret((word - 0x2000) / 2);
                        }
                    }
                    _ => take(&mut trees),
                }
            }
            take(&mut trees);
            seen.retain(|_, &mut calls| calls > 0);
            prop_assert_eq!(seen, made);
            prop_assert_eq!(time, now);
        }
    }
}
