//! A file as packets. Records are read and put in the order of time ([`super::rounds`]); what may go becomes packets: samples in
//! large ones, what else happened each in one of its own, in its place between them.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use teeperf_profile::contents::Packet;
use teeperf_profile::{Error as ReplayError, Packets};
use teeperf_wire::packet::kind as packet;

use super::Error;
use super::ahead;
use super::batch::Batch;
use super::event_name;
use super::file::{DATA, HEAD, Head, PIPE_HEAD, Section};
use super::known::{Known, Shown};
use super::mapped::Windows;
use super::packets::{self, Description};
use super::record::{Map, Record, kind};
use super::records::Records;
use super::rounds::Rounds;
use super::streams::Streams;

/// Most bytes of a section that is kept: attributes, ids, a feature. And what stands before the data.
const MOST_SECTION: u64 = 16 << 20;

/// Of a folder, the file with the head. Those beside it have a number behind that.
pub const HEAD_FILE: &str = "data";

/// A `perf.data`. See the module.
pub struct Reader<R> {
    name: String,
    streams: Streams<R>,
    /// What may be mapped.
    file: Option<File>,
    known: Known,
    rounds: Rounds,
    stage: Stage,
    batch: Batch,
    /// What the next sample counts for, the last first: events, and periods of these that it does not say itself. And whether that is
    /// known of it.
    shown: Vec<Shown>,
    is_counted: bool,
    /// Samples stay where they were read.
    shares: bool,
    payload: Vec<u8>,
    sequence: u32,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// What the first packet needs to know is still to be read.
    Before,
    Records,
    /// How many events are left that nobody was told of, and samples.
    Rest,
    Nothing,
}

impl Reader<File> {
    /// Reads a file of this system's. Where samples are shared, and as long as nobody writes to it, it is looked at where the system has
    /// it in memory: who takes packets is not to wait for anybody else then.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn of_file(name: &str, file: File) -> Result<Self, Error> {
        let again = file.try_clone().ok();
        Ok(Self { file: again, ..Self::open(name, file)? })
    }
}

/// Most files of a folder: perf has a thread for each processor at most.
const MOST_PARTS: usize = 1 << 14;

impl Reader<File> {
    /// Reads what perf wrote into a folder: `data` has the head, and where several of its threads wrote (`perf record --threads`), `data.0` and so
    /// on have the records that each took.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`], and when a file cannot be opened.
    pub fn of_folder(name: &str, folder: &Path) -> Result<Self, Error> {
        let failed = |path: &Path| {
            let name = path.display().to_string();
            move |source| Error::Read { name, offset: 0, source }
        };
        let path = folder.join(HEAD_FILE);
        let file = File::open(&path).map_err(failed(&path))?;
        let mut reader = Self::of_file(name, file)?;
        let order = reader.streams.order();
        let mut parts = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed(folder))? {
            let path = entry.map_err(failed(folder))?.path();
            let number = path.extension().and_then(|number| number.to_str()?.parse::<u32>().ok());
            let is_part = path.file_stem() == Some(HEAD_FILE.as_ref()) && path.is_file();
            parts.extend(number.filter(|_| is_part).map(|number| (number, path)));
        }
        parts.sort();
        if parts.len() > MOST_PARTS {
            let (what, name) =
                ("the folder has more files than processors can be", name.to_owned());
            return Err(Error::Head { name, offset: 0, what });
        }
        for (number, path) in parts {
            let file = File::open(&path).map_err(failed(&path))?;
            let records = Records::new(file, order, 0, None);
            reader.streams.add(format!("{HEAD_FILE}.{number}: "), records);
        }
        Ok(reader)
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Reads a file, and first what stands at its end. `name` is for messages.
    ///
    /// # Errors
    ///
    /// When it is none, or ends before its head does.
    pub fn open(name: &str, mut file: R) -> Result<Self, Error> {
        let failed = |offset| move |source| Error::Read { name: name.to_owned(), offset, source };
        let end = file.seek(SeekFrom::End(0)).map_err(failed(0))?;
        file.seek(SeekFrom::Start(0)).map_err(failed(0))?;
        let start = take(&mut file, HEAD as u64).map_err(failed(0))?;
        let head = head(name, &start)?;
        let mut known = Known::default();
        let Some(sections) = head.sections else {
            file.seek(SeekFrom::Start(PIPE_HEAD as u64)).map_err(failed(PIPE_HEAD as u64))?;
            // What comes out of a pipe says some of it behind what it is of: here all of it can be read first.
            ahead::read(&mut file, head.order, &mut known.features);
            file.seek(SeekFrom::Start(PIPE_HEAD as u64)).map_err(failed(PIPE_HEAD as u64))?;
            let records = Records::new(file, head.order, PIPE_HEAD as u64, None);
            return Ok(Self::new(name, records, known));
        };
        let mut section = |place: Section| {
            let length = place.size.min(MOST_SECTION);
            let sought = file.seek(SeekFrom::Start(place.offset));
            sought.and_then(|_| take(&mut file, length)).unwrap_or_default()
        };
        known.attributes(&sections, head.order, &mut section);
        known.features(&sections, head.order, end, &mut section);
        let offset = sections.data.offset;
        if offset > end {
            let what = "the data is to begin behind the end of the file";
            return Err(Error::Head { name: name.to_owned(), offset: DATA, what });
        }
        file.seek(SeekFrom::Start(offset)).map_err(failed(offset))?;
        let mut records = Records::new(file, head.order, offset, known.length(&sections));
        records.is_whole = sections.data.size > 0;
        Ok(Self::new(name, records, known))
    }
}

impl<R: Read> Reader<R> {
    /// Reads from a pipe, in which nobody can go to the end and back: of a file that goes through one, what stands behind
    /// its data (host, command, build-ids, names of events) is not known. What perf itself writes into a pipe says
    /// it before.
    ///
    /// # Errors
    ///
    /// When it is none, or ends before its head does.
    pub fn from_read(name: &str, mut stream: R) -> Result<Self, Error> {
        let failed = |offset| move |source| Error::Read { name: name.to_owned(), offset, source };
        let mut start = take(&mut stream, PIPE_HEAD as u64).map_err(failed(0))?;
        let mut known = Known::default();
        if let Ok(Head { order, sections: None }) = Head::read(&start) {
            let records = Records::new(stream, order, PIPE_HEAD as u64, None);
            return Ok(Self::new(name, records, known));
        }
        start.extend(take(&mut stream, (HEAD - start.len().min(HEAD)) as u64).map_err(failed(0))?);
        let Head { order, sections: Some(sections) } = head(name, &start)? else {
            return Err(cut(name, start.len()));
        };
        let offset = sections.data.offset;
        let before = offset.min(MOST_SECTION).saturating_sub(start.len() as u64);
        start.extend(take(&mut stream, before).map_err(failed(HEAD as u64))?);
        if (start.len() as u64) < offset {
            return Err(cut(name, start.len()));
        }
        known.attributes(&sections, order, &mut |place| part(&start, place).to_vec());
        if sections.list().is_some() {
            known.warnings.push(
                "through a pipe, what stands at the end of the file is not known: host, command, build-ids; \
                 name the file to have them"
                    .into(),
            );
        }
        let mut records = Records::new(stream, order, offset, known.length(&sections));
        records.is_whole = sections.data.size > 0;
        Ok(Self::new(name, records, known))
    }

    fn new(name: &str, records: Records<R>, known: Known) -> Self {
        let order = records.order;
        Self {
            name: name.to_owned(),
            streams: Streams::of(records),
            file: None,
            known,
            rounds: Rounds::default(),
            stage: Stage::Before,
            batch: Batch::new(order),
            shown: Vec::new(),
            is_counted: false,
            shares: false,
            payload: Vec::new(),
            sequence: 0,
        }
    }

    /// Reads until some records may go; nothing is left to read when there are none then.
    fn read(&mut self) {
        while !self.rounds.has_some() {
            let is_alone = !self.streams.are_several();
            let Some(found) = self.streams.next() else {
                self.rounds.finish_all();
                return;
            };
            if is_alone || found.record.kind != kind::FINISHED_ROUND {
                let time = self.known.take(found, &mut self.rounds);
                self.streams.at(time);
            }
            if self.streams.first().has_unmapped() {
                self.rounds.unmap();
            }
        }
    }

    /// Makes the next packet: its kind, and where it stands. What it says is in `payload`, or in the batch.
    fn next(&mut self) -> Option<(u16, u64)> {
        loop {
            match self.stage {
                Stage::Before => {
                    self.read();
                    self.known.zero = self.rounds.first_time().unwrap_or(0);
                    self.stage = Stage::Records;
                    packets::start(&self.known.features, self.known.zero, &mut self.payload);
                    return Some((packet::START, 0));
                }
                Stage::Records => {
                    if let Some(told) = self.event() {
                        return Some(told);
                    }
                    if let Some(made) = self.records() {
                        return Some(made);
                    }
                }
                Stage::Rest => {
                    if let Some(told) = self.event() {
                        return Some(told);
                    }
                    if let Some(offset) = self.batch.take(self.shares) {
                        return Some((packet::SAMPLES, offset));
                    }
                    self.stage = Stage::Nothing;
                    self.known.sum_up(&self.rounds);
                    if self.streams.are_whole() {
                        packets::end(self.known.latest.max(self.known.zero), &mut self.payload);
                        return Some((packet::END, self.streams.offset()));
                    }
                }
                Stage::Nothing => return None,
            }
        }
    }

    /// The next event that nobody was told of.
    fn event(&mut self) -> Option<(u16, u64)> {
        let at = self.known.told;
        let attr = self.known.attrs.get(at)?;
        let name = self.known.names.get(&(at as u16)).or(self.known.features.events.get(at));
        self.known.told += 1;
        let description = Description {
            number: self.known.told as u16,
            name: name.cloned().unwrap_or_else(|| event_name::of(attr)),
            attr,
            machine: self.known.features.machine(),
            zero: self.known.zero,
        };
        packets::sampled(&description, &mut self.payload);
        Some((packet::SAMPLED, 0))
    }

    /// Takes records that may go until they make a packet; where there is none, something was read, or all has been.
    fn records(&mut self) -> Option<(u16, u64)> {
        while let Some((held, block, range)) = self.rounds.peek() {
            let order = self.streams.order();
            if held.kind == kind::SAMPLE {
                let attr = self.known.attrs[usize::from(held.event)].clone();
                if !self.is_counted {
                    let body = &block[range.clone()];
                    let record = Record {
                        kind: held.kind,
                        misc: held.misc,
                        offset: held.offset,
                        body,
                        order,
                    };
                    self.shown = self.known.shown(held.event, &attr, &record);
                    self.is_counted = true;
                }
                while let Some(&shown) = self.shown.last() {
                    if !self.batch.sample(&held, shown, &attr, block, range.clone()) {
                        return self
                            .batch
                            .take(self.shares)
                            .map(|offset| (packet::SAMPLES, offset));
                    }
                    self.shown.pop();
                }
                self.is_counted = false;
                self.known.latest = self.known.latest.max(held.time);
                self.rounds.pop();
                continue;
            }
            let record = Record {
                kind: held.kind,
                misc: held.misc,
                offset: held.offset,
                body: &block[range],
                order,
            };
            if matches!(held.kind, kind::LOST | kind::LOST_SAMPLES) {
                let (lost, event) = self.known.lost(&record);
                if !self.batch.lost(lost, event, held.offset) {
                    return self.batch.take(self.shares).map(|offset| (packet::SAMPLES, offset));
                }
                self.rounds.pop();
                continue;
            }
            // What was sampled before this goes out before it.
            if let Some(offset) = self.batch.take(self.shares) {
                return Some((packet::SAMPLES, offset));
            }
            let time = Some(held.time).filter(|&time| time > 0);
            let made = match held.kind {
                kind::MMAP | kind::MMAP2 | kind::KSYMBOL => Map::read(&record).map(|map| {
                    self.known.note_map(&map);
                    let Known { features, namespaces, .. } = &self.known;
                    let is_inside = namespaces.is_other(map.pid);
                    let payload = &mut self.payload;
                    packets::map(&map, record.mode(), time, features, is_inside, payload);
                    packet::MAP
                }),
                kind::NAMESPACES => {
                    self.known.namespaces(&record);
                    None
                }
                _ => packets::task(&record, time, &mut self.payload).then_some(packet::TASK),
            };
            self.known.latest = self.known.latest.max(held.time);
            self.rounds.pop();
            if let Some(kind) = made {
                return Some((kind, held.offset));
            }
        }
        self.read();
        if !self.rounds.has_some() {
            self.stage = Stage::Rest;
        }
        None
    }
}

impl<R: Read> Packets for Reader<R> {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_packet(&mut self) -> Result<Option<Packet<'_>>, ReplayError> {
        let Some((kind, offset)) = self.next() else { return Ok(None) };
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        if kind != packet::SAMPLES {
            return Ok(Some(Packet::of(offset, sequence, kind, &self.payload)));
        }
        Ok(Some(match self.batch.shared() {
            Some(body) => {
                Packet { offset, kind, sequence, length: 0, cut_at: None, payload: &[], body }
            }
            None => Packet::of(offset, sequence, kind, self.batch.payload()),
        }))
    }

    fn share_samples(&mut self) {
        self.shares = true;
        if let Some(file) = self.file.take() {
            self.streams.first().windows = Windows::of(&file);
        }
    }

    fn offset(&self) -> u64 {
        self.streams.offset()
    }

    fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings = std::mem::take(&mut self.known.warnings);
        warnings.append(&mut self.streams.take_warnings());
        warnings
    }
}

fn head(name: &str, start: &[u8]) -> Result<Head, Error> {
    Head::read(start).map_err(|(offset, what)| Error::Head { name: name.to_owned(), offset, what })
}

fn cut(name: &str, length: usize) -> Error {
    Error::Head {
        name: name.to_owned(),
        offset: length as u64,
        what: "the file ends before its data, or that begins too far behind",
    }
}

/// As many bytes as there are, of so many.
fn take(stream: &mut impl Read, length: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn part(bytes: &[u8], place: Section) -> &[u8] {
    let range = || {
        let begin = usize::try_from(place.offset).ok()?;
        let end = begin.checked_add(usize::try_from(place.size).ok()?)?;
        Some(&bytes[begin.min(bytes.len())..end.min(bytes.len())])
    };
    range().unwrap_or_default()
}
