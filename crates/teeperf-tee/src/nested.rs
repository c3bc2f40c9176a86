//! Hooks that interrupt a hook of the same thread: noticed, and counted for the next event that goes the long way
//! round. A handler that is left by a jump while it interrupts a hook leaves that hook under way for
//! ever, and the thread unrecorded.

use crate::losses::Losses;
use core::cell::Cell;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32, compiler_fence};

/// Looks at the counts until they hold still.
const LOOKS: u32 = 16;

/// Of one thread.
#[derive(Debug)]
pub(crate) struct Nested {
    is_busy: AtomicBool,
    calls: AtomicU32,
    returns: AtomicU32,
    /// Calls and returns that were told.
    told: Cell<(u32, u32)>,
}

impl Nested {
    pub(crate) const fn new() -> Self {
        Self {
            is_busy: AtomicBool::new(false),
            calls: AtomicU32::new(0),
            returns: AtomicU32::new(0),
            told: Cell::new((0, 0)),
        }
    }

    /// A hook begins; not, where one of this thread is under way.
    #[inline(always)]
    pub(crate) fn begin(&self) -> bool {
        if self.is_busy.load(Relaxed) {
            return false;
        }
        self.is_busy.store(true, Relaxed);
        compiler_fence(SeqCst);
        true
    }

    #[inline(always)]
    pub(crate) fn end(&self) {
        compiler_fence(SeqCst);
        self.is_busy.store(false, Relaxed);
    }

    /// A hook that did not begin, of a call (kind 0) or a return (1).
    #[cold]
    #[inline(never)]
    pub(crate) fn count(&self, kind: u32) {
        let count = if kind == 0 { &self.calls } else { &self.returns };
        // A handler may be interrupted by another here.
        #[cfg(target_has_atomic = "32")]
        count.fetch_add(1, Relaxed);
        #[cfg(not(target_has_atomic = "32"))]
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// What was counted since it was last taken, if anything. What handlers called has returned, so counts
    /// between which a handler ran do not belong together: those are left for another time.
    pub(crate) fn take(&self) -> Option<Losses> {
        let mut calls = self.calls.load(Relaxed);
        for _ in 0..LOOKS {
            compiler_fence(SeqCst);
            let returns = self.returns.load(Relaxed);
            compiler_fence(SeqCst);
            let again = self.calls.load(Relaxed);
            if again == calls {
                let (calls_told, returns_told) = self.told.replace((calls, returns));
                let called = calls.wrapping_sub(calls_told);
                let returned = returns.wrapping_sub(returns_told);
                let events = u64::from(called) + u64::from(returned);
                let popped = returned.saturating_sub(called);
                let pushed = called.saturating_sub(returned);
                return (events > 0).then_some(Losses { events, popped, pushed });
            }
            calls = again;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_interrupts_a_hook_is_counted_and_taken_once() {
        let nested = Nested::new();
        assert!(nested.begin() && !nested.begin());
        for kind in [0, 0, 1, 1, 1] {
            nested.count(kind);
        }
        nested.end();
        assert!(nested.begin());
        assert_eq!(nested.take(), Some(Losses { events: 5, popped: 1, pushed: 0 }));
        assert_eq!(nested.take(), None);
    }
}
