//! Arenas ([`teeperf_wire::arena`]) as the recorder makes them: in memory of its own, to be handed to a
//! process, or in a file or device that the user names.

use crate::clock::ClockPage;
use crate::memory::{SEAL_SIZE, SharedMemory, zero};
use crate::segment::Segment;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use teeperf_wire::arena::{MAGIC, MIN_LENGTH, baton, head, request, shape};
use teeperf_wire::shared::{ClockKind, OnFull};

/// Memory that code without a system is to record into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lent {
    /// A file or device that the other side maps as well. A file that is not there is made, and removed
    /// at the end.
    pub path: PathBuf,
    /// Bytes from its beginning; nothing: all there are.
    pub length: Option<u64>,
    /// Counts in a second of the counter that the other side reads; nothing: it is this machine's own. With
    /// this, single calls are timed by it, and this machine does not know what it says at any moment.
    pub counter_hz: Option<u64>,
}

/// What an arena says of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) clock: ClockKind,
    pub(crate) on_full: OnFull,
    pub(crate) hz: u64,
    /// Random.
    pub(crate) cookie: u64,
    /// Process id that its chunks bear.
    pub(crate) pid: u32,
}

/// In sealed memory of the recorder's own.
pub(crate) fn create(length: usize, manner: Manner, page: &ClockPage) -> io::Result<Segment> {
    begin(SharedMemory::create(c"teeperf-arena", length, SEAL_SIZE)?, length, manner, page)
}

/// Length of a file that is made.
const USUAL_LENGTH: u64 = 16 << 20;

/// A file of the user's while it is an arena.
#[derive(Debug)]
pub(crate) struct LentFile {
    path: PathBuf,
    is_ours: bool,
    pub(crate) segment: Arc<Segment>,
}

impl Drop for LentFile {
    fn drop(&mut self) {
        if self.is_ours {
            // Where that fails, it stays; nobody is worse off.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// In what the user names.
pub(crate) fn open(lent: &Lent, manner: Manner, page: &ClockPage) -> io::Result<LentFile> {
    let path = &lent.path;
    let too_small = |length: u64| {
        let text = format!(
            "an arena has {MIN_LENGTH} bytes at least, this one {length}; for a device, say --size"
        );
        io::Error::new(io::ErrorKind::InvalidInput, text)
    };
    if let Some(length) = lent.length.filter(|&length| length < MIN_LENGTH as u64) {
        // Before a file is made.
        return Err(too_small(length));
    }
    let (file, is_ours) = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => (make(path, lent.length)?, true),
        file => (file?, false),
    };
    let length = match lent.length {
        Some(length) => length,
        None => file.metadata()?.len(),
    };
    let fits = usize::try_from(length).ok().filter(|&length| length >= MIN_LENGTH);
    let length = fits.ok_or_else(|| too_small(length))?;
    // A mapping beyond a file's end kills who touches it; of a device the size is not known.
    if file.metadata()?.is_file() && file.metadata()?.len() < length as u64 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is shorter than --size"));
    }
    let memory = SharedMemory::of(file.into(), length)?;
    zero(memory.wides(0, length & !7));
    let segment = Arc::new(begin(memory, length, manner, page)?);
    Ok(LentFile { path: path.clone(), is_ours, segment })
}

fn make(path: &Path, length: Option<u64>) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    let made = file.set_len(length.unwrap_or(USUAL_LENGTH));
    if made.is_err() {
        // The next one would find it too short.
        let _ = std::fs::remove_file(path);
    }
    made.map(|()| file)
}

fn begin(
    memory: SharedMemory,
    length: usize,
    manner: Manner,
    page: &ClockPage,
) -> io::Result<Segment> {
    let shape = shape(length).ok_or(io::ErrorKind::InvalidInput)?;
    let memory = Arc::new(memory);
    let clock = page.lead(Arc::clone(&memory));
    let segment = Segment::of_arena(Arc::clone(&memory), shape, clock);
    memory.number(head::CLOCK).store(manner.clock as u32, Relaxed);
    memory.number(head::ON_FULL).store(manner.on_full as u32, Relaxed);
    memory.wide(head::COOKIE).store(manner.cookie, Relaxed);
    memory.wide(head::HZ).store(manner.hz, Relaxed);
    memory.number(baton::PID).store(manner.pid, Relaxed);
    memory.number(request::ASKED).store(1, Relaxed);
    memory.wide(head::MAGIC).store(MAGIC, Release);
    Ok(segment)
}
