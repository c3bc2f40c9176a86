//! Makes a [`Summary`] of consecutive chunks of a thread. Here is the innermost loop of
//! replay; everything that is not an ordinary call or return is in [`super::settle`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use teeperf_wire::body::chunk::{self, Header};
use teeperf_wire::shared::ClockKind;
use teeperf_wire::shared::chunk::STACK_NOT_TOLD;
use teeperf_wire::word::ESCAPE_BASE;

use super::summary::{Op, Place, Segment, Summary};
use super::timed::Watch;
use super::tree::Tree;
use crate::chunks::Decoder;

/// A summary with more nodes and segments than this is closed; the chunks that are left go
/// into another. Bounds memory for hostile recordings; others come nowhere near.
const FULL: usize = 1 << 17;

/// Not the index of any word: see [`State::quiet_to`].
const NOT_QUIET: usize = usize::MAX;

/// Makes summaries, one after another.
pub(crate) struct Summariser {
    decoder: Decoder,
    state: State,
    unit: Unit,
}

/// Length of the clock's unit, which the recording's start tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit(Arc<AtomicU64>);

impl Unit {
    /// The clock has so many units in a second.
    pub(super) fn of_rate(&self, hz: u64) {
        self.0.store(hz, Relaxed);
    }

    /// Nanoseconds; of a clock whose rate is not known, those of the usual one.
    pub(super) fn ns(&self) -> f64 {
        match self.0.load(Relaxed) {
            0 => 1000.0,
            hz => 1e9 / hz as f64,
        }
    }
}

/// A summary under way, and where in it we are.
pub(super) struct State {
    pub(super) summary: Summary,
    /// Node on top.
    pub(super) at: u32,
    /// Root of `at`.
    pub(super) root: u32,
    /// Latest time so far, clock units.
    pub(super) now: u64,
    /// Upper half of the time that was last given whole; the lower is 0.
    pub(super) high: u64,
    /// Id of the stack we are on; nothing when a jump may have changed it.
    pub(super) stack: Option<u64>,
    /// Clock units since the last event, as far as `quiet_to` says so.
    pub(super) recent: u64,
    /// Clock units before the segment's first event.
    pub(super) lead: u64,
    /// Whether the segment had no event up to word `quiet_to`.
    pub(super) leading: bool,
    /// There was no event since the last time word up to this index in the chunk's words.
    pub(super) quiet_to: usize,
    /// Words of this chunk that are no event.
    pub(super) other_words: u64,
    /// Marks of this segment: index in the summary's marks by key. Entries of earlier
    /// segments stay; they are known by an index below `segment_marks`.
    pub(super) marks: HashMap<u32, usize>,
    pub(super) segment_marks: usize,
    /// Addresses of far code in this summary.
    pub(super) far: HashMap<u64, u32>,
    /// What the counter was at the event that comes next.
    pub(super) counter: Option<u64>,
    /// Nanoseconds of a clock unit.
    pub(super) ns_per_unit: f64,
    started: bool,
    /// Whether calls are timed.
    is_timed: bool,
}

impl Summariser {
    /// A summariser, or what the system said when there was no memory for it.
    pub(crate) fn new() -> std::io::Result<Self> {
        Self::timing(false, Unit::default())
    }

    /// The same, which times calls or does not.
    pub(crate) fn timing(is_timed: bool, unit: Unit) -> std::io::Result<Self> {
        Ok(Self { decoder: Decoder::new()?, state: State { is_timed, ..State::new() }, unit })
    }

    /// Begins a summary, in the memory of an old one.
    pub(crate) fn begin(&mut self, recycled: Summary) {
        self.state.ns_per_unit = self.unit.ns();
        self.state.begin(recycled);
    }

    /// Adds a chunk; `offset` is that of its packet, for messages.
    pub(crate) fn add(&mut self, offset: u64, header: &Header, data: &[u8]) {
        self.state.start_chunk(offset, header);
        match self.decoder.words(header, data) {
            Ok((clock, words)) => self.state.run(clock, words, offset),
            Err(error) => {
                self.state.summary.lost += u64::from(header.count);
                self.state.summary.warnings.add(|| {
                    format!(
                        "chunk at offset {offset} (process {}, thread {}): {error}; {} words are lost",
                        header.process, header.thread, header.count
                    )
                });
                self.state.quiet_to = NOT_QUIET;
            }
        }
    }

    /// Adds words of a chunk, or of a part of one, that were decoded before.
    pub(crate) fn add_words(
        &mut self,
        offset: u64,
        header: &Header,
        clock: ClockKind,
        words: &[u32],
    ) {
        self.state.start_chunk(offset, header);
        self.state.run(clock, words, offset);
    }

    /// Whether the summary is as large as it may become.
    pub(crate) fn is_full(&self) -> bool {
        self.state.summary.tree.nodes().len() + self.state.summary.segments.len() > FULL
    }

    /// The summary.
    pub(crate) fn finish(&mut self) -> Summary {
        self.state.end_segment(Op::End, 0, 0);
        self.state.summary.end_time = self.state.now;
        std::mem::take(&mut self.state.summary)
    }
}

impl State {
    fn new() -> Self {
        Self {
            summary: Summary::default(),
            at: 0,
            root: 0,
            now: 0,
            high: 0,
            stack: None,
            recent: 0,
            lead: 0,
            leading: true,
            quiet_to: 0,
            other_words: 0,
            marks: HashMap::new(),
            segment_marks: 0,
            far: HashMap::new(),
            counter: None,
            ns_per_unit: 1.0,
            started: false,
            is_timed: false,
        }
    }

    fn begin(&mut self, recycled: Summary) {
        self.summary = recycled;
        self.summary.clear();
        if self.is_timed {
            self.summary.timed.get_or_insert_default();
        }
        self.marks.clear();
        self.far.clear();
        self.started = false;
        self.begin_segment(0);
    }

    fn begin_segment(&mut self, quiet_to: usize) {
        self.root = self.summary.tree.add_root();
        self.at = self.root;
        self.lead = 0;
        self.recent = 0;
        self.leading = true;
        self.quiet_to = quiet_to;
        self.segment_marks = self.summary.marks.len();
    }

    /// Closes the segment before word `at`; the next begins at word `next`.
    pub(super) fn end_segment(&mut self, op: Op, at: usize, next: usize) {
        let quiet = self.quiet_to == at;
        self.summary.segments.push(Segment {
            nodes_end: self.summary.tree.nodes().len() as u32,
            top: self.at,
            marks_end: self.summary.marks.len() as u32,
            eventful: !(self.leading && quiet),
            lead: self.lead,
            recent: if quiet { self.recent } else { 0 },
            op,
        });
        if let Some(timed) = &mut self.summary.timed {
            timed.end_segment(self.now);
            let frames = self.summary.tree.nodes()[self.at as usize].depth;
            timed.counted.end_segment(frames, self.counter);
        }
        if op != Op::End {
            self.begin_segment(next);
        }
    }

    fn start_chunk(&mut self, offset: u64, header: &Header) {
        let summary = &mut self.summary;
        let place = Place { sequence: header.sequence, word: header.first, whole: false };
        // A later piece of a chunk repeats what was so at the chunk's start.
        if header.cpu_ns != u64::MAX && header.first == 0 {
            summary.looked_at_cpu(header.time, header.cpu_ns);
            match place.is_first() {
                true => summary.sampled.begins(header.cpu_ns),
                false => summary.sampled.told(header.cpu_ns, self.ns_per_unit),
            }
        }
        // A later piece of a chunk repeats the stack of the chunk's start.
        let stack = (header.first == 0).then_some(header.stack);
        let stack = stack.filter(|&stack| stack != STACK_NOT_TOLD);
        if self.started {
            if let Some(missing) = summary.last_place.missing_before(place) {
                summary.warnings.add(|| {
                    format!(
                        "chunk at offset {offset} (process {}, thread {}): {missing}",
                        header.process, header.thread
                    )
                });
            }
            self.time_is(header.time, 0, 0);
            // As for the chunk that begins a summary.
            self.now = header.time;
            if let Some(stack) = stack
                && self.stack != Some(stack)
            {
                self.end_segment(Op::Resume(stack), 0, 0);
            }
            self.stack = stack.or(self.stack);
        } else {
            self.started = true;
            summary.offset = offset;
            summary.first_place = place;
            summary.begin_time = header.time;
            summary.begin_stack = stack;
            self.stack = stack;
            self.now = header.time;
        }
        self.high = high_half(header.time);
        self.summary.last_place = Place {
            sequence: header.sequence,
            word: header.first + header.count,
            whole: header.flags & chunk::WHOLE != 0,
        };
    }

    /// It is `time` now: what has passed goes to the function on top. `at` is the word that
    /// says so, `next` the one behind it. A time before the latest one moves nothing.
    pub(super) fn time_is(&mut self, time: u64, at: usize, next: usize) {
        let passed = time.saturating_sub(self.now);
        self.now = self.now.max(time);
        if self.quiet_to == at {
            self.recent = self.recent.saturating_add(passed);
        } else {
            self.recent = passed;
            self.leading = false;
        }
        self.quiet_to = next;
        // Of the root it is time of what is below.
        self.summary.sampled.passed(self.at, passed);
        if self.leading {
            self.lead = self.lead.saturating_add(passed);
        } else {
            self.charge(passed);
        }
    }

    #[inline(always)]
    pub(super) fn charge(&mut self, units: u64) {
        let node = &mut self.summary.tree.nodes_mut()[self.at as usize];
        node.time = node.time.wrapping_add(units);
    }

    /// Takes the words of a chunk.
    fn run(&mut self, clock: ClockKind, words: &[u32], offset: u64) {
        let words_of_event = match clock {
            ClockKind::Tick => 1,
            ClockKind::Cycle => 2,
        };
        self.other_words = 0;
        self.counter = None;
        let mut next = 0;
        while next < words.len() {
            let Self { at, now, high, leading, .. } = self;
            let tree = &mut self.summary.tree;
            next = match (clock, &mut self.summary.timed) {
                (ClockKind::Tick, None) => ordinary_ticks(tree, at, *now, words, next, &mut ()),
                (ClockKind::Tick, Some(timed)) => {
                    ordinary_ticks(tree, at, *now, words, next, timed)
                }
                (ClockKind::Cycle, _) if *leading => next,
                (ClockKind::Cycle, None) => {
                    ordinary_cycles(tree, at, now, *high, words, next, &mut ())
                }
                (ClockKind::Cycle, Some(timed)) => {
                    ordinary_cycles(tree, at, now, *high, words, next, timed)
                }
            };
            if next < words.len() {
                next = self.settle(clock, words, next, offset);
            }
        }
        self.quiet_to = if self.quiet_to == words.len() { 0 } else { NOT_QUIET };
        self.summary.events +=
            (words.len() as u64).saturating_sub(self.other_words) / words_of_event;
    }
}

/// Takes calls, and returns that match the top, from `words[next]` on. Gives the index of
/// the first word that is neither.
fn ordinary_ticks(
    tree: &mut Tree,
    at: &mut u32,
    now: u64,
    words: &[u32],
    mut next: usize,
    watch: &mut impl Watch,
) -> usize {
    let mut top = *at;
    while let Some(&word) = words.get(next) {
        if word >= ESCAPE_BASE || word == 0 {
            break;
        }
        if word & 1 == 0 {
            top = tree.child(top, word);
            tree.nodes_mut()[top as usize].calls += 1;
            watch.enter(now);
        } else {
            let node = tree.nodes()[top as usize];
            if node.word | 1 != word {
                break;
            }
            watch.leave(top, node.word, now);
            top = node.parent;
        }
        next += 1;
    }
    *at = top;
    next
}

/// As [`ordinary_ticks`], where a time word follows each event.
fn ordinary_cycles(
    tree: &mut Tree,
    at: &mut u32,
    now: &mut u64,
    high: u64,
    words: &[u32],
    mut next: usize,
    watch: &mut impl Watch,
) -> usize {
    let (mut top, mut time) = (*at, *now);
    while let Some(&[word, low]) = words.get(next..next + 2) {
        let node = &mut tree.nodes_mut()[top as usize];
        let is_return = word & 1 == 1;
        if word >= ESCAPE_BASE || word == 0 || (is_return && node.word | 1 != word) {
            break;
        }
        let event = event_time(time, high, low);
        node.time = node.time.wrapping_add(event - time);
        time = event;
        if is_return {
            let parent = node.parent;
            watch.leave(top, word & !1, time);
            top = parent;
        } else {
            top = tree.child(top, word);
            tree.nodes_mut()[top as usize].calls += 1;
            watch.enter(time);
        }
        next += 2;
    }
    (*at, *now) = (top, time);
    next
}

/// The time without its lower half.
pub(crate) fn high_half(time: u64) -> u64 {
    time & !u64::from(u32::MAX)
}

/// Time behind an event whose counter has the low half `low`, where the time before it is `now`. Where
/// the counter says that the event was earlier, a signal handler interrupted its hook, and its events
/// stand before it.
#[inline(always)]
pub(crate) fn event_time(now: u64, high: u64, low: u32) -> u64 {
    now.max(high | u64::from(low))
}
