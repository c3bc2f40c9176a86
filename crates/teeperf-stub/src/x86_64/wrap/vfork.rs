//! `vfork`: the child runs on its parent's stack, and in its parent's chunk, until it executes
//! another program or ends. The system call is made here, because a function that returns into
//! a frame which the child has then written over must keep its return address in a register. An
//! error is left to the C library: it is asked again, for its `errno`.

use core::arch::global_asm;
use teeperf_wire::{hook::module, word::code};

wrapper!(
    "vfork",
    ["
    .hidden teeperf_module
    .weak   teeperf_rt_leap
    .cfi_startproc
    cmp     qword ptr [rip + teeperf_module + {mode}], 0
    je      2f
    sub     rsp, 8
    .cfi_adjust_cfa_offset 8
    mov     edi, {begin}
    xor     esi, esi
    lea     rcx, [rip + teeperf_module]
    call    qword ptr [rip + teeperf_rt_leap@GOTPCREL]
    add     rsp, 8
    .cfi_adjust_cfa_offset -8

    pop     rdi
    .cfi_adjust_cfa_offset -8
    .cfi_register rip, rdi
    mov     eax, 58
    syscall
    push    rdi
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rip, 0
    test    rax, rax
    jz      1f
    push    rax
    .cfi_adjust_cfa_offset 8
    mov     edi, {end}
    xor     esi, esi
    lea     rcx, [rip + teeperf_module]
    call    qword ptr [rip + teeperf_rt_leap@GOTPCREL]
    pop     rax
    .cfi_adjust_cfa_offset -8
    test    rax, rax
    js      2f
1:  ret
2:  jmp     __real_vfork@PLT
    .cfi_endproc"],
    mode = const module::MODE,
    begin = const code::VFORK_BEGIN,
    end = const code::VFORK_END,
);
