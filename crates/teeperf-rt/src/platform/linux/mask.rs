//! Signals kept from the calling thread for a short stretch.

use super::{Action, SIG_DFL};
use crate::arch::{number, syscall};

const SIG_BLOCK: usize = 0;
const SIG_UNBLOCK: usize = 1;
const SIG_SETMASK: usize = 2;
const SIGHUP: u32 = 1;
const SIGINT: u32 = 2;
const SIGQUIT: u32 = 3;
const SIGILL: u32 = 4;
const SIGTRAP: u32 = 5;
const SIGBUS: u32 = 7;
const SIGFPE: u32 = 8;
const SIGSEGV: u32 = 11;
const SIGTERM: u32 = 15;
const SIGSYS: u32 = 31;
/// What a thread's own instructions bring about cannot wait: the kernel ends a process in place of that.
pub(crate) const SYNCHRONOUS: u64 = set_of(&[SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS]);
/// All others.
const ASYNCHRONOUS: u64 = !SYNCHRONOUS;
/// What users end a program with.
const ENDING: [u32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// While it lives, no handler of an asynchronous signal interrupts this thread, and none jumps out of what
/// it does. Signals that come meanwhile come when it goes. Where the kernel refuses, they come at once.
#[must_use = "signals are kept back as long as it lives"]
pub(crate) struct Mask {
    before: Option<u64>,
}

impl Mask {
    /// For what takes some microseconds.
    pub(crate) fn new() -> Self {
        Self::of(ASYNCHRONOUS)
    }

    /// For what may take seconds: where a signal ends the program, it may do so now.
    pub(crate) fn patient() -> Self {
        let ends_at_once = ENDING.iter().filter(|&&signal| has_no_handler(signal));
        Self::of(ends_at_once.fold(ASYNCHRONOUS, |set, &signal| set & !set_of(&[signal])))
    }

    fn of(signals: u64) -> Self {
        let mut before = 0;
        let is_set = change(SIG_BLOCK, signals, Some(&mut before));
        Self { before: is_set.then_some(before) }
    }

    /// The set as it was before it.
    pub(crate) fn before(&self) -> Option<u64> {
        self.before
    }

    /// Ends one that was left by a jump out of a handler, unless the jump has done so.
    pub(crate) fn end_abandoned(before: u64) {
        let mut now = 0;
        if change(SIG_BLOCK, 0, Some(&mut now)) && now | SYNCHRONOUS | KILLING == u64::MAX {
            change(SIG_UNBLOCK, ASYNCHRONOUS & !before, None);
        }
    }
}

/// Most signals of a set that was made by naming them. A set of all, or of all but a few, has more.
const NAMED: u32 = 16;

/// Lets the calling thread get the signal of [`super::timer`]; says whether it was among few that
/// the thread had blocked.
pub(crate) fn let_through() -> bool {
    let (signal, mut before) = (set_of(&[super::timer::signal() as u32]), 0);
    let is_known = change(SIG_UNBLOCK, signal, Some(&mut before));
    is_known && before & signal != 0 && before.count_ones() <= NAMED
}

/// Keeps that signal from the calling thread.
pub(crate) fn keep_back() {
    change(SIG_BLOCK, set_of(&[super::timer::signal() as u32]), None);
}

/// SIGKILL and SIGSTOP, which are never kept back.
const KILLING: u64 = set_of(&[9, 19]);

impl Drop for Mask {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            change(SIG_SETMASK, before, None);
        }
    }
}

/// One bit for each signal, 64 on all processors but MIPS.
const fn set_of(signals: &[u32]) -> u64 {
    let (mut set, mut at) = (0, 0);
    while at < signals.len() {
        set |= 1 << (signals[at] - 1);
        at += 1;
    }
    set
}

fn change(how: usize, set: u64, before: Option<&mut u64>) -> bool {
    let old = before.map_or(0, |before| core::ptr::from_mut(before) as usize);
    let arguments = [how, &raw const set as usize, old, size_of::<u64>(), 0, 0];
    // SAFETY: the kernel reads one set and writes another, where there is a place for it.
    unsafe { syscall(number::RT_SIGPROCMASK, arguments) == 0 }
}

fn has_no_handler(signal: u32) -> bool {
    Action::of(signal as usize).is_some_and(|action| action.handler == SIG_DFL)
}
