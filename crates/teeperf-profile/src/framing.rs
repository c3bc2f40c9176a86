//! Finds packets in a stream of bytes: a file, a pipe, a socket, whole or damaged. Holds one
//! packet and a small buffer, whatever the stream says. Where bytes are no packet, looks for
//! the next that is one, and says what it skipped. Knows nothing of what packets mean.

use std::io::{ErrorKind, Read};

use teeperf_wire::packet::{HEADER_SIZE, Header, MAX_PAYLOAD, SYNC};

use crate::error::Error;
use crate::warnings::Warnings;

/// Bytes asked of the stream at once.
const STEP: usize = 64 << 10;
/// A stream whose first bytes, this many, hold no packet is no recording.
const SEARCH: u64 = 2 << 20;
/// Checksum work allowed for each byte used or skipped, so that bytes which look like many headers
/// cannot make the search for a real one quadratic.
const CREDIT_FOR_BYTE: u64 = 16;

/// A packet as it stands in the stream. Its checksum was right.
#[derive(Clone, Copy, Debug)]
pub struct RawPacket<'a> {
    /// Where its header begins in the stream.
    pub offset: u64,
    /// Its header.
    pub header: Header,
    /// Its payload.
    pub payload: &'a [u8],
}

/// Takes packets from a stream.
pub(crate) struct Framing<R> {
    stream: R,
    name: String,
    /// Bytes read and not yet used: `buffer[start..end]`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `buffer[start]` in the stream.
    offset: u64,
    ended: bool,
    packets: u64,
    next_sequence: Option<u32>,
    /// First byte of the stretch that is being skipped.
    damaged_from: Option<u64>,
    /// Checksum work that the search may do yet, in bytes.
    credit: u64,
    pub(crate) warnings: Warnings,
}

impl<R: Read> Framing<R> {
    /// Over a stream; `name` is for messages.
    pub(crate) fn new(stream: R, name: String) -> Self {
        Self {
            stream,
            name,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
            packets: 0,
            next_sequence: None,
            damaged_from: None,
            credit: 8 * MAX_PAYLOAD as u64,
            warnings: Warnings::default(),
        }
    }

    /// Bytes used up so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next packet, or nothing at the stream's end.
    pub(crate) fn next(&mut self) -> Result<Option<RawPacket<'_>>, Error> {
        let (header, size) = loop {
            if !self.fill(HEADER_SIZE)? {
                return self.end();
            }
            if let Some(header) = self.header_here() {
                let size = HEADER_SIZE + header.length as usize;
                if !self.fill(size)? {
                    // Cut off inside this packet, or a length that is a lie.
                    self.skip_to_sync();
                    continue;
                }
                if self.checksum_fits(&header) {
                    break (header, size);
                }
            }
            self.skip_to_sync();
            if self.packets == 0 && self.offset > SEARCH {
                return Err(self.not_a_recording());
            }
        };
        self.note_damage_until(self.offset);
        self.note_missing(header.sequence);
        self.packets += 1;
        let packet = self.start..self.start + size;
        let offset = self.offset;
        self.start += size;
        self.offset += size as u64;
        self.credit += CREDIT_FOR_BYTE * size as u64;
        let payload = &self.buffer[packet][HEADER_SIZE..];
        Ok(Some(RawPacket { offset, header, payload }))
    }

    /// Makes `buffer[start..]` at least `need` bytes long; false when the stream ends before.
    fn fill(&mut self, need: usize) -> Result<bool, Error> {
        while self.end - self.start < need {
            if self.ended {
                return Ok(false);
            }
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            // Grows with what has come, not with what a length field says will come.
            if self.buffer.len() < self.end + STEP {
                self.buffer.resize(self.end + STEP, 0);
            }
            match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(n) => self.end += n.min(self.buffer.len() - self.end),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => {
                    let offset = self.offset + (self.end - self.start) as u64;
                    if offset == 0 {
                        return Err(Error::Read { name: self.name.clone(), offset, source });
                    }
                    self.ended = true;
                    self.warnings.add(|| {
                        format!("cannot be read from offset {offset} on: {source}; the recording ends there")
                    });
                }
            }
        }
        Ok(true)
    }

    fn header_here(&self) -> Option<Header> {
        let bytes = self.buffer[self.start..self.end].first_chunk::<HEADER_SIZE>()?;
        Header::decode(bytes).ok()
    }

    /// Whether the packet in the buffer is as its checksum says. Pays for the work where the
    /// stream is damaged, and says no without looking when too much was paid already.
    fn checksum_fits(&mut self, header: &Header) -> bool {
        let packet = &self.buffer[self.start..][..HEADER_SIZE + header.length as usize];
        if packet.len() as u64 > self.credit {
            return false;
        }
        let mut crc = crc32fast::Hasher::new();
        crc.update(&packet[..16]);
        crc.update(&packet[HEADER_SIZE..]);
        let fits = crc.finalize() == header.checksum;
        if !fits {
            self.credit -= packet.len() as u64;
        }
        fits
    }

    /// Drops at least one byte, and goes on to the next that may begin a packet.
    fn skip_to_sync(&mut self) {
        self.damaged_from.get_or_insert(self.offset);
        let rest = &self.buffer[self.start + 1..self.end];
        let skipped = 1 + rest
            .windows(SYNC.len())
            .position(|window| window == SYNC)
            .unwrap_or(rest.len().saturating_sub(SYNC.len() - 1));
        self.start += skipped;
        self.offset += skipped as u64;
        self.credit += CREDIT_FOR_BYTE * skipped as u64;
    }

    fn note_damage_until(&mut self, end: u64) {
        if let Some(from) = self.damaged_from.take() {
            self.warnings.add(|| {
                format!("damaged: {} bytes from offset {from} to {end} were skipped", end - from)
            });
        }
    }

    fn note_missing(&mut self, sequence: u32) {
        let offset = self.offset;
        if let Some(expected) = self.next_sequence
            && expected != sequence
        {
            self.warnings.add(|| {
                format!(
                    "before offset {offset}: packet {sequence} follows where packet {expected} \
                     belongs; what was between is missing"
                )
            });
        }
        self.next_sequence = Some(sequence.wrapping_add(1));
    }

    fn end(&mut self) -> Result<Option<RawPacket<'_>>, Error> {
        let end = self.offset + (self.end - self.start) as u64;
        if self.packets == 0 {
            return Err(self.not_a_recording());
        }
        if self.start < self.end {
            self.damaged_from.get_or_insert(self.offset);
            (self.start, self.offset) = (self.end, end);
        }
        if let Some(from) = self.damaged_from.take() {
            self.warnings.add(|| {
                format!("cut off inside a packet: the last {} bytes, from offset {from} on, are not used", end - from)
            });
        }
        Ok(None)
    }

    fn not_a_recording(&self) -> Error {
        let name = self.name.clone();
        match self.offset + (self.end - self.start) as u64 {
            0 => Error::Empty { name },
            searched => Error::NotARecording { name, searched },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(kind: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Header::encode(kind, sequence, payload).to_vec();
        bytes.extend_from_slice(payload);
        bytes
    }

    /// A stream that gives `step` bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let n = self.1.min(out.len());
            self.0.read(&mut out[..n])
        }
    }

    /// Offset, type and payload.
    type Plain = (u64, u16, Vec<u8>);

    fn read_all(bytes: &[u8], step: usize) -> (Vec<Plain>, Vec<String>) {
        let mut framing = Framing::new(Slow(bytes, step), "x".into());
        let mut packets = Vec::new();
        while let Ok(Some(packet)) = framing.next() {
            packets.push((packet.offset, packet.header.kind, packet.payload.to_vec()));
        }
        (packets, framing.warnings.into_vec())
    }

    #[test]
    fn packets_come_one_by_one() {
        let bytes = [packet(1, 0, b"one"), packet(2, 1, b""), packet(9, 2, &[7; 70_000])].concat();
        for step in [1, 19, 4096, 1 << 20] {
            let (packets, warnings) = read_all(&bytes, step);
            assert_eq!(packets.len(), 3);
            assert_eq!(packets[0], (0, 1, b"one".to_vec()));
            assert_eq!(packets[1], (23, 2, vec![]));
            assert_eq!(packets[2], (43, 9, vec![7; 70_000]));
            assert!(warnings.is_empty(), "{warnings:?}");
        }
    }

    #[test]
    fn damage_is_skipped_and_named() {
        let mut bytes =
            [packet(1, 0, b"first"), packet(2, 1, b"second"), packet(3, 2, b"third")].concat();
        bytes[25 + 21] ^= 1;
        let (packets, warnings) = read_all(&bytes, 4096);
        assert_eq!(packets.iter().map(|p| p.1).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(warnings[0], "damaged: 26 bytes from offset 25 to 51 were skipped");
        assert!(warnings[1].starts_with("before offset 51: packet 2 follows where packet 1"));
    }

    #[test]
    fn a_cut_names_its_offset() {
        let bytes = [packet(1, 0, b"first"), packet(2, 1, b"second")].concat();
        let (packets, warnings) = read_all(&bytes[..40], 4096);
        assert_eq!(packets.len(), 1);
        assert_eq!(
            warnings,
            ["cut off inside a packet: the last 15 bytes, from offset 25 on, are not used"]
        );
    }

    #[test]
    fn a_length_that_lies_hides_nothing_behind_it() {
        let mut lie = Header::encode(3, 1, &[0; 500_000]).to_vec();
        lie.extend(packet(4, 2, b"behind"));
        let bytes = [packet(1, 0, b""), lie].concat();
        let (packets, _) = read_all(&bytes, 4096);
        assert_eq!(packets.iter().map(|p| p.1).collect::<Vec<_>>(), [1, 4]);
    }

    #[test]
    fn other_files_are_refused_early() {
        let mut framing = Framing::new(std::io::repeat(b'T'), "x".into());
        assert!(matches!(framing.next(), Err(Error::NotARecording { .. })));
        let mut framing = Framing::new(&b""[..], "x".into());
        assert!(matches!(framing.next(), Err(Error::Empty { .. })));
        let mut framing = Framing::new(&b"T"[..], "x".into());
        assert!(matches!(framing.next(), Err(Error::NotARecording { searched: 1, .. })));
    }

    #[test]
    fn many_false_headers_cost_little() {
        // Each of these claims a megabyte; looking at each whole would be 50 GB of checksums.
        let mut bytes = packet(1, 0, b"");
        let lie = Header::encode(3, 1, &vec![0; MAX_PAYLOAD]);
        for _ in 0..(MAX_PAYLOAD / HEADER_SIZE) {
            bytes.extend(lie);
        }
        bytes.extend(vec![0; MAX_PAYLOAD]);
        bytes.extend(packet(4, 1, b"behind"));
        let mut framing = Framing::new(&bytes[..], "x".into());
        framing.credit = 1 << 20;
        let mut kinds = Vec::new();
        while let Ok(Some(packet)) = framing.next() {
            kinds.push(packet.header.kind);
        }
        assert_eq!(kinds, [1, 4]);
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..3000), step in 1usize..100) {
            let bytes = [packet(1, 0, b"x"), bytes].concat();
            let (packets, _) = read_all(&bytes, step);
            prop_assert!(!packets.is_empty());
        }

        #[test]
        fn one_flipped_bit_loses_one_packet(at in 0usize..(4 * 30 * 8)) {
            let mut bytes: Vec<u8> = (0..4).flat_map(|i| packet(i + 1, i.into(), b"0123456789")).collect();
            bytes[at / 8] ^= 1 << (at % 8);
            let (packets, warnings) = read_all(&bytes, 4096);
            prop_assert_eq!(packets.len(), 3);
            prop_assert!(!warnings.is_empty());
        }
    }
}
