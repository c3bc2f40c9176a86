//! System calls that a child tries in the place of this process, which a filter may end it for.

use crate::arch::{number, syscall};

/// All children, also those that send no signal when they end (waitpid(2)).
const WALL: usize = 0x4000_0000;
const PR_SET_DUMPABLE: usize = 4;

/// Whether a child that makes these system calls, with arguments that make no sense, ends as it is to. The program sees
/// nothing of that child: its end sends no signal.
pub(crate) fn child_survives(numbers: &[usize]) -> bool {
    // SAFETY: no flags: the child has a copy of all memory, and of this stack.
    let child = unsafe { syscall(number::CLONE, [0; 6]) };
    match child {
        0 => attempt(numbers),
        1.. => await_end(child as usize) == Some(0),
        _ => false,
    }
}

fn attempt(numbers: &[usize]) -> ! {
    const NONSENSE: [usize; 6] = [usize::MAX; 6];
    loop {
        // What it is ended for is no crash of the program's: nothing is dumped.
        // SAFETY: numbers alone.
        unsafe { syscall(number::PRCTL, [PR_SET_DUMPABLE, 0, 0, 0, 0, 0]) };
        for &number in numbers {
            // SAFETY: no address is valid, no descriptor open: the kernel refuses it, if it lets it pass, or changes
            // nothing.
            unsafe { syscall(number, NONSENSE) };
        }
        // SAFETY: ends the child.
        unsafe { syscall(number::EXIT_GROUP, [0; 6]) };
    }
}

/// Waits for a child that sends no signal when it ends; gives its status (waitpid(2)).
fn await_end(child: usize) -> Option<u32> {
    let mut status = u32::MAX;
    let arguments = [child, &raw mut status as usize, WALL, 0, 0, 0];
    // SAFETY: the kernel writes one number.
    let waited = super::file::patiently(|| unsafe { syscall(number::WAIT4, arguments) });
    (waited == child as isize).then_some(status)
}
