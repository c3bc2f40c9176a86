//! A damaged or cut-off recording made whole: each packet that is right, numbered anew, and an end. What is
//! missing stays known: notices say what was left out and where, and lost words count as they did.

use std::collections::HashMap;
use std::io::Read;

use teeperf_profile::Recording;
use teeperf_profile::arcs::items;
use teeperf_profile::chunks::Decoder;
use teeperf_profile::contents::{Body, Packet};
use teeperf_profile::stacks::Stacks;
use teeperf_profile::trees::nodes;
use teeperf_record::writing::{Level, Output, Payload};
use teeperf_wire::body::chunk::{self, Header};
use teeperf_wire::body::{end, loss, start};
use teeperf_wire::packet::kind;

use crate::error::EditError;
use crate::output::{self, Out};

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Repaired {
    /// What was wrong, and was left out or mended, with the offsets of the old recording. Nothing: it was whole.
    pub mended: Vec<String>,
    /// Packets that were kept.
    pub packets: u64,
    /// Bytes of the new recording.
    pub bytes: u64,
}

/// Most texts that are kept; the others are counted.
const MOST_TOLD: usize = 1000;

/// Repairs. `progress` is told now and then how many bytes were read.
///
/// # Errors
///
/// When nothing in it is right, or the new recording cannot be written.
pub fn repair<R: Read>(
    mut recording: Recording<R>,
    output: Output,
    name: &str,
    progress: &mut dyn FnMut(u64),
) -> Result<Repaired, EditError> {
    let mut repair = Repair {
        output: Some((output, name.to_owned())),
        out: None,
        decoder: Decoder::new().map_err(EditError::Memory)?,
        stacks: Stacks::new().map_err(EditError::Memory)?,
        places: HashMap::new(),
        lost: HashMap::new(),
        has_start: false,
        end: None,
        latest: 0,
        told: Vec::new(),
        more: 0,
        packets: 0,
    };
    let mut told = 0;
    while let Some(packet) = recording.next_packet()? {
        repair.packet(&packet)?;
        if packet.offset - told >= 1 << 20 {
            told = packet.offset;
            progress(told);
        }
    }
    for warning in recording.take_warnings() {
        repair.tell(|| warning);
    }
    repair.finish()
}

struct Repair {
    output: Option<(Output, String)>,
    out: Option<Out>,
    decoder: Decoder,
    stacks: Stacks,
    /// Where each thread's next piece begins.
    places: HashMap<(u32, u32), (u32, u32)>,
    /// Words lost, by process.
    lost: HashMap<u32, u64>,
    has_start: bool,
    /// The old end's fields, but for its time and words; and its words.
    end: Option<(Payload, u64, u64)>,
    latest: u64,
    told: Vec<String>,
    more: u64,
    packets: u64,
}

impl Repair {
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), EditError> {
        let offset = packet.offset;
        if !self.has_start && !matches!(packet.body, Body::Start(_)) {
            self.made_up_start(packet)?;
        }
        match &packet.body {
            Body::Start(_) if self.has_start => {
                self.tell(|| format!("offset {offset}: another start packet was left out"));
                Ok(())
            }
            Body::Start(found) => {
                self.has_start = true;
                self.latest = found.clock_start;
                let version = output::version(found.version);
                let has_version = found.version.is_some();
                if !has_version {
                    self.tell(|| format!("offset {offset}: the start packet had no version"));
                }
                self.note_cut(packet);
                let payload = output::changed(packet.payload, |field| match field.tag {
                    start::VERSION if has_version => Some(version.to_vec()),
                    start::VERSION => None,
                    _ => Some(field.value.to_vec()),
                });
                let payload =
                    if has_version { payload } else { payload.bytes(start::VERSION, &version) };
                self.write(kind::START, &payload.finish())
            }
            Body::Chunk(header, data) => self.chunk(offset, header, data, packet.payload),
            Body::Tree(header, data) => {
                self.latest = self.latest.max(header.end);
                let (_, error) = nodes(header, data);
                match error {
                    // Its nodes before what is wrong count; to leave it out would lose them.
                    Some(error) => {
                        self.tell(|| format!("tree at offset {offset}: {error}"));
                        self.write(packet.kind, packet.payload)
                    }
                    None => self.write(packet.kind, packet.payload),
                }
            }
            Body::Arcs(header, data) => {
                self.latest = self.latest.max(header.end);
                let (_, _, error) = items(header, data);
                if let Some(error) = error {
                    self.tell(|| format!("arcs at offset {offset}: {error}"));
                }
                self.write(packet.kind, packet.payload)
            }
            Body::Keyframe(keyframe) => {
                self.stacks.keyframe(keyframe);
                if let (Some(place), false) = (keyframe.goes_on, keyframe.is_left) {
                    self.places.insert((keyframe.process, keyframe.thread), place);
                }
                self.fields(packet)
            }
            Body::Filter(filter) => {
                self.stacks.filter(filter);
                self.fields(packet)
            }
            Body::End(ended) => {
                self.latest = self.latest.max(ended.time);
                let fields = output::changed(packet.payload, |field| match field.tag {
                    end::TIME | end::WORDS => None,
                    _ => Some(field.value.to_vec()),
                });
                self.end = Some((fields, ended.words, ended.time));
                Ok(())
            }
            Body::Malformed => {
                self.tell(|| {
                    format!(
                        "offset {offset}: a packet of type {} that is too short was left out",
                        packet.kind
                    )
                });
                Ok(())
            }
            Body::ProcessEnd(ended) => {
                self.latest = self.latest.max(ended.time);
                self.fields(packet)
            }
            _ => self.fields(packet),
        }
    }

    /// A packet of fields: those that can be read.
    fn fields(&mut self, packet: &Packet<'_>) -> Result<(), EditError> {
        if packet.cut_at.is_none() {
            return self.write(packet.kind, packet.payload);
        }
        self.note_cut(packet);
        let payload = output::changed(packet.payload, |field| Some(field.value.to_vec()));
        self.write(packet.kind, &payload.finish())
    }

    fn note_cut(&mut self, packet: &Packet<'_>) {
        if let Some(at) = packet.cut_at {
            let (offset, kind) = (packet.offset, packet.kind);
            self.tell(|| format!("packet at offset {offset}: type {kind} could not be read from byte {at} of its payload on"));
        }
    }

    fn chunk(
        &mut self,
        offset: u64,
        header: &Header,
        data: &[u8],
        payload: &[u8],
    ) -> Result<(), EditError> {
        let key = (header.process, header.thread);
        let clock = match self.decoder.words(header, data) {
            Ok((clock, words)) => {
                self.latest = self.latest.max(header.time);
                Ok((clock, words.to_vec()))
            }
            Err(error) => Err(error),
        };
        let (clock, words) = match clock {
            Ok(words) => words,
            Err(error) => {
                let lost = self.lost.entry(header.process).or_default();
                *lost = lost.saturating_add(header.count.into());
                let (process, thread, count) = (header.process, header.thread, header.count);
                self.tell(|| format!("chunk at offset {offset} (process {process}, thread {thread}): {error}; its {count} words are lost"));
                return Ok(());
            }
        };
        let begins = (header.sequence, header.first);
        let expected = self.places.get(&key).copied();
        let fits = match expected {
            Some(place) => place == begins,
            None => header.sequence <= 1 && header.first == 0,
        };
        if !fits {
            let (process, thread) = key;
            let behind = expected.map_or("the thread's beginning".into(), |(sequence, word)| {
                format!("chunk {sequence} up to word {word}")
            });
            self.tell(|| {
                format!("chunk at offset {offset} (process {process}, thread {thread}): what was between {behind} and chunk {} from word {} is missing", begins.0, begins.1)
            });
            self.go_on(key, header)?;
        }
        let whole = header.flags & chunk::WHOLE != 0;
        let next = match whole {
            true => (header.sequence.wrapping_add(1), 0),
            false => (header.sequence, header.first + header.count),
        };
        self.places.insert(key, next);
        self.stacks.words(header, clock, &words);
        self.packets += 1;
        let Some(out) = &mut self.out else { return Ok(()) };
        out.chunk(header, payload)
    }

    /// A keyframe that says that the thread goes on with this piece, on the stack that is known.
    fn go_on(&mut self, key: (u32, u32), header: &Header) -> Result<(), EditError> {
        let mut keyframes = self.stacks.keyframes_of(key.0, key.1).unwrap_or_default().into_iter();
        let goes_on = Some((header.sequence, header.first));
        let running = match keyframes.next() {
            Some(known) => teeperf_profile::keyframes::Keyframe { goes_on, ..known },
            None => teeperf_profile::keyframes::Keyframe {
                process: key.0,
                thread: key.1,
                tid: header.tid,
                time: header.time,
                stack: header.stack,
                goes_on,
                ..Default::default()
            },
        };
        for payload in running.encode() {
            self.write(kind::KEYFRAME, &payload)?;
        }
        Ok(())
    }

    fn made_up_start(&mut self, packet: &Packet<'_>) -> Result<(), EditError> {
        self.has_start = true;
        let offset = packet.offset;
        self.tell(|| {
            format!("before offset {offset}: the start packet is missing: times are in clock units")
        });
        let clock = match &packet.body {
            Body::Chunk(header, _) => Some(header.clock.into()),
            _ => None,
        };
        let payload = Payload::default()
            .bytes(start::VERSION, &output::version(None))
            .maybe(start::CLOCK, clock);
        self.write(kind::START, &payload.finish())
    }

    fn write(&mut self, packet_kind: u16, payload: &[u8]) -> Result<(), EditError> {
        if let Some((output, name)) = self.output.take() {
            self.out = Some(Out::new(output, &name)?);
        }
        self.packets += 1;
        match &mut self.out {
            Some(out) => out.packet(packet_kind, payload),
            None => Ok(()),
        }
    }

    fn tell(&mut self, text: impl FnOnce() -> String) {
        if self.told.len() < MOST_TOLD {
            self.told.push(text());
        } else {
            self.more += 1;
        }
    }

    fn finish(mut self) -> Result<Repaired, EditError> {
        let words = self.out.as_ref().map_or(0, |out| out.words);
        match &self.end {
            None => self.tell(|| {
                "the recording had no end: what came after its last packet is missing".into()
            }),
            Some((_, recorded, _)) if *recorded != 0 && *recorded != words => {
                let recorded = *recorded;
                self.tell(|| format!("{recorded} words were recorded, {words} are here"));
            }
            Some(_) => {}
        }
        if self.more > 0 {
            let more = self.more;
            self.told.push(format!("and {more} more of that kind"));
        }
        let mut lost: Vec<_> = std::mem::take(&mut self.lost).into_iter().collect();
        lost.sort_unstable();
        for (process, events) in lost {
            let payload = Payload::default()
                .number(loss::PROCESS, process.into())
                .number(loss::EVENTS, events);
            self.write(kind::LOSS, &payload.finish())?;
        }
        let Some(mut out) = self.out.take() else {
            return Err(EditError::Refused("there is no packet in it that can be kept".into()));
        };
        for text in &self.told {
            out.notice(Level::Warning, &format!("before it was repaired: {text}"))?;
        }
        let (fields, time) = match self.end {
            Some((fields, _, time)) => (fields, if time > 0 { time } else { self.latest }),
            None => (Payload::default(), self.latest),
        };
        let fields = fields.finish();
        let bytes = out.end(time, |payload| {
            teeperf_wire::fields::read(&fields)
                .map_while(Result::ok)
                .fold(payload, |payload, field| payload.bytes(field.tag, field.value))
        })?;
        Ok(Repaired { mended: self.told, packets: self.packets, bytes })
    }
}
