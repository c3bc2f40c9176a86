//! Which functions were seen: one byte for every sixteen sites, so that marking a word is
//! a shift, a comparison without a branch, and a store.

use crate::escapes::Module;
use std::collections::BTreeSet;
use std::ops::Range;

/// Sites to a mark, as a power of two.
const SHIFT: u32 = 4;
/// The largest map: windows of 512 MiB of code. Code beyond it goes without symbols.
const MAX_MARKS: usize = 32 << 20;
/// Most sites remembered that no window covers yet.
const MAX_EARLY: usize = 1 << 16;

/// Marks compared at once.
const BLOCK: usize = 256;

/// Marks of one process.
#[derive(Debug)]
pub(crate) struct Seen {
    /// A mark for each bucket of sites below `limit`; the last stands for all above.
    marks: Vec<u8>,
    /// Marks that were reported.
    reported: Vec<u8>,
    /// Buckets above the limit, seen before their window was announced: another thread's
    /// chunk may come out before that with the announcement.
    early: BTreeSet<u32>,
}

impl Default for Seen {
    fn default() -> Self {
        Self { marks: vec![0], reported: Vec::new(), early: BTreeSet::new() }
    }
}

impl Seen {
    /// Marks the sites of these words. Words that are no events leave a mark at most where
    /// an event with the same bits would: then a function too many gets its symbol.
    /// `highest` is [`crate::survey::Survey::highest`].
    pub(crate) fn mark(&mut self, words: &[u32], highest: u32) {
        let marks = &mut self.marks[..];
        let Some(last) = marks.len().checked_sub(1) else { return };
        for &word in words {
            marks[((word >> (SHIFT + 1)) as usize).min(last)] = 1;
        }
        if (highest >> (SHIFT + 1)) as usize >= last {
            self.mark_early(words, last);
        }
    }

    /// Makes room for a window.
    pub(crate) fn open(&mut self, module: &Module) {
        let end = (buckets(module).end as usize).min(MAX_MARKS);
        if end >= self.marks.len() {
            // Fresh zeroed memory, which the system only provides where it is touched.
            let room = end.next_power_of_two().min(MAX_MARKS);
            let mut marks = vec![0; room + 1];
            let mut reported = vec![0; room];
            let known = self.marks.len() - 1;
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

    fn mark_early(&mut self, words: &[u32], last: usize) {
        let events = words.iter().filter(|&&word| word >> 31 == 0);
        let buckets = events.map(|&word| word >> (SHIFT + 1));
        for bucket in buckets.filter(|&bucket| bucket as usize >= last) {
            if self.early.len() < MAX_EARLY {
                self.early.insert(bucket);
            }
        }
    }
}

fn buckets(module: &Module) -> Range<u32> {
    let last = module.first_site + (module.sites - 1);
    module.first_site >> SHIFT..(last >> SHIFT) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::Survey;
    use proptest::prelude::*;
    use teeperf_wire::word::{call, ret};

    fn window(first_site: u32, sites: u32) -> Module {
        Module { first_site, sites, address: 0, bias: 0, build_id: vec![], path: vec![] }
    }

    fn mark(seen: &mut Seen, words: &[u32]) {
        seen.mark(words, Survey::of(words).highest);
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
                mark(&mut seen, &[call(site), ret(site)]);
            }
            seen.open(&low);
            seen.open(&high);
            let new = [seen.take_new(&low), seen.take_new(&high)];
            for &site in &sites {
                prop_assert!(contains(&new[(site >= 0x4000) as usize], site));
            }
            let buckets: BTreeSet<_> = sites.iter().map(|site| site >> SHIFT).collect();
            prop_assert_eq!(new.iter().map(Vec::len).sum::<usize>(), buckets.len());
            mark(&mut seen, &sites.iter().map(|&site| call(site)).collect::<Vec<_>>());
            prop_assert!(seen.take_new(&low).is_empty() && seen.take_new(&high).is_empty());
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
                mark(&mut seen, &words);
                seen.take_new(&module);
            }
            prop_assert!(seen.marks.len() <= MAX_MARKS + 1);
            prop_assert!(seen.early.len() <= MAX_EARLY);
        }
    }
}
