//! The head of a file: events, with what their samples have. All have an id at the beginning of samples and at the end of other
//! records, so that each can have parts of its own.

use std::collections::HashMap;

use teeperf_profile::contents::Sampled;
use teeperf_wire::body::sample::{CONTEXT_KERNEL, MAX_STACK, NO_CPU, NO_TIME, Sample, mode};

use super::super::attr::{BRANCH_HW_INDEX, has};
use super::super::file::{FEATURES, HEAD};

/// Bytes of the attributes: `PERF_ATTR_SIZE_VER5`, which all of today's readers know.
const ATTR: usize = 112;
/// `PERF_FORMAT_ID`.
const FORMAT_ID: u64 = 1 << 2;
/// Bits of the flags.
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const MMAP: u64 = 1 << 8;
const COMM: u64 = 1 << 9;
const FREQ: u64 = 1 << 10;
const TASK: u64 = 1 << 13;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const EXCLUDE_GUEST: u64 = 1 << 20;
const MMAP2: u64 = 1 << 23;
const COMM_EXEC: u64 = 1 << 24;
/// `PERF_SAMPLE_BRANCH_USER`, with any branch: of branches of which nothing is said.
const BRANCH_ANY: u64 = 1 | 1 << 3;
/// `PERF_SAMPLE_BRANCH_COUNTERS`: what it stands for is not written.
const BRANCH_COUNTERS: u64 = 1 << 19;
/// First bit of `precise_ip`.
const PRECISE_IP: u32 = 15;
/// `PERF_TYPE_SOFTWARE`, whose first is cpu-clock; `PERF_TYPE_TRACEPOINT`; `PERF_TYPE_RAW`.
const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;
const RAW: u32 = 4;
/// Periods of this unit are nanoseconds.
const NANOSECONDS: u64 = 1;

/// What samples turn out to have, beside what was said of their events.
#[derive(Default)]
pub(super) struct Shape {
    has_time: bool,
    /// Whether it is known what the kernel runs.
    pub(super) has_kernel_map: bool,
    /// Whether samples have two stacks.
    pub(super) has_two: bool,
    events: HashMap<u16, Parts>,
}

#[derive(Clone, Copy, Default)]
struct Parts {
    is_in_kernel: bool,
    has_cpu: bool,
    has_chain: bool,
    has_branches: bool,
    registers: u64,
    stack: usize,
}

impl Shape {
    /// Whether there was no sample.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn see(&mut self, sample: &Sample<'_>) {
        self.has_time |= sample.time_ns != NO_TIME;
        let parts = self.events.entry(sample.event).or_default();
        let context = sample.chain.get(0) == Some(CONTEXT_KERNEL);
        parts.is_in_kernel |= sample.mode == mode::KERNEL || context;
        parts.has_cpu |= sample.cpu != NO_CPU;
        // Where there are two stacks either may be shown.
        parts.has_chain |= !sample.chain.is_empty() || sample.outer.is_there();
        parts.has_branches |= !sample.branches.is_empty();
        parts.registers |= sample.mask | sample.outer.mask;
        parts.stack = parts.stack.max(sample.stack.len()).max(sample.outer.stack.len());
        self.has_two |= sample.outer.is_there() && !sample.stack.is_empty();
    }
}

/// One event.
pub(super) struct Event {
    pub(super) id: u64,
    pub(super) name: String,
    /// `PERF_SAMPLE_…`.
    pub(super) sample_type: u64,
    pub(super) registers: u64,
    /// Branches have a number before them.
    pub(super) has_branch_index: bool,
    pub(super) machine: u16,
    attr: [u8; ATTR],
}

/// See the module.
pub(super) struct Events {
    pub(super) all: Vec<Event>,
    places: HashMap<u16, usize>,
    pub(super) has_time: bool,
    /// Nanoseconds on the samples' clock where the recording begins.
    pub(super) zero: u64,
}

impl Events {
    pub(super) fn new(sampled: Vec<Sampled>, shape: &Shape) -> Self {
        let mut events = Self {
            all: Vec::new(),
            places: HashMap::new(),
            has_time: shape.has_time,
            zero: sampled.first().map_or(0, |event| event.zero_ns),
        };
        for sampled in sampled {
            let place = events.all.len();
            // The first that says what a number means counts.
            if events.places.contains_key(&sampled.event) {
                continue;
            }
            events.places.insert(sampled.event, place);
            let parts = shape.events.get(&sampled.event).copied().unwrap_or_default();
            let has_kernel = shape.has_kernel_map || parts.is_in_kernel;
            let event = Event::new(place as u64 + 1, sampled, parts, has_kernel, events.has_time);
            events.all.push(event);
        }
        events
    }

    /// Of this number.
    pub(super) fn of(&self, number: u16) -> Option<&Event> {
        self.places.get(&number).map(|&place| &self.all[place])
    }

    /// All that stands before the data, of so many bytes, behind which these features come.
    pub(super) fn head(&self, data: u64, features: &[(u32, Vec<u8>)]) -> Vec<u8> {
        let count = self.all.len();
        let (attr, ids) = (ATTR + 16, HEAD + 8 * count);
        let begin = ids + attr * count;
        let mut bits = [0u8; FEATURES / 8];
        for &(number, _) in features {
            bits[number as usize / 8] |= 1 << (number % 8);
        }
        let mut out = b"PERFILE2".to_vec();
        let numbers =
            [HEAD, attr, ids, attr * count, begin].map(|number| number as u64).into_iter();
        numbers.chain([data, 0, 0]).for_each(|number| out.extend(number.to_le_bytes()));
        out.extend(bits);
        self.all.iter().for_each(|event| out.extend(event.id.to_le_bytes()));
        for (place, event) in self.all.iter().enumerate() {
            out.extend(event.attr);
            out.extend(((HEAD + 8 * place) as u64).to_le_bytes());
            out.extend(8u64.to_le_bytes());
        }
        out
    }

    /// What stands at the end of records that are no samples: of an event, or, where they are of none, of the first.
    pub(super) fn trailer(
        &self,
        (pid, tid): (u32, u32),
        time: Option<u64>,
        event: Option<&Event>,
        out: &mut Vec<u8>,
    ) {
        let Some(event) = event.or(self.all.first()) else { return };
        out.extend([pid, tid].map(u32::to_le_bytes).as_flattened());
        if self.has_time {
            out.extend(time.unwrap_or(0).to_le_bytes());
        }
        if event.has(has::CPU) {
            out.extend([0; 8]);
        }
        out.extend(event.id.to_le_bytes());
    }

    /// Attributes as the list of events has them.
    pub(super) fn descriptions(&self) -> Vec<u8> {
        let mut out =
            [self.all.len() as u32, ATTR as u32].map(u32::to_le_bytes).as_flattened().to_vec();
        for event in &self.all {
            out.extend(event.attr);
            out.extend(1u32.to_le_bytes());
            super::features::text(&event.name, &mut out);
            out.extend(event.id.to_le_bytes());
        }
        out
    }
}

impl Event {
    fn new(id: u64, sampled: Sampled, parts: Parts, has_kernel: bool, has_time: bool) -> Self {
        let has_outer = sampled.outer_registers != 0;
        let has_chain = sampled.has_chain || parts.has_chain || has_outer;
        let registers = sampled.registers | sampled.outer_registers | parts.registers;
        let stack = sampled.stack.max(sampled.outer_stack).min(MAX_STACK as u64) as usize;
        let stack = stack.max(parts.stack);
        let mut sample_type = has::IDENTIFIER | has::IP | has::TID | has::PERIOD;
        for (is_there, what) in [
            (has_time, has::TIME),
            (parts.has_cpu, has::CPU),
            // Without a chain, be it an empty one, perf follows no copies of stacks.
            (has_chain || stack > 0, has::CALLCHAIN),
            (parts.has_branches, has::BRANCH_STACK),
            (registers != 0, has::REGS_USER),
            (stack > 0, has::STACK_USER),
        ] {
            sample_type |= if is_there { what } else { 0 };
        }
        let (kind, config) = match sampled.perf {
            // Of a tracepoint perf wants to know the format of what it no longer has.
            Some((TRACEPOINT, config)) => (RAW, config),
            Some(known) => known,
            None if sampled.unit == NANOSECONDS => (SOFTWARE, 0),
            None => (RAW, 0),
        };
        let mut flags = MMAP | COMM | TASK | SAMPLE_ID_ALL | EXCLUDE_GUEST | MMAP2 | COMM_EXEC;
        // Where nothing tells of the kernel, perf is not to miss it.
        if sampled.name.ends_with(":u") || !has_kernel {
            flags |= EXCLUDE_KERNEL | EXCLUDE_HV;
        }
        let period = match sampled.frequency {
            // Readers divide by it.
            0 => sampled.period.max(1),
            frequency => {
                flags |= FREQ;
                frequency
            }
        };
        // What branches are is kept: as callers perf takes only those that were recorded as such.
        let branch_type = match (parts.has_branches, sampled.branches & !BRANCH_COUNTERS) {
            (false, _) => 0,
            (true, 0) => BRANCH_ANY,
            (true, known) => known,
        };
        flags |= u64::from(sampled.precise & 3) << PRECISE_IP;
        // type, size; config, period, sample_type, read_format, flags; wakeup and bp_type, config1, config2;
        // branch_sample_type, sample_regs_user; sample_stack_user and clockid.
        let numbers = [
            u64::from(kind) | (ATTR as u64) << 32,
            config,
            period,
            sample_type,
            FORMAT_ID,
            flags,
            0,
            0,
            0,
            branch_type,
            registers,
            stack.next_multiple_of(8) as u64,
        ];
        let mut attr = [0; ATTR];
        for (place, number) in attr.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
            *place = number.to_le_bytes();
        }
        Self {
            id,
            name: sampled.name,
            sample_type,
            registers,
            has_branch_index: branch_type & BRANCH_HW_INDEX != 0,
            machine: sampled.machine,
            attr,
        }
    }

    pub(super) fn has(&self, what: u64) -> bool {
        self.sample_type & what != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_samples_are_to_have_needs_not_be_seen() {
        let told =
            Sampled { event: 1, outer_registers: 0x1c0, outer_stack: 2048, ..Sampled::default() };
        let events = Events::new(vec![told.clone()], &Shape::default());
        let event = events.of(1).unwrap();
        assert!(
            [has::CALLCHAIN, has::REGS_USER, has::STACK_USER].iter().all(|&what| event.has(what))
        );
        assert_eq!(event.registers, 0x1c0);
        assert_eq!(u32::from_le_bytes(*event.attr[88..].first_chunk().unwrap()), 2048);
        // No file says more than there can be.
        let more = Sampled { stack: u64::MAX, ..told };
        let events = Events::new(vec![more], &Shape::default());
        let attr = events.of(1).unwrap().attr;
        assert_eq!(u32::from_le_bytes(*attr[88..].first_chunk().unwrap()), 65528);
    }
}
