//! Mount namespaces of processes, as `perf record --namespaces` has them: the files of one that is
//! not this process's are not those of the same path here.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use super::record::Record;

/// Most processes whose namespace is known.
const MOST: usize = 1 << 16;
/// Which of the namespaces in a record is that of mounts: `MNT_NS_INDEX` of Linux's
/// `include/uapi/linux/perf_event.h`.
const MOUNTS: u64 = 5;

/// By process, the inode of the namespace.
pub(super) struct Namespaces {
    own: Option<u64>,
    of: HashMap<u32, u64>,
}

impl Default for Namespaces {
    fn default() -> Self {
        let own = fs::metadata("/proc/self/ns/mnt").ok().map(|namespace| namespace.ino());
        Self { own, of: HashMap::new() }
    }
}

impl Namespaces {
    /// Takes a record; false where it is not whole.
    pub(super) fn take(&mut self, record: &Record<'_>) -> bool {
        let Some((pid, inode)) = read(record) else { return false };
        if self.of.len() < MOST || self.of.contains_key(&pid) {
            self.of.insert(pid, inode);
        }
        true
    }

    /// Whether a process is known to be in another one than this process is.
    pub(super) fn is_other(&self, pid: u32) -> bool {
        self.of.get(&pid).is_some_and(|&inode| self.own != Some(inode))
    }
}

/// Process, and inode of its mount namespace; device and inode stand in a row for each namespace.
fn read(record: &Record<'_>) -> Option<(u32, u64)> {
    let mut bytes = record.bytes();
    let (pid, _, count) = (bytes.u32()?, bytes.u32()?, bytes.u64()?);
    if count <= MOUNTS {
        return None;
    }
    for _ in 0..MOUNTS {
        bytes.take(16)?;
    }
    bytes.u64()?;
    Some((pid, bytes.u64()?))
}
