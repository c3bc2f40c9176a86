//! The samples of a packet: decompressed with hard limits, whatever the header claims.

use teeperf_wire::body::sample::{Header, MAX_BYTES, Samples, encoding};

/// Why the samples of a packet cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SamplesError {
    /// An encoding that this reader does not know.
    #[error("encoding {0} is not known")]
    Encoding(u8),
    /// The data does not decompress, or to more than a packet holds.
    #[error("its data does not decompress")]
    Compression,
    /// The data is not as long as the header says.
    #[error("the header says {expected} bytes, the data has {found}")]
    Length {
        /// Bytes that the header says.
        expected: u32,
        /// Bytes that are there.
        found: usize,
    },
}

/// Turns packets' data into samples; keeps its buffer from one packet to the next.
pub struct Decoder {
    zstd: zstd::bulk::Decompressor<'static>,
    bytes: Vec<u8>,
}

impl Decoder {
    /// A decoder, or what the system said when there was no memory for it.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { zstd: zstd::bulk::Decompressor::new()?, bytes: Vec::new() })
    }

    /// The samples, one by one.
    pub fn samples<'a>(
        &'a mut self,
        header: &Header,
        data: &'a [u8],
    ) -> Result<Samples<'a>, SamplesError> {
        let bytes = match header.encoding {
            encoding::PLAIN => data,
            encoding::ZSTD => {
                self.bytes.clear();
                self.bytes.reserve(MAX_BYTES);
                // Writes into the capacity that is there, and no further.
                self.zstd
                    .decompress_to_buffer(data, &mut self.bytes)
                    .map_err(|_| SamplesError::Compression)?;
                &self.bytes[..]
            }
            other => return Err(SamplesError::Encoding(other)),
        };
        if bytes.len() != header.bytes as usize {
            return Err(SamplesError::Length { expected: header.bytes, found: bytes.len() });
        }
        Ok(Samples { rest: bytes })
    }
}
