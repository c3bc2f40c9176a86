//! Processes that see other files than the recorder does: in another mount namespace, or below
//! another root. The path of their code says nothing here, so the recording has their files'
//! numbers, and the files themselves.
//!
//! A process may be gone when its records are read, and the container with its last one. So the
//! sampler looks when a record comes out of the ring ([`Containers::look`]), before records are put
//! in order, and copies each file once. It keeps none of them open: a file system that is unmounted
//! behind a process must not be busy. Of a process that ended too early it knows the view by the
//! one that forked it, and takes the file by way of another process with that view.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};

use teeperf_symbols::is_memory;
use teeperf_wire::body::file::{self, MAX_BYTES, MAX_FILES, MAX_PART};
use zstd::bulk::Compressor;

use super::record::{Map, Record};
use crate::inside::{self, View};
use crate::packets::Payload;

/// Most bytes of one file.
const LARGEST: u64 = 64 << 20;
/// Most processes and most files whose places are known.
const MOST: usize = 1 << 14;
/// Processes that are asked for a file which another one saw.
const ASKED: usize = 16;
/// Copying keeps the sampler from its rings.
const LEVEL: i32 = 1;

/// See the module.
pub(super) struct Containers {
    own: Option<View>,
    /// Of processes that have another one.
    views: HashMap<u32, View>,
    /// What was found when the record came, by process and address.
    looks: HashMap<(u32, u64), Look>,
    /// Numbers by what is known of files: which view saw it, where, and its inode.
    known: HashMap<(View, Vec<u8>), (u64, u64)>,
    /// Numbers by the files themselves.
    copied: HashMap<FileId, u64>,
    /// Payloads that are still to be written.
    payloads: Vec<Vec<u8>>,
    /// Bytes of all files that were copied.
    bytes: u64,
    files: usize,
    numbers: u64,
    /// Paths of files that found no room, as the user is told.
    pub(super) left_out: Vec<String>,
}

/// Device, inode, size, and when it was changed: seconds, nanoseconds.
type FileId = (u64, u64, u64, (i64, i64));

/// What the sampler found.
#[derive(Clone, Copy)]
enum Look {
    Own,
    Other(View, u64),
}

impl Containers {
    pub(super) fn new() -> Self {
        Self {
            own: View::own(),
            views: HashMap::new(),
            looks: HashMap::new(),
            known: HashMap::new(),
            copied: HashMap::new(),
            payloads: Vec::new(),
            bytes: 0,
            files: 0,
            numbers: 0,
            left_out: Vec::new(),
        }
    }

    /// Looks at what a record tells of that has just come.
    pub(super) fn look(&mut self, record: &Record<'_>) {
        let Record::Map(map) = record else { return };
        if !is_file(map) {
            return;
        }
        let Some(view) = View::of(map.pid) else { return };
        let look = if Some(view) == self.own {
            Look::Own
        } else {
            Look::Other(view, self.number(view, map.pid, map))
        };
        if self.looks.len() >= MOST {
            self.looks.clear();
        }
        self.looks.insert((map.pid, map.address), look);
    }

    /// What a record says whose turn has come. Of a map: the number of its file, 0 where it is one
    /// of this system.
    pub(super) fn follow(&mut self, record: &Record<'_>) -> u64 {
        match record {
            Record::Forked(kin) if kin.pid != kin.parent_pid => {
                match self.views.get(&kin.parent_pid).copied() {
                    Some(view) if self.views.len() < MOST => {
                        self.views.insert(kin.pid, view);
                    }
                    _ => {
                        self.views.remove(&kin.pid);
                    }
                }
                0
            }
            Record::Map(map) if is_file(map) => self.of_map(map),
            _ => 0,
        }
    }

    /// Payloads of packets of files, which stand before the map that names them.
    pub(super) fn payloads(&mut self) -> impl Iterator<Item = Vec<u8>> {
        std::mem::take(&mut self.payloads).into_iter()
    }

    fn of_map(&mut self, map: &Map<'_>) -> u64 {
        match self.looks.remove(&(map.pid, map.address)) {
            Some(Look::Own) => {
                self.views.remove(&map.pid);
                0
            }
            Some(Look::Other(view, number)) => {
                if self.views.len() < MOST {
                    self.views.insert(map.pid, view);
                }
                number
            }
            None => match self.views.get(&map.pid).copied() {
                Some(view) => self.of_gone(view, map),
                // It may have gone into a container since it was forked: its inode would tell,
                // where no build-id does.
                None if inside::is_inode_at(map.path, map.inode) => 0,
                // Its path names nothing, in whatever container.
                None if map.path.ends_with(b" (deleted)") => 0,
                None => self.next(),
            },
        }
    }

    /// A file that a process saw which has ended.
    fn of_gone(&mut self, view: View, map: &Map<'_>) -> u64 {
        let others = self.views.iter().filter(|(_, other)| **other == view).map(|(&pid, _)| pid);
        let others: Vec<u32> = others.take(ASKED).collect();
        let alive = others.into_iter().find(|&pid| View::of(pid) == Some(view));
        match self.known(view, map) {
            Some(number) => number,
            None => match alive {
                Some(pid) => self.number(view, pid, map),
                None => self.next(),
            },
        }
    }

    fn known(&self, view: View, map: &Map<'_>) -> Option<u64> {
        let &(number, inode) = self.known.get(&(view, map.path.to_vec()))?;
        (map.inode == 0 || inode == map.inode).then_some(number)
    }

    fn next(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// The number of a file as a process sees it, which is copied where that was not done before; 0
    /// where this system has it at the same path.
    fn number(&mut self, view: View, pid: u32, map: &Map<'_>) -> u64 {
        let opened = view.open(pid, map.path).ok();
        let is_meant = |file: &File| inside::is_inode(file, map.inode) && is_open_to(file, pid);
        let Some(file) = opened.filter(is_meant) else {
            // It may have mapped the file before it went into another root.
            return if inside::has_inode(map.path, map.inode) { 0 } else { self.next() };
        };
        let Ok(there) = file.metadata() else { return self.next() };
        let id = (there.dev(), there.ino(), there.size(), (there.mtime(), there.mtime_nsec()));
        let number = match self.copied.get(&id) {
            _ if inside::is_here(map.path, &there) => 0,
            Some(&number) => number,
            None => {
                let number = self.next();
                if self.copied.len() < MOST {
                    self.copied.insert(id, number);
                }
                if self.copy(&file, there.size(), number).is_none() {
                    self.left_out.push(String::from_utf8_lossy(map.path).into_owned());
                }
                number
            }
        };
        if self.known.len() < MOST {
            self.known.insert((view, map.path.to_vec()), (number, map.inode));
        }
        number
    }

    /// Copies a file; nothing where it is too large, or changes meanwhile.
    fn copy(&mut self, file: &File, size: u64, number: u64) -> Option<()> {
        let is_small = size <= LARGEST && self.bytes + size <= MAX_BYTES;
        if !is_small || self.files >= MAX_FILES {
            return None;
        }
        let mut compressor = Compressor::new(LEVEL).ok()?;
        let (mut parts, mut offset) = (Vec::new(), 0);
        loop {
            let mut part = Vec::new();
            file.take(MAX_PART as u64).read_to_end(&mut part).ok()?;
            if part.is_empty() {
                break;
            }
            let payload = Payload::default()
                .number(file::FILE, number)
                .number(file::SIZE, size)
                .number(file::OFFSET, offset)
                .bytes(file::DATA, &compressor.compress(&part).ok()?);
            offset += part.len() as u64;
            parts.push(payload.finish());
            if offset > size {
                return None;
            }
        }
        (offset == size).then_some(())?;
        self.payloads.append(&mut parts);
        self.bytes += size;
        self.files += 1;
        Some(())
    }
}

/// Whether a file is one of code, which the user of the process, or anybody, may read. The process says by its mounts what the
/// path leads to by now: what it may not read itself must not come into a recording by its path.
fn is_open_to(file: &File, pid: u32) -> bool {
    let Ok(about) = file.metadata() else { return false };
    let mut magic = [0; 4];
    let is_code = file.read_exact_at(&mut magic, 0).is_ok() && magic == *b"\x7fELF";
    let is_anybodys = about.mode() & 0o004 != 0;
    is_code && (is_anybodys || inside::user_of(pid) == Some(about.uid()))
}

/// Whether a map is of a file's code.
fn is_file(map: &Map<'_>) -> bool {
    let is_code = map.protection & libc::PROT_EXEC as u32 != 0;
    let is_path = map.path.starts_with(b"/") && !map.path.starts_with(b"//");
    is_code && is_path && !map.path.starts_with(b"/dev/") && !is_memory(map.path, map.build_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, copy, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, chown};

    /// Guards: a process binds a file that it may not read over one that it has mapped.
    #[test]
    fn what_a_process_may_not_read_is_not_copied() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let own = std::process::id();
        let is_open = |name: &str| is_open_to(&File::open(at(name)).unwrap(), own);
        copy(std::env::current_exe().unwrap(), at("program")).unwrap();
        write(at("shadow"), "root:*:1:2\n").unwrap();
        assert!(is_open("program") && !is_open("shadow"));
        // One of this user's that nobody else may read; then one of another user's.
        set_permissions(at("program"), Permissions::from_mode(0o600)).unwrap();
        assert!(is_open("program"));
        if chown(at("program"), Some(65534), None).is_ok() {
            assert!(!is_open("program"));
        }
    }
}
