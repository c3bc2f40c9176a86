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
    let (mut words, mut calls, mut out) = (Vec::new(), 0u64, Vec::new());
    for (at, item) in found.chunks_exact(item::SIZE / 8).enumerate() {
        for (word, address) in [(item::FROM_WORD, item::FROM), (item::TO_WORD, item::TO)] {
            let word = narrow(item, word);
            if word == FAR || word >= ESCAPE_BASE {
                leb128(&mut out, FAR.into());
                leb128(&mut out, wide(item, address));
            } else {
                leb128(&mut out, word.into());
                words.push(word);
            }
        }
        let number = wide(item, item::COUNT);
        leb128(&mut out, number);
        if at < arcs as usize {
            calls = calls.saturating_add(number);
        }
    }
    let compressed = zstd::bulk::compress(&out, 1);
    let encoding = if compressed.is_ok() { encoding::ZSTD } else { encoding::PLAIN };
    let header = Header { encoding, ..header };
    let payload = [&header.encode()[..], &compressed.unwrap_or(out)].concat();
    Some(Growth {
        kind: kind::ARCS,
        payloads: vec![payload],
        words,
        calls,
        returns: 0,
        lost: header.lost,
        serial: header.thread,
        is_first: false,
    })
}
