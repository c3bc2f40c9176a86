//! What a recording has come to so far, for a live line.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counters that the recorder moves and anybody may read.
#[derive(Debug, Default)]
pub struct Stats {
    pub(crate) words: Counter,
    pub(crate) events: Counter,
    pub(crate) bytes: Counter,
    pub(crate) chunks: Counter,
    pub(crate) threads: Counter,
    pub(crate) processes: Counter,
    pub(crate) lost: Counter,
    pub(crate) waits: Counter,
    /// Clock units.
    pub(crate) waited: Counter,
    /// Clock units in a second; 0 where that is not known.
    pub(crate) hz: Counter,
    pub(crate) rounds_behind: Counter,
    pub(crate) samples: Counter,
    pub(crate) samples_lost: Counter,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Words in all chunks.
    pub words: u64,
    /// Calls and returns in the output; an estimate that is off by the payload of escapes.
    pub events: u64,
    /// Bytes of the recording.
    pub bytes: u64,
    /// Chunk packets in the output.
    pub chunks: u64,
    /// Threads that were seen.
    pub threads: u64,
    /// Processes attached at present.
    pub processes: u64,
    /// Calls and returns lost.
    pub lost: u64,
    /// Times that a thread waited for a free chunk.
    pub waits: u64,
    /// So long threads waited, all together; nothing where it is not known how fast their clock goes.
    pub waited: Duration,
    /// How often the drain looked at processes that go on, or are about to attach, behind the command's end.
    pub rounds_behind: u64,
    /// Samples taken.
    pub samples: u64,
    /// Samples lost.
    pub samples_lost: u64,
}

impl Stats {
    /// The counters now, each for itself.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            words: self.words.get(),
            events: self.events.get(),
            bytes: self.bytes.get(),
            chunks: self.chunks.get(),
            threads: self.threads.get(),
            processes: self.processes.get(),
            lost: self.lost.get(),
            waits: self.waits.get(),
            waited: self.waited(),
            rounds_behind: self.rounds_behind.get(),
            samples: self.samples.get(),
            samples_lost: self.samples_lost.get(),
        }
    }

    fn waited(&self) -> Duration {
        let ns = u128::from(self.waited.get()) * 1_000_000_000;
        let ns = ns.checked_div(self.hz.get().into()).unwrap_or(0);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

/// A counter with one writer.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.set(self.get().saturating_add(more));
    }

    pub(crate) fn take_back(&self, less: u64) {
        self.set(self.get().saturating_sub(less));
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
