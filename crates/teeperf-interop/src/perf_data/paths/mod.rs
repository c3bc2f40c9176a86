//! Call paths of a profile as samples, for [`super::write()`]: one for the time that each path has itself, which weighs as many
//! nanoseconds, and one that weighs as many calls. So perf shows what hooks counted, exact where these are.
//!
//! What is known of a path is when none of it was: such samples have no times. A caller's address is that of its first
//! instruction and one more, since from where it called is not known either, and readers take one off.

mod batch;
mod modules;

use std::collections::{BTreeSet, HashMap};

use teeperf_profile::contents::Packet;
use teeperf_profile::model::{FunctionId, Profile, Thread, Unit};
use teeperf_profile::{Error, Packets};
use teeperf_wire::body::sample::{CONTEXT_USER, MAX_CHAIN, NO_CPU, NO_TIME, Numbers, Sample, mode};
use teeperf_wire::body::{map, sampled, start, task};
use teeperf_wire::packet::{MAJOR, MINOR, kind};

use super::packets::Fields;
use batch::Batch;
use modules::{Mapped, Module};

/// What is written: number, name.
const SELF_TIME: (u16, &str) = (1, "self-time");
const CALLS: (u16, &str) = (2, "calls");
/// Units of these.
const NANOSECONDS: u64 = 1;
const COUNTS: u64 = 2;
/// The process of functions whose paths are not known: formats that have such know none.
const NOBODY: u32 = 1;
/// `PROT_READ` and `MAP_PRIVATE` of mmap(2).
const PROT_READ: u32 = 1;
const MAP_PRIVATE: u64 = 2;
/// See the module.
pub struct Paths<'a> {
    profile: &'a Profile,
    modules: Vec<Module<'a>>,
    /// Modules that each process has functions of.
    maps: Vec<(u32, usize, usize)>,
    /// Addresses of functions.
    addresses: Vec<Option<u64>>,
    next: Next,
    out: Vec<u8>,
    batch: Batch,
    chain: Vec<[u8; 8]>,
    left_out: LeftOut,
}

/// What a file for perf cannot say of paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeftOut {
    /// Nanoseconds in functions whose address is not known, and all of them: perf calls the former `[unknown]`.
    pub nameless_ns: f64,
    /// See there.
    pub all_ns: f64,
    /// Paths whose outermost functions are left out, since they are too deep.
    pub shortened: u64,
    /// Modules whose files are not there any more, or were replaced: perf has no names for these.
    pub missing: Vec<String>,
}

#[derive(Clone, Copy)]
enum Next {
    Start,
    Event((u16, &'static str)),
    Map(usize),
    Name(usize),
    /// Thread and node.
    Samples(usize, usize),
    /// Vertex of the graph.
    Graph(usize),
    End,
}

impl<'a> Paths<'a> {
    /// Of a profile whose functions have places: see [`teeperf_profile::Options::by_place`].
    pub fn new(profile: &'a Profile) -> Self {
        let (modules, missing) = modules::of(profile);
        let known: HashMap<_, _> = modules
            .iter()
            .enumerate()
            .map(|(at, module)| ((&module.place.path, &module.place.build_id), at))
            .collect();
        let module_of = |function: FunctionId| {
            let place = profile.functions.get(function.0 as usize)?.place.as_ref()?;
            known.get(&(&place.path, &place.build_id)).copied()
        };
        let addresses = (0..profile.functions.len())
            .map(|number| {
                let module = module_of(FunctionId(number as u32))?;
                modules[module].address_of(profile.functions[number].place.as_ref()?.address)
            })
            .collect();
        let nodes = |thread: &'a Thread| thread.tree.nodes.iter().skip(1).map(|node| node.function);
        let of_threads = profile
            .threads
            .iter()
            .flat_map(|thread| nodes(thread).map(|function| (thread.pid, function)));
        let graph = profile.graph.iter().flat_map(|graph| &graph.functions);
        let all = of_threads.chain(graph.map(|vertex| (NOBODY, vertex.function)));
        let used: BTreeSet<_> =
            all.filter_map(|(pid, function)| Some((pid, module_of(function)?))).collect();
        let parts = |(pid, module): (u32, usize)| {
            (0..modules[module].parts.len()).map(move |part| (pid, module, part))
        };
        let maps = used.into_iter().flat_map(parts).collect();
        Self {
            profile,
            maps,
            addresses,
            next: Next::Start,
            out: Vec::new(),
            batch: Batch::default(),
            chain: Vec::new(),
            left_out: LeftOut { missing, ..LeftOut::default() },
            modules,
        }
    }

    /// What is not in what was given so far.
    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    fn start(&mut self) {
        let info = &self.profile.info;
        let mut fields = Fields::new(&mut self.out);
        fields.bytes(start::VERSION, [MAJOR.to_le_bytes(), MINOR.to_le_bytes()].as_flattened());
        info.command.iter().for_each(|word| fields.bytes(start::ARGUMENT, word.as_bytes()));
        for (tag, text) in [
            (start::HOST, &info.host),
            (start::SYSTEM, &info.system),
            (start::MACHINE, &info.machine),
            (start::PROCESSOR, &info.processor),
        ] {
            fields.text(tag, text);
        }
        fields.number(start::PROCESSORS, info.processors.into());
    }

    fn event(&mut self, (number, name): (u16, &str)) {
        let is_time = number == SELF_TIME.0 && self.profile.info.unit == Unit::Nanoseconds;
        let mut fields = Fields::new(&mut self.out);
        fields.number(sampled::EVENT, number.into());
        fields.text(sampled::NAME, name);
        fields.number(sampled::UNIT, if is_time { NANOSECONDS } else { COUNTS });
        fields.number(sampled::CHAIN, 1);
        fields.number(sampled::MACHINE, machine(&self.profile.info.machine).into());
    }

    fn map(&mut self, (pid, module, part): (u32, usize, usize)) {
        let Module { place, parts } = &self.modules[module];
        let Mapped { address, length, offset, .. } = parts[part];
        let mut fields = Fields::new(&mut self.out);
        fields.number(map::PID, pid.into());
        fields.number(map::TID, pid.into());
        fields.number(map::ADDRESS, address);
        fields.number(map::LENGTH, length);
        fields.number(map::OFFSET, offset);
        fields.number(map::PROTECTION, u64::from(map::PROT_EXEC | PROT_READ));
        fields.number(map::FLAGS, MAP_PRIVATE);
        fields.bytes(map::PATH, place.path.as_bytes());
        if !place.build_id.is_empty() {
            fields.bytes(map::BUILD_ID, &place.build_id);
        }
    }

    fn name(&mut self, thread: &Thread) {
        let mut fields = Fields::new(&mut self.out);
        fields.number(task::WHAT, task::what::NAME);
        fields.number(task::PID, thread.pid.into());
        fields.number(task::TID, thread.tid.into());
        fields.bytes(task::NAME, thread.name.as_bytes());
    }

    fn address(&self, function: FunctionId) -> Option<u64> {
        self.addresses.get(function.0 as usize).copied().flatten()
    }

    /// Puts the chain of a path together: the innermost first. Whether all of it has room in a sample.
    fn path(&mut self, thread: &Thread, mut at: usize) -> bool {
        let nodes = &thread.tree.nodes;
        let own = self.address(nodes[at].function).unwrap_or(0);
        self.chain.clear();
        self.chain.extend([CONTEXT_USER, own].map(u64::to_le_bytes));
        at = nodes[at].parent as usize;
        while at > 0 && self.chain.len() < MAX_CHAIN {
            let address = self.address(nodes[at].function).map_or(0, |address| address + 1);
            self.chain.push(address.to_le_bytes());
            at = nodes[at].parent as usize;
        }
        at == 0
    }

    /// Puts samples with this chain into the packet; false where they have no room there.
    fn weigh(&mut self, (pid, tid): (u32, u32), self_ns: f64, calls: u64) -> bool {
        let ip = u64::from_le_bytes(self.chain[1]);
        let (mut both, mut count) = (Vec::new(), 0);
        for ((event, _), period) in [(SELF_TIME, self_ns.round() as u64), (CALLS, calls)] {
            let sample = Sample {
                event,
                mode: mode::USER,
                time_ns: NO_TIME,
                pid,
                tid,
                cpu: NO_CPU,
                ip,
                period,
                chain: Numbers::of(self.chain.as_flattened()),
                ..Sample::default()
            };
            if period > 0 {
                both.extend(sample.parts(&sample.heads()).concat());
                count += 1;
            }
        }
        let has_room = self.batch.samples(&both, count);
        if has_room {
            self.left_out.all_ns += self_ns;
            self.left_out.nameless_ns += if ip == 0 { self_ns } else { 0.0 };
        }
        has_room
    }

    /// Fills a packet with samples of paths from here on, and tells where to go on, and whether there is no room for more.
    fn samples(&mut self, mut thread: usize, mut at: usize) -> (Next, bool) {
        let profile = self.profile;
        while let Some(of) = profile.threads.get(thread) {
            while let Some(node) = of.tree.nodes.get(at) {
                let is_whole = self.path(of, at);
                if !self.weigh((of.pid, of.tid), node.self_time.value, node.calls) {
                    return (Next::Samples(thread, at), true);
                }
                self.left_out.shortened += u64::from(!is_whole);
                at += 1;
            }
            (thread, at) = (thread + 1, 1);
        }
        (Next::Graph(0), false)
    }

    /// Likewise of functions whose paths are not known.
    fn graph(&mut self, mut at: usize) -> (Next, bool) {
        let profile = self.profile;
        let vertices = profile.graph.as_ref().map_or(&[][..], |graph| &graph.functions);
        while let Some(vertex) = vertices.get(at) {
            let own = self.address(vertex.function).unwrap_or(0);
            self.chain.clear();
            self.chain.extend([CONTEXT_USER, own].map(u64::to_le_bytes));
            if !self.weigh((NOBODY, NOBODY), vertex.self_time.value, vertex.calls) {
                return (Next::Graph(at), true);
            }
            at += 1;
        }
        (Next::End, false)
    }
}

/// `EM_…` of what `uname -m` says; 0 where that is not known, as it need not be.
fn machine(name: &str) -> u16 {
    match name {
        "x86_64" => 62,
        "aarch64" => 183,
        "riscv64" => 243,
        _ => 0,
    }
}

impl Paths<'_> {
    /// Makes the next packet, and tells its kind.
    fn step(&mut self) -> Option<u16> {
        loop {
            match self.next {
                Next::Start => {
                    self.start();
                    self.next = Next::Event(SELF_TIME);
                    return Some(kind::START);
                }
                Next::Event(event) => {
                    self.event(event);
                    let is_last = event == CALLS;
                    self.next = if is_last { Next::Map(0) } else { Next::Event(CALLS) };
                    return Some(kind::SAMPLED);
                }
                Next::Map(at) => {
                    self.next = Next::Map(at + 1);
                    match self.maps.get(at) {
                        Some(&map) => {
                            self.map(map);
                            return Some(kind::MAP);
                        }
                        None => self.next = Next::Name(0),
                    }
                }
                Next::Name(at) => {
                    self.next = Next::Name(at + 1);
                    match self.profile.threads.get(at) {
                        Some(thread) => {
                            self.name(thread);
                            return Some(kind::TASK);
                        }
                        None => self.next = Next::Samples(0, 1),
                    }
                }
                Next::Samples(thread, at) => {
                    let is_full;
                    (self.next, is_full) = self.samples(thread, at);
                    if is_full {
                        return self.batch.take().then_some(kind::SAMPLES);
                    }
                }
                Next::Graph(at) => {
                    let is_full;
                    (self.next, is_full) = self.graph(at);
                    if is_full {
                        return self.batch.take().then_some(kind::SAMPLES);
                    }
                }
                Next::End => return self.batch.take().then_some(kind::SAMPLES),
            }
        }
    }
}

impl Packets for Paths<'_> {
    fn name(&self) -> &str {
        "the profile"
    }

    fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        let packet = self.step().map(|kind| {
            let is_samples = kind == kind::SAMPLES;
            let payload = if is_samples { self.batch.payload() } else { &self.out };
            Packet::of(0, 0, kind, payload)
        });
        Ok(packet)
    }

    fn offset(&self) -> u64 {
        0
    }

    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }
}
