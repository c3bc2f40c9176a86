//! Keeps a recording of very many threads small: when there are too many trees, those of
//! the threads with fewest events are added up by process and name, and threads that have
//! no open frame left are no longer followed. No count and no time is lost by it, only
//! which of the threads they belong to.

use std::collections::HashMap;

use super::calltree::CallTree;
use super::threads::{Figures, ThreadKey, Threads};

/// Threads that are shown each for itself, at least, where there are so many.
const SHOWN: usize = 1000;
/// Threads with a tree of their own, at most.
const MOST_SINGLE: usize = 2 * SHOWN;
/// Threads that are followed, at most, while they have open frames and no tree of their own.
const MOST_FOLLOWED: usize = 1 << 17;
/// Names by which threads are told apart; where there are more, all others go together.
const MOST_NAMES: usize = 500;

/// Trees that several threads share.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    trees: HashMap<(u32, Option<String>), usize>,
    /// By tree: figures of those of its threads that are no longer followed.
    figures: HashMap<usize, Figures>,
}

impl Groups {
    /// Whether nothing was folded yet.
    pub(super) fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    /// Whether a tree is shared.
    pub(crate) fn has(&self, tree: usize) -> bool {
        self.figures.contains_key(&tree)
    }

    /// The shared trees, each with the figures of threads that are no longer followed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Figures)> {
        self.figures.iter().map(|(&tree, figures)| (tree, figures))
    }
}

/// Folds all but [`SHOWN`] threads, where there are too many.
pub(super) fn fold_if_many(threads: &mut Threads) {
    if threads.single > MOST_SINGLE {
        fold(threads);
    }
}

fn fold(threads: &mut Threads) {
    let mut single: Vec<(u64, ThreadKey)> = threads
        .states
        .iter()
        .filter(|(_, state)| !threads.groups.has(state.tree))
        .map(|(key, state)| (state.events(), *key))
        .collect();
    single.sort_unstable();
    single.truncate(single.len().saturating_sub(SHOWN));
    move_to_groups(threads, single.iter().map(|&(_, key)| key));
    threads.single -= single.len();
    for (_, key) in single {
        if threads.states.get(&key).is_some_and(|state| state.stack.depth() == 0) {
            release(threads, key);
        }
    }
    if threads.states.len() > SHOWN + MOST_FOLLOWED {
        let shared = |(key, state): (&ThreadKey, &super::threads::ThreadState)| {
            threads.groups.has(state.tree).then_some(*key)
        };
        let mut followed: Vec<ThreadKey> = threads.states.iter().filter_map(shared).collect();
        followed.sort_unstable();
        for key in followed {
            release(threads, key);
        }
    }
}

/// Folds threads that were folded before and came back: shown each for itself they would be counted
/// a second time.
pub(super) fn fold_returned(threads: &mut Threads) {
    if threads.groups.is_empty() {
        return;
    }
    let has_returned = |(key, state): (&ThreadKey, &super::threads::ThreadState)| {
        (!state.begins && !threads.groups.has(state.tree)).then_some(*key)
    };
    let mut returned: Vec<ThreadKey> = threads.states.iter().filter_map(has_returned).collect();
    returned.sort_unstable();
    threads.single -= returned.len();
    move_to_groups(threads, returned.into_iter());
}

/// Adds the trees of threads to those of their groups.
fn move_to_groups(threads: &mut Threads, keys: impl Iterator<Item = ThreadKey>) {
    let moved: HashMap<usize, (usize, Vec<u32>)> =
        keys.filter_map(|key| move_to_group(threads, key)).collect();
    for (tree, stack) in threads.shared.stacks.values_mut() {
        if let Some((to, numbers)) = moved.get(tree) {
            *tree = *to;
            stack.renumber(numbers);
        }
    }
}

/// Adds a thread's tree to that of its group. Gives the old tree's index, the group's, and
/// where each node went.
fn move_to_group(threads: &mut Threads, key: ThreadKey) -> Option<(usize, (usize, Vec<u32>))> {
    let state = threads.states.get_mut(&key)?;
    let from = state.tree;
    let old = threads.trees[from].take()?;
    let named = threads.groups.trees.len() < MOST_NAMES;
    let by_name = (key.0, state.name().cloned());
    let group =
        if named || threads.groups.trees.contains_key(&by_name) { by_name } else { (key.0, None) };
    let trees = &mut threads.trees;
    let to = *threads.groups.trees.entry(group).or_insert_with(|| {
        trees.push(Some(CallTree::new(key.0)));
        trees.len() - 1
    });
    threads.groups.figures.entry(to).or_default();
    let numbers = trees[to].as_mut()?.absorb(&mut threads.shared.room, &old);
    state.tree = to;
    state.stack.renumber(&numbers);
    state.since.renumber(&numbers);
    threads.free_trees.push(from);
    Some((from, (to, numbers)))
}

/// Follows a thread no longer; what is known of it goes to its group.
fn release(threads: &mut Threads, key: ThreadKey) {
    let Some(mut state) = threads.states.remove(&key) else { return };
    let ns_per_unit = threads.shared.unit.ns();
    if let Some(tree) = threads.trees.get_mut(state.tree).and_then(Option::as_mut) {
        state.since.end(&mut tree.spent, ns_per_unit);
    }
    if let Some(figures) = threads.groups.figures.get_mut(&state.tree) {
        figures.add(state.figures());
    }
}
