//! One process that is sampled within: its threads' samples, its code, its enclaves.

use super::code::{Code, Known};
use super::enclave::Enclave;
use super::options::{PLACES, Within};
use super::rings::{Counts, Found, Rings};
use crate::enclaves::Finder;
use crate::machine::monotonic_ns;
use crate::memory::{SEAL_SIZE, SharedMemory};
use crate::packets::Level;
use crate::sample::{Kin, Map, Packets, Record};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use teeperf_aex::layout::Registers;
use teeperf_aex::sampler::{PRODUCTION, event};
use teeperf_aex::threads::Threads;
use teeperf_wire::body::sample::Sample;
use teeperf_wire::sampling::Ask;

/// See the module.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// As it knows itself: in a namespace of its own its threads have other ids than here.
    inner_pid: u32,
    /// Readable when the process has ended.
    pub(super) ended: OwnedFd,
    rings: Rings,
    pub(super) memory: SharedMemory,
    code: Known,
    enclaves: Vec<Enclave>,
    /// Enclaves that are not among these: there were too many.
    more_enclaves: u64,
    looked: Instant,
    /// When rings were emptied last: what is in them now was taken since.
    drained: u64,
    /// Threads that had no place when it was last looked: some begin or end at that moment.
    without_place: BTreeSet<u32>,
    /// Those that had none for longer.
    unseen: BTreeSet<u32>,
    names: Vec<(u32, Vec<u8>)>,
    is_of_inline_host: bool,
}

/// What the user is told.
pub(crate) type Told = Vec<(Level, String)>;

/// Between two looks at what changes by itself: threads and their names.
const LOOK: Duration = Duration::from_millis(300);
/// Enclaves of a process that are remembered.
const MOST_ENCLAVES: usize = 4096;
/// Threads without a place that are counted.
const MOST_UNSEEN: usize = 65_536;

impl Process {
    pub(super) fn new(
        (pid, inner_pid): (u32, u32),
        ended: OwnedFd,
        within: &Within,
    ) -> io::Result<Self> {
        let capacity = within.capacity();
        let bytes = Threads::bytes(PLACES, capacity);
        let memory = SharedMemory::create(c"teeperf-samples", bytes, SEAL_SIZE)?;
        // SAFETY: as many bytes, of zeroes, at a page, which stay as long as what uses them: both are this process's.
        let threads = unsafe { Threads::new(memory.start(), PLACES, capacity) };
        Ok(Self {
            pid,
            inner_pid,
            ended,
            rings: Rings::new(threads, capacity, pid),
            memory,
            code: Known::new(),
            enclaves: Vec::new(),
            more_enclaves: 0,
            looked: Instant::now(),
            drained: monotonic_ns(),
            without_place: BTreeSet::new(),
            unseen: BTreeSet::new(),
            names: Vec::new(),
            is_of_inline_host: false,
        })
    }

    /// Tells the recording of it, before it has samples. The child of a fork has what its parent is known to have.
    pub(super) fn begin<S: FnMut(u16, Vec<u8>)>(
        &mut self,
        is_forked: bool,
        others: &[Self],
        packets: &mut Packets<S>,
    ) {
        let (pid, time) = (self.pid, Some(monotonic_ns()));
        let name = name(pid, pid);
        if is_forked {
            let parent = parent_of(pid);
            let known = others.iter().find(|other| other.pid == parent);
            self.code = known.map_or_else(Known::new, |parent| parent.code.of_child());
            let kin = Kin { pid, tid: pid, parent_pid: parent, parent_tid: parent };
            packets.record(Record::Forked(kin), time);
        }
        packets.record(Record::Named { pid, tid: pid, name: &name, is_exec: !is_forked }, time);
        self.names.push((pid, name));
        self.look_at_code(packets, time);
        // What comes later stands behind the beginning, which takes away what was there before.
        self.drained = monotonic_ns();
    }

    /// Takes what its threads have left; samples while it was paused are left out.
    pub(super) fn drain<S: FnMut(u16, Vec<u8>)>(
        &mut self,
        is_paused: bool,
        packets: &mut Packets<S>,
    ) -> Told {
        let Self { pid, inner_pid, rings, code, enclaves, names, drained, .. } = self;
        let (pid, inner_pid, mut told) = (*pid, *inner_pid, Told::new());
        let (mut is_asked, mut is_looked) = (false, false);
        // The first thread is known by the process's id.
        let here = |tid| if tid == inner_pid { pid } else { tid };
        let since = std::mem::replace(drained, monotonic_ns());
        rings.drain(&mut |found| match found {
            Found::Began(tid) if tid != inner_pid => {
                let kin = Kin { pid, tid, parent_pid: pid, parent_tid: pid };
                packets.record(Record::Forked(kin), None);
                tell_name(pid, tid, names, None, packets);
            }
            Found::Began(_) => {}
            Found::Ended(tid) => {
                let tid = here(tid);
                names.retain(|(known, _)| *known != tid);
                let kin = Kin { pid, tid, parent_pid: pid, parent_tid: pid };
                packets.record(Record::Exited(kin), Some(monotonic_ns()));
            }
            Found::Lost(count) => packets.lost(count),
            Found::Sample(_) if is_paused => {}
            Found::Sample(sample) => {
                let of_enclave = |enclave: &Enclave| enclave.range.contains(&sample.ip);
                let enclave = enclaves.iter().rposition(of_enclave);
                // Where in the host's code it stands, or goes on.
                let outside = match sample.event {
                    event::OUTSIDE => Some(sample.ip).filter(|_| enclave.is_none()),
                    _ => sample.outer.register(Registers::IP),
                };
                match (sample.event, enclave) {
                    (event::UNREADABLE, Some(at)) => enclaves[at].unreadable += 1,
                    (event::UNREADABLE, None) => self.is_of_inline_host = true,
                    (event::INSIDE, Some(at)) if !enclaves[at].has(sample.ip) => {
                        if enclaves[at].is_to_be_looked_at() {
                            told.extend(look(enclaves, at, pid, packets));
                        }
                        enclaves[at].lacks_files |= enclaves[at].is_unknown();
                    }
                    _ => {}
                }
                // Once a round: what makes its code itself has some that no look finds.
                let is_first = !std::mem::replace(&mut is_asked, true);
                let is_new = || outside.is_some_and(|at| !code.has(at));
                if !is_looked && (is_new() || is_first && code.may_have_more(pid)) {
                    is_looked = true;
                    let ranges = ranges(enclaves);
                    tell_code(pid, &code.look(pid, &ranges), Some(since), packets);
                }
                packets.sample(Sample { tid: here(sample.tid), ..sample });
            }
        });
        told
    }

    /// How long until an enclave is to be looked at.
    pub(super) fn due(&self) -> Option<Duration> {
        self.enclaves.iter().filter_map(Enclave::due).min()
    }

    /// Looks at enclaves of which nothing is known so far: before they go, their runtimes do not list them any more.
    pub(super) fn look_ahead<S: FnMut(u16, Vec<u8>)>(&mut self, packets: &mut Packets<S>) -> Told {
        let mut told = Told::new();
        for at in 0..self.enclaves.len() {
            if self.enclaves[at].due() == Some(Duration::ZERO) {
                told.extend(look(&mut self.enclaves, at, self.pid, packets));
            }
        }
        told
    }

    /// Looks at what changes by itself, now and then.
    pub(super) fn look_in<S: FnMut(u16, Vec<u8>)>(&mut self, packets: &mut Packets<S>) {
        if self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Instant::now();
        if self.inner_pid != self.pid {
            // Which of the threads that are seen here is which is not known.
            return;
        }
        let (pid, time) = (self.pid, Some(monotonic_ns()));
        let threads = threads_of(pid);
        if threads.is_empty() {
            return;
        }
        self.rings.give_up(|tid| !threads.contains(&tid));
        let placed: BTreeSet<u32> = self.rings.threads().collect();
        let before = std::mem::take(&mut self.without_place);
        for tid in threads {
            if placed.contains(&tid) {
                tell_name(pid, tid, &mut self.names, time, packets);
                continue;
            }
            if before.contains(&tid) && self.unseen.len() < MOST_UNSEEN {
                self.unseen.insert(tid);
            }
            self.without_place.insert(tid);
        }
    }

    /// An enclave is whole.
    pub(super) fn made<S: FnMut(u16, Vec<u8>)>(
        &mut self,
        ask: &Ask,
        is_debug: bool,
        within: &Within,
        packets: &mut Packets<S>,
    ) -> Told {
        let mut told = Told::new();
        let range = ask.base..ask.base.saturating_add(ask.size);
        if self.enclaves.len() >= MOST_ENCLAVES {
            self.more_enclaves += 1;
            return told;
        }
        if !is_debug {
            let text = format!("the enclave at {:#x} {PRODUCTION}", ask.base);
            told.push((Level::Warning, text));
        }
        let files = Finder::new(self.pid, range.clone(), within.modules.clone());
        let made = monotonic_ns();
        let (mut enclave, time) = (Enclave::new(range, is_debug, files, made), Some(made));
        tell_code(self.pid, &[enclave.whole()], time, packets);
        if is_debug {
            told.extend(enclave.look(self.pid, packets));
        }
        self.enclaves.push(enclave);
        self.look_at_code(packets, time);
        told
    }

    /// Some enclaves are about to go: what is left of their samples is taken before.
    pub(super) fn goes<S: FnMut(u16, Vec<u8>)>(
        &mut self,
        ask: &Ask,
        is_paused: bool,
        packets: &mut Packets<S>,
    ) -> Told {
        let end = ask.base.saturating_add(ask.size);
        for enclave in &mut self.enclaves {
            let Range { start, end: behind } = enclave.range;
            enclave.is_going |= start < end && ask.base < behind;
        }
        let told = self.drain(is_paused, packets);
        self.enclaves.iter_mut().for_each(|enclave| enclave.is_gone = enclave.is_going);
        told
    }

    pub(super) fn look_at_code<S: FnMut(u16, Vec<u8>)>(
        &mut self,
        packets: &mut Packets<S>,
        time: Option<u64>,
    ) {
        let new = self.code.look(self.pid, &ranges(&self.enclaves));
        tell_code(self.pid, &new, time, packets);
    }

    /// What came of it.
    pub(super) fn counts(&self) -> Counts {
        self.rings.counts()
    }

    /// What the user should know of it, at its end.
    pub(super) fn end(&self) -> Told {
        let mut told = Told::new();
        let (pid, counts) = (self.pid, self.counts());
        told.extend(self.unknown());
        if self.more_enclaves > 0 {
            let text = format!(
                "process {pid} made {} enclaves after {MOST_ENCLAVES} others, and no more are remembered: samples inside have the functions \
                 of one before at the same place, or none",
                self.more_enclaves
            );
            told.push((Level::Warning, text));
        }
        told.extend(self.enclaves.iter().filter_map(|enclave| enclave.dead(pid)));
        if self.is_of_inline_host {
            let text = format!(
                "process {pid} was inside an enclave that it was not seen to make, so it asks the kernel without the C library, as \
                 Gramine does: record it with --sgx=outside"
            );
            told.push((Level::Warning, text));
        }
        if counts.left_out > 0 {
            let text = format!(
                "{} threads of process {pid} were not sampled: it has places for {PLACES} at one time",
                counts.left_out
            );
            told.push((Level::Warning, text));
        }
        if self.unseen.len() as u64 > counts.left_out {
            let text = format!(
                "{} threads of process {pid} were not sampled: they began without pthread_create",
                self.unseen.len() as u64 - counts.left_out
            );
            told.push((Level::Warning, text));
        }
        if counts.nonsense > 0 {
            let text = format!(
                "process {pid} wrote over its own samples: what was none is left out, {} times",
                counts.nonsense
            );
            told.push((Level::Warning, text));
        }
        told
    }

    /// What is said of enclaves whose files were not found, of all of them at once: a host may make any number.
    fn unknown(&self) -> Option<(Level, String)> {
        let mut unknown =
            self.enclaves.iter().filter(|enclave| enclave.is_debug && enclave.lacks_files);
        let first = unknown.next()?.range.start;
        let text = match unknown.count() {
            0 => format!(
                "what is loaded in the enclave at {first:#x} was not found, so it has no functions"
            ),
            others => format!(
                "what is loaded in {} enclaves of process {} was not found, the first at {first:#x}, so some samples in them have no \
                 functions",
                others + 1,
                self.pid
            ),
        };
        Some((Level::Warning, text + ": --module FILE says so"))
    }
}

/// Looks for files in one of the enclaves; where none is found, the same as in others counts.
fn look<S: FnMut(u16, Vec<u8>)>(
    enclaves: &mut [Enclave],
    at: usize,
    pid: u32,
    packets: &mut Packets<S>,
) -> Told {
    let mut told = Told::new();
    let alike = if enclaves[at].is_unknown() { enclaves[at].like(enclaves) } else { None };
    let enclave = &mut enclaves[at];
    if alike.is_none() || !enclave.is_going {
        told = enclave.look(pid, packets);
    }
    if let Some(modules) = alike
        && enclave.is_unknown()
    {
        enclave.assume(modules, pid, packets);
    }
    told
}

fn ranges(enclaves: &[Enclave]) -> Vec<Range<u64>> {
    let there = enclaves.iter().filter(|enclave| !enclave.is_gone);
    there.map(|enclave| enclave.range.clone()).collect()
}

pub(crate) fn tell_code<S: FnMut(u16, Vec<u8>)>(
    pid: u32,
    code: &[Code],
    time: Option<u64>,
    packets: &mut Packets<S>,
) {
    const PRIVATE: u32 = libc::MAP_PRIVATE as u32;
    for code in code {
        let Code { address, length, offset, protection, path } = code;
        let build_id = code.build_id(pid);
        let map = Map {
            pid,
            tid: pid,
            address: *address,
            length: *length,
            offset: *offset,
            protection: *protection,
            flags: PRIVATE,
            mode: teeperf_wire::body::sample::mode::USER,
            path,
            build_id: &build_id,
            ..Map::default()
        };
        packets.map(&map, time);
    }
}

/// Tells a thread's name, if it has another than was told.
pub(crate) fn tell_name<S: FnMut(u16, Vec<u8>)>(
    pid: u32,
    tid: u32,
    names: &mut Vec<(u32, Vec<u8>)>,
    time: Option<u64>,
    packets: &mut Packets<S>,
) {
    let name = name(pid, tid);
    let known = names.iter_mut().find(|(known, _)| *known == tid);
    if name.is_empty() || known.as_ref().is_some_and(|(_, known)| *known == name) {
        return;
    }
    packets.record(Record::Named { pid, tid, name: &name, is_exec: false }, time);
    match known {
        Some((_, known)) => *known = name,
        None => names.push((tid, name)),
    }
}

/// A thread's name; empty where it is not there any more.
pub(crate) fn name(pid: u32, tid: u32) -> Vec<u8> {
    let name = fs::read(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    name.trim_ascii_end().to_vec()
}

fn threads_of(pid: u32) -> BTreeSet<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn parent_of(pid: u32) -> u32 {
    crate::server::parent_of(pid).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sampling;
    use teeperf_aex::debug_read::MemoryFile;
    use teeperf_aex::enclaves::Enclaves;
    use teeperf_aex::sampler::Sampler;

    const ENCLAVE: u64 = 1 << 40;
    const THREAD: u32 = 77;

    fn within() -> Within {
        let how = Sampling { ring: 1 << 16, ..Sampling::default() };
        Within { how, has_enclaves: true, modules: [].into() }
    }

    /// What is told of a process that made an enclave, and left samples of these events there; the enclave goes meanwhile or not.
    fn told(is_debug: bool, samples: &[(u16, u64)], goes: bool) -> String {
        let (within, pid, (ended, _end)) = (within(), std::process::id(), io::pipe().unwrap());
        let mut process = Process::new((pid, pid), ended.into(), &within).unwrap();
        let mut packets = Packets::new(0, |_, _| {}).unwrap();
        // SAFETY: of the process's memory, which goes later.
        let threads = unsafe { Threads::new(process.memory.start(), PLACES, within.capacity()) };
        let (enclaves, memory) = (Enclaves::new(), MemoryFile::of_this_process().unwrap());
        let program = Sampler { enclaves, memory, threads, settings: within.settings() };
        let (place, _) = program.threads.begin(THREAD).unwrap();
        let ask = Ask { base: ENCLAVE, size: 1 << 20, ..Ask::default() };
        let mut told = process.made(&ask, is_debug, &within, &mut packets);
        for &(event, ip) in samples {
            let sample = Sample { event, ip, tid: THREAD, ..Sample::default() };
            assert!(program.threads.ring(place).unwrap().push(&[&sample.head()]));
        }
        told.extend(process.drain(false, &mut packets));
        if goes {
            told.extend(process.goes(&ask, false, &mut packets));
        }
        told.extend(process.end());
        assert_eq!(packets.counts.samples, samples.len() as u64);
        told.into_iter().map(|(_, text)| text + "\n").collect()
    }

    #[test]
    fn an_enclave_that_can_no_longer_be_read_is_told_of() {
        let dead = told(true, &[(event::UNREADABLE, ENCLAVE + 4096); 3], true);
        assert!(dead.contains("could not be read any more, 3 times"), "{dead}");
        assert!(!told(true, &[(event::INSIDE, ENCLAVE + 4096)], true).contains("any more"));
        let production = told(false, &[(event::UNREADABLE, ENCLAVE + 4096)], false);
        assert!(production.starts_with("the enclave at 0x10000000000 is a production enclave"));
        assert_eq!(production.lines().count(), 1, "{production}");
    }

    #[test]
    fn of_any_number_of_enclaves_is_told_once() {
        let (within, pid, (ended, _end)) = (within(), std::process::id(), io::pipe().unwrap());
        let mut process = Process::new((pid, pid), ended.into(), &within).unwrap();
        let mut packets = Packets::new(0, |_, _| {}).unwrap();
        for at in 0..MOST_ENCLAVES as u64 + 2 {
            let ask = Ask { base: ENCLAVE + (at << 20), size: 1 << 20, ..Ask::default() };
            process.made(&ask, false, &within, &mut packets);
        }
        for enclave in &mut process.enclaves[..3] {
            (enclave.is_debug, enclave.lacks_files) = (true, true);
        }
        let told: Vec<String> = process.end().into_iter().map(|(_, text)| text).collect();
        let [unknown, more] = &told[..] else { panic!("{told:?}") };
        let begins = "what is loaded in 3 enclaves of process ";
        assert!(unknown.starts_with(begins) && unknown.contains("the first at 0x10000000000"));
        assert!(more.contains("made 2 enclaves after 4096 others"), "{more}");
    }

    #[test]
    fn enclaves_whose_files_are_not_found_and_those_that_nobody_saw_made_are_told_of() {
        for goes in [true, false] {
            let unknown = told(true, &[(event::INSIDE, ENCLAVE + 4096)], goes);
            assert_eq!(unknown.matches("--module FILE says so").count(), 1, "{unknown}");
        }
        let inline = told(false, &[(event::UNREADABLE, 4096)], false);
        assert!(inline.contains("record it with --sgx=outside"), "{inline}");
    }
}
