//! The stub's half of late hooks ([`teeperf_wire::hook`]): they call it. The function's address is in r11, and its return
//! address above that of the hook. All registers but r11 and the flags come back as they were.
//!
//! Where nothing is to be done but to write a word, the runtime's code does that. Else, and before
//! the runtime knows of the module, registers are kept and a hook as compilers call it does the
//! rest. That one's way to the runtime keeps the vector registers: the runtime is Rust.

use core::arch::global_asm;
use teeperf_wire::hook::{gate, module};

global_asm!(
    super::define!(),
    "
    .weak   teeperf_rt_event
    .macro  teeperf_late name, kind, hook
    .p2align 5
    teeperf_define \\name
    .hidden \\name
    .type   \\name, @function
\\name:
    .cfi_startproc
    mov     qword ptr [rsp - 16], rcx
    mov     ecx, dword ptr [rip + teeperf_gate + {late}]
    cmp     ecx, {off}
    jbe     7f
    lea     r11d, [rcx + 2 * r11 + \\kind]
    jmp     qword ptr [rip + teeperf_module + {record}]

7:  mov     rcx, qword ptr [rsp - 16]
    .irp    register, rax, rcx, rdx, rsi, rdi, r8, r9, r10
    push    \\register
    .cfi_adjust_cfa_offset 8
    .endr
    mov     rdi, r11
    mov     rsi, qword ptr [rsp + {kept}]
    call    \\hook
    .irp    register, r10, r9, r8, rdi, rsi, rdx, rcx, rax
    pop     \\register
    .cfi_adjust_cfa_offset -8
    .endr
    ret
    .cfi_endproc
    .size   \\name, . - \\name
    .endm

    .section teeperf_code, \"ax\", @progbits
    teeperf_late teeperf_late_enter, 0, teeperf_late_hook_enter
    teeperf_late teeperf_late_exit, 1, teeperf_late_hook_exit

    .p2align 4
    teeperf_define teeperf_late_event
    .hidden teeperf_late_event
    .type   teeperf_late_event, @function
teeperf_late_event:
    .cfi_startproc
    push    rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    mov     rbp, rsp
    .cfi_def_cfa_register rbp
    sub     rsp, 256
    and     rsp, -16
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps  xmmword ptr [rsp + 16 * \\n], xmm\\n
    .endr
    call    qword ptr [rip + teeperf_rt_event@GOTPCREL]
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps  xmm\\n, xmmword ptr [rsp + 16 * \\n]
    .endr
    leave
    .cfi_def_cfa rsp, 8
    .cfi_restore rbp
    ret
    .cfi_endproc
    .size   teeperf_late_event, . - teeperf_late_event
    .purgem teeperf_late
    .purgem teeperf_define
    .text
    ",
    kept = const KEPT,
    late = const gate::LATE,
    off = const gate::LATE_OFF,
    record = const module::RECORD,
);

/// Bytes on the stack of the function's return address to that of the hook: eight registers, and
/// where the tail goes on.
pub(super) const KEPT: usize = 9 * 8;

// One comparison tells both from a word.
const _: () = assert!(gate::LATE_OUT == 0 && gate::LATE_OFF == 1);
