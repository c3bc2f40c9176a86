//! Pieces in the order in which they were taken, thread by thread: each round of nodes becomes packets of a tree, each
//! piece with items a packet of arcs.

use super::image::Images;
use super::{Clock, Imported};
use crate::arcs::{self, Item};
use crate::packets::Payload;
use crate::trees::{Grown, packets};
use std::collections::HashMap;
use teeperf_wire::body::tree::word;
use teeperf_wire::body::{arcs as arcs_body, loss, tree};
use teeperf_wire::packet::kind;
use teeperf_wire::piece::{Piece, what};
use teeperf_wire::tree::{OVERFLOW, ROOT};

/// See the module.
pub(super) struct Rounds<'a> {
    images: &'a Images,
    clock: Clock,
    /// By image and serial, those that run last.
    running: HashMap<(usize, u32), Running>,
    /// How many threads each image has.
    threads: HashMap<usize, u32>,
    packets: Vec<(u16, Vec<u8>)>,
    /// Times from the first to the last.
    span: Option<(u64, u64)>,
}

/// A thread, in one run of its image.
#[derive(Default)]
struct Running {
    /// Serial in the recording.
    thread: u32,
    /// Number of the next piece.
    next: u32,
    /// More of the round is to come.
    goes_on: bool,
    round: Option<Round>,
}

/// Nodes of the present round.
struct Round {
    header: tree::Header,
    nodes: Vec<Grown>,
    /// By index, where they are among those.
    numbers: HashMap<u32, u32>,
    /// Of frames that are not known, where there are any.
    unknown: Option<u32>,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(images: &'a Images, clock: Clock) -> Self {
        let (running, threads) = (HashMap::new(), HashMap::new());
        Self { images, clock, running, threads, packets: Vec::new(), span: None }
    }

    /// How many threads there are in all.
    pub(super) fn threads(&self) -> u64 {
        self.threads.values().map(|&threads| u64::from(threads)).sum()
    }

    /// Kinds and payloads of packets.
    pub(super) fn packets(&self) -> &[(u16, Vec<u8>)] {
        &self.packets
    }

    /// When the first sums begin, and the last end.
    pub(super) fn span(&self) -> (u64, u64) {
        self.span.unwrap_or_default()
    }

    /// The next piece, which stands at `place`.
    pub(super) fn add(
        &mut self,
        piece: &Piece<'_>,
        place: &dyn Fn() -> String,
        told: &mut Imported,
    ) {
        let header = &piece.header;
        let image = self.images.number(piece);
        let mut running = self.running.remove(&(image, header.serial)).unwrap_or_default();
        let is_new = running.thread == 0 || header.sequence < running.next;
        if is_new {
            self.close(image, &mut running, told);
            let threads = self.threads.entry(image).or_default();
            *threads += 1;
            running = Running { thread: *threads, ..Running::default() };
        }
        let missing = header.sequence - running.next;
        if missing > 0 {
            let s = if missing == 1 { " is" } else { "s are" };
            let text = format!(
                "{}: {missing} piece{s} missing before it, of {}",
                place(),
                self.images.name(image)
            );
            // What was taken before is in another recording, or was not wanted.
            let told = if is_new { &mut told.notices } else { &mut told.damage };
            told.push(text);
        }
        running.next = header.sequence.saturating_add(1);
        running.goes_on = piece.has_more;
        let times = self.clock.times(piece);
        let (begin, end) = (times(header.begin), times(header.end).max(times(header.begin)));
        if begin > 0 {
            let (first, last) = self.span.unwrap_or((begin, end));
            self.span = Some((first.min(begin), last.max(end)));
        }
        let is_read = if header.what == what::ARCS {
            self.items(image, piece, running.thread, (begin, end), told)
        } else {
            self.nodes(image, piece, &mut running, (begin, end), told)
        };
        if !is_read {
            told.damage.push(format!("{}: the rest of a piece cannot be read", place()));
        }
        self.running.insert((image, header.serial), running);
    }

    /// There are no more.
    pub(super) fn end(&mut self, told: &mut Imported) {
        let mut all: Vec<_> = self.running.drain().collect();
        all.sort_by_key(|(key, _)| *key);
        for ((image, _), mut running) in all {
            self.close(image, &mut running, told);
        }
    }

    fn close(&mut self, image: usize, running: &mut Running, told: &mut Imported) {
        if running.goes_on {
            let name = self.images.name(image);
            told.damage.push(format!(
                "the last pieces that thread {} of {name} had to hand over are missing",
                running.thread
            ));
        }
        self.write(running.round.take());
    }

    fn write(&mut self, round: Option<Round>) {
        if let Some(round) = round {
            let payloads = packets::of(round.header, &round.nodes);
            self.packets.extend(payloads.into_iter().map(|payload| (kind::TREE, payload)));
        }
    }

    fn lose(&mut self, image: usize, events: u64) {
        if events > 0 {
            let packet = Payload::default()
                .number(loss::PROCESS, image as u64 + 1)
                .number(loss::EVENTS, events);
            self.packets.push((kind::LOSS, packet.finish()));
        }
    }

    /// Adds the nodes of a piece to its round; whether all could be read.
    fn nodes(
        &mut self,
        image: usize,
        piece: &Piece<'_>,
        running: &mut Running,
        (begin, end): (u64, u64),
        told: &mut Imported,
    ) -> bool {
        if piece.header.begins {
            self.write(running.round.take());
        }
        self.lose(image, piece.header.lost);
        let round = running.round.get_or_insert_with(|| {
            Round::new(tree::Header {
                process: image as u32 + 1,
                thread: running.thread,
                tid: if piece.header.tid > 0 { piece.header.tid } else { running.thread },
                begin,
                end,
                ..tree::Header::default()
            })
        });
        round.header.end = round.header.end.max(end);
        round.header.mended = round.header.mended.saturating_add(piece.header.mended);
        let times = self.clock.times(piece);
        for node in piece.nodes() {
            let Ok(node) = node else { return false };
            let (word, address) = match node.index {
                ROOT => (word::FAR, 0),
                OVERFLOW => (word::OVERFLOW, 0),
                _ => self.images.word(image, node.place),
            };
            told.calls = told.calls.saturating_add(node.calls);
            let least = node.least.checked_sub(1).map_or(0, |least| times(least).saturating_add(1));
            let (own, most) = (times(node.own), times(node.most));
            let least = if self.clock.hz == 0 { 0 } else { least };
            let grown = Grown { parent: 0, word, address, calls: node.calls, own, least, most };
            round.add(node.index, node.parent, grown);
        }
        true
    }

    /// Likewise for items.
    fn items(
        &mut self,
        image: usize,
        piece: &Piece<'_>,
        thread: u32,
        (begin, end): (u64, u64),
        told: &mut Imported,
    ) -> bool {
        let times = self.clock.times(piece);
        let (mut items, mut spans, mut is_whole) = (Vec::new(), Vec::new(), true);
        for item in piece.items() {
            let Ok(item) = item else {
                is_whole = false;
                break;
            };
            let places = item.places.map(|place| self.images.word(image, place));
            if item.is_span {
                spans.push(Item { places, count: times(item.count) });
            } else {
                told.calls = told.calls.saturating_add(item.count);
                items.push(Item { places, count: item.count });
            }
        }
        let header = arcs_body::Header {
            process: image as u32 + 1,
            thread,
            tid: if piece.header.tid > 0 { piece.header.tid } else { thread },
            arcs: items.len() as u32,
            begin,
            end,
            lost: piece.header.lost,
            spans: spans.len() as u32,
            ..arcs_body::Header::default()
        };
        items.append(&mut spans);
        self.packets.push((kind::ARCS, arcs::payload(header, &items)));
        is_whole
    }
}

impl Round {
    fn new(header: tree::Header) -> Self {
        let root = Grown { word: word::FAR, ..Grown::default() };
        Self { header, nodes: vec![root], numbers: HashMap::from([(ROOT, 0)]), unknown: None }
    }

    /// A node below its caller's. Where that is not there, since a piece is missing, it is below frames that are not
    /// known.
    fn add(&mut self, index: u32, parent: u32, node: Grown) {
        if index == ROOT {
            self.nodes[0] = Grown { calls: 0, ..node };
            return;
        }
        let caller = self.numbers.get(&parent).copied();
        let caller = caller.unwrap_or_else(|| {
            *self.unknown.get_or_insert_with(|| {
                self.nodes.push(Grown { word: word::FAR, ..Grown::default() });
                self.nodes.len() as u32 - 1
            })
        });
        self.numbers.insert(index, self.nodes.len() as u32);
        self.nodes.push(Grown { parent: caller, ..node });
    }
}

// No piece has more items than a packet.
const _: () = assert!(teeperf_wire::piece::MAX_LENGTH / 4 <= arcs_body::MAX_ITEMS);
