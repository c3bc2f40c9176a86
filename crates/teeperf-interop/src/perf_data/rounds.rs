//! Puts records in the order of time. perf writes what each processor's buffer has, one behind the other, and then says that a
//! round is finished: by then, nothing is to come that is earlier than the latest time of the round before.
//!
//! What waits is bounded: beyond [`MOST`] bytes the older half goes on, and what comes too late for its place goes
//! where it comes, and is counted.

use std::ops::Range;
use std::sync::Arc;

use super::block::{Block, Blocks, Place, Source};

/// Bytes that may be taken by what waits.
const MOST: usize = 64 << 20;
/// Bytes of records that are taken at once where there are no times to wait for.
const AT_ONCE: usize = 1 << 18;

/// What is told of one that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Nanoseconds; 0: before all others.
    pub(super) time: u64,
    /// Of the record in the file.
    pub(super) offset: u64,
    pub(super) kind: u32,
    pub(super) misc: u16,
    /// Of a sample: which event it is of, by its place in the list, and bytes that it takes in a packet.
    pub(super) event: u16,
    pub(super) length: u32,
}

/// See the module.
#[derive(Default)]
pub(super) struct Rounds {
    held: Vec<(Held, Place)>,
    blocks: Blocks,
    /// Bytes of records that wait.
    bytes: usize,
    /// So many of `held`, from its beginning, may go; `gone` of them went.
    ready: usize,
    gone: usize,
    /// Latest time that came.
    newest: u64,
    /// Up to here all has come, once the round that is under way is finished.
    complete: u64,
    /// Latest time that was let go.
    told: u64,
    /// How many came too late.
    pub(super) late: u64,
    /// Whether records have times: without, there is nothing to wait for.
    pub(super) is_timed: bool,
}

impl Rounds {
    /// Of records that have times, or of such that have none.
    pub(super) fn timed(is_timed: bool) -> Self {
        Self { is_timed, ..Self::default() }
    }

    /// Takes one.
    pub(super) fn hold(&mut self, held: Held, source: Source<'_>) {
        let time = held.time;
        let place = self.blocks.hold(source);
        self.bytes += place.len();
        if time > 0 {
            self.is_timed = true;
            self.late += u64::from(time < self.told);
            self.newest = self.newest.max(time);
        }
        self.held.push((held, place));
        if self.blocks.size() + self.held.len() * size_of::<(Held, Place)>() > MOST {
            self.let_go(|held| held.len().div_ceil(2));
        } else if !self.is_timed && self.bytes > AT_ONCE {
            self.let_go(<[_]>::len);
        }
    }

    /// A round is finished.
    pub(super) fn finish(&mut self) {
        let complete = self.complete;
        self.complete = self.newest;
        // What has no time waits for the first that has: that tells where the recording begins.
        if complete > 0 {
            self.let_go(|held| held.partition_point(|(one, _)| one.time <= complete));
        }
    }

    /// No more will come.
    pub(super) fn finish_all(&mut self) {
        self.let_go(<[_]>::len);
    }

    fn let_go(&mut self, how_many: impl Fn(&[(Held, Place)]) -> usize) {
        // Each processor's are in order, and so are those that stayed: runs, which this sort merges.
        self.held.sort_by_key(|(one, _)| one.time);
        self.ready = how_many(&self.held);
        let last = self.held[..self.ready].last().map_or(0, |(one, _)| one.time);
        self.told = self.told.max(last);
        self.blocks.close();
    }

    /// Nothing of what waits is mapped from here on.
    pub(super) fn unmap(&mut self) {
        self.blocks.unmap();
    }

    /// Whether some may go.
    pub(super) fn has_some(&self) -> bool {
        self.gone < self.ready
    }

    /// The earliest time of those that may go.
    pub(super) fn first_time(&self) -> Option<u64> {
        self.held[self.gone..self.ready].iter().map(|(one, _)| one.time).find(|&time| time > 0)
    }

    /// The next that may go, its block, and where in that it has its bytes; it stays the next.
    pub(super) fn peek(&self) -> Option<(Held, &Arc<Block>, Range<usize>)> {
        let (one, place) = self.held[..self.ready].get(self.gone)?;
        let (block, range) = self.blocks.get(*place)?;
        Some((*one, block, range))
    }

    /// The next has gone.
    pub(super) fn pop(&mut self) {
        let Some(&(_, place)) = self.held.get(self.gone) else { return };
        self.blocks.release(place);
        self.bytes -= place.len();
        self.gone += 1;
        if self.gone == self.ready {
            self.held.drain(..self.ready);
            (self.ready, self.gone) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::block::SIZE;
    use super::*;
    use proptest::prelude::*;

    fn drain(rounds: &mut Rounds, out: &mut Vec<(u64, u64)>) {
        while let Some((one, block, range)) = rounds.peek() {
            assert_eq!(block[range], one.offset.to_le_bytes(), "its own bytes");
            out.push((one.time, one.offset));
            rounds.pop();
        }
    }

    fn hold(rounds: &mut Rounds, time: u64, number: u64) {
        let held = Held { time, offset: number, kind: 9, ..Held::default() };
        let bytes = number.to_le_bytes();
        rounds.hold(held, Source::Bytes(&bytes));
    }

    proptest! {
        /// Rounds as perf writes them: what a round misses stands in the next, and is later than all of the one before.
        #[test]
        fn rounds_are_put_in_order(rounds in proptest::collection::vec(proptest::collection::vec(0u64..100, 0..20), 0..8)) {
            let (mut sorted, mut out, mut all) = (Rounds::default(), Vec::new(), Vec::new());
            for (round, times) in (1..).zip(&rounds) {
                for time in times {
                    // Overlaps the round before, and not the one before that.
                    let time = 50 * round + time;
                    hold(&mut sorted, time, all.len() as u64);
                    all.push((time, all.len() as u64));
                }
                sorted.finish();
                drain(&mut sorted, &mut out);
            }
            sorted.finish_all();
            drain(&mut sorted, &mut out);
            all.sort_by_key(|&(time, _)| time);
            prop_assert_eq!(out, all);
            prop_assert_eq!(sorted.late, 0);
        }
    }

    #[test]
    fn what_has_no_time_comes_first_and_in_order() {
        let (mut rounds, mut out) = (Rounds::default(), Vec::new());
        for (number, time) in [7, 0, 3, 0].into_iter().enumerate() {
            hold(&mut rounds, time, number as u64);
        }
        rounds.finish_all();
        assert_eq!(rounds.first_time(), Some(3));
        drain(&mut rounds, &mut out);
        assert_eq!(out, [(0, 1), (0, 3), (3, 2), (7, 0)]);
    }

    #[test]
    fn what_waits_is_bounded() {
        let (mut rounds, mut out) = (Rounds::default(), Vec::new());
        let mut most = 0;
        let count = 4 * MOST as u64 / 64;
        for number in 0..count {
            // Without rounds; each pair is the wrong way round.
            hold(&mut rounds, 10 + (number ^ 1), number);
            let held = rounds.held.capacity() * size_of::<(Held, Place)>();
            most = most.max(rounds.blocks.size() + held);
            drain(&mut rounds, &mut out);
        }
        rounds.finish_all();
        drain(&mut rounds, &mut out);
        assert!(most <= 3 * MOST, "{most}");
        assert_eq!(out.len() as u64, count);
        assert!(out.is_sorted());
        assert_eq!((rounds.blocks.size(), rounds.bytes), (0, 0));
        hold(&mut rounds, 5, 1);
        assert_eq!(rounds.late, 1);
    }

    #[test]
    fn one_that_waits_long_keeps_its_own_block_alone() {
        let (mut rounds, mut out) = (Rounds::default(), Vec::new());
        hold(&mut rounds, u64::MAX, 0);
        let count = 2 * MOST as u64 / 64;
        for number in 1..count {
            hold(&mut rounds, number, number);
            drain(&mut rounds, &mut out);
        }
        rounds.let_go(|held| held.len() - 1);
        drain(&mut rounds, &mut out);
        assert_eq!((out.len() as u64, rounds.blocks.size()), (count - 1, SIZE));
        assert!(out.is_sorted());
        rounds.finish_all();
        drain(&mut rounds, &mut out);
        assert_eq!((out.last(), rounds.late), (Some(&(u64::MAX, 0)), 0));
    }
}
