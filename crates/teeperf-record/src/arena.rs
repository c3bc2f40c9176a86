//! Arenas ([`teeperf_wire::arena`]) as the recorder makes them: in memory of its own, to be handed to a
//! process, or in a file or device that the user names.

use crate::clock::ClockPage;
use crate::made::Made;
use crate::memory::{SEAL_SIZE, SharedMemory, zero};
use crate::room;
use crate::segment::Segment;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
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
    /// What was made for it, if it was.
    _made: Made,
    pub(crate) segment: Arc<Segment>,
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
    let (file, made) = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path, lent.length)?,
        file => (file?, Made::new(None)),
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
    let memory = SharedMemory::of(file.try_clone()?.into(), length)?;
    clear(&file, &memory, length & !7)?;
    let segment = Arc::new(begin(memory, length, manner, page)?);
    Ok(LentFile { _made: made, segment })
}

fn make(path: &Path, length: Option<u64>) -> io::Result<(File, Made)> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    // It goes where something fails before it is an arena, too.
    let made = Made::new(Some(path.to_owned()));
    let length = length.unwrap_or(USUAL_LENGTH);
    room::check(&file, length)?;
    file.set_len(length)?;
    Ok((file, made))
}

/// Zeroes the memory, which is the file's first `length` bytes. A file's holes are zeros already, and stay
/// holes: what is not used takes no memory.
fn clear(file: &File, memory: &SharedMemory, length: usize) -> io::Result<()> {
    if !file.metadata()?.is_file() {
        zero(memory.wides(0, length));
        return Ok(());
    }
    let mut end = 0;
    while let Some(begin) = seek(file, end, libc::SEEK_DATA)?.filter(|&begin| begin < length) {
        let hole = seek(file, begin, libc::SEEK_HOLE)?.unwrap_or(length);
        end = hole.next_multiple_of(8).min(length);
        let begin = begin & !7;
        zero(memory.wides(begin, end - begin));
    }
    Ok(())
}

/// Where data, or a hole, begins, from this offset of a file on; nothing: none does.
fn seek(file: &File, from: usize, what: libc::c_int) -> io::Result<Option<usize>> {
    // SAFETY: no pointers are involved.
    let found = unsafe { libc::lseek(file.as_raw_fd(), from as libc::off_t, what) };
    match usize::try_from(found) {
        Ok(found) => Ok(Some(found)),
        Err(_) => {
            let error = io::Error::last_os_error();
            if error.raw_os_error() == Some(libc::ENXIO) { Ok(None) } else { Err(error) }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt, MetadataExt};
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn what_was_written_is_zeroed_and_holes_stay() {
        let file = tempfile::tempfile().unwrap();
        let length = (64 << 20) + 4;
        file.set_len(length).unwrap();
        // Not whole blocks, and up to the end.
        for (at, bytes) in [(0, 5), ((1 << 20) + 3, 100_000), (length - 5000, 5000)] {
            file.write_all_at(&vec![0xff; bytes], at).unwrap();
        }
        let memory = SharedMemory::of(file.try_clone().unwrap().into(), length as usize).unwrap();
        clear(&file, &memory, length as usize & !7).unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 < 1 << 20);
        assert!(memory.wides(0, 64 << 20).iter().all(|wide| wide.load(Relaxed) == 0));
    }

    #[test]
    fn a_part_of_a_file_is_zeroed_alone() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[0xff; 4096 * 3], 0).unwrap();
        let memory = SharedMemory::of(file.try_clone().unwrap().into(), 8192).unwrap();
        clear(&file, &memory, 8192).unwrap();
        let mut bytes = [1; 4096 * 3];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes[..8192].iter().all(|&byte| byte == 0));
        assert!(bytes[8192..].iter().all(|&byte| byte == 0xff));
    }
}
