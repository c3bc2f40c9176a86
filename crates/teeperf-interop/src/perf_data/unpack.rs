//! Compressed records (`perf record -z`): one stream of zstd over all of them, of the bytes of records, which begin in one and end
//! in another as it falls.

use std::ops::Range;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::bytes::Order;
use super::records::First;

/// Bytes that are decompressed at once.
const STEP: usize = 1 << 18;
/// How many times longer data may become. perf's becomes ten times so long, stacks of zeroes a hundred times.
const MOST_RATIO: u64 = 1000;
/// Bytes that any data may become.
const FREE: u64 = 1 << 24;

pub(super) struct Unpacker {
    decoder: Decoder<'static>,
    /// What was not decompressed yet: `packed[at..]`.
    packed: Vec<u8>,
    at: usize,
    /// Whether the decoder may have more to give without being given more.
    is_pending: bool,
    /// Bytes taken in and given out, since the beginning.
    taken: u64,
    given: u64,
    /// Where the record stands that was taken last.
    pub(super) offset: u64,
    /// What was decompressed, and which part of it was not used yet.
    bytes: Vec<u8>,
    rest: Range<usize>,
    /// It cannot be read any more.
    pub(super) is_broken: bool,
}

impl Unpacker {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            decoder: Decoder::new()?,
            packed: Vec::new(),
            at: 0,
            is_pending: false,
            taken: 0,
            given: 0,
            offset: 0,
            bytes: Vec::new(),
            rest: 0..0,
            is_broken: false,
        })
    }

    /// Takes what stands in a compressed record. What was taken before was decompressed.
    pub(super) fn take(&mut self, data: &[u8], offset: u64) {
        self.packed.clear();
        self.packed.extend_from_slice(data);
        (self.at, self.offset) = (0, offset);
        self.taken += data.len() as u64;
    }

    /// What was decompressed goes on with that. A record is taken off.
    pub(super) fn next(&mut self, order: Order) -> First {
        let first = First::of(&self.bytes, self.rest.clone(), order);
        if let First::Whole(_, _, body) = &first {
            self.rest.start = body.end;
        }
        first
    }

    /// What was decompressed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether there is a part of a record.
    pub(super) fn has_begun(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Decompresses on; false when there is no more.
    ///
    /// # Errors
    ///
    /// When the data is none that was compressed, or more than any would be.
    pub(super) fn more(&mut self) -> std::io::Result<bool> {
        if self.is_broken || (self.at == self.packed.len() && !self.is_pending) {
            return Ok(false);
        }
        self.bytes.copy_within(self.rest.clone(), 0);
        let end = self.rest.len();
        if self.bytes.len() < end + STEP {
            self.bytes.resize(end + STEP, 0);
        }
        let mut input = InBuffer { src: &self.packed, pos: self.at };
        let mut output = OutBuffer::around(&mut self.bytes[end..]);
        let ran = self.decoder.run(&mut input, &mut output);
        let (read, written) = (input.pos, output.pos());
        self.is_pending = written == output.capacity();
        self.rest = 0..end + written;
        self.at = read;
        self.given += written as u64;
        if let Err(error) = ran {
            self.is_broken = true;
            return Err(error);
        }
        if self.given > self.taken.saturating_mul(MOST_RATIO).saturating_add(FREE) {
            self.is_broken = true;
            return Err(std::io::Error::other("it becomes too much"));
        }
        Ok(true)
    }
}
