//! The records of a file one by one, from a stream, in large blocks, or from where the system has the file. What is compressed is
//! decompressed on the way, and data that perf puts behind a record without counting it in (AUX traces, formats of tracepoints) is skipped.

use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::sync::Arc;

use super::block::{Block, Free, SIZE, Source};
use super::bytes::{Bytes, Order};
use super::fetch;
use super::mapped::Windows;
use super::record::{Record, kind};
use super::unpack::Unpacker;

/// Bytes of a record's head: type, `misc`, size.
pub(super) const HEAD: usize = 8;

/// What bytes begin with.
pub(super) enum First {
    /// A record, whose bytes behind its head are there.
    Whole(u32, u16, Range<usize>),
    /// As much as there is of one.
    Part,
    /// No record has so few bytes.
    Size(u16),
}

impl First {
    /// Of some of the bytes.
    pub(super) fn of(bytes: &[u8], part: Range<usize>, order: Order) -> Self {
        let mut head = Bytes { rest: &bytes[part.clone()], order };
        let (Some(kind), Some(misc), Some(size)) = (head.u32(), head.u16(), head.u16()) else {
            return Self::Part;
        };
        match usize::from(size) {
            ..HEAD => Self::Size(size),
            size if size > part.len() => Self::Part,
            size => Self::Whole(kind, misc, part.start + HEAD..part.start + size),
        }
    }
}

/// A record, and where its bytes are.
pub(super) struct Found<'a> {
    pub(super) record: Record<'a>,
    pub(super) source: Source<'a>,
}

/// Where the latest record is.
pub(super) struct Place {
    kind: u32,
    misc: u16,
    offset: u64,
    range: Range<usize>,
    is_unpacked: bool,
}

/// See the module.
pub(super) struct Records<R> {
    stream: R,
    /// Where the file, which `stream` is, is mapped; and whether it just was for the last time.
    pub(super) windows: Option<Windows>,
    has_unmapped: bool,
    pub(super) order: Order,
    /// What is read from, and which part of it was not used yet.
    block: Arc<Block>,
    rest: Range<usize>,
    free: Free,
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
            windows: None,
            has_unmapped: false,
            order,
            block: Arc::default(),
            rest: 0..0,
            free: Free::default(),
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
        self.read - self.rest.len() as u64
    }

    /// Whether the file is mapped no more since this was asked for the last time.
    pub(super) fn has_unmapped(&mut self) -> bool {
        std::mem::take(&mut self.has_unmapped)
    }

    /// Goes on to the next record; nothing at the end.
    pub(super) fn advance(&mut self) -> Option<Place> {
        loop {
            if let Some((kind, misc, range)) = self.unpacked() {
                let offset = self.unpacker.as_ref()?.offset;
                return Some(Place { kind, misc, offset, range, is_unpacked: true });
            }
            let (order, offset) = (self.order, self.offset());
            let (kind, misc, range) = self.stored()?;
            let body = &self.block[range.clone()];
            match kind {
                kind::AUXTRACE => {
                    let size = Bytes { rest: body, order }.u64();
                    self.skip = size.unwrap_or(0);
                }
                kind::TRACING_DATA => {
                    let size = Bytes { rest: body, order }.u32();
                    self.skip = size.unwrap_or(0).into();
                }
                kind::COMPRESSED | kind::COMPRESSED2 => self.unpack(kind, offset, range),
                _ => return Some(Place { kind, misc, offset, range, is_unpacked: false }),
            }
        }
    }

    /// The record that was gone on to.
    pub(super) fn found(&self, place: Place) -> Found<'_> {
        let Place { kind, misc, offset, range, is_unpacked } = place;
        let order = self.order;
        let (body, source) = match self.unpacker.as_ref().filter(|_| is_unpacked) {
            Some(unpacker) => {
                let body = &unpacker.bytes()[range];
                (body, Source::Bytes(body))
            }
            None => (&self.block[range.clone()], Source::Block(&self.block, range)),
        };
        Found { record: Record { kind, misc, offset, body, order }, source }
    }

    fn unpack(&mut self, kind: u32, offset: u64, range: Range<usize>) {
        let mut bytes = Bytes { rest: &self.block[range], order: self.order };
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
            match unpacker.next(self.order) {
                First::Whole(kind, misc, range) => return Some((kind, misc, range)),
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
            let skipped = (self.rest.len() as u64).min(self.skip);
            self.rest.start += skipped as usize;
            self.skip -= skipped;
            if self.skip == 0 {
                match First::of(&self.block, self.rest.clone(), self.order) {
                    First::Whole(kind, misc, range) => {
                        self.rest.start = range.end;
                        fetch::record(&self.block, range.end, HEAD + range.len());
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

    /// Goes on in another block, which begins with what was not used yet; false at the end.
    fn fill(&mut self) -> bool {
        self.map().unwrap_or_else(|| self.read_on())
    }

    /// The block is a part of a mapped file; nothing where it has to be read.
    fn map(&mut self) -> Option<bool> {
        let at = self.offset();
        let windows = self.windows.as_ref()?;
        let end = self
            .left
            .map_or(windows.size(), |left| windows.size().min(self.read.saturating_add(left)));
        if self.read >= end {
            return Some(false);
        }
        // Where much is skipped, a block of a window's size would keep little.
        let next = if self.skip == 0 { windows.at(at, end) } else { None };
        let Some((window, begin)) = next else {
            self.has_unmapped = true;
            if let Err(error) = self.windows.take()?.read_from(self.read) {
                self.cannot_read_on(&error);
                return Some(false);
            }
            return None;
        };
        let read = begin + window.len() as u64 - self.read;
        self.went_on(read);
        self.rest = (at - begin) as usize..window.len();
        self.block = Arc::new(Block::Mapped(window));
        Some(true)
    }

    fn read_on(&mut self) -> bool {
        let mut bytes = self.free.take();
        let begun = self.rest.len();
        bytes[..begun].copy_from_slice(&self.block[self.rest.clone()]);
        let most = self.left.map_or(SIZE, |left| usize::try_from(left).unwrap_or(SIZE));
        let mut end = begun;
        let room = begun..SIZE.min(begun.saturating_add(most));
        // Pipes give little at once.
        while end < room.end {
            match self.stream.read(&mut bytes[end..room.end]) {
                Ok(0) => break,
                Ok(read) => end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What was read goes first.
                Err(_) if end > begun => break,
                Err(error) => {
                    self.cannot_read_on(&error);
                    break;
                }
            }
        }
        let read = (end - begun) as u64;
        self.went_on(read);
        self.block = self.free.block(bytes);
        self.rest = 0..end;
        read > 0
    }

    fn went_on(&mut self, read: u64) {
        self.read += read;
        self.left = self.left.map(|left| left - read);
    }

    fn cannot_read_on(&mut self, error: &std::io::Error) {
        self.warnings.push(format!("offset {}: cannot be read on: {error}", self.read));
        self.is_whole = false;
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
        let cut = packed.filter(|unpacker| unpacker.has_begun());
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
