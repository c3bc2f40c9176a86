//! Packets of what a file says.

use teeperf_wire::body::sample::{HEADER, Header};
use teeperf_wire::body::{end, map, sampled, start, task};
use teeperf_wire::fields::FIELD_HEADER;
use teeperf_wire::packet::{MAJOR, MAX_PAYLOAD, MINOR};

use super::attr::{Attr, has};
use super::features::Features;
use super::record::{self, Record};

/// Nanoseconds in a second.
const HZ: u64 = 1_000_000_000;
/// `PERF_TYPE_SOFTWARE`, and of these `PERF_COUNT_SW_TASK_CLOCK`, the last whose periods are nanoseconds.
const SOFTWARE: u32 = 1;
const LAST_CLOCK: u64 = 1;

/// Number of files that perf's file does not have.
const NOT_IN_FILE: u64 = u64::MAX;

/// Fields, one behind the other. What has no room in a packet is left out.
pub(super) struct Fields<'a>(&'a mut Vec<u8>);

impl<'a> Fields<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        out.clear();
        Self(out)
    }

    pub(super) fn bytes(&mut self, tag: u16, value: &[u8]) {
        if self.0.len() + FIELD_HEADER + value.len() <= MAX_PAYLOAD {
            self.0.extend(tag.to_le_bytes());
            self.0.extend([0; 2]);
            self.0.extend((value.len() as u32).to_le_bytes());
            self.0.extend_from_slice(value);
        }
    }

    pub(super) fn number(&mut self, tag: u16, value: u64) {
        self.bytes(tag, &value.to_le_bytes());
    }

    pub(super) fn text(&mut self, tag: u16, value: &str) {
        if !value.is_empty() {
            self.bytes(tag, value.as_bytes());
        }
    }
}

/// The first packet. `zero`: nanoseconds on the samples' clock where the recording begins.
pub(super) fn start(features: &Features, zero: u64, out: &mut Vec<u8>) {
    let mut fields = Fields::new(out);
    let version = [MAJOR.to_le_bytes(), MINOR.to_le_bytes()];
    fields.bytes(start::VERSION, version.as_flattened());
    fields.text(start::WRITER, format!("perf {}", features.version).trim_end());
    fields.number(start::HZ, HZ);
    fields.text(start::CLOCK_REASON, "the clock of perf's samples");
    fields.number(start::CLOCK_START, zero);
    if let Some((wall, then)) = features.clock {
        // Where the recording began before or after the moment that is known of both.
        let wall = i128::from(wall) - i128::from(then) + i128::from(zero);
        fields.number(start::WALL_NS, u64::try_from(wall).unwrap_or(0));
    }
    features.command.iter().for_each(|word| fields.bytes(start::ARGUMENT, word.as_bytes()));
    fields.text(start::HOST, &features.host);
    if !features.release.is_empty() {
        fields.text(start::SYSTEM, &format!("Linux {}", features.release));
    }
    fields.text(start::MACHINE, &features.arch);
    fields.text(start::PROCESSOR, &features.processor);
    fields.number(start::PROCESSORS, features.processors.into());
}

/// What a packet says of an event.
pub(super) struct Description<'a> {
    pub(super) number: u16,
    pub(super) name: String,
    pub(super) attr: &'a Attr,
    pub(super) machine: u16,
    pub(super) zero: u64,
}

/// A packet about an event.
pub(super) fn sampled(event: &Description<'_>, out: &mut Vec<u8>) {
    let attr = event.attr;
    let mut fields = Fields::new(out);
    fields.number(sampled::EVENT, event.number.into());
    fields.text(sampled::NAME, &event.name);
    let is_clock = attr.kind == SOFTWARE && attr.config <= LAST_CLOCK;
    fields.number(sampled::UNIT, if is_clock { 1 } else { 2 });
    match attr.is_frequency() {
        true => fields.number(sampled::FREQUENCY, attr.period),
        false => fields.number(sampled::PERIOD, attr.period),
    }
    fields.number(sampled::ZERO_NS, event.zero);
    fields.number(sampled::SOURCE, sampled::source::FOREIGN);
    fields.number(sampled::MACHINE, event.machine.into());
    if attr.has(has::REGS_USER) {
        fields.number(sampled::REGISTERS, attr.registers);
    }
    if attr.has(has::STACK_USER) {
        fields.number(sampled::STACK, attr.stack.into());
    }
    fields.number(sampled::CHAIN, attr.has(has::CALLCHAIN).into());
    fields.number(sampled::PERF_TYPE, attr.kind.into());
    fields.number(sampled::PERF_CONFIG, attr.config);
    if attr.precise() > 0 {
        fields.number(sampled::PRECISE, attr.precise().into());
    }
    if attr.has(has::BRANCH_STACK) {
        fields.number(sampled::BRANCHES, attr.branch_type);
    }
}

/// A packet about code. `is_inside`: of a process in another mount namespace than this one.
pub(super) fn map(
    map: &record::Map<'_>,
    mode: u8,
    time: Option<u64>,
    features: &Features,
    is_inside: bool,
    out: &mut Vec<u8>,
) {
    let mut fields = Fields::new(out);
    fields.number(map::PID, map.pid.into());
    fields.number(map::TID, map.tid.into());
    time.into_iter().for_each(|time| fields.number(map::TIME_NS, time));
    fields.number(map::ADDRESS, map.address);
    fields.number(map::LENGTH, map.length);
    fields.number(map::OFFSET, map.offset);
    fields.number(map::PROTECTION, map.protection.into());
    fields.number(map::FLAGS, map.flags.into());
    fields.bytes(map::PATH, map.path);
    let known = features.build_id_of(map.path, map.pid == map::KERNEL);
    let build_id = if map.build_id.is_empty() { known } else { map.build_id };
    if !build_id.is_empty() {
        fields.bytes(map::BUILD_ID, build_id);
    }
    fields.number(map::MODE, mode.into());
    if is_inside {
        fields.number(map::FILE, NOT_IN_FILE);
    }
}

/// A packet about what became of a thread; false where the record is not whole.
pub(super) fn task(record: &Record<'_>, time: Option<u64>, out: &mut Vec<u8>) -> bool {
    let Some(task) = record::Task::read(record) else { return false };
    let mut fields = Fields::new(out);
    let what = match record.kind {
        record::kind::FORK => task::what::FORK,
        record::kind::EXIT => task::what::EXIT,
        _ if task.is_exec => task::what::EXEC,
        _ => task::what::NAME,
    };
    fields.number(task::WHAT, what);
    fields.number(task::PID, task.pid.into());
    fields.number(task::TID, task.tid.into());
    if let Some((pid, tid)) = task.parent {
        fields.number(task::PARENT_PID, pid.into());
        fields.number(task::PARENT_TID, tid.into());
    }
    let time = time.or(Some(task.time).filter(|&time| time > 0));
    time.into_iter().for_each(|time| fields.number(task::TIME_NS, time));
    task.name.into_iter().for_each(|name| fields.bytes(task::NAME, name));
    true
}

/// The last packet, at a time of the samples' clock.
pub(super) fn end(time: u64, out: &mut Vec<u8>) {
    Fields::new(out).number(end::TIME, time);
}

/// The head of a packet of samples, whose bytes stand behind the room for it.
pub(super) fn head_of_samples(payload: &mut [u8], header: Header) {
    let bytes = (payload.len() - HEADER) as u32;
    payload[..HEADER].copy_from_slice(&Header { bytes, ..header }.encode());
}
