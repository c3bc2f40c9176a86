//! `dlmopen`: a library in a namespace of its own finds no runtime there. The runtime of the caller is told
//! what was loaded.

use core::arch::global_asm;

wrapper!(
    "dlmopen",
    ["
    .weak   teeperf_rt_namespace
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
    .cfi_endproc"]
);
