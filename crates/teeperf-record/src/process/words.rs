//! From a chunk in shared memory to packets.

use super::windows::Opened;
use super::{Place, Process};
use crate::escapes::{self, Module};
use crate::packets::{Level, Payload};
use crate::process::chunks::Hole;
use crate::segment::Class;
use crate::sink::Sink;
use crate::sums::MOST_ENTRIES;
use crate::survey;
use crate::symbols::WindowId;
use crate::trees::Growth;
use crate::verdict::{Facts, Verdict};
use crate::walk::{Walk, catch_up, fill_holes, time_after};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use teeperf_wire::arena::{OF_ARCS, OF_TREE};
use teeperf_wire::body::{chunk, thread};
use teeperf_wire::compose;
use teeperf_wire::packet::kind;
use teeperf_wire::shared::{ChunkHeader, ClockKind, pauses};
use teeperf_wire::word::{call, code, gap, payload_value};

/// Why a chunk is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Its thread is done with it.
    HandedOver,
    /// Its thread is gone.
    ThreadGone,
    /// The process is gone, or recording ends: no chunk is needed any more.
    Ending,
}

/// Words of a chunk on their way into a packet.
struct Piece<'a> {
    header: ChunkHeader,
    from: From,
    words: &'a mut [u32],
    flags: u16,
}

/// Time of a thread behind its last words.
struct Lived {
    until: u64,
    /// Clock units of it in which recording was paused.
    left_out: u64,
}

/// Where a piece begins.
#[derive(Clone, Copy)]
struct From {
    /// Index of the first word in the chunk.
    first: usize,
    /// Absolute time there, as the thread has it.
    time: u64,
    /// As the recording has it already, where that is later.
    told: u64,
}

impl Process {
    /// A chunk that was handed over. False when it is left for later.
    pub(super) fn drain_full(&mut self, place: Place, why: Why, sink: &mut Sink) -> bool {
        let segment = &self.segments[place.segment].segment;
        let of = segment.header(place.index).clock;
        if segment.clock().is_some() && matches!(of, OF_TREE | OF_ARCS) {
            self.drain_sums(of, place, why, sink);
            return true;
        }
        let Some((header, from)) = self.look_at(place, why, sink) else { return true };
        let first = from.first;
        let chunks = &mut self.segments[place.segment];
        let (segment, track) = (&chunks.segment, &mut chunks.tracks[place.index]);
        let further = self.order.further(header.serial, header.sequence);
        let facts = |hole: Option<Hole>| Facts {
            holes: hole.is_some(),
            further,
            waited: hole.map_or(Duration::ZERO, |hole| hole.since.elapsed()),
            dead: why != Why::HandedOver,
        };
        if let Some(hole) = track.hole
            && segment.word(place.index, hole.at) == 0
            && facts(track.hole).verdict() == Verdict::Leave
        {
            return false;
        }
        let Some(mut copy) = sink.copy.take() else { return false };
        let words = segment.copy(place.index, first, &mut copy);
        let used = survey::used(words);
        let words = &mut words[..used];
        let holes = survey::holes(words);
        track.hole = match holes {
            0 => None,
            _ => words.iter().position(|&word| word == 0).map(|at| {
                let since = track.hole.map_or_else(Instant::now, |hole| hole.since);
                Hole { at: first + at, since }
            }),
        };
        let verdict = facts(track.hole).verdict();
        match verdict {
            Verdict::Leave => {
                sink.copy = Some(copy);
                return false;
            }
            Verdict::Take => {}
            Verdict::Retire => track.retired = true,
        }
        if holes > 0 {
            fill_holes(words, sink.clock == ClockKind::Cycle);
            sink.stats.lost.add(holes as u64);
        }
        if verdict == Verdict::Take && why != Why::Ending {
            self.give_back(place, first + used, sink);
        }
        self.write(Piece { header, from, words, flags: chunk::WHOLE }, sink);
        sink.copy = Some(copy);
        true
    }

    /// A chunk with sums of this kind.
    fn drain_sums(&mut self, of: u32, place: Place, why: Why, sink: &mut Sink) {
        let segment = &self.segments[place.segment].segment;
        let capacity = segment.capacity();
        let mut wides = vec![0; segment.class().shape().0 / 8];
        segment.copy_of(place.index, &mut wides);
        if why != Why::Ending {
            self.give_back(place, capacity, sink);
        }
        let Some(added) = self.sums.add(of, &wides, self.id) else {
            self.refused += 1;
            return;
        };
        for growth in &added.growths {
            self.write_growth(growth, sink);
        }
        if added.lost > 0 && self.unsummed == 0 {
            let text = format!(
                "process {} has more than {MOST_ENTRIES} call paths in memory that was lent: calls on further \
                 ones are counted as lost",
                self.pid
            );
            sink.notice(Level::Warning, text, Some(self.id));
        }
        self.unsummed = self.unsummed.saturating_add(added.lost);
    }

    /// Names the thread of the first sums that are written of it after what it called.
    pub(super) fn tell_first(&self, growth: &Growth, sink: &mut Sink) {
        let word = growth.words.first().copied().unwrap_or(0);
        if growth.is_first
            && let Some(module) = self.windows.at(word >> 1)
        {
            let packet = Payload::default()
                .number(thread::PROCESS, self.id as u64)
                .number(thread::SERIAL, growth.serial as u64)
                .bytes(thread::NAME, &module.path);
            sink.packet(kind::THREAD, &packet.finish());
        }
    }

    /// The rest of a chunk that its thread will not hand over any more; it lived up to this time, if that is known.
    pub(super) fn drain_rest(&mut self, place: Place, why: Why, until: u64, sink: &mut Sink) {
        let Some((header, from)) = self.look_at(place, why, sink) else { return };
        let first = from.first;
        let is_known = self.knows(&header, place);
        let Some(mut copy) = sink.copy.take() else { return };
        let cycle = sink.clock == ClockKind::Cycle;
        let words = self.segments[place.segment].segment.copy(place.index, first, &mut copy);
        let used = survey::used(words);
        let words = &mut words[..used];
        let holes = survey::holes(words);
        if holes > 0 {
            fill_holes(words, cycle);
            sink.stats.lost.add(holes as u64);
        }
        if why != Why::Ending {
            self.give_back(place, first + used, sink);
        }
        // What its thread was writing when it died is no item.
        let (used, time) = items(words, from.time, cycle);
        let words = &mut words[..used];
        let flags = if why == Why::Ending { chunk::CUT } else { chunk::WHOLE };
        let lived = if is_known { self.lived(&header, time, until, sink) } else { None };
        let Some(Lived { until, left_out }) = lived.filter(|lived| lived.until > from.told) else {
            self.write(Piece { header, from, words, flags }, sink);
            sink.copy = Some(copy);
            return;
        };
        if used > 0 {
            self.write(Piece { header, from, words, flags: 0 }, sink);
        }
        let mut from = From { first: first + used, time, told: from.told };
        if left_out > 0 {
            let mut gap = compose::gap(gap::PAUSED, 0, 0, 0, left_out);
            self.write(Piece { header, from, words: &mut gap, flags: 0 }, sink);
            from.first += gap.len();
        }
        from.told = until;
        self.write(Piece { header, from, words: &mut [], flags }, sink);
        sink.copy = Some(copy);
    }

    /// Up to when a thread has lived since it told this time last, if that is later: it was seen to live until then. What it
    /// has called in a pause is not known, so that its frames are as the chunk tells up to there alone.
    fn lived(&self, header: &ChunkHeader, time: u64, seen: u64, sink: &Sink) -> Option<Lived> {
        let (outside, paused_at) = sink.page.pauses();
        let until = match header.apart {
            0 => seen,
            _ => seen.min(paused_at?),
        };
        let inside = self.segments[0].segment.pauses();
        let at = until.max(paused_at.unwrap_or(0));
        let paused = pauses::of_both(outside, inside, at).saturating_sub(header.left_out);
        let lived = until.checked_sub(time).filter(|&units| units > 0)?;
        Some(Lived { until, left_out: paused.min(lived) })
    }

    /// Whether it is known that the thread of a chunk lives, as long as it is not known to have ended; and all that it wrote
    /// before is written out.
    fn knows(&mut self, header: &ChunkHeader, place: Place) -> bool {
        let class = self.segments[place.segment].segment.class();
        self.knows_threads
            && self.threads.are_of(header.pid)
            && !matches!(class, Class::Arena { .. })
            && self.order.is_next(header.serial, header.sequence)
    }

    /// The thread of a chunk lives at this time, and goes on.
    pub(super) fn tell_time_of(&mut self, place: Place, now: u64, sink: &mut Sink) {
        let chunks = &self.segments[place.segment];
        if chunks.segment.states().nth(place.index) != Some(teeperf_wire::shared::state::TAKEN) {
            return;
        }
        let header = chunks.segment.header(place.index);
        if header.clock != sink.clock as u32 || !self.knows(&header, place) {
            return;
        }
        self.drain_part(place, sink);
        // Behind its words: it tells of pauses before it says that it did.
        let header = self.segments[place.segment].segment.header(place.index);
        let track = self.segments[place.segment].tracks[place.index];
        let is_same = track.owner() == (header.serial, header.sequence);
        let lived = self.lived(&header, track.time, now, sink).filter(|_| is_same);
        // Of a pause the thread itself will tell: no word can stand here before its own.
        let told = lived.map_or(0, |lived| lived.until - lived.left_out);
        if told > track.time.max(track.told) {
            self.segments[place.segment].tracks[place.index].told = told;
            let from = From { first: track.flushed, time: track.time, told };
            self.write(Piece { header, from, words: &mut [], flags: 0 }, sink);
        }
    }

    /// What a live thread has written so far.
    pub(super) fn drain_part(&mut self, place: Place, sink: &mut Sink) {
        let segment = &self.segments[place.segment].segment;
        if segment.states().nth(place.index) != Some(teeperf_wire::shared::state::TAKEN) {
            return;
        }
        let header = segment.header(place.index);
        if header.clock != sink.clock as u32 || !self.order.is_next(header.serial, header.sequence)
        {
            return;
        }
        let Some((header, from)) = self.look_at(place, Why::HandedOver, sink) else {
            return;
        };
        let first = from.first;
        if let Some(name) = self.names.news(header.serial, || self.threads.name(header.tid)) {
            self.write_name(&name, &header, sink);
        }
        let segment = &self.segments[place.segment].segment;
        if first >= segment.capacity() || segment.word(place.index, first) == 0 {
            return;
        }
        let Some(mut copy) = sink.copy.take() else { return };
        let words = segment.copy(place.index, first, &mut copy);
        let (used, time_behind) = items(words, from.time, sink.clock == ClockKind::Cycle);
        let words = &mut words[..used];
        let track = &mut self.segments[place.segment].tracks[place.index];
        track.flushed = first + used;
        track.time = time_behind;
        if used > 0 {
            self.write(Piece { header, from, words, flags: 0 }, sink);
        }
        sink.copy = Some(copy);
    }

    /// Header of a chunk, and from where on it is not written out. A
    /// chunk whose header makes no sense goes back at once.
    fn look_at(&mut self, place: Place, why: Why, sink: &mut Sink) -> Option<(ChunkHeader, From)> {
        let chunks = &mut self.segments[place.segment];
        let header = chunks.segment.header(place.index);
        if header.clock != sink.clock as u32 {
            let capacity = chunks.segment.capacity();
            if why != Why::Ending {
                self.refused += 1;
                self.give_back(place, capacity, sink);
            }
            return None;
        }
        let track = &mut chunks.tracks[place.index];
        track.is_about(&header);
        Some((header, From { first: track.flushed, time: track.time, told: track.told }))
    }

    /// Gives a chunk back to the process, and wakes those who sleep for one.
    fn give_back(&mut self, place: Place, words: usize, sink: &Sink) {
        let chunks = &mut self.segments[place.segment];
        chunks.tracks[place.index] = Default::default();
        chunks.segment.give_back(place.index, words);
        match chunks.segment.clock() {
            Some(clock) => return clock.progress(),
            None => sink.page.progress(),
        }
        let first = &self.segments[0].segment;
        first.wake();
        if self.pool.may_sleep(first.wanted()) {
            first.wake_sleepers();
        }
    }

    fn write(&mut self, piece: Piece<'_>, sink: &mut Sink) {
        let ChunkHeader { serial, sequence, .. } = piece.header;
        let From { first, time, told } = piece.from;
        let whole = piece.flags != 0;
        if sink.clock == ClockKind::Tick {
            catch_up(piece.words, time, told);
        }
        let header = chunk::Header {
            process: self.id,
            thread: serial,
            tid: piece.header.tid,
            sequence,
            first: first as u32,
            time: time.max(told),
            cpu_ns: piece.header.cpu_ns,
            stack: piece.header.stack,
            clock: sink.clock as u8,
            flags: piece.flags,
            ..chunk::Header::default()
        };
        let untimed = sink.encode(header, piece.words);
        // Times look like anything, so they are taken out first.
        let words = untimed.unwrap_or(piece.words);
        let survey = self.seen.mark(words);
        let mut points = BTreeSet::new();
        let told = if survey.telling { listen(words, &mut points) } else { Vec::new() };
        let points: Vec<u32> = points.into_iter().map(call).collect();
        self.seen.mark(&points);
        let events = survey.events as u64;
        sink.stats.threads.add((sequence == 1 && first == 0) as u64);
        for telling in told {
            self.tell(telling, &piece.header, sink);
        }
        if self.order.is_next(serial, sequence) {
            sink.write_encoded(events);
            if whole {
                let mut kept = Vec::new();
                self.order.written(serial, sequence, &mut kept);
                sink.write_kept(&mut kept);
            }
        } else {
            let mut out = Vec::new();
            self.order.keep(serial, sequence, sink.take_encoded(events), &mut out);
            sink.write_kept(&mut out);
        }
    }

    fn tell(&mut self, telling: Telling, header: &ChunkHeader, sink: &mut Sink) {
        match telling {
            Telling::Module(module) => self.open_window(module, sink),
            Telling::Name(name) => self.write_name(&name, header, sink),
            Telling::Loss(loss) => {
                sink.stats.lost.add(loss.events);
                sink.stats.waits.add(loss.waited as u64);
                sink.stats.waited.add(loss.units);
                if loss.stops && !std::mem::replace(&mut self.stopped, true) {
                    self.tell_stop(sink);
                }
            }
        }
    }

    fn tell_stop(&self, sink: &mut Sink) {
        let text = format!(
            "no memory was free for process {}: its recording ended there, as `--on-full stop` asks",
            self.pid
        );
        sink.notice(Level::Warning, text, Some(self.id));
    }

    fn write_name(&self, name: &[u8], header: &ChunkHeader, sink: &mut Sink) {
        let packet = Payload::default()
            .number(thread::PROCESS, self.id as u64)
            .number(thread::SERIAL, header.serial as u64)
            .number(thread::TID, header.tid as u64)
            .bytes(thread::NAME, name);
        sink.packet(kind::THREAD, &packet.finish());
    }

    fn open_window(&mut self, module: Module, sink: &mut Sink) {
        let process = self.id;
        let id = |module: &Module| WindowId { process, first_site: module.first_site };
        match self.windows.open(&module) {
            Opened::Known | Opened::StillTooMany => {}
            Opened::New { replaced } => {
                for old in &replaced {
                    sink.symbols.seen(id(old), self.seen.take_new(old));
                }
                self.seen.open(&module);
                sink.open(id(&module), self.pid, module);
            }
            Opened::TooMany => {
                let text = format!("process {} has more modules than are followed", self.pid);
                sink.notice(Level::Warning, text, Some(self.id));
            }
        }
    }
}

/// How many of these words are items to the last, and the time behind them.
fn items(words: &[u32], time: u64, cycle: bool) -> (usize, u64) {
    let mut walk = Walk::new(words, cycle);
    let time = walk.by_ref().fold(time, |time, item| time_after(time, &item));
    (walk.at(), time)
}

/// What a thread tells the recorder.
pub(crate) enum Telling {
    Module(Module),
    Name(Vec<u8>),
    Loss(escapes::Loss),
}

/// Most things heard of one chunk: a chunk has room for a thousand modules at most.
const MAX_TELLINGS: usize = 1024;

/// Reads the escapes that the recorder wants to know, and the sites of points and samples. The
/// words have no time words.
pub(crate) fn listen(words: &[u32], points: &mut BTreeSet<u32>) -> Vec<Telling> {
    let mut walk = Walk::new(words, false);
    let escapes = std::iter::from_fn(|| walk.next_escape());
    let tellings = escapes.filter_map(|(code, arg, payload)| match code {
        code::MODULE => Module::opened(payload).map(Telling::Module),
        code::NAME => Some(Telling::Name(escapes::name(payload))),
        code::GAP => Some(Telling::Loss(escapes::loss(arg, payload))),
        code::POINT | code::SAMPLE => {
            points.extend(payload.first().and_then(|&site| payload_value(site)));
            None
        }
        _ => None,
    });
    tellings.take(MAX_TELLINGS).collect()
}
