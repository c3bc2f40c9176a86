//! What a batch of consecutive chunks of one thread did, told without knowing what its
//! stack was when the batch began, so that batches can be summarised at once by many
//! workers and put together afterwards in order.
//!
//! A summary is a row of [`Segment`]s. Within a segment everything is settled among the
//! frames that the segment itself opened, but for the returns it **owes**: those that came
//! when none of its own frames was open. After `k` of them the segment's calls hang below
//! whatever is then on top, so a segment is a forest with one root for each of these
//! levels. What cannot be settled like this (a return that matches none of the segment's
//! open frames, a jump to a mark set earlier, a stack switch, a gap) ends the segment as
//! its [`Op`], and the next one begins above an unknown stack again.

use std::collections::HashMap;

use super::hits::Sampled;
use super::mended::MendedWords;
use super::points::Point;
use super::timed::Timed;
use super::tree::Tree;
use super::waits::Waits;
use crate::names::Window;
use crate::warnings::Warnings;

/// A look of a thread at its CPU time: when it began a chunk, or at a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuLook {
    /// What the recording's clock said.
    pub(crate) time: u64,
    /// CPU time, nanoseconds.
    pub(crate) cpu_ns: u64,
}

/// What ends a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Nothing: the batch ends.
    End,
    /// A return, with this word, that matches no frame of the segment.
    Return(u32),
    /// Depth falls to that of this mark.
    Jump(u32),
    /// Frames above the topmost of this call word are gone.
    Catch(u32),
    /// See [`crate::escape::Gap`].
    Gap(crate::escape::Gap),
    /// See [`crate::escape::Escape::Switch`].
    Switch {
        /// Id of the stack left, [`teeperf_wire::word::ABANDONED`] when it will not run again.
        left: u64,
        /// Id of the stack entered.
        entered: u64,
    },
    /// The stack of this id begins anew.
    StackNew(u64),
    /// The thread is on this stack from here on: a chunk began on it, and no switch was seen, or a word says so.
    Resume(u64),
    /// The filter of this number holds from here on.
    Filter(u32),
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// One behind its last node; its first is behind the last of the segment before.
    pub(crate) nodes_end: u32,
    /// Node on top at its end.
    pub(crate) top: u32,
    /// One behind its last mark, likewise.
    pub(crate) marks_end: u32,
    /// Whether it has events at all.
    pub(crate) eventful: bool,
    /// Clock units that passed before its first event.
    pub(crate) lead: u64,
    /// Clock units that passed after its last event; they are in the top's time already.
    pub(crate) recent: u64,
    /// What ends it.
    pub(crate) op: Op,
}

/// Depth remembered: that of a node, above the ground of its root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// Its number.
    pub(crate) key: u32,
    /// Node on top when it was set.
    pub(crate) node: u32,
    /// Root of that node.
    pub(crate) root: u32,
}

/// Place of a chunk or a piece of one among those of its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the chunk.
    pub(crate) sequence: u32,
    /// Words of it before this place.
    pub(crate) word: u32,
    /// The chunk is whole: the next one has the next number.
    pub(crate) whole: bool,
}

impl Place {
    /// That behind which a piece begins here.
    pub(crate) fn before(sequence: u32, word: u32) -> Self {
        match word {
            0 => Self { sequence: sequence.wrapping_sub(1), word: 0, whole: true },
            word => Self { sequence, word, whole: false },
        }
    }

    /// Number of the chunk, and word in it, where the next piece begins.
    pub(crate) fn next(&self) -> (u32, u32) {
        if self.whole { (self.sequence.wrapping_add(1), 0) } else { (self.sequence, self.word) }
    }

    /// Whether a thread begins here.
    pub(crate) fn is_first(&self) -> bool {
        self.sequence <= 1 && self.word == 0
    }

    /// What is missing when, after `self`, a piece begins at `next`: a text, or nothing.
    pub(crate) fn missing_before(&self, next: Place) -> Option<String> {
        let same = next.sequence == self.sequence && next.word == self.word && !self.whole;
        let following = next.sequence == self.sequence.wrapping_add(1) && next.word == 0;
        if same || following {
            return None;
        }
        Some(format!(
            "chunk {} from word {} follows chunk {} up to word {}",
            next.sequence, next.word, self.sequence, self.word
        ))
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Forest of all segments.
    pub(crate) tree: Tree,
    /// In order; the last one's op is [`Op::End`].
    pub(crate) segments: Vec<Segment>,
    /// Words of the returns owed, of all segments: one for each root but a segment's first.
    pub(crate) owed: Vec<u32>,
    /// Marks of all segments.
    pub(crate) marks: Vec<Mark>,
    /// Addresses of code outside every window; nodes name them by their index here.
    pub(crate) far: Vec<u64>,
    /// Windows seen to open or to be retired.
    pub(crate) windows: Vec<Window>,
    /// Waits of async functions, by the words of their calls.
    pub(crate) waits: HashMap<u32, Waits>,
    /// Points on the time line.
    pub(crate) points: Vec<Point>,
    /// Last name that the thread gave itself.
    pub(crate) name: Option<String>,
    /// Time at the first chunk's start.
    pub(crate) begin_time: u64,
    /// Stack at the first chunk's start; nothing when a piece of a chunk that began before comes
    /// first, whose header does not say what stack it is on.
    pub(crate) begin_stack: Option<u64>,
    /// Time at the end.
    pub(crate) end_time: u64,
    /// The first and the last look at the thread's CPU time.
    pub(crate) cpu: Option<(CpuLook, CpuLook)>,
    /// Where the first chunk begins.
    pub(crate) first_place: Place,
    /// Where the last chunk ends.
    pub(crate) last_place: Place,
    /// Offset of the first chunk in the recording.
    pub(crate) offset: u64,
    /// Calls and returns.
    pub(crate) events: u64,
    /// Holes, and words of chunks that could not be decoded.
    pub(crate) lost: u64,
    /// Frames skipped within segments, by the words of their calls.
    pub(crate) mended: MendedWords,
    /// What was wrong with the chunks.
    pub(crate) warnings: Warnings,
    /// How long calls took, where that was asked for.
    pub(crate) timed: Option<Timed>,
    /// Samples that the thread's timer wrote.
    pub(crate) sampled: Sampled,
}

impl Summary {
    /// The thread's CPU time at a time of the clock.
    pub(super) fn looked_at_cpu(&mut self, time: u64, cpu_ns: u64) {
        let look = CpuLook { time, cpu_ns };
        self.cpu = Some((self.cpu.map_or(look, |(first, _)| first), look));
    }

    /// Empties it, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.tree.clear();
        self.segments.clear();
        self.owed.clear();
        self.marks.clear();
        self.far.clear();
        if let Some(timed) = &mut self.timed {
            timed.clear();
        }
        self.sampled.clear();
        *self = Self {
            tree: std::mem::take(&mut self.tree),
            segments: std::mem::take(&mut self.segments),
            owed: std::mem::take(&mut self.owed),
            marks: std::mem::take(&mut self.marks),
            far: std::mem::take(&mut self.far),
            timed: self.timed.take(),
            sampled: std::mem::take(&mut self.sampled),
            ..Self::default()
        };
    }
}
