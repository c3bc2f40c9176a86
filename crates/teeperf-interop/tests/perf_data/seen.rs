//! What packets say, as values that can be compared.

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use teeperf_interop::perf_data::Reader;
use teeperf_profile::Packets;
use teeperf_profile::contents::{Body, End, Sampled, Start};
use teeperf_profile::samples::Decoder;
use teeperf_wire::body::sample::{Header, NO_TIME};

/// All that packets say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) start: Option<Start>,
    pub(crate) events: Vec<Sampled>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) maps: Vec<Map>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) lost: Vec<(u64, u32)>,
    /// Times of all of them, in the order in which they come.
    pub(crate) times: Vec<u64>,
    pub(crate) end: Option<End>,
    pub(crate) packets: usize,
    pub(crate) warnings: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) event: u16,
    pub(crate) mode: u8,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) time: u64,
    pub(crate) cpu: u32,
    pub(crate) ip: u64,
    pub(crate) period: u64,
    pub(crate) chain: Vec<u64>,
    pub(crate) abi: u8,
    pub(crate) mask: u64,
    pub(crate) registers: Vec<u64>,
    pub(crate) stack: Vec<u8>,
    pub(crate) branches: Vec<u64>,
    /// Mask, registers and copy of an outer stack.
    pub(crate) outer: (u64, Vec<u64>, Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Map {
    pub(crate) pid: u32,
    pub(crate) address: u64,
    pub(crate) length: u64,
    pub(crate) offset: u64,
    pub(crate) protection: u32,
    pub(crate) path: String,
    pub(crate) build_id: Vec<u8>,
    pub(crate) file: u64,
    pub(crate) mode: u8,
    pub(crate) time: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) what: u64,
    pub(crate) ids: [u32; 4],
    pub(crate) name: String,
    pub(crate) time: Option<u64>,
}

impl Seen {
    pub(crate) fn file(bytes: &[u8]) -> Self {
        let open = || Reader::open("bytes", Cursor::new(bytes)).unwrap();
        let seen = Self::of(&mut open());
        let mut sharing = open();
        sharing.share_samples();
        assert_eq!(Self::of(&mut sharing), seen, "samples that stay where they were read");
        seen
    }

    pub(crate) fn piped(bytes: impl Read) -> Self {
        Self::of(&mut Reader::from_read("bytes", bytes).unwrap())
    }

    pub(crate) fn of(packets: &mut dyn Packets) -> Self {
        let mut seen = Self::default();
        let mut decoder = Decoder::new().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        while let Some(packet) = packets.next_packet().unwrap() {
            assert_eq!(packet.cut_at, None);
            assert_eq!(packet.sequence as usize, seen.packets);
            assert!(packet.payload.len() <= teeperf_wire::packet::MAX_PAYLOAD);
            assert_eq!(seen.start.is_none(), seen.packets == 0, "START is the first");
            assert_eq!(seen.end, None, "END is the last");
            seen.packets += 1;
            match packet.body {
                Body::Start(start) => seen.start = Some(*start),
                Body::Sampled(event) => {
                    seen.events.push(*event);
                    assert_eq!(seen.events.len(), seen.events.last().unwrap().event.into());
                }
                Body::Samples(header, data) => {
                    let mut samples = decoder.samples(&header, data).unwrap();
                    let before = seen.samples.len();
                    seen.samples.extend(samples.by_ref().map(Sample::of));
                    assert_eq!(samples.rest, &[0u8; 0]);
                    seen.took(&header, before);
                }
                Body::SharedSamples(header, shared) => {
                    let before = seen.samples.len();
                    shared.each(&mut |sample| seen.samples.push(Sample::of(*sample)));
                    seen.took(&header, before);
                }
                Body::Map(map) => {
                    seen.times.extend(map.time_ns);
                    seen.maps.push(Map {
                        pid: map.pid,
                        address: map.address,
                        length: map.length,
                        offset: map.offset,
                        protection: map.protection,
                        path: text(map.path),
                        build_id: map.build_id.to_vec(),
                        file: map.file,
                        mode: map.mode,
                        time: map.time_ns,
                    });
                }
                Body::Task(task) => {
                    seen.times.extend(task.time_ns);
                    seen.tasks.push(Task {
                        what: task.what,
                        ids: [task.pid, task.tid, task.parent_pid, task.parent_tid],
                        name: text(task.name),
                        time: task.time_ns,
                    });
                }
                Body::End(end) => seen.end = Some(end),
                body => panic!("no reader gives {body:?}"),
            }
        }
        seen.warnings = packets.take_warnings();
        seen
    }

    /// The samples from one on came in a packet with this header.
    fn took(&mut self, header: &Header, before: usize) {
        assert_eq!(self.samples.len() - before, header.samples as usize);
        let new = &self.samples[before..];
        assert!(new.iter().all(|one| usize::from(one.event) <= self.events.len()));
        let times = new.iter().map(|sample| sample.time);
        self.times.extend(times.filter(|&time| time != NO_TIME));
        if header.lost > 0 {
            self.lost.push((header.lost, header.event));
        }
    }
}

impl Sample {
    fn of(sample: teeperf_wire::body::sample::Sample<'_>) -> Self {
        Self {
            event: sample.event,
            mode: sample.mode,
            pid: sample.pid,
            tid: sample.tid,
            time: sample.time_ns,
            cpu: sample.cpu,
            ip: sample.ip,
            period: sample.period,
            chain: sample.chain.iter().collect(),
            abi: sample.abi,
            mask: sample.mask,
            registers: sample.registers.iter().collect(),
            stack: sample.stack.to_vec(),
            branches: sample.branches.iter().collect(),
            outer: (
                sample.outer.mask,
                sample.outer.registers.iter().collect(),
                sample.outer.stack.to_vec(),
            ),
        }
    }
}

/// Files that perf wrote: names and bytes.
pub(crate) fn real() -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "data"))
        .map(|path| (name(&path), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    assert!(files.len() >= 9, "they are there");
    files
}

pub(crate) fn real_file(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap()
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/perf")
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}
