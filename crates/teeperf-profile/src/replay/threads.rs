//! The threads of a recording while it is replayed: for each its tree and its open frames,
//! into which summaries are put in order.

use std::collections::{BTreeMap, HashMap};

use super::apply::{Apply, KeptMark, Shared};
use super::arcs::Arcs;
use super::calltree::CallTree;
use super::fold;
use super::hits::Since;
use super::stack::Stack;
use super::summary::{CpuLook, Place, Summary};
use super::sums::Sums;
use crate::stacks::Moment;

/// A thread's number: process and serial.
pub(crate) type ThreadKey = (u32, u32);

/// A thread.
#[derive(Debug)]
pub(crate) struct ThreadState {
    /// Index of its tree.
    pub(crate) tree: usize,
    /// Open frames.
    pub(crate) stack: Stack,
    /// Id of the stack it is on.
    pub(super) stack_id: u64,
    /// Time of its last time word.
    pub(super) now: u64,
    /// Clock units charged since its last event.
    pub(super) recent: u64,
    /// Clock units to leave out before its next event.
    pub(super) debt: u64,
    /// As much of `recent` as a keyframe says was charged before the recording begins.
    pub(super) before: u64,
    /// Clock units that gaps have taken back of that.
    pub(super) taken_before: u64,
    /// The filter that its events stand under, where there was one.
    pub(super) filter: Option<Filtered>,
    /// Marks by key.
    pub(super) marks: HashMap<u32, KeptMark>,
    pub(super) place: Place,
    /// Its first piece is the thread's first: it is no thread that was folded and came back.
    pub(super) begins: bool,
    pub(super) first_time: u64,
    cpu: Option<(CpuLook, CpuLook)>,
    pub(super) tid: u32,
    name: Option<String>,
    events: u64,
    pub(super) waited: u64,
    /// Clock units that gaps left out so far: calls are timed without.
    pub(super) left_out: u64,
    /// Time since its last sample.
    pub(super) since: Since,
}

/// CPU time with which a thread that can be interrupted has samples, nanoseconds.
const SAMPLED_NS: u64 = 50_000_000;

/// A filter that a thread's events stand under.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filtered {
    /// Its number.
    pub(super) number: u32,
    /// Frames of calls before it that are still open: these are the lowest.
    pub(super) floor: u64,
}

/// What is told of a thread, or of all that share a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Thread id, of several the first.
    pub(crate) tid: u32,
    /// Name that it gave itself.
    pub(crate) name: Option<String>,
    /// Threads.
    pub(crate) threads: u32,
    /// Calls and returns.
    pub(crate) events: u64,
    /// Clock units from first to last event.
    pub(crate) wall: u64,
    /// CPU time between two looks at it, where there are two, nanoseconds; and the clock units between these.
    pub(crate) cpu: Option<(u64, u64)>,
    /// Clock units that gaps left out.
    pub(crate) left_out: u64,
    /// Clock units slept for want of room.
    pub(crate) waited: u64,
    /// Frames open at the end.
    pub(crate) open: u64,
}

impl Figures {
    /// Adds those of another thread.
    pub(crate) fn add(&mut self, other: Self) {
        if self.threads == 0 {
            (self.tid, self.name) = (other.tid, other.name);
        }
        self.threads = self.threads.saturating_add(other.threads);
        self.events = self.events.saturating_add(other.events);
        self.wall = self.wall.saturating_add(other.wall);
        self.cpu = match (self.cpu, other.cpu) {
            (Some(a), Some(b)) => Some((a.0.saturating_add(b.0), a.1.saturating_add(b.1))),
            (a, b) => a.or(b),
        };
        self.left_out = self.left_out.saturating_add(other.left_out);
        self.waited = self.waited.saturating_add(other.waited);
        self.open = self.open.saturating_add(other.open);
    }
}

impl ThreadState {
    pub(super) fn new(tree: usize, tid: u32, summary: &Summary) -> Self {
        Self {
            tree,
            stack: Stack::default(),
            stack_id: summary.begin_stack.unwrap_or(0),
            now: summary.begin_time,
            recent: 0,
            debt: 0,
            before: 0,
            taken_before: 0,
            filter: None,
            marks: HashMap::new(),
            place: summary.first_place,
            begins: summary.first_place.is_first(),
            first_time: summary.begin_time,
            cpu: None,
            tid,
            name: None,
            events: 0,
            waited: 0,
            left_out: 0,
            since: Since::default(),
        }
    }

    /// Whether all open frames are of calls before the filter.
    pub(super) fn is_below_filter(&self) -> bool {
        self.filter.is_some_and(|filter| self.stack.depth() <= filter.floor)
    }

    /// Frames were closed: those that are open now are what may be of calls before the filter.
    pub(super) fn keep_floor(&mut self) {
        if let Some(filter) = &mut self.filter {
            filter.floor = filter.floor.min(self.stack.depth());
        }
    }

    /// Calls and returns so far.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// Name so far.
    pub(super) fn name(&self) -> Option<&String> {
        self.name.as_ref()
    }

    /// What passed up to here belongs to whoever was on top.
    pub(super) fn settle(&mut self) {
        (self.recent, self.debt, self.before) = (0, 0, 0);
    }

    /// Where it is in time.
    pub(crate) fn moment(&self) -> Moment {
        let Self { now, recent, debt, before, taken_before, .. } = *self;
        Moment { now, recent, debt, before, taken_before }
    }

    /// Name so far.
    pub(crate) fn known_name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Takes over what no keyframe tells.
    pub(crate) fn go_on_as(&mut self, other: &Self) {
        (self.before, self.taken_before) = (other.before, other.taken_before);
        self.name.clone_from(&other.name);
    }

    /// What is told of it.
    pub(crate) fn figures(&self) -> Figures {
        Figures {
            tid: self.tid,
            name: self.name.clone(),
            threads: u32::from(self.begins),
            events: self.events,
            wall: self.now.saturating_sub(self.first_time),
            // Of a thread of one chunk only one moment is known.
            cpu: self.cpu.filter(|(first, last)| first != last).map(|(first, last)| {
                let cpu_ns = last.cpu_ns.saturating_sub(first.cpu_ns);
                (cpu_ns, last.time.saturating_sub(first.time))
            }),
            left_out: self.left_out,
            waited: self.waited,
            open: self.stack.depth(),
        }
    }

    /// CPU time at the last look at it, nanoseconds; 0 where there is none.
    fn cpu_ns(&self) -> u64 {
        self.cpu.map_or(0, |(_, last)| last.cpu_ns)
    }

    /// What a summary says beside calls and returns.
    fn note(&mut self, key: ThreadKey, summary: &mut Summary, shared: &mut Shared) {
        if let Some(missing) = self.place.missing_before(summary.first_place) {
            shared.warnings.add(|| {
                let (process, thread) = key;
                format!(
                    "chunk at offset {} (process {process}, thread {thread}): {missing}",
                    summary.offset
                )
            });
        }
        self.place = summary.last_place;
        self.events = self.events.saturating_add(summary.events);
        if let Some((first, last)) = summary.cpu {
            self.cpu = Some((self.cpu.map_or(first, |(first, _)| first), last));
        }
        if let Some(name) = summary.name.take() {
            self.name = Some(name);
        }
    }
}

/// Counts over all threads.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Calls and returns.
    pub(crate) events: u64,
    /// Of those, what was summed while the program ran.
    pub(crate) summed: u64,
    /// Of those, calls that are counted without their paths.
    pub(crate) without_paths: u64,
    /// Events known to be lost.
    pub(crate) lost: u64,
    /// Returns without a frame.
    pub(crate) unopened: u64,
    /// Of these, those on stacks that are not their thread's own.
    pub(crate) unopened_in_coroutines: u64,
    /// Times a thread went on with a stack that another had left, with frames on it.
    pub(crate) taken_over: u64,
    /// Gaps by reason: times, clock units.
    pub(crate) gaps: HashMap<u32, (u64, u64)>,
    /// First and last moment seen, clock units.
    pub(crate) span: Option<(u64, u64)>,
}

/// See the module.
pub(crate) struct Threads {
    /// Threads that are followed.
    pub(crate) states: HashMap<ThreadKey, ThreadState>,
    /// Trees; empty where one was folded into another.
    pub(crate) trees: Vec<Option<CallTree>>,
    /// Indices of trees that are empty.
    pub(super) free_trees: Vec<usize>,
    /// Which of the trees several threads share.
    pub(crate) groups: fold::Groups,
    /// What all threads have in common.
    pub(crate) shared: Shared,
    /// Calls without paths.
    pub(crate) arcs: Arcs,
    /// By process: the tree of its stacks that are no thread's.
    pub(super) homes: HashMap<u32, usize>,
    /// Threads with a tree of their own.
    pub(super) single: usize,
}

impl Threads {
    /// Without threads; at most `paths` call paths in all.
    pub(crate) fn new(paths: usize) -> Self {
        Self {
            states: HashMap::new(),
            trees: Vec::new(),
            free_trees: Vec::new(),
            groups: fold::Groups::default(),
            shared: Shared::new(paths),
            arcs: Arcs::default(),
            homes: HashMap::new(),
            single: 0,
        }
    }

    /// Puts the next summary of a thread behind what it did before.
    pub(crate) fn apply(&mut self, key: ThreadKey, tid: u32, summary: &mut Summary) {
        let known = self.states.remove(&key);
        let is_new = known.is_none();
        // One that is followed no longer may come back, and then began long ago.
        if is_new && self.groups.is_empty() {
            self.shared.note_beginning(key, summary);
        }
        let mut thread =
            known.unwrap_or_else(|| ThreadState::new(self.new_tree(key.0), tid, summary));
        thread.note(key, summary, &mut self.shared);
        self.shared.points.take(key.0, thread.tid, summary);
        self.shared.note(key.0, summary);
        if let Some(mut tree) = self.trees[thread.tree].take() {
            let trees = &self.trees;
            let shared = &mut self.shared;
            let mut apply = Apply { key, thread: &mut thread, tree: &mut tree, trees, shared };
            if is_new {
                apply.begin();
            }
            apply.run(summary);
            self.trees[thread.tree] = Some(tree);
        }
        self.states.insert(key, thread);
        fold::fold_if_many(self);
    }

    /// An empty tree for a thread of its own; its index.
    pub(super) fn new_tree(&mut self, process: u32) -> usize {
        let tree = self.free_trees.pop().unwrap_or_else(|| {
            self.trees.push(None);
            self.trees.len() - 1
        });
        self.trees[tree] = Some(CallTree::new(process));
        self.single += 1;
        tree
    }

    /// Adds what threads' own trees have summed.
    pub(super) fn take_sums(&mut self, sums: Sums) {
        for (key, summed) in sums.0 {
            let (begin, end) = summed.span;
            let (first, last) = self.shared.counts.span.unwrap_or((begin, end));
            self.shared.counts.span = Some((first.min(begin), last.max(end)));
            // Each call and its return; those still open have none.
            let events = summed.calls.saturating_mul(2);
            let counts = &mut self.shared.counts;
            counts.events = counts.events.saturating_add(events);
            counts.summed = counts.summed.saturating_add(events);
            let known = self.states.remove(&key);
            let mut state = known.unwrap_or_else(|| {
                let tree = self.new_tree(key.0);
                let new = ThreadState::new(tree, summed.tid, &Summary::default());
                // Threads that sum have a chunk too: where some were folded, this is one of those.
                ThreadState { begins: self.groups.is_empty(), ..new }
            });
            state.events = state.events.saturating_add(events);
            state.first_time = if state.now == 0 { begin } else { state.first_time.min(begin) };
            state.now = state.now.max(end);
            if let Some(tree) = self.trees.get_mut(state.tree).and_then(Option::as_mut) {
                tree.absorb(&mut self.shared.room, &summed.tree);
            }
            self.states.insert(key, state);
            fold::fold_if_many(self);
        }
    }

    /// No samples come any more. Threads that had much CPU time and no sample could not be interrupted.
    pub(super) fn end_samples(&mut self) {
        if self.trees.iter().flatten().all(|tree| tree.spent.is_empty()) {
            return;
        }
        let (mut without, ns_per_unit) = (0u64, self.shared.unit.ns());
        for state in self.states.values_mut() {
            let Some(tree) = self.trees.get_mut(state.tree).and_then(Option::as_mut) else {
                continue;
            };
            state.since.end(&mut tree.spent, ns_per_unit);
            without += u64::from(tree.spent.hits.is_empty() && state.cpu_ns() >= SAMPLED_NS);
        }
        if without > 0 {
            self.shared.warnings.add(|| {
                format!(
                    "{without} threads were not sampled: \
                     the clock tells where their CPU time went, and that may be wrong"
                )
            });
        }
    }

    /// Frames open at the end, on all stacks.
    pub(crate) fn open_frames(&self) -> u64 {
        let running = self.states.values().map(|state| state.stack.depth());
        let resting = self.shared.stacks.values().map(|(_, stack)| stack.depth());
        let ended = self.groups.iter().map(|(_, figures)| figures.open);
        running.chain(resting).chain(ended).fold(0, u64::saturating_add)
    }

    /// What is to be shown as a thread each: its serial, where it is one thread; process;
    /// figures; index of its tree. In an order that follows from the recording alone.
    pub(crate) fn shown(&self) -> Vec<(Option<u32>, u32, Figures, usize)> {
        let mut groups: BTreeMap<usize, Figures> =
            self.groups.iter().map(|(tree, figures)| (tree, figures.clone())).collect();
        let mut states: Vec<_> = self.states.iter().collect();
        states.sort_unstable_by_key(|(key, _)| **key);
        let mut out = Vec::new();
        for (&(process, serial), state) in states {
            match groups.get_mut(&state.tree) {
                Some(figures) => figures.add(state.figures()),
                None => {
                    let figures = Figures { threads: 1, ..state.figures() };
                    out.push((Some(serial), process, figures, state.tree));
                }
            }
        }
        for (tree, figures) in groups {
            if let Some(call_tree) = &self.trees[tree] {
                out.push((None, call_tree.process, figures, tree));
            }
        }
        out
    }
}
