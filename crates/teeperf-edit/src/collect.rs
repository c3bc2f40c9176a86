//! Recordings that come over a connection, each into a file of its own: whole packets alone, so that a connection that breaks
//! leaves a valid recording, cut off.
//!
//! What both sides say beside that is [`greeting`](crate::greeting)'s.
//!
//! Who sends is not believed: a packet is no longer than packets are, names of files are made of letters of one name,
//! and nobody writes more than is granted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::greeting::is_late;
use teeperf_profile::Recording;
use teeperf_profile::contents::{Body, Start};
use teeperf_record::writing::Payload;
use teeperf_wire::body::end;
use teeperf_wire::packet::{HEADER_SIZE, Header, kind};

/// What came over a connection.
#[derive(Clone, Debug)]
pub struct Received {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes of it.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Whether it was closed in order.
    pub is_whole: bool,
    /// Why not, if that is known.
    pub why: String,
}

/// Longest first packet: what is longer is no recorder's.
const MOST_START: u32 = 512 << 10;
/// Longest name of a file, without number and ending.
const MOST_NAME: usize = 80;
/// Most recordings of one name.
const MOST_NUMBERS: u32 = 100_000;

/// Receives one recording into a file in a folder, at most so many bytes of it. `begun` is told where.
///
/// # Errors
///
/// When what comes is no recording, or no file can be made for it. What breaks off later is in what is returned.
pub fn receive(
    mut stream: impl Read,
    folder: &Path,
    limit: u64,
    begun: impl FnOnce(&Path),
) -> io::Result<Received> {
    let receiving = Receiving::begin(&mut stream, folder)?;
    begun(receiving.path());
    Ok(receiving.go_on(stream, limit, &Alone))
}

/// How recordings that come at once are counted together.
pub trait Account {
    /// Whether so many bytes more may be kept.
    fn grants(&self, bytes: u64) -> bool;
    /// A packet of so many bytes has come.
    fn has_come(&self, bytes: u64);
}

/// For one that nobody counts.
struct Alone;

impl Account for Alone {
    fn grants(&self, _: u64) -> bool {
        true
    }

    fn has_come(&self, _: u64) {}
}

/// A recording of which the first packet has come.
#[derive(Debug)]
pub struct Receiving {
    file: File,
    packet: Vec<u8>,
    first: Header,
    received: Received,
}

impl Receiving {
    /// Takes the first packet, and makes a file for the recording.
    ///
    /// # Errors
    ///
    /// As [`receive`].
    pub fn begin(stream: &mut impl Read, folder: &Path) -> io::Result<Self> {
        let mut packet = Vec::new();
        let first = match next(stream, &mut packet, MOST_START) {
            Ok(Some(header)) if header.kind == kind::START => header,
            Ok(None) => return Err(invalid("nothing was sent")),
            Err(error) if is_late(&error) => return Err(invalid("no recording was begun in time")),
            Ok(Some(_)) | Err(_) => return Err(invalid("what was sent is no recording")),
        };
        let (file, path) = create(folder, &name_for(&packet))?;
        let received = Received { path, bytes: 0, packets: 0, is_whole: false, why: String::new() };
        Ok(Self { file, packet, first, received })
    }

    /// Where it goes.
    pub fn path(&self) -> &Path {
        &self.received.path
    }

    /// Takes what else comes, at most so many bytes in all, as far as the account grants them.
    pub fn go_on(mut self, mut stream: impl Read, limit: u64, account: &dyn Account) -> Received {
        let mut last = self.first;
        let most = teeperf_wire::packet::MAX_PAYLOAD as u32;
        let why = loop {
            let length = self.packet.len() as u64;
            account.has_come(length);
            let is_over = self.received.bytes + length > limit;
            if is_over || !account.grants(length) {
                self.close(last.sequence);
                break match is_over {
                    true => format!("the limit of {limit} bytes was reached"),
                    false => "the limit of all recordings together was reached".into(),
                };
            }
            if let Err(error) = self.keep() {
                break format!("it cannot be written: {error}");
            }
            let behind = format!("behind packet {}", last.sequence);
            match next(&mut stream, &mut self.packet, most) {
                Ok(Some(header)) => last = header,
                Ok(None) if last.kind == kind::END => {
                    self.received.is_whole = true;
                    break String::new();
                }
                Ok(None) => break format!("the connection ended {behind}"),
                Err(error) => break format!("{behind}: {error}"),
            }
        };
        Received { why, ..self.received }
    }

    /// Writes that it ends here, in place of the packet.
    fn close(&mut self, sequence: u32) {
        let reason = b"the limit of who collects was reached";
        let payload = Payload::default().bytes(end::REASON, reason).finish();
        self.packet.clear();
        self.packet.extend_from_slice(&Header::encode(kind::END, sequence, &payload));
        self.packet.extend_from_slice(&payload);
        // Without it, it is cut off there all the same.
        let _ = self.keep();
    }

    /// Writes the packet, or nothing of it.
    fn keep(&mut self) -> io::Result<()> {
        let written = self.file.write_all(&self.packet);
        if written.is_err() {
            // Half a packet is borne by readers.
            let _ = self.file.set_len(self.received.bytes);
            return written;
        }
        self.received.bytes += self.packet.len() as u64;
        self.received.packets += 1;
        Ok(())
    }
}

/// The next packet, checked; nothing where the stream ends before it.
fn next(stream: &mut impl Read, packet: &mut Vec<u8>, most: u32) -> io::Result<Option<Header>> {
    let mut head = [0; HEADER_SIZE];
    let mut filled = 0;
    while filled < HEADER_SIZE {
        match stream.read(&mut head[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let header = Header::decode(&head).map_err(|_| invalid("no packet begins here"))?;
    if header.length > most {
        return Err(invalid("a packet is too long"));
    }
    packet.clear();
    packet.extend_from_slice(&head);
    // Grows with what comes, not with what the length says.
    let read = stream.take(header.length.into()).read_to_end(packet)?;
    if read < header.length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if !header.fits(&packet[HEADER_SIZE..]) {
        return Err(invalid("a packet is damaged"));
    }
    Ok(Some(header))
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_owned())
}

/// A name from machine and program: letters, digits and a few signs.
fn name_for(packet: &[u8]) -> String {
    let mut recording = Recording::from_read(packet, "connection");
    let start = match recording.next_packet() {
        Ok(Some(packet)) => match packet.body {
            Body::Start(start) => *start,
            _ => Start::default(),
        },
        _ => Start::default(),
    };
    let program = start
        .arguments
        .first()
        .map_or("program", |path| path.rsplit('/').next().unwrap_or_default());
    let kept = |text: &str| -> String {
        let is_kept = |letter: &char| letter.is_ascii_alphanumeric() || "_-.".contains(*letter);
        text.chars().filter(is_kept).take(MOST_NAME / 2).collect()
    };
    let name = format!("{}-{}", kept(&start.host), kept(program));
    name.trim_start_matches(['-', '.']).to_owned()
}

/// A file that was not there: of this name, or with a number behind it.
fn create(folder: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    fs::create_dir_all(folder)?;
    let name = if name.is_empty() { "recording" } else { name };
    for number in 1..=MOST_NUMBERS {
        let path = match number {
            1 => folder.join(format!("{name}.teeperf")),
            _ => folder.join(format!("{name}-{number}.teeperf")),
        };
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return Ok((opened?, path)),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{name}: there are too many of it")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_wire::body::start;

    fn packet(packet_kind: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        [&Header::encode(packet_kind, sequence, payload)[..], payload].concat()
    }

    fn recording() -> Vec<u8> {
        let start = Payload::default()
            .bytes(start::HOST, b"../../board")
            .bytes(start::ARGUMENT, b"/usr/bin/../x y")
            .finish();
        [
            packet(kind::START, 0, &start),
            packet(kind::NOTICE, 1, &[7; 0]),
            packet(kind::END, 2, &[]),
        ]
        .concat()
    }

    fn received(bytes: &[u8], limit: u64) -> (io::Result<Received>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (receive(bytes, folder.path(), limit, |_| {}), folder)
    }

    #[test]
    fn a_recording_arrives_as_it_is_under_a_name_that_leads_nowhere() {
        let (got, folder) = received(&recording(), 1 << 20);
        let got = got.unwrap();
        assert!(got.is_whole);
        assert_eq!(got.path.parent(), Some(folder.path()));
        assert_eq!(got.path.file_name().unwrap(), "board-xy.teeperf");
        assert_eq!(fs::read(&got.path).unwrap(), recording());
        let again = receive(&recording()[..], folder.path(), 1 << 20, |_| {}).unwrap();
        assert_eq!(again.path.file_name().unwrap(), "board-xy-2.teeperf");
    }

    #[test]
    fn what_breaks_off_is_cut_behind_a_packet() {
        let bytes = recording();
        for length in bytes.len() - 30..bytes.len() {
            let (got, _folder) = received(&bytes[..length], 1 << 20);
            let got = got.unwrap();
            assert!(!got.is_whole && !got.why.is_empty());
            assert!(bytes.starts_with(&fs::read(&got.path).unwrap()));
            assert!(length as u64 - got.bytes < 20 + 8);
        }
    }

    #[test]
    fn nobody_writes_more_than_is_granted_or_what_is_no_recording() {
        let (got, _folder) = received(&recording(), 90);
        let got = got.unwrap();
        assert!(got.why.contains("limit"), "{got:?}");
        for bytes in [&b""[..], b"GET / HTTP/1.1\r\n\r\n, and so on and on", &packet(7, 0, b"")] {
            let (got, folder) = received(bytes, 1 << 20);
            assert!(got.is_err());
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
        let mut damaged = recording();
        let at = damaged.len() - 25;
        damaged[at] ^= 1;
        let (got, _folder) = received(&damaged, 1 << 20);
        assert!(!got.unwrap().is_whole);
    }
}
