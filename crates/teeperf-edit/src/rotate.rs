//! A recording that keeps its latest part alone: a folder of segments, the oldest of which go.
//!
//! ```text
//! 0000000007.head      what a reader has to know where segment 7 begins: the run, processes, keyframes
//! 0000000007.segment   packets
//! 0000000008.head
//! 0000000008.segment   …
//! ```
//!
//! Head and segments, one behind the other, are a recording ([`open`] reads them so), at any moment: each head is written
//! before the segment before it goes. Heads are made by a thread of their own, which reads what was written
//! (`head`); who writes waits for it only where there would be too much on the disk.

pub(crate) mod folder;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::head::Heads;
use folder::{HEAD, SEGMENT, name};
pub use folder::{LOCK, is_recording, kept, open};
use teeperf_record::writing::Output;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// At most so many bytes on the disk.
    Bytes(u64),
    /// At least what was recorded since so long ago.
    Time(Duration),
}

/// Segments that make up what is kept.
const SEGMENTS: u32 = 16;
/// Least bytes that can be kept, and least time.
pub const LEAST_BYTES: u64 = 4_000_000;
/// See [`LEAST_BYTES`].
pub const LEAST_TIME: Duration = Duration::from_secs(1);
/// Least bytes that are left for a head that is still to come.
const HEAD_ROOM: u64 = 64 << 10;

/// Writes segments into a folder; to be an output of a recorder, which writes whole packets at once.
pub struct Rotating {
    folder: PathBuf,
    keep: Keep,
    number: u64,
    file: File,
    bytes: u64,
    began: Instant,
    /// Segments before the present one: number, bytes with those of its head, and when it ended.
    before: VecDeque<(u64, u64, Instant)>,
    closed: Option<Sender<(u64, PathBuf)>>,
    /// Number of a segment whose head is there, and bytes of that.
    heads: Receiver<io::Result<(u64, u64)>>,
    /// Latest of those, and bytes of the largest.
    headed: u64,
    largest: u64,
    worker: Option<JoinHandle<()>>,
    ending: Arc<AtomicBool>,
    _lock: File,
}

/// An output that keeps the latest part alone, in a folder, which is made, or emptied of an older recording.
///
/// # Errors
///
/// When there is something else in the folder, which stays as it is, another recorder writes there, or it cannot be written.
pub fn output(folder: &Path, keep: Keep) -> io::Result<Output> {
    Ok(Output::Writer(Box::new(Rotating::create(folder, keep)?)))
}

impl Rotating {
    fn create(folder: &Path, keep: Keep) -> io::Result<Self> {
        let lock = folder::take(folder)?;
        let (closed, inbox) = channel::<(u64, PathBuf)>();
        let (outbox, heads) = channel();
        let heads_folder = folder.to_owned();
        let ending = Arc::new(AtomicBool::new(false));
        let is_ending = Arc::clone(&ending);
        let mut state = Heads::new()?;
        let serve = move || {
            for (number, segment) in inbox {
                // What is there then needs no more heads.
                if is_ending.load(Ordering::Relaxed) {
                    return;
                }
                let head = heads_folder.join(name(number + 1, HEAD));
                let made = state.pass(&segment).and_then(|()| state.write(&head));
                if outbox.send(made.map(|bytes| (number + 1, bytes))).is_err() {
                    return;
                }
            }
        };
        let worker = std::thread::Builder::new().name("teeperf-heads".into()).spawn(serve)?;
        Ok(Self {
            folder: folder.to_owned(),
            keep,
            number: 1,
            file: File::create(folder.join(name(1, SEGMENT)))?,
            bytes: 0,
            began: Instant::now(),
            before: VecDeque::new(),
            closed: Some(closed),
            heads,
            headed: 1,
            largest: 0,
            worker: Some(worker),
            ending,
            _lock: lock,
        })
    }

    fn is_full(&self) -> bool {
        match self.keep {
            Keep::Bytes(bytes) => self.bytes >= bytes / u64::from(SEGMENTS),
            Keep::Time(time) => self.began.elapsed() >= time / SEGMENTS,
        }
    }

    /// Begins the next segment.
    fn turn(&mut self) -> io::Result<()> {
        let closed = self.folder.join(name(self.number, SEGMENT));
        self.before.push_back((self.number, self.bytes, Instant::now()));
        if let Some(sender) = &self.closed {
            // Who is gone has said why.
            let _ = sender.send((self.number, closed));
        }
        self.number += 1;
        self.file = File::create(self.folder.join(name(self.number, SEGMENT)))?;
        self.bytes = 0;
        self.began = Instant::now();
        Ok(())
    }

    /// Whether the oldest segment has to go before so many bytes are written.
    fn has_too_much(&self, next: usize) -> bool {
        let Some(&(_, _, ended)) = self.before.front() else { return false };
        match self.keep {
            Keep::Bytes(most) => {
                let there: u64 = self.before.iter().map(|(_, bytes, _)| bytes).sum();
                // Heads grow with what is open, and that of the present segment is made at its own time.
                let to_come =
                    if self.headed < self.number { HEAD_ROOM.max(2 * self.largest) } else { 0 };
                there + self.bytes + next as u64 + to_come > most
            }
            Keep::Time(time) => ended.elapsed() > time,
        }
    }

    /// Removes the oldest segment, once a reader can do without.
    fn drop_oldest(&mut self) -> io::Result<()> {
        let Some(&(oldest, ..)) = self.before.front() else { return Ok(()) };
        while self.headed <= oldest {
            let head =
                self.heads.recv().map_err(|_| io::Error::other("keyframes cannot be made"))?;
            self.note(head)?;
        }
        self.before.pop_front();
        fs::remove_file(self.folder.join(name(oldest, SEGMENT)))?;
        match fs::remove_file(self.folder.join(name(oldest, HEAD))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn note(&mut self, head: io::Result<(u64, u64)>) -> io::Result<()> {
        let (number, bytes) = head?;
        (self.headed, self.largest) = (number, self.largest.max(bytes));
        match self.before.iter_mut().find(|(known, ..)| *known == number) {
            Some((_, sum, _)) => *sum += bytes,
            None => self.bytes += bytes,
        }
        Ok(())
    }
}

impl Write for Rotating {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes > 0 && self.is_full() {
            self.turn()?;
        }
        while let Ok(head) = self.heads.try_recv() {
            self.note(head)?;
        }
        while self.has_too_much(bytes.len()) {
            self.drop_oldest()?;
        }
        // All or nothing, so that segments end where packets do.
        let at = self.file.stream_position()?;
        while let Err(error) = self.file.write_all(bytes) {
            self.file.set_len(at)?;
            self.file.seek(SeekFrom::Start(at))?;
            // On a disk that is full there is room where the oldest part was.
            if !is_full(&error) || self.before.is_empty() {
                return Err(error);
            }
            self.drop_oldest()?;
        }
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Whether an error says that there is no room.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl Drop for Rotating {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        self.closed = None;
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}
