//! A host that does what it is told, and reads what was written.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use teeperf_wire::arena::{
    ALIGNMENT, MAGIC, OF_ARCS, OF_TREE, SEGMENT, head, item, items, piece, shape,
};
use teeperf_wire::shared::{OnFull, chunk, clock, segment, state};
use teeperf_wire::tree::{NODE, node};
use teeperf_wire::word::{self, Word, code};

/// Bytes on each side of the arena that nobody is to write.
const AROUND: usize = 4096;
const CANARY: u32 = 0xCA_0A_51_DE;

/// An arena, and what was drained from it.
pub(super) struct Host {
    start: *mut u8,
    length: usize,
    /// Words of chunks that were handed over, and their times, by their numbers.
    drained: std::cell::RefCell<BTreeMap<u32, (u64, Vec<u32>)>>,
    /// Calls in chunks of sums, and time.
    summed: std::cell::Cell<[u64; 2]>,
}

/// What a reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Event { address: usize, kind: u32 },
    Gap { reason: u32, events: u64, popped: u32, pushed: u32, units: u64 },
    Module { low: i64, sites: u32 },
}

impl Host {
    pub(super) fn new(length: usize, on_full: OnFull) -> Self {
        Self::with_cookie(length, on_full, 4711)
    }

    pub(super) fn with_cookie(length: usize, on_full: OnFull, cookie: u32) -> Self {
        let host = Self {
            start: memory(length),
            length,
            drained: BTreeMap::new().into(),
            summed: [0; 2].into(),
        };
        host.write(head::CLOCK, 1);
        host.write(head::ON_FULL, on_full as u32);
        host.write(head::COOKIE, cookie);
        host.write(head::HZ, 1000);
        host.write(head::MAGIC, MAGIC as u32);
        host.write(head::MAGIC + 4, (MAGIC >> 32) as u32);
        host
    }

    pub(super) fn base(&self) -> *mut u8 {
        self.start.wrapping_add(AROUND)
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    fn number(&self, offset: usize) -> &AtomicU32 {
        assert!(offset + 4 <= self.length + 2 * AROUND);
        // SAFETY: within the memory, which is aligned and only ever seen as atomics.
        unsafe { &*self.start.wrapping_add(offset).cast() }
    }

    pub(super) fn read(&self, offset: usize) -> u32 {
        self.number(AROUND + offset).load(SeqCst)
    }

    pub(super) fn write(&self, offset: usize, value: u32) {
        self.number(AROUND + offset).store(value, SeqCst);
    }

    pub(super) fn tick(&self, time: u64) {
        self.write(clock::TICK_HIGH, (time >> 32) as u32);
        self.write(clock::TICK, time as u32);
        self.write(clock::TICK_HIGH_AGAIN, (time >> 32) as u32);
    }

    /// The same memory at another address; at the old one nothing is to be touched any more.
    pub(super) fn move_elsewhere(&mut self) {
        let new = memory(self.length);
        let old = std::mem::replace(&mut self.start, new);
        // SAFETY: both were made by `memory` of this length, and nobody else has the old one.
        unsafe {
            std::ptr::copy_nonoverlapping(old, new, self.length + 2 * AROUND);
            dealloc(old, layout(self.length));
        }
    }

    /// Random words in random places, mostly those that steer.
    pub(super) fn scribble(&self, seed: u64) {
        let mut random = seed;
        for _ in 0..24 {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            let value = (random >> 33) as u32;
            let place = (random >> 20) as usize;
            let offset = match value % 4 {
                0 => place % 512,
                1 => SEGMENT + segment::STATES + place % 1024,
                2 => clock::CONTROL,
                _ => place % self.length,
            };
            // What makes it an arena stays more often than not: else nothing else would be tried.
            let offset = offset & !3;
            let keeps = offset < 24 && !value.is_multiple_of(64);
            let value = if value.is_multiple_of(5) { value % 4 } else { value.rotate_left(9) };
            if !keeps {
                self.write(offset, value);
            }
        }
    }

    pub(super) fn surroundings_are_whole(&self) -> bool {
        let mut places =
            (0..AROUND).chain(self.length + AROUND..self.length + 2 * AROUND).step_by(4);
        places.all(|offset| self.number(offset).load(SeqCst) == CANARY)
    }

    /// Events that no chunk speaks of.
    pub(super) fn untold(&self) -> u64 {
        let lines = (0..segment::LOSS_LINES).map(|line| {
            let at = SEGMENT + segment::LOSSES + line * segment::LOSS_LINE;
            u64::from(self.read(at)) | u64::from(self.read(at + 4)) << 32
        });
        lines.fold(0, u64::wrapping_add)
    }

    fn chunks(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let (size, chunks) = shape(self.length).unwrap();
        (0..chunks).map(move |index| (index, SEGMENT + segment::DATA + index * size, size))
    }

    pub(super) fn chunks_used(&self) -> usize {
        let state = |index| self.read(SEGMENT + segment::STATES + index * 4);
        self.chunks().filter(|&(index, ..)| state(index) != state::FREE).count()
    }

    /// Takes what was handed over.
    pub(super) fn drain(&self) {
        for (index, offset, size) in self.chunks() {
            let state = SEGMENT + segment::STATES + index * 4;
            if self.read(state) != state::FULL {
                continue;
            }
            match self.read(offset + chunk::CLOCK) {
                OF_TREE => {
                    let nodes = 0..self.read(offset + piece::COUNT);
                    self.add(offset, nodes.clone(), NODE, node::CALLS, 0);
                    self.add(offset, nodes, NODE, node::SELF, 1);
                }
                OF_ARCS => {
                    let (arcs, all) =
                        (self.read(offset + items::ARCS), self.read(offset + items::COUNT));
                    self.add(offset, 0..arcs, item::SIZE, item::COUNT, 0);
                    self.add(offset, arcs..all, item::SIZE, item::COUNT, 1);
                }
                _ => {
                    let (number, time, words) = self.copy(offset, size);
                    assert!(self.drained.borrow_mut().insert(number, (time, words)).is_none());
                }
            }
            // SAFETY: a chunk of the memory, which has been handed over.
            unsafe { self.base().add(offset).write_bytes(0, size) };
            self.write(state, state::FREE);
            self.write(clock::PROGRESS, self.read(clock::PROGRESS).wrapping_add(1));
        }
    }

    /// Nodes that were handed over and not drained.
    pub(super) fn nodes(&self) -> Vec<[u64; NODE / 8]> {
        let mut nodes = Vec::new();
        for (index, offset, _) in self.chunks() {
            let is_full = self.read(SEGMENT + segment::STATES + index * 4) == state::FULL;
            if !is_full || self.read(offset + chunk::CLOCK) != OF_TREE {
                continue;
            }
            let wide = |at| u64::from(self.read(at)) | u64::from(self.read(at + 4)) << 32;
            nodes.extend((0..self.read(offset + piece::COUNT) as usize).map(|node| {
                std::array::from_fn(|at| wide(offset + chunk::WORDS + node * NODE + at * 8))
            }));
        }
        nodes
    }

    /// Adds a field of some parts of a chunk of sums: to calls (0) or to time (1).
    fn add(&self, chunk: usize, parts: std::ops::Range<u32>, size: usize, field: usize, to: usize) {
        let mut summed = self.summed.get();
        for part in parts {
            let place = chunk + chunk::WORDS + part as usize * size;
            summed[to] += u64::from(self.read(place + field));
        }
        self.summed.set(summed);
    }

    /// Calls and time in the sums that were handed over.
    pub(super) fn summed(&self) -> [u64; 2] {
        self.drain();
        self.summed.get()
    }

    fn copy(&self, offset: usize, size: usize) -> (u32, u64, Vec<u32>) {
        let time = u64::from(self.read(offset + chunk::TIME))
            | u64::from(self.read(offset + chunk::TIME + 4)) << 32;
        let places = (offset + chunk::WORDS..offset + size).step_by(4);
        let words = places.map(|at| self.read(at)).take_while(|&word| word != 0).collect();
        (self.read(offset + chunk::SEQUENCE), time, words)
    }

    /// All that was written, each with its time.
    pub(super) fn seen(&self) -> Vec<(u64, Seen)> {
        let mut all = self.drained.borrow().clone();
        for (index, offset, size) in self.chunks() {
            if self.read(SEGMENT + segment::STATES + index * 4) != state::FREE {
                let (number, time, words) = self.copy(offset, size);
                assert!(all.insert(number, (time, words)).is_none(), "chunk {number} twice");
            }
        }
        let mut seen = Vec::new();
        for (time, words) in all.values() {
            read(*time, words, &mut seen);
        }
        seen
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: made by `memory`; whoever was attached writes no more.
        unsafe { dealloc(self.start, layout(self.length)) };
    }
}

fn layout(length: usize) -> Layout {
    Layout::from_size_align(length + 2 * AROUND, ALIGNMENT).unwrap()
}

fn memory(length: usize) -> *mut u8 {
    // SAFETY: the length is not 0.
    let start = unsafe { alloc_zeroed(layout(length)) };
    let canaries = [CANARY; AROUND / 4];
    for offset in [0, AROUND + length] {
        // SAFETY: within it, and aligned.
        unsafe { start.add(offset).cast::<[u32; AROUND / 4]>().write(canaries) };
    }
    start
}

/// The words of one chunk.
fn read(mut time: u64, words: &[u32], seen: &mut Vec<(u64, Seen)>) {
    let mut at = 0;
    let site = |site: u32| super::LOW + (site - word::FIRST_SITE) as usize % super::LENGTH;
    while let Some(&word) = words.get(at) {
        at += 1;
        let (code, arg) = match word::decode(word) {
            Word::Call { site: place } => {
                seen.push((time, Seen::Event { address: site(place), kind: 0 }));
                continue;
            }
            Word::Return { site: place } => {
                seen.push((time, Seen::Event { address: site(place), kind: 1 }));
                continue;
            }
            Word::Escape { code, arg } => (code, arg),
            Word::End | Word::Invalid => panic!("word {word:#x}"),
        };
        let count = match words.get(at).and_then(|&count| word::payload_value(count)) {
            Some(count) if word::has_payload(code) => count as usize,
            _ => 0,
        };
        let payload = words.get(at + 1..at + 1 + count).unwrap_or(&[]);
        if word::has_payload(code) && count > 0 {
            at += 1 + count;
        }
        let value = |at: usize| word::payload_value(payload[at]).unwrap();
        match code {
            code::TICK => time += u64::from(arg),
            code::STAMP => time = word::join(payload).unwrap(),
            code::FAR => {
                let address = word::join(payload).unwrap() as usize;
                seen.push((time, Seen::Event { address, kind: arg }));
            }
            code::GAP if payload.is_empty() => {
                let gap = Seen::Gap { reason: arg, events: 0, popped: 0, pushed: 0, units: 0 };
                seen.push((time, gap));
            }
            code::GAP => {
                let events = word::join(&payload[..2]).unwrap();
                let units = word::join(&payload[4..]).unwrap();
                let (popped, pushed) = (value(2), value(3));
                seen.push((time, Seen::Gap { reason: arg, events, popped, pushed, units }));
            }
            code::MODULE => {
                let low = word::join(&payload[3..6]).unwrap().cast_signed();
                seen.push((time, Seen::Module { low, sites: value(2) }));
            }
            code::PAD => {}
            other => panic!("escape {other}"),
        }
    }
}
