//! Parts of a file where the system has them, without a copy: they are mapped, while nobody can write to the file.
//!
//! What is mapped must stay: who cuts the file short ends the process that looks there. So the kernel is asked for a read lease
//! (fcntl(2), `F_SETLEASE`). It gives one where nobody has the file open for writing, and who wants to, or wants to cut it, waits
//! until the lease is back. Where it gives none (a file of somebody else's, one that perf still writes, some file systems), and from
//! when somebody waits, the file is read.

use std::fs::File;
use std::io::{Result, Seek, SeekFrom};
use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use memmap2::{Advice, Mmap, MmapOptions};

/// Bytes that are mapped at once: to take a mapping away interrupts all processors that the process runs on.
const WINDOW: u64 = 4 << 20;
/// Where mappings may begin: pages of 4, 16 and 64 KiB.
const ALIGNED: u64 = 1 << 16;

/// A file, part by part.
pub(super) struct Windows {
    lease: Arc<Lease>,
    /// Bytes of the file.
    size: u64,
}

/// One part.
#[derive(Debug)]
pub(super) struct Window {
    // Goes first.
    map: Mmap,
    _lease: Arc<Lease>,
}

impl Deref for Window {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl Windows {
    /// Nothing where the file has to be read.
    pub(super) fn of(file: &File) -> Option<Self> {
        let lease = Lease::take(file.try_clone().ok()?)?;
        let size = lease.0.metadata().ok()?.len();
        Some(Self { lease: Arc::new(lease), size })
    }

    /// Where the file ends.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// A part with the byte at `at` in it, up to `end` at most, and where it begins. Nothing where the file has to be read from here on.
    pub(super) fn at(&self, at: u64, end: u64) -> Option<(Window, u64)> {
        let begin = at - at % ALIGNED;
        let length = end.min(self.size).checked_sub(begin)?.min(ALIGNED + WINDOW);
        if begin + length <= at || !self.lease.is_held() {
            return None;
        }
        let mut options = MmapOptions::new();
        options.offset(begin).len(usize::try_from(length).ok()?);
        // SAFETY: nobody writes to the file: see above. Who waits longer than the kernel lets them (`/proc/sys/fs/lease-break-time`, 45 s)
        // can; each part is looked at for moments, but for one with a record that waits for its turn for as long.
        #[allow(unsafe_code)]
        let map = unsafe { options.map(&self.lease.0) }.ok()?;
        // What the disk does not give is an error here, and a signal when it is looked at.
        map.advise(Advice::PopulateRead).ok()?;
        Some((Window { map, _lease: self.lease.clone() }, begin))
    }

    /// Has the file it is of, which has its place in common with this, read on from here.
    pub(super) fn read_from(self, at: u64) -> Result<()> {
        (&self.lease.0).seek(SeekFrom::Start(at)).map(drop)
    }
}

/// A read lease. It is given back when this goes, and all parts that were mapped.
#[derive(Debug)]
struct Lease(File);

/// Of fcntl(2), as Linux numbers it on all processors (asm-generic/fcntl.h).
const F_SETSIG: libc::c_int = 10;

impl Lease {
    fn take(file: File) -> Option<Self> {
        let about = file.as_raw_fd();
        // The signal that says that somebody waits: ignored by who does not ask for it, where SIGIO would end the process.
        let is_given = ask(about, F_SETSIG, libc::SIGURG) == 0
            && ask(about, libc::F_SETLEASE, libc::F_RDLCK) == 0;
        is_given.then_some(Self(file))
    }

    /// Whether nobody waits.
    fn is_held(&self) -> bool {
        ask(self.0.as_raw_fd(), libc::F_GETLEASE, 0) == libc::F_RDLCK
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        ask(self.0.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK);
    }
}

fn ask(file: RawFd, what: libc::c_int, argument: libc::c_int) -> libc::c_int {
    // SAFETY: these have numbers alone as arguments.
    #[allow(unsafe_code)]
    unsafe {
        libc::fcntl(file, what, argument)
    }
}
