//! Signals kept from the calling thread for a short stretch.

use crate::arch::{number, syscall};

const SIG_BLOCK: usize = 0;
const SIG_SETMASK: usize = 2;
const SIGILL: u32 = 4;
const SIGTRAP: u32 = 5;
const SIGBUS: u32 = 7;
const SIGFPE: u32 = 8;
const SIGSEGV: u32 = 11;
const SIGSYS: u32 = 31;
/// What a thread's own instructions bring about cannot wait: the kernel ends a process in place of that.
const SYNCHRONOUS: [u32; 6] = [SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS];

/// While it lives, no handler of an asynchronous signal interrupts this thread, and none jumps out of what
/// it does. Signals that come meanwhile come when it goes. Where the kernel refuses, they come at once.
#[must_use = "signals are kept back as long as it lives"]
pub(crate) struct Mask {
    before: Option<u64>,
}

impl Mask {
    pub(crate) fn new() -> Self {
        let all_others = !SYNCHRONOUS.iter().fold(0, |set, signal| set | 1u64 << (signal - 1));
        let mut before = 0;
        let is_set = change(SIG_BLOCK, all_others, Some(&mut before));
        Self { before: is_set.then_some(before) }
    }
}

impl Drop for Mask {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            change(SIG_SETMASK, before, None);
        }
    }
}

/// A set has one bit for each signal, 64 on all processors but MIPS.
fn change(how: usize, set: u64, before: Option<&mut u64>) -> bool {
    let old = before.map_or(0, |before| core::ptr::from_mut(before) as usize);
    let arguments = [how, &raw const set as usize, old, size_of::<u64>(), 0, 0];
    // SAFETY: the kernel reads one set and writes another, where there is a place for it.
    unsafe { syscall(number::RT_SIGPROCMASK, arguments) == 0 }
}
