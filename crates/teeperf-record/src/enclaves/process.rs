//! Memory and maps of a process, by `/proc`.

use super::Unreadable;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Longest path that is read.
const MOST_PATH: usize = 4096;

/// A process that may be looked into.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) id: u32,
    memory: File,
    pub(crate) maps: Vec<Mapping>,
}

/// A line of its maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// `PROT_…`, and whether it is shared.
    pub(crate) protection: u32,
    pub(crate) is_shared: bool,
    pub(crate) offset: u64,
    pub(crate) inode: u64,
    pub(crate) path: Vec<u8>,
}

impl Mapping {
    /// Of a line of proc_pid_maps(5).
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let mut words = line.splitn(6, |&byte| byte == b' ');
        let mut word = || std::str::from_utf8(words.next()?).ok();
        let (start, end) = word()?.split_once('-')?;
        let may = word()?.as_bytes();
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (start, end, offset) = (number(start)?, number(end)?, number(word()?)?);
        let inode = word().and_then(|_| word())?.parse().ok()?;
        let kinds = [(b'r', libc::PROT_READ), (b'w', libc::PROT_WRITE), (b'x', libc::PROT_EXEC)];
        let protection = kinds.iter().zip(may).map(
            |((letter, flag), is)| {
                if letter == is { *flag as u32 } else { 0 }
            },
        );
        let path = words.next().unwrap_or_default().trim_ascii().to_vec();
        let is_shared = may.get(3) == Some(&b's');
        let protection = protection.fold(0, |all, one| all | one);
        (start < end).then_some(Self { start, end, protection, is_shared, offset, inode, path })
    }

    /// Of all lines.
    pub(crate) fn all(process: u32) -> io::Result<Vec<Self>> {
        let text = std::fs::read(format!("/proc/{process}/maps"))?;
        Ok(text.split(|&byte| byte == b'\n').filter_map(Self::read).collect())
    }

    /// Whether a file is behind it, whose path this is.
    pub(crate) fn has_file(&self) -> bool {
        self.path.starts_with(b"/") && self.inode != 0
    }
}

impl Process {
    pub(crate) fn open(id: u32) -> io::Result<Self> {
        let memory = File::open(format!("/proc/{id}/mem"))?;
        Ok(Self { id, memory, maps: Mapping::all(id)? })
    }

    /// One whose memory is a file.
    pub(super) fn of(id: u32, memory: File) -> Self {
        Self { id, memory, maps: Vec::new() }
    }

    /// Where a path of the process's leads, for this one: it may see other files under the same name.
    pub(crate) fn path(&self, path: &[u8]) -> PathBuf {
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let inner = if path.is_absolute() {
            Path::new("root").join(path.strip_prefix("/").unwrap_or(path))
        } else {
            Path::new("cwd").join(path)
        };
        Path::new("/proc").join(self.id.to_string()).join(inner)
    }

    /// The same path as a process with another working directory has to write it.
    pub(crate) fn absolute(&self, path: &[u8]) -> Vec<u8> {
        if path.starts_with(b"/") {
            return path.to_vec();
        }
        let folder = std::fs::read_link(format!("/proc/{}/cwd", self.id)).unwrap_or_default();
        folder.join(std::ffi::OsStr::from_bytes(path)).as_os_str().as_bytes().to_vec()
    }

    fn unreadable(&self, what: &'static str, address: u64) -> Unreadable {
        Unreadable { process: self.id, what, address }
    }

    /// That a list makes no sense.
    pub(super) fn nonsense(&self, what: &'static str, address: u64) -> Unreadable {
        self.unreadable(what, address)
    }

    /// A structure of numbers of eight bytes.
    pub(super) fn numbers<const N: usize>(
        &self,
        what: &'static str,
        at: u64,
    ) -> Result<[u64; N], Unreadable> {
        let mut bytes = [[0; 8]; N];
        let read = self.memory.read_exact_at(bytes.as_flattened_mut(), at);
        read.map_err(|_| self.unreadable(what, at))?;
        Ok(bytes.map(u64::from_le_bytes))
    }

    /// A text of no more than so many bytes, which ends before a zero.
    pub(super) fn text(
        &self,
        what: &'static str,
        at: u64,
        most: u64,
    ) -> Result<Vec<u8>, Unreadable> {
        let mut bytes = vec![0; most.min(MOST_PATH as u64) as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            // No further than to the end of a page: what is behind may not be there.
            let here = at.checked_add(filled as u64).ok_or_else(|| self.unreadable(what, at))?;
            let page = (4096 - here % 4096) as usize;
            let end = bytes.len().min(filled + page);
            let read = self.memory.read_exact_at(&mut bytes[filled..end], here);
            read.map_err(|_| self.unreadable(what, here))?;
            let zero = bytes[filled..end].iter().position(|&byte| byte == 0);
            if let Some(zero) = zero {
                bytes.truncate(filled + zero);
                return Ok(bytes);
            }
            filled = end;
        }
        Ok(bytes)
    }
}
