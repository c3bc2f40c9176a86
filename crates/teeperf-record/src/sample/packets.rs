//! Packets of what is sampled. Samples are gathered up to the most that a packet has; what says where their code is
//! stands before them.

use super::record::{Kin, Map, Record};
use crate::packets::Payload;
use std::io;
use std::time::{Duration, Instant};
use teeperf_symbols::vdso;
use teeperf_wire::body::sample::{HEADER, Header, Sample, encoding};
use teeperf_wire::body::{map, task};
use teeperf_wire::packet::kind;
use zstd::bulk::Compressor;

/// Bytes at which a packet is full: with its largest sample it is below [`teeperf_wire::body::sample::MAX_BYTES`], and
/// below the most that a packet has where nothing can be compressed.
const FULL: usize = 900_000;
/// Longest time that a sample waits for others.
const LINGER: Duration = Duration::from_millis(250);
/// Copies of stacks differ little from one sample to the next, which every level sees.
const LEVEL: i32 = 1;

/// Makes packets of records, and hands them to `send`.
pub(crate) struct Packets<S> {
    send: S,
    compressor: Compressor<'static>,
    bytes: Vec<u8>,
    samples: u32,
    lost: u64,
    /// Number of the event that lost samples are of; 0: of any.
    event_lost: u16,
    since: Instant,
    pub(crate) counts: Counts,
}

/// What came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) samples: u64,
    pub(crate) lost: u64,
    pub(crate) throttled: u64,
}

impl<S: FnMut(u16, Vec<u8>)> Packets<S> {
    /// Samples that are lost are of this event; 0: of any.
    pub(crate) fn new(event_lost: u16, send: S) -> io::Result<Self> {
        Ok(Self {
            send,
            event_lost,
            compressor: Compressor::new(LEVEL)?,
            bytes: Vec::with_capacity(FULL),
            samples: 0,
            lost: 0,
            since: Instant::now(),
            counts: Counts::default(),
        })
    }

    /// Writes a record of this time.
    pub(crate) fn record(&mut self, record: Record<'_>, time: Option<u64>) {
        match record {
            Record::Sample(sample) => self.sample(sample),
            Record::Lost(count) => self.lost(count),
            Record::Throttled => self.counts.throttled += 1,
            Record::Map(map) => self.map(&map, time),
            Record::Named { pid, tid, name, is_exec } => {
                let what = if is_exec { task::what::EXEC } else { task::what::NAME };
                let payload = happened(what, (pid, tid), time).bytes(task::NAME, name);
                self.packet(kind::TASK, payload);
            }
            Record::Forked(kin) => self.kin(task::what::FORK, kin, time),
            Record::Exited(kin) => self.kin(task::what::EXIT, kin, time),
        }
    }

    fn kin(&mut self, what: u64, kin: Kin, time: Option<u64>) {
        let payload = happened(what, (kin.pid, kin.tid), time)
            .number(task::PARENT_PID, kin.parent_pid.into())
            .number(task::PARENT_TID, kin.parent_tid.into());
        self.packet(kind::TASK, payload);
    }

    /// Writes a sample.
    pub(crate) fn sample(&mut self, sample: Sample<'_>) {
        if self.samples == 0 {
            self.since = Instant::now();
        }
        for part in sample.parts(&sample.heads()) {
            self.bytes.extend_from_slice(part);
        }
        self.samples += 1;
        self.counts.samples += 1;
        if self.bytes.len() >= FULL {
            self.flush();
        }
    }

    /// So many samples are in none of the packets.
    pub(crate) fn lost(&mut self, count: u64) {
        self.lost += count;
        self.counts.lost += count;
    }

    /// Code of a program, or of the kernel; without a time: from the beginning on.
    pub(crate) fn map(&mut self, found: &Map<'_>, time: Option<u64>) {
        // Of memory that is neither code nor a file's nobody asks, and there may be any amount.
        let is_code = found.protection & libc::PROT_EXEC as u32 != 0;
        let is_file = found.path.starts_with(b"/") && !found.path.starts_with(b"//");
        if !is_code && !is_file {
            return;
        }
        let mut payload = Payload::default()
            .number(map::PID, found.pid.into())
            .number(map::TID, found.tid.into())
            .maybe(map::TIME_NS, time)
            .number(map::ADDRESS, found.address)
            .number(map::LENGTH, found.length)
            .number(map::OFFSET, found.offset)
            .number(map::PROTECTION, found.protection.into())
            .number(map::FLAGS, found.flags.into())
            .bytes(map::PATH, found.path)
            .number(map::MODE, found.mode.into());
        // The kernel does not say that of its own, and one of 32-bit processes is another.
        let is_vdso = found.path == vdso::VDSO.as_bytes() && found.address > u32::MAX.into();
        let own = if is_vdso { vdso::build_id() } else { None };
        let build_id = own.unwrap_or(found.build_id);
        if !build_id.is_empty() {
            payload = payload.bytes(map::BUILD_ID, build_id);
        }
        if found.file != 0 {
            payload = payload.number(map::FILE, found.file);
        }
        self.packet(kind::MAP, payload);
    }

    /// A part of a file, which stands before the maps of it.
    pub(crate) fn file(&mut self, payload: Vec<u8>) {
        self.flush();
        (self.send)(kind::FILE, payload);
    }

    fn packet(&mut self, kind: u16, payload: Payload) {
        self.flush();
        (self.send)(kind, payload.finish());
    }

    /// Writes samples that have waited long.
    pub(crate) fn flush_old(&mut self) {
        if self.since.elapsed() >= LINGER {
            self.flush();
        }
    }

    /// Writes what was gathered.
    pub(crate) fn flush(&mut self) {
        if self.samples == 0 && self.lost == 0 {
            return;
        }
        let mut header = Header {
            samples: self.samples,
            bytes: self.bytes.len() as u32,
            lost: self.lost,
            event: if self.lost > 0 { self.event_lost.into() } else { 0 },
            encoding: encoding::ZSTD,
        };
        let frame = self.compressor.compress(&self.bytes).ok();
        let frame = frame.filter(|frame| frame.len() < self.bytes.len());
        let data = frame.as_deref().unwrap_or_else(|| {
            header.encoding = encoding::PLAIN;
            &self.bytes
        });
        let mut payload = Vec::with_capacity(HEADER + data.len());
        payload.extend_from_slice(&header.encode());
        payload.extend_from_slice(data);
        (self.send)(kind::SAMPLES, payload);
        self.bytes.clear();
        (self.samples, self.lost) = (0, 0);
    }
}

fn happened(what: u64, (pid, tid): (u32, u32), time: Option<u64>) -> Payload {
    Payload::default()
        .number(task::WHAT, what)
        .number(task::PID, pid.into())
        .number(task::TID, tid.into())
        .maybe(task::TIME_NS, time)
}
