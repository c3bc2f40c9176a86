//! An enclave of a process that is sampled within: where it is, and which files lie in it.

use super::code::Code;
use super::process::{Told, tell_code};
use crate::enclaves::{Finder, Module};
use crate::machine::monotonic_ns;
use crate::packets::Level;
use crate::sample::Packets;
use std::ops::Range;
use std::time::{Duration, Instant};
use teeperf_wire::body::map;

/// See the module.
#[derive(Debug)]
pub(super) struct Enclave {
    pub(super) range: Range<u64>,
    pub(super) is_debug: bool,
    pub(super) unreadable: u64,
    pub(super) is_gone: bool,
    /// Its host is about to take it away, and waits: runtimes have it in their lists no more.
    pub(super) is_going: bool,
    /// Some samples are inside of it, and in no file that was known.
    pub(super) lacks_files: bool,
    /// What lies in it.
    files: Finder,
    /// What another enclave had, until something is found in this one.
    assumed: Vec<Module>,
    /// When it was whole.
    made_ns: u64,
    looked: Instant,
    /// When that was on the recording's time line; nothing before the first look.
    looked_ns: Option<u64>,
    /// Until the next look, where a sample is in no file that is known.
    pause: Duration,
}

/// The first pause between looks at what lies in an enclave: runtimes list it when it is whole already, and it may live for some milliseconds.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(300);

impl Enclave {
    pub(super) fn new(range: Range<u64>, is_debug: bool, files: Finder, made_ns: u64) -> Self {
        Self {
            range,
            is_debug,
            unreadable: 0,
            is_gone: false,
            is_going: false,
            lacks_files: false,
            files,
            assumed: Vec::new(),
            made_ns,
            looked: Instant::now(),
            looked_ns: None,
            pause: FIRST_LOOK,
        }
    }

    /// Whether a sample at this address is in a file that is known.
    pub(super) fn has(&self, address: u64) -> bool {
        self.files.has(address)
    }

    /// Whether nothing is known of what lies in it.
    pub(super) fn is_unknown(&self) -> bool {
        !self.files.is_found() && self.assumed.is_empty()
    }

    /// How long until it is to be looked at, though no sample asks for that: in its first half second, until something is found in it.
    pub(super) fn due(&self) -> Option<Duration> {
        let is_new = self.is_debug && !self.is_gone && self.pause < LONGEST;
        let may_be_listed = is_new && !self.files.is_found();
        may_be_listed.then(|| self.pause.saturating_sub(self.looked.elapsed()))
    }

    /// Whether it is time to look for files once more.
    pub(super) fn is_to_be_looked_at(&self) -> bool {
        let has_gone = self.is_going && !self.assumed.is_empty();
        !has_gone && self.looked.elapsed() >= self.pause
    }

    /// All of it, as code that no file is behind; enclaves that cannot be read are told apart by where they are.
    pub(super) fn whole(&self) -> Code {
        let Range { start, end } = self.range;
        Code {
            address: start,
            length: end - start,
            offset: 0,
            protection: map::PROT_EXEC,
            path: format!("[enclave at {start:#x}]").into_bytes(),
        }
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

    /// Looks for files in it, and tells of those that are new; of what the user should know as well.
    pub(super) fn look<S: FnMut(u16, Vec<u8>)>(
        &mut self,
        pid: u32,
        packets: &mut Packets<S>,
    ) -> Told {
        let now = monotonic_ns();
        // What is new came after the look before, and samples may have been taken in it since.
        let before = self.looked_ns.replace(now);
        let time = before.or(Some(now));
        let news = self.files.look();
        if !news.modules.is_empty() && !std::mem::take(&mut self.assumed).is_empty() {
            tell_code(pid, &[self.whole()], time, packets);
        }
        for module in &news.modules {
            module.maps(pid).for_each(|map| packets.map(&map, time));
        }
        self.looked = Instant::now();
        let is_in_vain = news.modules.is_empty() && before.is_some();
        self.pause = if is_in_vain { (2 * self.pause).min(LONGEST) } else { FIRST_LOOK };
        news.problems.into_iter().map(|text| (Level::Warning, text)).collect()
    }

    /// Takes it that the same lies in it as in another one.
    pub(super) fn assume<S: FnMut(u16, Vec<u8>)>(
        &mut self,
        modules: Vec<Module>,
        pid: u32,
        packets: &mut Packets<S>,
    ) {
        for module in &modules {
            module.maps(pid).for_each(|map| packets.map(&map, Some(self.made_ns)));
        }
        self.assumed = modules;
    }

    /// What another enclave of the process has in it, as if that were here: the latest that was at the same place and as long; else, where
    /// all that are as long have the same in them, any of these. A host that makes enclave after enclave makes the same.
    pub(super) fn like(&self, others: &[Self]) -> Option<Vec<Module>> {
        let length = |of: &Self| of.range.end - of.range.start;
        let alike = others
            .iter()
            .rev()
            .filter(|other| other.files.is_found() && length(other) == length(self));
        let moved = |other: &Self| -> Vec<Module> {
            let distance = self.range.start.wrapping_sub(other.range.start);
            other.files.found().iter().map(|module| module.moved(distance)).collect()
        };
        if let Some(same) = alike.clone().find(|other| other.range == self.range) {
            return Some(moved(same));
        }
        let mut all = alike.map(moved);
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sgx::GivenModule;

    const SIZE: u64 = 64 << 20;

    /// One at this place, in which this very program lies, so far behind the beginning; or nothing.
    fn enclave(base: u64, size: u64, module: Option<u64>) -> Enclave {
        let path = std::env::current_exe().unwrap();
        let named = module.map(|behind| GivenModule { path, base: Some(base + behind) });
        let range = base..base + size;
        let files = Finder::new(std::process::id(), range.clone(), named.into_iter().collect());
        let mut enclave = Enclave::new(range, true, files, 0);
        if module.is_some() {
            let mut packets = Packets::new(0, |_, _| {}).unwrap();
            enclave.look(std::process::id(), &mut packets);
            assert!(enclave.files.is_found());
        }
        enclave
    }

    #[test]
    fn what_is_not_found_is_as_in_enclaves_that_are_alike() {
        let size = std::fs::metadata(std::env::current_exe().unwrap()).unwrap().len();
        let size = (2 * size).next_multiple_of(SIZE);
        let at = |place: u64| place << 40;
        let found = |of: &Enclave| of.files.found().to_vec();
        let (first, other) = (enclave(at(1), size, Some(0)), enclave(at(2), size, Some(4096)));
        let (longer, nothing) = (enclave(at(3), 2 * size, Some(0)), enclave(at(3), size, None));
        let (there, elsewhere) = (enclave(at(1), size, None), enclave(at(4), size, None));

        let others = [first, longer, nothing];
        assert_eq!(there.like(&others), Some(found(&others[0])));
        let moved = elsewhere.like(&others).unwrap();
        let begins = |modules: &[Module]| modules[0].code[0].address;
        assert_eq!(begins(&moved) - at(4), begins(&found(&others[0])) - at(1));
        let [first, longer, nothing] = others;

        // Of two that differ the one at the same place counts, and elsewhere neither.
        let others = [first, other, longer, nothing];
        assert_eq!(there.like(&others), Some(found(&others[0])));
        assert_eq!(elsewhere.like(&others), None);
        assert_eq!(elsewhere.like(&others[2..]), None);
    }
}
