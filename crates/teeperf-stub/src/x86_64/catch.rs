//! `__cxa_begin_catch`: clang calls no exit hooks when an exception unwinds, so a catch tells
//! whose frame is on top now. The function is found by its unwind information.
//!
//! The real function is referred to weakly, so that this can be in every module: C++ that catches
//! refers to `__cxa_end_catch` as well, which brings both.

use core::arch::global_asm;
use teeperf_wire::hook::module;

global_asm!(
    "
    .section .text.teeperf_wrap, \"ax\", @progbits
    .p2align 4
    .globl  __wrap___cxa_begin_catch
    .hidden __wrap___cxa_begin_catch
    .type   __wrap___cxa_begin_catch, @function
    .hidden teeperf_module
    .weak   teeperf_rt_catch
    .weak   __real___cxa_begin_catch
    .weak   _Unwind_FindEnclosingFunction
__wrap___cxa_begin_catch:
    .cfi_startproc
    cmp     qword ptr [rip + teeperf_module + {mode}], 0
    je      2f
    mov     rax, qword ptr [rip + _Unwind_FindEnclosingFunction@GOTPCREL]
    test    rax, rax
    jz      2f
    push    rdi
    .cfi_adjust_cfa_offset 8
    mov     rdi, qword ptr [rsp + 8]
    dec     rdi
    call    rax
    test    rax, rax
    jz      1f
    mov     rdi, rax
    lea     rsi, [rip + teeperf_module]
    call    qword ptr [rip + teeperf_rt_catch@GOTPCREL]
1:  pop     rdi
    .cfi_adjust_cfa_offset -8
2:  jmp     __real___cxa_begin_catch@PLT
    .cfi_endproc
    .size   __wrap___cxa_begin_catch, . - __wrap___cxa_begin_catch
    .text
    ",
    mode = const module::MODE,
);
