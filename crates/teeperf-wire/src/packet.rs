//! Packets: what a recording is made of. A file, a pipe and a socket carry the same bytes;
//! a recording that was cut off is a valid shorter one.
//!
//! ```text
//! 0   4  "TPRF"
//! 4   2  type            u16, see `kind`
//! 6   2  flags           u16, 0; a reader ignores bits it does not know
//! 8   4  length          u32, bytes of payload, at most MAX_PAYLOAD
//! 12  4  sequence        u32, one more than the packet before, from 0, wrapping
//! 16  4  checksum        CRC-32 (IEEE 802.3, reflected, as in gzip) of bytes 0..16 and payload
//! 20  …  payload
//! ```
//!
//! All numbers are little-endian. A reader skips a packet whose type it does not know, and
//! says so; it goes on behind a packet whose checksum fails, by looking for the next header.

use crate::crc::Crc;

/// First bytes of every packet.
pub const SYNC: [u8; 4] = *b"TPRF";
/// Bytes before the payload.
pub const HEADER_SIZE: usize = 20;
/// Largest payload. No writer makes a larger one, no reader believes one.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// Version of the recording format, in the start packet. A reader reads recordings of
/// a higher minor version and skips what it does not know; a higher major version it refuses.
pub const MAJOR: u16 = 1;
/// See [`MAJOR`].
pub const MINOR: u16 = 6;

/// Packet types. 0 is never used.
pub mod kind {
    /// Fields ([`crate::body::start`]): first packet of a recording.
    pub const START: u16 = 1;
    /// Fields ([`crate::body::process`]): a process attached, or went through `exec` or `fork`.
    pub const PROCESS: u16 = 2;
    /// Fixed header and words ([`crate::body::chunk`]).
    pub const CHUNK: u16 = 3;
    /// Symbols of a module ([`crate::body::symbols`]).
    pub const SYMBOLS: u16 = 4;
    /// Fields ([`crate::body::thread`]): name of a thread.
    pub const THREAD: u16 = 5;
    /// Fields ([`crate::body::process_end`]): a process ended.
    pub const PROCESS_END: u16 = 6;
    /// Fields ([`crate::body::notice`]): something the user should know.
    pub const NOTICE: u16 = 7;
    /// Fields ([`crate::body::end`]): the recorder closed the recording in order.
    pub const END: u16 = 8;
    /// Fields ([`crate::body::loss`]): events that are missing, and no chunk says so.
    pub const LOSS: u16 = 9;
    /// Fixed header and nodes ([`crate::body::tree`]): what a thread did, summed by call path.
    pub const TREE: u16 = 10;
    /// Fixed header, arcs and spans ([`crate::body::arcs`]): who called whom how often, without call paths.
    pub const ARCS: u16 = 11;
    /// Fields ([`crate::body::keyframe`]): what replay knows of a thread where a window of a recording begins.
    pub const KEYFRAME: u16 = 12;
    /// Fields ([`crate::body::filter`]): which functions are recorded from some time on.
    pub const FILTER: u16 = 13;
    /// Fields ([`crate::body::sampled`]): an event whose samples are in the recording.
    pub const SAMPLED: u16 = 14;
    /// Fixed header and samples ([`crate::body::sample`]): states of interrupted threads.
    pub const SAMPLES: u16 = 15;
    /// Fields ([`crate::body::map`]): code of a process that is sampled.
    pub const MAP: u16 = 16;
    /// Fields ([`crate::body::task`]): what happened to a thread that is sampled.
    pub const TASK: u16 = 17;
    /// Fields ([`crate::body::file`]): a part of a file whose code was sampled, of another mount
    /// namespace.
    pub const FILE: u16 = 18;
}

/// A packet's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// One of [`kind`].
    pub kind: u16,
    /// 0.
    pub flags: u16,
    /// Bytes of payload.
    pub length: u32,
    /// Number of the packet.
    pub sequence: u32,
    /// See the module.
    pub checksum: u32,
}

/// Why bytes are no packet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// The first four bytes are not [`SYNC`].
    Sync,
    /// The length is above [`MAX_PAYLOAD`].
    Length(u32),
}

impl core::fmt::Display for HeaderError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Sync => write!(f, "no packet begins here"),
            Self::Length(n) => write!(f, "a packet claims {n} bytes, the limit is {MAX_PAYLOAD}"),
        }
    }
}

impl Header {
    /// Header bytes for a payload, checksum included. The payload is at most [`MAX_PAYLOAD`].
    pub fn encode(kind: u16, sequence: u32, payload: &[u8]) -> [u8; HEADER_SIZE] {
        debug_assert!(payload.len() <= MAX_PAYLOAD);
        let mut out = [0; HEADER_SIZE];
        out[0..4].copy_from_slice(&SYNC);
        out[4..6].copy_from_slice(&kind.to_le_bytes());
        out[8..12].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        out[12..16].copy_from_slice(&sequence.to_le_bytes());
        let checksum = Crc::new().update(&out[0..16]).update(payload).finish();
        out[16..20].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Reads a header; the payload's checksum is for [`Header::fits`].
    pub fn decode(bytes: &[u8; HEADER_SIZE]) -> Result<Self, HeaderError> {
        if bytes[0..4] != SYNC {
            return Err(HeaderError::Sync);
        }
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u16_at(at) as u32 | (u16_at(at + 2) as u32) << 16;
        let header = Self {
            kind: u16_at(4),
            flags: u16_at(6),
            length: u32_at(8),
            sequence: u32_at(12),
            checksum: u32_at(16),
        };
        if header.length as usize > MAX_PAYLOAD {
            return Err(HeaderError::Length(header.length));
        }
        Ok(header)
    }

    /// Whether the payload is the one the checksum was made for.
    pub fn fits(&self, payload: &[u8]) -> bool {
        let mut head = [0; 16];
        head[0..4].copy_from_slice(&SYNC);
        head[4..6].copy_from_slice(&self.kind.to_le_bytes());
        head[6..8].copy_from_slice(&self.flags.to_le_bytes());
        head[8..12].copy_from_slice(&self.length.to_le_bytes());
        head[12..16].copy_from_slice(&self.sequence.to_le_bytes());
        payload.len() == self.length as usize
            && Crc::new().update(&head).update(payload).finish() == self.checksum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn comes_back(kind: u16, sequence: u32, payload in proptest::collection::vec(any::<u8>(), 0..99)) {
            let header = Header::decode(&Header::encode(kind, sequence, &payload)).unwrap();
            prop_assert_eq!((header.kind, header.sequence), (kind, sequence));
            prop_assert!(header.fits(&payload));
        }

        #[test]
        fn a_flipped_bit_is_seen(at in 0usize..(HEADER_SIZE + 40) * 8, payload: [u8; 40]) {
            let mut bytes = Header::encode(3, 7, &payload).to_vec();
            bytes.extend(payload);
            bytes[at / 8] ^= 1 << (at % 8);
            let (head, body) = bytes.split_at(HEADER_SIZE);
            if let Ok(header) = Header::decode(head.try_into().unwrap()) {
                prop_assert!(!header.fits(body));
            }
        }
    }
}
