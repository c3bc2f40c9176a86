//! A process that is traced: its memory, its code, its enclaves, and what its threads' samples become.

use super::enclave::Enclave;
use super::look::{self, Memory};
use crate::enclaves::Mapping;
use crate::machine::monotonic_ns;
use crate::packets::Level;
use crate::sample::{Kin, Packets, Record};
use crate::sgx::{Code, GivenModule, Known, Told, name, tell_code, tell_name};
use std::sync::Arc;
use std::time::{Duration, Instant};
use teeperf_aex::attached::{Stopped, UserRegisters};
use teeperf_aex::layout::Registers;
use teeperf_aex::probe::Exit;
use teeperf_aex::sampler::{PRODUCTION, event};
use teeperf_aex::state::{self, Room, Wanted};
use teeperf_wire::body::map;
use teeperf_wire::body::sample::{NO_CPU, Numbers, Outer, Sample, abi, mode};

/// Packets on their way.
pub(super) type Out = Packets<Box<dyn FnMut(u16, Vec<u8>) + Send>>;

/// See the module.
#[derive(Debug)]
pub(super) struct Space {
    pub(super) pid: u32,
    memory: Option<Memory>,
    code: Known,
    enclaves: Vec<Enclave>,
    modules: Arc<[GivenModule]>,
    names: Vec<(u32, Vec<u8>)>,
    /// When its code may be looked at next: what makes its code itself has some that no look finds.
    next: Instant,
    /// Exits of which no enclave was found, since one was.
    misses: u32,
    /// The host's stack of the thread that was looked at last, if it was inside an enclave.
    host: Vec<u8>,
    pub(super) told: Told,
}

/// What a thread showed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    event: u16,
    ip: u64,
    registers: Option<Registers>,
    /// Those of the host of an enclave.
    host: Option<Registers>,
    /// Entries and bytes in the room.
    chain: usize,
    stack: usize,
    time_ns: u64,
    /// It is the first of an enclave.
    is_new: bool,
}

impl Seen {
    /// Which of `teeperf_aex::sampler::event` it is.
    pub(super) fn event(&self) -> u16 {
        self.event
    }
}

/// Least time between two looks at code.
const LOOK: Duration = Duration::from_millis(20);
/// Exits without an enclave, behind which not each is looked at.
const MOST_MISSES: u32 = 16;
/// Enclaves of a process at one time.
const MOST_ENCLAVES: usize = 1024;

impl Space {
    pub(super) fn new(pid: u32, modules: Arc<[GivenModule]>) -> Self {
        Self {
            pid,
            memory: Memory::open(pid).ok(),
            code: Known::new(),
            enclaves: Vec::new(),
            modules,
            names: Vec::new(),
            next: Instant::now(),
            misses: 0,
            host: Vec::new(),
            told: Told::new(),
        }
    }

    /// Tells the recording of it: the child of a parent, or a program that runs from here on.
    pub(super) fn begin(&mut self, parent: Option<u32>, packets: &mut Out) {
        let (pid, time) = (self.pid, Some(monotonic_ns()));
        if let Some(parent) = parent {
            let kin = Kin { pid, tid: pid, parent_pid: parent, parent_tid: parent };
            packets.record(Record::Forked(kin), time);
        }
        let name = name(pid, pid);
        let is_exec = parent.is_none();
        packets.record(Record::Named { pid, tid: pid, name: &name, is_exec }, time);
        self.names = vec![(pid, name)];
        self.look_at_code(time, packets);
    }

    /// It has executed another program.
    pub(super) fn executed(&mut self, packets: &mut Out) {
        *self = Self::new(self.pid, Arc::clone(&self.modules));
        self.begin(None, packets);
    }

    /// A thread of it is sampled from here on.
    pub(super) fn thread_begins(&mut self, tid: u32, packets: &mut Out) {
        let (pid, time) = (self.pid, Some(monotonic_ns()));
        if tid != pid {
            let kin = Kin { pid, tid, parent_pid: pid, parent_tid: pid };
            packets.record(Record::Forked(kin), time);
            tell_name(pid, tid, &mut self.names, time, packets);
        }
    }

    /// A thread's name, if it has another than was told.
    pub(super) fn name(&mut self, tid: u32, packets: &mut Out) {
        tell_name(self.pid, tid, &mut self.names, Some(monotonic_ns()), packets);
    }

    /// It is not any more.
    pub(super) fn thread_ends(&mut self, tid: u32, packets: &mut Out) {
        self.names.retain(|(known, _)| *known != tid);
        let pid = self.pid;
        let kin = Kin { pid, tid, parent_pid: pid, parent_tid: pid };
        packets.record(Record::Exited(kin), Some(monotonic_ns()));
    }

    /// Names that changed, and enclaves that are gone.
    pub(super) fn look_in(&mut self, threads: impl Iterator<Item = u32>, packets: &mut Out) {
        let time = Some(monotonic_ns());
        for tid in threads {
            tell_name(self.pid, tid, &mut self.names, time, packets);
        }
        // What stacks lead through, of which there are copies alone, nobody sees.
        self.look_at_code(time, packets);
        if !self.enclaves.is_empty()
            && let Ok(maps) = Mapping::all(self.pid)
        {
            let gone = self.enclaves.extract_if(.., |enclave| !enclave.is_in(&maps));
            let gone: Vec<_> = gone.collect();
            gone.iter().for_each(|enclave| self.see_off(enclave));
        }
    }

    fn see_off(&mut self, enclave: &Enclave) {
        let (pid, secs) = (self.pid, &enclave.known.secs);
        if secs.is_debug && !enclave.is_found() {
            let text = format!(
                "what is loaded in the enclave at {:#x} of process {pid} is not known: --module FILE says so",
                secs.base
            );
            self.told.push((Level::Warning, text));
        }
        if enclave.lost > 0 {
            let text = format!(
                "the enclave at {:#x} of process {pid} could not be read any more, {} times: it is gone, or the machine slept and lost \
                 it; these samples are of sgx-unreadable",
                secs.base, enclave.lost
            );
            self.told.push((Level::Warning, text));
        }
    }

    /// What is to be said at its end.
    pub(super) fn end(&mut self) -> Told {
        let all = std::mem::take(&mut self.enclaves);
        all.iter().for_each(|enclave| self.see_off(enclave));
        std::mem::take(&mut self.told)
    }

    /// Looks at a thread that stands.
    pub(super) fn look(
        &mut self,
        registers: &UserRegisters,
        wanted: Wanted,
        room: &mut Room,
    ) -> Seen {
        let stopped = Stopped::of(registers);
        let seen = Seen {
            event: event::OUTSIDE,
            ip: stopped.shown.ip,
            time_ns: monotonic_ns(),
            ..Seen::default()
        };
        self.host.clear();
        let Some(memory) = &self.memory else { return seen };
        let registers = look::outside(registers);
        if let Some(tcs) = look::tcs(memory, &stopped) {
            let exit = Exit { tcs, sp: stopped.sp, bp: stopped.bp };
            look::copy(memory, stopped.sp, wanted.host(), &mut self.host);
            let host = (!self.host.is_empty()).then_some(registers);
            return self.look_inside(&exit, wanted, room, Seen { host, ..seen });
        }
        let (chain, stack) = look::stack(memory, &registers, wanted, room);
        Seen { registers: Some(registers), chain, stack, ..seen }
    }

    fn look_inside(&mut self, exit: &Exit, wanted: Wanted, room: &mut Room, seen: Seen) -> Seen {
        let mut at = self.enclaves.iter().position(|enclave| enclave.known.has(exit.tcs));
        let mut is_new = false;
        for _ in 0..2 {
            if at.is_none() {
                at = self.find(exit);
                is_new = at.is_some();
            }
            let (Some(place), Some(memory)) = (at, &self.memory) else { break };
            let enclave = &mut self.enclaves[place];
            if !enclave.known.secs.is_debug {
                break;
            }
            if let Ok(state) = state::read(memory, &enclave.known, exit.tcs, wanted, room) {
                return Seen {
                    event: event::INSIDE,
                    ip: state.registers.instruction_pointer(),
                    registers: Some(state.registers),
                    chain: state.chain,
                    stack: state.stack,
                    is_new,
                    ..seen
                };
            }
            // Another one may be there by now.
            let (pid, modules) = (self.pid, &self.modules);
            match Enclave::find(pid, memory, exit, modules).filter(|one| one.known.secs.is_debug) {
                Some(other) if !is_new => {
                    *enclave = other;
                    is_new = true;
                }
                _ => {
                    enclave.lost += 1;
                    break;
                }
            }
        }
        Seen { event: event::UNREADABLE, ip: exit.tcs, is_new, ..seen }
    }

    fn find(&mut self, exit: &Exit) -> Option<usize> {
        let is_tried = self.misses < MOST_MISSES || self.misses.is_power_of_two();
        self.misses = self.misses.saturating_add(1);
        if !is_tried || self.enclaves.len() >= MOST_ENCLAVES {
            return None;
        }
        let found = Enclave::find(self.pid, self.memory.as_ref()?, exit, &self.modules)?;
        self.misses = 0;
        let range = found.range();
        self.enclaves.retain(|one| {
            let other = one.range();
            other.end <= range.start || range.end <= other.start
        });
        self.enclaves.push(found);
        Some(self.enclaves.len() - 1)
    }

    /// Writes what was seen, and before it what tells where that is. The thread goes on meanwhile.
    pub(super) fn write(
        &mut self,
        seen: &Seen,
        (tid, period): (u32, u64),
        room: &Room,
        packets: &mut Out,
    ) {
        let time = Some(seen.time_ns);
        if seen.event == event::OUTSIDE {
            let chain = room.chain[..seen.chain].iter().skip(1);
            let all = chain.map(|&entry| u64::from_le_bytes(entry)).chain([seen.ip]);
            self.look_for(all, time, packets);
        } else {
            let entered = seen.host.map(|registers| registers.instruction_pointer());
            self.look_for(entered.into_iter(), time, packets);
            self.tell_of_enclave(seen, packets);
        }
        let bytes = |registers: &Registers| registers.0.map(u64::to_le_bytes);
        let (registers, host) = (seen.registers.as_ref().map(bytes), seen.host.as_ref().map(bytes));
        let registers = registers.as_ref().map_or(&[][..], |registers| registers.as_flattened());
        let has_registers = !registers.is_empty();
        let outer = host.as_ref().map_or(Outer::default(), |registers| Outer {
            mask: Registers::HOST,
            registers: Numbers::of(Registers::host(registers).as_flattened()),
            stack: &self.host,
        });
        packets.sample(Sample {
            event: seen.event,
            mode: mode::USER,
            abi: if has_registers || outer.is_there() { abi::BITS_64 } else { abi::NONE },
            time_ns: seen.time_ns,
            pid: self.pid,
            tid,
            cpu: NO_CPU,
            ip: seen.ip,
            period,
            mask: if has_registers { Registers::MASK } else { 0 },
            chain: Numbers::of(room.chain[..seen.chain].as_flattened()),
            registers: Numbers::of(registers),
            stack: &room.stack[..seen.stack],
            outer,
            ..Sample::default()
        });
    }

    fn tell_of_enclave(&mut self, seen: &Seen, packets: &mut Out) {
        let (pid, time) = (self.pid, Some(seen.time_ns));
        let Some(enclave) = self.enclaves.iter_mut().find(|one| one.known.has(seen.ip)) else {
            return;
        };
        let secs = enclave.known.secs;
        if seen.is_new {
            // What no module is in, and enclaves that cannot be read, are told apart by where they are.
            let whole = Code {
                address: secs.base,
                length: secs.size,
                offset: 0,
                protection: map::PROT_EXEC,
                path: format!("[enclave at {:#x}]", secs.base).into_bytes(),
            };
            tell_code(pid, &[whole], time, packets);
            if !secs.is_debug {
                let text = format!("the enclave at {:#x} of process {pid} {PRODUCTION}", secs.base);
                self.told.push((Level::Warning, text));
            }
        }
        if seen.event == event::INSIDE {
            let news = enclave.look(seen.ip);
            for module in &news.modules {
                module.maps(pid).for_each(|map| packets.map(&map, time));
            }
            let problems = news.problems.into_iter().map(|text| (Level::Warning, text));
            self.told.extend(problems);
        }
    }

    /// Looks at code where one of these addresses is in none that is known; not each time.
    fn look_for(
        &mut self,
        mut addresses: impl Iterator<Item = u64>,
        time: Option<u64>,
        packets: &mut Out,
    ) {
        let is_time = Instant::now() >= self.next;
        if is_time && addresses.any(|address| !self.code.has(address))
            || self.code.may_have_more(self.pid)
        {
            self.look_at_code(time, packets);
            self.next = Instant::now() + LOOK;
        }
    }

    fn look_at_code(&mut self, time: Option<u64>, packets: &mut Out) {
        let ranges: Vec<_> = self.enclaves.iter().map(Enclave::range).collect();
        let new = self.code.look(self.pid, &ranges);
        tell_code(self.pid, &new, time, packets);
    }
}
