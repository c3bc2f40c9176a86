//! Calls between places of code, as code that is compiled with `-pg` hands them over in chunks of an arena
//! ([`teeperf_wire::arena::items`]): made into packets, one for each chunk.
//!
//! Believes nothing: counts are limited to what a chunk has, and words to those of calls.

use crate::segment::Segment;
use crate::trees::packets::leb128;
use crate::trees::{Growth, narrow, wide};
use teeperf_wire::arena::{item, items};
use teeperf_wire::body::arcs::{FAR, Header, MAX_ITEMS, encoding};
use teeperf_wire::packet::kind;
use teeperf_wire::shared::chunk;
use teeperf_wire::word::ESCAPE_BASE;

/// An arc or a span: of both its places the word, or [`FAR`], and the address then; and calls, or clock units.
pub(crate) struct Item {
    pub(crate) places: [(u32, u64); 2],
    pub(crate) count: u64,
}

/// Payload of a packet with these, of which the first `header.arcs` are arcs, and `header.spans` more spans.
pub(crate) fn payload(header: Header, items: &[Item]) -> Vec<u8> {
    let mut out = Vec::new();
    for item in items {
        for (word, address) in item.places {
            leb128(&mut out, word.into());
            if word == FAR {
                leb128(&mut out, address);
            }
        }
        leb128(&mut out, item.count);
    }
    let compressed = zstd::bulk::compress(&out, 1);
    let encoding = if compressed.is_ok() { encoding::ZSTD } else { encoding::PLAIN };
    let header = Header { encoding, ..header };
    [&header.encode()[..], &compressed.unwrap_or(out)].concat()
}

/// What a chunk says; nothing when it makes no sense. The thread is not known to be a new one.
pub(crate) fn growth(segment: &Segment, index: usize, process: u32) -> Option<Growth> {
    let mut wides = vec![0; segment.class().shape().0 / 8];
    segment.copy_of(index, &mut wides);
    let (head, data) = wides.split_at_checked(chunk::WORDS / 8)?;
    let (arcs, count) = (narrow(head, items::ARCS), narrow(head, items::COUNT));
    let found = data.get(..count as usize * (item::SIZE / 8))?;
    if arcs > count || count as usize > MAX_ITEMS {
        return None;
    }
    let header = Header {
        process,
        thread: narrow(head, chunk::SERIAL),
        tid: narrow(head, chunk::TID),
        arcs,
        begin: wide(head, items::BEGIN),
        end: wide(head, items::END),
        lost: wide(head, items::LOST),
        spans: count - arcs,
        encoding: encoding::PLAIN,
    };
    let items: Vec<Item> = found.chunks_exact(item::SIZE / 8).map(read).collect();
    let words = items.iter().flat_map(|item| item.places.map(|(word, _)| word));
    let calls = items[..arcs as usize].iter().map(|item| item.count);
    Some(Growth {
        kind: kind::ARCS,
        payloads: vec![payload(header, &items)],
        words: words.filter(|&word| word != FAR).collect(),
        calls: calls.fold(0, u64::saturating_add),
        returns: 0,
        lost: header.lost,
        serial: header.thread,
        is_first: false,
    })
}

fn read(item: &[u64]) -> Item {
    let places = [(item::FROM_WORD, item::FROM), (item::TO_WORD, item::TO)];
    let places = places.map(|(word, address)| match narrow(item, word) {
        FAR | ESCAPE_BASE.. => (FAR, wide(item, address)),
        word => (word, 0),
    });
    Item { places, count: wide(item, item::COUNT) }
}
