//! `dlmopen`: a library in a namespace of its own finds no runtime there. The runtime of the caller is told
//! what was loaded.

use core::arch::global_asm;

global_asm!(
    "
    .section .text.teeperf_wrap, \"ax\", @progbits
    .p2align 4
    .globl  __wrap_dlmopen
    .protected __wrap_dlmopen
    .type   __wrap_dlmopen, @function
    .weak   teeperf_rt_namespace
__wrap_dlmopen:
    .cfi_startproc
    cmp     qword ptr [rip + teeperf_rt_namespace@GOTPCREL], 0
    je      1f
    push    rdi
    .cfi_adjust_cfa_offset 8
    call    __real_dlmopen@PLT
    mov     rdi, rax
    pop     rsi
    .cfi_adjust_cfa_offset -8
    push    rax
    .cfi_adjust_cfa_offset 8
    call    qword ptr [rip + teeperf_rt_namespace@GOTPCREL]
    pop     rax
    .cfi_adjust_cfa_offset -8
    ret
1:  jmp     __real_dlmopen@PLT
    .cfi_endproc
    .size   __wrap_dlmopen, . - __wrap_dlmopen
    .text
    "
);
