//! Gathers chunks by thread into batches, so that a worker has enough to do at once and
//! little of a tree is made twice. Which chunks make a batch follows from the recording
//! alone, never from how fast anybody works, so replay gives the same result every time.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use teeperf_wire::body::chunk::Header;

use super::threads::ThreadKey;

/// Bytes of chunk data in a batch.
const MOST_BYTES: usize = 1 << 20;
/// Bytes of chunk data in all batches that are not complete yet.
const MOST_PENDING_BYTES: usize = 8 << 20;
/// Batches that are not complete yet.
const MOST_PENDING: usize = 4096;

/// Consecutive chunks of a thread.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    data: Vec<u8>,
    chunks: Vec<(u64, Header, Range<usize>)>,
}

impl Batch {
    /// The chunks, each with the offset of its packet and its data.
    pub(crate) fn chunks(&self) -> impl ExactSizeIterator<Item = (u64, &Header, &[u8])> {
        self.chunks.iter().map(|(offset, header, data)| (*offset, header, &self.data[data.clone()]))
    }

    /// Whose they are.
    pub(crate) fn key(&self) -> ThreadKey {
        self.chunks.first().map_or((0, 0), |(_, header, _)| (header.process, header.thread))
    }

    /// Thread id.
    pub(crate) fn tid(&self) -> u32 {
        self.chunks.first().map_or(0, |(_, header, _)| header.tid)
    }

    fn push(&mut self, offset: u64, header: Header, data: &[u8]) {
        let start = self.data.len();
        self.data.extend_from_slice(data);
        self.chunks.push((offset, header, start..self.data.len()));
    }

    /// Empties it, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.data.clear();
        self.chunks.clear();
    }
}

/// See the module.
pub(crate) struct Gatherer {
    pending: HashMap<ThreadKey, Batch>,
    /// Threads in the order in which their batches began. Some of those are complete since.
    order: VecDeque<ThreadKey>,
    bytes: usize,
    most_chunks: usize,
}

impl Gatherer {
    /// Makes batches of at most so many chunks.
    pub(crate) fn new(most_chunks: usize) -> Self {
        Self {
            pending: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            most_chunks: most_chunks.max(1),
        }
    }

    /// Adds a chunk. Gives a batch when one is complete: that of its thread, or the oldest
    /// of all when there are too many. `empty` makes new ones.
    pub(crate) fn add(
        &mut self,
        offset: u64,
        header: Header,
        data: &[u8],
        empty: impl FnOnce() -> Batch,
    ) -> Option<Batch> {
        let key = (header.process, header.thread);
        let order = &mut self.order;
        let batch = self.pending.entry(key).or_insert_with(|| {
            order.push_back(key);
            empty()
        });
        batch.push(offset, header, data);
        self.bytes += data.len();
        if batch.chunks.len() >= self.most_chunks || batch.data.len() >= MOST_BYTES {
            if self.order.front() == Some(&key) {
                self.order.pop_front();
            } else if let Some(place) = self.order.iter().position(|&other| other == key) {
                self.order.remove(place);
            }
            return self.take(key);
        }
        if self.bytes > MOST_PENDING_BYTES || self.pending.len() > MOST_PENDING {
            return self.oldest();
        }
        None
    }

    /// The batch that began first, complete or not; nothing when there is none.
    pub(crate) fn oldest(&mut self) -> Option<Batch> {
        let key = self.order.pop_front()?;
        self.take(key)
    }

    fn take(&mut self, key: ThreadKey) -> Option<Batch> {
        let batch = self.pending.remove(&key)?;
        self.bytes -= batch.data.len();
        Some(batch)
    }
}
