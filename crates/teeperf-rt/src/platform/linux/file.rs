//! Files that are open for a while, and calls that a signal may interrupt.

use crate::arch::{number, syscall};

const EINTR: isize = -4;

/// A file descriptor that is closed when it goes.
pub(crate) struct File(pub(super) i32);

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours; a number alone.
        unsafe { syscall(number::CLOSE, [self.0 as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Repeats a call that a signal interrupted.
pub(super) fn patiently(mut call: impl FnMut() -> isize) -> isize {
    loop {
        match call() {
            EINTR => {}
            result => return result,
        }
    }
}
