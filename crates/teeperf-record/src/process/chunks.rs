//! What the drain remembers of each chunk, and which chunks belong to the dead.

use crate::liveness::Census;
use crate::segment::Segment;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use teeperf_wire::arena::{OF_SUMS, OF_TREE, piece};
use teeperf_wire::shared::{ChunkHeader, chunk};

/// A segment and its chunks.
pub(crate) struct Chunks {
    pub(crate) segment: Arc<Segment>,
    pub(crate) tracks: Vec<Track>,
}

impl Chunks {
    pub(crate) fn new(segment: Arc<Segment>) -> Self {
        let tracks = vec![Track::default(); segment.chunks()];
        Self { segment, tracks }
    }
}

/// Where a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) segment: usize,
    pub(crate) index: usize,
}

/// What is remembered of a chunk from one look to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Track {
    /// Thread and number of the chunk that the rest is about.
    owner: (u32, u32),
    /// Words that were written out already.
    pub(crate) flushed: usize,
    /// Absolute time behind them.
    pub(crate) time: u64,
    /// A later time, up to which the recording says that the thread lived; 0: none.
    pub(crate) told: u64,
    /// When its thread was last seen to live; 0: never.
    pub(crate) alive: u64,
    /// When it was first seen to be gone.
    pub(crate) gone: Option<Instant>,
    /// Handed over with a word missing.
    pub(crate) hole: Option<Hole>,
    /// Written out with a hole, and not to be given back.
    pub(crate) retired: bool,
}

/// A word that is missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    pub(crate) at: usize,
    pub(crate) since: Instant,
}

impl Track {
    /// Thread and number of the chunk.
    pub(crate) fn owner(&self) -> (u32, u32) {
        self.owner
    }

    /// Forgets what was about another chunk at the same place.
    pub(crate) fn is_about(&mut self, header: &ChunkHeader) {
        let owner = (header.serial, header.sequence);
        if self.owner != owner {
            *self = Self { owner, time: header.time, ..Self::default() };
        }
    }
}

/// Which of a thread's chunks comes first: they have numbers, but for pieces of trees, of which callers come first.
pub(super) fn turn(header: &ChunkHeader) -> (u64, u64, u32) {
    match header.clock {
        // Their end, their tree, and the index of their first node.
        OF_TREE => (header.time, header.cpu_ns, header.stack as u32),
        _ => (header.sequence.into(), 0, 0),
    }
}

const _: () = assert!(piece::END == chunk::TIME && piece::FIRST == chunk::STACK);
const _: () = assert!(piece::BEGAN == chunk::CPU_NS);

/// A chunk that a thread holds: header, place and state.
pub(crate) type Held = (ChunkHeader, Place, u32);

/// Those whose threads are gone, in the order of threads and chunks; the others stay. A thread id with a
/// newer thread in the same process is one whose older threads are gone; what stands in an arena says nothing of
/// chunks elsewhere, and sums are of no thread of their own.
pub(crate) fn of_the_dead(
    held: &mut Vec<Held>,
    census: &Census,
    is_arena: impl Fn(usize) -> bool,
) -> Vec<Held> {
    held.sort_unstable_by_key(|(header, place, _)| (header.serial, header.sequence, *place));
    let thread = |header: &ChunkHeader, place: &Place| {
        (header.tid, Some(place.segment).filter(|&segment| is_arena(segment)))
    };
    let mut newest = HashMap::new();
    for (header, place, _) in held.iter().filter(|held| held.0.serial & OF_SUMS == 0) {
        newest.insert(thread(header, place), header.serial);
    }
    let is_dead = |(header, place, _): &Held| {
        let newest = newest.get(&thread(header, place));
        let is_replaced = newest.is_some_and(|&newest| newest > header.serial);
        is_replaced || !census.is_alive(header.tid)
    };
    let (dead, living) = std::mem::take(held).into_iter().partition(is_dead);
    *held = living;
    dead
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(tid: u32, serial: u32, sequence: u32, index: usize) -> Held {
        let header = ChunkHeader { tid, serial, sequence, ..ChunkHeader::default() };
        (header, Place { segment: 0, index }, 1)
    }

    #[test]
    fn the_dead_are_those_not_living_and_those_replaced() {
        let mut all = vec![held(7, 9, 1, 0), held(7, 3, 2, 1), held(7, 3, 1, 2), held(8, 4, 1, 3)];
        let census = Census::Living([7].into());
        let dead = of_the_dead(&mut all, &census, |_| false);
        let places = |of: &[Held]| of.iter().map(|held| held.1.index).collect::<Vec<_>>();
        assert_eq!((places(&dead), places(&all)), (vec![2, 1, 3], vec![0]));
    }

    #[test]
    fn sums_and_other_arenas_end_nobody() {
        let census = Census::Living([7].into());
        let own = held(7, 3, 5, 0);
        let (sums, mut elsewhere) = (held(7, 3 | OF_SUMS, 0, 1), held(7, 9, 1, 0));
        elsewhere.1.segment = 1;
        let dead = of_the_dead(&mut vec![own, sums, elsewhere], &census, |_| true);
        assert!(dead.is_empty(), "{dead:?}");
        let nobody = Census::Living([8].into());
        assert_eq!(of_the_dead(&mut vec![own, sums, elsewhere], &nobody, |_| true).len(), 3);
    }

    #[test]
    fn callers_come_before_those_they_call() {
        let piece = |time, began, first: u64| ChunkHeader {
            time,
            cpu_ns: began,
            stack: 63 << 32 | first,
            clock: OF_TREE,
            ..ChunkHeader::default()
        };
        let mut pieces =
            [piece(7, 2, 63), piece(8, 1, 0), piece(7, 1, 0), piece(7, 2, 0), piece(7, 1, 63)];
        pieces.sort_by_key(turn);
        let sorted = [(7, 1, 0), (7, 1, 63), (7, 2, 0), (7, 2, 63), (8, 1, 0)];
        assert_eq!(pieces.map(|header| turn(&header)), sorted);
        assert!(turn(&held(1, 1, 2, 0).0) < turn(&held(1, 1, 3, 0).0));
    }

    #[test]
    fn a_track_is_about_one_chunk() {
        let (mut track, first) = (Track::default(), held(1, 1, 1, 0).0);
        track.is_about(&first);
        track.flushed = 5;
        track.is_about(&first);
        assert_eq!(track.flushed, 5);
        track.is_about(&ChunkHeader { sequence: 2, time: 9, ..first });
        assert_eq!((track.flushed, track.time), (0, 9));
    }
}
