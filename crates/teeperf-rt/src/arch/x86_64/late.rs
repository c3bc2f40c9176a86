//! The runtime's half of late hooks: it writes an event's word where nothing else is to be done, as
//! the stub's hooks do (teeperf-stub/src/x86_64/hooks.rs). It serves every module alike, since the
//! linker knows where the runtime's thread-local storage is.
//!
//! A late hook's registers are the program's, so all but r11 and the flags come back as they were.
//! The vector registers are kept where the long way is taken, which is Rust.
//!
//! The kernel stays told of the restartable sequence: the runtime is never unloaded. The sequence
//! begins right behind the store that tells of it: the kernel forgets it where a thread is
//! interrupted in between.

use crate::clock;
use crate::event;
use crate::thread::{self, Thread};
use core::arch::global_asm;
use teeperf_wire::hook::{RSEQ_SIGNATURE, STEP, TICK_AHEAD, late, thread as fields};
use teeperf_wire::shared::clock as page;

global_asm!(
    "
    .macro  teeperf_record name, block
    .p2align 6
    .hidden \\name
    .globl  \\name
    .type   \\name, @function
\\name:
    .cfi_startproc
    mov     qword ptr [rsp - 8], rax
    mov     rax, qword ptr [rip + teeperf_thread@gottpoff]
    mov     rcx, qword ptr [rip + {page}]
    mov     ecx, dword ptr [rcx + {tick}]
    cmp     ecx, dword ptr fs:[rax + \\block + {last}]
    jne     7f
    mov     rcx, qword ptr fs:[rax + \\block + {rseq}]
    test    rcx, rcx
    jz      4f
    lea     rax, [rip + 20f]
    mov     qword ptr fs:[rcx], rax
1:  mov     rax, qword ptr [rip + teeperf_thread@gottpoff]
    mov     rcx, qword ptr fs:[rax + \\block + {cursor}]
    add     qword ptr fs:[rax + \\block + {cursor}], {step}
2:  test    cx, cx
    js      7f
    shr     rcx, 16
    prefetchw [rcx + {ahead}]
    mov     dword ptr [rcx], r11d
    mov     rax, qword ptr [rsp - 8]
    mov     rcx, qword ptr [rsp - 16]
    ret

    ud1     edi, dword ptr [rip + {signature}]
4:  mov     rax, qword ptr [rip + teeperf_thread@gottpoff]
    mov     ecx, {step}
    xadd    qword ptr fs:[rax + \\block + {cursor}], rcx
    jmp     2b

7:  mov     rax, qword ptr [rsp - 8]
    mov     rcx, qword ptr [rsp - 16]
    jmp     teeperf_record_out
    .cfi_endproc
    .size   \\name, . - \\name

    .section .data.rel.ro.teeperf_record, \"aw\", @progbits
    .p2align 5
20: .long   0, 0
    .quad   1b, 2b - 1b, 4b
    .section teeperf_code, \"ax\", @progbits
    .endm

    .section teeperf_code, \"ax\", @progbits
    teeperf_record teeperf_record_0, 0
    teeperf_record teeperf_record_1, {size}

    // The long way: r11d is the word, the caller's caller is the function.
    .p2align 4
    .type   teeperf_record_out, @function
teeperf_record_out:
    .cfi_startproc
    push    rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    mov     rbp, rsp
    .cfi_def_cfa_register rbp
    push    rax
    push    rcx
    push    rdx
    push    rsi
    push    rdi
    push    r8
    push    r9
    push    r10
    sub     rsp, 256
    and     rsp, -16
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps  xmmword ptr [rsp + 16 * \\n], xmm\\n
    .endr
    mov     edi, r11d
    lea     rsi, [rbp + 16]
    mov     rdx, qword ptr [rbp + 16]
    call    {late}
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps  xmm\\n, xmmword ptr [rsp + 16 * \\n]
    .endr
    mov     rax, qword ptr [rbp - 8]
    mov     rcx, qword ptr [rbp - 16]
    mov     rdx, qword ptr [rbp - 24]
    mov     rsi, qword ptr [rbp - 32]
    mov     rdi, qword ptr [rbp - 40]
    mov     r8, qword ptr [rbp - 48]
    mov     r9, qword ptr [rbp - 56]
    mov     r10, qword ptr [rbp - 64]
    leave
    .cfi_def_cfa rsp, 8
    .cfi_restore rbp
    ret
    .cfi_endproc
    .size   teeperf_record_out, . - teeperf_record_out
    .purgem teeperf_record
    .text
    ",
    page = sym clock::PAGE,
    tick = const page::TICK,
    last = const fields::LAST,
    rseq = const fields::RSEQ,
    cursor = const fields::CURSOR,
    step = const STEP,
    ahead = const TICK_AHEAD,
    signature = const RSEQ_SIGNATURE,
    size = const size_of::<Thread>(),
    late = sym event::late,
);

/// Address of the code that writes a late hook's word into the calling thread's present block
/// ([`thread::current`]).
pub(crate) fn record_late() -> usize {
    // SAFETY: the labels above; they are never called from here, their addresses are taken.
    unsafe extern "C" {
        fn teeperf_record_0();
        fn teeperf_record_1();
    }
    let is_first = thread::offset() == super::thread_offset();
    let code = if is_first { teeperf_record_0 } else { teeperf_record_1 };
    code as *const () as usize
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
