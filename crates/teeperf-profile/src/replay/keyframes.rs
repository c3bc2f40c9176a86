//! Keyframes into replay and out of it: what a thread's state is to be, and what it is.

use std::collections::HashMap;

use teeperf_wire::word::ESCAPE_BASE;

use super::apply::{KeptMark, MAX_MARKS, MAX_STACKS, Shared};
use super::calltree::CallTree;
use super::stack::{Stack, is_nameless, is_run};
use super::summary::{Place, Summary};
use super::threads::{Filtered, ThreadKey, ThreadState, Threads};
use super::tree::pseudo;
use crate::keyframes::{Frame, Keyframe};

/// Frames that keyframes of a recording may open one by one, and so many more for each run of them that is told; what is
/// beyond is not known. The usual 8 MiB of a stack hold half a million.
pub(super) const MOST_FRAMES: u64 = 1 << 20;
const FRAMES_FOR_RUN: u64 = 16;
/// Runs of frames in what is told of a stack; those that are below are not known.
const MOST_RUNS: usize = 1 << 20;

impl Threads {
    /// Takes what a keyframe says; `offset` is that of its packet.
    pub(crate) fn keyframe(&mut self, offset: u64, keyframe: &Keyframe) {
        let shared = &mut self.shared;
        for window in &keyframe.windows {
            shared.windows.open(keyframe.process, window.clone(), &mut shared.warnings);
        }
        if keyframe.is_cut {
            shared
                .warnings
                .add(|| format!("keyframe at offset {offset}: some of its frames cannot be read"));
        }
        if keyframe.is_left {
            self.left_stack(offset, keyframe);
        } else if keyframe.thread != 0 {
            self.running_thread(offset, keyframe);
        }
    }

    fn running_thread(&mut self, offset: u64, keyframe: &Keyframe) {
        let key = (keyframe.process, keyframe.thread);
        let mut state = self.known_or_new(key, keyframe);
        if keyframe.below == 0 {
            state.stack = Stack::default();
            state.stack_id = keyframe.stack;
            state.now = keyframe.time;
            state.recent = keyframe.recent;
            state.before = keyframe.recent;
            state.taken_before = 0;
            state.debt = keyframe.debt;
            state.since.leave_out_of_next(keyframe.debt);
            state.filter = keyframe.filter.map(|(number, floor)| Filtered { number, floor });
            state.marks.clear();
            if let Some((sequence, word)) = keyframe.goes_on {
                state.place = Place::before(sequence, word);
            }
        }
        for &(mark, stack, depth) in keyframe.marks.iter().take(MAX_MARKS) {
            self.shared.remember(key.0, &mut state.marks, mark, (stack, depth));
        }
        if let Some(tree) = self.trees.get_mut(state.tree).and_then(Option::as_mut) {
            open(tree, &mut self.shared, &mut state.stack, keyframe, offset);
        }
        self.states.insert(key, state);
        super::fold::fold_if_many(self);
    }

    fn left_stack(&mut self, offset: u64, keyframe: &Keyframe) {
        let (process, id) = (keyframe.process, keyframe.stack);
        let owner = (process, keyframe.thread);
        let key = if id == 0 { (process, keyframe.thread, 0) } else { (process, 0, id) };
        let known = self.shared.stacks.remove(&key);
        self.shared.note_change(key);
        if keyframe.is_gone {
            return;
        }
        // Where its frames are, and the thread's that has left it: it need not move when that goes on with it.
        let (tree_number, mut stack) = match known {
            Some(known) if keyframe.below > 0 => known,
            _ if keyframe.thread == 0 => (self.home(process), Stack::default()),
            _ => {
                let state = self.known_or_new(owner, keyframe);
                let tree = state.tree;
                self.states.insert(owner, state);
                (tree, Stack::default())
            }
        };
        if let Some(tree) = self.trees.get_mut(tree_number).and_then(Option::as_mut) {
            open(tree, &mut self.shared, &mut stack, keyframe, offset);
        }
        if self.shared.stacks.len() < MAX_STACKS {
            self.shared.stacks.insert(key, (tree_number, stack));
        }
    }

    /// The tree of stacks of a process that are no thread's.
    fn home(&mut self, process: u32) -> usize {
        let trees = &mut self.trees;
        *self.homes.entry(process).or_insert_with(|| {
            trees.push(Some(CallTree::new(process)));
            trees.len() - 1
        })
    }

    fn known_or_new(&mut self, key: ThreadKey, keyframe: &Keyframe) -> ThreadState {
        self.states.remove(&key).unwrap_or_else(|| {
            let began = keyframe.time.saturating_add(keyframe.debt);
            let begins = Summary { begin_time: began, ..Summary::default() };
            ThreadState::new(self.new_tree(key.0), keyframe.tid, &begins)
        })
    }

    /// What is known of a thread: its own keyframe, and that of its own stack where it has left that.
    pub(crate) fn keyframes_of(&self, key: ThreadKey) -> Option<Vec<Keyframe>> {
        let (process, thread) = key;
        let state = self.states.get(&key)?;
        // Of marks that all threads know, those that no other has kept anew.
        let is_told = |(key, mark): &(&u32, &KeptMark)| {
            mark.stack == 0 || self.shared.is_last(process, **key, mark)
        };
        let told = state.marks.iter().filter(is_told);
        let mut marks: Vec<_> = told.map(|(&key, mark)| (key, mark.stack, mark.depth)).collect();
        marks.sort_unstable();
        let running = Keyframe {
            process,
            thread,
            tid: state.tid,
            time: state.now,
            stack: state.stack_id,
            recent: state.recent,
            debt: state.debt,
            frames: self.frames(state.tree, &state.stack),
            marks,
            goes_on: Some(state.place.next()),
            filter: state.filter.map(|filter| (filter.number, filter.floor)),
            ..Keyframe::default()
        };
        let own = self.left(&(process, thread, 0), &HashMap::new());
        Some([running].into_iter().chain(Some(own).filter(|own| !own.is_gone)).collect())
    }

    /// Serial and id of the thread whose each tree is.
    pub(crate) fn owners(&self) -> HashMap<usize, (u32, u32)> {
        let owner = |(key, state): (&ThreadKey, &ThreadState)| (state.tree, (key.1, state.tid));
        self.states.iter().map(owner).collect()
    }

    /// What is known of a stack that was left. `key` is process, thread where it is a thread's
    /// own, and id.
    pub(crate) fn left(
        &self,
        key: &(u32, u32, u64),
        owners: &HashMap<usize, (u32, u32)>,
    ) -> Keyframe {
        let &(process, thread, stack) = key;
        let empty = Keyframe { process, thread, stack, is_left: true, ..Keyframe::default() };
        let Some((tree, frames)) = self.shared.stacks.get(key) else {
            return Keyframe { is_gone: true, ..empty };
        };
        let owner = owners.get(tree).copied().unwrap_or_default();
        let (thread, tid) = if stack == 0 { (thread, owner.1) } else { owner };
        Keyframe { thread, tid, frames: self.frames(*tree, frames), ..empty }
    }

    fn frames(&self, tree: usize, stack: &Stack) -> Vec<(Frame, u64)> {
        let Some(tree) = self.trees.get(tree).and_then(Option::as_ref) else { return Vec::new() };
        let mut out: Vec<(Frame, u64)> = Vec::new();
        let mut told = 0u64;
        for (word, count) in stack.frames(&tree.tree) {
            let frame = self.shared.frame(word);
            let runs = out.len();
            match out.last_mut() {
                Some((last, sum)) if *last == frame => *sum = sum.saturating_add(count),
                _ if runs >= MOST_RUNS => break,
                _ => out.push((frame, count)),
            }
            told = told.saturating_add(count);
        }
        let below = stack.depth().saturating_sub(told);
        if below > 0 {
            out.push((Frame::Unknown, below));
        }
        out.reverse();
        out
    }
}

impl Shared {
    fn frame(&self, word: u32) -> Frame {
        match word {
            word if word < ESCAPE_BASE => Frame::Call(word),
            word if is_nameless(word) || word == pseudo::NO_ROOM => Frame::Unknown,
            word => match self.far.get(((word - pseudo::FAR) >> 1) as usize) {
                Some(&address) => Frame::Far(address),
                None => Frame::Unknown,
            },
        }
    }
}

/// Opens the frames of a keyframe above those that it says are below.
fn open(
    tree: &mut CallTree,
    shared: &mut Shared,
    stack: &mut Stack,
    keyframe: &Keyframe,
    offset: u64,
) {
    stack.fall_to(&tree.tree, keyframe.below);
    let missing = keyframe.below - stack.depth();
    push(tree, shared, stack, pseudo::UNKNOWN, missing);
    for &(frame, count) in &keyframe.frames {
        shared.frames_to_open += FRAMES_FOR_RUN;
        let word = match frame {
            Frame::Unknown => pseudo::UNKNOWN,
            Frame::Call(word) => word,
            Frame::Far(address) => pseudo::FAR + 2 * shared.far_number(address),
        };
        let too_many = push(tree, shared, stack, word, count);
        if too_many > 0 {
            shared.warnings.add(|| {
                format!(
                    "keyframe at offset {offset}: {too_many} frames are too many to be told apart"
                )
            });
            push(tree, shared, stack, pseudo::UNKNOWN, too_many);
        }
    }
}

/// Gives how many of the frames it has not opened.
fn push(
    tree: &mut CallTree,
    shared: &mut Shared,
    stack: &mut Stack,
    word: u32,
    mut count: u64,
) -> u64 {
    while count > 0 {
        let top = stack.top();
        let above = match tree.tree.nodes()[top as usize].word {
            nameless if word == pseudo::UNKNOWN && is_nameless(nameless) => top,
            _ => tree.child(&mut shared.room, top, word),
        };
        if is_run(&tree.tree, above) {
            stack.push_run(&tree.tree, above, count);
            return 0;
        }
        if shared.frames_to_open == 0 {
            return count;
        }
        shared.frames_to_open -= 1;
        stack.push_path(&tree.tree, above, 1);
        count -= 1;
    }
    0
}
