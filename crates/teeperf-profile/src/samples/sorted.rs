//! A sorted list that copies share: it stands in blocks, and a change copies the blocks that it touches. So the address space of a
//! process that was forked takes no memory of its own, and one that changes takes a few blocks.

use std::sync::Arc;

/// Most entries of a block.
const MOST: usize = 32;

/// What has a place in the list.
pub(super) trait Placed: Clone {
    /// Its place. No two entries have the same.
    fn place(&self) -> u64;
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Sorted<T> {
    blocks: Arc<Vec<Block<T>>>,
    count: usize,
}

/// Some entries; never none.
#[derive(Clone, Debug)]
struct Block<T> {
    /// Place of the first.
    first: u64,
    entries: Arc<Vec<T>>,
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self { blocks: Arc::default(), count: 0 }
    }
}

impl<T: Placed> Sorted<T> {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The last entry whose place is not behind this one.
    pub(super) fn last_up_to(&self, place: u64) -> Option<&T> {
        let behind = self.blocks.partition_point(|block| block.first <= place);
        let entries = &self.blocks[..behind].last()?.entries;
        let behind = entries.partition_point(|entry| entry.place() <= place);
        entries[..behind].last()
    }

    /// The first entry whose place is behind this one.
    pub(super) fn first_behind(&self, place: u64) -> Option<&T> {
        let behind = self.blocks.partition_point(|block| block.first <= place);
        let before = self.blocks[..behind].last().and_then(|block| {
            let at = block.entries.partition_point(|entry| entry.place() <= place);
            block.entries.get(at)
        });
        before.or_else(|| self.blocks.get(behind)?.entries.first())
    }

    /// The entry at a place.
    pub(super) fn get(&self, place: u64) -> Option<&T> {
        self.last_up_to(place).filter(|entry| entry.place() == place)
    }

    /// Changes the entries between two places, the first included: `change` is given these and some around them, and leaves them sorted.
    /// The last that begins before `from` is among them.
    pub(super) fn edit(&mut self, from: u64, to: u64, change: impl FnOnce(&mut Vec<T>)) {
        let blocks = Arc::make_mut(&mut self.blocks);
        let behind_first = blocks.partition_point(|block| block.first < from);
        let begin = behind_first.saturating_sub(1);
        let behind = blocks.partition_point(|block| block.first < to);
        let end = behind.max(begin + 1).min(blocks.len());
        let before: usize = blocks[begin..end].iter().map(|block| block.entries.len()).sum();
        let mut entries = match &mut blocks[begin..end] {
            // Nobody has a use for a copy of what nobody shares.
            [one] => std::mem::take(Arc::make_mut(&mut one.entries)),
            some => some.iter().flat_map(|block| block.entries.iter().cloned()).collect(),
        };
        change(&mut entries);
        self.count = self.count - before + entries.len();
        if (1..=MOST).contains(&entries.len()) && end - begin == 1 {
            blocks[begin] = Block::of(entries);
            return;
        }
        let parts = entries.len().div_ceil(MOST).max(1);
        let each = entries.len().div_ceil(parts).max(1);
        let made = entries.chunks(each).map(|part| Block::of(part.to_vec()));
        blocks.splice(begin..end, made);
    }
}

impl<T: Placed> Block<T> {
    fn of(entries: Vec<T>) -> Self {
        Self { first: entries.first().map_or(0, T::place), entries: Arc::new(entries) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    impl Placed for (u64, u32) {
        fn place(&self) -> u64 {
            self.0
        }
    }

    fn all(list: &Sorted<(u64, u32)>) -> Vec<(u64, u32)> {
        list.blocks.iter().flat_map(|block| block.entries.iter().copied()).collect()
    }

    proptest! {
        /// Guards: copies that share blocks each have their own entries, as maps that share nothing.
        #[test]
        fn copies_are_as_if_they_shared_nothing(
            steps in proptest::collection::vec((0usize..4, 0u64..300, 1u64..40, 0u8..3), 1..200),
        ) {
            let mut lists: Vec<Sorted<(u64, u32)>> = vec![Sorted::default()];
            let mut slow: Vec<BTreeMap<u64, u32>> = vec![BTreeMap::new()];
            for (number, (which, at, length, what)) in (0u32..).zip(steps) {
                let which = which % lists.len();
                if what == 2 && lists.len() < 4 {
                    lists.push(lists[which].clone());
                    slow.push(slow[which].clone());
                    continue;
                }
                let range = at..at + length;
                let new = (what == 1).then_some((at, number));
                lists[which].edit(range.start, range.end, |entries| {
                    entries.retain(|entry| !range.contains(&entry.0));
                    let place = entries.partition_point(|entry| entry.0 < at);
                    if let Some(new) = new {
                        entries.insert(place, new);
                    }
                });
                slow[which].retain(|place, _| !range.contains(place));
                slow[which].extend(new);
                for (list, slow) in lists.iter().zip(&slow) {
                    let slow_all: Vec<_> = slow.iter().map(|(&a, &b)| (a, b)).collect();
                    prop_assert_eq!(all(list), slow_all);
                    prop_assert_eq!(list.len(), slow.len());
                    prop_assert!(list.blocks.iter().all(|block| (1..=MOST).contains(&block.entries.len())));
                    for place in [at, at + length, 0, 400] {
                        let last = slow.range(..=place).next_back().map(|(&a, &b)| (a, b));
                        prop_assert_eq!(list.last_up_to(place).copied(), last);
                        let next = slow.range(place + 1..).next().map(|(&a, &b)| (a, b));
                        prop_assert_eq!(list.first_behind(place).copied(), next);
                        prop_assert_eq!(list.get(place).copied(), slow.get(&place).map(|&b| (place, b)));
                    }
                }
            }
        }
    }

    #[test]
    fn a_change_copies_what_it_touches() {
        let mut list = Sorted::default();
        for place in 0..2000u64 {
            list.edit(place, place, |entries| entries.push((place, 0)));
        }
        let mut copy = list.clone();
        copy.edit(1000, 1001, |entries| {
            entries.iter_mut().filter(|entry| entry.0 == 1000).for_each(|entry| entry.1 = 1);
        });
        let shared = list.blocks.iter().zip(copy.blocks.iter());
        let shared = shared.filter(|(a, b)| Arc::ptr_eq(&a.entries, &b.entries)).count();
        assert_eq!(shared, list.blocks.len() - 1);
        assert_eq!((list.get(1000), copy.get(1000)), (Some(&(1000, 0)), Some(&(1000, 1))));
    }
}
