//! When a process needs room: chunks of its dead threads back, or a further segment. Up to
//! some megabytes the pool grows when the drain is behind, so that a drain that has to wait
//! for a processor does not stop the program; beyond that it grows with the number of threads
//! that hold a chunk, not with how fast they fill it. Trees, one for each thread, are made ahead of those who come.

use crate::segment::Class;
use std::time::{Duration, Instant};
use teeperf_wire::shared::{segment, state};

/// How many chunks of a class are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Census {
    all: usize,
    free: usize,
    taken: usize,
}

/// See the module. Does nothing itself.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    small: Census,
    large: Census,
    trees: Census,
    /// Bytes of one tree's memory, where there are trees and no large chunks.
    tree_bytes: Option<usize>,
    /// Bytes of chunks that are out of use for good.
    retired: usize,
    wanted: u32,
    wanted_at: Option<Instant>,
    swept_at: Option<Instant>,
    sweep_took: Duration,
    /// No memory could be made, or it has what it was lent.
    full_grown: bool,
    /// That it grows no more was told.
    told: bool,
}

/// Sweeps take at most one part in so many of the drain's time.
const SWEEP_SHARE: u32 = 8;
/// Longest time without a sweep.
const SWEEP_AT_LEAST: Duration = Duration::from_millis(500);
/// So often threads are looked for where that costs hardly anything: of one that has ended it is known that it lived
/// so long before. Such sweeps take at most one part in so many of the drain's time.
const SWEEP_OFTEN: Duration = Duration::from_millis(20);
const OFTEN_SHARE: u32 = 64;
/// After a thread found nothing free, so long it may be asleep.
const HUNGER: Duration = Duration::from_secs(2);
/// Bytes of large chunks up to which being behind is enough: what a thread fills in ten
/// milliseconds, some time slices of the system's scheduler.
const SPARE: usize = 16 << 20;
/// So many bytes of chunks that are out of use are made up for.
const MAX_RETIRED: usize = 256 << 20;
/// Most bytes of chunks of one process.
const MAX_BYTES: usize = 2 << 30;
/// Most bytes of trees of one process: 16 threads with the largest, 16,384 with those of 1 MiB. Of what no path
/// needs hardly any is in use.
const MAX_TREES: usize = 16 << 30;

/// Of what a process has all it may have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// Trees, for so many threads.
    Trees { threads: usize },
    /// Chunks, of which so much is out of use because signal handlers jumped out of hooks.
    Retired { mib: usize },
    /// Chunks.
    Chunks,
}

impl Pool {
    /// For a process whose threads have trees.
    pub(crate) fn with_trees(bytes: usize) -> Self {
        Self { tree_bytes: Some(bytes), ..Self::default() }
    }

    /// A new count begins.
    pub(crate) fn begin(&mut self) {
        self.small = Census::default();
        self.large = Census::default();
        self.trees = Census::default();
        self.retired = 0;
    }

    /// A chunk that is out of use as long as the process lives.
    pub(crate) fn count_retired(&mut self, class: Class) {
        let (chunk_size, _) = class.shape();
        self.retired += chunk_size;
    }

    /// A chunk, and its state.
    pub(crate) fn count(&mut self, class: Class, state: u32) {
        let Some(census) = self.census(class) else { return };
        census.all += 1;
        census.free += (state == state::FREE) as usize;
        census.taken += (state == state::TAKEN) as usize;
    }

    /// A segment was made behind the count.
    pub(crate) fn grew(&mut self, class: Class) {
        let (_, chunks) = class.shape();
        if let Some(census) = self.census(class) {
            census.all += chunks;
            census.free += chunks;
        }
    }

    /// A chunk or a tree of a thread that is gone was freed behind the count.
    pub(crate) fn took_back(&mut self, class: Class) {
        if let Some(census) = self.census(class) {
            census.free += 1;
            census.taken = census.taken.saturating_sub(1);
        }
    }

    fn census(&mut self, class: Class) -> Option<&mut Census> {
        match class {
            Class::Small => Some(&mut self.small),
            Class::Large => Some(&mut self.large),
            Class::Trees { .. } => Some(&mut self.trees),
            Class::OfHeir { chunk_size: segment::SMALL_CHUNK, .. } => Some(&mut self.small),
            Class::OfHeir { .. } => Some(&mut self.large),
            // It has what it was lent.
            Class::Arena { .. } => None,
        }
    }

    /// What the process's counter of hungry threads says.
    pub(crate) fn note_wanted(&mut self, wanted: u32, now: Instant) {
        // A thread says once that it is hungry, and may be for long where nothing is free.
        let nothing = self.small.free + self.large.free == 0
            || self.tree_bytes.is_some() && self.trees.free == 0;
        if wanted != self.wanted || nothing && self.wanted_at.is_some() {
            self.wanted = wanted;
            self.wanted_at = Some(now);
        }
    }

    /// Whether a thread may be asleep until a chunk is free; `wanted` is the process's counter
    /// as it stands behind the change that might wake one.
    pub(crate) fn may_sleep(&self, wanted: u32) -> bool {
        wanted != self.wanted || self.is_hungry(Instant::now())
    }

    fn is_hungry(&self, now: Instant) -> bool {
        self.wanted_at.is_some_and(|at| now.saturating_duration_since(at) < HUNGER)
    }

    /// Whether to look for dead threads.
    pub(crate) fn wants_sweep(&self, now: Instant) -> bool {
        let Some(last) = self.swept_at else { return true };
        let since = now.saturating_duration_since(last);
        let is_cheap = since >= SWEEP_OFTEN && since >= self.sweep_took * OFTEN_SHARE;
        since >= SWEEP_AT_LEAST
            || is_cheap
            || self.is_low() && since >= self.sweep_took * SWEEP_SHARE
    }

    /// Whether few of anything are left.
    pub(crate) fn is_low(&self) -> bool {
        self.small.is_low() || self.large.is_low() || self.trees.is_low()
    }

    /// A sweep was made.
    pub(crate) fn swept(&mut self, at: Instant, took: Duration) {
        self.swept_at = Some(at);
        self.sweep_took = took;
    }

    /// Which class needs a further segment, if the process may have one more than it has.
    pub(crate) fn wants_segment(&self, segments: usize, now: Instant) -> Option<Class> {
        let beyond = self.retired.saturating_sub(MAX_RETIRED);
        let is_behind =
            self.large.free == 0 && self.large.all * segment::LARGE_CHUNK + beyond < SPARE;
        let behind = (is_behind && self.tree_bytes.is_none()).then_some(Class::Large);
        // Trees, and what goes with them, before anybody needs them: who finds none may not be one that waits.
        let is_ahead = self.tree_bytes.is_some();
        let hungry = self.short_classes().filter(|_| is_ahead || self.is_hungry(now));
        behind.into_iter().chain(hungry).find(|&class| self.may_grow(class, segments))
    }

    fn may_grow(&self, class: Class, segments: usize) -> bool {
        !self.full_grown && segments < segment::MAX_SEGMENTS && self.has_room_for(class)
    }

    fn has_room_for(&self, class: Class) -> bool {
        if let Class::Trees { trees, .. } = class {
            return trees > 0;
        }
        let small = self.small.all * segment::SMALL_CHUNK;
        small + self.large.all * segment::LARGE_CHUNK + self.retired < MAX_BYTES
    }

    /// Those of which more are needed.
    fn short_classes(&self) -> impl Iterator<Item = Class> {
        let (is_small_short, last) = match self.tree_bytes {
            None => (self.small.is_short(), Some(Class::Large).filter(|_| self.large.is_short())),
            Some(bytes) => {
                // Each thread needs one of either. Many come at once, and each look of a thread for what is free
                // takes the longer, the more there is.
                let room = (MAX_TREES / bytes).saturating_sub(self.trees.all);
                let more = Class::more_trees(bytes, self.trees.all, room);
                (self.small.is_mostly_taken(), Some(more).filter(|_| self.trees.is_mostly_taken()))
            }
        };
        Some(Class::Small).filter(|_| is_small_short).into_iter().chain(last)
    }

    /// No further segment can be made, for a reason that was told.
    pub(crate) fn give_up_growing(&mut self) {
        self.full_grown = true;
        self.told = true;
    }

    /// Says once that threads need more than the process may have, and why it has no more.
    pub(crate) fn ends_growing(&mut self, segments: usize, now: Instant) -> Option<Full> {
        if self.told || !self.is_hungry(now) {
            return None;
        }
        let is_short = |class| match class {
            Class::Small => self.small.is_short(),
            Class::Large => self.large.is_short(),
            Class::Trees { .. } | Class::Arena { .. } | Class::OfHeir { .. } => {
                self.trees.is_short()
            }
        };
        let ends = |&class: &Class| is_short(class) && !self.may_grow(class, segments);
        let short = self.short_classes().find(ends)?;
        // What it has never becomes less.
        self.told = true;
        Some(match (short, self.retired) {
            (Class::Trees { .. }, _) if !self.has_room_for(short) => {
                Full::Trees { threads: self.trees.all }
            }
            (_, retired) if retired >> 20 > 0 => Full::Retired { mib: retired >> 20 },
            _ => Full::Chunks,
        })
    }
}

impl Census {
    /// Few are left: threads may have died with theirs.
    fn is_low(&self) -> bool {
        self.free * 4 < self.all
    }

    /// Threads hold more than are left, or there are none.
    fn is_mostly_taken(&self) -> bool {
        self.taken > self.free || self.all == 0
    }

    /// None is left, and that is not because the drain is behind: threads hold most, or all are out of use.
    fn is_short(&self) -> bool {
        self.free == 0 && self.taken * 2 >= self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(small: [usize; 3], large: [usize; 3]) -> Pool {
        let mut pool = Pool::default();
        pool.begin();
        for (class, counts) in [(Class::Small, small), (Class::Large, large)] {
            for (state, count) in [state::FREE, state::TAKEN, state::FULL].into_iter().zip(counts) {
                (0..count).for_each(|_| pool.count(class, state));
            }
        }
        pool.note_wanted(1, Instant::now());
        pool
    }

    fn wanted(small: [usize; 3], large: [usize; 3], segments: usize) -> Option<Class> {
        pool(small, large).wants_segment(segments, Instant::now())
    }

    #[test]
    fn it_grows_where_threads_hold_the_chunks() {
        assert_eq!(wanted([0, 256, 0], [64, 0, 0], 2), Some(Class::Small));
        assert_eq!(wanted([9, 247, 0], [0, 40, 24], 2), Some(Class::Large));
    }

    #[test]
    fn it_grows_a_little_because_the_drain_is_behind() {
        assert_eq!(wanted([200, 1, 0], [0, 2, 62], 2), Some(Class::Large));
        assert_eq!(wanted([200, 1, 0], [0, 2, 254], 5), None);
        let mut pool = Pool::default();
        (0..64).for_each(|_| pool.count(Class::Large, state::FULL));
        assert_eq!(pool.wants_segment(2, Instant::now()), Some(Class::Large));
    }

    #[test]
    fn it_makes_up_for_chunks_that_are_out_of_use_to_a_point() {
        let mut pool = pool([200, 1, 0], [0, 2, 190]);
        let now = Instant::now();
        for _ in 0..MAX_RETIRED / segment::LARGE_CHUNK {
            assert_eq!(pool.wants_segment(9, now), Some(Class::Large));
            pool.count_retired(Class::Large);
        }
        (0..64).for_each(|_| pool.count_retired(Class::Large));
        assert_eq!(pool.wants_segment(9, now), None);
        // Where nothing is left, threads have no other way to go on.
        pool.large = Census::default();
        assert_eq!(pool.wants_segment(9, now), Some(Class::Large));
    }

    #[test]
    fn it_does_not_grow_because_nobody_is_hungry() {
        let mut pool = pool([0, 256, 0], [64, 0, 0]);
        let later = Instant::now() + HUNGER * 2;
        assert_eq!(pool.wants_segment(2, later), None);
        assert!(pool.may_sleep(1) && pool.may_sleep(2));
        assert!(!Pool::default().may_sleep(0));
        pool.note_wanted(2, later);
        assert_eq!(pool.wants_segment(2, later), Some(Class::Small));
    }

    #[test]
    fn hunger_lasts_while_nothing_at_all_is_free() {
        let mut pool = pool([0, 256, 0], [0, 256, 0]);
        let mut now = Instant::now();
        for _ in 0..5 {
            now += HUNGER / 2;
            pool.note_wanted(1, now);
        }
        assert_eq!(pool.wants_segment(2, now), Some(Class::Small));
    }

    #[test]
    fn it_has_an_end() {
        assert_eq!(wanted([0, 256, 0], [0; 3], segment::MAX_SEGMENTS), None);
        assert_eq!(wanted([0; 3], [0, MAX_BYTES / segment::LARGE_CHUNK, 0], 9), None);
    }

    #[test]
    fn its_end_is_told_once_and_only_where_threads_need_more() {
        let now = Instant::now();
        let told = |pool: &mut Pool, segments| pool.ends_growing(segments, now);
        assert_eq!(told(&mut pool([0, 256, 0], [64, 0, 0]), 9), None, "it may grow");
        assert_eq!(told(&mut pool([9, 247, 0], [64, 0, 0]), segment::MAX_SEGMENTS), None);
        let mut full = pool([0, 256, 0], [0, 64, 0]);
        (0..3).for_each(|_| full.count_retired(Class::Large));
        assert_eq!(told(&mut full, segment::MAX_SEGMENTS), Some(Full::Chunks));
        assert_eq!(told(&mut full, segment::MAX_SEGMENTS), None);
        let mut worn = pool([0, 256, 0], [0, 64, 0]);
        (0..64).for_each(|_| worn.count_retired(Class::Large));
        assert_eq!(told(&mut worn, segment::MAX_SEGMENTS), Some(Full::Retired { mib: 4 }));
        let mut failed = pool([0, 256, 0], [64, 0, 0]);
        failed.give_up_growing();
        assert_eq!(told(&mut failed, 9), None, "that was told with its reason");
    }

    /// With so many trees and small chunks in these states, and a hungry thread.
    fn pool_of_trees(bytes: usize, trees: [usize; 2], small: [usize; 2]) -> Pool {
        let mut pool = Pool::with_trees(bytes);
        pool.begin();
        for (class, counts) in [(Class::first_trees(bytes), trees), (Class::Small, small)] {
            for (state, count) in [state::FREE, state::TAKEN].into_iter().zip(counts) {
                (0..count).for_each(|_| pool.count(class, state));
            }
        }
        pool.note_wanted(1, Instant::now());
        pool
    }

    /// All that is made in one round; how many segments there are then.
    fn grow(pool: &mut Pool) -> (Vec<Class>, usize) {
        let mut made = Vec::new();
        while let Some(class) = pool.wants_segment(2 + made.len(), Instant::now()) {
            pool.grew(class);
            made.push(class);
        }
        let segments = 2 + made.len();
        (made, segments)
    }

    #[test]
    fn the_largest_trees_are_for_sixteen_threads() {
        let now = Instant::now();
        let bytes = segment::MAX_TREE;
        for (has, trees) in [(0, 4), (4, 4), (8, 8)] {
            let mut pool = pool_of_trees(bytes, [0, has], [9, 0]);
            assert_eq!(pool.ends_growing(9, now), None);
            assert_eq!(grow(&mut pool).0, [Class::Trees { bytes, trees }]);
        }
        assert_eq!(pool_of_trees(bytes, [1, 15], [9, 0]).ends_growing(9, now), None, "one is free");
        let mut pool = pool_of_trees(bytes, [0, 16], [9, 0]);
        assert_eq!(pool.wants_segment(9, now), None);
        assert_eq!(pool.ends_growing(9, now), Some(Full::Trees { threads: 16 }));
        assert_eq!(pool.ends_growing(9, now), None);
        // Others have trees, and wait for chunks.
        pool.small = Census { all: 256, free: 0, taken: 256 };
        assert_eq!(pool.wants_segment(9, now), Some(Class::Small));
    }

    #[test]
    fn all_memory_of_trees_can_be_had_whatever_their_size() {
        for bytes in [4 << 10, 64 << 10, 1 << 20, 3 << 20, 8 << 20, 1 << 30] {
            let mut pool = pool_of_trees(bytes, [0; 2], [256, 0]);
            let mut segments = 2;
            for round in 0.. {
                assert!(round < 40, "{bytes}: {} trees", pool.trees.all);
                while let Some(class) = pool.wants_segment(segments, Instant::now()) {
                    pool.grew(class);
                    segments += 1;
                }
                if pool.trees.free == 0 {
                    break;
                }
                for census in [&mut pool.trees, &mut pool.small] {
                    (census.free, census.taken) = (0, census.all);
                }
            }
            let most = MAX_TREES / bytes;
            let enough = if bytes < 1 << 20 { 200_000 } else { most };
            assert!((enough..=most).contains(&pool.trees.all), "{bytes}: {}", pool.trees.all);
            let threads = pool.trees.all;
            let told = if threads == most { Full::Trees { threads } } else { Full::Chunks };
            assert_eq!(pool.ends_growing(segments, Instant::now()), Some(told));
        }
    }

    #[test]
    fn a_round_makes_as_many_trees_and_chunks_again_as_threads_hold() {
        let mut pool = pool_of_trees(1 << 20, [0, 1000], [0, 1000]);
        let (made, _) = grow(&mut pool);
        assert_eq!(made.iter().filter(|&&class| class == Class::Small).count(), 4);
        assert_eq!((pool.trees.free, pool.small.free), (1024, 1024));
        let mut few = pool_of_trees(1 << 20, [0, 16], [240, 16]);
        assert_eq!(grow(&mut few).0, [Class::Trees { bytes: 1 << 20, trees: 16 }]);
    }

    #[test]
    fn what_a_sweep_took_back_need_not_be_made() {
        let mut pool = pool_of_trees(1 << 20, [0, 16], [240, 16]);
        for _ in 0..8 {
            assert!(pool.wants_segment(2, Instant::now()).is_some());
            pool.took_back(Class::first_trees(1 << 20));
        }
        assert_eq!(pool.wants_segment(2, Instant::now()), None);
    }

    #[test]
    fn sweeps_come_when_room_is_low_but_not_too_often() {
        let mut pool = pool([9, 247, 0], [64, 0, 0]);
        let now = Instant::now();
        assert!(pool.wants_sweep(now));
        pool.swept(now, Duration::from_millis(1));
        assert!(!pool.wants_sweep(now + Duration::from_millis(7)));
        assert!(pool.wants_sweep(now + Duration::from_millis(8)));
    }

    #[test]
    fn where_room_is_left_sweeps_come_as_often_as_they_are_cheap() {
        let now = Instant::now();
        for (took, often) in [(Duration::ZERO, 20), (Duration::from_millis(1), 64)] {
            let mut pool = pool([247, 9, 0], [64, 0, 0]);
            pool.swept(now, took);
            assert!(!pool.wants_sweep(now + Duration::from_millis(often - 1)));
            assert!(pool.wants_sweep(now + Duration::from_millis(often)));
        }
    }
}
