//! Whether a file of some length has room where it is made: file systems promise more than they have, and
//! whoever writes into what was promised is killed.

use crate::memory::checked;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// What there is for a new file, in bytes; nothing: it is not known, or not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Room {
    /// In its file system.
    file_system: Option<u64>,
    /// In the machine's memory, where the file is kept in that.
    memory: Option<u64>,
}

/// Refuses a length for which there is no room where this file lies.
pub(crate) fn check(file: &File, length: u64) -> io::Result<()> {
    match Room::of(file)?.refusal(length) {
        Some(text) => Err(io::Error::new(io::ErrorKind::StorageFull, text)),
        None => Ok(()),
    }
}

/// Bytes that are free in the file system of this file; nothing: it is not known.
pub(crate) fn free(file: &File) -> Option<u64> {
    Room::of(file).ok()?.file_system
}

impl Room {
    #[allow(clippy::unnecessary_cast, reason = "types of numbers differ between machines")]
    fn of(file: &File) -> io::Result<Self> {
        // SAFETY: a struct of numbers alone, for which zeros are a value.
        let mut about: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: the address is that of a statfs.
        checked(unsafe { libc::fstatfs(file.as_raw_fd(), &mut about) })?;
        let (kind, blocks) = (about.f_type as u64, about.f_blocks as u64);
        let free = (about.f_bavail as u64).saturating_mul(about.f_frsize as u64);
        let is_memory = [libc::TMPFS_MAGIC as u64, RAMFS_MAGIC].contains(&kind);
        let available = || available(&std::fs::read_to_string("/proc/meminfo").ok()?);
        Ok(Self {
            // One without blocks does not count them.
            file_system: (blocks > 0).then_some(free),
            memory: is_memory.then(available).flatten(),
        })
    }

    /// Why there is no room for so many bytes.
    fn refusal(self, length: u64) -> Option<String> {
        let is_less = |free: &u64| *free < length;
        let (free, of) = match (self.file_system.filter(is_less), self.memory.filter(is_less)) {
            (Some(free), _) => (free, "its file system"),
            (None, Some(free)) => (free, "this machine's memory, where it would lie,"),
            (None, None) => return None,
        };
        Some(format!("{length} bytes are more than {of} has free, {free}; say less with --size"))
    }
}

/// From Linux's `include/uapi/linux/magic.h`.
const RAMFS_MAGIC: u64 = 0x8584_58f6;

/// Bytes of memory that can be had without swapping, by the text of `/proc/meminfo`.
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_refused() {
        let told = |file_system, memory, length| Room { file_system, memory }.refusal(length);
        assert_eq!(told(Some(4096), None, 4096), None);
        assert_eq!(
            told(Some(4096), None, 4097).unwrap(),
            "4097 bytes are more than its file system has free, 4096; say less with --size"
        );
        // A file system in memory may promise more than there is.
        assert_eq!(told(Some(1 << 40), Some(4096), 4096), None);
        let refused = told(Some(1 << 40), Some(4096), 16 << 30).unwrap();
        assert!(refused.contains("memory, where it would lie, has free, 4096"), "{refused}");
        assert!(told(None, Some(4096), u64::MAX).is_some());
        assert_eq!(told(None, None, u64::MAX), None);
    }

    #[test]
    fn available_memory_is_read_as_linux_writes_it() {
        let text = "MemTotal:       24654588 kB\nMemFree:  100 kB\nMemAvailable:   23000000 kB\nHugePages:  0\n";
        assert_eq!(available(text), Some(23_000_000 * 1024));
        assert_eq!(available("MemAvailable: much\n"), None);
        assert_eq!(available(""), None);
    }

    #[test]
    fn file_systems_say_what_they_have() {
        let room = Room::of(&tempfile::tempfile().unwrap()).unwrap();
        assert!(room.file_system.is_some_and(|free| free > 0), "{room:?}");
        let memory = |path: &str| Room::of(&File::open(path).unwrap()).unwrap().memory;
        assert!(memory("/dev/shm").is_some_and(|free| free > 0));
        assert_eq!(memory("/proc"), None);
    }
}
