//! An enclave of a process that is traced: found from an exit, and the modules in it.

use super::look::Memory;
use crate::enclaves::{Finder, Mapping, News};
use crate::sgx::GivenModule;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use teeperf_aex::enclaves::Enclave as Known;
use teeperf_aex::probe::{Exit, probe};

/// See the module.
#[derive(Debug)]
pub(super) struct Enclave {
    pub(super) known: Known,
    /// What is mapped of it.
    mapped: Range<u64>,
    inode: u64,
    finder: Finder,
    /// When its modules are looked for next, and how long after that.
    next: Instant,
    pause: Duration,
    /// Samples inside it that could not be read though it could before.
    pub(super) lost: u64,
}

/// Between two looks for modules, at first and at last.
const PAUSES: Range<Duration> = Duration::from_millis(10)..Duration::from_secs(2);

impl Enclave {
    /// The one that a thread left, by what is mapped and what its exit tells.
    pub(super) fn find(
        pid: u32,
        memory: &Memory,
        exit: &Exit,
        modules: &Arc<[GivenModule]>,
    ) -> Option<Self> {
        let (mapped, inode) = mapped(&Mapping::all(pid).ok()?, exit.tcs)?;
        let secs = probe(memory, exit, mapped.start, mapped.end)?;
        let known = Known { secs, number: 0, threads: 0, is_initialised: true };
        let range = secs.base..secs.base + secs.size;
        let finder = Finder::new(pid, range, Arc::clone(modules));
        let (next, pause) = (Instant::now(), PAUSES.start);
        Some(Self { known, mapped, inode, finder, next, pause, lost: 0 })
    }

    /// Its range.
    pub(super) fn range(&self) -> Range<u64> {
        let secs = &self.known.secs;
        secs.base..secs.base + secs.size
    }

    /// Whether it is still mapped as it was.
    pub(super) fn is_in(&self, maps: &[Mapping]) -> bool {
        mapped(maps, self.mapped.start) == Some((self.mapped.clone(), self.inode))
    }

    /// Whether any module was found.
    pub(super) fn is_found(&self) -> bool {
        self.finder.is_found()
    }

    /// Modules that were not known, where the code at an address is in none; not each time.
    pub(super) fn look(&mut self, address: u64) -> News {
        if self.finder.has(address) || Instant::now() < self.next {
            return News::default();
        }
        let news = self.finder.look();
        self.next = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSES.end);
        news
    }
}

/// The range around an address that one file is mapped to.
fn mapped(maps: &[Mapping], address: u64) -> Option<(Range<u64>, u64)> {
    let at = maps.iter().position(|mapping| (mapping.start..mapping.end).contains(&address))?;
    let of = &maps[at];
    let is_next = |first: &Mapping, second: &Mapping| {
        first.end == second.start && first.path == of.path && second.path == of.path
    };
    let mut range = of.start..of.end;
    range.start = maps[..=at]
        .windows(2)
        .rev()
        .take_while(|pair| is_next(&pair[0], &pair[1]))
        .last()
        .map_or(range.start, |pair| pair[0].start);
    range.end = maps[at..]
        .windows(2)
        .take_while(|pair| is_next(&pair[0], &pair[1]))
        .last()
        .map_or(range.end, |pair| pair[1].end);
    Some((range, of.inode))
}

/// Whether a process has any: the driver's file, by the names that it had and has.
pub(super) fn has_any(maps: &[Mapping]) -> bool {
    const NAMES: [&str; 4] = ["sgx_enclave", "isgx", "/dev/sgx/", "anon_inode:[sgx"];
    maps.iter().any(|mapping| {
        let path = String::from_utf8_lossy(&mapping.path);
        mapping.is_shared && NAMES.iter().any(|name| path.contains(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(text: &str) -> Vec<Mapping> {
        text.lines().filter_map(|line| Mapping::read(line.as_bytes())).collect()
    }

    #[test]
    fn an_enclave_reaches_as_far_as_its_file_is_mapped() {
        let maps = maps(
            "1000-2000 r-xp 0 0:0 5 /bin/a\n\
            2000-3000 rw-s 0 0:0 7 /dev/sgx_enclave\n\
            3000-5000 r-xs 0 0:0 7 /dev/sgx_enclave\n\
            5000-6000 ---s 0 0:0 7 /dev/sgx_enclave\n\
            7000-8000 rw-s 0 0:0 7 /dev/sgx_enclave\n\
            8000-9000 rw-p 0 0:0 0 ",
        );
        for at in [0x2000, 0x3800, 0x5fff] {
            assert_eq!(mapped(&maps, at), Some((0x2000..0x6000, 7)), "{at:x}");
        }
        assert_eq!(mapped(&maps, 0x7000), Some((0x7000..0x8000, 7)));
        assert_eq!(mapped(&maps, 0x6000), None);
        assert_eq!(mapped(&maps, 0x1000), Some((0x1000..0x2000, 5)));
        assert!(has_any(&maps) && !has_any(&maps[..1]) && !has_any(&[]));
    }
}
