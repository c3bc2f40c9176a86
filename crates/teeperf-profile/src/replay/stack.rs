//! The frames that are open, as a node of the thread's tree: the frames are the path to
//! its root. Frames that were not recorded are runs: one node that stands for many frames. So
//! are frames beyond the limits, whose nodes tell no path: one run for each, and one for all
//! where those are many. So a stack costs a few bytes however deep it is, and no operation costs
//! more than the frames it closes, whatever the recording says.

use std::collections::HashMap;

use super::tree::{FLAT, Node, Tree, pseudo};

/// Deepest stack whose frames are told apart. A frame takes more than 16 bytes, so the usual 8 MiB
/// hold half a million; a thread may be given more. Frames above stand below `[beyond limits]`.
pub(crate) const MAX_DEPTH: u32 = 1 << 23;

/// Frames looked at for a return before the frames of the stack are counted by function.
const SEARCH: u64 = 64;

/// Runs of a stack, at most, that are told apart where nodes tell no path.
const MOST_FLAT: usize = 1 << 14;

/// So many frames as one node.
#[derive(Clone, Copy, Debug)]
struct Run {
    frames: u64,
    /// Node below.
    below: u32,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stack {
    top: u32,
    depth: u64,
    /// The runs on the path, lowest first. A node that [`is_run`] has one.
    runs: Vec<Run>,
    /// Runs of frames that are not known.
    nameless: usize,
    /// Open frames by word, kept up once a search was long: tells in a moment that a return
    /// belongs to none.
    open: Option<HashMap<u32, u64>>,
    /// Of frames whose calls are timed: their depth, with themselves, and when they began, less what was left out
    /// before. Lowest first.
    begins: Vec<(u64, i64)>,
    /// Likewise of frames whose calls the counter times: their depth, what it was, and clock units that were left out before.
    counted: Vec<(u64, Counter)>,
}

/// The counter at a call, and clock units that gaps had left out before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) counter: u64,
    pub(crate) left_out: u64,
}

/// What came of a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returned {
    /// It closed its frame, and those above.
    Closed {
        /// When its call began, as [`Stack::time`] was told.
        begin: Option<i64>,
        /// Likewise [`Stack::count`].
        counted: Option<Counter>,
    },
    /// It belongs to no frame; there are some.
    Stray,
    /// There are no frames.
    Unopened,
}

/// Whether this is the word of frames that are not known, which any return may close.
pub(super) fn is_nameless(word: u32) -> bool {
    word == pseudo::UNKNOWN || word == pseudo::BEYOND_LIMITS
}

/// Whether frames of this node are a run on a stack.
pub(super) fn is_run(tree: &Tree, node: u32) -> bool {
    let node = &tree.nodes()[node as usize];
    node.word == pseudo::UNKNOWN || node.depth == FLAT
}

impl Stack {
    /// Node on top; the tree's root, 0, when it is empty.
    pub(crate) fn top(&self) -> u32 {
        self.top
    }

    /// Frames.
    pub(crate) fn depth(&self) -> u64 {
        self.depth
    }

    /// Frames on top that are known to be of one function, without a look at each: a run, or one.
    pub(crate) fn alike_on_top(&self, tree: &Tree) -> u64 {
        match self.runs.last() {
            Some(run) if is_run(tree, self.top) => run.frames.max(1),
            _ => 1,
        }
    }

    /// Puts `frames` frames on it, the last of which is the node `top`: a path above the
    /// present top, recorded frames alone.
    pub(crate) fn push_path(&mut self, tree: &Tree, top: u32, frames: u64) {
        if let Some(open) = &mut self.open {
            let mut at = top;
            for _ in 0..frames {
                let node = &tree.nodes()[at as usize];
                *open.entry(node.word).or_default() += 1;
                at = node.parent;
            }
        }
        self.top = top;
        self.depth = self.depth.saturating_add(frames);
    }

    /// Puts a run on it, or makes the one on top longer.
    pub(crate) fn push_run(&mut self, tree: &Tree, node: u32, frames: u64) {
        if frames == 0 {
            return;
        }
        debug_assert!(is_run(tree, node));
        let crowded = self.runs.len() >= MOST_FLAT && self.top != node;
        let node = match tree.nodes()[node as usize] {
            flat if crowded && flat.depth == FLAT && flat.word != pseudo::BEYOND_LIMITS => {
                flat.parent
            }
            _ => node,
        };
        let word = tree.nodes()[node as usize].word;
        self.depth = self.depth.saturating_add(frames);
        if let Some(open) = &mut self.open
            && !is_nameless(word)
        {
            let count = open.entry(word).or_default();
            *count = count.saturating_add(frames);
        }
        match self.runs.last_mut() {
            Some(run) if self.top == node => run.frames = run.frames.saturating_add(frames),
            _ => {
                self.nameless += usize::from(is_nameless(word));
                self.runs.push(Run { frames, below: self.top });
                self.top = node;
            }
        }
    }

    /// A return with this word. The words of frames that it closes above its own are told, with how many there are.
    pub(crate) fn close(
        &mut self,
        tree: &Tree,
        word: u32,
        mut mended: impl FnMut(u32, u64),
    ) -> Returned {
        if self.depth == 0 {
            return Returned::Unopened;
        }
        let node = &tree.nodes()[self.top as usize];
        if is_nameless(node.word) || node.word | 1 == word {
            let (begin, counted) = if node.word | 1 == word { self.begun() } else { (None, None) };
            self.pop(tree, 1);
            return Returned::Closed { begin, counted };
        }
        match self.find(tree, word & !1, true) {
            Some(above) => {
                self.told(tree, above, &mut mended);
                self.pop(tree, above);
                let is_its_own = tree.nodes()[self.top as usize].word | 1 == word;
                let (begin, counted) = if is_its_own { self.begun() } else { (None, None) };
                self.pop(tree, 1);
                Returned::Closed { begin, counted }
            }
            None => Returned::Stray,
        }
    }

    /// Tells the words of this many frames on top.
    fn told(&self, tree: &Tree, mut left: u64, mended: &mut impl FnMut(u32, u64)) {
        for (word, frames) in self.frames(tree) {
            let told = frames.min(left);
            if told == 0 {
                break;
            }
            mended(word, told);
            left -= told;
        }
    }

    /// Frames above this depth were opened now, and began at these times, lowest first.
    pub(crate) fn time(&mut self, below: u64, begins: impl Iterator<Item = i64>) {
        let depths = (1u64..).map(|above| below.saturating_add(above));
        self.begins.extend(depths.zip(begins));
    }

    /// Frames above this depth were opened now, some of which the counter times: depth above that, and what it was. Lowest
    /// first.
    pub(crate) fn count(&mut self, below: u64, begins: impl Iterator<Item = (u32, Counter)>) {
        let begins = begins.map(|(above, counter)| (below.saturating_add(above.into()), counter));
        self.counted.extend(begins);
    }

    /// Frames whose calls are timed, by the clock or by the counter.
    pub(crate) fn timed(&self) -> usize {
        self.begins.len() + self.counted.len()
    }

    /// When the frame on top began, where it is timed.
    fn begun(&self) -> (Option<i64>, Option<Counter>) {
        let begin = self.begins.last().filter(|begin| begin.0 == self.depth);
        let counted = self.counted.last().filter(|counted| counted.0 == self.depth);
        (begin.map(|begin| begin.1), counted.map(|counted| counted.1))
    }

    /// Closes the frames above the nearest one of this call word, if there is one with at least so many frames below it.
    pub(crate) fn catch(&mut self, tree: &Tree, word: u32, lowest: u64) {
        let above = self.find(tree, word, false);
        if let Some(above) = above.filter(|&above| above < self.depth.saturating_sub(lowest)) {
            self.pop(tree, above);
        }
    }

    /// Closes frames down to this depth.
    pub(crate) fn fall_to(&mut self, tree: &Tree, depth: u64) {
        self.pop(tree, self.depth.saturating_sub(depth));
    }

    /// Closes the topmost `frames` frames, or all there are. Gives how many it could not.
    pub(crate) fn pop(&mut self, tree: &Tree, frames: u64) -> u64 {
        let mut left = frames.min(self.depth);
        let short = frames - left;
        self.depth -= left;
        while left > 0 {
            let node = self.top;
            let Node { word, parent, .. } = tree.nodes()[node as usize];
            let closed = if is_run(tree, node)
                && let Some(run) = self.runs.last_mut()
            {
                let closed = run.frames.min(left);
                run.frames -= closed;
                if run.frames == 0 {
                    self.top = run.below;
                    self.nameless -= usize::from(is_nameless(word));
                    self.runs.pop();
                }
                closed
            } else {
                self.top = parent;
                1
            };
            left -= closed;
            if let Some(open) = &mut self.open
                && let Some(count) = open.get_mut(&word)
            {
                *count = count.saturating_sub(closed);
                if *count == 0 {
                    open.remove(&word);
                }
            }
        }
        while self.begins.last().is_some_and(|begin| begin.0 > self.depth) {
            self.begins.pop();
        }
        while self.counted.last().is_some_and(|counted| counted.0 > self.depth) {
            self.counted.pop();
        }
        short
    }

    /// Frames above the nearest one with this call word, or, where `or_run`, above the
    /// nearest run.
    fn find(&mut self, tree: &Tree, word: u32, or_run: bool) -> Option<u64> {
        let mut runs = self.runs.len();
        let (mut at, mut above) = (self.top, 0);
        let mut near = true;
        while above < self.depth {
            if near && above > SEARCH {
                near = false;
                if !self.is_open(tree, word) && (!or_run || self.nameless == 0) {
                    return None;
                }
            }
            let node = &tree.nodes()[at as usize];
            if node.word == word || or_run && is_nameless(node.word) {
                return Some(above);
            }
            if is_run(tree, at) && runs > 0 {
                runs -= 1;
                above += self.runs[runs].frames;
                at = self.runs[runs].below;
            } else {
                above += 1;
                at = node.parent;
            }
        }
        None
    }

    fn is_open(&mut self, tree: &Tree, word: u32) -> bool {
        let open = self.open.take().unwrap_or_else(|| self.count_open(tree));
        self.open.insert(open).contains_key(&word)
    }

    /// Open frames by word.
    fn count_open(&self, tree: &Tree) -> HashMap<u32, u64> {
        let mut open: HashMap<u32, u64> = HashMap::new();
        for (word, frames) in self.frames(tree).filter(|&(word, _)| !is_nameless(word)) {
            let count = open.entry(word).or_default();
            *count = count.saturating_add(frames);
        }
        open
    }

    /// The frames from the top down, as words with how many frames each stands for.
    pub(crate) fn frames(&self, tree: &Tree) -> impl Iterator<Item = (u32, u64)> {
        let mut runs = self.runs.iter().rev();
        let mut at = self.top;
        std::iter::from_fn(move || {
            let node = &tree.nodes()[at as usize];
            if node.word == pseudo::ROOT {
                return None;
            }
            if is_run(tree, at)
                && let Some(run) = runs.next()
            {
                at = run.below;
                return Some((node.word, run.frames));
            }
            at = node.parent;
            Some((node.word, 1))
        })
    }

    /// The same frames in a tree whose nodes have other numbers.
    pub(crate) fn renumber(&mut self, numbers: &[u32]) {
        let new = |node: u32| numbers.get(node as usize).copied().unwrap_or(0);
        self.top = new(self.top);
        for run in &mut self.runs {
            run.below = new(run.below);
        }
    }
}
