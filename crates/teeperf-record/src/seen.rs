//! Which functions were seen: one byte for every sixteen sites. The one pass over all words
//! that a recording needs beside compressing them, so it finds the rest on its way: how many
//! are events, and whether any tells the recorder something.
//!
//! Programs do the same things over and over, so words are taken in pairs, and pairs of events
//! that were looked at before are known by a table: one load and one comparison for two words.

use crate::escapes::Module;
use std::collections::BTreeSet;
use std::ops::Range;
use teeperf_wire::word::{ESCAPE_BASE, code};

/// Sites to a mark, as a power of two.
const SHIFT: u32 = 4;
/// The largest map: windows of 512 MiB of code. Code beyond it goes without symbols.
const MAX_MARKS: usize = 32 << 20;
/// Most sites remembered that no window covers yet.
const MAX_EARLY: usize = 1 << 16;

/// Marks compared at once.
const BLOCK: usize = 256;
/// Pairs that are known at once, as a power of two: 16 KiB, half of what a core keeps nearest.
const PAIRS_SHIFT: u32 = 11;
/// Spreads pairs over the table: 2^64 divided by the golden ratio (Knuth, The Art of Computer
/// Programming 3, 6.4).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// What one pass over words finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Calls and returns, but for those of functions in no window. Payload that looks like one
    /// counts; time words must have been taken out.
    pub(crate) events: usize,
    /// Whether a word looks like an escape that the recorder wants to read. It may also be
    /// payload of another.
    pub(crate) telling: bool,
}

/// Marks of one process.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Pairs of events whose marks are set, each where its bits lead. Two zeros are none.
    pairs: Box<[u64; 1 << PAIRS_SHIFT]>,
    /// A mark for each bucket of sites, as far as windows go.
    marks: Vec<u8>,
    /// Marks that were reported.
    reported: Vec<u8>,
    /// Buckets above those, seen before their window was announced: another thread's
    /// chunk may come out before that with the announcement.
    early: BTreeSet<u32>,
}

impl Default for Seen {
    fn default() -> Self {
        let pairs = Box::new([0; 1 << PAIRS_SHIFT]);
        Self { pairs, marks: Vec::new(), reported: Vec::new(), early: BTreeSet::new() }
    }
}

impl Seen {
    /// Marks the sites of these words, none of which is 0. Payload that looks like an event
    /// leaves the event's mark: then a function too many gets its symbol.
    pub(crate) fn mark(&mut self, words: &[u32]) -> Survey {
        let mut survey = Survey::default();
        let (mut pairs, last) = words.as_chunks::<2>();
        while let Some(known) = self.first_unknown(pairs) {
            let pair = pairs[known];
            let is_marked = pair.map(|word| self.mark_word(word, &mut survey));
            if is_marked == [true, true] {
                self.pairs[place_of(number_of(pair))] = number_of(pair);
            }
            survey.events += 2 * known;
            pairs = &pairs[known + 1..];
        }
        survey.events += 2 * pairs.len();
        for &word in last {
            self.mark_word(word, &mut survey);
        }
        survey
    }

    fn first_unknown(&self, pairs: &[[u32; 2]]) -> Option<usize> {
        let known = &*self.pairs;
        let difference = |&pair: &[u32; 2]| known[place_of(number_of(pair))] ^ number_of(pair);
        // Several for one branch: this loop is what most of the time goes into.
        let (blocks, _) = pairs.as_chunks::<4>();
        let all = |block: &[_; 4]| block.iter().map(difference).fold(0, |all, one| all | one);
        let before = 4 * blocks.iter().take_while(|block| all(block) == 0).count();
        pairs[before..].iter().position(|pair| difference(pair) != 0).map(|at| before + at)
    }

    /// Says whether the word is an event that need not be looked at again.
    fn mark_word(&mut self, word: u32, survey: &mut Survey) -> bool {
        if word >> 31 != 0 {
            let top = word >> 24;
            survey.telling |= top == TOP_GAP || top & !1 == TOP_MODULE || top == TOP_POINT;
            survey.telling |= top == TOP_SAMPLE;
            return false;
        }
        survey.events += 1;
        let bucket = word >> (SHIFT + 1);
        if let Some(mark) = self.marks.get_mut(bucket as usize) {
            *mark = 1;
            return true;
        }
        if self.early.len() < MAX_EARLY {
            self.early.insert(bucket);
        }
        self.early.contains(&bucket)
    }

    /// Makes room for a window.
    pub(crate) fn open(&mut self, module: &Module) {
        let end = (buckets(module).end as usize).min(MAX_MARKS);
        if end > self.marks.len() {
            // Fresh zeroed memory, which the system only provides where it is touched.
            let room = end.next_power_of_two().min(MAX_MARKS);
            let mut marks = vec![0; room];
            let mut reported = vec![0; room];
            let known = self.marks.len();
            marks[..known].copy_from_slice(&self.marks[..known]);
            reported[..known].copy_from_slice(&self.reported);
            (self.marks, self.reported) = (marks, reported);
        }
        let above = self.early.split_off(&(self.reported.len() as u32));
        for bucket in std::mem::replace(&mut self.early, above) {
            self.marks[bucket as usize] = 1;
        }
    }

    /// Sites of the window that were marked since the last call, as ranges of sixteen.
    pub(crate) fn take_new(&mut self, module: &Module) -> Vec<Range<u32>> {
        let Range { start, end } = buckets(module);
        let end = (end as usize).min(self.reported.len());
        let start = (start as usize).min(end);
        let mut new = Vec::new();
        for block in (start..end).step_by(BLOCK) {
            let block = block..(block + BLOCK).min(end);
            if self.marks[block.clone()] == self.reported[block.clone()] {
                continue;
            }
            for bucket in block {
                if self.marks[bucket] != self.reported[bucket] {
                    self.reported[bucket] = 1;
                    let site = (bucket as u32) << SHIFT;
                    new.push(site..site + (1 << SHIFT));
                }
            }
        }
        new
    }
}

fn number_of([first, second]: [u32; 2]) -> u64 {
    u64::from(first) | u64::from(second) << 32
}

fn place_of(pair: u64) -> usize {
    (pair.wrapping_mul(SPREAD) >> (64 - PAIRS_SHIFT)) as usize
}

/// First byte of the escapes that the recorder reads.
const TOP_GAP: u32 = ESCAPE_BASE >> 24 | code::GAP;
/// With the lowest bit set it is a name.
const TOP_MODULE: u32 = ESCAPE_BASE >> 24 | code::MODULE;
const TOP_POINT: u32 = ESCAPE_BASE >> 24 | code::POINT;
const TOP_SAMPLE: u32 = ESCAPE_BASE >> 24 | code::SAMPLE;
const _: () = assert!(code::MODULE & 1 == 0 && code::NAME == code::MODULE + 1);

fn buckets(module: &Module) -> Range<u32> {
    let last = module.first_site + (module.sites - 1);
    module.first_site >> SHIFT..(last >> SHIFT) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use teeperf_wire::word::{call, escape, payload, ret};

    fn window(first_site: u32, sites: u32) -> Module {
        let (build_id, path, is_anchored) = (vec![], vec![], false);
        Module { first_site, sites, address: 0, bias: 0, is_anchored, build_id, path }
    }

    fn contains(ranges: &[Range<u32>], site: u32) -> bool {
        ranges.iter().any(|range| range.contains(&site))
    }

    proptest! {
        #[test]
        fn every_site_is_reported_once_wherever_its_window_is_announced(
            sites in proptest::collection::vec(0x1000u32..0x9000, 1..40), announced in 0usize..40,
        ) {
            let (low, high) = (window(0x1000, 0x3000), window(0x4000, 0x5000));
            let mut seen = Seen::default();
            for (at, &site) in sites.iter().enumerate() {
                if at == announced {
                    seen.open(&low);
                }
                seen.mark(&[call(site), ret(site)]);
            }
            seen.open(&low);
            seen.open(&high);
            let new = [seen.take_new(&low), seen.take_new(&high)];
            for &site in &sites {
                prop_assert!(contains(&new[(site >= 0x4000) as usize], site));
            }
            let buckets: BTreeSet<_> = sites.iter().map(|site| site >> SHIFT).collect();
            prop_assert_eq!(new.iter().map(Vec::len).sum::<usize>(), buckets.len());
            seen.mark(&sites.iter().map(|&site| call(site)).collect::<Vec<_>>());
            prop_assert!(seen.take_new(&low).is_empty() && seen.take_new(&high).is_empty());
        }

        #[test]
        fn what_is_found_does_not_depend_on_what_was_met_before(
            words in proptest::collection::vec(prop_oneof![
                8 => 2u32..40, 2 => 0x2000u32..0x2_0000, 1 => Just(escape(code::TICK, 9)),
                1 => Just(escape(code::NAME, 0)), 1 => Just(escape(code::GAP, 2)),
                1 => Just(escape(code::POINT, 1)), 1 => Just(escape(code::SAMPLE, 2)), 1 => 1u32..,
            ], 0..70),
            announced: bool,
        ) {
            let mut seen = Seen::default();
            if announced {
                seen.open(&window(0, 0x1000));
            }
            let events = words.iter().filter(|&&word| word >> 31 == 0).count();
            let tells = |&word: &u32| [code::GAP, code::MODULE, code::NAME, code::POINT, code::SAMPLE]
                .iter().any(|&code| word >> 24 == escape(code, 0) >> 24);
            let expected = Survey { events, telling: words.iter().any(tells) };
            for _ in 0..3 {
                prop_assert_eq!(seen.mark(&words), expected);
                // From the other half of each pair on.
                if let [first, rest @ ..] = &words[..] {
                    let mut alone = Survey::default();
                    seen.mark_word(*first, &mut alone);
                    prop_assert_eq!(alone.events + seen.mark(rest).events, events);
                }
            }
        }

        #[test]
        fn any_words_and_windows_are_borne(
            words in proptest::collection::vec(any::<u32>(), 0..50),
            windows in proptest::collection::vec((0u32..=0x6FFF_FFFF, 1u32..0x0100_0000), 0..3),
        ) {
            let mut seen = Seen::default();
            for (first_site, sites) in windows {
                let module = window(first_site, sites.min(0x7000_0000 - first_site));
                seen.open(&module);
                seen.mark(&words);
                seen.take_new(&module);
            }
            prop_assert!(seen.marks.len() <= MAX_MARKS);
            prop_assert!(seen.early.len() <= MAX_EARLY);
        }
    }

    #[test]
    fn ordinary_words_tell_nothing() {
        let words = [escape(code::TICK, 3), call(0x1000), ret(0x1000), payload(5)];
        let survey = Seen::default().mark(&words);
        assert_eq!(survey, Survey { events: 2, telling: false });
    }
}
