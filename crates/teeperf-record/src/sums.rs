//! What threads of arenas have summed and hand over in chunks, with each call of a client: added up here until it is
//! written, so that recordings do not grow with every call.
//!
//! Believes nothing: what makes no sense is refused, and memory has a limit.

mod counts;
mod paths;

use crate::trees::{Growth, narrow};
use counts::Counts;
use paths::Paths;
use std::collections::{BTreeMap, HashSet};
use teeperf_wire::arena::{OF_TREE, item, items, piece};
use teeperf_wire::body::arcs::MAX_ITEMS;
use teeperf_wire::shared::chunk;
use teeperf_wire::tree::NODE;

/// See the module.
pub(crate) struct Sums {
    /// By serial.
    threads: BTreeMap<u32, Thread>,
    /// Paths, and pairs of places, of all.
    entries: usize,
    /// Most of these.
    most: usize,
    /// Chunks so far.
    chunks: u64,
    /// Serials that something was written of.
    written: HashSet<u32>,
}

/// Most call paths, and pairs of places, of one process: about 128 MiB.
pub(crate) const MOST_ENTRIES: usize = 1 << 20;
/// Most threads with sums at a time.
const MOST_THREADS: usize = 1 << 12;
/// Most threads that are known again.
const MOST_WRITTEN: usize = 1 << 16;

/// What became of a chunk.
pub(crate) struct Added {
    /// What had to be written to make room.
    pub(crate) growths: Vec<Growth>,
    /// Events that found none.
    pub(crate) lost: u64,
}

#[derive(Default)]
struct Thread {
    /// Number of its last chunk.
    last: u64,
    paths: Paths,
    counts: Counts,
}

impl Thread {
    fn size(&self) -> usize {
        self.paths.size() + self.counts.size()
    }
}

impl Default for Sums {
    fn default() -> Self {
        Self::of_most(MOST_ENTRIES)
    }
}

impl Sums {
    fn of_most(most: usize) -> Self {
        let (threads, written) = (BTreeMap::new(), HashSet::new());
        Self { threads, entries: 0, most, chunks: 0, written }
    }

    /// Adds a chunk of this kind; nothing when it makes no sense. `process` is the number of its process.
    pub(crate) fn add(&mut self, kind: u32, chunk: &[u64], process: u32) -> Option<Added> {
        let (head, data) = chunk.split_at_checked(chunk::WORDS / 8)?;
        let is_tree = kind == OF_TREE;
        let (count, size) = if is_tree {
            (narrow(head, piece::COUNT), NODE)
        } else {
            (narrow(head, items::COUNT), item::SIZE)
        };
        let first = narrow(head, piece::FIRST);
        let makes_sense = match is_tree {
            true => first.checked_add(count).is_some(),
            false => first <= count && count as usize <= MAX_ITEMS,
        };
        let data = data.get(..count as usize * (size / 8)).filter(|_| makes_sense)?;
        let serial = narrow(head, chunk::SERIAL);
        let mut growths = self.make_room(serial, count as usize, process);
        let thread = self.threads.entry(serial).or_default();
        self.chunks += 1;
        thread.last = self.chunks;
        let before = thread.size();
        let room = self.most.saturating_sub(self.entries);
        let mut lost = 0;
        if is_tree {
            lost = thread.paths.add(head, data, room);
        } else {
            if data.len() / (item::SIZE / 8) > room {
                growths.extend(thread.counts.take(process, serial));
            }
            thread.counts.add(head, data);
        }
        self.entries = self.entries - before + thread.size();
        Some(Added { growths, lost })
    }

    /// What all have grown by since this was asked last.
    pub(crate) fn take(&mut self, process: u32) -> Vec<Growth> {
        let serials: Vec<u32> = self.threads.keys().copied().collect();
        serials.into_iter().flat_map(|serial| self.take_of(serial, process)).collect()
    }

    fn take_of(&mut self, serial: u32, process: u32) -> Vec<Growth> {
        let Some(thread) = self.threads.get_mut(&serial) else { return Vec::new() };
        let before = thread.size();
        let mut growths: Vec<Growth> = thread.paths.take(process, serial).into_iter().collect();
        for growth in &mut growths {
            let has_room = self.written.len() < MOST_WRITTEN;
            growth.is_first = has_room && self.written.insert(serial);
        }
        growths.extend(thread.counts.take(process, serial));
        self.entries = self.entries - before + thread.size();
        growths
    }

    /// Where there is no room for so many more of a thread, writes and forgets the half of the others that were not
    /// heard of for longest: if they come again, so do all ancestors of what has grown.
    fn make_room(&mut self, serial: u32, count: usize, process: u32) -> Vec<Growth> {
        let is_full = self.entries.saturating_add(count) > self.most;
        let is_one_more = self.threads.len() >= MOST_THREADS && !self.threads.contains_key(&serial);
        if !is_full && !is_one_more {
            return Vec::new();
        }
        let others = self.threads.iter().filter(|&(&other, _)| other != serial);
        let mut others: Vec<(u64, u32)> =
            others.map(|(&other, thread)| (thread.last, other)).collect();
        others.sort_unstable();
        let mut growths = Vec::new();
        for &(_, other) in &others[..others.len().div_ceil(2)] {
            growths.extend(self.take_of(other, process));
            let thread = self.threads.remove(&other);
            self.entries -= thread.map_or(0, |thread| thread.size());
        }
        growths
    }
}

/// A span of time, if there was one, with another.
fn widened(span: Option<(u64, u64)>, begin: u64, end: u64) -> Option<(u64, u64)> {
    let (first, last) = span.unwrap_or((begin, end));
    Some((first.min(begin), last.max(end)))
}

#[cfg(test)]
mod tests;
