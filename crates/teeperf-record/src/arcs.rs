//! Calls between places of code ([`teeperf_wire::arena::item`]): from chunks, and into packets.
//!
//! Believes nothing: words are limited to those of calls.

use crate::trees::packets::leb128;
use crate::trees::{narrow, wide};
use teeperf_wire::arena::item;
use teeperf_wire::body::arcs::{FAR, Header, encoding};
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

/// As it stands in a chunk.
pub(crate) fn read(item: &[u64]) -> Item {
    let places = [(item::FROM_WORD, item::FROM), (item::TO_WORD, item::TO)];
    let places = places.map(|(word, address)| match narrow(item, word) {
        FAR | ESCAPE_BASE.. => (FAR, wide(item, address)),
        word => (word, 0),
    });
    Item { places, count: wide(item, item::COUNT) }
}
