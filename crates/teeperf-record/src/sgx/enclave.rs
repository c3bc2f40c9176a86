//! An enclave of a process that is sampled within: where it is, and which files lie in it.

use super::process::Told;
use crate::enclaves::Finder;
use crate::machine::monotonic_ns;
use crate::packets::Level;
use crate::sample::Packets;
use std::ops::Range;
use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug)]
pub(super) struct Enclave {
    pub(super) range: Range<u64>,
    pub(super) is_debug: bool,
    pub(super) unreadable: u64,
    pub(super) is_gone: bool,
    /// What lies in it.
    pub(super) files: Finder,
    looked: Instant,
    /// When that was on the recording's time line; nothing before the first look.
    looked_ns: Option<u64>,
    /// Until the next look, where a sample is in no file that is known.
    pause: Duration,
}

/// The first pause between looks at what lies in an enclave: runtimes list it when it is whole already.
const FIRST_LOOK: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(300);

impl Enclave {
    pub(super) fn new(range: Range<u64>, is_debug: bool, files: Finder) -> Self {
        Self {
            range,
            is_debug,
            unreadable: 0,
            is_gone: false,
            files,
            looked: Instant::now(),
            looked_ns: None,
            pause: FIRST_LOOK,
        }
    }

    /// Whether it is time to look for files once more.
    pub(super) fn is_to_be_looked_at(&self) -> bool {
        self.looked.elapsed() >= self.pause
    }

    /// What is said of one that could be read before.
    pub(super) fn dead(&self, pid: u32) -> Option<(Level, String)> {
        let text = format!(
            "the enclave at {:#x} in process {pid} could not be read any more, {} times: it is gone, or the machine slept and \
             lost it; these samples are of sgx-unreadable",
            self.range.start, self.unreadable
        );
        (self.is_debug && self.unreadable > 0).then_some((Level::Warning, text))
    }

    /// What is said of one whose files were not found.
    pub(super) fn unknown(&self) -> Option<(Level, String)> {
        let text = format!(
            "what is loaded in the enclave at {:#x} was not found, so it has no functions: --module FILE says so",
            self.range.start
        );
        (self.is_debug && !self.files.is_found()).then_some((Level::Warning, text))
    }

    /// Looks for files in it, and tells of those that are new; of what the user should know as well.
    pub(super) fn look<S: FnMut(u16, Vec<u8>)>(
        &mut self,
        pid: u32,
        packets: &mut Packets<S>,
    ) -> Told {
        let now = monotonic_ns();
        // What is new came after the look before, and samples may have been taken in it since.
        let time = self.looked_ns.replace(now).or(Some(now));
        let news = self.files.look();
        for module in &news.modules {
            module.maps(pid).for_each(|map| packets.map(&map, time));
        }
        self.looked = Instant::now();
        self.pause =
            if news.modules.is_empty() { (2 * self.pause).min(LONGEST) } else { FIRST_LOOK };
        news.problems.into_iter().map(|text| (Level::Warning, text)).collect()
    }
}
