//! What late hooks call: [`teeperf_wire::hook`]. The function's address is in r11, and its return
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
    push    rax
    .cfi_adjust_cfa_offset 8
    push    rcx
    .cfi_adjust_cfa_offset 8
    push    rdx
    .cfi_adjust_cfa_offset 8
    push    rsi
    .cfi_adjust_cfa_offset 8
    push    rdi
    .cfi_adjust_cfa_offset 8
    push    r8
    .cfi_adjust_cfa_offset 8
    push    r9
    .cfi_adjust_cfa_offset 8
    push    r10
    .cfi_adjust_cfa_offset 8
    mov     rdi, r11
    mov     rsi, qword ptr [rsp + {kept}]
    call    \\hook
    pop     r10
    .cfi_adjust_cfa_offset -8
    pop     r9
    .cfi_adjust_cfa_offset -8
    pop     r8
    .cfi_adjust_cfa_offset -8
    pop     rdi
    .cfi_adjust_cfa_offset -8
    pop     rsi
    .cfi_adjust_cfa_offset -8
    pop     rdx
    .cfi_adjust_cfa_offset -8
    pop     rcx
    .cfi_adjust_cfa_offset -8
    pop     rax
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size   \\name, . - \\name
    .endm

    .section .text.teeperf_hooks, \"ax\", @progbits
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
    movaps  xmmword ptr [rsp], xmm0
    movaps  xmmword ptr [rsp + 16], xmm1
    movaps  xmmword ptr [rsp + 32], xmm2
    movaps  xmmword ptr [rsp + 48], xmm3
    movaps  xmmword ptr [rsp + 64], xmm4
    movaps  xmmword ptr [rsp + 80], xmm5
    movaps  xmmword ptr [rsp + 96], xmm6
    movaps  xmmword ptr [rsp + 112], xmm7
    movaps  xmmword ptr [rsp + 128], xmm8
    movaps  xmmword ptr [rsp + 144], xmm9
    movaps  xmmword ptr [rsp + 160], xmm10
    movaps  xmmword ptr [rsp + 176], xmm11
    movaps  xmmword ptr [rsp + 192], xmm12
    movaps  xmmword ptr [rsp + 208], xmm13
    movaps  xmmword ptr [rsp + 224], xmm14
    movaps  xmmword ptr [rsp + 240], xmm15
    call    qword ptr [rip + teeperf_rt_event@GOTPCREL]
    movaps  xmm0, xmmword ptr [rsp]
    movaps  xmm1, xmmword ptr [rsp + 16]
    movaps  xmm2, xmmword ptr [rsp + 32]
    movaps  xmm3, xmmword ptr [rsp + 48]
    movaps  xmm4, xmmword ptr [rsp + 64]
    movaps  xmm5, xmmword ptr [rsp + 80]
    movaps  xmm6, xmmword ptr [rsp + 96]
    movaps  xmm7, xmmword ptr [rsp + 112]
    movaps  xmm8, xmmword ptr [rsp + 128]
    movaps  xmm9, xmmword ptr [rsp + 144]
    movaps  xmm10, xmmword ptr [rsp + 160]
    movaps  xmm11, xmmword ptr [rsp + 176]
    movaps  xmm12, xmmword ptr [rsp + 192]
    movaps  xmm13, xmmword ptr [rsp + 208]
    movaps  xmm14, xmmword ptr [rsp + 224]
    movaps  xmm15, xmmword ptr [rsp + 240]
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
