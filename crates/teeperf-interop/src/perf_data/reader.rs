//! A file as packets. Records are read and put in the order of time ([`super::rounds`]); what may go becomes packets: samples in
//! large ones, what else happened each in one of its own, in its place between them.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};

use teeperf_profile::contents::Packet;
use teeperf_profile::{Error as ReplayError, Packets};
use teeperf_wire::packet::kind as packet;

use super::Error;
use super::attr::{Attr, has};
use super::bytes::{Bytes, until_zero_text};
use super::features::{Features, number};
use super::file::{self, HEAD, Head, PIPE_HEAD, Section, Sections};
use super::packets::{self, Batch, Description};
use super::record::{Record, kind};
use super::records::Records;
use super::rounds::Rounds;
use super::{event_name, sample};

/// Most bytes of a section that is kept: attributes, ids, a feature. And what stands before the data.
const MOST_SECTION: u64 = 16 << 20;
/// Most bytes of all ids: of 500 events on 1024 processors.
const MOST_IDS: u64 = 4 << 20;
/// Most events: packets number them with two bytes.
const MOST_EVENTS: usize = u16::MAX as usize;
/// `PERF_EVENT_UPDATE__NAME`.
const UPDATE_NAME: u64 = 2;

/// A `perf.data`. See the module.
pub struct Reader<R> {
    name: String,
    records: Records<R>,
    known: Known,
    rounds: Rounds,
    stage: Stage,
    batch: Batch,
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

/// What was read so far, other than records that wait.
#[derive(Default)]
struct Known {
    events: Vec<Event>,
    ids: HashMap<u64, u16>,
    features: Features,
    /// So many of the events stand in packets.
    told: usize,
    /// Nanoseconds on the samples' clock where the recording begins, and the latest.
    zero: u64,
    latest: u64,
    /// Whether some events' records have times.
    is_timed: bool,
    /// Parts of samples that are not known, as bits of `sample_type`.
    unknown_parts: u64,
    odd: Odd,
    warnings: Vec<String>,
}

struct Event {
    attr: Attr,
    /// What its records tell beside its attributes.
    name: Option<String>,
}

/// How many records could not be used, and where the first of them stands.
#[derive(Default)]
struct Odd {
    cut: Count,
    unknown: Count,
    of_no_event: Count,
}

#[derive(Default)]
struct Count {
    count: u64,
    first: u64,
}

impl Count {
    fn add(&mut self, offset: u64) {
        if self.count == 0 {
            self.first = offset;
        }
        self.count += 1;
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
        file.seek(SeekFrom::Start(0)).map_err(failed(0))?;
        let start = take(&mut file, HEAD as u64).map_err(failed(0))?;
        let head = head(name, &start)?;
        let mut known = Known::default();
        let Some(sections) = head.sections else {
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
        if let Some(place) = sections.list() {
            let list = section(place);
            let mut list = Bytes { rest: &list, order: head.order };
            for &number in &sections.features {
                let place = Section::read(&mut list);
                if !number::READ.contains(&number) {
                    continue;
                }
                let bytes = place.map(&mut section).unwrap_or_default();
                if !known.features.take(number, Bytes { rest: &bytes, order: head.order }) {
                    let offset = place.map_or(0, |place| place.offset);
                    known.warnings.push(format!(
                        "offset {offset}: feature {number} cannot be read, or not to its end"
                    ));
                }
            }
        }
        let offset = sections.data.offset;
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
        Self {
            name: name.to_owned(),
            records,
            known,
            rounds: Rounds::default(),
            stage: Stage::Before,
            batch: Batch::default(),
            payload: Vec::new(),
            sequence: 0,
        }
    }

    /// Reads until some records may go; nothing is left to read when there are none then.
    fn read(&mut self) {
        while !self.rounds.has_some() {
            let Some(record) = self.records.next() else {
                self.rounds.finish_all();
                return;
            };
            self.known.take(&record, &mut self.rounds);
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
                    if let Some(offset) = self.batch.take() {
                        return Some((packet::SAMPLES, offset));
                    }
                    self.stage = Stage::Nothing;
                    self.known.sum_up(&self.rounds);
                    if self.records.is_whole {
                        let time = self.known.latest.saturating_sub(self.known.zero);
                        packets::end(time, &mut self.payload);
                        return Some((packet::END, self.records.offset()));
                    }
                }
                Stage::Nothing => return None,
            }
        }
    }

    /// The next event that nobody was told of.
    fn event(&mut self) -> Option<(u16, u64)> {
        let event = self.known.events.get(self.known.told)?;
        let in_list = self.known.features.events.get(self.known.told);
        self.known.told += 1;
        let name = event.name.clone().or_else(|| in_list.cloned());
        let description = Description {
            number: self.known.told as u16,
            name: name.unwrap_or_else(|| event_name::of(&event.attr)),
            attr: &event.attr,
            machine: self.known.features.machine(),
            zero: self.known.zero,
        };
        packets::sampled(&description, &mut self.payload);
        Some((packet::SAMPLED, 0))
    }

    /// Takes records that may go until they make a packet; where there is none, something was read, or all has been.
    fn records(&mut self) -> Option<(u16, u64)> {
        while let Some((held, bytes)) = self.rounds.peek() {
            if held.kind == kind::SAMPLE {
                if !self.batch.sample(bytes, held.offset) {
                    return self.batch.take().map(|offset| (packet::SAMPLES, offset));
                }
                self.known.latest = self.known.latest.max(held.time);
                self.rounds.pop();
                continue;
            }
            let order = self.records.order;
            let record = Record {
                kind: held.kind,
                misc: held.misc,
                offset: held.offset,
                body: bytes,
                order,
            };
            if matches!(held.kind, kind::LOST | kind::LOST_SAMPLES) {
                let (lost, event) = self.known.lost(&record);
                if !self.batch.lost(lost, event, held.offset) {
                    return self.batch.take().map(|offset| (packet::SAMPLES, offset));
                }
                self.rounds.pop();
                continue;
            }
            // What was sampled before this goes out before it.
            if let Some(offset) = self.batch.take() {
                return Some((packet::SAMPLES, offset));
            }
            let time = Some(held.time).filter(|&time| time > 0);
            let made = match held.kind {
                kind::MMAP | kind::MMAP2 | kind::KSYMBOL => {
                    packets::map(&record, time, &self.known.features, &mut self.payload)
                        .then_some(packet::MAP)
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

impl Known {
    fn attributes(
        &mut self,
        sections: &Sections,
        order: super::bytes::Order,
        read: &mut dyn FnMut(Section) -> Vec<u8>,
    ) {
        let bytes = read(sections.attributes);
        let is_there = bytes.len() as u64 == sections.attributes.size;
        let mut left = MOST_IDS;
        let (all, is_whole) = file::attributes(&bytes, order, |place| {
            let ids = read(Section { size: place.size.min(left), ..place });
            left -= ids.len() as u64;
            ids
        });
        for (attr, ids) in all {
            self.event(attr, ids.into_iter());
        }
        if !is_whole || !is_there {
            let offset = sections.attributes.offset;
            self.warnings.push(format!("offset {offset}: the attributes of events are not whole"));
        }
    }

    /// How many bytes of data a file says it has; nothing where it was not closed.
    fn length(&mut self, sections: &Sections) -> Option<u64> {
        if sections.data.size == 0 {
            self.warnings.push(
                "perf did not close this file, as when it was killed: what there is of it is read; \
                 host, command and build-ids are missing"
                    .into(),
            );
        }
        Some(sections.data.size).filter(|&size| size > 0)
    }

    fn event(&mut self, attr: Attr, ids: impl Iterator<Item = u64>) {
        if self.events.len() == MOST_EVENTS {
            return;
        }
        self.unknown_parts |= attr.sample_type & !has::ALL;
        self.is_timed |= attr.has(has::TIME);
        let number = self.events.len() as u16;
        self.ids.extend(ids.map(|id| (id, number)));
        self.events.push(Event { attr, name: None });
    }

    /// Takes a record: what is wanted in the order of time waits for that.
    fn take(&mut self, record: &Record<'_>, rounds: &mut Rounds) {
        rounds.is_timed |= self.is_timed;
        match record.kind {
            kind::SAMPLE => {
                let event = match self.event_of(record) {
                    Ok(event) => event,
                    Err(()) => return self.odd.of_no_event.add(record.offset),
                };
                let at = rounds.bytes().len();
                let attr = &self.events[usize::from(event)].attr;
                match sample::take(attr, event + 1, record, rounds.bytes()) {
                    Some(time) => rounds.hold(time, record.offset, record.kind, record.misc, at),
                    None => self.odd.cut.add(record.offset),
                }
            }
            kind::MMAP
            | kind::MMAP2
            | kind::COMM
            | kind::FORK
            | kind::EXIT
            | kind::LOST
            | kind::LOST_SAMPLES
            | kind::KSYMBOL => {
                let time = self.trailer(record).time;
                let at = rounds.bytes().len();
                rounds.bytes().extend_from_slice(record.body);
                rounds.hold(time, record.offset, record.kind, record.misc, at);
            }
            kind::FINISHED_ROUND => rounds.finish(),
            kind::HEADER_ATTR => {
                let mut bytes = record.bytes();
                match Attr::read(&mut bytes) {
                    Some(attr) => {
                        let ids = bytes.rest.as_chunks().0.iter();
                        self.event(attr, ids.map(|&id| record.order.u64(id)));
                    }
                    None => self.odd.cut.add(record.offset),
                }
            }
            kind::HEADER_FEATURE => {
                let mut bytes = record.bytes();
                let number = bytes.u64().and_then(|number| u32::try_from(number).ok());
                if !number.is_some_and(|number| self.features.take(number, bytes)) {
                    self.odd.cut.add(record.offset);
                }
            }
            kind::BUILD_ID => {
                if self.features.build_id(record.misc, record.bytes()).is_none() {
                    self.odd.cut.add(record.offset);
                }
            }
            kind::EVENT_UPDATE => self.update(record),
            ..=kind::LAST | kind::FIRST_OF_PERF..=kind::LAST_OF_PERF => {}
            _ => self.odd.unknown.add(record.offset),
        }
    }

    /// Which event a sample is of.
    fn event_of(&self, record: &Record<'_>) -> Result<u16, ()> {
        let first = self.events.first().ok_or(())?;
        if self.events.len() == 1 {
            return Ok(0);
        }
        match sample::id(&first.attr, record.bytes()) {
            Some(id) => self.ids.get(&id).copied().ok_or(()),
            None => Ok(0),
        }
    }

    /// What a record that is no sample says at its end.
    fn trailer(&self, record: &Record<'_>) -> sample::Trailer {
        let Some(first) = self.events.first() else { return sample::Trailer::default() };
        if !first.attr.has_trailers() {
            return sample::Trailer::default();
        }
        let trailer = sample::trailer(&first.attr, record).unwrap_or_default();
        // Events may have different ones, and then each says at its very end which it is of.
        let of = trailer.id.and_then(|id| self.ids.get(&id));
        let other = of.map(|&event| &self.events[usize::from(event)].attr);
        match other {
            Some(attr) if attr.sample_type != first.attr.sample_type => {
                sample::trailer(attr, record).unwrap_or_default()
            }
            _ => trailer,
        }
    }

    /// How many samples are missing, and of which event, 0 where that is not known.
    fn lost(&self, record: &Record<'_>) -> (u64, u32) {
        let mut bytes = record.bytes();
        let id = match record.kind {
            kind::LOST => bytes.u64(),
            _ => self.trailer(record).id,
        };
        let event = match self.events.len() {
            1 => Some(0),
            _ => id.and_then(|id| self.ids.get(&id).copied()),
        };
        (bytes.u64().unwrap_or(0), event.map_or(0, |event| u32::from(event) + 1))
    }

    fn update(&mut self, record: &Record<'_>) {
        let mut bytes = record.bytes();
        let (Some(what), Some(id)) = (bytes.u64(), bytes.u64()) else { return };
        if what == UPDATE_NAME
            && let Some(&event) = self.ids.get(&id)
        {
            self.events[usize::from(event)].name = Some(until_zero_text(bytes.rest));
        }
    }

    /// Says what could not be used.
    fn sum_up(&mut self, rounds: &Rounds) {
        if self.unknown_parts != 0 {
            self.warnings.push(format!(
                "samples have parts that are not known ({:#x}): what stands before these is read",
                self.unknown_parts
            ));
        }
        for (count, what) in [
            (&self.odd.cut, "are shorter than they should be, and left out"),
            (&self.odd.unknown, "are of types that are not known, and left out"),
            (
                &self.odd.of_no_event,
                "are samples of events that the file does not name, and left out",
            ),
        ] {
            if count.count > 0 {
                self.warnings.push(format!(
                    "{} records {what}; the first stands at offset {}",
                    count.count, count.first
                ));
            }
        }
        if rounds.late > 0 {
            self.warnings.push(format!(
                "{} records come too late to be put in the order of time: they stand where they came",
                rounds.late
            ));
        }
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
        let payload = match kind {
            packet::SAMPLES => self.batch.payload(),
            _ => &self.payload,
        };
        Ok(Some(Packet::of(offset, sequence, kind, payload)))
    }

    fn offset(&self) -> u64 {
        self.records.offset()
    }

    fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings = std::mem::take(&mut self.known.warnings);
        warnings.append(&mut self.records.warnings);
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
