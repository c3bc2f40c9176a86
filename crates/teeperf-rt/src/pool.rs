//! The segments of shared memory that chunks come from, and how a chunk is taken.
//!
//! Addresses and sizes are kept here, privately; of shared memory only the state of a
//! chunk is believed, and only as far as to try to take it. Segments are mapped once and stay
//! mapped as long as the process lives: a hook that was interrupted may still write there.

use crate::platform::{self, Mask};
use crate::process;
use crate::sandbox;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use teeperf_wire::shared::{MAGIC, segment, state, wanted};

/// Where the mapped segments are. A segment counts when its address is set, which is last.
static SEGMENTS: [Segment; segment::MAX_SEGMENTS] =
    [const { Segment::none() }; segment::MAX_SEGMENTS];
/// Segments mapped.
static MAPPED: AtomicUsize = AtomicUsize::new(0);
/// Whether a thread is mapping the next one.
static MAPPING: AtomicBool = AtomicBool::new(false);
/// How many segments were announced when asking for the next one failed: it is not asked for
/// again before that changes.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

struct Segment {
    address: AtomicUsize,
    chunk_size: AtomicUsize,
    chunks: AtomicUsize,
    /// Its chunks are trees' memory.
    of_trees: AtomicBool,
    /// One bit for each of the first chunks that has been used: its pages are there.
    used: AtomicU64,
}

impl Segment {
    const fn none() -> Self {
        Self {
            address: AtomicUsize::new(0),
            chunk_size: AtomicUsize::new(0),
            chunks: AtomicUsize::new(0),
            of_trees: AtomicBool::new(false),
            used: AtomicU64::new(0),
        }
    }
}

impl Segment {
    /// Whether it has chunks of this size; nothing: trees.
    fn holds(&self, chunk_size: Option<usize>) -> bool {
        let of_trees = self.of_trees.load(Relaxed);
        chunk_size.map_or(of_trees, |size| !of_trees && self.chunk_size.load(Relaxed) == size)
    }
}

/// A chunk that the calling thread took.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    /// First byte: [`teeperf_wire::shared::chunk`].
    pub(crate) start: *mut u8,
    /// Bytes.
    pub(crate) size: usize,
    /// Its state.
    pub(crate) state: &'static AtomicU32,
}

/// Bytes of a segment of this shape, if there can be one.
pub(crate) fn size_of(chunk_size: usize, chunks: usize, of_trees: bool) -> Option<usize> {
    if of_trees {
        segment::size_of_trees(chunk_size, chunks)
    } else {
        segment::size(chunk_size, chunks)
    }
}

/// Takes a mapped segment, checked to be of this size, into use. Nothing when the table is full
/// or the memory says that it is something else.
pub(crate) fn add(address: usize, chunk_size: usize, chunks: usize, of_trees: bool) -> Option<()> {
    // SAFETY: a segment's first page is mapped there.
    let magic = unsafe { (address as *const u64).read_volatile() };
    (magic == MAGIC).then_some(())?;
    enter(address, chunk_size, chunks, of_trees)
}

/// As [`add`], of memory that is known to be a segment.
pub(crate) fn enter(
    address: usize,
    chunk_size: usize,
    chunks: usize,
    of_trees: bool,
) -> Option<()> {
    let index = MAPPED.load(Relaxed);
    let segment = SEGMENTS.get(index)?;
    segment.chunk_size.store(chunk_size, Relaxed);
    segment.chunks.store(chunks, Relaxed);
    segment.of_trees.store(of_trees, Relaxed);
    segment.used.store(0, Relaxed);
    segment.address.store(address, Release);
    MAPPED.store(index + 1, Release);
    Some(())
}

/// Forgets the segments of the parent, in the child of a fork; what is left of the parent's
/// hooks writes into private memory from here on.
pub(crate) fn forget() {
    // One may have been about to be counted.
    let seen = MAPPED.load(Relaxed) + 1;
    for segment in SEGMENTS.iter().take(seen) {
        let address = segment.address.swap(0, Relaxed);
        let size = size_of(
            segment.chunk_size.load(Relaxed),
            segment.chunks.load(Relaxed),
            segment.of_trees.load(Relaxed),
        );
        if let (1.., Some(size)) = (address, size) {
            platform::cut_off(address, size);
        }
    }
    MAPPED.store(0, Relaxed);
    MAPPING.store(false, Relaxed);
    REFUSED.store(0, Relaxed);
}

/// A free chunk, if there is one: of this size. A small one where
/// there is none of the large ones at all; a large one in place of a small one at any time. A
/// thread that waits for a large chunk is not given a small one, which would only have it wait
/// again soon. `start` says where the search begins, so that threads do not all reach for the
/// same chunk.
pub(crate) fn take(large: bool, start: usize) -> Option<Taken> {
    let size = if large { segment::LARGE_CHUNK } else { segment::SMALL_CHUNK };
    if let Some(taken) = search(Some(size), start) {
        return Some(taken);
    }
    let other = if large { segment::SMALL_CHUNK } else { segment::LARGE_CHUNK };
    if large && segments().any(|(_, segment)| segment.holds(Some(size))) {
        return None;
    }
    search(Some(other), start)
}

/// Memory for a tree, if there is some.
pub(crate) fn take_tree(start: usize) -> Option<Taken> {
    search(None, start)
}

/// Address of each mapped segment, and the segment.
fn segments() -> impl Iterator<Item = (usize, &'static Segment)> {
    let mapped = SEGMENTS.iter().take(MAPPED.load(Acquire));
    mapped.map(|segment| (segment.address.load(Acquire), segment)).filter(|found| found.0 != 0)
}

/// Among chunks of this size, or trees.
fn search(chunk_size: Option<usize>, start: usize) -> Option<Taken> {
    for (address, segment) in segments() {
        if !segment.holds(chunk_size) {
            continue;
        }
        let size = segment.chunk_size.load(Relaxed);
        let chunks = segment.chunks.load(Relaxed);
        for at in 0..chunks {
            let index = (start + at) % chunks;
            // SAFETY: `chunks` is at most `MAX_CHUNKS`, so the state lies in the segment's first
            // page, which stays mapped.
            let state = unsafe { &*((address + segment::STATES + index * 4) as *const AtomicU32) };
            if state::take(state) {
                let start = (address + segment::DATA + index * size) as *mut u8;
                return Some(Taken { start, size, state });
            }
        }
    }
    None
}

/// Has the pages of a large chunk mapped at once when it is begun for the first time: sixteen
/// page faults in the midst of a program's hooks cost more, and at a worse time.
pub(crate) fn prepare(start: usize) {
    let size = segment::LARGE_CHUNK;
    for (address, segment) in segments() {
        let index = start.wrapping_sub(address + segment::DATA) / size;
        let is_here = index < segment.chunks.load(Relaxed);
        if !is_here || !segment.holds(Some(size)) {
            continue;
        }
        let bit = 1u64.checked_shl(index as u32).unwrap_or(0);
        if segment.used.fetch_or(bit, Relaxed) & bit != bit {
            platform::populate(start, size);
        }
    }
}

/// How many segments are mapped.
pub(crate) fn mapped() -> usize {
    MAPPED.load(Acquire)
}

/// Maps all segments that the recorder has announced.
pub(crate) fn map_announced() {
    while map_next() {}
}

/// Maps the next segment that the recorder has announced; says whether there is a new one.
/// One thread at a time; the others go on with what there is.
fn map_next() -> bool {
    let mapped = MAPPED.load(Acquire);
    let announced = first_page(segment::SEGMENTS).map_or(0, |count| count.load(Acquire) as usize);
    if mapped >= announced.min(segment::MAX_SEGMENTS) || announced == REFUSED.load(Relaxed) {
        return false;
    }
    // A handler that jumped out of it would leave it undone for ever.
    let _mask = Mask::patient();
    if MAPPING.swap(true, Acquire) {
        return false;
    }
    let is_new =
        MAPPED.load(Acquire) != mapped || process::ask_for_segment(mapped as u32).is_some();
    if !is_new {
        REFUSED.store(announced, Relaxed);
    }
    MAPPING.store(false, Release);
    is_new
}

/// Tells the recorder that a thread found nothing free. A thread that means to sleep looks once more
/// behind this.
pub(crate) fn want() {
    if let Some(count) = first_page(segment::WANTED) {
        wanted::say(count);
    }
}

/// Counts events of the thread with this serial that are left out, or takes off what was said of
/// them, by a negative number.
pub(crate) fn count_losses(serial: u32, events: i64) {
    let line = serial as usize % segment::LOSS_LINES;
    if let Some(count) = first_page_wide(segment::LOSSES + line * segment::LOSS_LINE) {
        count.fetch_add(events as u64, Relaxed);
    }
}

/// Heeds what the recorder has seen of filters of system calls.
pub(crate) fn heed_filters() {
    if let Some(filters) = first_page(segment::FILTERS) {
        sandbox::heed(filters.load(Acquire));
    }
}

/// Tells the recorder of time in pauses that the program made.
pub(crate) fn tell_pauses(word: u64) {
    if let Some(pauses) = first_page_wide(segment::PAUSES) {
        pauses.store(word, Release);
    }
}

/// The word that moves, and is woken, when chunks were freed.
pub(crate) fn wake_word() -> Option<&'static AtomicU32> {
    first_page(segment::WAKE)
}

fn first_page_wide(offset: usize) -> Option<&'static AtomicU64> {
    let address = SEGMENTS[0].address.load(Acquire);
    // SAFETY: as below; the offset is one of eight bytes, and aligned to them.
    (address != 0).then(|| unsafe { &*((address + offset) as *const AtomicU64) })
}

fn first_page(offset: usize) -> Option<&'static AtomicU32> {
    let address = SEGMENTS[0].address.load(Acquire);
    // SAFETY: the offset is one of a segment's first page, which stays mapped.
    (address != 0).then(|| unsafe { &*((address + offset) as *const AtomicU32) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_wire::shared::chunk;

    /// A thread that found nothing free is seen by a recorder that has just freed a chunk, unless it
    /// finds that chunk.
    #[test]
    fn who_wants_a_chunk_is_seen_or_sees_it() {
        const ROUNDS: usize = if cfg!(miri) { 100 } else { 1000 };
        for round in 0..ROUNDS {
            let (count, state) = (AtomicU32::new(0), AtomicU32::new(state::TAKEN));
            let (finds, sees) = std::thread::scope(|scope| {
                let thread = scope.spawn(|| {
                    wanted::say(&count);
                    state::take(&state)
                });
                state::give_back(&state);
                let sees = wanted::look(&count) > 0;
                (thread.join().unwrap(), sees)
            });
            assert!(finds || sees, "round {round}");
        }
    }

    /// Four threads take, write, check and hand over; a fifth checks, zeroes and frees. Whoever has a
    /// chunk has it alone: words are written as if nobody else could, so that Miri finds a change of
    /// hands that does not order them.
    #[test]
    fn a_chunk_has_one_owner_at_a_time() {
        const CHUNKS: usize = 6;
        // Miri is some thousand times slower, and looks at every access.
        const ROUNDS: usize = if cfg!(miri) { 5 } else { 3_000 };
        let size = segment::size(segment::SMALL_CHUNK, CHUNKS).unwrap();
        let memory = vec![0u64; size / 8 + segment::DATA / 8].leak();
        let start = (memory.as_mut_ptr() as usize).next_multiple_of(segment::DATA);
        // SAFETY: the first word of the memory above.
        unsafe { (start as *mut u64).write(MAGIC) };
        add(start, segment::SMALL_CHUNK, CHUNKS, false).unwrap();
        let ended = AtomicBool::new(false);
        let exchange = |chunk: *mut u8, at: usize, word: u32| {
            // SAFETY: within the memory above, which is never freed, in a chunk that nobody else has.
            unsafe { chunk.add(chunk::WORDS + 4 * at).cast::<u32>().replace(word) }
        };
        let mut drained = 0;
        std::thread::scope(|scope| {
            let writers: Vec<_> = (1..=4u32)
                .map(|id| {
                    scope.spawn(move || {
                        let mut done = 0;
                        while done < ROUNDS {
                            let Some(taken) = take(false, id as usize) else {
                                std::thread::yield_now();
                                continue;
                            };
                            for at in 0..8 {
                                assert_eq!(exchange(taken.start, at, id), 0);
                            }
                            state::hand_over(taken.state);
                            done += 1;
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                while !ended.load(Acquire) {
                    for index in 0..CHUNKS {
                        let state = start + segment::STATES + 4 * index;
                        // SAFETY: as above.
                        let state = unsafe { &*(state as *const AtomicU32) };
                        if state::look(state) != state::FULL {
                            continue;
                        }
                        let chunk =
                            (start + segment::DATA + index * segment::SMALL_CHUNK) as *mut u8;
                        let id = exchange(chunk, 0, 0);
                        for at in 1..8 {
                            assert_eq!(exchange(chunk, at, 0), id);
                        }
                        state::give_back(state);
                        drained += 1;
                    }
                    std::thread::yield_now();
                }
            });
            for writer in writers {
                writer.join().unwrap();
            }
            while search(Some(segment::SMALL_CHUNK), 0).is_some() {}
            ended.store(true, Release);
        });
        assert!(drained >= 4 * ROUNDS - CHUNKS, "{drained} chunks came through");
    }
}
