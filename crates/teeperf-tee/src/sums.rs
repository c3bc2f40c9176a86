//! Where there is no lent memory, or nobody wants every event: calls and times summed in a tree, in memory of
//! the trusted side's own ([`teeperf_tally`]). What a tree has grown by is handed over, in chunks of an arena,
//! at the next opportunity, or taken in pieces ([`crate::taking`]).

use crate::arena::Arena;
use crate::chunk::Chunk;
use crate::platform;
use crate::thread::Who;
use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use teeperf_tally::tree::{Beginning, Tree};
use teeperf_wire::shared::ClockKind;
use teeperf_wire::tree::node;
use teeperf_wire::word;

/// A thread's tree, if the platform has memory for one. A new one is all zero.
pub(crate) struct Sums {
    /// Where there is one, it is never written again.
    tree: UnsafeCell<MaybeUninit<Tree>>,
    asked: Cell<Asked>,
    /// Time from which on what is in the tree has not been handed over.
    since: Cell<u64>,
    /// The node to go on with, where there was no chunk for it. Those before it are known to the host, which needs to
    /// know each node's caller.
    next: Cell<u32>,
    /// Events since then.
    is_grown: Cell<bool>,
    /// Times are the image's counter's, which runs on while there is no arena. Else they are the tick's, and then
    /// it stands.
    counts: Cell<bool>,
    /// What no other tree in this arena is known as, where no counter says when this one was begun.
    number: Cell<u32>,
    /// What the tree's time is ahead of that clock: it goes on from one recording's to the next's.
    ahead: Cell<u64>,
}

/// Whether the platform was asked for memory.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Asked {
    NotYet = 0,
    ThereIsNone = 1,
    ThereIsATree = 2,
}

/// The stretch of code whose functions have sites, in the arena that a tree is handed over in.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) low: usize,
    pub(crate) sites: usize,
    pub(crate) first_word: u32,
}

impl Window {
    /// Word of a call of the function at this address; 0: it has no site.
    pub(crate) fn word(&self, address: u64) -> u32 {
        let site = (address as usize).wrapping_sub(self.low);
        if site < self.sites { self.first_word.wrapping_add((site as u32) << 1) } else { 0 }
    }
}

impl Sums {
    pub(crate) const fn new() -> Self {
        Self {
            tree: UnsafeCell::new(MaybeUninit::uninit()),
            asked: Cell::new(Asked::NotYet),
            since: Cell::new(0),
            next: Cell::new(0),
            is_grown: Cell::new(false),
            counts: Cell::new(false),
            number: Cell::new(0),
            ahead: Cell::new(0),
        }
    }

    /// With a tree of a test's.
    #[cfg(test)]
    pub(crate) fn of(tree: Tree) -> Self {
        let sums = Self::new();
        // SAFETY: nobody has a reference to it yet.
        unsafe { sums.tree.get().write(MaybeUninit::new(tree)) };
        sums.asked.set(Asked::ThereIsATree);
        sums
    }

    /// As if its times were the image's counter's.
    #[cfg(test)]
    pub(crate) fn has_times_of_counter(&self) {
        self.counts.set(true);
    }

    pub(crate) fn tree(&self) -> Option<&Tree> {
        if cfg!(any(feature = "threads", feature = "apart")) {
            // The platform's memory is one, and each thread would take it for its own.
            return None;
        }
        if let Asked::NotYet = self.asked.get() {
            self.asked.set(Asked::ThereIsNone);
            if let Some(begun) = begin() {
                // SAFETY: nobody has a reference to it yet.
                let tree = unsafe { (*self.tree.get()).write(begun) };
                self.since.set(tree.now());
                self.counts.set(platform::has_counter());
                self.asked.set(Asked::ThereIsATree);
            }
        }
        match self.asked.get() {
            // SAFETY: it was written, and is not any more.
            Asked::ThereIsATree => Some(unsafe { (*self.tree.get()).assume_init_ref() }),
            _ => None,
        }
    }

    /// By the clock that the arena has or the last one had; where that was a tick, it stands.
    fn now(&self, arena: Option<&Arena>, tree: &Tree) -> u64 {
        let ahead = self.ahead.get();
        match arena {
            _ if self.counts.get() => platform::counter().wrapping_add(ahead),
            Some(arena) => arena.tick().wrapping_add(ahead),
            None => tree.now(),
        }
    }

    /// Sums a call (kind 0) or a return (1).
    pub(crate) fn event(&self, arena: Option<&Arena>, address: usize, kind: u32) {
        let Some(tree) = self.tree() else { return };
        self.moved(arena, tree);
        self.is_grown.set(true);
        let here = 0u8;
        let (address, frame) = (address as u64, (&raw const here) as usize);
        if kind != 0 {
            tree.ret(address);
        } else if !tree.call(address, frame) {
            // Words depend on the arena, and are found when the tree is handed over.
            tree.call_anew(address, frame, 0);
        }
    }

    /// An arena's clock is the tree's from here on, whose time goes on from where it stands: what lies between is
    /// nobody's. Of what is in the tree with times of other units than that clock's, calls alone stay.
    pub(crate) fn follow(&self, arena: &Arena) {
        let Some(tree) = self.tree() else { return };
        let counts = arena.clock() == ClockKind::Cycle;
        let has_its_units = self.counts.replace(counts) == counts;
        self.go_on(arena);
        // Of an earlier tick there is no telling what this one said then.
        if !(counts && has_its_units && self.is_grown.get()) {
            self.since.set(tree.now());
        }
        if !has_its_units {
            tree.forget_times();
        }
    }

    /// The tree's time goes on from where it stands.
    pub(crate) fn go_on(&self, arena: &Arena) {
        let Some(tree) = self.tree() else { return };
        let passed = tree.now().wrapping_sub(self.now(Some(arena), tree));
        self.ahead.set(self.ahead.get().wrapping_add(passed));
    }

    /// The tree's time is the clock's.
    pub(crate) fn come_to(&self, arena: &Arena) {
        let Some(tree) = self.tree() else { return };
        self.moved(Some(arena), tree);
    }

    fn moved(&self, arena: Option<&Arena>, tree: &Tree) {
        let now = self.now(arena, tree);
        if now > tree.now() {
            tree.moved(now);
        }
    }

    /// The host knows none of the nodes.
    pub(crate) fn start_anew(&self) {
        self.next.set(0);
    }

    /// In this arena it is known by this number.
    pub(crate) fn is_known_as(&self, number: u32) {
        self.number.set(number);
    }

    /// Whether there is something to hand over; if so, all that is there now counts as handed over, and this says from
    /// when to when it is.
    pub(crate) fn begin_round(&self, arena: Option<&Arena>) -> Option<(u64, u64)> {
        let tree = self.tree().filter(|_| self.is_grown.replace(false))?;
        self.moved(arena, tree);
        let (since, ahead) = (self.since.replace(tree.now()), self.ahead.get());
        Some((since.wrapping_sub(ahead), tree.now().wrapping_sub(ahead)))
    }

    /// Whether times are the image's counter's.
    pub(crate) fn has_counter(&self) -> bool {
        self.counts.get()
    }

    /// Hands over what the tree has grown by, as far as `take` finds chunks; says how many calls are left for the next
    /// time.
    pub(crate) fn hand_over(
        &self,
        arena: &Arena,
        who: Who,
        window: Window,
        take: impl Fn() -> Option<Chunk>,
    ) -> u64 {
        let Some(tree) = self.tree().filter(|_| self.is_grown.get()) else { return 0 };
        let of_chunk = arena.nodes_of_chunk() as u32;
        let used = tree.used();
        let began = match tree.began() {
            0 => self.number.get().into(),
            began => began,
        };
        let (mut first, mut left) = (self.next.get(), used);
        while left > 0 {
            if first == used {
                first = 0;
            }
            let Some(chunk) = take() else {
                self.next.set(first);
                return tree.calls();
            };
            let count = of_chunk.min(used - first).min(left);
            for at in 0..count {
                let mut wides = tree.take(first + at);
                let parent = wides[node::PARENT / 8] >> 32 << 32;
                let word = window.word(wides[node::ADDRESS / 8]);
                wides[node::WORD / 8] = parent | u64::from(word);
                // What is told by a word is told by that alone, and the rest is the tree's own.
                if word != 0 {
                    wides[node::ADDRESS / 8] = 0;
                }
                wides[node::ENTERED / 8] = 0;
                wides[node::OPEN / 8] = 0;
                chunk.put_node(arena, at as usize, &wides);
            }
            let ahead = self.ahead.get();
            let span = (self.since.get().wrapping_sub(ahead), tree.now().wrapping_sub(ahead));
            // Of the first nothing is left for the others.
            let mended = tree.take_mended();
            chunk.hand_over_nodes(arena, who, (first, count), span, began, mended);
            first += count;
            left -= count;
        }
        self.next.set(0);
        self.since.set(tree.now());
        self.is_grown.set(false);
        0
    }
}

fn begin() -> Option<Tree> {
    let (base, bytes) = platform::tree_memory()?;
    let now = platform::counter();
    let clock = if now == 0 { ClockKind::Tick } else { ClockKind::Cycle };
    let beginning = Beginning { clock: clock as u32, now, ..Beginning::default() };
    // SAFETY: the platform's promise: memory for this alone, zeroed.
    unsafe { Tree::begin(base, bytes, &beginning) }
}

const _: () = assert!(node::WORD == 0 && node::PARENT == 4 && word::FIRST_SITE > 0);
