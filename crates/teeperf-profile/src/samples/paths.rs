//! Call paths of samples, summed: for each event and thread a tree of functions.

use rustc_hash::FxHashMap;

use super::modules::Location;
use super::unwind::End;
use crate::model::Stacks;

/// Whose samples a tree has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Of {
    pub(crate) event: u16,
    pub(crate) pid: u32,
    /// Which process, of all that had the id.
    pub(crate) generation: u32,
    pub(crate) tid: u32,
}

/// A call path; a root is its own parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) parent: u32,
    /// Its function's number; of a root nothing.
    pub(crate) function: u32,
    /// Samples whose innermost function this is.
    pub(crate) samples: u64,
    /// Their periods.
    pub(crate) weight: u64,
}

/// What is known of a thread beside its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) root: u32,
    /// Times of its first and last sample.
    pub(crate) span: Option<(u64, u64)>,
    pub(crate) stacks: Stacks,
}

impl Thread {
    /// A sample's stack ended so. `is_short`: the copy is shorter than was asked for.
    pub(crate) fn ended(&mut self, end: End, is_short: bool) {
        let Stacks { followed, cut, beyond, holed, chains, alone } = &mut self.stacks;
        if end == End::Beyond {
            *if is_short { holed } else { beyond } += 1;
        }
        match end {
            End::Whole => *followed += 1,
            End::Cut | End::Beyond => (*followed, *cut) = (*followed + 1, *cut + 1),
            End::Chain => *chains += 1,
            End::Alone => (*chains, *alone) = (*chains + 1, *alone + 1),
        }
    }
}

/// All of one worker's.
#[derive(Default)]
pub(crate) struct Paths {
    pub(crate) steps: Vec<Step>,
    children: FxHashMap<(u32, u32), u32>,
    /// In the order of their roots.
    pub(crate) threads: Vec<(Of, Thread)>,
    known: FxHashMap<Of, usize>,
    /// The path before, outermost first: where each location led. Samples of a thread begin alike.
    last: Vec<(Location, u32)>,
    last_root: u32,
    most: usize,
    /// Samples on paths for which there was no room, that stand in the last function for which there was.
    pub(crate) shortened: u64,
}

impl Paths {
    /// None yet; `most` of them at most.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, last_root: u32::MAX, ..Self::default() }
    }

    /// Adds a sample. `locations` are outermost first; `functions` tells those of a location, outermost first.
    pub(crate) fn add(
        &mut self,
        of: Of,
        locations: impl Iterator<Item = Location>,
        mut functions: impl FnMut(Location, &mut dyn FnMut(u32)),
        weight: u64,
    ) -> &mut Thread {
        let thread = self.thread(of);
        let root = self.threads[thread].1.root;
        if root != self.last_root {
            self.last.clear();
            self.last_root = root;
        }
        let (mut at, mut same, mut depth) = (root, true, 0);
        let mut full = false;
        for location in locations {
            if same
                && let Some(&(known, led)) = self.last.get(depth)
                && known == location
            {
                at = led;
            } else {
                if same {
                    self.last.truncate(depth);
                    same = false;
                }
                functions(location, &mut |function| match self.child(at, function) {
                    Some(child) => at = child,
                    None => full = true,
                });
                self.last.push((location, at));
            }
            depth += 1;
        }
        self.last.truncate(depth);
        self.shortened += u64::from(full);
        let step = &mut self.steps[at as usize];
        step.samples += 1;
        step.weight = step.weight.saturating_add(weight);
        &mut self.threads[thread].1
    }

    /// Where a thread is in the list.
    fn thread(&mut self, of: Of) -> usize {
        let next = self.threads.len();
        let at = *self.known.entry(of).or_insert(next);
        if at == next {
            let root = self.steps.len() as u32;
            self.steps.push(Step { parent: root, function: u32::MAX, samples: 0, weight: 0 });
            self.threads.push((of, Thread { root, span: None, stacks: Stacks::default() }));
        }
        at
    }

    fn child(&mut self, parent: u32, function: u32) -> Option<u32> {
        if let Some(&child) = self.children.get(&(parent, function)) {
            return Some(child);
        }
        if self.steps.len() >= self.most {
            return None;
        }
        let child = self.steps.len() as u32;
        self.steps.push(Step { parent, function, samples: 0, weight: 0 });
        self.children.insert((parent, function), child);
        Some(child)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn paths_are_summed(list in proptest::collection::vec((0u32..3, proptest::collection::vec(1u64..5, 0..6), 1u64..9), 0..40)) {
            let mut paths = Paths::new(1 << 20);
            let mut slow: BTreeMap<(u32, Vec<u32>), (u64, u64)> = BTreeMap::new();
            for (tid, path, weight) in &list {
                let of = Of { event: 1, pid: 1, generation: 0, tid: *tid };
                // Location n stands for functions n and, where it is even, n + 10 in it.
                let functions = |at: Location, each: &mut dyn FnMut(u32)| {
                    each(at.0 as u32);
                    if at.0.is_multiple_of(2) {
                        each(at.0 as u32 + 10);
                    }
                };
                paths.add(of, path.iter().map(|&at| Location(at)), functions, *weight);
                let mut whole = Vec::new();
                path.iter().for_each(|&at| functions(Location(at), &mut |f| whole.push(f)));
                let sum = slow.entry((*tid, whole)).or_default();
                *sum = (sum.0 + 1, sum.1 + weight);
            }
            let mut found = BTreeMap::new();
            for (of, thread) in &paths.threads {
                for (at, step) in paths.steps.iter().enumerate().filter(|(_, step)| step.samples > 0) {
                    let (mut path, mut up) = (Vec::new(), at as u32);
                    while paths.steps[up as usize].parent != up {
                        path.push(paths.steps[up as usize].function);
                        up = paths.steps[up as usize].parent;
                    }
                    path.reverse();
                    if up == thread.root {
                        found.insert((of.tid, path), (step.samples, step.weight));
                    }
                }
            }
            prop_assert_eq!(found, slow);
        }
    }

    #[test]
    fn without_room_samples_stand_in_their_callers() {
        let mut paths = Paths::new(3);
        let of = Of { event: 1, pid: 1, generation: 0, tid: 1 };
        let one = |at: Location, each: &mut dyn FnMut(u32)| each(at.0 as u32);
        paths.add(of, [1, 2, 3].map(Location).into_iter(), one, 5);
        assert_eq!((paths.steps.len(), paths.shortened), (3, 1));
        assert_eq!(paths.steps[2].weight, 5);
    }
}
