//! Which words of each thread are in a window, and what is to be known of the thread where it begins.
//!
//! A thread's words are in the window from the first item on that tells a time at or behind its beginning, and up to the
//! first that tells one at or behind its end. What passes between two such items belongs to both sides of a border
//! that lies in it: a keyframe leaves out what lies before ([`Keyframe::debt`]), and a piece without words at the end
//! says that time has passed up to there, if the thread says anything later.

use std::collections::HashMap;
use std::io;

use teeperf_profile::chunks::Decoder;
use teeperf_profile::contents::Filter;
use teeperf_profile::events::Events;
use teeperf_profile::keyframes::Keyframe;
use teeperf_profile::stacks::{Moment, Stacks};
use teeperf_record::writing::Payload;
use teeperf_wire::body::chunk::{self, Header};
use teeperf_wire::body::thread;
use teeperf_wire::packet::kind;
use teeperf_wire::shared::ClockKind;

impl Write<'_> {
    /// The thread that it is of, by its serial; 0: of none.
    pub(super) fn thread(&self) -> u32 {
        match self {
            Self::Keyframe(keyframe) => keyframe.thread,
            Self::Chunk(header, _) | Self::Words(header, _) => header.thread,
            Self::Name(_) | Self::Packet(..) => 0,
        }
    }
}

/// Something to be written.
pub(super) enum Write<'a> {
    Keyframe(Keyframe),
    /// Payload of a thread's packet.
    Name(Vec<u8>),
    /// As it stands.
    Packet(u16, &'a [u8]),
    /// With its data as it stands.
    Chunk(Header, &'a [u8]),
    Words(Header, Vec<u32>),
}

/// Where a thread is.
enum Phase {
    /// Before the window.
    Before,
    /// In it.
    Inside,
    /// Behind it, but what of the time before its end is to be charged is known with the next event alone.
    Owes(Box<Owed>),
    /// Behind it.
    Behind,
}

/// What a thread may be charged up to the window's end.
struct Owed {
    /// The piece without words; its time is that up to which nothing is charged.
    header: Header,
    /// Clock units behind that.
    units: u64,
}

/// See the module.
pub(super) struct Threads {
    since: u64,
    has_since: bool,
    until: u64,
    decoder: Decoder,
    /// Up to the window's end.
    stacks: Stacks,
    /// From its end on, of threads that owe.
    after: Stacks,
    phases: HashMap<(u32, u32), Phase>,
    /// By process: windows of modules that were told.
    windows: HashMap<u32, usize>,
}

impl Threads {
    pub(super) fn new(since: Option<u64>, until: Option<u64>) -> io::Result<Self> {
        Ok(Self {
            since: since.unwrap_or(0),
            has_since: since.is_some(),
            until: until.unwrap_or(u64::MAX),
            decoder: Decoder::new()?,
            stacks: Stacks::new()?,
            after: Stacks::new()?,
            phases: HashMap::new(),
            windows: HashMap::new(),
        })
    }

    /// What a filter lets pass.
    pub(super) fn filter(&mut self, filter: &Filter<'_>) {
        self.stacks.filter(filter);
        self.after.filter(filter);
    }

    /// Takes the next piece of a thread; what is to be written of it, if it is wanted.
    pub(super) fn chunk<'a>(
        &mut self,
        header: &Header,
        data: &'a [u8],
        wanted: bool,
    ) -> Vec<Write<'a>> {
        let key = (header.process, header.thread);
        let mut writes = Vec::new();
        let phase = match self.phases.remove(&key) {
            Some(phase) => phase,
            // Nothing of it is before the window's end.
            None if header.time >= self.until => Phase::Behind,
            None => Phase::Before,
        };
        let phase = match phase {
            Phase::Behind => Phase::Behind,
            // Nobody asks any more what it does, unless others go on with stacks that it leaves.
            Phase::Inside if self.until == u64::MAX && !self.stacks.has_switched() => {
                writes.push(Write::Chunk(*header, data));
                Phase::Inside
            }
            phase => self.piece(phase, header, data, &mut writes),
        };
        self.phases.insert(key, phase);
        if wanted { writes } else { Vec::new() }
    }

    fn piece<'a>(
        &mut self,
        phase: Phase,
        header: &Header,
        data: &'a [u8],
        writes: &mut Vec<Write<'a>>,
    ) -> Phase {
        let Ok((clock, words)) = self.decoder.words(header, data) else {
            // Its words are lost, wherever they were: with the time at which they began.
            return self.unreadable(phase, header, data, writes);
        };
        let words = words.to_vec();
        let piece = Piece { header: *header, clock, words: &words, data: Some(data) };
        let (phase, rest) = match phase {
            Phase::Before => match piece.border(self.since) {
                None => {
                    self.stacks.words(header, clock, &words);
                    return Phase::Before;
                }
                Some(at) => {
                    let (before, rest) = piece.split(at);
                    if let Some(before) = before {
                        self.stacks.words(&before.header, clock, before.words);
                    }
                    self.begin(&rest.header, writes);
                    (Phase::Inside, rest)
                }
            },
            phase => (phase, piece),
        };
        match phase {
            Phase::Inside => self.inside(rest, writes),
            Phase::Owes(owed) => {
                self.after.words(&rest.header, clock, rest.words);
                self.settle(owed, (header.process, header.thread), writes)
            }
            phase => phase,
        }
    }

    fn inside<'a>(&mut self, piece: Piece<'_, 'a>, writes: &mut Vec<Write<'a>>) -> Phase {
        let (header, clock) = (piece.header, piece.clock);
        let Some(at) = piece.border(self.until) else {
            self.stacks.words(&header, clock, piece.words);
            writes.push(piece.write());
            return Phase::Inside;
        };
        let (before, rest) = piece.split(at);
        if let Some(before) = before {
            self.stacks.words(&before.header, clock, before.words);
            writes.push(before.write());
        }
        self.end(&rest, writes)
    }

    /// A thread comes into the window with this piece.
    fn begin(&mut self, header: &Header, writes: &mut Vec<Write<'_>>) {
        let (process, thread) = (header.process, header.thread);
        if let Some((keyframe, count)) =
            self.stacks.windows(process, self.windows.get(&process).copied().unwrap_or(0))
        {
            self.windows.insert(process, count);
            if self.has_since {
                writes.push(Write::Keyframe(keyframe));
            }
        }
        if !self.has_since {
            return;
        }
        writes.extend(self.stacks.take_changed(process).into_iter().map(Write::Keyframe));
        if let Some(name) = self.stacks.name(process, thread) {
            let payload = Payload::default()
                .number(thread::PROCESS, process.into())
                .number(thread::SERIAL, thread.into())
                .number(thread::TID, header.tid.into())
                .bytes(thread::NAME, name.as_bytes());
            writes.push(Write::Name(payload.finish()));
        }
        let moment = self.stacks.moment(process, thread).unwrap_or_default();
        let known = self.stacks.keyframes_of(process, thread);
        let is_first = header.sequence <= 1 && header.first == 0;
        let known = match known {
            None if is_first => return,
            // It is said in the whole recording that something is missing before it, or nothing of it is open.
            None => vec![Keyframe {
                process,
                thread,
                tid: header.tid,
                time: header.time,
                stack: header.stack,
                goes_on: Some((header.sequence, header.first)),
                ..Keyframe::default()
            }],
            Some(known) => known,
        };
        for keyframe in known {
            let keyframe = match keyframe.is_left {
                true => keyframe,
                false => at(keyframe, &moment, self.since),
            };
            writes.push(Write::Keyframe(keyframe));
        }
    }

    /// A thread leaves the window before this piece.
    fn end(&mut self, rest: &Piece<'_, '_>, writes: &mut Vec<Write<'_>>) -> Phase {
        let key = (rest.header.process, rest.header.thread);
        let Some(moment) = self.stacks.moment(key.0, key.1) else { return Phase::Behind };
        let from = moment.now.max(self.since);
        let debt = moment.debt.saturating_sub(from - moment.now);
        let passes = self.until.saturating_sub(from);
        let units = passes.saturating_sub(debt);
        if units == 0 {
            return Phase::Behind;
        }
        let mut known = self.stacks.keyframes_of(key.0, key.1).unwrap_or_default().into_iter();
        let Some(running) = known.next() else { return Phase::Behind };
        let (sequence, first) =
            running.goes_on.unwrap_or((rest.header.sequence, rest.header.first));
        let header = Header {
            sequence,
            first,
            count: 0,
            time: from.saturating_add(debt),
            stack: running.stack,
            flags: 0,
            words_bytes: 0,
            ..rest.header
        };
        let owed = Box::new(Owed { header, units });
        // What gaps take back of it is known with the next event.
        self.after.keyframe(&at(running, &moment, self.until));
        known.for_each(|own| self.after.keyframe(&own));
        self.after.words(&rest.header, rest.clock, rest.words);
        self.settle(owed, key, writes)
    }

    fn settle(&mut self, owed: Box<Owed>, key: (u32, u32), writes: &mut Vec<Write<'_>>) -> Phase {
        let moment = self.after.moment(key.0, key.1).unwrap_or_default();
        if moment.before > 0 {
            return Phase::Owes(owed);
        }
        writes.extend(charge(&owed, moment.taken_before));
        Phase::Behind
    }

    fn unreadable<'a>(
        &mut self,
        phase: Phase,
        header: &Header,
        data: &'a [u8],
        writes: &mut Vec<Write<'a>>,
    ) -> Phase {
        let is_before = matches!(phase, Phase::Before);
        if is_before && header.time < self.since {
            self.stacks.piece(header, data);
            return Phase::Before;
        }
        if header.time >= self.until || !matches!(phase, Phase::Before | Phase::Inside) {
            return Phase::Behind;
        }
        if is_before {
            self.begin(header, writes);
        }
        self.stacks.piece(header, data);
        writes.push(Write::Chunk(*header, data));
        Phase::Inside
    }

    /// Takes a keyframe; what is to be written of it.
    pub(super) fn keyframe<'a>(
        &mut self,
        keyframe: &Keyframe,
        payload: &'a [u8],
        wanted: bool,
    ) -> Vec<Write<'a>> {
        let key = (keyframe.process, keyframe.thread);
        let phase = self.phases.get(&key);
        let is_inside = match phase {
            Some(phase) => matches!(phase, Phase::Inside),
            None => !self.has_since,
        };
        if phase.is_none() && keyframe.thread != 0 && !keyframe.is_left {
            self.phases.insert(key, if is_inside { Phase::Inside } else { Phase::Before });
        }
        let phase = self.phases.get(&key);
        if !matches!(phase, Some(Phase::Owes(_) | Phase::Behind)) {
            self.stacks.keyframe(keyframe);
        }
        if is_inside && wanted { vec![Write::Packet(kind::KEYFRAME, payload)] } else { Vec::new() }
    }

    /// What is to be written at the end, by process.
    pub(super) fn finish(&mut self) -> Vec<(u32, Vec<Write<'static>>)> {
        let mut owed: Vec<_> = self.phases.drain().collect();
        owed.sort_unstable_by_key(|(key, _)| *key);
        let mut out: Vec<(u32, Vec<Write<'static>>)> = Vec::new();
        for ((process, thread), phase) in owed {
            if let Phase::Owes(owed) = phase {
                let moment = self.after.moment(process, thread).unwrap_or_default();
                out.push((process, charge(&owed, moment.taken_before).into_iter().collect()));
            }
        }
        // Those that other threads told of meanwhile, before the window.
        if self.has_since {
            for (&process, &told) in &self.windows {
                if let Some((keyframe, _)) = self.stacks.windows(process, told) {
                    out.push((process, vec![Write::Keyframe(keyframe)]));
                }
            }
        }
        out
    }
}

/// The piece without words that charges what is owed, but for what gaps take back of it. A writer
/// leaves out no more time than passed since it told the time before. Where a gap takes back more,
/// this window keeps the rest.
fn charge(owed: &Owed, taken: u64) -> Option<Write<'static>> {
    let units = owed.units.saturating_sub(taken);
    let header = Header { time: owed.header.time.saturating_add(units), ..owed.header };
    (units > 0).then(|| Write::Words(header, Vec::new()))
}

/// A thread's keyframe at a time behind the last that it told.
pub(crate) fn at(keyframe: Keyframe, moment: &Moment, time: u64) -> Keyframe {
    let passed = time.saturating_sub(moment.now);
    let left_out = passed.min(moment.debt);
    Keyframe {
        recent: moment.recent.saturating_add(passed - left_out),
        // What passes up to there is not charged here; what is left of the debt is not charged anywhere.
        debt: passed.saturating_add(moment.debt - left_out),
        ..keyframe
    }
}

/// Words of a thread, with the data that they are of, where it is all of them.
#[derive(Clone, Copy)]
struct Piece<'w, 'a> {
    header: Header,
    clock: ClockKind,
    words: &'w [u32],
    data: Option<&'a [u8]>,
}

impl<'w, 'a> Piece<'w, 'a> {
    /// The number of words before the first item that tells this time or a later one; nothing when none does.
    /// What begins there can be a piece.
    fn border(&self, time: u64) -> Option<Option<(usize, u64)>> {
        if self.header.time >= time {
            return Some(None);
        }
        let mut events = Events::of(&self.header, self.clock, self.words);
        loop {
            let (words, now, may_begin) = (events.words(), events.time(), events.may_begin_here());
            let event = events.next()?;
            if event.time >= time && may_begin {
                return Some(Some((words, now)));
            }
        }
    }

    /// What is before a border, if anything, and what is behind it.
    fn split(self, border: Option<(usize, u64)>) -> (Option<Self>, Self) {
        let Some((at, now)) = border else { return (None, self) };
        let (before, behind) = self.words.split_at(at);
        let header = self.header;
        let first = Header {
            count: at as u32,
            flags: header.flags & !(chunk::WHOLE | chunk::CUT),
            ..header
        };
        let first = Self { header: first, words: before, data: None, ..self };
        let rest = match at {
            0 => self,
            _ => Self {
                header: Header {
                    first: header.first + at as u32,
                    count: behind.len() as u32,
                    time: now,
                    ..header
                },
                words: behind,
                data: None,
                ..self
            },
        };
        (Some(first), rest)
    }

    fn write(&self) -> Write<'a> {
        match self.data {
            Some(data) => Write::Chunk(self.header, data),
            None => Write::Words(self.header, self.words.to_vec()),
        }
    }
}
