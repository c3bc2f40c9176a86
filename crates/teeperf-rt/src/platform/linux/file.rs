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

/// Opens a file for reading; the path ends in a 0 byte.
pub(crate) fn open(path: &core::ffi::CStr) -> Option<File> {
    const AT_FDCWD: usize = -100isize as usize;
    const O_CLOEXEC: usize = 0o2_000_000;
    let arguments = [AT_FDCWD, path.as_ptr() as usize, O_CLOEXEC, 0, 0, 0];
    // SAFETY: the path is a string of C.
    let result = patiently(|| unsafe { syscall(number::OPENAT, arguments) });
    (result >= 0).then_some(File(result as i32))
}

impl File {
    /// Reads up to as many bytes as there is room for; 0 at the end and after an error.
    pub(crate) fn read(&self, room: &mut [u8]) -> usize {
        let arguments = [self.0 as usize, room.as_mut_ptr() as usize, room.len(), 0, 0, 0];
        // SAFETY: the kernel writes into `room` alone.
        let result = patiently(|| unsafe { syscall(number::READ, arguments) });
        usize::try_from(result).unwrap_or(0).min(room.len())
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
