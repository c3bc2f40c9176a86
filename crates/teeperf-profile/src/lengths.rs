//! Lengths of calls as a histogram: how many took how long, in memory of a fixed size however many there are.
//!
//! Buckets are those of an HDR histogram: each octave, from one power of two to the next, has 32 of equal width; of
//! lengths below 64 each has its own. So what a bucket stands for, its middle, is off by 1/64 (1.6 %) of a length at
//! most. Number, sum, shortest and longest are exact. Two histograms are added bucket by bucket, in any order.

use std::collections::BTreeMap;

/// Buckets of an octave, as a power of two.
const BITS: u32 = 5;
const BUCKETS: usize = 1 << BITS;
/// Lengths by which a counter's steps are known, smallest steps that are looked for, and how far lengths may be off these.
const SHORT: u64 = 256;
const LEAST_STEP: u64 = 8;
const ROUNDING: f64 = 1.5;
/// Calls that it takes, and the part of them that has to be in steps.
const LEAST_CALLS: u64 = 1000;
const MOST_CALLS: f64 = 0.98;
/// Octaves of 64-bit numbers, the first of which has the numbers below [`BUCKETS`].
const OCTAVES: usize = 65 - BITS as usize;

/// See the module. Lengths are in clock units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths {
    calls: u64,
    sum: u64,
    least: u64,
    most: u64,
    /// By octave, as far as there are any.
    octaves: Vec<Option<Box<[u64; BUCKETS]>>>,
}

/// Calls of about one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Shortest length that is counted here.
    pub first: u64,
    /// Longest length that is counted here.
    pub last: u64,
    /// Calls.
    pub calls: u64,
}

impl Default for Lengths {
    fn default() -> Self {
        Self { calls: 0, sum: 0, least: u64::MAX, most: 0, octaves: Vec::new() }
    }
}

impl Lengths {
    /// A call took so long.
    #[inline(always)]
    pub fn add(&mut self, length: u64) {
        self.calls += 1;
        self.sum = self.sum.saturating_add(length);
        self.least = self.least.min(length);
        self.most = self.most.max(length);
        let (octave, bucket) = place(length);
        match self.octaves.get_mut(octave) {
            Some(Some(buckets)) => buckets[bucket] += 1,
            _ => self.open(octave)[bucket] += 1,
        }
    }

    /// Calls of another.
    pub fn merge(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.sum = self.sum.saturating_add(other.sum);
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        for (octave, theirs) in other.octaves.iter().enumerate() {
            if let Some(theirs) = theirs {
                for (sum, calls) in self.open(octave).iter_mut().zip(theirs.iter()) {
                    *sum = sum.saturating_add(*calls);
                }
            }
        }
    }

    /// Calls that were timed.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// All lengths together.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The shortest and the longest; nothing when there is none.
    pub fn extremes(&self) -> Option<(u64, u64)> {
        (self.calls > 0).then_some((self.least, self.most))
    }

    /// The length that this part of the calls, from 0 to 1, does not exceed: the smallest of which that is so, within 1/64.
    pub fn percentile(&self, part: f64) -> Option<u64> {
        let (least, most) = self.extremes()?;
        let rank = ((part * self.calls as f64).ceil() as u64).clamp(1, self.calls);
        let mut before = 0u64;
        let found = self.buckets().find(|bucket| {
            before = before.saturating_add(bucket.calls);
            before >= rank
        });
        found.map(|bucket| bucket.middle().clamp(least, most))
    }

    /// In how large steps the counter was read, in clock units, where that is seen: most short lengths are about a multiple of
    /// it. Of a counter that goes on by one each time there is none.
    pub fn step(&self) -> Option<f64> {
        let short: Vec<Bucket> = self.buckets().take_while(|bucket| bucket.last < SHORT).collect();
        let all: u64 = short.iter().map(|bucket| bucket.calls).sum();
        if all < LEAST_CALLS {
            return None;
        }
        // Largest first: what has a step has the half of it as well.
        let steps = (LEAST_STEP * 4..=SHORT * 2).rev().map(|quarters| quarters as f64 / 4.0);
        steps.into_iter().find_map(|step| {
            let mut by_multiple: BTreeMap<u64, (u64, f64)> = BTreeMap::new();
            for bucket in &short {
                let middle = (bucket.first + bucket.last) as f64 / 2.0;
                let multiple = (middle / step).round();
                let half = (bucket.last - bucket.first) as f64 / 2.0;
                if (middle - multiple * step).abs() - half <= ROUNDING {
                    let sum = by_multiple.entry(multiple as u64).or_default();
                    sum.0 += bucket.calls;
                    sum.1 += middle * bucket.calls as f64;
                }
            }
            let fitting: u64 = by_multiple.values().map(|sum| sum.0).sum();
            let common = by_multiple.iter().filter(|(at, sum)| **at > 0 && sum.0 * 200 >= all);
            let is_step = fitting as f64 >= MOST_CALLS * all as f64 && common.count() >= 3;
            let multiples: f64 = by_multiple.iter().map(|(at, sum)| (*at * sum.0) as f64).sum();
            let sum: f64 =
                by_multiple.iter().filter(|(at, _)| **at > 0).map(|(_, sum)| sum.1).sum();
            (is_step && multiples > 0.0).then(|| sum / multiples)
        })
    }

    /// The first length of the first bucket that does not begin below this one.
    pub fn border(length: u64) -> u64 {
        let (octave, bucket) = place(length);
        match bounds(octave, bucket) {
            (first, _) if first == length => first,
            (_, last) => last.saturating_add(1),
        }
    }

    /// Buckets with calls, shortest first.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let octaves = self.octaves.iter().enumerate();
        octaves.filter_map(|(octave, buckets)| Some((octave, buckets.as_ref()?))).flat_map(
            |(octave, buckets)| {
                let calls = buckets.iter().enumerate().filter(|(_, calls)| **calls > 0);
                calls.map(move |(at, &calls)| {
                    let (first, last) = bounds(octave, at);
                    Bucket { first, last, calls }
                })
            },
        )
    }

    #[cold]
    fn open(&mut self, octave: usize) -> &mut [u64; BUCKETS] {
        if self.octaves.len() <= octave {
            self.octaves.resize(octave + 1, None);
        }
        self.octaves[octave].get_or_insert_with(|| Box::new([0; BUCKETS]))
    }
}

impl Bucket {
    /// What stands for its lengths.
    pub fn middle(&self) -> u64 {
        self.first + (self.last - self.first) / 2
    }
}

/// Octave and bucket of a length.
#[inline(always)]
fn place(length: u64) -> (usize, usize) {
    let bits = u64::BITS - length.leading_zeros();
    match bits.checked_sub(BITS + 1) {
        Some(shift) => (shift as usize + 1, (length >> shift) as usize & (BUCKETS - 1)),
        None => (0, length as usize & (BUCKETS - 1)),
    }
}

/// First and last length of a bucket.
fn bounds(octave: usize, bucket: usize) -> (u64, u64) {
    debug_assert!(octave < OCTAVES);
    match octave.checked_sub(1) {
        None => (bucket as u64, bucket as u64),
        Some(shift) => {
            let first = ((BUCKETS + bucket) as u64) << shift;
            (first, first + ((1 << shift) - 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(lengths: &[u64]) -> Lengths {
        let mut out = Lengths::default();
        lengths.iter().for_each(|&length| out.add(length));
        out
    }

    #[test]
    fn a_counters_steps_are_seen() {
        // As an EPYC has them in a virtual machine: 25 units, of which one bit is always 0.
        let in_steps = |step: f64| -> Vec<u64> {
            (0..3000u64).map(|at| ((at % 7 + at / 2000) as f64 * step) as u64 & !1).collect()
        };
        let found = of(&in_steps(24.95)).step().unwrap();
        assert!((found - 24.95).abs() < 1.0, "{found}");
        assert_eq!(of(&in_steps(24.95)[..500]).step(), None);
        let one_by_one: Vec<u64> = (0..3000).map(|at| at * 31 % 257).collect();
        assert_eq!(of(&one_by_one).step(), None);
        assert_eq!(of(&vec![0; 3000]).step(), None);
        assert_eq!(of(&vec![40; 3000]).step(), None);
    }

    #[test]
    fn borders_are_those_of_buckets() {
        for (length, border) in [(0, 0), (63, 63), (64, 64), (65, 66), (66, 66), (1001, 1008)] {
            assert_eq!(Lengths::border(length), border);
        }
        assert_eq!(Lengths::border(u64::MAX), u64::MAX);
    }

    fn any_length() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0u32..64).prop_map(|(bits, shift)| bits >> shift)
    }

    #[test]
    fn every_number_has_its_bucket() {
        let around = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        for length in around.chain([u64::MAX, 63, 64, 65, 66, 1_000_003]) {
            let (octave, bucket) = place(length);
            let (first, last) = bounds(octave, bucket);
            assert!(first <= length && length <= last, "{length}: {first} to {last}");
            assert!((last - first) / 2 <= length / 64, "{length}: {first} to {last}");
        }
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_lengths(mut lengths in prop::collection::vec(any_length(), 1..300), part in 0.0..=1.0f64) {
            let found = of(&lengths);
            lengths.sort_unstable();
            prop_assert_eq!(found.extremes(), Some((lengths[0], lengths[lengths.len() - 1])));
            let rank = ((part * lengths.len() as f64).ceil() as usize).max(1);
            let (told, exact) = (found.percentile(part).unwrap(), lengths[rank - 1]);
            prop_assert!(told.abs_diff(exact) <= exact / 64 + 1, "{} for {}", told, exact);
        }

        #[test]
        fn parts_add_up_in_any_order(a in prop::collection::vec(any_length(), 0..50), b in prop::collection::vec(any_length(), 0..50)) {
            let (mut one, mut two) = (of(&a), of(&b));
            let (first, second) = (one.clone(), two.clone());
            one.merge(&second);
            two.merge(&first);
            let mut all = of(&[a, b].concat());
            // Octaves that are empty may be there or not.
            for lengths in [&mut one, &mut two, &mut all] {
                lengths.octaves.truncate(lengths.octaves.iter().rposition(Option::is_some).map_or(0, |at| at + 1));
            }
            prop_assert_eq!(&one, &two);
            prop_assert_eq!(one, all);
        }
    }
}
