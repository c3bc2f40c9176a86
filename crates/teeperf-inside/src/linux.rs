//! One exchange with the recorder, as the runtime of hooked programs has it: by system calls, since a child of a fork may do little
//! else, and no call of the C library's that a thread is cancelled at belongs into functions that have none.

use crate::arch::{number, syscall};

#[path = "../../teeperf-rt/src/platform/linux/file.rs"]
mod file;
#[path = "../../teeperf-rt/src/platform/linux/rights.rs"]
mod rights;
#[path = "../../teeperf-rt/src/platform/linux/socket.rs"]
#[allow(dead_code, reason = "the runtime asks more of it")]
mod socket;
pub(crate) use file::File;
pub(crate) use rights::has_rights_of_its_own;
pub(crate) use socket::exchange;

/// Process id as the process knows it.
pub(crate) fn process_id() -> u32 {
    // SAFETY: no pointers.
    unsafe { syscall(number::GETPID, [0; 6]) as u32 }
}

/// Maps memory: of a file, shared, if that has as many bytes; or new.
pub(crate) fn map(file: Option<&File>, bytes: usize) -> Option<*mut u8> {
    const READ_WRITE: usize = 3;
    const SHARED: usize = 1;
    const PRIVATE_ANONYMOUS: usize = 0x22;
    let (flags, descriptor) = match file {
        Some(file) if size(file) == Some(bytes) => (SHARED, file.0 as usize),
        Some(_) => return None,
        None => (PRIVATE_ANONYMOUS, usize::MAX),
    };
    // SAFETY: a new mapping where the kernel finds room.
    let base = unsafe { syscall(number::MMAP, [0, bytes, READ_WRITE, flags, descriptor, 0]) };
    (base > 0).then_some(base as *mut u8)
}

fn size(file: &File) -> Option<usize> {
    // `struct stat` of x86-64 is 144 bytes with `st_size` at 48; the other 64-bit processors' is 128 bytes with the same offset.
    let mut stat = [0u64; 18];
    let arguments = [file.0 as usize, &raw mut stat as usize, 0, 0, 0, 0];
    // SAFETY: the kernel writes one `struct stat` there.
    let result = unsafe { syscall(number::FSTAT, arguments) };
    (result == 0).then_some(stat[6] as usize)
}

/// Changes which signals the calling thread does not get: a set of the kernel's.
pub(crate) fn mask(how: usize, set: u64) {
    let arguments = [how, &raw const set as usize, 0, size_of_val(&set), 0, 0];
    // SAFETY: the kernel reads the set.
    unsafe { syscall(number::RT_SIGPROCMASK, arguments) };
}
