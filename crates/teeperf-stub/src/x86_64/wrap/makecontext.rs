//! `makecontext`: a stack begins, and the runtime wants to see its function return.
//!
//! The function takes any number of arguments, so the wrapper must not move the stack. It takes the
//! caller's place as return address, with what it needs to give that back in the new
//! context's copies of registers that a new function finds undefined anyway (r12, r13), and in rbx.
//! Offsets in `ucontext_t` are those of the C libraries for x86-64 Linux.

use core::arch::global_asm;
use teeperf_wire::hook::module;

wrapper!(
    "makecontext",
    ["
    .hidden teeperf_module
    .weak   teeperf_rt_context_made
    cmp     qword ptr [rip + teeperf_module + {mode}], 0
    je      1f
    mov     qword ptr [rdi + {r12}], rbx
    mov     rbx, rdi
    mov     r10, qword ptr [rsp]
    mov     qword ptr [rdi + {r13}], r10
    lea     r10, [rip + 2f]
    mov     qword ptr [rsp], r10
1:  jmp     __real_makecontext@PLT
2:  mov     rdi, rbx
    push    qword ptr [rbx + {r13}]
    mov     rbx, qword ptr [rbx + {r12}]
    sub     rsp, 8
    lea     rsi, [rip + teeperf_module]
    call    qword ptr [rip + teeperf_rt_context_made@GOTPCREL]
    add     rsp, 8
    ret"],
    mode = const module::MODE,
    r12 = const 72,
    r13 = const 80,
);
