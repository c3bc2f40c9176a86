//! What a thread has summed, where no memory is lent: taken piece by piece ([`teeperf_wire::piece`]), each in a buffer that
//! the image sends wherever it can.
//!
//! A **round** has all that had grown when it began, nodes first, and ends with an answer that nothing is left. What
//! grows meanwhile may be in it as well, or is the next one's; so rounds end, though the code that asks for pieces be
//! hooked itself. Between two pieces only their place in the round is kept.

use crate::arcs;
use crate::platform;
use crate::thread::{Image, Thread};
use core::cell::Cell;
use teeperf_tally::arcs::{Arcs, Growth, Kind};
use teeperf_tally::tree::Tree;
use teeperf_wire::piece::{Header, Item, LEAST_ROOM, Node, Writer, what};
use teeperf_wire::shared::ClockKind;
use teeperf_wire::tree::{ROOT, node};

/// How far a thread's sums were taken. A new one is all zero.
pub(crate) struct Taking {
    stage: Cell<Stage>,
    /// The next node or place for a call to look at, and the last node and one.
    next: Cell<u32>,
    end: Cell<u32>,
    /// Time from which on the round's nodes are, and when it began.
    span: Cell<(u64, u64)>,
    /// Number of the next piece.
    sequence: Cell<u32>,
    /// Of the thread, from the first piece on.
    serial: Cell<u32>,
}

/// Where a round is.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Stage {
    /// None has begun.
    Idle = 0,
    Nodes = 1,
    Items = 2,
    /// The next answer is that nothing is left.
    Ended = 3,
}

impl Taking {
    pub(crate) const fn new() -> Self {
        Self {
            stage: Cell::new(Stage::Idle),
            next: Cell::new(0),
            end: Cell::new(0),
            span: Cell::new((0, 0)),
            sequence: Cell::new(0),
            serial: Cell::new(0),
        }
    }

    fn go_to(&self, stage: Stage, next: u32) {
        self.stage.set(stage);
        self.next.set(next);
    }

    fn next_sequence(&self) -> u32 {
        let sequence = self.sequence.get();
        self.sequence.set(sequence.wrapping_add(1));
        sequence
    }

    fn serial(&self) -> u32 {
        if self.serial.get() == 0 {
            self.serial.set(platform::next_serial());
        }
        self.serial.get()
    }
}

impl Thread {
    /// Writes the next piece, of `room` bytes at most; its length, or 0: nothing is left, or there is too little room.
    /// `put` takes the offset of a byte below that, and the byte.
    pub fn take(&self, room: usize, put: impl FnMut(usize, u8), image: &Image) -> usize {
        if room < LEAST_ROOM {
            return 0;
        }
        self.undisturbed(|| {
            self.begin_round();
            let tree = self.sums.tree();
            match (self.taking.stage.get(), tree, self.counted.grown()) {
                (Stage::Nodes, Some(tree), _) => self.take_nodes(tree, room, put, image),
                (Stage::Items, _, Some((arcs, since))) => {
                    self.take_items(arcs, since, room, put, image)
                }
                _ => {
                    self.taking.go_to(Stage::Idle, 0);
                    Some(0)
                }
            }
        })
        .flatten()
        .unwrap_or(0)
    }

    fn begin_round(&self) {
        if self.taking.stage.get() != Stage::Idle {
            return;
        }
        self.counted.take_left();
        let span = self.sums.begin_round(self.arena().as_ref());
        self.taking.go_to(Stage::Items, 0);
        if let (Some(span), Some(tree)) = (span, self.sums.tree()) {
            self.taking.span.set(span);
            self.taking.end.set(tree.want_grown());
            // Some returns are of nothing.
            if tree.is_wanted(ROOT) {
                self.taking.stage.set(Stage::Nodes);
            }
        }
    }

    fn take_nodes(
        &self,
        tree: &Tree,
        room: usize,
        put: impl FnMut(usize, u8),
        image: &Image,
    ) -> Option<usize> {
        let has_counter = self.sums.has_counter();
        let (begin, end) = self.taking.span.get();
        let header = Header {
            what: what::TREE,
            clock: if has_counter { ClockKind::Cycle } else { ClockKind::Tick } as u32,
            hz: if has_counter { platform::counter_hz() } else { 0 },
            begin,
            end,
            lost: self.take_nested(),
            mended: tree.take_mended(),
            begins: self.taking.next.get() == 0,
            sequence: self.taking.next_sequence(),
            serial: self.taking.serial(),
            tid: self.who.get().tid,
        };
        let mut writer = Writer::new(room, put, &header, image.name)?;
        let (mut next, end) = (self.taking.next.get(), self.taking.end.get());
        while next < end && (!tree.is_wanted(next) || writer.has_room()) {
            if tree.is_wanted(next) {
                let wides = tree.take_wanted(next);
                let least = wides[node::LEAST / 8];
                writer.node(&Node {
                    index: next,
                    parent: (wides[node::PARENT / 8] >> 32) as u32,
                    place: place(wides[node::ADDRESS / 8] as usize, image),
                    calls: wides[node::CALLS / 8],
                    own: wides[node::SELF / 8],
                    least: if least == 0 { 0 } else { (!least).saturating_add(1) },
                    most: wides[node::MOST / 8],
                });
            }
            next += 1;
        }
        if next < end {
            self.taking.next.set(next);
            return Some(writer.finish(true));
        }
        let has_items = self.counted.grown().is_some();
        self.taking.go_to(if has_items { Stage::Items } else { Stage::Ended }, 0);
        Some(writer.finish(has_items))
    }

    fn take_items(
        &self,
        arcs: &Arcs,
        since: u64,
        room: usize,
        put: impl FnMut(usize, u8),
        image: &Image,
    ) -> Option<usize> {
        let (lost, lost_time) = arcs.take_lost();
        let is_missing = Growth { kind: Kind::Span, from: 0, to: 0, count: lost_time };
        let header = Header {
            what: what::ARCS,
            clock: ClockKind::Tick as u32,
            hz: 0,
            begin: since,
            end: arcs.time(),
            lost: lost.wrapping_add(self.take_nested()),
            mended: 0,
            begins: self.taking.next.get() == 0,
            sequence: self.taking.next_sequence(),
            serial: self.taking.serial(),
            tid: self.who.get().tid,
        };
        let mut writer = Writer::new(room, put, &header, image.name)?;
        let mut next = self.taking.next.get();
        let mut growth = Some(is_missing).filter(|_| lost_time > 0);
        loop {
            if let Some(growth) = growth {
                let (from, to) = arcs::places(&growth);
                let is_span = growth.kind == Kind::Span;
                let places = [place(from, image), place(to, image)];
                writer.item(&Item { is_span, places, count: growth.count });
            }
            if !writer.has_room() {
                break;
            }
            growth = arcs.take(&mut next);
            if growth.is_none() {
                break;
            }
        }
        let has_more = arcs.has_grown(&mut next);
        self.taking.go_to(if has_more { Stage::Items } else { Stage::Ended }, next);
        Some(writer.finish(has_more))
    }

    /// Events of hooks that interrupted others, and are summed nowhere. While memory is lent, they are told there.
    #[cfg(feature = "nested")]
    fn take_nested(&self) -> u64 {
        if self.is_attached() {
            return 0;
        }
        self.nested.take().map_or(0, |lost| lost.events)
    }

    #[cfg(not(feature = "nested"))]
    fn take_nested(&self) -> u64 {
        0
    }
}

/// Where an address lies from the anchor on; 0 is none.
fn place(address: usize, image: &Image) -> Option<i64> {
    (address != 0).then(|| address.wrapping_sub(image.anchor).cast_signed() as i64)
}
