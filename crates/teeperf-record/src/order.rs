//! Puts the chunks of each thread in order. They are found in the order of memory, and one
//! that waits for a missing word must not stop the thread: those behind it are drained,
//! compressed and kept here until it is their turn.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Most packets kept for one process. More means that the missing chunk is given up.
const MAX_KEPT: usize = 512;
/// Longest time a packet is kept.
const LONGEST: Duration = Duration::from_secs(3);
/// Most threads remembered for one process.
const MAX_THREADS: usize = 1 << 18;

/// Order of the threads of one process. `T` is what is kept of a chunk.
#[derive(Debug, Default)]
pub(crate) struct Order<T> {
    threads: HashMap<u32, Line<T>>,
    kept: usize,
    /// Threads were forgotten: one that is not known may be at any chunk.
    forgetful: bool,
}

#[derive(Debug)]
struct Line<T> {
    /// Number of the chunk whose turn it is.
    next: u32,
    /// Highest number that was handed over.
    handed: u32,
    kept: BTreeMap<u32, Kept<T>>,
}

#[derive(Debug)]
struct Kept<T> {
    packet: T,
    since: Instant,
}

impl<T> Order<T> {
    /// A chunk of this number was found handed over.
    pub(crate) fn handed(&mut self, thread: u32, sequence: u32) {
        let line = self.line(thread, sequence);
        line.handed = line.handed.max(sequence);
    }

    /// Chunks that the thread has handed over since this one.
    pub(crate) fn further(&self, thread: u32, sequence: u32) -> u32 {
        self.threads.get(&thread).map_or(0, |line| line.handed.saturating_sub(sequence))
    }

    /// Whether all chunks of the thread before this one are written, so that its words may be.
    pub(crate) fn is_next(&mut self, thread: u32, sequence: u32) -> bool {
        sequence <= self.line(thread, sequence).next
    }

    /// The chunk whose turn it was is written whole: gives out those that were waiting.
    pub(crate) fn written(&mut self, thread: u32, sequence: u32, out: &mut Vec<T>) {
        let line = self.line(thread, sequence);
        line.next = line.next.max(sequence.saturating_add(1));
        let mut given = 0;
        while let Some(first) = line.kept.first_entry() {
            if *first.key() > line.next {
                break;
            }
            line.next = line.next.max(first.key().saturating_add(1));
            out.push(first.remove().packet);
            given += 1;
        }
        self.kept -= given;
    }

    /// Keeps the packet of a whole chunk whose turn it is not. Gives out what there is no
    /// more room for.
    pub(crate) fn keep(&mut self, thread: u32, sequence: u32, packet: T, out: &mut Vec<T>) {
        let kept = Kept { packet, since: Instant::now() };
        if let Some(twice) = self.line(thread, sequence).kept.insert(sequence, kept) {
            out.push(twice.packet);
        } else {
            self.kept += 1;
        }
        if self.kept > MAX_KEPT {
            self.give_up(Duration::ZERO, out);
        }
    }

    /// Gives out what waits for a chunk that has not come for long.
    pub(crate) fn give_up_old(&mut self, out: &mut Vec<T>) {
        if self.kept > 0 {
            self.give_up(LONGEST, out);
        }
    }

    /// Gives out everything that is kept.
    pub(crate) fn give_up_all(&mut self, out: &mut Vec<T>) {
        self.give_up(Duration::ZERO, out);
    }

    /// The thread is gone, and all its chunks are written.
    pub(crate) fn forget(&mut self, thread: u32) {
        if self.threads.get(&thread).is_some_and(|line| line.kept.is_empty()) {
            self.threads.remove(&thread);
        }
    }

    fn give_up(&mut self, patience: Duration, out: &mut Vec<T>) {
        let now = Instant::now();
        let old = |kept: &Kept<T>| now.saturating_duration_since(kept.since) >= patience;
        let waiting: Vec<_> = self
            .threads
            .iter()
            .filter_map(|(&thread, line)| {
                let (&sequence, kept) = line.kept.first_key_value()?;
                old(kept).then_some((thread, sequence))
            })
            .collect();
        for (thread, sequence) in waiting {
            // As if the chunk before the first that waits had been written.
            self.written(thread, sequence.saturating_sub(1), out);
            // A thread with several gaps waits for the next one anew, unless all must go.
            while patience.is_zero() {
                let line = self.threads.get(&thread);
                let Some((&next, _)) = line.and_then(|line| line.kept.first_key_value()) else {
                    break;
                };
                self.written(thread, next.saturating_sub(1), out);
            }
        }
    }

    fn line(&mut self, thread: u32, sequence: u32) -> &mut Line<T> {
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&thread) {
            self.threads.retain(|_, line| !line.kept.is_empty());
            self.forgetful = true;
        }
        let first = if self.forgetful { sequence } else { 1 };
        let new = || Line { next: first, handed: 0, kept: BTreeMap::new() };
        self.threads.entry(thread).or_insert_with(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As the drain uses it.
    fn arrives(order: &mut Order<Vec<u8>>, thread: u32, sequence: u32, out: &mut Vec<Vec<u8>>) {
        order.handed(thread, sequence);
        let payload = [thread.to_le_bytes(), sequence.to_le_bytes()].concat();
        if order.is_next(thread, sequence) {
            out.push(payload);
            order.written(thread, sequence, out);
        } else {
            order.keep(thread, sequence, payload, out);
        }
    }

    proptest! {
        #[test]
        fn any_order_becomes_the_right_one(numbers in Just((1..=40u32).collect::<Vec<_>>()).prop_shuffle()) {
            let (mut order, mut out) = (Order::default(), vec![]);
            for &number in &numbers {
                arrives(&mut order, number % 2, number.div_ceil(2), &mut out);
            }
            prop_assert_eq!(order.kept, 0);
            for thread in 0..2u32 {
                let of_thread = out.iter().filter(|payload| payload[..4] == thread.to_le_bytes());
                let sequences: Vec<_> = of_thread.map(|payload| payload[4]).collect();
                prop_assert_eq!(sequences, (1..=20).collect::<Vec<u8>>());
            }
        }

        #[test]
        fn nothing_is_lost_and_the_memory_is_bounded(numbers in proptest::collection::vec((0u32..9, 0u32..99), 0..2_000)) {
            let (mut order, mut out) = (Order::default(), vec![]);
            for &(thread, sequence) in &numbers {
                arrives(&mut order, thread, sequence, &mut out);
                prop_assert!(order.kept <= MAX_KEPT);
            }
            order.give_up_all(&mut out);
            prop_assert_eq!(order.kept, 0);
            prop_assert_eq!(out.len(), numbers.len());
        }
    }

    #[test]
    fn a_chunk_that_never_comes_is_given_up() {
        let (mut order, mut out) = (Order::default(), vec![]);
        for sequence in [1, 3, 5] {
            arrives(&mut order, 7, sequence, &mut out);
        }
        assert_eq!(out.len(), 1);
        order.give_up_old(&mut out);
        assert_eq!(out.len(), 1);
        order.give_up_all(&mut out);
        assert_eq!(out.len(), 3);
    }
}
