//! Events summed in the thread's tree, where the recorder wants no more than that: calls and times for
//! each call path, in memory that it lends.
//!
//! Hooks go the short way by themselves (`teeperf-stub`): with every event that goes where the one before it in
//! such a frame went, while the thread has its tree and the clock stands. All else comes here, and what is new
//! to the thread goes the long way ([`crate::event`]), which comes back when the thread is recorded and not paused.
//!
//! A signal handler may come in between any two instructions. What it calls returns before the hook goes on, so
//! that the tree is where it was; a handler that jumps out says so ([`leap`]). A path is made with signals kept
//! back.

use crate::block::Block;
use crate::clock;
use crate::event::{self, Event};
use crate::filter;
use crate::module;
use crate::pool;
use crate::process;
use crate::thread::Thread;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, compiler_fence};
use teeperf_tally::tree::{Beginning, Tree};
use teeperf_wire::hook;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::shared::chunk::STACK_NOT_TOLD;
use teeperf_wire::word;

/// A thread's tree, if it has one. Hooks know its first fields ([`hook::thread::TREE_LAST`]).
#[repr(C)]
pub(crate) struct Own {
    /// The low half of the tree's time, while hooks sum by themselves; else [`hook::thread::SUMS_NOT`]. Of a thread
    /// that is new it is 0, and so is all else: a tree without nodes.
    last: AtomicU64,
    tree: UnsafeCell<MaybeUninit<Tree>>,
    /// [`Being`] as a number.
    being: AtomicU8,
}

#[cfg(test)]
impl Default for Own {
    fn default() -> Self {
        let tree = UnsafeCell::new(MaybeUninit::zeroed());
        Self { last: AtomicU64::new(0), tree, being: AtomicU8::new(0) }
    }
}

/// What becomes of events: a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Being {
    /// There is no tree.
    None = 0,
    /// There is one, but events do not go into it: recording is paused, or something is to be told first.
    Apart = 1,
    /// They go into the tree, under a clock that ticks.
    Ticking = 2,
    /// They go into the tree, each with the time.
    Counting = 4,
}

impl Being {
    fn of_clock() -> Self {
        match clock::kind() {
            ClockKind::Tick => Self::Ticking,
            ClockKind::Cycle => Self::Counting,
        }
    }
}

/// Bits of [`Being`] with which events go into the tree.
pub(crate) const SUMMING: u8 = Being::Ticking as u8 | Being::Counting as u8;

impl Own {
    fn being(&self) -> Being {
        match self.being.load(Relaxed) {
            1 => Being::Apart,
            2 => Being::Ticking,
            4 => Being::Counting,
            _ => Being::None,
        }
    }

    fn set(&self, being: Being) {
        let last = match being {
            Being::Ticking => u64::from(self.tree().now() as u32),
            _ => hook::thread::SUMS_NOT,
        };
        self.being.store(being as u8, Relaxed);
        self.last.store(last, Relaxed);
    }

    /// Has hooks ask for each event, until [`Own::open`].
    pub(crate) fn close(&self) {
        self.last.store(hook::thread::SUMS_NOT, Relaxed);
    }

    /// Hooks sum by themselves again, if they did.
    pub(crate) fn open(&self) {
        if self.being() == Being::Ticking {
            self.last.store(u64::from(self.tree().now() as u32), Relaxed);
            compiler_fence(SeqCst);
            // Unless a signal handler has said meanwhile that they do not.
            if self.being() != Being::Ticking {
                self.close();
            }
        }
    }

    /// Where hooks look for what they need.
    pub(crate) const fn assert_place(own: usize) {
        use teeperf_tally::tree::layout;
        let tree = own + core::mem::offset_of!(Own, tree);
        assert!(own + core::mem::offset_of!(Own, last) == hook::thread::TREE_LAST);
        assert!(tree + layout::BASE == hook::thread::TREE);
        assert!(tree + layout::GUESSES == hook::thread::TREE_GUESSES);
        assert!(tree + layout::MASK == hook::thread::TREE_MASK);
        assert!(tree + layout::APART == hook::thread::TREE_APART);
        assert!(tree + layout::NODES == hook::thread::TREE_NODES);
        assert!(tree + layout::NOW == hook::thread::TREE_NOW);
        assert!(tree + layout::TOP == hook::thread::TREE_TOP);
    }

    /// Whether there is one.
    pub(crate) fn is_there(&self) -> bool {
        self.being() != Being::None
    }

    /// Forgets it, after a fork: it is the parent's.
    pub(crate) fn forget(&self) {
        self.set(Being::None);
    }

    /// The tree; to be asked only where there is one.
    #[inline(always)]
    fn tree(&self) -> &Tree {
        // SAFETY: written before it was said to be there, and never again while it is. Its thread alone uses it.
        unsafe { (*self.tree.get()).assume_init_ref() }
    }
}

/// Sums an event, if the way to the tree is open; says whether it was.
#[inline(always)]
pub(crate) fn sum(event: Event, block: &Block) -> bool {
    let thread = block.thread();
    if thread.own.being.load(Relaxed) & process::sums() == 0 {
        return false;
    }
    // What comes in the midst of something is lost, and its return as well.
    if thread.is_busy() {
        return false;
    }
    let tree = thread.own.tree();
    if !clock::stands_at(tree.now()) && !has_moved(thread, tree) {
        return false;
    }
    if event.is_return {
        tree.ret(event.address);
        return true;
    }
    tree.call(event.address, event.frame) || call_anew(thread, tree, event)
}

/// The clock has moved: time is charged, unless recording was paused or has ended. Says whether it goes on: where
/// another filter holds now, or is to come, the thread goes the long way first.
fn has_moved(thread: &Thread, tree: &Tree) -> bool {
    if clock::is_stopped() || clock::is_paused() {
        thread.own.set(Being::Apart);
        return false;
    }
    let is_told = |units| units == thread.left_out.load(Relaxed);
    if !process::units_of_pauses_over().is_some_and(is_told) {
        thread.own.set(Being::Apart);
        return false;
    }
    if filter::is_to_come(thread) {
        tree.moved(clock::now());
        thread.own.set(Being::Apart);
        return false;
    }
    let (now, last) = (clock::now(), thread.own.last.load(Relaxed));
    tree.moved(now);
    thread.keep_apart();
    if last != hook::thread::SUMS_NOT {
        // Unless a signal handler has just said that they do not.
        let _ = thread.own.last.compare_exchange(last, now as u32 as u64, Relaxed, Relaxed);
    }
    true
}

/// Makes a path, and calls; not in the child of a handler that has forked just before.
#[cold]
#[inline(never)]
fn call_anew(thread: &Thread, tree: &Tree, event: Event) -> bool {
    let word = module::site_of(event.address).map_or(0, word::call);
    let mut is_made = false;
    event::claimed(thread, || {
        tree.call_anew(event.address, event.frame, word);
        is_made = true;
    });
    is_made
}

/// An event of a thread that is recorded and not paused, whatever the short way had against it.
pub(crate) fn record(thread: &Thread, event: Event) -> bool {
    let passes = loop {
        if !event::is_running(thread) || !thread.own.is_there() {
            return false;
        }
        filter::tell(thread);
        if let Some(passes) = filter::passes(thread, event.address) {
            break passes;
        }
    };
    if !passes {
        return true;
    }
    let tree = thread.own.tree();
    tree.moved(clock::now());
    // As long as another filter is to come, each event takes the long way.
    thread.own.set(if filter::is_to_come(thread) { Being::Apart } else { Being::of_clock() });
    thread.keep_apart();
    if event.is_return {
        tree.ret(event.address);
        return true;
    }
    tree.call(event.address, event.frame) || call_anew(thread, tree, event)
}

/// Another filter holds: which frames are open of the functions that pass now is not known. They are forgotten, and
/// paths begin anew.
pub(crate) fn forget_frames(thread: &Thread) {
    if thread.own.is_there() {
        event::claimed(thread, || thread.own.tree().forget_frames());
    }
}

/// A way out of functions or into them that no hook sees; names of marks have 24 bits.
#[derive(Clone, Copy)]
pub(crate) enum Leap {
    /// The depth is kept under this name.
    Mark(u32),
    /// The stack falls to the depth that was kept last.
    Jump(u32),
    /// As those, with a name of its own.
    VforkBegin,
    /// See [`Leap::VforkBegin`].
    VforkEnd,
    /// From one stack, which may be [`word::ABANDONED`], to another.
    Switch(u64, u64),
    /// To this stack, if another one runs.
    Stack(u64),
    /// A stack begins anew.
    NewStack(u64),
    /// The function at this address catches an exception.
    Catch(u64),
}

/// Follows it in the thread's tree, which the time before it is charged to. The thread is recorded and not paused.
pub(crate) fn leap(thread: &Thread, leap: Leap) {
    const VFORK: u64 = 1 << 32;
    if !thread.own.is_there() {
        return;
    }
    let tree = thread.own.tree();
    tree.moved(clock::now());
    match leap {
        Leap::Mark(name) => tree.mark(name.into()),
        Leap::Jump(name) => tree.jump(name.into()),
        Leap::VforkBegin => tree.mark(VFORK),
        Leap::VforkEnd => tree.jump(VFORK),
        Leap::Switch(left, entered) => {
            tree.switch((left != word::ABANDONED).then_some(left), entered);
        }
        Leap::Stack(stack) => tree.enter_stack(stack),
        Leap::NewStack(stack) => tree.begin_stack(stack),
        Leap::Catch(address) => tree.catch(address),
    }
}

/// A jump that is over: the time since is not known to be before it.
pub(crate) fn leap_late(thread: &Thread, name: u32) {
    if thread.own.is_there() {
        thread.own.tree().jump(name.into());
    }
}

/// The thread has no memory to count in from here on; what passed before is time of the function on top.
pub(crate) fn run_out(thread: &Thread) {
    if thread.own.being() == Being::of_clock() {
        thread.own.tree().moved(clock::now());
        thread.own.set(Being::Apart);
    }
}

/// The thread has memory again: the time since it had none goes to nobody.
pub(crate) fn come_back(thread: &Thread) {
    if thread.own.is_there() {
        thread.own.tree().skip_to(clock::now());
    }
}

/// Tells the tree of frames that were left while nothing was summed, and then of those entered.
pub(crate) fn miss(thread: &Thread, left: u32, entered: u32) {
    if (left, entered) == (0, 0) || !thread.own.is_there() {
        return;
    }
    let tell = || thread.own.tree().miss(left, entered);
    if thread.is_busy() { tell() } else { event::claimed(thread, tell) }
}

/// Recording is paused, and was for so long: until the long way has been taken, events do not go into the tree.
pub(crate) fn pause(thread: &Thread, units: u64) {
    if thread.own.being() == Being::of_clock() {
        thread.own.tree().moved(clock::now().saturating_sub(units));
        thread.own.set(Being::Apart);
    }
}

/// So much time goes to nobody.
pub(crate) fn leave_out(thread: &Thread, units: u64) {
    if thread.own.is_there() {
        let tree = thread.own.tree();
        tree.skip_to(tree.now().saturating_add(units).min(clock::now()));
    }
}

/// Something is to be told before the next event, which takes the long way.
pub(crate) fn delay(thread: &Thread) {
    if thread.own.is_there() {
        thread.own.set(Being::Apart);
    }
}

/// Takes memory for a tree, if there is some; says whether the thread has one. The thread is claimed.
pub(crate) fn take(thread: &Thread, serial: &AtomicU32) -> bool {
    if thread.own.is_there() {
        return true;
    }
    let serial = serial.load(Relaxed);
    let Some(taken) = pool::take_tree(serial as usize) else { return false };
    let beginning = Beginning {
        pid: process::id(),
        tid: thread.tid.load(Relaxed),
        serial,
        clock: clock::kind() as u32,
        now: clock::now(),
        stack: Some(thread.stack.load(Relaxed)).filter(|&id| id != STACK_NOT_TOLD).unwrap_or(0),
        folds: process::folds(),
    };
    // SAFETY: a taken chunk, zeroed, in a segment that stays mapped. What the recorder writes there is not
    // believed.
    let Some(tree) = (unsafe { Tree::begin(taken.start, taken.size, &beginning) }) else {
        return false;
    };
    // SAFETY: nobody uses what is not said to be there.
    unsafe { (*thread.own.tree.get()).write(tree) };
    thread.own.set(Being::Apart);
    true
}
