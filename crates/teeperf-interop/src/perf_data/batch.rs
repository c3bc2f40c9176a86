//! Samples that become one packet. They stay in the blocks where they were read: whoever works on them takes them from there, or a
//! payload is made of them.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use teeperf_profile::contents::{Body, SharedSamples};
use teeperf_wire::body::sample::{HEADER, Header, MAX_BYTES, Sample, Samples};

use super::attr::Attr;
use super::block::Block;
use super::bytes::Order;
use super::fetch;
use super::packets;
use super::record::{Record, kind};
use super::rounds::Held;
use super::sample;

/// Most blocks that a packet's samples keep: where much stands between them, or in them that packets have no use for, few samples keep
/// many.
const MOST_BLOCKS: usize = 8;
/// Samples come from the same few events by turns: so many of the latest are looked through for each.
const MOST_LOOKED_THROUGH: usize = 8;
/// So many samples ahead of its turn one is fetched.
const SOON: usize = 2;

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
    /// What was finished: as a payload, or where it is.
    payload: Vec<u8>,
    shared: Option<(Header, Arc<Pieces>)>,
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
    /// Its period, where the sample does not say it itself.
    period: Option<NonZeroU64>,
}

impl Batch {
    /// Of a file with its numbers in this order.
    pub(super) fn new(order: Order) -> Self {
        Self { pieces: Pieces::new(order), ..Self::default() }
    }

    /// Takes a sample of an event, which is one of the file's list; false where there is no room: what there is has to go first.
    /// `attr` says what the sample has. `period` is what it stands for, where that is not what it says itself.
    pub(super) fn sample(
        &mut self,
        held: &Held,
        (event, period): (u16, Option<NonZeroU64>),
        attr: &Arc<Attr>,
        block: &Arc<Block>,
        range: Range<usize>,
    ) -> bool {
        self.begin(held.offset);
        let bytes = self.bytes + held.length as usize;
        if bytes > MAX_BYTES {
            return false;
        }
        let Some(block) = self.pieces.block(block) else { return false };
        self.bytes = bytes;
        let event = self.pieces.event(event, attr);
        let (at, length) = (range.start as u32, range.len() as u32);
        self.pieces.list.push(Piece { at, length, block, event, misc: held.misc, period });
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
        if is_shared {
            self.shared = Some((header, Arc::new(pieces)));
        } else {
            self.payload.clear();
            self.payload.resize(HEADER, 0);
            pieces.each_read(|read| read.write(&mut self.payload));
            packets::head_of_samples(&mut self.payload, header);
        }
        Some(self.offset)
    }

    /// What was finished, as a payload.
    pub(super) fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Gives out what was finished, where its samples stay where they are.
    pub(super) fn shared(&mut self) -> Option<Body<'static>> {
        let (header, pieces) = self.shared.take()?;
        Some(Body::SharedSamples(header, pieces))
    }
}

impl Pieces {
    fn new(order: Order) -> Self {
        Self { order, ..Self::default() }
    }

    /// The place of a block in the list; nothing where it is one too many.
    fn block(&mut self, block: &Arc<Block>) -> Option<u32> {
        let known = self.blocks.iter().rposition(|one| Arc::ptr_eq(one, block));
        if known.is_none() && self.blocks.len() == MOST_BLOCKS {
            return None;
        }
        let at = known.unwrap_or_else(|| push(&mut self.blocks, block.clone()));
        Some(at as u32)
    }

    /// The place of an event in the list.
    fn event(&mut self, number: u16, attr: &Arc<Attr>) -> u32 {
        let begin = self.events.len().saturating_sub(MOST_LOOKED_THROUGH);
        let known = self.events[begin..]
            .iter()
            .position(|one| one.0 == number && Arc::ptr_eq(&one.1, attr));
        let new = || push(&mut self.events, (number, attr.clone()));
        known.map_or_else(new, |at| begin + at) as u32
    }

    fn bytes(&self, piece: &Piece) -> &[u8] {
        &self.blocks[piece.block as usize][piece.at as usize..][..piece.length as usize]
    }

    fn each_read(&self, mut each: impl FnMut(sample::Read<'_>)) {
        for (at, piece) in self.list.iter().enumerate() {
            if let Some(soon) = self.list.get(at + SOON) {
                fetch::sample(self.bytes(soon));
            }
            let body = self.bytes(piece);
            let (event, attr) = &self.events[piece.event as usize];
            let (misc, order) = (piece.misc, self.order);
            let record = Record { kind: kind::SAMPLE, misc, offset: 0, body, order };
            // Before it was held, it was found to be whole.
            let read = sample::read(attr, event + 1, &record);
            let read = read.map(|read| match piece.period {
                Some(period) => read.with_period(period.get()),
                None => read,
            });
            read.into_iter().for_each(&mut each);
        }
    }
}

/// Puts something at a list's end, and tells its place.
fn push<T>(list: &mut Vec<T>, new: T) -> usize {
    list.push(new);
    list.len() - 1
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

#[cfg(test)]
mod tests {
    use super::super::block::Free;
    use super::*;

    #[test]
    fn samples_that_are_far_apart_keep_few_blocks() {
        let (free, attr) = (Free::default(), Arc::default());
        let blocks: Vec<_> = (0..3 * MOST_BLOCKS).map(|_| free.block(free.take())).collect();
        let mut batch = Batch::new(Order::Little);
        let (mut taken, mut most) = (Vec::new(), 0);
        for block in &blocks {
            let held = Held { kind: kind::SAMPLE, length: 64, ..Held::default() };
            while !batch.sample(&held, (0, None), &attr, block, 0..8) {
                batch.take(true).unwrap();
                let Some(Body::SharedSamples(header, samples)) = batch.shared() else { panic!() };
                taken.push(header.samples);
                drop(samples);
                assert!(batch.shared().is_none(), "it is given out once");
            }
            let kept = |block: &&Arc<Block>| Arc::strong_count(block) > 1;
            most = most.max(blocks.iter().filter(kept).count());
        }
        assert_eq!((taken, most), (vec![MOST_BLOCKS as u32; 2], MOST_BLOCKS));
    }
}
