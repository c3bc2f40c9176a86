//! Records of several processors in the order of time.
//!
//! Each ring is read for itself, and while one is, records come into those that were read before. What was written
//! before a round began is in its ring when the round ends; so what is older than the beginning of the round *before* this one
//! is complete, and is given out. The rest waits.

use super::record;
use std::ops::Range;
use std::sync::Arc;

/// Records that wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct Order {
    waiting: Vec<Waiting>,
    /// When the round before this one began.
    before: u64,
}

#[derive(Debug)]
struct Waiting {
    time: u64,
    bytes: Arc<Vec<u8>>,
    record: Range<u32>,
}

impl Order {
    /// Takes the records of one ring. Says how many bytes at the end are no records.
    pub(crate) fn add(&mut self, bytes: Vec<u8>, now: u64) -> usize {
        let bytes = Arc::new(bytes);
        let mut at = 0;
        while let Some(end) = record::end(&bytes, at) {
            let time = record::time(&bytes[at..end]).unwrap_or(now);
            let record = at as u32..end as u32;
            self.waiting.push(Waiting { time, bytes: Arc::clone(&bytes), record });
            at = end;
        }
        bytes.len() - at
    }

    /// A round that began at this time has taken all rings: gives out what is complete.
    pub(crate) fn round(&mut self, began: u64, give: &mut dyn FnMut(&[u8])) {
        let complete = std::mem::replace(&mut self.before, began);
        self.give_before(complete, give);
    }

    /// Nothing more comes: gives out the rest.
    pub(crate) fn finish(&mut self, give: &mut dyn FnMut(&[u8])) {
        self.give_before(u64::MAX, give);
    }

    fn give_before(&mut self, time: u64, give: &mut dyn FnMut(&[u8])) {
        // Keeps the order of records of the same time in a ring.
        self.waiting.sort_by_key(|waiting| waiting.time);
        let count = self.waiting.partition_point(|waiting| waiting.time < time);
        for Waiting { bytes, record, .. } in self.waiting.drain(..count) {
            give(&bytes[record.start as usize..record.end as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PERF_RECORD_EXIT` at this time.
    fn record(time: u64) -> Vec<u8> {
        let mut bytes = [4u32.to_le_bytes(), [0, 0, 32, 0]].concat();
        bytes.extend([0; 8]);
        bytes.extend(time.to_le_bytes());
        bytes.extend([0; 8]);
        bytes
    }

    fn ring(times: &[u64]) -> Vec<u8> {
        times.iter().flat_map(|&time| record(time)).collect()
    }

    #[test]
    fn what_may_still_come_is_waited_for() {
        let (mut order, mut given) = (Order::default(), Vec::new());
        let mut give = |record: &[u8]| given.push(record::time(record).unwrap());
        assert_eq!(order.add(ring(&[5, 9, 12]), 0), 0);
        order.round(10, &mut give);
        // While the first ring was read, 8 and 11 came into the second one, and 11 was too late for the round.
        order.add(ring(&[8]), 0);
        order.add(ring(&[11, 21]), 0);
        order.round(20, &mut give);
        order.add(ring(&[15]), 0);
        order.round(30, &mut give);
        order.finish(&mut give);
        assert_eq!(given, [5, 8, 9, 11, 12, 15, 21]);
    }

    #[test]
    fn bytes_that_are_no_record_end_a_ring() {
        let mut order = Order::default();
        let mut bytes = ring(&[1]);
        bytes.extend([0; 40]);
        assert_eq!(order.add(bytes, 0), 40);
        let mut count = 0;
        order.finish(&mut |_| count += 1);
        assert_eq!(count, 1);
    }
}
