//! What a reader has to know where a later part of a recording begins, if the part before it is gone: the run, the processes
//! that go on, their names, windows and symbols, and keyframes of their threads.

mod sampled;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;

use teeperf_profile::Recording;
use teeperf_profile::contents::{Body, Packet, Start};
use teeperf_profile::stacks::Stacks;
use teeperf_record::writing::{Output, PacketWriter};
use teeperf_wire::body::start;
use teeperf_wire::packet::kind;

use crate::cut::at;
use crate::output;
use crate::rotate::folder::MAKING;

/// Most notices that are kept, the latest.
const MOST_NOTICES: usize = 200;
/// Most threads of a process that have nothing open and are told of all the same, so that nothing seems to be missing
/// before them: those that spoke last.
const MOST_IDLE: usize = 2048;
/// Most bytes of symbols that are kept of a process.
const MOST_SYMBOLS: usize = 4 << 20;

/// What is known behind the parts that were passed.
pub(crate) struct Heads {
    start: Option<(Start, Vec<u8>)>,
    processes: BTreeMap<u32, Process>,
    notices: VecDeque<Vec<u8>>,
    /// What was asked for by filters, by their numbers.
    filters: Vec<(u32, Vec<u8>)>,
    stacks: Stacks,
    sampled: sampled::Sampled,
    /// Latest time that a packet told.
    latest: u64,
    /// Number of the packet that comes next.
    sequence: u32,
}

#[derive(Default)]
struct Process {
    packets: Vec<(u16, Vec<u8>)>,
    symbols: Vec<Vec<u8>>,
    symbol_bytes: usize,
    /// What filters let pass, by their numbers.
    filters: Vec<(u32, Vec<u8>)>,
    /// Serials of its threads, with the time at which each spoke last.
    threads: BTreeMap<u32, u64>,
}

impl Heads {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            start: None,
            processes: BTreeMap::new(),
            notices: VecDeque::new(),
            filters: Vec::new(),
            stacks: Stacks::new()?,
            sampled: sampled::Sampled::default(),
            latest: 0,
            sequence: 0,
        })
    }

    /// Takes the next part, which is in a file.
    pub(crate) fn pass(&mut self, segment: &Path) -> io::Result<()> {
        let mut recording = Recording::open(segment).map_err(io::Error::other)?;
        while let Some(packet) = recording.next_packet().map_err(io::Error::other)? {
            self.sequence = packet.sequence.wrapping_add(1);
            self.packet(&packet);
        }
        Ok(())
    }

    fn packet(&mut self, packet: &Packet<'_>) {
        let payload = || packet.payload.to_vec();
        match &packet.body {
            Body::Start(found) if self.start.is_none() => {
                self.latest = found.clock_start;
                self.start = Some(((**found).clone(), payload()));
            }
            Body::Process(process) => {
                let known = self.processes.entry(process.id).or_default();
                known.packets.retain(|(packet_kind, _)| *packet_kind != kind::PROCESS);
                known.packets.insert(0, (kind::PROCESS, payload()));
            }
            Body::Thread(thread) => {
                let known = self.processes.entry(thread.process).or_default();
                if known.packets.len() < MOST_IDLE {
                    known.packets.push((kind::THREAD, payload()));
                }
            }
            Body::Symbols(symbols) => {
                let known = self.processes.entry(symbols.process).or_default();
                if known.symbol_bytes < MOST_SYMBOLS {
                    known.symbol_bytes += packet.payload.len();
                    known.symbols.push(payload());
                }
            }
            Body::Notice(_) => {
                if self.notices.len() >= MOST_NOTICES {
                    self.notices.pop_front();
                }
                self.notices.push_back(payload());
            }
            Body::ProcessEnd(ended) => {
                self.latest = self.latest.max(ended.time);
                self.processes.remove(&ended.id);
                self.stacks.forget(ended.id);
            }
            Body::Chunk(header, data) => {
                self.latest = self.latest.max(header.time);
                self.stacks.piece(header, data);
                let known = self.processes.entry(header.process).or_default();
                known.threads.insert(header.thread, header.time);
            }
            Body::Keyframe(keyframe) => self.stacks.keyframe(keyframe),
            Body::Filter(filter) => {
                let known = if filter.process == 0 {
                    &mut self.filters
                } else {
                    self.stacks.filter(filter);
                    &mut self.processes.entry(filter.process).or_default().filters
                };
                // A thread that calls nothing for a while is still under the one before.
                known.retain(|(number, _)| number.saturating_add(1) >= filter.number);
                known.push((filter.number, payload()));
            }
            Body::Sampled(event) => self.sampled.event(event, packet.payload),
            Body::Map(map) => self.sampled.map(map, packet.payload),
            Body::Task(task) => self.sampled.task(task, packet.payload),
            Body::File(part) => self.sampled.file(part, packet.payload),
            _ => {}
        }
    }

    /// Writes what is known, to stand before what comes next. The file is there whole or not at all. Gives its bytes.
    pub(crate) fn write(&mut self, path: &Path) -> io::Result<u64> {
        let packets = self.packets();
        let made = path.with_extension(MAKING);
        let mut writer = PacketWriter::open(Output::File(made.clone()))?;
        writer.begin_at(self.sequence.wrapping_sub(packets.len() as u32));
        for (packet_kind, payload) in &packets {
            writer.packet(*packet_kind, payload)?;
        }
        writer.flush()?;
        let bytes = writer.bytes();
        drop(writer);
        std::fs::rename(&made, path)?;
        Ok(bytes)
    }

    fn packets(&mut self) -> Vec<(u16, Vec<u8>)> {
        let mut out = Vec::new();
        let mut later_ns = 0;
        if let Some((start, payload)) = &self.start {
            let later = self.latest.saturating_sub(start.clock_start);
            let ns = u128::from(later) * 1_000_000_000 / u128::from(start.hz.max(1));
            let ns = u64::try_from(ns).unwrap_or(u64::MAX);
            let wall = start.wall_ns.saturating_add(ns);
            let (latest, knows) = (self.latest, start.clock_start > 0);
            later_ns = if knows { ns } else { 0 };
            let payload = output::changed(payload, |field| match field.tag {
                start::CLOCK_START if knows => Some(latest.to_le_bytes().to_vec()),
                start::WALL_NS if knows => Some(wall.to_le_bytes().to_vec()),
                _ => Some(field.value.to_vec()),
            });
            out.push((kind::START, payload.finish()));
        }
        out.extend(self.sampled.packets(later_ns));
        out.extend(self.notices.iter().map(|payload| (kind::NOTICE, payload.clone())));
        let filters = |known: &[(u32, Vec<u8>)]| -> Vec<_> {
            known.iter().map(|(_, payload)| (kind::FILTER, payload.clone())).collect()
        };
        out.extend(filters(&self.filters));
        for (&id, process) in &mut self.processes {
            out.extend(process.packets.iter().cloned());
            out.extend(filters(&process.filters));
            out.extend(process.symbols.iter().map(|payload| (kind::SYMBOLS, payload.clone())));
            let mut keyframes: Vec<_> =
                self.stacks.windows(id, 0).map(|(windows, _)| windows).into_iter().collect();
            let mut idle = Vec::new();
            let mut gone = Vec::new();
            for (&serial, &spoke) in &process.threads {
                let Some(known) = self.stacks.keyframes_of(id, serial) else {
                    gone.push(serial);
                    continue;
                };
                let moment = self.stacks.moment(id, serial).unwrap_or_default();
                let has_frames = known.iter().any(|keyframe| !keyframe.frames.is_empty());
                let told = known.into_iter().map(|keyframe| match keyframe.is_left {
                    true => keyframe,
                    false => at(keyframe, &moment, self.latest),
                });
                if has_frames {
                    keyframes.extend(told);
                } else {
                    idle.push((spoke, told.collect::<Vec<_>>()));
                }
            }
            idle.sort_by_key(|(spoke, _)| std::cmp::Reverse(*spoke));
            keyframes.extend(idle.into_iter().take(MOST_IDLE).flat_map(|(_, told)| told));
            gone.iter().for_each(|serial| _ = process.threads.remove(serial));
            keyframes.extend(self.stacks.left_of(id));
            let payloads = keyframes.iter().flat_map(|keyframe| keyframe.encode());
            out.extend(payloads.map(|payload| (kind::KEYFRAME, payload)));
        }
        out
    }
}
