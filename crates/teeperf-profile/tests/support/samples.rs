//! Packets of samples, byte by byte.

use super::Builder;
use teeperf_wire::body::sample::{Header, NO_CPU, Numbers, Sample, encoding, mode};
use teeperf_wire::body::{file, map, sampled, task};
use teeperf_wire::packet::kind;

/// A sample of a call chain.
pub(crate) struct Chain<'a> {
    pub(crate) event: u16,
    pub(crate) task: (u32, u32),
    pub(crate) time_ns: u64,
    pub(crate) period: u64,
    pub(crate) chain: &'a [u64],
}

/// As bytes.
pub(crate) fn encoded(sample: &Sample<'_>) -> Vec<u8> {
    sample.parts(&sample.heads()).concat()
}

impl Chain<'_> {
    pub(crate) fn encoded(&self) -> Vec<u8> {
        let bytes: Vec<u8> = self.chain.iter().flat_map(|at| at.to_le_bytes()).collect();
        encoded(&Sample {
            event: self.event,
            mode: mode::USER,
            time_ns: self.time_ns,
            pid: self.task.0,
            tid: self.task.1,
            cpu: NO_CPU,
            period: self.period,
            ip: self.chain.first().copied().unwrap_or(0),
            chain: Numbers::of(&bytes),
            ..Sample::default()
        })
    }
}

impl Builder {
    /// An event whose periods are nanoseconds.
    pub(crate) fn sampled(&mut self, event: u16, name: &str, machine: u16) {
        let wide = |n: u64| n.to_le_bytes();
        self.fields(
            kind::SAMPLED,
            &[
                (sampled::EVENT, &wide(event.into())),
                (sampled::NAME, name.as_bytes()),
                (sampled::UNIT, &wide(1)),
                (sampled::PERIOD, &wide(1_000_000)),
                (sampled::MACHINE, &wide(machine.into())),
            ],
        );
    }

    pub(crate) fn map(&mut self, pid: u32, place: (u64, u64, u64), path: &str) {
        self.map_with(pid, place, path, &[]);
    }

    /// Code of a file that the process saw elsewhere, by the file's number.
    pub(crate) fn map_inside(&mut self, pid: u32, place: (u64, u64, u64), path: &str, file: u64) {
        self.map_with(pid, place, path, &[(map::FILE, &file.to_le_bytes())]);
    }

    fn map_with(
        &mut self,
        pid: u32,
        (address, length, offset): (u64, u64, u64),
        path: &str,
        more: &[(u16, &[u8])],
    ) {
        let wide = |n: u64| n.to_le_bytes();
        let fields: [(u16, &[u8]); 5] = [
            (map::PID, &wide(pid.into())),
            (map::ADDRESS, &wide(address)),
            (map::LENGTH, &wide(length)),
            (map::OFFSET, &wide(offset)),
            (map::PATH, path.as_bytes()),
        ];
        self.fields(kind::MAP, &[&fields, more].concat());
    }

    /// The parts of a file.
    pub(crate) fn file(&mut self, number: u64, bytes: &[u8]) {
        let wide = |n: u64| n.to_le_bytes();
        for (at, part) in bytes.chunks(file::MAX_PART).enumerate() {
            let data = zstd::bulk::compress(part, 1).unwrap();
            self.fields(
                kind::FILE,
                &[
                    (file::FILE, &wide(number)),
                    (file::SIZE, &wide(bytes.len() as u64)),
                    (file::OFFSET, &wide((at * file::MAX_PART) as u64)),
                    (file::DATA, &data),
                ],
            );
        }
    }

    pub(crate) fn task(&mut self, what: u64, task: (u32, u32), parent: (u32, u32), name: &str) {
        let wide = |n: u32| u64::from(n).to_le_bytes();
        self.fields(
            kind::TASK,
            &[
                (task::WHAT, &what.to_le_bytes()),
                (task::PID, &wide(task.0)),
                (task::TID, &wide(task.1)),
                (task::PARENT_PID, &wide(parent.0)),
                (task::PARENT_TID, &wide(parent.1)),
                (task::NAME, name.as_bytes()),
            ],
        );
    }

    pub(crate) fn samples(&mut self, samples: &[Vec<u8>], lost: u64, compressed: bool) {
        let plain = samples.concat();
        let (data, encoding) = match compressed {
            true => (zstd::bulk::compress(&plain, 1).unwrap(), encoding::ZSTD),
            false => (plain.clone(), encoding::PLAIN),
        };
        let header = Header {
            samples: samples.len() as u32,
            bytes: plain.len() as u32,
            lost,
            event: 0,
            encoding,
        };
        self.packet(kind::SAMPLES, &[&header.encode()[..], &data].concat());
    }
}
