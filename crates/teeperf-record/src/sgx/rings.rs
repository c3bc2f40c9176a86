//! Threads' rings of samples ([`teeperf_aex::threads`]), emptied.
//!
//! The program that is sampled can write to this memory what it likes. So what comes out is looked at sample by sample: shape, event,
//! thread; the process is known better than it says. What is no sample is counted, and the rest of what was taken with it left.

use std::sync::atomic::Ordering::Relaxed;
use teeperf_aex::context::REGISTERS;
use teeperf_aex::layout::Registers;
use teeperf_aex::sampler::event;
use teeperf_aex::state::{MOST_CHAIN, MOST_STACK};
use teeperf_aex::threads::{Head, Threads};
use teeperf_wire::body::sample::Sample;

/// A process's rings.
#[derive(Debug)]
pub(crate) struct Rings {
    threads: Threads,
    process: u32,
    places: Vec<Place>,
    /// As much as a ring has.
    room: Vec<u8>,
    counts: Counts,
}

/// What is known of a place since its thread was first seen.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    thread: Option<u32>,
    lost: u64,
    reads: u64,
    words: u64,
}

/// What came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Samples inside enclaves, inside those that cannot be read, and outside.
    pub(crate) inside: u64,
    pub(crate) unreadable: u64,
    pub(crate) outside: u64,
    /// Samples that found no room.
    pub(crate) lost: u64,
    /// Times that something was there which is no sample.
    pub(crate) nonsense: u64,
    /// Threads that found no place.
    pub(crate) left_out: u64,
    /// Reads of enclaves' memory, and words of eight bytes in them.
    pub(crate) reads: u64,
    pub(crate) words: u64,
}

impl Counts {
    /// Adds those of another process.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { inside, unreadable, outside, lost, nonsense, left_out, reads, words } = other;
        for (sum, count) in [
            (&mut self.inside, inside),
            (&mut self.unreadable, unreadable),
            (&mut self.outside, outside),
            (&mut self.lost, lost),
            (&mut self.nonsense, nonsense),
            (&mut self.left_out, left_out),
            (&mut self.reads, reads),
            (&mut self.words, words),
        ] {
            *sum = sum.saturating_add(*count);
        }
    }
}

/// What is found, in the order of each thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Found<'a> {
    /// A thread is sampled from here on.
    Began(u32),
    Sample(Sample<'a>),
    /// So many samples of any thread found no room since the last time.
    Lost(u64),
    /// It is not any more.
    Ended(u32),
}

impl Rings {
    /// Of the process with this id. The memory of the threads is there as long as this is.
    pub(crate) fn new(threads: Threads, capacity: usize, process: u32) -> Self {
        let places = vec![Place::default(); threads.places()];
        Self { threads, process, places, room: vec![0; capacity], counts: Counts::default() }
    }

    /// Takes what there is. Gives places whose threads have ended to others.
    pub(crate) fn drain(&mut self, give: &mut impl FnMut(Found<'_>)) {
        let lost = self.counts.lost;
        for number in 0..self.places.len() {
            if self.places[number].thread.is_none() && !self.threads.has_begun(number) {
                continue;
            }
            let Some(head) = self.threads.head(number) else { return };
            // Before the samples: of a thread that has ended by now all are there.
            let occupant = head.occupant();
            let (place, thread) = (&mut self.places[number], occupant.map(|(thread, _)| thread));
            if let Some(before) = place.thread
                && thread != place.thread
            {
                // The program itself wrote there.
                self.counts.nonsense += 1;
                give(Found::Ended(before));
                *place = Place::default();
            }
            let Some((thread, has_ended)) = occupant else { continue };
            if place.thread.is_none() {
                place.thread = Some(thread);
                give(Found::Began(thread));
            }
            take(&self.threads, number, &mut self.room, &mut self.counts, &mut |sample| {
                let is_its = sample.tid == thread;
                if is_its {
                    give(Found::Sample(Sample { pid: self.process, ..sample }));
                }
                is_its
            });
            place.count(
                head,
                self.threads.ring(number).map_or(0, |ring| ring.lost()),
                &mut self.counts,
            );
            if has_ended {
                give(Found::Ended(thread));
                *place = Place::default();
                self.threads.free(number);
            }
        }
        if self.counts.lost > lost {
            give(Found::Lost(self.counts.lost - lost));
        }
        self.counts.left_out = self.threads.left_out();
    }

    /// Threads that have a place.
    pub(crate) fn threads(&self) -> impl Iterator<Item = u32> {
        self.places.iter().filter_map(|place| place.thread)
    }

    /// Those of which this says that they are not there any more have ended, though they did not say so.
    pub(crate) fn give_up(&self, mut is_gone: impl FnMut(u32) -> bool) {
        for (number, place) in self.places.iter().enumerate() {
            if let Some(thread) = place.thread.filter(|&thread| is_gone(thread)) {
                self.threads.give_up(number, thread);
            }
        }
    }

    /// All that came out so far.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }
}

/// Takes what a place's ring has, as far as it is samples which `give` takes.
fn take(
    threads: &Threads,
    place: usize,
    room: &mut [u8],
    counts: &mut Counts,
    give: &mut dyn FnMut(Sample<'_>) -> bool,
) {
    let Some(length) = threads.ring(place).and_then(|ring| ring.take(room)) else {
        counts.nonsense += 1;
        return;
    };
    let mut rest = &room[..length];
    while !rest.is_empty() {
        let decoded = Sample::decode(rest).filter(|(sample, _)| is_ours(sample));
        let Some((sample, behind)) = decoded.filter(|&(sample, _)| give(sample)) else {
            counts.nonsense += 1;
            return;
        };
        match sample.event {
            event::INSIDE => counts.inside += 1,
            event::UNREADABLE => counts.unreadable += 1,
            _ => counts.outside += 1,
        }
        rest = behind;
    }
}

/// Whether a sample has the parts that the sampler gives it, and no more of them.
fn is_ours(sample: &Sample<'_>) -> bool {
    matches!(sample.event, event::INSIDE | event::UNREADABLE | event::OUTSIDE)
        && (sample.mask == 0 || sample.mask == REGISTERS)
        && sample.branches.is_empty()
        && sample.chain.len() <= MOST_CHAIN
        && sample.stack.len() <= MOST_STACK
        && (!sample.outer.is_there() || is_hosts(sample))
}

/// Whether what it has of a host is of that kind.
fn is_hosts(sample: &Sample<'_>) -> bool {
    sample.event != event::OUTSIDE
        && sample.outer.mask == Registers::HOST
        && sample.outer.stack.len() <= MOST_STACK
}

impl Place {
    /// Adds what the place's counters moved by. Those that go back are the program's doing.
    fn count(&mut self, head: &Head, lost: u64, counts: &mut Counts) {
        let (reads, words) = (head.reads.load(Relaxed), head.words.load(Relaxed));
        for (known, now, sum) in [
            (&mut self.lost, lost, &mut counts.lost),
            (&mut self.reads, reads, &mut counts.reads),
            (&mut self.words, words, &mut counts.words),
        ] {
            *sum = sum.saturating_add(now.saturating_sub(*known));
            *known = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{SEAL_SIZE, SharedMemory};
    use std::sync::atomic::AtomicU64;
    use teeperf_aex::debug_read::MemoryFile;
    use teeperf_aex::enclaves::Enclaves;
    use teeperf_aex::sampler::{Clock, Sampler, Settings};
    use teeperf_aex::state::Wanted;
    use teeperf_wire::body::sample::{Numbers, Outer, SAMPLE_HEADER};

    const CAPACITY: usize = 16384;

    /// The program's side, and the recorder's.
    struct Both {
        memory: SharedMemory,
        sampler: Sampler<MemoryFile>,
        rings: Rings,
    }

    fn both() -> Both {
        let memory =
            SharedMemory::create(c"rings", Threads::bytes(2, CAPACITY), SEAL_SIZE).unwrap();
        // SAFETY: the memory outlives both.
        let threads = || unsafe { Threads::new(memory.start(), 2, CAPACITY) };
        let settings = Settings {
            clock: Clock::Processor,
            period_ns: 1,
            is_constant: false,
            has_enclaves: true,
            wanted: Wanted::Chain,
            signal: 0,
            process: 0,
        };
        let (enclaves, file) = (Enclaves::new(), MemoryFile::of_this_process().unwrap());
        let sampler = Sampler { enclaves, memory: file, threads: threads(), settings };
        let rings = Rings::new(threads(), CAPACITY, 7);
        Both { memory, sampler, rings }
    }

    impl Both {
        /// The place of a thread that begins.
        fn begin(&self, thread: u32) -> Option<usize> {
            self.sampler.threads.begin(thread).map(|(place, _)| place)
        }

        fn push(&self, place: usize, parts: &[&[u8]]) -> bool {
            self.sampler.threads.ring(place).unwrap().push(parts)
        }

        /// As `Found`s are, in short.
        fn drained(&mut self) -> Vec<(char, u64)> {
            let mut found = Vec::new();
            self.rings.drain(&mut |what| {
                found.push(match what {
                    Found::Began(thread) => ('b', thread.into()),
                    Found::Sample(sample) => {
                        assert_eq!(sample.pid, 7);
                        ('s', sample.ip)
                    }
                    Found::Lost(count) => ('l', count),
                    Found::Ended(thread) => ('e', thread.into()),
                });
            });
            found
        }
    }

    fn sample(tid: u32, ip: u64) -> Sample<'static> {
        Sample { event: event::OUTSIDE, tid, ip, pid: 99, ..Sample::default() }
    }

    #[test]
    fn samples_come_out_and_places_of_ended_threads_are_free_again() {
        let mut both = both();
        // SAFETY: no pointers are involved.
        let own = unsafe { libc::gettid() }.cast_unsigned();
        let place = both.begin(own).unwrap();
        let other = both.begin(own + 1).unwrap();
        assert_eq!(both.begin(own + 2), None);
        for ip in [10, 11] {
            assert!(both.push(place, &[&sample(own, ip).head()]));
        }
        let inside = Sample { event: event::INSIDE, ..sample(own + 1, 12) };
        both.push(other, &[&inside.head()]);
        both.sampler.threads.head(other).unwrap().reads.store(3, Relaxed);
        let mut found = both.drained();
        found.sort_unstable();
        let (own, next) = (u64::from(own), u64::from(own) + 1);
        assert_eq!(found, [('b', own), ('b', next), ('s', 10), ('s', 11), ('s', 12)]);
        // What was written before its end is there, and counted once.
        both.push(place, &[&sample(own as u32, 13).head()]);
        both.sampler.thread_ends();
        assert_eq!(both.drained(), [('s', 13), ('e', own)]);
        assert_eq!(both.drained(), []);
        assert!(both.begin(own as u32 + 2).is_some());
        both.rings.give_up(|thread| thread == next as u32);
        assert_eq!(both.drained().iter().filter(|found| **found == ('e', next)).count(), 1);
        let expected = Counts { inside: 1, outside: 3, reads: 3, left_out: 1, ..Counts::default() };
        assert_eq!(both.rings.counts(), expected);
    }

    #[test]
    fn what_found_no_room_is_told() {
        let mut both = both();
        let place = both.begin(5).unwrap();
        let fit = CAPACITY / SAMPLE_HEADER;
        for ip in 0..fit as u64 + 3 {
            both.push(place, &[&sample(5, ip).head()]);
        }
        let found = both.drained();
        assert_eq!((found.len(), found.last()), (fit + 2, Some(&('l', 3))));
        assert_eq!(both.drained(), []);
        assert_eq!(both.rings.counts().lost, 3);
    }

    #[test]
    fn what_is_no_sample_is_counted_and_what_comes_later_is_read() {
        let mut both = both();
        let place = both.begin(5).unwrap();
        let registers = Sample { mask: 1 << 60, ..sample(5, 1) };
        for wrong in [
            sample(6, 1),
            Sample { event: 4, ..sample(5, 1) },
            Sample { event: 0, ..sample(5, 1) },
            registers,
        ] {
            both.push(place, &[&sample(5, 20).head(), &wrong.head(), &[1; 8]]);
            let found = both.drained();
            assert_eq!(found.iter().filter(|(what, _)| *what == 's').count(), 1, "{wrong:?}");
        }
        let long = [7; MOST_STACK + 8];
        let deep = Sample { chain: Numbers::of(&long[..8 * MOST_CHAIN + 8]), ..sample(5, 1) };
        let wide = Sample { stack: &long, ..sample(5, 1) };
        for wrong in [deep, wide] {
            both.push(place, &[&wrong.head(), wrong.chain.bytes(), wrong.stack]);
            assert_eq!(both.drained(), []);
        }
        let host = Outer {
            mask: Registers::HOST,
            registers: Numbers::of(&long[..24]),
            stack: &long[..40],
        };
        let inside = Sample { event: event::INSIDE, outer: host, ..sample(5, 22) };
        both.push(place, &inside.parts(&inside.heads()));
        assert_eq!(both.drained(), [('s', 22)]);
        let one = Outer { mask: 1 << 8, registers: Numbers::of(&long[..8]), ..host };
        for wrong in [
            Sample { event: event::OUTSIDE, ..inside },
            Sample { outer: one, ..inside },
            Sample { outer: Outer { stack: &long, ..host }, ..inside },
        ] {
            both.push(place, &wrong.parts(&wrong.heads()));
            assert_eq!(both.drained(), []);
        }
        both.push(place, &[&[1; 100]]);
        both.push(place, &[&sample(5, 20).head()[..40]]);
        both.drained();
        both.push(place, &[&sample(5, 21).head()]);
        assert_eq!(both.drained(), [('s', 21)]);
        assert_eq!(both.rings.counts().nonsense, 10);
    }

    #[test]
    fn any_bytes_end() {
        let mut both = both();
        let length = both.memory.length();
        let mut random = 7u64;
        for _ in 0..500 {
            for wide in both.memory.wides(0, length) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let small = [random, random % 2048, 0][random as usize % 3];
                AtomicU64::store(wide, small, Relaxed);
            }
            both.drained();
        }
        assert!(both.rings.counts().nonsense > 100);
    }
}
