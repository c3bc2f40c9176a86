//! The words of a chunk: decoded with hard limits, whatever the header claims.

use teeperf_wire::body::chunk::{Header, MAX_BYTES, MAX_WORDS, encoding};
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{self, Word};

/// Longest data that a chunk packet may carry: what does not compress, and zstd's frame.
pub const MAX_DATA: usize = MAX_BYTES + (MAX_BYTES >> 7) + 512;

/// Why the words of a chunk cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// An encoding that this reader does not know.
    #[error("encoding {0} is not known")]
    Encoding(u8),
    /// Time words apart, where the clock has none.
    #[error("encoding {0} is not for the tick clock")]
    NotForTicks(u8),
    /// A clock that this reader does not know.
    #[error("clock {0} is not known")]
    Clock(u8),
    /// More data than a chunk can have.
    #[error("{0} bytes of data, the limit is {MAX_DATA}")]
    TooLong(usize),
    /// The data does not decompress, or to more than a chunk holds.
    #[error("its data does not decompress")]
    Compression,
    /// The data ends within a word.
    #[error("its data is not whole words")]
    CutWord,
    /// The data is not as many words as the header says.
    #[error("the header says {expected} words, the data has {found}")]
    Count {
        /// Words that the header says.
        expected: u32,
        /// Words, or whole times in the second plane, that are there.
        found: usize,
    },
}

/// Turns chunk data into words; keeps its buffers from one chunk to the next.
pub struct Decoder {
    zstd: zstd::bulk::Decompressor<'static>,
    bytes: Vec<u8>,
    words: Vec<u32>,
}

impl Decoder {
    /// A decoder, or what the system said when there was no memory for it.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            zstd: zstd::bulk::Decompressor::new()?,
            bytes: Vec::with_capacity(MAX_BYTES),
            words: Vec::with_capacity(MAX_WORDS),
        })
    }

    /// The words, and the clock they are for.
    pub fn words(
        &mut self,
        header: &Header,
        data: &[u8],
    ) -> Result<(ClockKind, &[u32]), ChunkError> {
        let clock =
            ClockKind::from_u32(header.clock.into()).ok_or(ChunkError::Clock(header.clock))?;
        if data.len() > MAX_DATA {
            return Err(ChunkError::TooLong(data.len()));
        }
        self.words.clear();
        match header.encoding {
            encoding::PLAIN => append_words(&mut self.words, data)?,
            encoding::ZSTD => {
                self.decompress(data)?;
                append_words(&mut self.words, &self.bytes)?;
            }
            encoding::CYCLE_ZSTD if clock == ClockKind::Tick => {
                return Err(ChunkError::NotForTicks(header.encoding));
            }
            encoding::CYCLE_ZSTD => {
                self.decompress(data)?;
                join_planes(header, &self.bytes, &mut self.words)?;
            }
            other => return Err(ChunkError::Encoding(other)),
        }
        if self.words.len() != header.count as usize {
            return Err(ChunkError::Count { expected: header.count, found: self.words.len() });
        }
        Ok((clock, &self.words))
    }

    fn decompress(&mut self, data: &[u8]) -> Result<(), ChunkError> {
        self.bytes.clear();
        // Writes into the capacity that is there, MAX_BYTES or a little more, and no further.
        self.zstd
            .decompress_to_buffer(data, &mut self.bytes)
            .map_err(|_| ChunkError::Compression)?;
        Ok(())
    }
}

fn append_words(words: &mut Vec<u32>, bytes: &[u8]) -> Result<(), ChunkError> {
    words.extend(whole_words(bytes)?.take(MAX_WORDS));
    Ok(())
}

fn whole_words(bytes: &[u8]) -> Result<impl Iterator<Item = u32>, ChunkError> {
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(ChunkError::CutWord);
    }
    Ok(words.iter().map(|word| u32::from_le_bytes(*word)))
}

/// Puts the time words of the second plane back behind their events.
fn join_planes(header: &Header, bytes: &[u8], words: &mut Vec<u32>) -> Result<(), ChunkError> {
    let short = |found| ChunkError::Count { expected: header.count, found };
    let (plane, mut times) =
        bytes.split_at_checked(header.words_bytes as usize).ok_or(short(bytes.len() / 4))?;
    let mut time = header.time as u32;
    let mut next_time = || {
        let (step, rest) = leb128(times)?;
        times = rest;
        time = time.wrapping_add(step);
        Some(time)
    };
    let mut rest = whole_words(plane)?;
    while let Some(event) = rest.next() {
        if words.len() >= MAX_WORDS {
            return Err(short(words.len()));
        }
        words.push(event);
        match word::decode(event) {
            Word::Call { .. } | Word::Return { .. } => {
                // A chunk may end between an event and its time.
                if words.len() < header.count as usize {
                    words.push(next_time().ok_or(short(words.len()))?);
                }
            }
            Word::Escape { code, .. } if word::has_payload(code) => {
                let Some(count) = rest.next() else { continue };
                words.push(count);
                let payload = word::payload_value(count).unwrap_or(0) as usize;
                words.extend(
                    rest.by_ref().take(payload.min(MAX_WORDS - words.len().min(MAX_WORDS))),
                );
            }
            Word::Escape { .. } | Word::Invalid | Word::End => {}
        }
    }
    Ok(())
}

/// An unsigned LEB128 number modulo 2^32, and what follows it.
fn leb128(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut value = 0u32;
    for (i, &byte) in bytes.iter().enumerate().take(5) {
        value |= u32::from(byte & 0x7F) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[i + 1..]));
        }
    }
    None
}
