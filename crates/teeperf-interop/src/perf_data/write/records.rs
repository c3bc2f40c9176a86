//! Records of what packets say.

use std::collections::BTreeMap;

use teeperf_profile::contents::{Map, Task};
use teeperf_wire::body::sample::{Header, Sample, mode};
use teeperf_wire::body::{map, task};

use super::super::attr::has;
use super::super::record::{
    MISC_COMM_EXEC, MISC_MMAP_BUILD_ID, MISC_MMAP_DATA, MOST_BUILD_ID, kind,
};
use super::events::{Event, Events};
use super::shown::Shown;

/// Bytes of a record's head.
const HEAD: usize = 8;
/// Most bytes of a record: what two bytes can say, and a multiple of eight.
const MOST: usize = 65528;
/// Longest path and longest name.
const MOST_PATH: usize = 4096;
/// `PERF_RECORD_KSYMBOL_TYPE_BPF`.
const KSYMBOL_BPF: u16 = 1;
/// Most files whose build-ids are kept.
const MOST_FILES: usize = 1 << 16;

/// Build-ids of the files that there are maps of: with what runs in them.
#[derive(Default)]
pub(super) struct Known {
    pub(super) build_ids: BTreeMap<Vec<u8>, (Vec<u8>, u8)>,
}

/// Puts a record behind what is there, whose body is written by a closure.
fn record(kind: u32, misc: u16, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend(kind.to_le_bytes());
    out.extend(misc.to_le_bytes());
    out.extend([0; 2]);
    body(out);
    debug_assert!(out.len() - at <= MOST);
    let size = (out.len() - at) as u16;
    out[at + 6..at + HEAD].copy_from_slice(&size.to_le_bytes());
}

fn u32s<const N: usize>(numbers: [u32; N], out: &mut Vec<u8>) {
    out.extend(numbers.map(u32::to_le_bytes).as_flattened());
}

fn u64s<const N: usize>(numbers: [u64; N], out: &mut Vec<u8>) {
    out.extend(numbers.map(u64::to_le_bytes).as_flattened());
}

/// Text, and zeroes behind it, one at least.
fn text(text: &[u8], out: &mut Vec<u8>) {
    let text = &text[..text.len().min(MOST_PATH)];
    out.extend_from_slice(text);
    let length = (text.len() + 1).next_multiple_of(8);
    out.resize(out.len() + length - text.len(), 0);
}

/// Says that nothing comes that is earlier than what came.
pub(super) fn finished_round() -> Vec<u8> {
    let mut out = Vec::new();
    record(kind::FINISHED_ROUND, 0, &mut out, |_| {});
    out
}

impl Known {
    pub(super) fn map(&mut self, map: &Map<'_>, events: &Events, out: &mut Vec<u8>) {
        let id = &map.build_id[..map.build_id.len().min(MOST_BUILD_ID)];
        if !id.is_empty() && self.build_ids.len() < MOST_FILES {
            self.build_ids.insert(map.path.to_vec(), (id.to_vec(), map.mode));
        }
        let who = (map.pid, map.tid);
        let is_kernels = map.pid == map::KERNEL;
        if is_kernels && map.mode == mode::KERNEL && !matches!(map.path.first(), Some(b'[' | b'/'))
        {
            // A name alone is that of a function that the kernel made, of BPF.
            return record(kind::KSYMBOL, mode::KERNEL.into(), out, |out| {
                u64s([map.address], out);
                u32s([u32::try_from(map.length).unwrap_or(u32::MAX), u32::from(KSYMBOL_BPF)], out);
                text(map.path, out);
                events.trailer((map::KERNEL, 0), map.time_ns, None, out);
            });
        }
        let data = if map.protection & map::PROT_EXEC == 0 { MISC_MMAP_DATA } else { 0 };
        let misc = u16::from(map.mode) | data;
        if is_kernels {
            return record(kind::MMAP, misc, out, |out| {
                u32s([map.pid, map.tid], out);
                u64s([map.address, map.length, map.offset], out);
                text(map.path, out);
                events.trailer(who, map.time_ns, None, out);
            });
        }
        let misc = misc | if id.is_empty() { 0 } else { MISC_MMAP_BUILD_ID };
        record(kind::MMAP2, misc, out, |out| {
            u32s([map.pid, map.tid], out);
            u64s([map.address, map.length, map.offset], out);
            let mut file = [0; 4 + MOST_BUILD_ID];
            file[0] = id.len() as u8;
            file[4..][..id.len()].copy_from_slice(id);
            out.extend(file);
            u32s([map.protection, map.flags], out);
            text(map.path, out);
            events.trailer(who, map.time_ns, None, out);
        });
    }
}

pub(super) fn task(task: &Task<'_>, events: &Events, out: &mut Vec<u8>) {
    let who = (task.pid, task.tid);
    let (kind, misc) = match task.what {
        task::what::FORK => (kind::FORK, 0),
        task::what::EXIT => (kind::EXIT, 0),
        task::what::NAME => (kind::COMM, 0),
        task::what::EXEC => (kind::COMM, MISC_COMM_EXEC),
        _ => return,
    };
    record(kind, misc, out, |out| {
        if kind == kind::COMM {
            u32s([task.pid, task.tid], out);
            text(task.name, out);
        } else {
            u32s([task.pid, task.parent_pid, task.tid, task.parent_tid], out);
            u64s([task.time_ns.unwrap_or(0)], out);
        }
        events.trailer(who, task.time_ns, None, out);
    });
}

/// Samples of an event, or of any, are missing.
pub(super) fn lost(header: &Header, time: u64, events: &Events, out: &mut Vec<u8>) {
    let event = u16::try_from(header.event).ok().and_then(|number| events.of(number));
    let Some(event) = event.or(events.all.first()) else { return };
    record(kind::LOST, 0, out, |out| {
        u64s([event.id, header.lost], out);
        events.trailer((0, 0), Some(time), Some(event), out);
    });
}

/// A sample; false where something of it is left out.
pub(super) fn sample(
    sample: &Sample<'_>,
    shown: &Shown<'_>,
    event: &Event,
    events: &Events,
    out: &mut Vec<u8>,
) -> bool {
    let mut is_whole = !shown.hides_one();
    record(kind::SAMPLE, sample.mode.into(), out, |out| {
        let begin = out.len() - HEAD;
        u64s([event.id, sample.ip], out);
        u32s([sample.pid, sample.tid], out);
        if events.has_time {
            u64s([sample.time_ns], out);
        }
        if event.has(has::CPU) {
            u32s([sample.cpu, 0], out);
        }
        u64s([sample.period], out);
        let mut registers = Vec::new();
        is_whole &= shown.registers(event.registers, &mut registers);
        // Lengths of what comes, and the registers: what is left is for the others, the stack last.
        let mut room = MOST - (out.len() - begin) - 8 * 7 - registers.len();
        let mut most = |wanted: usize, each: usize| {
            let length = wanted.min(room / each * each);
            is_whole &= length == wanted;
            room -= length;
            length
        };
        if event.has(has::CALLCHAIN) {
            let chain = shown.chain();
            let chain = &chain[..most(chain.len(), 8)];
            u64s([chain.len() as u64 / 8], out);
            out.extend_from_slice(chain);
        }
        if event.has(has::BRANCH_STACK) {
            let branches = sample.branches.bytes().as_chunks::<16>().0;
            let count = most(24 * branches.len(), 24) / 24;
            u64s([count as u64], out);
            if event.has_branch_index {
                // Where in the processor's stack the latest stands: not known.
                u64s([u64::MAX], out);
            }
            for branch in &branches[..count] {
                out.extend(branch);
                out.extend([0; 8]);
            }
        } else if !sample.branches.is_empty() {
            is_whole = false;
        }
        if event.has(has::REGS_USER) {
            u64s([if registers.is_empty() { 0 } else { sample.abi.into() }], out);
            out.extend_from_slice(&registers);
        }
        if event.has(has::STACK_USER) {
            let all = shown.stack();
            let size = all.len().next_multiple_of(8).min(room / 8 * 8);
            let stack = &all[..all.len().min(size)];
            is_whole &= stack.len() == all.len();
            u64s([size as u64], out);
            if size > 0 {
                out.extend_from_slice(stack);
                out.resize(out.len() + size - stack.len(), 0);
                u64s([stack.len() as u64], out);
            }
        } else if !shown.stack().is_empty() {
            is_whole = false;
        }
    });
    is_whole
}
