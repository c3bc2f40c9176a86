//! A window of a recording, as a recording: what was between two times, and keyframes
//! where it begins, so that it reads as the whole does between these times. Calls, times and losses of windows that
//! follow one another add up to those of the whole.
//!
//! One thing is not told apart: where words tell of time in the window, but of no event behind it, and of a gap that takes
//! this time back behind the window. No runtime writes such: it looks at the clock where there is something to
//! write.
//!
//! Read from front to end once, without a look back. Memory is that of open frames and of what is known of processes and
//! threads. `threads` decides for each thread which words are in the window.

mod sampled;
mod telling;
mod threads;
mod window;

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::time::Duration;

use teeperf_profile::Recording;
use teeperf_profile::contents::{Body, End, Packet, Start};
use teeperf_record::writing::{Level, Output, Payload};
use teeperf_wire::body::{end, start};
use teeperf_wire::packet::kind;

use crate::error::EditError;
use crate::output::{self, Out};
use sampled::Sampled;
use threads::Threads;
pub(crate) use threads::at;
pub use window::Window;

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub struct Cut {
    /// From this time on; nothing: from the beginning.
    pub since: Option<When>,
    /// Before this time; nothing: to the end.
    pub until: Option<When>,
    /// When the recording began and ended, clock units, where that is known.
    pub bounds: Option<(u64, u64)>,
    /// Only threads of these ids; none: all.
    pub threads: Vec<u32>,
    /// Only processes of these ids; none: all.
    pub processes: Vec<u32>,
}

/// A moment of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// A time of its clock.
    Units(u64),
    /// So long after its beginning.
    After(Duration),
    /// At this share of it, from 0 to 1.
    Share(f64),
    /// Nanoseconds since 1970, UTC.
    Wall(u64),
}

impl When {
    fn units(self, start: &Start, bounds: Option<(u64, u64)>) -> Result<u64, EditError> {
        let refused = |text: &str| Err(EditError::Refused(text.into()));
        let began = match (start.clock_start, bounds) {
            (0, Some((began, _))) => began,
            (began, _) => began,
        };
        let after = |ns: u128| {
            let units = ns * u128::from(start.hz) / 1_000_000_000;
            began.saturating_add(u64::try_from(units).unwrap_or(u64::MAX))
        };
        match self {
            Self::Units(units) => Ok(units),
            Self::After(_) | Self::Wall(_) if start.hz == 0 => refused(
                "the recording does not say how fast its clock goes: name shares of it, such as 50%",
            ),
            Self::After(time) => Ok(after(time.as_nanos())),
            Self::Wall(_) if start.wall_ns == 0 || start.clock_start == 0 => refused(
                "the recording does not say when it began: name times from its beginning on, such as 1.5s",
            ),
            Self::Wall(ns) if ns <= start.wall_ns => Ok(began),
            Self::Wall(ns) => Ok(after((ns - start.wall_ns).into())),
            Self::Share(share) => match bounds {
                Some((began, ended)) => {
                    Ok(began.saturating_add(((ended - began) as f64 * share) as u64))
                }
                None => refused(
                    "how long the recording is can be known of a file alone: name times, such as 1.5s",
                ),
            },
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// Threads that are in the window.
    pub threads: u64,
    /// Words of theirs.
    pub words: u64,
    /// Packets of sums.
    pub sums: u64,
    /// Bytes of the new recording.
    pub bytes: u64,
    /// What was wrong with the old one.
    pub warnings: Vec<String>,
    /// What else the user should know.
    pub notices: Vec<String>,
}

/// Most packets kept of processes of which nothing is in the window yet.
const MOST_KEPT: usize = 1 << 20;

/// Cuts. `progress` is told now and then how many bytes were read.
///
/// # Errors
///
/// When there is nothing to read or nowhere to write. What is damaged is in what is returned.
pub fn cut<R: Read>(
    mut recording: Recording<R>,
    wanted: &Cut,
    output: Output,
    name: &str,
    progress: &mut dyn FnMut(u64),
) -> Result<Made, EditError> {
    let mut cutter = Cutter::new(wanted.clone(), Some((output, name.to_owned())))?;
    let mut told = 0;
    while let Some(packet) = recording.next_packet()? {
        cutter.packet(&packet)?;
        if packet.offset - told >= 1 << 20 {
            told = packet.offset;
            progress(told);
        }
    }
    cutter.made.warnings = recording.take_warnings();
    cutter.finish()?;
    Ok(cutter.made)
}

/// What is kept of a process until something of it is in the window.
#[derive(Default)]
struct Process {
    is_wanted: bool,
    is_told: bool,
    packets: Vec<(u16, Vec<u8>)>,
    losses: Vec<Vec<u8>>,
}

struct Cutter {
    since: u64,
    until: u64,
    wanted: Cut,
    /// Opened with the first packet; without, packets are taken one by one.
    output: Option<(Output, String)>,
    out: Option<Out>,
    threads: Threads,
    sampled: Sampled,
    processes: HashMap<u32, Process>,
    kept: usize,
    end: Option<End>,
    /// Latest time that any packet tells.
    latest: u64,
    /// Trees and arcs: in the window; of those, begun before it; that began in it and ended behind it.
    sums: (u64, u64, u64),
    /// Threads of which something is in the window, by process and serial.
    written: HashSet<(u32, u32)>,
    /// Of what is wanted, the ids that the recording has not had so far.
    missing: Cut,
    made: Made,
}

impl Cutter {
    fn new(wanted: Cut, output: Option<(Output, String)>) -> Result<Self, EditError> {
        Ok(Self {
            since: 0,
            until: u64::MAX,
            missing: wanted.clone(),
            wanted,
            out: None,
            threads: Threads::new(None, None).map_err(EditError::Memory)?,
            sampled: Sampled::new().map_err(EditError::Memory)?,
            processes: HashMap::new(),
            kept: 0,
            end: None,
            latest: 0,
            sums: (0, 0, 0),
            written: HashSet::new(),
            output,
            made: Made::default(),
        })
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), EditError> {
        if let Body::Start(start) = &packet.body {
            return if self.out.is_none() { self.start(start, packet.payload) } else { Ok(()) };
        }
        if self.out.is_none() && (self.wanted.since.is_some() || self.wanted.until.is_some()) {
            let text = "its first packet, which tells of its clock, is missing: it cannot be cut at a time; `teeperf repair` \
                        makes a recording that can";
            return Err(EditError::Refused(text.into()));
        }
        self.see_ids(&packet.body);
        match &packet.body {
            Body::Chunk(header, data) => {
                self.latest = self.latest.max(header.time);
                let wanted = self.is_wanted(header.process, header.tid);
                let writes = self.threads.chunk(header, data, wanted);
                self.write(header.process, writes)
            }
            Body::Keyframe(keyframe) => {
                let wanted = keyframe.thread == 0 || self.is_wanted(keyframe.process, keyframe.tid);
                let writes = self.threads.keyframe(keyframe, packet.payload, wanted);
                if !writes.is_empty() && keyframe.thread != 0 {
                    self.written.insert((keyframe.process, keyframe.thread));
                }
                self.write(keyframe.process, writes)
            }
            Body::Filter(filter) => {
                self.threads.filter(filter);
                self.out()?.packet(packet.kind, packet.payload)
            }
            Body::Tree(header, _) => {
                let (process, tid) = ((header.process, header.thread), header.tid);
                self.sum(process, tid, header.begin, header.end, packet)
            }
            Body::Arcs(header, _) => {
                let (process, tid) = ((header.process, header.thread), header.tid);
                self.sum(process, tid, header.begin, header.end, packet)
            }
            Body::Process(process) => {
                let is_wanted = self.wanted.processes.is_empty()
                    || self.wanted.processes.contains(&process.pid);
                let known = self.processes.entry(process.id).or_default();
                known.is_wanted = is_wanted;
                self.keep(process.id, packet)
            }
            Body::Thread(thread) => self.keep(thread.process, packet),
            Body::Loss(loss) => {
                if self.kept < MOST_KEPT {
                    self.kept += 1;
                    let process = self.processes.entry(loss.process).or_default();
                    process.losses.push(packet.payload.to_vec());
                }
                Ok(())
            }
            Body::ProcessEnd(ended) => {
                self.latest = self.latest.max(ended.time);
                let Some(mut process) = self.processes.remove(&ended.id) else { return Ok(()) };
                self.kept -= process.packets.len() + process.losses.len();
                process.packets.clear();
                if !process.is_wanted || ended.time > self.until || ended.time < self.since {
                    // It lives on behind the window, or has ended before it.
                    process.losses.clear();
                    self.processes.insert(ended.id, process);
                    return Ok(());
                }
                for loss in process.losses.drain(..) {
                    self.out()?.packet(kind::LOSS, &loss)?;
                }
                if process.is_told {
                    self.out()?.packet(packet.kind, packet.payload)?;
                }
                self.processes.insert(ended.id, process);
                Ok(())
            }
            Body::End(end) => {
                self.latest = self.latest.max(end.time);
                self.end = Some(end.clone());
                Ok(())
            }
            Body::Symbols(symbols) => {
                let known = self.processes.get(&symbols.process);
                let is_wanted = known.is_none_or(|process| process.is_wanted);
                if is_wanted { self.out()?.packet(packet.kind, packet.payload) } else { Ok(()) }
            }
            Body::Sampled(event) => {
                let payload = self.sampled.event(event, packet.payload);
                self.out()?.packet(packet.kind, &payload)
            }
            Body::Samples(header, data) => {
                let Self { sampled, wanted, .. } = self;
                match sampled.samples(header, data, packet.payload, wanted) {
                    Some(payload) => self.out()?.packet(packet.kind, &payload),
                    None => Ok(()),
                }
            }
            // What has no time is told in each window, and so is what code is where.
            _ => self.out()?.packet(packet.kind, packet.payload),
        }
    }

    fn start(&mut self, start: &Start, payload: &[u8]) -> Result<(), EditError> {
        let units = |when: Option<When>| when.map(|when| when.units(start, self.wanted.bounds));
        let since = units(self.wanted.since).transpose()?;
        let until = units(self.wanted.until).transpose()?;
        if let (since, Some(until)) = (since.unwrap_or(0), until)
            && since >= until
        {
            return Err(EditError::Refused("the window ends before it begins".into()));
        }
        self.since = since.unwrap_or(0);
        self.until = until.unwrap_or(u64::MAX);
        self.threads = Threads::new(since, until).map_err(EditError::Memory)?;
        self.sampled.start((start.clock_start, start.hz), (self.since, self.until));
        let since = since.filter(|&since| since > start.clock_start);
        // Of a recording whose clock's beginning is not known, neither is the wall clock's.
        let later = since.filter(|_| start.clock_start > 0).map(|since| since - start.clock_start);
        let nanoseconds = |units: u64| {
            let ns = u128::from(units) * 1_000_000_000 / u128::from(start.hz.max(1));
            u64::try_from(ns).unwrap_or(u64::MAX)
        };
        let changed = output::changed(payload, |field| match field.tag {
            start::VERSION => Some(output::version(start.version).to_vec()),
            start::CLOCK_START if later.is_some() => Some(since?.to_le_bytes().to_vec()),
            start::WALL_NS if start.wall_ns > 0 => {
                let wall = start.wall_ns.saturating_add(later.map_or(0, nanoseconds));
                Some(wall.to_le_bytes().to_vec())
            }
            _ => Some(field.value.to_vec()),
        });
        let payload = match start.version {
            Some(_) => changed.finish(),
            None => changed.bytes(start::VERSION, &output::version(None)).finish(),
        };
        self.latest = self.latest.max(start.clock_start);
        self.out()?.packet(kind::START, &payload)
    }

    fn out(&mut self) -> Result<&mut Out, EditError> {
        if self.out.is_none() {
            self.out = Some(match self.output.take() {
                Some((output, name)) => Out::new(output, &name)?,
                None => Out::queue()?,
            });
        }
        self.out.as_mut().ok_or_else(|| EditError::Refused("the output is gone".into()))
    }

    fn is_wanted(&self, process: u32, tid: u32) -> bool {
        let threads = &self.wanted.threads;
        (threads.is_empty() || threads.contains(&tid))
            && match self.processes.get(&process) {
                Some(process) => process.is_wanted,
                None => self.wanted.processes.is_empty(),
            }
    }

    /// A packet about a process, to be written once something of that is in the window.
    fn keep(&mut self, id: u32, packet: &Packet<'_>) -> Result<(), EditError> {
        let process = self.processes.entry(id).or_insert_with(|| Process {
            is_wanted: self.wanted.processes.is_empty(),
            ..Process::default()
        });
        if process.is_told {
            return self.out()?.packet(packet.kind, packet.payload);
        }
        if self.kept < MOST_KEPT {
            self.kept += 1;
            process.packets.push((packet.kind, packet.payload.to_vec()));
        }
        Ok(())
    }

    /// Tells of a process, if that was not done.
    fn tell(&mut self, id: u32) -> Result<(), EditError> {
        let process = self.processes.entry(id).or_insert_with(|| Process {
            is_wanted: self.wanted.processes.is_empty(),
            ..Process::default()
        });
        if process.is_told {
            return Ok(());
        }
        process.is_told = true;
        let packets = std::mem::take(&mut process.packets);
        self.kept -= packets.len();
        for (packet_kind, payload) in packets {
            self.out()?.packet(packet_kind, &payload)?;
        }
        Ok(())
    }

    fn write(&mut self, process: u32, writes: Vec<threads::Write<'_>>) -> Result<(), EditError> {
        if writes.is_empty() {
            return Ok(());
        }
        self.tell(process)?;
        let threads = writes.iter().map(threads::Write::thread).filter(|&thread| thread != 0);
        self.written.extend(threads.map(|thread| (process, thread)));
        let out = self.out()?;
        for write in writes {
            match write {
                threads::Write::Keyframe(keyframe) => {
                    for payload in keyframe.encode() {
                        out.packet(kind::KEYFRAME, &payload)?;
                    }
                }
                threads::Write::Name(payload) => out.packet(kind::THREAD, &payload)?,
                threads::Write::Packet(packet_kind, payload) => out.packet(packet_kind, payload)?,
                threads::Write::Chunk(header, data) => {
                    out.chunk(&header, &[&header.encode()[..], data].concat())?;
                }
                threads::Write::Words(header, words) => out.words(header, &words)?,
            }
        }
        Ok(())
    }

    /// What was summed: in the window in which it was written.
    fn sum(
        &mut self,
        (process, thread): (u32, u32),
        tid: u32,
        begin: u64,
        end: u64,
        packet: &Packet<'_>,
    ) -> Result<(), EditError> {
        self.latest = self.latest.max(end);
        if !self.is_wanted(process, tid) {
            return Ok(());
        }
        let is_in = (end > self.since || self.wanted.since.is_none()) && end <= self.until;
        if !is_in {
            self.sums.2 += u64::from(begin < self.until && end > self.until);
            return Ok(());
        }
        self.sums.0 += 1;
        self.sums.1 += u64::from(begin < self.since);
        self.written.insert((process, thread));
        self.tell(process)?;
        self.out()?.packet(packet.kind, packet.payload)
    }

    /// Nothing comes any more.
    fn finish(&mut self) -> Result<(), EditError> {
        for (process, writes) in self.threads.finish() {
            self.write(process, writes)?;
        }
        let reaches_end = self.latest <= self.until;
        if reaches_end {
            let processes: Vec<u32> = self.processes.keys().copied().collect();
            for id in processes {
                let losses = match self.processes.get_mut(&id) {
                    Some(process) if process.is_wanted => std::mem::take(&mut process.losses),
                    _ => Vec::new(),
                };
                for loss in losses {
                    self.out()?.packet(kind::LOSS, &loss)?;
                }
            }
        }
        self.tell_of_sums()?;
        self.tell_of_nothing()?;
        let warnings = self.made.warnings.clone();
        for warning in &warnings {
            let text = format!("in the recording that this was cut from: {warning}");
            self.out()?.notice(Level::Warning, &text)?;
        }
        if self.end.is_none() && reaches_end {
            let text = "the recording that this was cut from has no end: what came after its last packet is missing";
            self.out()?.notice(Level::Warning, text)?;
        }
        let ended = self.end.take().filter(|_| reaches_end);
        let time = self.latest.min(self.until);
        let signed = |number: Option<i64>| number.map(|number| number as u64);
        let out = self.out()?;
        let words = out.words;
        let bytes = out.end(time, |payload: Payload| match ended {
            Some(ended) => {
                let payload = payload
                    .maybe(end::EXIT_STATUS, signed(ended.exit_status))
                    .maybe(end::SIGNAL, signed(ended.signal))
                    .number(end::RECORDER_CPU_NS, ended.recorder_cpu_ns);
                match ended.reason.is_empty() {
                    true => payload,
                    false => payload.bytes(end::REASON, ended.reason.as_bytes()),
                }
            }
            None => payload,
        })?;
        (self.made.words, self.made.bytes) = (words, bytes);
        self.made.threads = self.written.len() as u64;
        self.made.sums = self.sums.0;
        Ok(())
    }
}
