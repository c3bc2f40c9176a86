//! What a file says beside what waits for its turn: events and their ids, features, and what could not be used. It takes each
//! record, and hands on those that are wanted in the order of time.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU64;
use std::sync::Arc;

use teeperf_wire::body::map;

use super::attr::{Attr, has};
use super::bytes::{Bytes, Order, until_zero_text};
use super::features::{Features, number};
use super::file::{self, Section, Sections};
use super::namespaces::Namespaces;
use super::record::{Map, Record, kind};
use super::records::Found;
use super::rounds::{Held, Rounds};
use super::sample::{self, Count};

/// Most bytes of all ids: of 500 events on 1024 processors.
const MOST_IDS: u64 = 4 << 20;
/// Most events of a group that a sample counts for: processors count far fewer at once.
const MOST_OF_GROUP: usize = 64;
/// Most events and threads whose counts are kept.
const MOST_COUNTED: usize = 1 << 20;
/// Most events: packets number them with two bytes.
const MOST_EVENTS: usize = u16::MAX as usize;
/// Most files whose build-ids are waited for.
const MOST_UNIDENTIFIED: usize = 1 << 12;
/// `PERF_EVENT_UPDATE__NAME`.
const UPDATE_NAME: u64 = 2;

/// What was read so far, other than records that wait.
#[derive(Default)]
pub(super) struct Known {
    pub(super) attrs: Vec<Arc<Attr>>,
    /// What records tell of names of events, beside their attributes.
    pub(super) names: HashMap<u16, String>,
    ids: HashMap<u64, u16>,
    pub(super) features: Features,
    pub(super) namespaces: Namespaces,
    /// Files of code that were told without a build-id, which may still come.
    pub(super) unidentified: BTreeSet<Vec<u8>>,
    /// So many of the events stand in packets.
    pub(super) told: usize,
    /// Nanoseconds on the samples' clock where the recording begins, and the latest.
    pub(super) zero: u64,
    pub(super) latest: u64,
    /// Counts of events up to the latest sample, by id, and by thread where counts are a thread's.
    counted: HashMap<(u64, u32), u64>,
    /// Whether some events' records have times.
    is_timed: bool,
    /// Parts of samples that are not known, as bits of `sample_type`.
    unknown_parts: u64,
    odd: Odd,
    pub(super) warnings: Vec<String>,
}

/// An event of the list that a sample counts for, and its period where the sample does not say it.
pub(super) type Shown = (u16, Option<NonZeroU64>);

/// How many records could not be used, and where the first of them stands.
#[derive(Default)]
struct Odd {
    cut: Tally,
    /// User's call chains that the kernel gave later.
    deferred: Tally,
    /// Samples of groups that are too large.
    large_groups: Tally,
    /// What the processor wrote down by itself, bytes, and of which kind.
    traced: u64,
    tracer: u32,
    /// Files in which a process tells of code that it made.
    jitdumps: Tally,
    jitdump: Vec<u8>,
    unknown: Tally,
    of_no_event: Tally,
}

#[derive(Default)]
struct Tally {
    count: u64,
    first: u64,
}

impl Tally {
    fn add(&mut self, offset: u64) {
        if self.count == 0 {
            self.first = offset;
        }
        self.count += 1;
    }
}

impl Odd {
    /// A map may be of the file in which a process tells of code that it made.
    fn note_jitdump(&mut self, record: &Record<'_>) {
        let Some(map) = super::record::Map::read(record) else { return };
        let name = map.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let of_process = name.strip_prefix(b"jit-").and_then(|name| name.strip_suffix(b".dump"));
        if !of_process.is_some_and(|pid| pid.iter().all(u8::is_ascii_digit)) {
            return;
        }
        if self.jitdumps.count == 0 {
            self.jitdump = map.path.to_vec();
        }
        self.jitdumps.add(record.offset);
    }
}

impl Known {
    pub(super) fn attributes(
        &mut self,
        sections: &Sections,
        order: Order,
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
        let Section { offset, size } = sections.attributes;
        if bytes.is_empty() && size > 0 {
            self.warnings.push(format!(
                "offset {}: the attributes of events are to be where the file has no bytes",
                file::ATTRIBUTES
            ));
        } else if !is_whole || !is_there {
            self.warnings.push(format!("offset {offset}: the attributes of events are not whole"));
        }
    }

    /// What stands behind the data of a file of so many bytes.
    pub(super) fn features(
        &mut self,
        sections: &Sections,
        order: Order,
        file: u64,
        read: &mut dyn FnMut(Section) -> Vec<u8>,
    ) {
        let Some(list) = sections.list() else { return };
        let list = read(list);
        let mut list = Bytes { rest: &list, order };
        let mut beyond = Vec::new();
        for &number in &sections.features {
            let place = Section::read(&mut list).filter(|place| place.is_within(file));
            let Some(name) = number::name(number) else { continue };
            let Some(place) = place else {
                beyond.push(name);
                continue;
            };
            if !self.features.take(number, Bytes { rest: &read(place), order }) {
                let offset = place.offset;
                self.warnings.push(format!("offset {offset}: {name}: cannot be read to the end"));
            }
        }
        if !beyond.is_empty() {
            self.warnings.push(format!(
                "offset {file}: the file ends here, and what it is to have behind that is missing: {}",
                beyond.join(", ")
            ));
        }
    }

    /// How many bytes of data a file says it has; nothing where it was not closed.
    pub(super) fn length(&mut self, sections: &Sections) -> Option<u64> {
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
        if self.attrs.len() == MOST_EVENTS {
            return;
        }
        self.unknown_parts |= attr.sample_type & !has::ALL;
        self.is_timed |= attr.has(has::TIME);
        let number = self.attrs.len() as u16;
        self.ids.extend(ids.map(|id| (id, number)));
        self.attrs.push(Arc::new(attr));
    }

    /// Takes a record: what is wanted in the order of time waits for that. Tells its time, 0 where it has none.
    pub(super) fn take(&mut self, Found { record, source }: Found<'_>, rounds: &mut Rounds) -> u64 {
        let Record { kind, misc, offset, .. } = record;
        let held = |time| Held { time, offset, kind, misc, ..Held::default() };
        let record = &record;
        rounds.is_timed |= self.is_timed;
        match record.kind {
            kind::SAMPLE => {
                let event = match self.event_of(record) {
                    Ok(event) => event,
                    Err(()) => {
                        self.odd.of_no_event.add(record.offset);
                        return 0;
                    }
                };
                match sample::read(&self.attrs[usize::from(event)], event + 1, record) {
                    Some(read) => {
                        let (length, time) = (read.len() as u32, read.time());
                        rounds.hold(Held { event, length, ..held(time) }, source);
                        return time;
                    }
                    None => self.odd.cut.add(record.offset),
                }
            }
            kind::AUX => {
                let mut bytes = record.bytes();
                let (_, size) = (bytes.u64(), bytes.u64());
                self.odd.traced = self.odd.traced.saturating_add(size.unwrap_or(0));
            }
            kind::AUXTRACE_INFO => self.odd.tracer = record.bytes().u32().unwrap_or(0),
            kind::DEFERRED => self.odd.deferred.add(offset),
            kind::MMAP
            | kind::MMAP2
            | kind::COMM
            | kind::FORK
            | kind::EXIT
            | kind::LOST
            | kind::LOST_SAMPLES
            | kind::NAMESPACES
            | kind::KSYMBOL => {
                if matches!(kind, kind::MMAP | kind::MMAP2) {
                    self.odd.note_jitdump(record);
                }
                let time = self.trailer(record).time;
                rounds.hold(held(time), source);
                return time;
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
        0
    }

    /// Which event a sample is of.
    fn event_of(&self, record: &Record<'_>) -> Result<u16, ()> {
        let first = self.attrs.first().ok_or(())?;
        if self.attrs.len() == 1 {
            return Ok(0);
        }
        match sample::id(first, record.bytes()) {
            Some(id) => self.ids.get(&id).copied().ok_or(()),
            None => Ok(0),
        }
    }

    /// What a sample counts for, the last first. One of a group counts for each event of that, as much as that counted since the sample
    /// before; so does one that has a count of its own event alone. That is how perf has it (`evlist__deliver_sample` of Linux's
    /// `tools/perf/util/session.c`).
    pub(super) fn shown(&mut self, event: u16, attr: &Attr, record: &Record<'_>) -> Vec<Shown> {
        let own = || vec![(event, None)];
        if !attr.has(has::READ) {
            return own();
        }
        let Some(read) = sample::read(attr, event, record) else { return own() };
        let thread = if attr.counts_by_thread() { read.tid() } else { 0 };
        let mut shown = Vec::new();
        for (at, Count { id, value }) in read.counts(attr).enumerate() {
            if at == MOST_OF_GROUP {
                self.odd.large_groups.add(record.offset);
                break;
            }
            // Without ids it is not known which event a count is of.
            let Some(id) = id else { return own() };
            let Some(&event) = self.ids.get(&id) else {
                self.odd.of_no_event.add(record.offset);
                continue;
            };
            if self.counted.len() >= MOST_COUNTED && !self.counted.contains_key(&(id, thread)) {
                return own();
            }
            let before = self.counted.insert((id, thread), value).unwrap_or(0);
            let period = NonZeroU64::new(value.wrapping_sub(before));
            shown.extend(period.map(|period| (event, Some(period))));
        }
        shown.reverse();
        shown
    }

    /// What a record that is no sample says at its end.
    fn trailer(&self, record: &Record<'_>) -> sample::Trailer {
        let Some(first) = self.attrs.first() else { return sample::Trailer::default() };
        if !first.has_trailers() {
            return sample::Trailer::default();
        }
        let trailer = sample::trailer(first, record).unwrap_or_default();
        // Events may have different ones, and then each says at its very end which it is of.
        let of = trailer.id.and_then(|id| self.ids.get(&id));
        let other = of.map(|&event| &self.attrs[usize::from(event)]);
        match other {
            Some(attr) if attr.sample_type != first.sample_type => {
                sample::trailer(attr, record).unwrap_or_default()
            }
            _ => trailer,
        }
    }

    /// How many samples are missing, and of which event, 0 where that is not known.
    pub(super) fn lost(&self, record: &Record<'_>) -> (u64, u32) {
        let mut bytes = record.bytes();
        let id = match record.kind {
            kind::LOST => bytes.u64(),
            _ => self.trailer(record).id,
        };
        let event = match self.attrs.len() {
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
            self.names.insert(event, until_zero_text(bytes.rest));
        }
    }

    /// A process is in namespaces.
    pub(super) fn namespaces(&mut self, record: &Record<'_>) {
        if !self.namespaces.take(record) {
            self.odd.cut.add(record.offset);
        }
    }

    /// Code was told of, as the packet has it. Where that has no build-id, one may still come.
    pub(super) fn note_map(&mut self, map: &Map<'_>) {
        let is_file = map.path.starts_with(b"/") && !map.path.starts_with(b"//");
        let is_told = is_file && map.protection & map::PROT_EXEC != 0 && map.pid != map::KERNEL;
        if is_told
            && map.build_id.is_empty()
            && self.unidentified.len() < MOST_UNIDENTIFIED
            && self.features.build_id_of(map.path, false).is_empty()
        {
            self.unidentified.insert(map.path.to_vec());
        }
    }

    /// Says what could not be used.
    pub(super) fn sum_up(&mut self, rounds: &Rounds) {
        if self.unknown_parts != 0 {
            self.warnings.push(format!(
                "samples have parts that are not known ({:#x}): what stands before these is read",
                self.unknown_parts
            ));
        }
        let features = &self.features;
        let late = |path: &&Vec<u8>| !features.build_id_of(path, false).is_empty();
        let mut late = self.unidentified.iter().filter(late);
        if let Some(first) = late.next() {
            self.warnings.push(format!(
                "the build-ids of {} files, the first of them {}, came behind their samples: their files here were taken without; next: \
                 write the file first (`perf record -o FILE`), and name that",
                1 + late.count(),
                String::from_utf8_lossy(first)
            ));
        }
        for (count, what) in [
            (&self.odd.cut, "are shorter than they should be, and left out"),
            (
                &self.odd.deferred,
                "are call chains of programs that the kernel gives later than the sample, and left out",
            ),
            (
                &self.odd.large_groups,
                "are samples of groups of more than 64 events: they count for the first 64 alone",
            ),
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
        if self.odd.traced > 0 {
            self.warnings.push(format!(
                "{} bytes that the processor traced by itself ({}) are left out; next: `perf script --itrace` reads them",
                self.odd.traced,
                tracer(self.odd.tracer)
            ));
        }
        if self.odd.jitdumps.count > 0 {
            let (count, path) = (self.odd.jitdumps.count, &self.odd.jitdump);
            self.warnings.push(format!(
                "{count} processes tell of code that they made in files (jitdump), the first in {}, which are not read: its \
                 functions have no names; next: `perf inject --jit`, and a report of what that writes",
                String::from_utf8_lossy(path)
            ));
        }
        if rounds.late > 0 {
            self.warnings.push(format!(
                "{} records come too late to be put in the order of time: they stand where they came",
                rounds.late
            ));
        }
    }
}

/// What perf calls the part of the processor that traces, by `PERF_AUXTRACE_…`.
fn tracer(number: u32) -> &'static str {
    match number {
        1 => "Intel PT",
        2 => "Intel BTS",
        3 => "Arm CoreSight",
        4 => "Arm SPE",
        5 => "s390's sampling facility",
        6 => "HiSilicon PTT",
        _ => "AUX data",
    }
}
