//! Parts of a file where the system has them, without a copy: they are mapped, while nobody can write to the file.
//!
//! What is mapped must stay: who cuts the file short ends the process that looks there. So the kernel is asked for a read lease
//! (fcntl(2), `F_SETLEASE`). It gives one where nobody has the file open for writing, and who wants to, or wants to cut it, waits
//! until the lease is back, or is told so (`EAGAIN`, where `O_NONBLOCK` is asked for). Where it gives none (a file of somebody else's,
//! one that perf still writes), on file systems of which a lease is not all (those of other machines, and those made of others), and
//! from when somebody waits, the file is read.

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

/// File systems to which nobody writes but through files of this system's. (Types of these numbers are not the same everywhere.)
#[allow(clippy::unnecessary_cast)]
const LOCAL: [i64; 5] = [
    libc::EXT4_SUPER_MAGIC as i64,
    libc::XFS_SUPER_MAGIC as i64,
    libc::BTRFS_SUPER_MAGIC as i64,
    libc::F2FS_SUPER_MAGIC as i64,
    libc::TMPFS_MAGIC as i64,
];

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
        // SAFETY: nobody writes to the file: see above. Who waits longer than the kernel has them wait (`/proc/sys/fs/lease-break-time`,
        // 45 s) can; each part is looked at for moments, and copied where a record in it waits for its turn when somebody is there. So
        // this process would have to be stopped for as long.
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
        if !LOCAL.contains(&file_system(about)?) {
            return None;
        }
        // The signal that says that somebody waits: ignored by who does not ask for it, where SIGIO would end the process.
        let is_given = ask(about, F_SETSIG, libc::SIGURG) == 0
            && ask(about, libc::F_SETLEASE, libc::F_RDLCK) == 0;
        is_given.then(|| Self(file))
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

/// Which one a file is on, as statfs(2) numbers them.
fn file_system(file: RawFd) -> Option<i64> {
    let mut about = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: it is as long as the system fills it, and is looked at where that was done.
    #[allow(unsafe_code)]
    let about =
        unsafe { (libc::fstatfs(file, about.as_mut_ptr()) == 0).then(|| about.assume_init()) }?;
    #[allow(clippy::unnecessary_cast)]
    Some(about.f_type as i64)
}

fn ask(file: RawFd, what: libc::c_int, argument: libc::c_int) -> libc::c_int {
    // SAFETY: these have numbers alone as arguments.
    #[allow(unsafe_code)]
    unsafe {
        libc::fcntl(file, what, argument)
    }
}
