//! Samples that become one packet. They stay in the blocks where they were read: whoever works on them takes them from there, or a
//! payload is made of them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use teeperf_profile::contents::{Body, SharedSamples};
use teeperf_wire::body::sample::{HEADER, Header, MAX_BYTES, Sample, Samples};

use super::attr::Attr;
use super::block::Block;
use super::bytes::Order;
use super::packets;
use super::record::{Record, kind};
use super::rounds::Held;
use super::sample;

/// Samples come from the same few blocks and events by turns: so many of the latest are looked through for each.
const LOOKED_THROUGH: usize = 8;

/// See the module.
#[derive(Default)]
pub(super) struct Batch {
    pieces: Pieces,
    /// Bytes that they take in a packet.
    bytes: usize,
    lost: u64,
    event: u32,
    /// Where the first record stands.
    offset: u64,
    taken: Taken,
}

/// What a packet is of.
enum Taken {
    Payload(Vec<u8>),
    Shared(Header, Arc<Pieces>),
}

impl Default for Taken {
    fn default() -> Self {
        Self::Payload(Vec::new())
    }
}

/// Samples where they were read.
#[derive(Default)]
struct Pieces {
    list: Vec<Piece>,
    blocks: Vec<Arc<Block>>,
    /// By their places in the file's list.
    events: Vec<(u16, Arc<Attr>)>,
    order: Order,
}

struct Piece {
    at: u32,
    length: u32,
    block: u32,
    event: u32,
    misc: u16,
}

impl Batch {
    /// Of a file with its numbers in this order.
    pub(super) fn new(order: Order) -> Self {
        Self { pieces: Pieces::new(order), ..Self::default() }
    }

    /// Takes a sample of an event; false where there is no room: what there is has to go first.
    pub(super) fn sample(
        &mut self,
        held: &Held,
        attr: &Arc<Attr>,
        block: &Arc<Block>,
        range: Range<usize>,
    ) -> bool {
        self.begin(held.offset);
        let bytes = self.bytes + held.length as usize;
        if bytes > MAX_BYTES {
            return false;
        }
        self.bytes = bytes;
        self.pieces.add(held, attr, block, range);
        true
    }

    /// Takes note of samples that are missing; false where others of another event are.
    pub(super) fn lost(&mut self, lost: u64, event: u32, offset: u64) -> bool {
        self.begin(offset);
        if self.lost > 0 && self.event != event {
            return false;
        }
        self.lost = self.lost.saturating_add(lost);
        self.event = event;
        true
    }

    fn begin(&mut self, offset: u64) {
        if self.pieces.list.is_empty() && self.lost == 0 {
            self.offset = offset;
        }
    }

    /// Finishes the packet, if there is something for one, and tells where that stands. `is_shared` says whether samples stay where
    /// they are.
    pub(super) fn take(&mut self, is_shared: bool) -> Option<u64> {
        if self.pieces.list.is_empty() && self.lost == 0 {
            return None;
        }
        let next = Pieces::new(self.pieces.order);
        let pieces = std::mem::replace(&mut self.pieces, next);
        let header = Header {
            samples: pieces.list.len() as u32,
            lost: std::mem::take(&mut self.lost),
            event: std::mem::take(&mut self.event),
            ..Header::default()
        };
        self.bytes = 0;
        self.taken = if is_shared {
            Taken::Shared(header, Arc::new(pieces))
        } else {
            let mut payload = match std::mem::take(&mut self.taken) {
                Taken::Payload(before) => before,
                Taken::Shared(..) => Vec::new(),
            };
            payload.clear();
            payload.resize(HEADER, 0);
            pieces.each_read(|read| read.write(&mut payload));
            packets::head_of_samples(&mut payload, header);
            Taken::Payload(payload)
        };
        Some(self.offset)
    }

    /// What was finished, as a payload; empty where samples stay where they are.
    pub(super) fn payload(&self) -> &[u8] {
        match &self.taken {
            Taken::Payload(payload) => payload,
            Taken::Shared(..) => &[],
        }
    }

    /// What was finished, where its samples stay where they are.
    pub(super) fn shared(&self) -> Option<Body<'static>> {
        match &self.taken {
            Taken::Shared(header, pieces) => Some(Body::SharedSamples(*header, pieces.clone())),
            Taken::Payload(_) => None,
        }
    }
}

impl Pieces {
    fn new(order: Order) -> Self {
        Self { order, ..Self::default() }
    }

    fn add(&mut self, held: &Held, attr: &Arc<Attr>, block: &Arc<Block>, range: Range<usize>) {
        let block = latest(&mut self.blocks, |one| Arc::ptr_eq(one, block), || block.clone());
        let is_its = |one: &(u16, Arc<Attr>)| one.0 == held.event;
        let event = latest(&mut self.events, is_its, || (held.event, attr.clone()));
        let (at, length) = (range.start as u32, range.len() as u32);
        self.list.push(Piece { at, length, block, event, misc: held.misc });
    }

    fn each_read(&self, mut each: impl FnMut(sample::Read<'_>)) {
        for piece in &self.list {
            let block = &self.blocks[piece.block as usize];
            let body = &block[piece.at as usize..][..piece.length as usize];
            let (event, attr) = &self.events[piece.event as usize];
            let Self { order, .. } = *self;
            let record = Record { kind: kind::SAMPLE, misc: piece.misc, offset: 0, body, order };
            // Before it was held, it was found to be whole.
            sample::read(attr, event + 1, &record).into_iter().for_each(&mut each);
        }
    }
}

/// The place of something in a list, where it is among the latest; else it is put there again.
fn latest<T>(list: &mut Vec<T>, is_it: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> u32 {
    let looked_through = list.iter().enumerate().rev().take(LOOKED_THROUGH);
    let known = looked_through.clone().find(|(_, one)| is_it(one)).map(|(at, _)| at);
    let at = known.unwrap_or(list.len());
    if at == list.len() {
        list.push(new());
    }
    at as u32
}

impl SharedSamples for Pieces {
    fn each(&self, take: &mut dyn FnMut(&Sample<'_>)) {
        let mut written = Vec::new();
        self.each_read(|read| match read.as_it_stands() {
            Some(sample) => take(sample),
            None => {
                written.clear();
                read.write(&mut written);
                Samples { rest: &written }.for_each(|sample| take(&sample));
            }
        });
    }
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} samples", self.list.len())
    }
}
