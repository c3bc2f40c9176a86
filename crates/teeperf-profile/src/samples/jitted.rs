//! Functions of code that a program made in memory, as just-in-time compilers do and tell perf: `/tmp/perf-PID.map`
//! (Linux, `tools/perf/Documentation/jit-interface.txt`).

use std::collections::BinaryHeap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use teeperf_symbols::Search;
pub use teeperf_symbols::is_memory;

/// What such functions are of, in each process: so two runs have the same ones.
pub const JITTED: &str = "[JIT]";

/// Most bytes read of what a process tells: some three million functions.
const MAX_BYTES: u64 = 256 << 20;

/// What a process told of the code that it made; read when a function is first asked for.
pub(crate) struct Jitted {
    pid: u32,
    search: Search,
    told: OnceLock<Told>,
}

impl Jitted {
    pub(crate) fn of(pid: u32, search: &Search) -> Self {
        Self { pid, search: search.clone(), told: OnceLock::new() }
    }

    /// Name of the function at an address.
    pub(crate) fn function(&self, address: u64) -> Option<String> {
        let told = self.told.get_or_init(|| {
            let text = match self.search.is_elsewhere() {
                true => self.search.text(&path(self.pid)).and_then(|file| read(file, MAX_BYTES)),
                false => text(self.pid),
            };
            text.map_or_else(Told::default, Told::parse)
        });
        told.at(address)
    }
}

/// Where a process tells of it.
pub fn path(pid: u32) -> PathBuf {
    format!("/tmp/perf-{pid}.map").into()
}

/// What a process told of the code that it made, if it did, here.
pub fn text(pid: u32) -> Option<Vec<u8>> {
    open(&path(pid)).and_then(|file| read(file, MAX_BYTES))
}

/// Opens such a file. Anybody may put one there, so, as perf has it, it must be of who asks, or root.
fn open(path: &Path) -> Option<File> {
    // Without NONBLOCK it would wait for somebody at the other end of a pipe.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let there = file.metadata().ok()?;
    let is_trusted = there.uid() == 0 || there.uid() == std::fs::metadata("/proc/self").ok()?.uid();
    (there.is_file() && is_trusted).then_some(file)
}

/// The lines of a file, the last ones where there are more than `most` bytes: later ones count.
fn read(mut file: File, most: u64) -> Option<Vec<u8>> {
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(most))).ok()?;
    let mut text = Vec::new();
    file.take(most).read_to_end(&mut text).ok()?;
    if size > most {
        // It begins in the midst of a line.
        let first = text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len());
        text.drain(..first);
    }
    Some(text)
}

/// Functions by address.
#[derive(Default)]
pub(super) struct Told {
    text: Vec<u8>,
    /// Sorted; none lies over another.
    stretches: Vec<Stretch>,
}

/// Code of one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) begin: u64,
    pub(super) end: u64,
    /// Where in the text its name begins; that goes on to the end of the line.
    name: u32,
}

impl Told {
    /// Lines of address, size and name. Code is made again where other code was: the latest line counts.
    pub(super) fn parse(text: Vec<u8>) -> Self {
        let stretches = latest(lines(&text).collect());
        Self { text, stretches }
    }

    /// Name of the function at an address.
    pub(super) fn at(&self, address: u64) -> Option<String> {
        let behind = self.stretches.partition_point(|stretch| stretch.begin <= address);
        let last = self.stretches[..behind].last().filter(|last| last.has(address))?;
        Some(last.name(&self.text))
    }
}

impl Stretch {
    /// That of a line which begins there in the text.
    fn of(line: &[u8], at: usize) -> Option<Self> {
        let (begin, rest) = number(line)?;
        let (size, name) = number(rest)?;
        let end = begin.checked_add(size).filter(|&end| end > begin)?;
        let name_at = u32::try_from(at + line.len() - name.len()).ok()?;
        (!name.is_empty()).then_some(Self { begin, end, name: name_at })
    }

    pub(super) fn has(&self, address: u64) -> bool {
        (self.begin..self.end).contains(&address)
    }

    pub(super) fn name(&self, text: &[u8]) -> String {
        let name = text[self.name as usize..].split(|&byte| byte == b'\n').next();
        String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
    }
}

/// Those of a text, in its order.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = Stretch> {
    let lines = text.split(|&byte| byte == b'\n').scan(0, |at, line| {
        let begin = *at;
        *at += line.len() + 1;
        Some((line, begin))
    });
    lines.filter_map(|(line, at)| Stretch::of(line, at))
}

/// A hexadecimal number, with `0x` or without, and what stands behind the blanks behind it.
fn number(line: &[u8]) -> Option<(u64, &[u8])> {
    let length = line.iter().position(u8::is_ascii_whitespace)?;
    let digits = std::str::from_utf8(&line[..length]).ok()?;
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    // `from_str_radix` takes signs.
    let is_plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u64::from_str_radix(digits, 16).ok().filter(|_| is_plain)?;
    Some((number, line[length..].trim_ascii_start()))
}

/// The same code without what lies below a later line's, sorted.
fn latest(mut lines: Vec<Stretch>) -> Vec<Stretch> {
    lines.sort_unstable_by_key(|line| line.begin);
    let mut latest: Vec<Stretch> = Vec::with_capacity(lines.len());
    // Those that have begun, the latest first, with where each ends.
    let mut open = BinaryHeap::new();
    for (number, line) in lines.iter().enumerate() {
        open.push((line.name, line.end));
        let until = lines.get(number + 1).map_or(u64::MAX, |next| next.begin);
        let mut begin = line.begin;
        while begin < until
            && let Some(&(name, open_end)) = open.peek()
        {
            let end = open_end.min(until);
            if open_end <= until {
                open.pop();
            }
            match latest.last_mut() {
                _ if end <= begin => continue,
                Some(last) if last.name == name && last.end == begin => last.end = end,
                _ => latest.push(Stretch { begin, end, name }),
            }
            begin = end;
        }
    }
    latest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::{chown, symlink};

    fn told(text: impl Into<Vec<u8>>) -> Told {
        Told::parse(text.into())
    }

    #[test]
    fn lines_are_read_and_bad_ones_are_not() {
        let text = "1000 10 LazyCompile:*f file.js:1:2\n0x2000 0x20 a  b \n3000 zz bad\n\n+3000 10 sign\n3000 0 empty\n\
            3000 10 \n3000 10\nffffffffffffffff 2 beyond\n3000\t8 \ttab\n4000 10 last";
        let told = told(text);
        let all = |address| told.at(address);
        assert_eq!(all(0x1000).as_deref(), Some("LazyCompile:*f file.js:1:2"));
        assert_eq!(all(0x100f), all(0x1000));
        assert_eq!((all(0xfff), all(0x1010)), (None, None));
        assert_eq!(all(0x201f).as_deref(), Some("a  b "));
        assert_eq!(all(0x3000).as_deref(), Some("tab"));
        assert_eq!((all(0x3008), all(u64::MAX)), (None, None));
        assert_eq!(all(0x4001).as_deref(), Some("last"));
        assert_eq!(
            Told::parse(b"1000 10 \xffa\x01\n".to_vec()).at(0x1000).unwrap(),
            "\u{fffd}a\x01"
        );
        assert_eq!(Told::default().at(0), None);
    }

    #[test]
    fn a_later_line_is_cut_out_of_an_earlier_one() {
        let told = told("100 100 outer\n140 40 inner\n1f0 20 behind\n140 8 again\n");
        for (address, name) in [
            (0x100, "outer"),
            (0x13f, "outer"),
            (0x140, "again"),
            (0x148, "inner"),
            (0x17f, "inner"),
            (0x180, "outer"),
            (0x1ef, "outer"),
            (0x1f0, "behind"),
            (0x20f, "behind"),
        ] {
            assert_eq!(told.at(address).as_deref(), Some(name), "{address:x}");
        }
        assert_eq!(told.at(0x210), None);
    }

    proptest! {
        #[test]
        fn the_last_line_counts(list in proptest::collection::vec((0u64..100, 0u64..40), 0..30)) {
            let mut slow = [None; 150];
            let mut text = String::new();
            for (at, &(begin, size)) in list.iter().enumerate() {
                text += &format!("{begin:x} {size:x} f{at}\n");
                slow[begin as usize..][..size as usize].fill(Some(at));
            }
            let told = told(text);
            for (address, known) in (0..).zip(slow) {
                prop_assert_eq!(told.at(address), known.map(|at| format!("f{at}")));
            }
            prop_assert!(told.stretches.is_sorted_by(|a, b| a.end <= b.begin));
            prop_assert!(told.stretches.len() <= 2 * list.len());
        }
    }

    #[test]
    fn only_plain_files_of_ones_own_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("own"), "1000 10 f\n2000 10 g\n").unwrap();
        let text = |most| read(open(&at("own")).unwrap(), most).unwrap();
        assert_eq!(Told::parse(text(MAX_BYTES)).at(0x1000).as_deref(), Some("f"));
        let end = Told::parse(text(13));
        assert_eq!((end.at(0x1000), end.at(0x2000).as_deref()), (None, Some("g")));
        symlink(at("own"), at("link")).unwrap();
        std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        for name in ["link", "pipe", "folder", "nothing"] {
            assert!(open(&at(name)).is_none(), "{name}");
        }
        // Only root can give files away.
        if chown(at("own"), Some(12345), None).is_ok() {
            assert!(open(&at("own")).is_none());
        }
    }
}
