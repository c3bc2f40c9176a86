//! The records of a file one by one, from a stream, in large blocks. What is compressed is decompressed on the way, and data
//! that perf puts behind a record without counting it in (AUX traces, formats of tracepoints) is skipped.

use std::io::{ErrorKind, Read};
use std::ops::Range;

use super::bytes::{Bytes, Order};
use super::record::{Record, kind};
use super::unpack::Unpacker;

/// Bytes asked of the file at once.
const STEP: usize = 1 << 18;
/// Bytes of a record's head: type, `misc`, size.
const HEAD: usize = 8;

/// Bytes that were read and not yet used: `bytes[at..end]`.
#[derive(Default)]
pub(super) struct Block {
    bytes: Vec<u8>,
    at: usize,
    end: usize,
}

/// What a block begins with.
enum First {
    /// A record, whose bytes are there.
    Whole(u32, u16, Range<usize>),
    /// As much as there is of one.
    Part,
    /// No record has so few bytes.
    Size(u16),
}

impl Block {
    fn first(&self, order: Order) -> First {
        let mut head = Bytes { rest: &self.bytes[self.at..self.end], order };
        let (Some(kind), Some(misc), Some(size)) = (head.u32(), head.u16(), head.u16()) else {
            return First::Part;
        };
        match usize::from(size) {
            ..HEAD => First::Size(size),
            size if size > self.end - self.at => First::Part,
            size => First::Whole(kind, misc, self.at + HEAD..self.at + size),
        }
    }

    /// Room for so many bytes behind those that are there, which may move.
    pub(super) fn room(&mut self, step: usize) -> &mut [u8] {
        self.bytes.copy_within(self.at..self.end, 0);
        (self.at, self.end) = (0, self.end - self.at);
        if self.bytes.len() < self.end + step {
            self.bytes.resize(self.end + step, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// So many bytes of the room have something in them now.
    pub(super) fn filled(&mut self, bytes: usize) {
        self.end += bytes;
    }

    fn len(&self) -> usize {
        self.end - self.at
    }
}

/// See the module.
pub(super) struct Records<R> {
    stream: R,
    pub(super) order: Order,
    block: Block,
    /// Where `block` goes on in the file.
    read: u64,
    /// Bytes of the data that are still to be read; nothing where its length is not known.
    left: Option<u64>,
    /// Bytes to skip before the next record.
    skip: u64,
    unpacker: Option<Unpacker>,
    /// Whether the data had an end where it should.
    pub(super) is_whole: bool,
    is_over: bool,
    pub(super) warnings: Vec<String>,
}

impl<R: Read> Records<R> {
    /// Of a stream that stands at `offset` in the file, and has so many bytes of data there.
    pub(super) fn new(stream: R, order: Order, offset: u64, left: Option<u64>) -> Self {
        Self {
            stream,
            order,
            block: Block::default(),
            read: offset,
            left,
            skip: 0,
            unpacker: None,
            is_whole: true,
            is_over: false,
            warnings: Vec::new(),
        }
    }

    /// Where the next record stands.
    pub(super) fn offset(&self) -> u64 {
        self.read - self.block.len() as u64
    }

    /// The next record; nothing at the end.
    pub(super) fn next(&mut self) -> Option<Record<'_>> {
        loop {
            if let Some((kind, misc, range)) = self.unpacked() {
                let unpacker = self.unpacker.as_ref()?;
                let body = &unpacker.block.bytes[range];
                return Some(Record {
                    kind,
                    misc,
                    offset: unpacker.offset,
                    body,
                    order: self.order,
                });
            }
            let offset = self.offset();
            let (kind, misc, range) = self.stored()?;
            let body = &self.block.bytes[range.clone()];
            match kind {
                kind::AUXTRACE => {
                    let size = Bytes { rest: body, order: self.order }.u64();
                    self.skip = size.unwrap_or(0);
                }
                kind::TRACING_DATA => {
                    let size = Bytes { rest: body, order: self.order }.u32();
                    self.skip = size.unwrap_or(0).into();
                }
                kind::COMPRESSED | kind::COMPRESSED2 => self.unpack(kind, offset, range),
                _ => {
                    let body = &self.block.bytes[range];
                    return Some(Record { kind, misc, offset, body, order: self.order });
                }
            }
        }
    }

    fn unpack(&mut self, kind: u32, offset: u64, range: Range<usize>) {
        let mut bytes = Bytes { rest: &self.block.bytes[range], order: self.order };
        if kind == kind::COMPRESSED2 {
            // It says how long the data is, and is filled up to a multiple of eight.
            let length = bytes.u64().unwrap_or(0);
            bytes.rest = bytes.row(length, 1).unwrap_or(bytes.rest);
        }
        if self.unpacker.is_none() {
            match Unpacker::new() {
                Ok(unpacker) => self.unpacker = Some(unpacker),
                Err(error) => {
                    self.warnings.push(format!("what is compressed is left out: {error}"))
                }
            }
        }
        if let Some(unpacker) = &mut self.unpacker {
            unpacker.take(bytes.rest, offset);
        }
    }

    /// The next record that was compressed, if there is one without reading on.
    fn unpacked(&mut self) -> Option<(u32, u16, Range<usize>)> {
        let unpacker = self.unpacker.as_mut()?;
        loop {
            match unpacker.block.first(self.order) {
                First::Whole(kind, misc, range) => {
                    unpacker.block.at = range.end;
                    return Some((kind, misc, range));
                }
                First::Size(size) if !unpacker.is_broken => {
                    unpacker.is_broken = true;
                    self.is_whole = false;
                    self.warnings.push(format!(
                        "offset {}: what is compressed here has a record of {size} bytes, and they have {HEAD} at least: \
                         what is compressed is left out from there on",
                        unpacker.offset
                    ));
                    return None;
                }
                First::Size(_) => return None,
                First::Part => match unpacker.more() {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => {
                        self.is_whole = false;
                        self.warnings.push(format!(
                            "offset {}: what is compressed cannot be read from here on: {error}",
                            unpacker.offset
                        ));
                    }
                },
            }
        }
    }

    /// The next record that stands in the file as it is.
    fn stored(&mut self) -> Option<(u32, u16, Range<usize>)> {
        while !self.is_over {
            let skipped = (self.block.len() as u64).min(self.skip);
            self.block.at += skipped as usize;
            self.skip -= skipped;
            if self.skip == 0 {
                match self.block.first(self.order) {
                    First::Whole(kind, misc, range) => {
                        self.block.at = range.end;
                        return Some((kind, misc, range));
                    }
                    First::Size(size) => {
                        self.is_over = true;
                        self.is_whole = false;
                        self.warnings.push(format!(
                            "offset {}: a record has {size} bytes, and they have {HEAD} at least: what comes behind it is \
                             left out",
                            self.offset()
                        ));
                        return None;
                    }
                    First::Part => {}
                }
            }
            if !self.fill() {
                self.is_over = true;
                self.note_end();
            }
        }
        None
    }

    /// Reads on; false at the end.
    fn fill(&mut self) -> bool {
        let room = self.block.room(STEP);
        let most = self.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let room = room.len().min(most);
        loop {
            let room = &mut self.block.bytes[self.block.end..][..room];
            match self.stream.read(room) {
                Ok(bytes) => {
                    self.block.filled(bytes);
                    self.read += bytes as u64;
                    self.left = self.left.map(|left| left - bytes as u64);
                    return bytes > 0;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.warnings.push(format!("offset {}: cannot be read on: {error}", self.read));
                    self.is_whole = false;
                    return false;
                }
            }
        }
    }

    fn note_end(&mut self) {
        let (begun, end) = (self.offset(), self.read);
        let left = self.left.unwrap_or(0);
        let rest = if left > 0 {
            format!(", {left} bytes before the end of its data")
        } else {
            String::new()
        };
        if begun < end {
            self.warnings.push(format!(
                "the file ends at {end}{rest}, within a record that begins at {begun}"
            ));
        } else if self.skip > 0 {
            self.warnings.push(format!(
                "the file ends at {end}{rest}, within data of {} bytes more",
                self.skip
            ));
        } else if left > 0 {
            self.warnings.push(format!("the file ends at {end}{rest}"));
        }
        let packed = self.unpacker.as_ref().filter(|unpacker| !unpacker.is_broken);
        let cut = packed.filter(|unpacker| unpacker.block.len() > 0);
        if let Some(unpacker) = cut {
            self.warnings.push(format!(
                "offset {}: what is compressed ends within a record",
                unpacker.offset
            ));
        }
        if begun < end || left > 0 || self.skip > 0 || cut.is_some() {
            self.is_whole = false;
        }
    }
}
