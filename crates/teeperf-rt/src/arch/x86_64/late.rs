//! Traces of late hooks in code (`teeperf-select/src/assembly/late/write.rs`), read again, and a
//! place where no restartable sequence goes on.

use core::arch::global_asm;
use teeperf_wire::hook::{RSEQ_SIGNATURE, late};

global_asm!(
    "
    .section .text.teeperf_nowhere, \"ax\", @progbits
    .hidden teeperf_nowhere
    .globl  teeperf_nowhere
    ud1     edi, dword ptr [rip + {signature}]
teeperf_nowhere:
    ud2
    .text
    ",
    signature = const RSEQ_SIGNATURE,
);

/// A place behind the signature of restartable sequences. The kernel looks for that before it knows
/// whether the thread is in the sequence, and ends the program where it is not there.
pub(crate) fn nowhere() -> usize {
    // SAFETY: the label above; it is never called, its address is taken.
    unsafe extern "C" {
        fn teeperf_nowhere();
    }
    teeperf_nowhere as *const () as usize
}

/// The function that a part of one belongs to, by what stands in front of it; else the part itself.
///
/// # Safety
/// There is code from `low` to `part`.
pub(crate) unsafe fn whole_function(part: usize, low: usize) -> usize {
    if part.saturating_sub(low) < 8 {
        return part;
    }
    // SAFETY: the caller's promise.
    let before = unsafe { *((part - 8) as *const [[u8; 4]; 2]) };
    match before.map(u32::from_le_bytes) {
        [late::PART, distance] => (part - 4).wrapping_add_signed(distance as i32 as isize),
        _ => part,
    }
}

/// Whether a function has a late hook, which looks at this word of its module first of all, behind
/// what may stand in front of it: the mark of a branch's target, and bytes to be patched.
///
/// # Safety
/// There is code from `function` to `end`.
pub(crate) unsafe fn has_late_hook(function: usize, end: usize, word: usize) -> bool {
    const BEFORE: usize = 64;
    let length = end.saturating_sub(function).min(BEFORE + COMPARISON);
    // SAFETY: the caller's promise.
    let code = unsafe { core::slice::from_raw_parts(function as *const u8, length) };
    code.windows(COMPARISON).enumerate().any(|(at, bytes)| looks_at(function + at, bytes, word))
}

/// Bytes of the instruction by which a late hook looks at its module's word.
pub(super) const COMPARISON: usize = 7;

/// Whether the instruction at an address, which begins with these bytes, is a late hook's look at
/// this word: `cmp dword ptr [rip + distance], 1` (Intel SDM 2A, CMP).
pub(super) fn looks_at(at: usize, bytes: &[u8], word: usize) -> bool {
    match *bytes {
        [0x83, 0x3D, a, b, c, d, 1, ..] => relative(at + COMPARISON, [a, b, c, d]) == word,
        _ => false,
    }
}

/// The address that is so far behind the end of an instruction.
pub(super) fn relative(end: usize, distance: [u8; 4]) -> usize {
    end.wrapping_add_signed(i32::from_le_bytes(distance) as isize)
}
