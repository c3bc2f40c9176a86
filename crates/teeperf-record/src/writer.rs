//! Packets to a file, a pipe or anything that takes bytes. Buffers whole packets, and cuts
//! a file back to its last whole packet when it cannot go on. Of a file system that is full a part is
//! kept back ([`Reserve`]), into which names and the recording's end are written.

use crate::output_file::OutputFile;
use crate::reserve::Reserve;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use teeperf_wire::packet::{HEADER_SIZE, MAX_PAYLOAD, SYNC, kind};

/// Where a recording goes.
pub enum Output {
    /// A file, made or overwritten when the recording starts.
    File(PathBuf),
    /// The recorder's standard output. The program's own goes to standard error then.
    Stdout,
    /// Anything else.
    Writer(Box<dyn Write + Send>),
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Stdout => f.write_str("Stdout"),
            Self::Writer(_) => f.write_str("Writer"),
        }
    }
}

/// An output that is open.
enum Open {
    File(OutputFile, Reserve),
    Other(Box<dyn Write + Send>),
}

/// Bytes gathered before they are written.
const BUFFER: usize = 256 << 10;
/// Longest time a packet stays in the buffer.
const LINGER: Duration = Duration::from_millis(250);
/// Least bytes of whole packets for which room is looked for at once.
const PART: usize = 32 << 10;

/// Writes packets. After an error it takes no more, and says so each time.
pub struct PacketWriter {
    output: Open,
    buffer: Vec<u8>,
    /// Ends of the packets in the buffer.
    ends: Vec<usize>,
    sequence: u32,
    /// Bytes of whole packets that the output has taken.
    written: u64,
    flushed: Instant,
    /// There is no room but for names and the end.
    is_full: bool,
    failed: bool,
}

impl PacketWriter {
    /// Opens the output. [`io::ErrorKind::WouldBlock`]: another recorder writes to the file.
    pub fn open(output: Output) -> io::Result<Self> {
        let output = match output {
            Output::File(path) => {
                let output = OutputFile::open(path)?;
                let reserve = Reserve::of(&output.file);
                Open::File(output, reserve)
            }
            Output::Stdout => Open::Other(Box::new(io::stdout())),
            Output::Writer(writer) => Open::Other(writer),
        };
        Ok(Self {
            output,
            buffer: Vec::with_capacity(BUFFER + HEADER_SIZE + MAX_PAYLOAD),
            ends: Vec::new(),
            sequence: 0,
            written: 0,
            flushed: Instant::now(),
            is_full: false,
            failed: false,
        })
    }

    /// Numbers packets from here on, where they are to stand before others. Before the first.
    pub fn begin_at(&mut self, sequence: u32) {
        self.sequence = sequence;
    }

    /// Writes one packet. The payload is at most [`MAX_PAYLOAD`] long. Where there is no room, packets of
    /// events are an error, and others are written as long as what was kept back lasts.
    pub fn packet(&mut self, kind: u16, payload: &[u8]) -> io::Result<()> {
        self.check()?;
        if self.is_full && is_bulk(kind) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.buffer.extend_from_slice(&header(kind, self.sequence, payload));
        self.buffer.extend_from_slice(payload);
        self.ends.push(self.buffer.len());
        self.sequence = self.sequence.wrapping_add(1);
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Writes what has been in the buffer for long.
    pub(crate) fn flush_old(&mut self) -> io::Result<()> {
        if self.flushed.elapsed() < LINGER { Ok(()) } else { self.flush() }
    }

    /// Writes all that is in the buffer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        self.flushed = Instant::now();
        let result = self.write_buffer();
        self.buffer.clear();
        self.ends.clear();
        result
    }

    /// Whether it still takes packets that are not of events.
    pub(crate) fn takes_names(&self) -> bool {
        !self.failed
    }

    /// Bytes of all packets so far, those in the buffer included.
    pub fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Where the file is that was made for the recording.
    pub(crate) fn made(&self) -> Option<&Path> {
        match &self.output {
            Open::File(file, _) => file.made(),
            Open::Other(_) => None,
        }
    }

    /// Bytes of whole packets that the output has taken.
    pub(crate) fn taken(&self) -> u64 {
        self.written
    }

    fn check(&self) -> io::Result<()> {
        if self.failed { Err(io::Error::other("the output failed before")) } else { Ok(()) }
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        let (mut first, mut start) = (0, 0);
        for at in 0..self.ends.len() {
            let end = self.ends[at];
            if end - start < PART && at + 1 < self.ends.len() {
                continue;
            }
            if let Err(error) = self.hold(end - start) {
                self.keep_names(first, start)?;
                return Err(error);
            }
            self.write(first, start..end)?;
            (first, start) = (at + 1, end);
        }
        self.output.as_write().flush()
    }

    /// Makes sure that so many bytes have room, and names and the end behind them.
    fn hold(&mut self, bytes: usize) -> io::Result<()> {
        match &mut self.output {
            Open::File(OutputFile { file, .. }, reserve) if !self.is_full => {
                reserve.hold(file, self.written + bytes as u64)
            }
            _ => Ok(()),
        }
    }

    /// There is no room for the packets from this one on: of them those are written, with numbers of
    /// their own, that are not of events.
    fn keep_names(&mut self, first: usize, start: usize) -> io::Result<()> {
        self.is_full = true;
        let rest = self.buffer.split_off(start);
        let ends = self.ends.split_off(first);
        self.sequence = self.sequence.wrapping_sub(ends.len() as u32);
        let mut from = 0;
        for end in ends.into_iter().map(|end| end - start) {
            let packet = &rest[from..end];
            let kind = u16::from_le_bytes([packet[4], packet[5]]);
            if !is_bulk(kind) {
                let payload = &packet[HEADER_SIZE..];
                self.buffer.extend_from_slice(&header(kind, self.sequence, payload));
                self.buffer.extend_from_slice(payload);
                self.ends.push(self.buffer.len());
                self.sequence = self.sequence.wrapping_add(1);
            }
            from = end;
        }
        self.write(first, start..self.buffer.len())
    }

    /// Writes a part of the buffer, which begins with the packet of this index.
    fn write(&mut self, first: usize, part: std::ops::Range<usize>) -> io::Result<()> {
        let mut taken = part.start;
        let result = loop {
            let rest = &self.buffer[taken..part.end];
            if rest.is_empty() {
                break Ok(());
            }
            match self.output.as_write().write(rest) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => taken += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        let ends = self.ends[first..].iter().rev();
        let whole = ends.copied().find(|&end| end <= taken).unwrap_or(part.start);
        self.written += (whole - part.start) as u64;
        if result.is_err() {
            self.failed = true;
            self.cut();
        }
        result
    }

    /// Cuts a file back to its whole packets, and gives back what was kept behind them.
    fn cut(&self) {
        if let Open::File(OutputFile { file, .. }, _) = &self.output {
            // What cannot be cut, such as a device, stays as it is: readers bear half a packet.
            let _ = file.set_len(self.written);
        }
    }
}

/// Whether packets of this kind make up what grows without end.
fn is_bulk(kind: u16) -> bool {
    matches!(kind, kind::CHUNK | kind::TREE | kind::ARCS | kind::SAMPLES)
}

/// An empty file would be taken for the newest recording.
impl Drop for PacketWriter {
    fn drop(&mut self) {
        if let Open::File(_, reserve) = &self.output
            && reserve.is_held()
        {
            self.cut();
        }
        if let (0, Some(path)) = (self.written, self.made()) {
            // What cannot be removed is empty.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Open {
    fn as_write(&mut self) -> &mut dyn Write {
        match self {
            Self::File(output, _) => &mut output.file,
            Self::Other(writer) => writer,
        }
    }
}

/// As [`teeperf_wire::packet::Header::encode`], with the processor's own instructions for
/// the checksum.
fn header(kind: u16, sequence: u32, payload: &[u8]) -> [u8; HEADER_SIZE] {
    debug_assert!(payload.len() <= MAX_PAYLOAD);
    let mut out = [0; HEADER_SIZE];
    out[0..4].copy_from_slice(&SYNC);
    out[4..6].copy_from_slice(&kind.to_le_bytes());
    out[8..12].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    out[12..16].copy_from_slice(&sequence.to_le_bytes());
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&out[..16]);
    checksum.update(payload);
    out[16..20].copy_from_slice(&checksum.finalize().to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::{Arc, Mutex};
    use teeperf_wire::packet::Header;

    proptest! {
        #[test]
        fn headers_are_those_of_the_format(kind: u16, sequence: u32, payload in proptest::collection::vec(any::<u8>(), 0..99)) {
            prop_assert_eq!(header(kind, sequence, &payload), Header::encode(kind, sequence, &payload));
        }
    }

    /// Takes so many bytes, a few at a time, then nothing more.
    #[derive(Clone, Default)]
    struct Small {
        room: usize,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut taken = self.taken.lock().unwrap();
            let length = bytes.len().min(7).min(self.room - taken.len());
            taken.extend_from_slice(&bytes[..length]);
            if length == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(length) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_output_is_an_error_and_stays_one() {
        let small = Small { room: 50, ..Small::default() };
        let mut writer = PacketWriter::open(Output::Writer(Box::new(small.clone()))).unwrap();
        writer.packet(1, &[1; 10]).unwrap();
        writer.flush().unwrap();
        assert_eq!(writer.bytes(), 30);
        writer.packet(2, &[2; 10]).unwrap();
        let error = writer.flush().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(writer.packet(3, &[]).is_err());
        assert_eq!(writer.bytes(), 30);
        assert_eq!(small.taken.lock().unwrap().len(), 50);
    }

    #[test]
    fn a_file_without_a_packet_is_left_only_where_there_was_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording");
        let open = || PacketWriter::open(Output::File(path.clone())).unwrap();
        drop(open());
        assert!(!path.exists());
        std::fs::write(&path, "old").unwrap();
        drop(open());
        assert!(path.exists());
        std::fs::remove_file(&path).unwrap();
        let mut writer = open();
        writer.packet(1, &[]).unwrap();
        writer.flush().unwrap();
        drop(writer);
        assert!(path.exists());
    }

    #[test]
    fn packets_are_numbered_and_reach_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording");
        let mut writer = PacketWriter::open(Output::File(path.clone())).unwrap();
        for kind in 1..4 {
            writer.packet(kind, &[kind as u8; 5]).unwrap();
        }
        writer.flush().unwrap();
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(bytes.len() as u64, writer.bytes());
        for (at, packet) in bytes.chunks(25).enumerate() {
            let header = Header::decode(packet[..20].try_into().unwrap()).unwrap();
            assert_eq!((header.kind, header.sequence), (at as u16 + 1, at as u32));
            assert!(header.fits(&packet[20..]));
        }
    }
}
