//! Puts a summary into its thread's tree. What the summary owes, closes or jumps out of is
//! settled here, where the stack is known whole. Costs as much as the summary has nodes,
//! however many events it stands for.

use std::collections::{BTreeSet, HashMap};

use teeperf_wire::word::{ABANDONED, ESCAPE_BASE, gap};

use super::calltree::{CallTree, Room};
use super::mended::AllMended;
use super::points::AllPoints;
use super::stack::{Counter, Returned, Stack, is_nameless, is_run};
use super::summarise::Unit;
use super::summary::{Op, Segment, Summary};
use super::threads::{Counts, Filtered, ThreadKey, ThreadState};
use super::tree::pseudo;
use super::waits::AllWaits;
use crate::escape::Gap;
use crate::filters::Filters;
use crate::lengths::Lengths;
use crate::names::Windows;
use crate::warnings::Warnings;

/// Most marks remembered for a thread; when there are more, all are forgotten.
pub(super) const MAX_MARKS: usize = 1 << 16;
/// Likewise for all processes.
pub(super) const MAX_SHARED_MARKS: usize = 1 << 18;
/// Most frames whose calls are timed beyond a batch, on all stacks.
const MOST_TIMED: usize = 1 << 22;
/// Most stacks remembered that no thread is on.
pub(super) const MAX_STACKS: usize = 1 << 18;
/// Frames taken along when a stack goes on in another thread; those below are `[unknown]`.
const TAKEN_ALONG: usize = 1 << 10;

/// What all threads have in common.
pub(crate) struct Shared {
    /// What may yet be made, in all trees.
    pub(crate) room: Room,
    /// Stacks that no thread is on, with the index of the tree they are in. Own stacks of
    /// threads are known by the thread, others by their id.
    pub(crate) stacks: HashMap<(u32, u32, u64), (usize, Stack)>,
    /// Marks on stacks that are no thread's own: another thread may jump to them. By process and key.
    pub(crate) marks: HashMap<(u32, u32), KeptMark>,
    /// How many marks were kept.
    marks_kept: u64,
    /// Addresses outside every window, by the number that nodes have for them.
    pub(crate) far: Vec<u64>,
    far_numbers: HashMap<u64, u32>,
    /// Windows of modules.
    pub(crate) windows: Windows,
    /// Which functions were recorded.
    pub(crate) filters: Filters,
    /// Counts over all threads.
    pub(crate) counts: Counts,
    /// What was wrong.
    pub(crate) warnings: Warnings,
    /// Calls that found no room on their paths in a thread's tree.
    pub(crate) no_room: u64,
    /// Of those, the ones for whose functions there was no room either.
    pub(crate) nameless: u64,
    /// What others have summed may yet come to.
    pub(super) credit: Credit,
    /// Frames that keyframes may yet open one by one.
    pub(super) frames_to_open: u64,
    /// Stacks that were left or entered, where that is to be known.
    pub(crate) changed: Option<BTreeSet<(u32, u32, u64)>>,
    /// Whether a stack was ever left or entered.
    pub(crate) has_switched: bool,
    /// Waits of async functions.
    pub(crate) waits: AllWaits,
    /// Frames closed or returns left out because something was not seen.
    pub(crate) mended: AllMended,
    /// Points on the time line.
    pub(crate) points: AllPoints,
    /// Picoseconds of a step of the counter that times calls beside the tick, and of a clock unit; 0 where the recording
    /// does not say what the counter's are.
    pub(crate) counter_ps: (f64, f64),
    /// Length of the clock's unit.
    pub(crate) unit: Unit,
    /// Calls that such a counter timed.
    pub(crate) uncounted: u64,
    /// Frames of all stacks whose calls are timed.
    timed: usize,
    /// Scratch: node in the tree of each node of the summary.
    numbers: Vec<u32>,
    /// Scratch: roots of a segment, each with the depth of the stack below it.
    grounds: Vec<(u32, u64)>,
    /// Scratch: number here of each far address of the summary.
    far_here: Vec<u32>,
}

/// A mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptMark {
    /// Id of its stack.
    pub(super) stack: u64,
    /// Number of the frames there.
    pub(super) depth: u64,
    /// How many were kept before it, by all threads.
    order: u64,
}

/// A return, its time where calls are timed, and what the counter was where it times them.
struct Return {
    /// As the summary has it.
    word: u32,
    now: u64,
    counter: Option<u64>,
}

/// A summary being put into its thread.
pub(super) struct Apply<'a> {
    pub(super) key: ThreadKey,
    pub(super) thread: &'a mut ThreadState,
    pub(super) tree: &'a mut CallTree,
    pub(super) trees: &'a [Option<CallTree>],
    pub(super) shared: &'a mut Shared,
}

/// Most that counts which others have summed may come to, in a whole recording: what is beyond is no count, and
/// is left out. Sums of what is left stay below 2^64, however they are added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credit {
    calls: u64,
    units: u64,
}

impl Credit {
    /// Of a whole recording (`docs/format.md`, 10).
    const ALL: Self = Self { calls: 1 << 56, units: 1 << 62 };

    /// Takes calls off, or makes them none where there are not so many, and says so.
    pub(super) fn take_calls(&mut self, calls: &mut u64) -> bool {
        take(&mut self.calls, calls)
    }

    /// Likewise clock units.
    pub(super) fn take_units(&mut self, units: &mut u64) -> bool {
        take(&mut self.units, units)
    }
}

fn take(left: &mut u64, count: &mut u64) -> bool {
    match left.checked_sub(*count) {
        Some(rest) => *left = rest,
        None => {
            *count = 0;
            return true;
        }
    }
    false
}

/// How that is said of so many counts of what lies at an offset, if there are any.
pub(super) fn warn_of_counts(warnings: &mut Warnings, what: &str, offset: u64, counts: usize) {
    if counts > 0 {
        warnings.add(|| {
            format!("{what} at offset {offset}: {counts} counts are more than can have been, and left out")
        });
    }
}

impl Shared {
    /// Nothing yet; at most `paths` call paths.
    pub(crate) fn new(paths: usize) -> Self {
        Self {
            room: Room::new(paths),
            stacks: HashMap::new(),
            marks: HashMap::new(),
            marks_kept: 0,
            far: Vec::new(),
            far_numbers: HashMap::new(),
            windows: Windows::default(),
            filters: Filters::default(),
            counts: Counts::default(),
            warnings: Warnings::default(),
            no_room: 0,
            nameless: 0,
            credit: Credit::ALL,
            frames_to_open: super::keyframes::MOST_FRAMES,
            changed: None,
            has_switched: false,
            waits: AllWaits::default(),
            mended: AllMended::default(),
            points: AllPoints::default(),
            counter_ps: (0.0, 0.0),
            unit: Unit::default(),
            uncounted: 0,
            timed: 0,
            numbers: Vec::new(),
            grounds: Vec::new(),
            far_here: Vec::new(),
        }
    }

    /// Says so when a thread's first summary is not of its beginning.
    pub(super) fn note_beginning(&mut self, (process, thread): ThreadKey, summary: &Summary) {
        let place = summary.first_place;
        if !place.is_first() {
            self.warnings.add(|| {
                format!(
                    "chunk at offset {} (process {process}, thread {thread}): the thread begins with chunk {} from word {}",
                    summary.offset, place.sequence, place.word
                )
            });
        }
    }

    /// Counts what a summary counted.
    pub(super) fn note(&mut self, process: u32, summary: &mut Summary) {
        for window in summary.windows.drain(..) {
            self.windows.open(process, window, &mut self.warnings);
        }
        self.waits.take(process, summary, &mut self.warnings);
        self.warnings.append(&mut summary.warnings);
        self.counts.events = self.counts.events.saturating_add(summary.events);
        self.counts.lost = self.counts.lost.saturating_add(summary.lost);
        let (begin, end) = (summary.begin_time, summary.end_time);
        let (first, last) = self.counts.span.unwrap_or((begin, end));
        self.counts.span = Some((first.min(begin), last.max(end)));
        self.far_here.clear();
        for &address in &summary.far {
            let number = self.far_number(address);
            self.far_here.push(number);
        }
        for (word, frames) in std::mem::take(&mut summary.mended) {
            self.mended.add(process, self.word_here(word), frames);
        }
    }

    /// A mark of a thread, whose marks are these, at this depth of a stack. On a stack that is not the thread's own it is known
    /// to all threads.
    pub(super) fn remember(
        &mut self,
        process: u32,
        marks: &mut HashMap<u32, KeptMark>,
        key: u32,
        (stack, depth): (u64, u64),
    ) {
        let mark = KeptMark { stack, depth, order: self.marks_kept };
        self.marks_kept += 1;
        if marks.len() >= MAX_MARKS {
            marks.clear();
        }
        marks.insert(key, mark);
        if stack != 0 && key != super::VFORK_MARK {
            if self.marks.len() >= MAX_SHARED_MARKS {
                self.marks.clear();
            }
            self.marks.insert((process, key), mark);
        }
    }

    /// The mark with this key that was kept last, of a thread's own and of those that all know.
    fn mark(&self, process: u32, marks: &HashMap<u32, KeptMark>, key: u32) -> Option<KeptMark> {
        let (own, shared) = (marks.get(&key), self.marks.get(&(process, key)));
        own.into_iter().chain(shared).max_by_key(|mark| mark.order).copied()
    }

    /// Whether no other thread has kept a mark with this key since.
    pub(super) fn is_last(&self, process: u32, key: u32, mark: &KeptMark) -> bool {
        let shared = self.marks.get(&(process, key));
        shared.is_none_or(|shared| shared.order <= mark.order)
    }

    /// A stack that nobody is on is another than before.
    pub(super) fn note_change(&mut self, key: (u32, u32, u64)) {
        self.has_switched = true;
        if let Some(changed) = &mut self.changed {
            changed.insert(key);
        }
    }

    /// The number that nodes have for an address outside every window.
    pub(super) fn far_number(&mut self, address: u64) -> u32 {
        match self.far_numbers.get(&address) {
            Some(&number) => number,
            None if self.far.len() < pseudo::MAX_FAR as usize => {
                self.far.push(address);
                self.far_numbers.insert(address, self.far.len() as u32 - 1);
                self.far.len() as u32 - 1
            }
            None => pseudo::MAX_FAR,
        }
    }

    /// A word of a summary as trees have it: numbers of far code are the summary's own.
    fn word_here(&self, word: u32) -> u32 {
        if word < ESCAPE_BASE {
            return word;
        }
        let number = (word - pseudo::FAR) >> 1;
        let here = self.far_here.get(number as usize).copied().unwrap_or(pseudo::MAX_FAR);
        pseudo::FAR + 2 * here + (word & 1)
    }
}

impl Apply<'_> {
    /// Frames may be waiting on the stack that the thread is first seen on.
    pub(super) fn begin(&mut self) {
        self.enter(self.thread.stack_id);
        self.shared.timed += self.thread.stack.timed();
    }

    /// Puts it in.
    pub(super) fn run(mut self, summary: &Summary) {
        self.shared.timed = self.shared.timed.saturating_sub(self.thread.stack.timed());
        let passed = summary.begin_time.saturating_sub(self.thread.now);
        self.charge(passed);
        self.thread.since.passed(self.thread.stack.top(), passed);
        if let Some(stack) = summary.begin_stack {
            self.resume(stack);
        }
        let times = summary.timed.as_ref().map_or(&[][..], |timed| &timed.owed);
        let times = times.iter().copied().chain(std::iter::repeat(0));
        let counters = summary.timed.as_ref().map_or(&[][..], |timed| &timed.counted.owed);
        let mut counters = counters.iter().peekable();
        let returns = summary.owed.iter().zip(times).enumerate();
        let mut owed = returns.map(|(index, (&word, now))| {
            let counter = counters.next_if(|counter| counter.0 == index).map(|counter| counter.1);
            Return { word, now, counter }
        });
        let (mut nodes, mut marks) = (0, 0);
        self.shared.numbers.clear();
        let (mut opened, mut opened_counted) = (0, 0);
        for (at, segment) in summary.segments.iter().enumerate() {
            let below = self.segment(summary, segment, nodes, marks, &mut owed);
            (nodes, marks) = (segment.nodes_end as usize, segment.marks_end as usize);
            let (mut now, mut counter) = (0, None);
            if let Some(timed) = &summary.timed {
                let (end, time) = timed.segments[at];
                self.time_opened(below, &timed.opened[opened..end]);
                (opened, now) = (end, time);
                let (end, last) = timed.counted.segments[at];
                self.count_opened(below, &timed.counted.opened[opened_counted..end]);
                (opened_counted, counter) = (end, last);
            }
            self.settle(segment.op, now, counter);
        }
        if let Some(timed) = &summary.timed {
            self.take_lengths(&timed.functions);
            for &(word, steps) in &timed.counted.lengths {
                self.take_counted(word, steps, 0);
            }
        }
        let numbers = &self.shared.numbers;
        let number = |node: u32| numbers.get(node as usize).copied().unwrap_or(0);
        let spent = &mut self.tree.spent;
        let ns_per_unit = self.shared.unit.ns();
        summary.sampled.put_behind(&mut self.thread.since, spent, number, ns_per_unit);
        self.thread.now = summary.end_time;
        self.shared.timed += self.thread.stack.timed();
    }

    /// Time that passed before an event, less what a gap said to leave out.
    fn charge(&mut self, units: u64) {
        let left_out = units.min(self.thread.debt);
        self.thread.debt -= left_out;
        self.thread.left_out = self.thread.left_out.saturating_add(left_out);
        self.thread.recent = self.thread.recent.saturating_add(units - left_out);
        self.tree.count(self.thread.stack.top(), 0, units - left_out);
    }

    /// Puts in what a segment did. Gives the depth below the frames that it left open.
    fn segment(
        &mut self,
        summary: &Summary,
        segment: &Segment,
        first_node: usize,
        first_mark: usize,
        owed: &mut impl Iterator<Item = Return>,
    ) -> u64 {
        self.charge(segment.lead);
        self.graft(summary, first_node, segment.nodes_end as usize, owed);
        self.remember(summary, first_mark, segment.marks_end as usize);
        let below = self.thread.stack.depth();
        self.open_frames(summary, segment.top);
        if segment.eventful {
            self.thread.settle();
            self.thread.recent = segment.recent;
        }
        below
    }

    /// Frames above this depth were opened at these times.
    fn time_opened(&mut self, below: u64, begins: &[u64]) {
        let stack = &mut self.thread.stack;
        let room = MOST_TIMED.saturating_sub(self.shared.timed + stack.timed());
        let left_out = self.thread.left_out;
        stack.time(
            below,
            begins.iter().take(room).map(|&begin| begin.wrapping_sub(left_out) as i64),
        );
    }

    /// Of the frames above this depth, some of which the counter times, by their depth above it.
    fn count_opened(&mut self, below: u64, begins: &[(u32, u64)]) {
        let stack = &mut self.thread.stack;
        let room = MOST_TIMED.saturating_sub(self.shared.timed + stack.timed());
        let left_out = self.thread.left_out;
        let begins = begins.iter().map(|&(above, counter)| (above, Counter { counter, left_out }));
        stack.count(below, begins.take(room));
    }

    /// A call took so many steps of the counter, in which gaps left out so many clock units.
    fn take_counted(&mut self, word: u32, steps: u64, left_out: u64) {
        let (step, unit) = self.shared.counter_ps;
        if step == 0.0 {
            self.shared.uncounted += 1;
            return;
        }
        let (all, off) = (steps as f64 * step, left_out as f64 * unit);
        // Gaps are as long as ticks tell, which is more than a short call in them: of that nothing is known.
        if left_out > 0 && all <= off {
            return;
        }
        let word = self.shared.word_here(word);
        if let Some(here) = self.tree.counted_of(&mut self.shared.room, word, 1) {
            here.add((all - off) as u64);
        }
    }

    fn take_lengths(&mut self, functions: &[(u32, Lengths)]) {
        for (word, lengths) in functions {
            let word = self.shared.word_here(*word);
            let room = &mut self.shared.room;
            if let Some(here) = self.tree.lengths_of(room, word, lengths.calls()) {
                here.merge(lengths);
            }
        }
    }

    /// Adds the nodes of a segment to the tree, and closes the frames that it owes.
    fn graft(
        &mut self,
        summary: &Summary,
        first: usize,
        end: usize,
        owed: &mut impl Iterator<Item = Return>,
    ) {
        self.shared.grounds.clear();
        for (i, node) in summary.tree.nodes()[first..end].iter().enumerate() {
            let here = if node.word == pseudo::ROOT {
                if i > 0
                    && let Some(owed) = owed.next()
                {
                    self.close(owed);
                }
                self.shared.grounds.push(((first + i) as u32, self.thread.stack.depth()));
                self.thread.stack.top()
            } else {
                let parent = self.shared.numbers[node.parent as usize];
                let word = self.shared.word_here(node.word);
                self.tree.child(&mut self.shared.room, parent, word)
            };
            self.tree.count(here, node.calls.into(), node.time);
            self.shared.numbers.push(here);
        }
    }

    fn remember(&mut self, summary: &Summary, first: usize, end: usize) {
        for mark in &summary.marks[first..end] {
            let grounds = &self.shared.grounds;
            let Ok(ground) = grounds.binary_search_by_key(&mark.root, |&(root, _)| root) else {
                continue;
            };
            let above = summary.tree.nodes()[mark.node as usize].depth;
            let depth = grounds[ground].1.saturating_add(above.into());
            let place = (self.thread.stack_id, depth);
            self.shared.remember(self.key.0, &mut self.thread.marks, mark.key, place);
        }
    }

    /// Puts the frames on the stack that a segment left open, up to its node `top`.
    fn open_frames(&mut self, summary: &Summary, top: u32) {
        let nodes = summary.tree.nodes();
        let tree = &self.tree.tree;
        let here = |node: u32| self.shared.numbers[node as usize];
        let mut recorded = top;
        let mut runs: Vec<u32> = Vec::new();
        while nodes[recorded as usize].depth > 0 && is_run(tree, here(recorded)) {
            runs.push(here(recorded));
            recorded = nodes[recorded as usize].parent;
        }
        let frames = nodes[recorded as usize].depth;
        if frames > 0 {
            self.thread.stack.push_path(tree, here(recorded), frames.into());
        }
        for &run in runs.iter().rev() {
            self.thread.stack.push_run(tree, run, 1);
        }
    }

    /// A return.
    fn close(&mut self, Return { word: own, now, counter }: Return) {
        let word = self.shared.word_here(own);
        if self.thread.is_below_filter() {
            return self.close_below_filter(word);
        }
        let process = self.key.0;
        let mended = &mut self.shared.mended;
        let above = |word, frames| mended.add(process, word, frames);
        match self.thread.stack.close(&self.tree.tree, word, above) {
            Returned::Closed { begin, counted } => {
                if let Some((begin, end)) = counted.zip(counter) {
                    let left_out = self.thread.left_out.saturating_sub(begin.left_out);
                    self.take_counted(own & !1, end.saturating_sub(begin.counter), left_out);
                }
                if let Some(begin) = begin {
                    let end = now.wrapping_sub(self.thread.left_out) as i64;
                    let length = end.wrapping_sub(begin).max(0) as u64;
                    if let Some(here) = self.tree.lengths_of(&mut self.shared.room, word & !1, 1) {
                        here.add(length);
                    }
                }
            }
            Returned::Stray => self.shared.mended.add(process, word & !1, 1),
            Returned::Unopened => self.are_unopened(1),
        }
        self.close_left_out();
    }

    fn settle(&mut self, op: Op, now: u64, counter: Option<u64>) {
        match op {
            Op::End => return,
            Op::Gap(gap) => {
                self.gap(gap);
                return self.thread.keep_floor();
            }
            Op::Resume(id) => return self.resume(id),
            Op::Filter(number) => return self.filter(number),
            Op::Return(word) => self.close(Return { word, now, counter }),
            Op::Jump(key) => self.jump(key),
            Op::Catch(word) => self.catch(word),
            Op::Switch { left, entered } => {
                if left != ABANDONED {
                    self.leave(left);
                }
                self.enter(entered);
            }
            Op::StackNew(id) => {
                if id == self.thread.stack_id {
                    self.thread.stack = Stack::default();
                } else {
                    let key = self.stack_key(id);
                    self.shared.note_change(key);
                    if let Some((_, gone)) = self.shared.stacks.remove(&key) {
                        self.shared.timed = self.shared.timed.saturating_sub(gone.timed());
                    }
                }
            }
        }
        // All of these are events: what passed before them is settled.
        self.thread.settle();
        self.close_left_out();
    }

    /// Events stand under another filter from here on. What one left out that came and went without a word of this thread
    /// may have returned as well.
    fn filter(&mut self, number: u32) {
        let floor = self.thread.stack.depth();
        let before = self.thread.filter.map_or(0, |filter| filter.number);
        for skipped in self.shared.filters.between(self.key.0, before, number) {
            self.thread.filter = Some(Filtered { number: skipped, floor });
            self.close_left_out();
        }
        self.thread.filter = Some(Filtered { number, floor });
        self.close_left_out();
        if self.thread.stack.depth() < floor {
            (self.thread.recent, self.thread.before) = (0, 0);
        }
    }

    /// The frame of a function that the filter leaves out is not that of a call before it.
    fn catch(&mut self, word: u32) {
        let left_out = self.thread.filter.filter(|filter| !self.passes(filter.number, word));
        let lowest = left_out.map_or(0, |filter| filter.floor);
        self.thread.stack.catch(&self.tree.tree, word, lowest);
    }

    /// Whether the function of a word passes a filter. What has no site does.
    fn passes(&self, number: u32, word: u32) -> bool {
        word >= ESCAPE_BASE || self.shared.filters.pass(self.key.0, number, word >> 1)
    }

    /// A return where all open frames are of calls before the filter. It may be of a call that the filter then
    /// left out; if not, its frame is the one on top, since frames above it that are left out now are closed.
    fn close_below_filter(&mut self, word: u32) {
        let top = self.thread.stack.top();
        let of_top = self.tree.tree.nodes()[top as usize].word;
        if self.thread.stack.depth() > 0 && (is_nameless(of_top) || of_top | 1 == word) {
            self.thread.stack.pop(&self.tree.tree, 1);
            self.close_left_out();
        }
    }

    /// Closes frames on top of calls before the filter whose returns it leaves out: so what is on top of these is never
    /// one of them.
    fn close_left_out(&mut self) {
        let Some(Filtered { number, .. }) = self.thread.filter else { return };
        self.thread.keep_floor();
        while self.thread.is_below_filter() && self.thread.stack.depth() > 0 {
            let word = self.tree.tree.nodes()[self.thread.stack.top() as usize].word;
            if self.passes(number, word) {
                break;
            }
            let alike = self.thread.stack.alike_on_top(&self.tree.tree);
            self.thread.stack.pop(&self.tree.tree, alike);
        }
        self.thread.keep_floor();
    }

    fn jump(&mut self, key: u32) {
        let mark = self.shared.mark(self.key.0, &self.thread.marks, key);
        let Some(KeptMark { stack, depth, .. }) = mark else { return };
        if stack != self.thread.stack_id && self.shared.stacks.contains_key(&self.stack_key(stack))
        {
            self.leave(self.thread.stack_id);
            self.enter(stack);
        }
        self.thread.stack.fall_to(&self.tree.tree, depth);
    }

    /// So many returns are of calls that nobody has seen.
    fn are_unopened(&mut self, returns: u64) {
        let counts = &mut self.shared.counts;
        counts.unopened += returns;
        if self.thread.stack_id != 0 {
            counts.unopened_in_coroutines += returns;
        }
    }

    /// Closes so many frames as returned in a gap: of those below the filter, frames that it leaves out are no part of
    /// that, and returns may be of calls that another has left out.
    fn pop(&mut self, mut returns: u64) {
        let Some(floor) = self.thread.filter.map(|filter| filter.floor) else {
            let unopened = self.thread.stack.pop(&self.tree.tree, returns);
            return self.are_unopened(unopened);
        };
        let above = self.thread.stack.depth().saturating_sub(floor).min(returns);
        self.thread.stack.pop(&self.tree.tree, above);
        returns -= above;
        self.close_left_out();
        while returns > 0 && self.thread.stack.depth() > 0 {
            let alike = self.thread.stack.alike_on_top(&self.tree.tree).min(returns);
            self.thread.stack.pop(&self.tree.tree, alike);
            returns -= alike;
            self.close_left_out();
        }
    }

    fn gap(&mut self, gap: Gap) {
        let counts = &mut self.shared.counts;
        let (times, units) = counts.gaps.entry(gap.reason).or_default();
        *times += 1;
        *units = units.saturating_add(gap.units);
        // What was left out by wish is not lost.
        if !matches!(gap.reason, gap::PAUSED | gap::FILTERED | gap::FORKED | gap::STOPPED) {
            counts.lost = counts.lost.saturating_add(gap.lost);
        }
        if matches!(gap.reason, gap::WAITED | gap::STALLED) {
            self.thread.waited = self.thread.waited.saturating_add(gap.units);
        }
        // Time of the gap may stand before it, charged already, or come behind it.
        let charged = gap.units.min(self.thread.recent);
        let here = charged.min(self.thread.recent - self.thread.before);
        self.thread.left_out = self.thread.left_out.saturating_add(here);
        let top = &mut self.tree.tree.nodes_mut()[self.thread.stack.top() as usize];
        top.time = top.time.wrapping_sub(here);
        self.thread.recent -= charged;
        self.thread.before -= charged - here;
        self.thread.taken_before = self.thread.taken_before.saturating_add(charged - here);
        self.thread.debt = self.thread.debt.saturating_add(gap.units - charged);

        self.pop(gap.popped.into());
        if gap.pushed > 0 {
            let top = self.thread.stack.top();
            let unknown = match self.tree.tree.nodes()[top as usize].word {
                word if is_nameless(word) => top,
                _ => self.tree.child(&mut self.shared.room, top, pseudo::UNKNOWN),
            };
            self.thread.stack.push_run(&self.tree.tree, unknown, gap.pushed.into());
        }
        if gap.popped > 0 || gap.pushed > 0 {
            (self.thread.recent, self.thread.before) = (0, 0);
        }
    }

    /// Goes on with the stack of this id, if it is another one.
    fn resume(&mut self, id: u64) {
        if id != self.thread.stack_id {
            self.leave(self.thread.stack_id);
            self.enter(id);
            self.thread.settle();
        }
    }

    fn stack_key(&self, id: u64) -> (u32, u32, u64) {
        let (process, thread) = self.key;
        if id == 0 { (process, thread, 0) } else { (process, 0, id) }
    }

    /// Keeps the frames under this id.
    fn leave(&mut self, id: u64) {
        let stack = std::mem::take(&mut self.thread.stack);
        self.shared.note_change(self.stack_key(id));
        if self.shared.stacks.len() < MAX_STACKS {
            self.shared.timed += stack.timed();
            self.shared.stacks.insert(self.stack_key(id), (self.thread.tree, stack));
        } else {
            self.shared.warnings.add(|| {
                format!("more than {MAX_STACKS} stacks: frames of stack {id:#x} are forgotten")
            });
        }
    }

    /// Goes on with the frames kept under this id, with none when there are none.
    fn enter(&mut self, id: u64) {
        self.thread.stack_id = id;
        let key = self.stack_key(id);
        let kept = self.shared.stacks.remove(&key);
        if let Some((_, stack)) = &kept {
            self.shared.note_change(key);
            self.shared.timed = self.shared.timed.saturating_sub(stack.timed());
        }
        self.thread.stack = match kept {
            Some((tree, stack)) if tree == self.thread.tree => stack,
            Some((tree, stack)) => {
                self.shared.counts.taken_over += u64::from(stack.depth() > 0);
                self.transplant(tree, &stack)
            }
            None => Stack::default(),
        };
        if let Some(filter) = &mut self.thread.filter {
            // Under which filter its frames were opened is not known.
            filter.floor = self.thread.stack.depth();
            self.close_left_out();
        }
    }

    /// The same frames in this thread's tree.
    fn transplant(&mut self, tree: usize, stack: &Stack) -> Stack {
        let mut moved = Stack::default();
        let Some(from) = self.trees.get(tree).and_then(Option::as_ref) else { return moved };
        let one_by_one = stack.frames(&from.tree).flat_map(|(word, n)| {
            let (times, each) = if is_nameless(word) { (1, n) } else { (n, 1) };
            (0..times).map(move |_| (word, each))
        });
        let mut frames: Vec<(u32, u64)> = one_by_one.take(TAKEN_ALONG).collect();
        let along: u64 = frames.iter().fold(0, |sum, &(_, n)| sum.saturating_add(n));
        let left_behind = stack.depth().saturating_sub(along);
        if left_behind > 0 {
            frames.push((pseudo::UNKNOWN, left_behind));
        }
        for &(word, n) in frames.iter().rev() {
            let node = self.tree.child(&mut self.shared.room, moved.top(), word);
            if is_run(&self.tree.tree, node) {
                moved.push_run(&self.tree.tree, node, n);
            } else {
                moved.push_path(&self.tree.tree, node, n);
            }
        }
        moved
    }
}
