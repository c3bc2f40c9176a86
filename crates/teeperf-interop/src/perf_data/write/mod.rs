//! Writes samples as perf would have recorded them: `perf report`, `perf script` and all that reads a `perf.data` read it.
//!
//! Whoever gives the packets, what is written is in the order of time, within the bounds of [`super::rounds`], and says so with
//! finished rounds, so that perf need not hold all of it either. Events are written at the beginning, with what their samples have: the
//! first [`LOOKED_AT`] bytes tell. What is behind these and other than there is left out, and counted.

use std::io::{Seek, SeekFrom, Write};

use teeperf_profile::contents::{Body, Packet, Sampled, Start};
use teeperf_profile::samples::{Chains, Decoder};
use teeperf_profile::{Error as ReplayError, Packets};
use teeperf_symbols::Search;
use teeperf_wire::body::sample::{Sample, mode};

use super::block::Source;
use super::rounds::{Held, Rounds};
use events::{Events, Shape};
use records::{Known, finished_round};
use shown::Shown;

mod events;
mod features;
mod records;
mod shown;

/// Bytes of packets that are looked at before the head is written, which says what samples have.
const LOOKED_AT: usize = 16 << 20;
/// Bytes of records, of finished rounds each.
const ROUND: u64 = 1 << 20;

/// What was written, and what could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Samples.
    pub samples: u64,
    /// Samples of events that were named too late, or never.
    pub of_no_event: u64,
    /// Samples whose chain or stack was longer than a record can be, or whose registers are others than their event has.
    pub shortened: u64,
    /// Records that come too late to be put in the order of time.
    pub late: u64,
    /// Packets of samples that cannot be read.
    pub unreadable: u64,
}

/// What keeps packets from being written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// They cannot be read.
    #[error(transparent)]
    Read(#[from] ReplayError),
    /// The file cannot be written.
    #[error(transparent)]
    Output(#[from] std::io::Error),
    /// Nothing in them is of an event.
    #[error("{name} has no samples, and perf's files have nothing else")]
    NoSamples {
        /// Where they come from.
        name: String,
    },
}

/// Writes a file. `writer` is named in it where packets do not say who took the samples; files of code, of which stacks are made chains
/// where a sample has two, are looked for as `search` says.
///
/// # Errors
///
/// When there is nothing to write, or no way to.
pub fn write(
    packets: &mut dyn Packets,
    writer: &str,
    search: Search,
    out: &mut (impl Write + Seek),
) -> Result<Written, WriteError> {
    let mut early = Early::default();
    let mut decoder = Decoder::new()?;
    while early.bytes < LOOKED_AT
        && let Some(packet) = packets.next_packet()?
    {
        early.take(packet, &mut decoder);
    }
    if early.events.is_empty() || (early.bytes < LOOKED_AT && early.shape.is_empty()) {
        return Err(WriteError::NoSamples { name: packets.name().to_owned() });
    }
    let mut file = early.begin(&mut decoder, search, out)?;
    while let Some(packet) = packets.next_packet()? {
        file.take(&packet, &mut decoder)?;
    }
    file.finish(writer)
}

/// What is looked at before the head is written.
#[derive(Default)]
struct Early {
    start: Start,
    events: Vec<Sampled>,
    shape: Shape,
    /// Types and payloads of packets of samples, maps and tasks.
    packets: Vec<(u16, Vec<u8>)>,
    bytes: usize,
}

impl Early {
    fn take(&mut self, packet: Packet<'_>, decoder: &mut Decoder) {
        match packet.body {
            Body::Start(start) => return self.start = *start,
            Body::Sampled(event) => return self.events.push(*event),
            Body::Samples(header, data) => {
                if let Ok(samples) = decoder.samples(&header, data) {
                    samples.for_each(|sample| self.shape.see(&sample));
                }
            }
            Body::Map(map) => self.shape.has_kernel_map |= map.mode == mode::KERNEL,
            Body::Task(_) => {}
            _ => return,
        }
        self.bytes += packet.payload.len() + size_of::<(u16, Vec<u8>)>();
        self.packets.push((packet.kind, packet.payload.to_vec()));
    }

    /// Writes the head, and what was looked at.
    fn begin<'a, W: Write + Seek>(
        self,
        decoder: &mut Decoder,
        search: Search,
        out: &'a mut W,
    ) -> Result<File<'a, W>, WriteError> {
        let is_of_two = |event: &Sampled| event.stack > 0 && event.outer_registers != 0;
        let has_two = self.shape.has_two || self.events.iter().any(is_of_two);
        let events = Events::new(self.events, &self.shape);
        let head = events.head(0, &[]);
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&head)?;
        let rounds = Rounds::timed(events.has_time);
        let chains = has_two.then(|| Chains::new(search, &self.start.machine));
        let mut file = File {
            out,
            events,
            start: self.start,
            rounds,
            record: Vec::new(),
            known: Known::default(),
            chains,
            bytes: 0,
            round: 0,
            first: 0,
            last: 0,
            written: Written::default(),
        };
        for (kind, payload) in self.packets {
            file.take(&Packet::of(0, 0, kind, &payload), decoder)?;
        }
        Ok(file)
    }
}

/// A file under way: its records.
struct File<'a, W> {
    out: &'a mut W,
    events: Events,
    start: Start,
    rounds: Rounds,
    /// The record that is made.
    record: Vec<u8>,
    known: Known,
    /// Where samples have two stacks.
    chains: Option<Chains>,
    /// Bytes of records written, and of them those of the round that is under way.
    bytes: u64,
    round: u64,
    /// Times of the first sample and the last.
    first: u64,
    last: u64,
    written: Written,
}

impl<W: Write + Seek> File<'_, W> {
    fn take(&mut self, packet: &Packet<'_>, decoder: &mut Decoder) -> Result<(), WriteError> {
        match &packet.body {
            Body::Map(map) => {
                self.chains.iter_mut().for_each(|chains| chains.map(map));
                self.told(map.time_ns, |known, events, out| known.map(map, events, out));
            }
            Body::Task(task) => {
                self.chains.iter_mut().for_each(|chains| chains.task(task));
                self.told(task.time_ns, |_, events, out| records::task(task, events, out));
            }
            Body::Samples(header, data) => {
                match decoder.samples(header, data) {
                    Ok(samples) => {
                        for sample in samples {
                            self.sample(&sample)?;
                        }
                    }
                    Err(_) => self.written.unreadable += 1,
                }
                if header.lost > 0 {
                    let time = self.last;
                    self.told(Some(time), |_, events, out| {
                        records::lost(header, time, events, out);
                    });
                }
            }
            _ => {}
        }
        self.let_go()?;
        Ok(())
    }

    fn told(&mut self, time: Option<u64>, write: impl FnOnce(&mut Known, &Events, &mut Vec<u8>)) {
        self.record.clear();
        write(&mut self.known, &self.events, &mut self.record);
        if !self.record.is_empty() {
            self.hold(time.unwrap_or(0));
        }
    }

    fn hold(&mut self, time: u64) {
        self.rounds.hold(Held { time, ..Held::default() }, Source::Bytes(&self.record));
    }

    fn sample(&mut self, sample: &Sample<'_>) -> Result<(), WriteError> {
        let Some(event) = self.events.of(sample.event) else {
            self.written.of_no_event += 1;
            return Ok(());
        };
        self.record.clear();
        let has_time = self.events.has_time;
        let has_two = sample.outer.is_there() && !sample.stack.is_empty();
        let chains = self.chains.as_mut().filter(|_| has_two);
        let inner = chains.and_then(|chains| chains.of(event.machine, sample));
        let shown = Shown::of(sample, inner.as_deref());
        let is_whole = records::sample(sample, &shown, event, &self.events, &mut self.record);
        self.written.shortened += u64::from(!is_whole);
        self.written.samples += 1;
        let time = if has_time { sample.time_ns } else { 0 };
        if time != u64::MAX && time > 0 {
            self.first = if self.first == 0 { time } else { self.first.min(time) };
            self.last = self.last.max(time);
        }
        self.hold(if time == u64::MAX { 0 } else { time });
        self.let_go()
    }

    /// Writes what need not wait.
    fn let_go(&mut self) -> Result<(), WriteError> {
        while let Some((_, block, range)) = self.rounds.peek() {
            let record = &block[range];
            self.out.write_all(record)?;
            self.bytes += record.len() as u64;
            self.round += record.len() as u64;
            self.rounds.pop();
            // All that was written is earlier than what comes.
            if self.round >= ROUND {
                self.finish_round()?;
            }
        }
        Ok(())
    }

    fn finish_round(&mut self) -> Result<(), WriteError> {
        let record = finished_round();
        self.out.write_all(&record)?;
        self.bytes += record.len() as u64;
        self.round = 0;
        Ok(())
    }

    fn finish(mut self, writer: &str) -> Result<Written, WriteError> {
        self.rounds.finish_all();
        self.let_go()?;
        self.finish_round()?;
        let features =
            features::all(&self.start, writer, &self.events, &self.known, (self.first, self.last));
        let head = self.events.head(self.bytes, &features);
        let mut at = head.len() as u64 + self.bytes + 16 * features.len() as u64;
        for (_, bytes) in &features {
            self.out.write_all(&at.to_le_bytes())?;
            self.out.write_all(&(bytes.len() as u64).to_le_bytes())?;
            at += bytes.len() as u64;
        }
        for (_, bytes) in &features {
            self.out.write_all(bytes)?;
        }
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&head)?;
        self.out.flush()?;
        self.written.late = self.rounds.late;
        Ok(self.written)
    }
}
