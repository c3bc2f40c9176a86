//! What a process has mapped of code and files, as `/proc/PID/maps` tells: who follows stacks needs more of a file than its code. Looked at when something is known to have changed, and where a sample is in none.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{Duration, Instant};
use teeperf_symbols::Loaded;
use teeperf_wire::body::map;

/// A stretch of code, or of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) address: u64,
    pub(crate) length: u64,
    /// Where in the file it begins.
    pub(crate) offset: u64,
    /// `PROT_…` of mmap(2).
    pub(crate) protection: u32,
    pub(crate) path: Vec<u8>,
}

/// All that is known of a process's.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// By where it begins.
    code: BTreeMap<u64, Code>,
    /// Pages that were mapped when somebody asked last whether it may have more.
    pages: u64,
    since: Instant,
    /// When somebody asked.
    asked: Instant,
}

/// In which a program loads most of its libraries.
const SETTLING: Duration = Duration::from_millis(300);
/// Behind that, between two questions for the program's size: it changes with each large allocation.
const ASKED: Duration = Duration::from_millis(100);

impl Known {
    /// Of a process that begins.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { code: BTreeMap::new(), pages: 0, since: now, asked: now }
    }

    /// What the child of a fork has.
    pub(crate) fn of_child(&self) -> Self {
        Self { code: self.code.clone(), ..Self::new() }
    }

    /// Whether there may be code that is not known: callers on a copied stack may be in a library that was loaded a moment ago, and of
    /// such a stack nobody looks at addresses.
    pub(crate) fn may_have_more(&mut self, pid: u32) -> bool {
        if self.since.elapsed() > SETTLING && self.asked.elapsed() < ASKED {
            return false;
        }
        self.asked = Instant::now();
        let size = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        let pages = size.split(' ').next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
        std::mem::replace(&mut self.pages, pages) != pages
    }

    /// Whether there is code at an address.
    pub(crate) fn has(&self, address: u64) -> bool {
        let before = self.code.range(..=address).next_back();
        before.is_some_and(|(begin, code)| address - begin < code.length && code.is_code())
    }

    /// What is new since the last look, but for what lies in `left_out`.
    pub(crate) fn look(&mut self, pid: u32, left_out: &[Range<u64>]) -> Vec<Code> {
        let Ok(maps) = fs::read(format!("/proc/{pid}/maps")) else { return Vec::new() };
        let lines = maps.split(|&byte| byte == b'\n').filter_map(read);
        let now: BTreeMap<u64, Code> = lines
            .filter(|code| !left_out.iter().any(|range| range.contains(&code.address)))
            .map(|code| (code.address, code))
            .collect();
        if now.is_empty() {
            // It has ended, and what it had counts for what it left.
            return Vec::new();
        }
        let is_new = |code: &&Code| self.code.get(&code.address) != Some(code);
        let new = now.values().filter(is_new).cloned().collect();
        self.code = now;
        new
    }
}

impl Code {
    fn is_code(&self) -> bool {
        self.protection & map::PROT_EXEC != 0
    }

    /// The build-id of the file that a process has it from; empty where it has none, or is no file's.
    pub(crate) fn build_id(&self, pid: u32) -> Vec<u8> {
        let Some(path) = self.path.strip_prefix(b"/").filter(|_| self.is_code()) else {
            return Vec::new();
        };
        // The process may see other files under the same name.
        let path =
            format!("/proc/{pid}/root/").into_bytes().into_iter().chain(path.iter().copied());
        let file = Loaded::open(Path::new(&OsString::from_vec(path.collect())));
        file.ok().and_then(|file| file.build_id().map(<[u8]>::to_vec)).unwrap_or_default()
    }
}

/// A line, if it is of code or a file.
fn read(line: &[u8]) -> Option<Code> {
    let mut words = line.splitn(6, |&byte| byte == b' ');
    let range = std::str::from_utf8(words.next()?).ok()?;
    let protection = words.next()?;
    let offset = std::str::from_utf8(words.next()?).ok()?;
    let path = words.nth(2).unwrap_or_default().trim_ascii();
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (begin, end) = range.split_once('-')?;
    let (begin, end) = (number(begin)?, number(end)?);
    let bits = [(b'r', libc::PROT_READ), (b'w', libc::PROT_WRITE), (b'x', libc::PROT_EXEC)];
    let bits = bits.iter().zip(protection).filter(|((letter, _), given)| letter == *given);
    let protection = bits.fold(0, |all, ((_, bit), _)| all | *bit as u32);
    let code = Code {
        address: begin,
        length: end.checked_sub(begin)?,
        offset: number(offset)?,
        protection,
        // As perf has what is no file's.
        path: if path.is_empty() { b"//anon".to_vec() } else { path.to_vec() },
    };
    let is_file = path.starts_with(b"/") && !path.starts_with(b"/memfd:");
    (code.is_code() || is_file).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_code_are_read() {
        let line = b"7f10-7f30 r-xp 00001000 08:01 77      /usr/lib/a b.so";
        let expected = Code {
            address: 0x7f10,
            length: 0x20,
            offset: 0x1000,
            protection: 5,
            path: b"/usr/lib/a b.so".to_vec(),
        };
        assert_eq!(read(line), Some(expected));
        assert_eq!(
            read(b"7f10-7f30 r-xp 0 00:00 0 ").map(|code| code.path),
            Some(b"//anon".to_vec())
        );
        assert_eq!(read(b"7f10-7f30 rw-p 0 00:00 0 /a").map(|code| code.protection), Some(3));
        assert_eq!(read(b"7f10-7f30 rw-s 0 00:01 7 /memfd:teeperf (deleted)"), None);
        for other in [&b"7f10-7f30 rw-p 0 00:00 0 "[..], b"", b"x-y r-xp 0 0 0", b"3-1 r-xp 0 0 0 "]
        {
            assert_eq!(read(other), None);
        }
    }

    #[test]
    fn what_is_new_is_told_once() {
        let (mut known, pid) = (Known::new(), std::process::id());
        let here = lines_of_code_are_read as fn() as usize as u64;
        assert!(!known.has(here));
        let first = known.look(pid, &[]);
        let own = first
            .iter()
            .find(|code| code.is_code() && here.wrapping_sub(code.address) < code.length)
            .unwrap();
        assert!(known.has(here) && own.path.starts_with(b"/"));
        let range = own.address..own.address + own.length;
        assert!(known.look(pid, &[]).iter().all(|code| code.address != range.start));
        assert!(
            Known::new().look(pid, std::slice::from_ref(&range)).iter().all(|code| *code != *own)
        );
        assert!(known.look(u32::MAX, &[]).is_empty() && known.has(here));
    }
}
