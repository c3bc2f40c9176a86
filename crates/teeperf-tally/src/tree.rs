//! The calling-context tree of one thread ([`teeperf_wire::tree`]): for each call path calls, time in the
//! function itself, shortest and longest call.
//!
//! A call goes to the node that the last call of the function from such a frame went to, if that is a child of
//! where it comes from; else a table finds it; else it is made. A return goes to the parent. Time since the clock
//! was last seen to move goes to the function on top. What a path took in all is the sum over all below it, and is
//! left to readers.
//!
//! Where there is no room for another path, functions stand side by side below one node,
//! [`OVERFLOW`], each with its calls and its time. Of such frames it is known from which function the first of each function
//! came, so that this goes on when they have returned; where it is not known which one goes on (one of several frames of a
//! function returns, a frame is left without a return, there are other stacks) the time stands in the node itself.
//!
//! Ways into and out of functions without a call or return are in `leaps`.

mod leaps;

use crate::folding::Ways;
use crate::memory::{self, Memory, Node};
use core::cell::Cell;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;
use teeperf_wire::tree::{MAGIC, NODE, OVERFLOW, ROOT, header, node};

/// See the module. Used by one caller at a time, and by signal handlers that interrupt it.
// Hooks know the first fields ([`layout`]).
#[repr(C)]
pub struct Tree {
    memory: Memory,
    /// The clock as it was last seen.
    now: memory::Now,
    /// Index of the node on top, of those of frames that found room.
    top: Cell<u32>,
    /// Frames above it, which found none and are open below [`OVERFLOW`]; and [`FOLDS`] where calls are folded. 0
    /// where a node that fits is all that a call needs. One number, so that whoever interrupts a change finds that it
    /// was made, or was not.
    apart: Cell<usize>,
    /// Where time goes while there are such frames.
    beside: Cell<Node>,
    /// How often there were such frames, after none.
    episode: Cell<u32>,
    /// It is not known any more which functions those frames are of.
    is_blind: Cell<bool>,
    used: Cell<u32>,
    /// Indices from here on are kept for functions below [`OVERFLOW`].
    paths: u32,
    folding: Option<Folding>,
    /// Id of the stack that the thread is on.
    stack: Cell<u64>,
}

/// In [`Tree::apart`].
const FOLDS: usize = 1 << (usize::BITS - 1);
const NEVER_FOLDS: bool = cfg!(feature = "never-folds");

/// What folded calls need.
struct Folding {
    ways: Ways,
    /// Frames open on this stack, of those that found room; and the most there ever were.
    depth: Cell<u32>,
    deepest: Cell<u32>,
}

/// Where the fields are that hooks need to sum a call by themselves.
pub mod layout {
    use super::Tree;
    use crate::memory::layout;
    use core::mem::offset_of;

    const MEMORY: usize = offset_of!(Tree, memory);
    /// Address of the memory.
    pub const BASE: usize = MEMORY + layout::BASE;
    /// Address of the guesses.
    pub const GUESSES: usize = MEMORY + layout::GUESSES;
    /// u32, one less than there are guesses.
    pub const MASK: usize = MEMORY + layout::MASK;
    /// u64, the clock as it was last seen.
    pub const NOW: usize = offset_of!(Tree, now);
    /// u32, index of the node on top.
    pub const TOP: usize = offset_of!(Tree, top);
    /// usize, not 0 while calls are not as simple as in most cases.
    pub const APART: usize = offset_of!(Tree, apart);
    /// u32, nodes that there is room for.
    pub const NODES: usize = MEMORY + layout::NODES;
}

/// Whose tree it is, and what it is to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beginning {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Number of the thread within its process.
    pub serial: u32,
    /// [`teeperf_wire::shared::ClockKind`].
    pub clock: u32,
    /// The present time.
    pub now: u64,
    /// Id of the stack that the thread is on; 0: its own.
    pub stack: u64,
    /// Calls of functions that are open on the path stand in those.
    pub folds: bool,
}

/// One in so many nodes is kept for functions that find no room on their paths.
const SPARE: u32 = 8;

impl Tree {
    /// A tree in zeroed memory; nothing when that is too small, or not at a multiple of eight.
    ///
    /// # Safety
    /// The memory stays, and nobody writes it whose writing is to be believed.
    // Inlined, so that it is made where it is to lie: moving it may be a call of `memcpy`, which not everybody
    // who has a tree may make.
    #[inline(always)]
    pub unsafe fn begin(base: *mut u8, bytes: usize, beginning: &Beginning) -> Option<Self> {
        // SAFETY: the caller's promise.
        let memory = unsafe { Memory::new(base, bytes, beginning.folds) }?;
        let head = |offset, value| memory.header(offset).put(0, value);
        head(header::NODES, memory.nodes());
        head(header::CLOCK, beginning.clock);
        head(header::PID, beginning.pid);
        head(header::TID, beginning.tid);
        head(header::SERIAL, beginning.serial);
        head(header::FOLDS, u32::from(beginning.folds));
        memory.header(header::BEGAN).set(0, beginning.now);
        memory.header(header::TIME).set(0, beginning.now);
        memory.publish(header::USED, OVERFLOW + 1);
        memory.header(header::MAGIC + 4).put(0, (MAGIC >> 32) as u32);
        memory.publish(header::MAGIC, MAGIC as u32);
        let root = memory.node(ROOT);
        let folding = Folding { ways: Ways::new(), depth: Cell::new(0), deepest: Cell::new(0) };
        Some(Self {
            memory,
            top: Cell::new(ROOT),
            now: memory::Now::new(beginning.now),
            apart: Cell::new(if beginning.folds { FOLDS } else { 0 }),
            beside: Cell::new(root),
            episode: Cell::new(0),
            is_blind: Cell::new(false),
            used: Cell::new(OVERFLOW + 1),
            paths: memory.nodes() - memory.nodes() / SPARE,
            folding: (beginning.folds && !NEVER_FOLDS).then_some(folding),
            stack: Cell::new(beginning.stack),
        })
    }

    /// The clock as it was last seen.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.now.get()
    }

    /// The clock moved to `now`: the time since goes to the function on top. A signal handler that comes in
    /// between says so itself, and time that it has charged is not charged again.
    pub fn moved(&self, now: u64) {
        if let Some(since) = self.skip(now) {
            let there = if self.swallowed() > 0 { self.beside.get() } else { self.current() };
            self.memory.add(there, node::SELF, since);
        }
    }

    /// The clock moved to `now`: the time since goes to nobody.
    pub fn skip_to(&self, now: u64) {
        self.skip(now);
    }

    fn skip(&self, now: u64) -> Option<u64> {
        let since = self.now.advance(now)?;
        self.memory.header(header::TIME).set(0, now);
        Some(since)
    }

    /// A call of the function at `address`, if it is the one that was guessed; says whether it is.
    #[inline(always)]
    fn call_as_guessed(&self, address: u64, frame: usize) -> bool {
        let index = self.memory.guess(address, frame).load(Relaxed);
        let Some(there) = self.simple(index, address) else { return false };
        if there.get(node::PARENT) != self.top.get() {
            return false;
        }
        self.memory.add(there, node::CALLS, 1);
        there.set(node::ENTERED, self.now.get());
        self.top.set(index);
        true
    }

    /// A call of the function at `address`, if it was called on this path before; says whether it was. `frame` is
    /// a number that is alike for calls from one place at one depth, and for few others.
    pub fn call(&self, address: u64, frame: usize) -> bool {
        self.call_as_guessed(address, frame) || self.call_as_found(address, frame)
    }

    /// The same on a path that is new, as [`Tree::call`] has just said: `word` is that of the function, 0 where it
    /// has no site. Nothing may come in between that uses the tree.
    pub fn call_anew(&self, address: u64, frame: usize, word: u32) {
        if self.call(address, frame) {
            return;
        }
        let parent = self.top.get();
        if self.swallowed() == 0 && self.find(parent, address).is_none() {
            let open = self.ancestor(address).inspect(|&open| self.lead(parent, address, open));
            let there = open.or_else(|| self.make(parent, address, word, self.paths));
            if there.is_some_and(|there| self.enter_known(there)) {
                return;
            }
        }
        let there = self.make(OVERFLOW, address, word, self.memory.nodes());
        self.swallow(there.unwrap_or_else(|| self.memory.node(OVERFLOW)));
    }

    /// A return from it.
    pub fn ret(&self, address: u64) {
        let Some(there) = self.simple(self.top.get(), address) else {
            return self.return_otherwise(address);
        };
        self.time(there);
        self.top.set(there.get(node::PARENT));
    }

    /// The node of this index, if it is of the function at `address`, and calls are simple.
    #[inline(always)]
    fn simple(&self, index: u32, address: u64) -> Option<Node> {
        let is_simple = self.apart.get() == 0 && index < self.memory.nodes();
        let there = is_simple.then(|| self.memory.node(index))?;
        (there.wide(node::ADDRESS) == address).then_some(there)
    }

    fn folding(&self) -> Option<&Folding> {
        if NEVER_FOLDS { None } else { self.folding.as_ref() }
    }

    /// Frames open below [`OVERFLOW`].
    fn swallowed(&self) -> usize {
        self.apart.get() & !FOLDS
    }

    fn set_swallowed(&self, frames: usize) {
        self.apart.set(frames.min(!FOLDS) | self.apart.get() & FOLDS);
    }

    /// The node on top, of those of frames that found room.
    fn current(&self) -> Node {
        self.memory.node(self.top.get())
    }

    /// This is the node on top.
    fn stand_at(&self, current: Node) {
        self.top.set(self.memory.index(current));
    }

    fn enter(&self, there: Node) {
        self.memory.add(there, node::CALLS, 1);
        there.set(node::ENTERED, self.now.get());
        self.stand_at(there);
    }

    fn leave(&self, current: Node) {
        self.time(current);
        self.stand_at(self.memory.node(current.get(node::PARENT)));
    }

    /// The call of this node ends.
    #[inline(always)]
    fn time(&self, there: Node) {
        let entered = there.wide(node::ENTERED);
        // A signal handler in between may call the same function, later.
        compiler_fence(SeqCst);
        let took = self.now.get().wrapping_sub(entered);
        self.memory.raise(there, node::MOST, took);
        self.memory.raise(there, node::LEAST, !took);
    }

    #[inline(never)]
    fn call_as_found(&self, address: u64, frame: usize) -> bool {
        if self.swallowed() == 0 {
            let top = self.top.get();
            match self.find(top, address) {
                Some(there) if self.enter_known(there) => {
                    self.memory.guess(address, frame).store(self.top.get(), Relaxed);
                    return true;
                }
                None if self.used.get() < self.paths || self.ancestor(address).is_some() => {
                    return false;
                }
                _ => {}
            }
        }
        // There is no room for another path, or way back.
        let there = match self.find(OVERFLOW, address) {
            Some(there) => there,
            None if self.used.get() < self.memory.nodes() => return false,
            None => self.memory.node(OVERFLOW),
        };
        self.swallow(there);
        true
    }

    /// A call of a node, which may be open already where calls are folded; says whether there was room.
    fn enter_known(&self, there: Node) -> bool {
        let Some(folding) = self.folding() else {
            self.enter(there);
            return true;
        };
        if !Ways::is_open(there) {
            Ways::open(there);
            self.enter(there);
        } else if folding.ways.push(self.memory, there, self.current()) {
            self.memory.add(there, node::CALLS, 1);
            self.stand_at(there);
        } else {
            return false;
        }
        folding.deeper(1);
        true
    }

    /// A call for which there is no room: it is counted here, below [`OVERFLOW`] or in that.
    #[inline(never)]
    fn swallow(&self, there: Node) {
        let swallowed = self.swallowed();
        let back = self.beside.get();
        if swallowed == 0 {
            self.episode.set(self.episode.get().wrapping_add(1));
        }
        // From here on a signal handler begins no other episode.
        self.set_swallowed(swallowed + 1);
        compiler_fence(SeqCst);
        let open = self.swallowed_of(there).saturating_add(1);
        if open == 1 {
            there.put(node::BACK, self.memory.index(back));
        }
        // First the time that the number is of: a handler in between leaves a number that was there before, or none.
        there.put(node::ENTERED, self.episode.get());
        compiler_fence(SeqCst);
        there.put(node::OPEN, open);
        self.memory.add(there, node::CALLS, 1);
        self.beside.set(there);
    }

    /// Frames of this node that are open now, below [`OVERFLOW`].
    fn swallowed_of(&self, there: Node) -> u32 {
        if there.get(node::ENTERED) == self.episode.get() { there.get(node::OPEN) } else { 0 }
    }

    /// Whether a frame below [`OVERFLOW`] may be of this function; then the node that it counts in.
    fn swallowed_frame(&self, address: u64) -> Option<Node> {
        let there = self.find(OVERFLOW, address).unwrap_or_else(|| self.memory.node(OVERFLOW));
        (self.is_blind.get() || self.swallowed_of(there) > 0).then_some(there)
    }

    #[cold]
    #[inline(never)]
    fn return_otherwise(&self, address: u64) {
        let swallowed = self.swallowed();
        if swallowed > 0 {
            if let Some(there) = self.swallowed_frame(address) {
                let left = self.swallowed_of(there).saturating_sub(1);
                let back = there.get(node::BACK);
                // A signal handler behind this may call it anew.
                compiler_fence(SeqCst);
                there.put(node::OPEN, left);
                self.close(1);
                // Of a function that is still open it is not known which of its frames it was.
                if left == 0 && !self.is_blind.get() {
                    self.beside.set(self.memory.node(back));
                }
                return;
            }
            // It is of a frame below them: they were left without a word.
            self.mend(swallowed as u64);
            self.close(swallowed as u64);
        }
        let current = self.current();
        if current == self.memory.node(ROOT) {
            // From a call before the recording.
            return;
        }
        // The frame that is meant: those above it were left without a word.
        match self.nearest(|there| there.wide(node::ADDRESS) == address || self.is_unseen(there)) {
            Some(meant) => {
                self.mend(self.close_above(meant));
                self.close(1);
            }
            None => self.mend(1),
        }
    }

    fn mend(&self, frames: u64) {
        if frames > 0 {
            self.memory.add(self.memory.header(header::MENDED), 0, frames);
        }
    }

    /// The child of a node, as the table has it.
    fn find(&self, parent: u32, address: u64) -> Option<Node> {
        let mut at = self.first_place(parent, address);
        for _ in 0..self.memory.places() {
            let (found, of) = self.memory.place(at);
            if found == 0 {
                return None;
            }
            let there = self.memory.node(found);
            if of == parent && there.wide(node::ADDRESS) == address {
                return Some(there);
            }
            at = self.next_place(at);
        }
        None
    }

    /// Has the table lead from a node to a child.
    fn lead(&self, parent: u32, address: u64, child: Node) {
        let mut at = self.first_place(parent, address);
        for _ in 0..self.memory.places() {
            if self.memory.place(at).0 == 0 {
                return self.memory.fill(at, self.memory.index(child), parent);
            }
            at = self.next_place(at);
        }
    }

    fn next_place(&self, at: u32) -> u32 {
        if at + 1 < self.memory.places() { at + 1 } else { 0 }
    }

    /// Where calls are folded: the node of this function that is open on the path.
    fn ancestor(&self, address: u64) -> Option<Node> {
        self.folding()?;
        let mut there = self.current();
        for _ in 0..self.memory.nodes() {
            if there.wide(node::ADDRESS) == address && Ways::is_open(there) {
                return Some(there);
            }
            let index = self.memory.index(there);
            if index <= OVERFLOW {
                return None;
            }
            there = self.memory.node(there.get(node::PARENT));
        }
        None
    }

    /// A new child of a node, as long as indices are below `end`.
    fn make(&self, parent: u32, address: u64, word: u32, end: u32) -> Option<Node> {
        let index = self.used.get();
        if index >= end.min(self.memory.nodes()) {
            return None;
        }
        let made = self.memory.node(index);
        made.put(node::WORD, word);
        made.put(node::PARENT, parent);
        made.set(node::ADDRESS, address);
        self.used.set(index + 1);
        self.memory.publish(header::USED, index + 1);
        self.lead(parent, address, made);
        Some(made)
    }

    fn first_place(&self, parent: u32, address: u64) -> u32 {
        // Fibonacci hashing: the upper bits of a product with 2^64 over the golden ratio.
        let key = address ^ u64::from(parent) << 40 ^ u64::from(parent) >> 8;
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        ((hash * u64::from(self.memory.places())) >> 32) as u32
    }

    /// How many nodes there are.
    pub fn used(&self) -> u32 {
        self.used.get()
    }

    /// When it was begun.
    pub fn began(&self) -> u64 {
        self.memory.header(header::BEGAN).wide(0)
    }

    /// A node, eight bytes at a time ([`node`]). What it has summed is taken out of it.
    pub fn take(&self, index: u32) -> [u64; NODE / 8] {
        let there = self.memory.node(index);
        // Not an array of zeros that is filled: to clear it may be a call of the C library's.
        let out = core::array::from_fn(|at| there.wide(at * 8));
        for sum in [node::CALLS, node::SELF, node::LEAST, node::MOST] {
            there.set(sum, 0);
        }
        out
    }

    /// Wants every node that has grown since it was taken, with all its callers; says how many nodes there are. For
    /// trees whose functions have no words: the wish stands in the word's place.
    pub fn want_grown(&self) -> u32 {
        let used = self.used.get();
        for index in (1..used).rev() {
            let there = self.memory.node(index);
            let is_grown =
                [node::CALLS, node::SELF, node::LEAST].iter().any(|&sum| there.wide(sum) != 0);
            if is_grown || self.is_wanted(index) {
                there.put(node::WORD, 1);
                self.memory.node(there.get(node::PARENT)).put(node::WORD, 1);
            }
        }
        if self.memory.node(ROOT).wide(node::SELF) != 0 {
            self.memory.node(ROOT).put(node::WORD, 1);
        }
        used
    }

    /// Whether a node is wanted, and was not taken since.
    pub fn is_wanted(&self, index: u32) -> bool {
        self.memory.node(index).get(node::WORD) != 0
    }

    /// As [`Tree::take`], a node that is not wanted any more.
    pub fn take_wanted(&self, index: u32) -> [u64; NODE / 8] {
        self.memory.node(index).put(node::WORD, 0);
        self.take(index)
    }

    /// Calls that were summed and not taken.
    pub fn calls(&self) -> u64 {
        let calls = (0..self.used.get()).map(|at| self.memory.node(at).wide(node::CALLS));
        calls.fold(0, u64::wrapping_add)
    }

    /// Takes out what is time, and leaves the calls.
    pub fn forget_times(&self) {
        for index in 0..self.used.get() {
            let there = self.memory.node(index);
            for sum in [node::SELF, node::LEAST, node::MOST] {
                there.set(sum, 0);
            }
        }
    }

    /// Takes out how many frames were closed, and returns left out, because a call or return was not seen.
    pub fn take_mended(&self) -> u64 {
        let there = self.memory.header(header::MENDED);
        let mended = there.wide(0);
        there.set(0, 0);
        mended
    }
}

impl Folding {
    fn deeper(&self, frames: u32) {
        let depth = self.depth.get().saturating_add(frames);
        self.depth.set(depth);
        self.deepest.set(self.deepest.get().max(depth));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const TICK: u32 = 1;
    /// Most steps of a case. Miri is some hundred times slower.
    pub(super) const STEPS: usize = if cfg!(miri) { 30 } else { 300 };

    pub(super) fn tree(bytes: usize, folds: bool) -> Tree {
        let memory = vec![0u64; bytes / 8].leak();
        let beginning = Beginning { clock: TICK, folds, ..Beginning::default() };
        // SAFETY: memory that nobody else has.
        unsafe { Tree::begin(memory.as_mut_ptr().cast(), bytes, &beginning) }.unwrap()
    }

    /// Calls, time in itself, shortest and longest call.
    type Sums = (u64, u64, u64, u64);

    /// What stands in a tree, by call path.
    fn sums(tree: &Tree) -> HashMap<Vec<u64>, Sums> {
        let path = |mut index: u32| {
            let mut path = Vec::new();
            while index > OVERFLOW {
                let there = tree.memory.node(index);
                path.push(there.wide(node::ADDRESS));
                index = there.get(node::PARENT);
            }
            if index == OVERFLOW {
                path.push(0);
            }
            path.reverse();
            path
        };
        let sums = (0..tree.used.get()).map(|index| {
            let there = tree.memory.node(index);
            let [calls, own, least, most] =
                [node::CALLS, node::SELF, node::LEAST, node::MOST].map(|field| there.wide(field));
            (path(index), (calls, own, if least == 0 { 0 } else { !least }, most))
        });
        sums.filter(|(_, sums)| *sums != (0, 0, 0, 0)).collect()
    }

    /// The same, as simply as can be.
    #[derive(Default)]
    struct Slow {
        sums: HashMap<Vec<u64>, Sums>,
        open: Vec<(u64, u64)>,
    }

    impl Slow {
        fn path(&self) -> Vec<u64> {
            self.open.iter().map(|frame| frame.0).collect()
        }

        fn there(&mut self) -> &mut Sums {
            self.sums.entry(self.path()).or_insert((0, 0, u64::MAX, 0))
        }

        fn moved(&mut self, since: u64) {
            self.there().1 += since;
        }

        fn call(&mut self, address: u64, now: u64) {
            self.open.push((address, now));
            self.there().0 += 1;
        }

        fn ret(&mut self, address: u64, now: u64) {
            let Some(at) = self.open.iter().rposition(|frame| frame.0 == address) else { return };
            while self.open.len() > at {
                let took = now - self.open[self.open.len() - 1].1;
                let there = self.there();
                there.2 = there.2.min(took);
                there.3 = there.3.max(took);
                self.open.pop();
            }
        }

        fn sums(self) -> HashMap<Vec<u64>, Sums> {
            let shown = |(path, (calls, own, least, most))| {
                (path, (calls, own, if least == u64::MAX { 0 } else { least }, most))
            };
            self.sums.into_iter().map(shown).filter(|(_, sums)| *sums != (0, 0, 0, 0)).collect()
        }
    }

    proptest! {
        #[test]
        fn sums_are_those_of_a_slow_tree(steps in proptest::collection::vec((0u8..5, 1u64..6, 0u64..3), 0..STEPS)) {
            let tree = tree(1 << 20, false);
            let mut slow = Slow::default();
            let mut now = 0;
            for (what, address, later) in steps {
                if later > 0 {
                    now += later;
                    tree.moved(now);
                    slow.moved(later);
                }
                if what < 2 {
                    tree.call_anew(address, slow.open.len() / 2, 1);
                    slow.call(address, now);
                } else if what < 4 {
                    let top = slow.open.last().map_or(address, |frame| frame.0);
                    tree.ret(top);
                    slow.ret(top, now);
                } else {
                    tree.ret(address);
                    slow.ret(address, now);
                }
            }
            prop_assert_eq!(sums(&tree), slow.sums());
        }

        /// Whatever is called in whatever order, no call is missing, and all are below where they belong.
        #[test]
        fn a_full_tree_counts_every_call(calls in proptest::collection::vec((0u64..60, 0u8..3), 0..STEPS * 2), folds: bool) {
            let tree = tree(2112, folds);
            let (mut open, mut now) = (Vec::new(), 0);
            let mut made: HashMap<u64, u64> = HashMap::new();
            for &(address, returns) in &calls {
                now += 1;
                tree.moved(now);
                tree.call_anew(address + 1, open.len() / 2, 1);
                open.push(address + 1);
                *made.entry(address + 1).or_default() += 1;
                for _ in 0..returns {
                    if let Some(address) = open.pop() {
                        tree.ret(address);
                    }
                }
            }
            while let Some(address) = open.pop() {
                tree.ret(address);
            }
            prop_assert_eq!(tree.memory.index(tree.current()), ROOT);
            let sums = sums(&tree);
            let calls: u64 = sums.values().map(|sums| sums.0).sum();
            prop_assert_eq!(calls, made.values().sum::<u64>());
            prop_assert_eq!(sums.values().map(|sums| sums.1).sum::<u64>(), now);
            for (path, sums) in &sums {
                if let Some(function) = path.last().filter(|&&function| function != 0) {
                    prop_assert!(made[function] >= sums.0);
                }
            }
        }

        /// Where there is no room, time is that of the function on top, or nobody's.
        #[test]
        fn a_full_tree_charges_nobody_else(calls in proptest::collection::vec((1u64..30, any::<bool>()), 0..STEPS), folds: bool) {
            let tree = full(folds);
            let mut open: Vec<u64> = Vec::new();
            for (address, calls) in calls {
                if calls {
                    tree.call_anew(address, open.len() / 2, 1);
                    open.push(address);
                } else if let Some(address) = open.pop() {
                    tree.ret(address);
                }
                prop_assert_eq!(tree.swallowed(), open.len());
                let overflow = tree.memory.node(OVERFLOW);
                if let Some(&top) = open.last() {
                    let there = tree.find(OVERFLOW, top).unwrap_or(overflow);
                    prop_assert!([there, overflow].contains(&tree.beside.get()));
                }
            }
        }

        #[test]
        fn folded_calls_come_back_where_they_were_made(steps in proptest::collection::vec((any::<bool>(), 1u64..5), 0..STEPS)) {
            let tree = tree(1 << 20, true);
            let mut open: Vec<u64> = Vec::new();
            for (calls, address) in steps {
                if calls {
                    tree.call_anew(address, open.len(), 1);
                    open.push(address);
                } else if let Some(address) = open.pop() {
                    tree.ret(address);
                }
                let top = tree.current().wide(node::ADDRESS);
                prop_assert_eq!(top, open.last().copied().unwrap_or(0));
            }
            for path in sums(&tree).keys() {
                let mut once = path.clone();
                once.sort_unstable();
                once.dedup();
                prop_assert_eq!(once.len(), path.len(), "{:?} has a function twice", path);
            }
        }
    }

    /// A tree without room for another path, or another function that begins there.
    fn full(folds: bool) -> Tree {
        let tree = tree(2112, folds);
        let room = u64::from(tree.paths - tree.used.get());
        for address in 1..=room {
            tree.call_anew(address + 1000, 0, 1);
        }
        tree
    }

    #[test]
    fn functions_without_room_go_on_after_what_they_called() {
        for folds in [false, true] {
            let tree = full(folds);
            // A function, or 0 for a return, and how much later the next comes.
            let calls = [(1, 3), (2, 5), (3, 7), (0, 11), (3, 13), (0, 17), (0, 19), (2, 23)];
            let steps = [&calls[..], &[(0, 29), (0, 31)]].concat();
            let (mut open, mut now, mut own) = (Vec::new(), 0, HashMap::new());
            for (address, later) in steps {
                match address {
                    0 => tree.ret(open.pop().unwrap()),
                    address => {
                        tree.call_anew(address, open.len(), 1);
                        open.push(address);
                    }
                }
                now += later;
                tree.moved(now);
                *own.entry(open.last().copied()).or_insert(0) += later;
            }
            let sums = sums(&tree);
            // There is room for two of these functions.
            for (path, address) in [(vec![0, 1], 1), (vec![0, 2], 2), (vec![0], 3)] {
                assert_eq!(sums[&path].1, own[&Some(address)], "{address}, {sums:?}");
            }
        }
    }

    #[test]
    fn memory_that_is_too_small_is_no_tree() {
        let mut memory = [0u64; 600];
        let base = memory.as_mut_ptr().cast::<u8>();
        let beginning = Beginning::default();
        // SAFETY: memory that nobody else has.
        let begin = |at: usize, bytes| unsafe { Tree::begin(base.add(at), bytes, &beginning) };
        assert!(begin(0, 1496).is_none());
        assert!(begin(4, 1504).is_none());
        assert!(begin(0, 1504).is_some());
    }
}
