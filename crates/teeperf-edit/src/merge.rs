//! Several recordings as one: each after the other, with processes numbered anew, and times as those of the first
//! recording's clock, as far as clocks on the wall tell.

mod shift;
mod twice;

use std::collections::HashMap;
use std::io::Read;

use teeperf_profile::Recording;
use teeperf_profile::chunks::Decoder;
use teeperf_profile::contents::{Body, Packet, Start};
use teeperf_record::writing::{Level, Output, Payload};
use teeperf_wire::body::chunk::Header;
use teeperf_wire::body::{
    end, filter, keyframe, loss, notice, process, process_end, start, symbols, thread,
};
use teeperf_wire::packet::kind;

use crate::error::EditError;
use crate::output::{self, Out};
use shift::Change;
use twice::Seen;

/// A recording, and its name for messages.
pub struct Input<R> {
    /// The recording, from its beginning on.
    pub recording: Recording<R>,
    /// For messages.
    pub name: String,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// Processes in all.
    pub processes: u64,
    /// Bytes of the new recording.
    pub bytes: u64,
    /// What was wrong with the recordings.
    pub warnings: Vec<String>,
    /// How times were put together.
    pub notices: Vec<String>,
}

/// Rates of one counter that were measured twice differ by no more, in millionths.
const SAME_RATE: u64 = 200;
/// Clocks on the wall tell no better than so many nanoseconds which moments are the same.
const SAME_MOMENT: u64 = 10_000_000;

/// Merges. `progress` is told now and then how many bytes were read.
///
/// # Errors
///
/// When clocks cannot be put together, two recordings have the same words of a thread, what is to be read is no recording, or the new one cannot be written.
pub fn merge<R: Read>(
    inputs: Vec<Input<R>>,
    output: Output,
    name: &str,
    progress: &mut dyn FnMut(u64),
) -> Result<Merged, EditError> {
    let mut merge = Merge {
        output: Some((output, name.to_owned())),
        out: None,
        decoder: Decoder::new().map_err(EditError::Memory)?,
        first: None,
        change: Change::default(),
        numbers: HashMap::new(),
        next: 1,
        latest: 0,
        ending: None,
        seen: Seen::default(),
        made: Merged::default(),
    };
    let mut before = 0;
    for Input { mut recording, name } in inputs {
        merge.numbers.clear();
        merge.seen.begin(&name);
        merge.change = Change::default();
        let (mut is_begun, mut has_end) = (false, false);
        let mut told = 0;
        while let Some(packet) = recording.next_packet()? {
            if let Body::Start(found) = &packet.body
                && !is_begun
            {
                is_begun = true;
                merge.seen.start(found);
                merge.start(&name, found, packet.payload)?;
            } else if is_begun {
                has_end |= matches!(packet.body, Body::End(_));
                merge.seen.packet(&packet.body).map_err(EditError::Refused)?;
                merge.packet(&packet)?;
            } else {
                return Err(EditError::Refused(format!(
                    "{name}: its first packet, which tells of its clock, is missing; `teeperf repair` makes a recording \
                     of the rest, which can be read alone"
                )));
            }
            if packet.offset - told >= 1 << 20 {
                told = packet.offset;
                progress(before + told);
            }
        }
        before += recording.offset();
        for text in recording.take_warnings() {
            merge.warn(format!("{name}: {text}"))?;
        }
        if !has_end {
            let text = format!("{name} has no end: what came after its last packet is missing");
            merge.warn(text)?;
        }
    }
    merge.finish()
}

struct Merge {
    output: Option<(Output, String)>,
    out: Option<Out>,
    decoder: Decoder,
    /// The first recording's start, and its name.
    first: Option<(String, Start)>,
    /// How times of the present recording become those of the first.
    change: Change,
    /// Numbers of its processes, as they are now.
    numbers: HashMap<u32, u32>,
    next: u32,
    latest: u64,
    /// How the first command that failed ended, or the first of all.
    ending: Option<(Option<i64>, Option<i64>)>,
    seen: Seen,
    made: Merged,
}

impl Merge {
    fn start(&mut self, name: &str, found: &Start, payload: &[u8]) -> Result<(), EditError> {
        let Some((first_name, first)) = &self.first else {
            let (output, path) = self
                .output
                .take()
                .ok_or_else(|| EditError::Refused("the output is gone".into()))?;
            let mut out = Out::new(output, &path)?;
            let has_version = found.version.is_some();
            let version = output::version(found.version);
            let payload = output::changed(payload, |field| match field.tag {
                start::VERSION => Some(version.to_vec()),
                _ => Some(field.value.to_vec()),
            });
            let payload =
                if has_version { payload } else { payload.bytes(start::VERSION, &version) };
            out.packet(kind::START, &payload.finish())?;
            self.out = Some(out);
            self.first = Some((name.to_owned(), found.clone()));
            return Ok(());
        };
        let (by, text) = alignment(first_name, first, name, found)?;
        self.change = Change { by, counter: counters(first, found) };
        self.told(text)
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), EditError> {
        match &packet.body {
            Body::Start(_) => Ok(()),
            Body::Chunk(header, data) => self.chunk(header, data),
            Body::Tree(header, data) => {
                let header = teeperf_wire::body::tree::Header {
                    process: self.number(header.process),
                    begin: self.time(header.begin),
                    end: self.time(header.end),
                    ..*header
                };
                self.write(packet.kind, &[&header.encode()[..], data].concat())
            }
            Body::Arcs(header, data) => {
                let header = teeperf_wire::body::arcs::Header {
                    process: self.number(header.process),
                    begin: self.time(header.begin),
                    end: self.time(header.end),
                    ..*header
                };
                self.write(packet.kind, &[&header.encode()[..], data].concat())
            }
            Body::Process(_) => {
                self.fields(packet, &[process::ID, process::EXEC_OF], &[process::TIME])
            }
            Body::ProcessEnd(_) => self.fields(packet, &[process_end::ID], &[process_end::TIME]),
            Body::Thread(_) => self.fields(packet, &[thread::PROCESS], &[]),
            Body::Symbols(_) => self.fields(packet, &[symbols::PROCESS], &[]),
            Body::Notice(_) => self.fields(packet, &[notice::PROCESS], &[]),
            Body::Loss(_) => self.fields(packet, &[loss::PROCESS], &[]),
            Body::Filter(_) => self.fields(packet, &[filter::PROCESS], &[]),
            Body::Keyframe(_) => self.fields(packet, &[keyframe::PROCESS], &[keyframe::TIME]),
            Body::End(ended) => {
                self.latest = self.latest.max(self.time(ended.time));
                let this = (ended.exit_status, ended.signal);
                let failed = |(status, signal): (Option<i64>, Option<i64>)| {
                    signal.is_some() || status.is_some_and(|status| status != 0)
                };
                match self.ending {
                    Some(known) if failed(known) || !failed(this) => {}
                    _ => self.ending = Some(this),
                }
                match ended.reason.is_empty() {
                    true => Ok(()),
                    false => {
                        self.warn(format!("recording ended before a command: {}", ended.reason))
                    }
                }
            }
            // Their events would need other numbers, and their clocks need not be one.
            Body::Sampled(_) => {
                self.warn("samples were left out: recordings with samples cannot be merged".into())
            }
            Body::Samples(..)
            | Body::SharedSamples(..)
            | Body::Map(_)
            | Body::Task(_)
            | Body::File(_) => Ok(()),
            // What is not known cannot be given other numbers.
            Body::Unknown(_) | Body::Malformed => self.warn(format!(
                "a packet of type {} at offset {} was left out",
                packet.kind, packet.offset
            )),
        }
    }

    fn chunk(&mut self, header: &Header, data: &[u8]) -> Result<(), EditError> {
        let header = Header { process: self.number(header.process), ..*header };
        self.latest = self.latest.max(self.time(header.time));
        let change = self.change;
        let words = if change.is_none() { None } else { self.decoder.words(&header, data).ok() };
        let pieces = words.map(|(clock, words)| shift::shifted(&header, clock, words, change));
        let Some(out) = &mut self.out else { return Ok(()) };
        let Some(pieces) = pieces else {
            // As it is; words that cannot be read are lost whatever their times.
            let header = Header { time: header.time.saturating_add_signed(change.by), ..header };
            return out.chunk(&header, &[&header.encode()[..], data].concat());
        };
        pieces.into_iter().try_for_each(|(header, words)| out.words(header, &words))
    }

    /// A packet of fields, of which some are numbers of processes, and some are times.
    fn fields(
        &mut self,
        packet: &Packet<'_>,
        numbers: &[u16],
        times: &[u16],
    ) -> Result<(), EditError> {
        let payload = output::changed(packet.payload, |field| {
            let number = field.number().unwrap_or(0);
            let changed = match field.tag {
                tag if numbers.contains(&tag) && number > 0 => {
                    u32::try_from(number).map_or(0, |id| self.number(id)).into()
                }
                tag if times.contains(&tag) => {
                    let time = self.time(number);
                    self.latest = self.latest.max(time);
                    time
                }
                _ => return Some(field.value.to_vec()),
            };
            Some(changed.to_le_bytes().to_vec())
        });
        self.write(packet.kind, &payload.finish())
    }

    /// The number that a process of the present recording has now.
    fn number(&mut self, id: u32) -> u32 {
        *self.numbers.entry(id).or_insert_with(|| {
            self.next += 1;
            self.made.processes += 1;
            self.next - 1
        })
    }

    /// A time as it is now; one that is not known stays so.
    fn time(&self, time: u64) -> u64 {
        if time == 0 { 0 } else { time.saturating_add_signed(self.change.by) }
    }

    fn write(&mut self, packet_kind: u16, payload: &[u8]) -> Result<(), EditError> {
        match &mut self.out {
            Some(out) => out.packet(packet_kind, payload),
            None => Ok(()),
        }
    }

    fn warn(&mut self, text: String) -> Result<(), EditError> {
        if let Some(out) = &mut self.out {
            out.notice(Level::Warning, &text)?;
        }
        self.made.warnings.push(text);
        Ok(())
    }

    fn told(&mut self, text: String) -> Result<(), EditError> {
        if let Some(out) = &mut self.out {
            out.notice(Level::Information, &text)?;
        }
        self.made.notices.push(text);
        Ok(())
    }

    fn finish(mut self) -> Result<Merged, EditError> {
        let Some(mut out) = self.out.take() else {
            return Err(EditError::Refused("there is nothing to merge".into()));
        };
        let ending = self.ending.unwrap_or_default();
        let number = |signed: Option<i64>| signed.map(|number| number as u64);
        self.made.bytes = out.end(self.latest, |payload: Payload| {
            payload.maybe(end::EXIT_STATUS, number(ending.0)).maybe(end::SIGNAL, number(ending.1))
        })?;
        Ok(self.made)
    }
}

/// Steps in a second of the counters that time calls beside the tick, where they are not the same.
fn counters(first: &Start, found: &Start) -> Option<(u64, u64)> {
    let (to, from) = (first.counter_hz, found.counter_hz);
    let most = u128::from(to) * u128::from(SAME_RATE);
    let are_alike = u128::from(to.abs_diff(from)) * 1_000_000 <= most;
    (to > 0 && from > 0 && !are_alike).then_some((to, from))
}

/// By how much times of a recording become later to be those of the first, and how that was found out.
fn alignment(
    first_name: &str,
    first: &Start,
    name: &str,
    found: &Start,
) -> Result<(i64, String), EditError> {
    if first.clock != found.clock {
        let kind = |clock| if clock == 1 { "tick" } else { "cycle" };
        return Err(EditError::Refused(format!(
            "{first_name} has the {} clock and {name} the {}: times of both cannot be put together. Record both with \
             one, such as --clock tick; or see them side by side in reports of their own",
            kind(first.clock),
            kind(found.clock)
        )));
    }
    let is_same_machine = first.host == found.host && first.processor == found.processor;
    let differs = first.hz.abs_diff(found.hz);
    let is_measured_twice = is_same_machine
        && u128::from(differs) * 1_000_000 <= u128::from(first.hz) * u128::from(SAME_RATE);
    if differs > 0 && !is_measured_twice {
        return Err(EditError::Refused(format!(
            "the clock of {first_name} has {} units in a second and that of {name} {}: their times cannot be put \
             together exactly. Record both with --clock tick, whose units are the same everywhere",
            first.hz, found.hz
        )));
    }
    if [first, found].iter().any(|start| start.wall_ns == 0 || start.clock_start == 0) {
        let text = format!("{name}: it is not known when it began: its times are as they were");
        return Ok((0, text));
    }
    let hz = i128::from(first.hz.max(1));
    let between = i128::from(found.wall_ns) - i128::from(first.wall_ns);
    let wall = between * hz / 1_000_000_000;
    let by = wall - (i128::from(found.clock_start) - i128::from(first.clock_start));
    // Counters of one machine that runs on are the same; its clock on the wall may have been set.
    let tolerance = i128::from(SAME_MOMENT) + between.abs() * i128::from(SAME_RATE) / 1_000_000;
    if is_same_machine && by.abs() * 1_000_000_000 / hz <= tolerance {
        return Ok((0, format!("{name}: its clock is that of {first_name}")));
    }
    // Time words have their lowest bit set, and keep it.
    let by = i64::try_from(by & !1).map_err(|_| {
        EditError::Refused(format!("{name} began too long before or after {first_name}"))
    })?;
    let ms = by as f64 * 1000.0 / first.hz.max(1) as f64;
    let text = format!(
        "{name}: its times were moved by {ms:.3} ms, so that it began where clocks on the wall say; they say so to \
         some milliseconds at best"
    );
    Ok((by, text))
}
