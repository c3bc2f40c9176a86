//! Packets of what was sampled: the event, code of processes, and what became of threads.

use teeperf_wire::body::{file, map, sampled as tag, task};
use teeperf_wire::fields::Field;

use super::{number, number32, text};

/// [`teeperf_wire::body::sampled`]. Numbers that are missing are 0, texts empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Sampled {
    pub event: u16,
    pub name: String,
    pub unit: u64,
    pub period: u64,
    pub frequency: u64,
    pub is_random: bool,
    /// Of the samples' clock, where the recording begins.
    pub zero_ns: u64,
    pub source: u64,
    pub machine: u16,
    pub registers: u64,
    pub stack: u64,
    pub has_chain: bool,
    /// `type` and `config` of Linux's `perf_event_attr`.
    pub perf: Option<(u32, u64)>,
    pub outer_registers: u64,
    pub outer_stack: u64,
    /// `precise_ip` and `branch_sample_type` of it.
    pub precise: u8,
    pub branches: u64,
}

impl Sampled {
    pub(super) fn read<'a>(fields: impl Iterator<Item = Field<'a>>) -> Self {
        let mut out = Self::default();
        let (mut kind, mut config) = (None, 0);
        for field in fields {
            match field.tag {
                tag::EVENT => out.event = number16(&field),
                tag::NAME => out.name = text(&field),
                tag::UNIT => out.unit = number(&field),
                tag::PERIOD => out.period = number(&field),
                tag::FREQUENCY => out.frequency = number(&field),
                tag::RANDOM => out.is_random = number(&field) == 1,
                tag::ZERO_NS => out.zero_ns = number(&field),
                tag::SOURCE => out.source = number(&field),
                tag::MACHINE => out.machine = number16(&field),
                tag::REGISTERS => out.registers = number(&field),
                tag::STACK => out.stack = number(&field),
                tag::CHAIN => out.has_chain = number(&field) == 1,
                tag::PERF_TYPE => kind = Some(number32(&field)),
                tag::PERF_CONFIG => config = number(&field),
                tag::OUTER_REGISTERS => out.outer_registers = number(&field),
                tag::OUTER_STACK => out.outer_stack = number(&field),
                tag::PRECISE => out.precise = number(&field).min(3) as u8,
                tag::BRANCHES => out.branches = number(&field),
                _ => {}
            }
        }
        out.perf = kind.map(|kind| (kind, config));
        out
    }
}

/// [`teeperf_wire::body::map`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Map<'a> {
    pub pid: u32,
    pub tid: u32,
    /// Nanoseconds on the samples' clock; nothing: from the beginning on.
    pub time_ns: Option<u64>,
    pub address: u64,
    pub length: u64,
    pub offset: u64,
    pub protection: u32,
    pub flags: u32,
    /// As the system spells it.
    pub path: &'a [u8],
    pub build_id: &'a [u8],
    /// One of [`teeperf_wire::body::sample::mode`].
    pub mode: u8,
    /// Number of the file in the recording, where the process sees other files than the recorder;
    /// else 0.
    pub file: u64,
}

impl<'a> Map<'a> {
    pub(super) fn read(fields: impl Iterator<Item = Field<'a>>) -> Self {
        let mut out = Self { mode: teeperf_wire::body::sample::mode::USER, ..Self::default() };
        for field in fields {
            match field.tag {
                map::PID => out.pid = number32(&field),
                map::TID => out.tid = number32(&field),
                map::TIME_NS => out.time_ns = field.number(),
                map::ADDRESS => out.address = number(&field),
                map::LENGTH => out.length = number(&field),
                map::OFFSET => out.offset = number(&field),
                map::PROTECTION => out.protection = number32(&field),
                map::FLAGS => out.flags = number32(&field),
                map::PATH => out.path = field.value,
                map::BUILD_ID => out.build_id = field.value,
                map::MODE => out.mode = number(&field) as u8,
                map::FILE => out.file = number(&field),
                _ => {}
            }
        }
        out
    }
}

/// [`teeperf_wire::body::file`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Part<'a> {
    pub file: u64,
    pub size: u64,
    pub offset: u64,
    pub data: &'a [u8],
}

impl<'a> Part<'a> {
    pub(super) fn read(fields: impl Iterator<Item = Field<'a>>) -> Self {
        let mut out = Self::default();
        for field in fields {
            match field.tag {
                file::FILE => out.file = number(&field),
                file::SIZE => out.size = number(&field),
                file::OFFSET => out.offset = number(&field),
                file::DATA => out.data = field.value,
                _ => {}
            }
        }
        out
    }
}

/// [`teeperf_wire::body::task`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Task<'a> {
    /// One of [`teeperf_wire::body::task::what`].
    pub what: u64,
    pub pid: u32,
    pub tid: u32,
    pub parent_pid: u32,
    pub parent_tid: u32,
    /// Nanoseconds on the samples' clock; nothing: at the beginning.
    pub time_ns: Option<u64>,
    /// As the system spells it.
    pub name: &'a [u8],
}

impl<'a> Task<'a> {
    pub(super) fn read(fields: impl Iterator<Item = Field<'a>>) -> Self {
        let mut out = Self::default();
        for field in fields {
            match field.tag {
                task::WHAT => out.what = number(&field),
                task::PID => out.pid = number32(&field),
                task::TID => out.tid = number32(&field),
                task::PARENT_PID => out.parent_pid = number32(&field),
                task::PARENT_TID => out.parent_tid = number32(&field),
                task::TIME_NS => out.time_ns = field.number(),
                task::NAME => out.name = field.value,
                _ => {}
            }
        }
        out
    }
}

fn number16(field: &Field<'_>) -> u16 {
    u16::try_from(number(field)).unwrap_or(0)
}
