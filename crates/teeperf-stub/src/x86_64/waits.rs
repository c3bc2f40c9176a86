//! What an async function tells of its waiting, in programs of Rust. Not on the fast path: once for each time that a future
//! has nothing to do.

use core::arch::global_asm;
use teeperf_wire::hook::module;

global_asm!(
    super::define!(),
    "
    .section .text.teeperf_waits, \"ax\", @progbits
    .weak   teeperf_rt_now
    .weak   teeperf_rt_wait

    teeperf_define teeperf_now
    .hidden teeperf_now
    .type   teeperf_now, @function
teeperf_now:
    .cfi_startproc
    cmp     qword ptr [rip + teeperf_module + {mode}], 0
    je      1f
    mov     rax, qword ptr [rip + teeperf_rt_now@GOTPCREL]
    test    rax, rax
    jz      1f
    jmp     rax
1:  xor     eax, eax
    ret
    .cfi_endproc
    .size   teeperf_now, . - teeperf_now

    teeperf_define teeperf_wait
    .hidden teeperf_wait
    .type   teeperf_wait, @function
teeperf_wait:
    .cfi_startproc
    cmp     qword ptr [rip + teeperf_module + {mode}], 0
    je      1f
    mov     rax, qword ptr [rip + teeperf_rt_wait@GOTPCREL]
    test    rax, rax
    jz      1f
    jmp     rax
1:  ret
    .cfi_endproc
    .size   teeperf_wait, . - teeperf_wait
    .purgem teeperf_define
    .text
    ",
    mode = const module::MODE,
);
