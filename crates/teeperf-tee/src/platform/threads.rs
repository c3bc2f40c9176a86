//! The image runs several threads, each with thread-local storage. What one of them attaches is for all:
//! each takes part at its next event, in chunks of its own, and lets go when another has detached.

use super::local;
use crate::arena::Refusal;
use crate::thread::{Image, Thread};
use core::cell::Cell;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

#[cfg(not(target_has_atomic = "32"))]
compile_error!(
    "several threads need compare-and-exchange, which this target has not: build without `threads`"
);

/// What a thread has for itself. All zero at first, and then [`Thread::new`].
#[repr(C)]
pub(super) struct Local {
    thread: Thread,
    /// Value of [`EPOCH`] that it has followed.
    epoch: Cell<u32>,
}

/// One more with each attaching and each detaching: odd while there is an arena.
/// Read by the entries for `-pg`, too.
#[unsafe(export_name = "teeperf_tee_epoch")]
static EPOCH: AtomicU32 = AtomicU32::new(0);
/// Of that arena.
static BASE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static LENGTH: AtomicUsize = AtomicUsize::new(0);
/// Threads that have begun to count calls for it, and neither let go nor ended.
static COUNTING: AtomicU32 = AtomicU32::new(0);
/// Calls that threads have counted that are no more.
static LEFT: AtomicU64 = AtomicU64::new(0);
/// Somebody is attaching or detaching.
static CHANGES: AtomicBool = AtomicBool::new(false);

fn is_attached(epoch: u32) -> bool {
    epoch % 2 == 1
}

/// The calling thread.
#[inline(always)]
pub(crate) fn thread() -> &'static Thread {
    let own = local::local();
    if own.epoch.get() != EPOCH.load(Relaxed) {
        own.follow();
    }
    &own.thread
}

impl Local {
    #[cold]
    #[inline(never)]
    fn follow(&self) {
        let epoch = EPOCH.load(Acquire);
        if is_attached(epoch) {
            let (base, length) = (BASE.load(Relaxed), LENGTH.load(Relaxed));
            // SAFETY: whoever attached it promised that it stays until it is detached, and that no
            // thread is within the image's code then.
            unsafe { self.thread.follow(base, length, &super::image()) };
        } else {
            self.thread.let_go();
        }
        self.epoch.set(epoch);
    }
}

/// # Safety
/// As [`Thread::attach`], for all threads.
pub(crate) unsafe fn attach(base: *mut u8, length: usize, image: &Image) -> Result<bool, Refusal> {
    if CHANGES.swap(true, Acquire) {
        return Err(Refusal::Attached);
    }
    // SAFETY: the caller's promise.
    let result = unsafe { attach_alone(base, length, image) };
    CHANGES.store(false, Release);
    result
}

/// # Safety
/// As above.
unsafe fn attach_alone(base: *mut u8, length: usize, image: &Image) -> Result<bool, Refusal> {
    let epoch = EPOCH.load(Relaxed);
    if is_attached(epoch) {
        return Err(Refusal::Attached);
    }
    let own = local::local();
    own.thread.let_go();
    // Those that counted before begin anew at their next call, or never.
    COUNTING.store(0, Relaxed);
    // SAFETY: the caller's promise.
    let is_held = unsafe { own.thread.attach(base, length, image) }?;
    BASE.store(base, Relaxed);
    LENGTH.store(length, Relaxed);
    let epoch = epoch.wrapping_add(1);
    own.epoch.set(epoch);
    EPOCH.store(epoch, Release);
    Ok(is_held)
}

/// No other thread is within the image's code.
pub(crate) fn detach() {
    if CHANGES.swap(true, Acquire) {
        return;
    }
    let epoch = EPOCH.load(Relaxed);
    if is_attached(epoch) {
        thread().detach();
        let epoch = epoch.wrapping_add(1);
        local::local().epoch.set(epoch);
        EPOCH.store(epoch, Release);
    }
    CHANGES.store(false, Release);
}

/// The calling thread ends: its chunk is the host's.
pub(crate) fn end_thread() {
    thread().end();
}

/// Whose the calling thread's clock is.
pub(crate) fn epoch() -> u32 {
    local::local().epoch.get()
}

/// The calling thread counts calls for the arena from now on, or does not any more.
pub(crate) fn counts(begins: bool) {
    if begins {
        COUNTING.fetch_add(1, Relaxed);
    } else if local::local().epoch.get() == EPOCH.load(Relaxed) {
        COUNTING.fetch_sub(1, Relaxed);
    }
}

/// Whether others do, where the calling one does not any more.
pub(crate) fn others_count() -> bool {
    COUNTING.load(Relaxed) > 0
}

/// Calls that the calling thread has counted, and nobody takes.
pub(crate) fn leave_behind(calls: u64) {
    LEFT.fetch_add(calls, Relaxed);
}

/// Takes what such threads have left.
pub(crate) fn take_left() -> u64 {
    LEFT.swap(0, Relaxed)
}

/// A new thread's number.
pub(crate) fn next_serial() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Relaxed)
}
