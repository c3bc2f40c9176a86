//! How long calls took, where that was asked for: the part of it that a [`Summary`](super::summary::Summary) tells.
//!
//! A call whose begin and return lie in one segment is timed there. For the others the summary has the times at
//! which its open frames began and its owed returns came; who puts it into its thread knows both ends. A call is timed
//! by its own return alone: one that a jump, an exception or a gap ended, or that is open at the end, has no length.

use std::collections::HashMap;

use super::counted::Counted;
use crate::lengths::Lengths;

/// See the module. Times are those of the clock; what gaps leave out is taken off where the summary is put in.
#[derive(Debug, Default)]
pub(crate) struct Timed {
    /// When the open frames of the present segment began, lowest first.
    begins: Vec<u64>,
    /// Number of its function, by node; [`NONE`] where it is not known yet.
    numbers: Vec<u32>,
    /// Number of a function by its word.
    known: HashMap<u32, u32>,
    /// Lengths of calls by function, with its word.
    pub(crate) functions: Vec<(u32, Lengths)>,
    /// When each owed return came.
    pub(crate) owed: Vec<u64>,
    /// When frames that segments left open began: of all segments, lowest first.
    pub(crate) opened: Vec<u64>,
    /// Of each segment: one behind its last in `opened`, and the time of what ended it.
    pub(crate) segments: Vec<(usize, u64)>,
    /// Calls that the counter times.
    pub(crate) counted: Counted,
}

const NONE: u32 = u32::MAX;

/// What is told of ordinary calls and returns.
pub(super) trait Watch {
    /// A call.
    fn enter(&mut self, now: u64);
    /// A return of the call on top, which is of this node and word.
    fn leave(&mut self, node: u32, word: u32, now: u64);
}

/// Nobody asks.
impl Watch for () {
    #[inline(always)]
    fn enter(&mut self, _: u64) {}
    #[inline(always)]
    fn leave(&mut self, _: u32, _: u32, _: u64) {}
}

impl Watch for Timed {
    #[inline(always)]
    fn enter(&mut self, now: u64) {
        self.begins.push(now);
    }

    #[inline(always)]
    fn leave(&mut self, node: u32, word: u32, now: u64) {
        let Some(begin) = self.begins.pop() else { return };
        // A return without the counter, of a call with it.
        if self.begins.len() < self.counted.top() as usize {
            self.counted.fall_to(self.begins.len() as u32);
        }
        let number = match self.numbers.get(node as usize) {
            Some(&number) if number != NONE => number,
            _ => self.number(node, word),
        };
        self.functions[number as usize].1.add(now.saturating_sub(begin));
    }
}

impl Timed {
    /// Frames above so many are gone, without a return of their own.
    pub(super) fn fall_to(&mut self, frames: u32) {
        self.begins.truncate(frames as usize);
        self.counted.fall_to(frames);
    }

    /// A return came of a frame below the segment.
    pub(super) fn owe(&mut self, now: u64) {
        self.owed.push(now);
    }

    /// The segment ends.
    pub(super) fn end_segment(&mut self, now: u64) {
        self.opened.append(&mut self.begins);
        self.segments.push((self.opened.len(), now));
    }

    /// Empties it, keeps what memory it can.
    pub(super) fn clear(&mut self) {
        self.begins.clear();
        self.numbers.clear();
        self.known.clear();
        self.functions.clear();
        self.owed.clear();
        self.opened.clear();
        self.segments.clear();
        self.counted.clear();
    }

    #[cold]
    fn number(&mut self, node: u32, word: u32) -> u32 {
        if self.numbers.len() <= node as usize {
            self.numbers.resize(node as usize + 1, NONE);
        }
        let functions = &mut self.functions;
        let number = *self.known.entry(word).or_insert_with(|| {
            functions.push((word, Lengths::default()));
            functions.len() as u32 - 1
        });
        self.numbers[node as usize] = number;
        number
    }
}
