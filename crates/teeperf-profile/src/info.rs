//! What a recording holds, without replay: its run, processes and threads, how many packets, words and bytes, what was lost,
//! what is damaged. Reads heads of packets and little besides, so that a large file takes no longer than its
//! packets are many; damage within what it passes over is not seen so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use teeperf_wire::body::{arcs, chunk, sample, task, tree};
use teeperf_wire::packet::{HEADER_SIZE, Header, SYNC, kind};

use crate::chunks::Decoder;
use crate::contents::{self, Body, End, Process, ProcessEnd, Start};
use crate::error::Error;
use crate::escape::Escape;
use crate::events::{Item, events};
use crate::warnings::Warnings;
use crate::{RawPacket, Recording};

/// Most processes, threads and modules that are told of one by one.
const MOST: usize = 1 << 16;
/// Most bytes of a recording that hold no packet, before it is taken for none.
const SEARCH: u64 = 2 << 20;
/// Least span of time between two words of progress, in bytes read.
const STEP: u64 = 16 << 20;

/// What a recording holds.
#[derive(Debug, Default)]
pub struct Info {
    /// Bytes of it all.
    pub bytes: u64,
    /// The run, if that is told.
    pub start: Option<Box<Start>>,
    /// How it ended, if it was closed in order.
    pub end: Option<End>,
    /// By type: packets, and bytes of these.
    pub packets: BTreeMap<u16, (u64, u64)>,
    /// By number.
    pub processes: BTreeMap<u32, ProcessInfo>,
    /// By process and serial.
    pub threads: BTreeMap<(u32, u32), ThreadInfo>,
    /// Threads that are not told one by one.
    pub more_threads: u64,
    /// Files of code, by process: as far as threads' first chunks tell.
    pub modules: BTreeSet<(u32, String)>,
    /// Symbols.
    pub symbols: u64,
    /// Words in all chunks.
    pub words: u64,
    /// First and last time that any packet tells, clock units.
    pub span: Option<(u64, u64)>,
    /// What was told to the user: whether it is a warning, and the text.
    pub notices: Vec<(bool, String)>,
    /// Calls and returns lost of which no chunk speaks.
    pub lost: u64,
    /// Processes and libraries with hooks that are not in the recording.
    pub unrecorded: u64,
    /// What was sampled, if anything was.
    pub sampled: SampledInfo,
    /// What is wrong with it.
    pub damage: Vec<String>,
}

/// What was sampled.
#[derive(Debug, Default)]
pub struct SampledInfo {
    /// Events, by number: as perf names them.
    pub events: BTreeMap<u16, String>,
    /// Samples of all of them.
    pub samples: u64,
    /// Those that were lost.
    pub lost: u64,
    /// Names of processes, by their ids: the latest of their first threads.
    pub processes: BTreeMap<u32, String>,
}

/// A process.
#[derive(Debug, Default)]
pub struct ProcessInfo {
    /// What is known of it.
    pub process: Process,
    /// How it ended, if that is told.
    pub ended: Option<ProcessEnd>,
    /// Bytes of its chunks, trees and arcs.
    pub bytes: u64,
}

/// A thread.
#[derive(Debug, Default)]
pub struct ThreadInfo {
    /// Thread id.
    pub tid: u32,
    /// Its name, where a packet tells it.
    pub name: String,
    /// Packets with words, with sums by path, with sums without.
    pub packets: (u64, u64, u64),
    /// Words.
    pub words: u64,
    /// Bytes of all these.
    pub bytes: u64,
    /// First and last time that they begin at, clock units.
    pub span: Option<(u64, u64)>,
    /// Whether a keyframe tells of it: it began before the recording.
    pub has_keyframe: bool,
}

impl Info {
    /// Of a file, by the heads of its packets. `progress` is told how many bytes were read.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is no recording.
    pub fn skim(path: &Path, progress: &mut dyn FnMut(u64)) -> Result<Self, Error> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| Error::Open { name: name.clone(), source })?;
        let length = file.metadata().map_or(u64::MAX, |about| about.len());
        let stream = BufReader::with_capacity(64 << 10, file);
        let mut skim = Skim { stream, at: 0, length, name };
        let mut gathering = Gathering::default();
        let mut told = 0;
        while let Some((offset, header, length)) = skim.next(&mut gathering)? {
            let payload = &skim_payload(&mut skim, &header, length)?[..];
            gathering.take(offset, &header, payload);
            if offset - told >= STEP {
                told = offset;
                progress(told);
            }
        }
        if gathering.next_sequence.is_none() {
            return Err(match skim.at {
                0 => Error::Empty { name: skim.name },
                searched => Error::NotARecording { name: skim.name, searched },
            });
        }
        Ok(gathering.finish(skim.at))
    }

    /// Of any stream, all of which is read and checked.
    ///
    /// # Errors
    ///
    /// As [`Info::skim`].
    pub fn check<R: Read>(
        mut recording: Recording<R>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, Error> {
        let mut gathering = Gathering::default();
        let mut told = 0;
        while let Some(RawPacket { offset, header, payload }) = recording.next_raw()? {
            gathering.take(offset, &header, payload);
            if offset - told >= STEP {
                told = offset;
                progress(told);
            }
        }
        let bytes = recording.offset();
        let mut out = gathering.finish(bytes);
        // All that was skipped is said by who skipped it.
        out.damage = recording.take_warnings();
        Ok(out)
    }

    /// Clock units from the recording's start to the latest that is known; nothing where it has no times.
    pub fn duration(&self) -> Option<u64> {
        let (first, last) = self.bounds()?;
        Some(last.saturating_sub(first))
    }

    /// When it began and when it ended, as far as that is known, clock units.
    pub fn bounds(&self) -> Option<(u64, u64)> {
        let start = self.start.as_ref().map_or(0, |start| start.clock_start);
        let end = self.end.as_ref().map_or(0, |end| end.time);
        let (first, last) = self.span.unwrap_or((start, start));
        let first = if start > 0 { start } else { first };
        (first > 0 || last > 0).then_some((first, last.max(end).max(first)))
    }
}

/// Packets of a file, most of whose payloads are passed over.
struct Skim {
    stream: BufReader<File>,
    /// Bytes of the file that are behind us.
    at: u64,
    /// Bytes that it has.
    length: u64,
    name: String,
}

impl Skim {
    /// The next packet's head: where it is, the head, and how many bytes its payload has. What is no packet is passed over.
    fn next(&mut self, gathering: &mut Gathering) -> Result<Option<(u64, Header, u64)>, Error> {
        let mut skipped_from = None;
        let mut head = [0; HEADER_SIZE];
        let mut filled = 0;
        loop {
            let read = self.read(&mut head[filled..])?;
            filled += read;
            if filled < HEADER_SIZE {
                // A packet that was passed over may claim more than there is.
                let from = skipped_from.unwrap_or(self.at).min(self.length);
                let is_cut = self.at > self.length;
                self.at = (self.at + filled as u64).min(self.length);
                if is_cut || self.at > from {
                    gathering.damage.add(|| {
                        format!("cut off inside a packet: the last bytes, from offset {from} on, are not used")
                    });
                }
                return Ok(None);
            }
            if let Ok(header) = Header::decode(&head) {
                if let Some(from) = skipped_from {
                    let at = self.at;
                    gathering.damage.add(|| {
                        format!(
                            "damaged: {} bytes from offset {from} to {at} were skipped",
                            at - from
                        )
                    });
                }
                let offset = self.at;
                self.at += HEADER_SIZE as u64;
                return Ok(Some((offset, header, header.length.into())));
            }
            skipped_from.get_or_insert(self.at);
            let next = 1 + head[1..]
                .windows(SYNC.len())
                .position(|window| window == SYNC)
                .unwrap_or(HEADER_SIZE - SYNC.len());
            head.copy_within(next.., 0);
            filled = HEADER_SIZE - next;
            self.at += next as u64;
            if gathering.next_sequence.is_none() && self.at > SEARCH {
                return Err(Error::NotARecording { name: self.name.clone(), searched: self.at });
            }
        }
    }

    /// As many bytes as there are, up to all of these.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < into.len() {
            match self.stream.read(&mut into[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(Error::Read { name: self.name.clone(), offset: self.at, source });
                }
            }
        }
        Ok(filled)
    }
}

/// What is wanted of a payload; behind it stands the next packet.
fn skim_payload(skim: &mut Skim, header: &Header, length: u64) -> Result<Vec<u8>, Error> {
    let wanted = match header.kind {
        kind::CHUNK => {
            let mut head = [0; chunk::HEADER];
            let read = skim.read(&mut head)?;
            let is_first =
                chunk::Header::decode(&head[..read]).is_some_and(|(chunk, _)| chunk.sequence <= 1);
            let rest = length.saturating_sub(read as u64);
            let mut payload = head[..read.min(length as usize)].to_vec();
            if is_first {
                payload.resize(payload.len() + rest as usize, 0);
                let more = skim.read(&mut payload[read..])?;
                payload.truncate(read + more);
            } else {
                pass(skim, rest as i64)?;
            }
            // A head that is longer than its packet has read into the next one.
            if (read as u64) > length {
                pass(skim, length as i64 - read as i64)?;
            }
            skim.at += length;
            return Ok(payload);
        }
        kind::TREE => tree::HEADER as u64,
        kind::ARCS => arcs::HEADER as u64,
        kind::SAMPLES => sample::HEADER as u64,
        _ => length,
    };
    let mut payload = vec![0; wanted.min(length) as usize];
    let read = skim.read(&mut payload)?;
    payload.truncate(read);
    pass(skim, (length - wanted.min(length)) as i64)?;
    skim.at += length;
    Ok(payload)
}

fn pass(skim: &mut Skim, bytes: i64) -> Result<(), Error> {
    let (name, offset) = (&skim.name, skim.at);
    skim.stream.seek_relative(bytes).map_err(|source| Error::Read {
        name: name.clone(),
        offset,
        source,
    })
}

#[derive(Default)]
struct Gathering {
    info: Info,
    next_sequence: Option<u32>,
    damage: Warnings,
    decoder: Option<Decoder>,
}

impl Gathering {
    fn take(&mut self, offset: u64, header: &Header, payload: &[u8]) {
        if let Some(expected) = self.next_sequence
            && expected != header.sequence
        {
            self.damage.add(|| {
                format!(
                    "before offset {offset}: packet {} follows where packet {expected} belongs; what was between is \
                     missing",
                    header.sequence
                )
            });
        }
        self.next_sequence = Some(header.sequence.wrapping_add(1));
        let bytes = HEADER_SIZE as u64 + u64::from(header.length);
        let of_type = self.info.packets.entry(header.kind).or_default();
        *of_type = (of_type.0 + 1, of_type.1 + bytes);
        let (body, _) = contents::decode(header.kind, payload);
        let info = &mut self.info;
        match body {
            Body::Start(start) if info.start.is_none() => info.start = Some(start),
            Body::Process(process) => {
                let id = process.id;
                if let Some(known) = of(&mut info.processes, id) {
                    known.process = process;
                }
            }
            Body::ProcessEnd(ended) => {
                info.saw(ended.time);
                let id = ended.id;
                if let Some(known) = of(&mut info.processes, id) {
                    known.ended = Some(ended);
                }
            }
            Body::Thread(thread) => {
                if let Some(name) = thread.name {
                    let key = (thread.process, thread.serial);
                    if let Some(known) = info.thread(key, thread.tid) {
                        known.name = name;
                    }
                }
            }
            Body::Chunk(chunk, data) => {
                info.words += u64::from(chunk.count);
                info.counted(
                    (chunk.process, chunk.thread),
                    chunk.tid,
                    bytes,
                    [chunk.time; 2],
                    |it| {
                        it.packets.0 += 1;
                        it.words += u64::from(chunk.count);
                    },
                );
                self.first_chunk(&chunk, data);
            }
            Body::Tree(tree, _) => {
                let span = [tree.begin, tree.end];
                info.counted((tree.process, tree.thread), tree.tid, bytes, span, |it| {
                    it.packets.1 += 1;
                });
            }
            Body::Arcs(arcs, _) => {
                let span = [arcs.begin, arcs.end];
                info.counted((arcs.process, arcs.thread), arcs.tid, bytes, span, |it| {
                    it.packets.2 += 1;
                });
            }
            Body::Keyframe(keyframe) if keyframe.thread != 0 && !keyframe.is_left => {
                let key = (keyframe.process, keyframe.thread);
                if let Some(known) = info.thread(key, keyframe.tid) {
                    known.has_keyframe = true;
                }
                info.window_paths(keyframe.process, &keyframe);
            }
            Body::Keyframe(keyframe) => info.window_paths(keyframe.process, &keyframe),
            Body::Symbols(symbols) => info.symbols += symbols.iter().count() as u64,
            Body::Notice(notice) => {
                info.unrecorded = info.unrecorded.saturating_add(notice.unrecorded);
                if info.notices.len() < MOST {
                    info.notices.push((notice.level > 0, notice.text));
                }
            }
            Body::Sampled(event) if info.sampled.events.len() < MOST => {
                info.sampled.events.insert(event.event, event.name);
            }
            Body::Samples(header, _) | Body::SharedSamples(header, _) => {
                let sampled = &mut info.sampled;
                sampled.samples += u64::from(header.samples);
                sampled.lost = sampled.lost.saturating_add(header.lost);
            }
            Body::Task(told)
                if told.pid == told.tid
                    && matches!(told.what, task::what::NAME | task::what::EXEC)
                    && info.sampled.processes.len() < MOST =>
            {
                let name = String::from_utf8_lossy(told.name).into_owned();
                info.sampled.processes.insert(told.pid, name);
            }
            Body::Loss(loss) => info.lost = info.lost.saturating_add(loss.events),
            Body::End(end) => {
                info.saw(end.time);
                info.end = Some(end);
            }
            _ => {}
        }
    }

    /// What a thread's first chunk says of files.
    fn first_chunk(&mut self, header: &chunk::Header, data: &[u8]) {
        if header.sequence > 1 || self.info.modules.len() >= MOST {
            return;
        }
        if self.decoder.is_none() {
            self.decoder = Decoder::new().ok();
        }
        let Some(decoder) = &mut self.decoder else { return };
        let Ok(events) = events(decoder, header, data) else { return };
        for event in events {
            if let Item::Escape(Escape::Module(module)) = event.item {
                self.info.modules.insert((header.process, module.path.to_string()));
            }
        }
    }

    fn finish(mut self, bytes: u64) -> Info {
        self.info.bytes = bytes;
        self.info.damage = self.damage.into_vec();
        self.info
    }
}

impl Info {
    fn saw(&mut self, time: u64) {
        if time > 0 {
            let (first, last) = self.span.unwrap_or((time, time));
            self.span = Some((first.min(time), last.max(time)));
        }
    }

    fn thread(&mut self, key: (u32, u32), tid: u32) -> Option<&mut ThreadInfo> {
        let known = of(&mut self.threads, key)?;
        known.tid = tid;
        Some(known)
    }

    fn counted(
        &mut self,
        key: (u32, u32),
        tid: u32,
        bytes: u64,
        span: [u64; 2],
        count: impl FnOnce(&mut ThreadInfo),
    ) {
        span.into_iter().for_each(|time| self.saw(time));
        if let Some(process) = of(&mut self.processes, key.0) {
            process.bytes += bytes;
        }
        let Some(thread) = self.thread(key, tid) else {
            self.more_threads += u64::from(span[0] > 0);
            return;
        };
        thread.bytes += bytes;
        let (first, last) = thread.span.unwrap_or((span[0], span[1]));
        thread.span = Some((first.min(span[0]), last.max(span[1])));
        count(thread);
    }

    fn window_paths(&mut self, process: u32, keyframe: &crate::keyframes::Keyframe) {
        for window in &keyframe.windows {
            if self.modules.len() < MOST {
                self.modules.insert((process, window.path.to_string()));
            }
        }
    }
}

/// What is known of one, made if there is room.
fn of<K: Ord, V: Default>(all: &mut BTreeMap<K, V>, key: K) -> Option<&mut V> {
    if all.len() >= MOST && !all.contains_key(&key) {
        return None;
    }
    Some(all.entry(key).or_default())
}
