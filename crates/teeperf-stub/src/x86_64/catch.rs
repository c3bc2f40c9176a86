//! Exceptions. gcc calls exit hooks while one passes, clang does not.
//!
//! `__gxx_personality_v0` (where clang links C++, see `link_flags.txt`): the unwinder asks it for each frame whether the
//! exception has a place to go to there, a catch or destructors that run on its way. Where it
//! has, the runtime is told of each frame that was left before.
//!
//! `__gcc_personality_v0` (where functions may have late hooks): likewise for functions that only
//! clean up.
//!
//! `rust_eh_personality` (where `teeperf cargo` links Rust): likewise for panics.
//!
//! `__cxa_begin_catch`: a catch tells whose frame is on top now, for what passed functions of C, or those
//! that clang compiled and another linked. The function is found by its unwind information.
//!
//! The real functions are referred to weakly, so that this can be in every module: C++ that catches
//! refers to `__cxa_end_catch` and to the personality as well, which bring them.

use core::arch::global_asm;
use teeperf_wire::hook::{module, unwinding};

global_asm!(
    "
    .section .text.teeperf_wrap, \"ax\", @progbits
    .p2align 4
    .globl  __wrap___cxa_begin_catch
    .protected __wrap___cxa_begin_catch
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

/// A wrapper of a language's personality: both are called, and have their answers, as the ABI says.
macro_rules! personality {
    ($name:literal) => {
        global_asm!(
            "    .section .text.teeperf_wrap, \"ax\", @progbits",
            "    .hidden teeperf_module",
            "    .weak   _Unwind_FindEnclosingFunction",
            "    .p2align 4",
            concat!("    .globl  __wrap_", $name, ""),
            concat!("    .protected __wrap_", $name, ""),
            concat!("    .type   __wrap_", $name, ", @function"),
            "    .weak   teeperf_rt_left",
            concat!("    .weak   __real_", $name, ""),
            "    .weak   _Unwind_Backtrace",
            "    .weak   _Unwind_GetCFA",
            "    .weak   _Unwind_GetIP",
            concat!("__wrap_", $name, ":"),
            "    .cfi_startproc",
            concat!("    cmp     qword ptr [rip + __real_", $name, "@GOTPCREL], 0"),
            "    je      5f",
            "    cmp     qword ptr [rip + teeperf_module + {mode}], 0",
            "    je      4f",
            "    push    rbx",
            "    .cfi_adjust_cfa_offset 8",
            "    .cfi_offset rbx, -16",
            "    push    r12",
            "    .cfi_adjust_cfa_offset 8",
            "    .cfi_offset r12, -24",
            "    sub     rsp, {size} + 16",
            "    .cfi_adjust_cfa_offset {size} + 16",
            "    mov     rbx, r8",
            "    mov     r12d, esi",
            concat!("    call    __real_", $name, "@PLT"),
            "    test    r12d, {cleanup_phase}",
            "    jz      3f",
            "    cmp     eax, {install_context}",
            "    jne     3f",
            "    mov     r12d, eax",
            "    mov     rdi, rbx",
            "    mov     rbx, qword ptr [rip + _Unwind_GetCFA@GOTPCREL]",
            "    mov     qword ptr [rsp + {get_cfa}], rbx",
            "    call    rbx",
            "    mov     qword ptr [rsp + {target}], rax",
            "    mov     rax, qword ptr [rip + _Unwind_GetIP@GOTPCREL]",
            "    mov     qword ptr [rsp + {get_ip}], rax",
            "    mov     rax, qword ptr [rip + _Unwind_FindEnclosingFunction@GOTPCREL]",
            "    mov     qword ptr [rsp + {find_function}], rax",
            "    lea     rax, [rip + teeperf_module]",
            "    mov     qword ptr [rsp + {block}], rax",
            "    mov     rdi, qword ptr [rip + teeperf_rt_left@GOTPCREL]",
            "    mov     rsi, rsp",
            "    call    qword ptr [rip + _Unwind_Backtrace@GOTPCREL]",
            "    mov     eax, r12d",
            "3:  add     rsp, {size} + 16",
            "    .cfi_adjust_cfa_offset -({size} + 16)",
            "    pop     r12",
            "    .cfi_adjust_cfa_offset -8",
            "    .cfi_restore r12",
            "    pop     rbx",
            "    .cfi_adjust_cfa_offset -8",
            "    .cfi_restore rbx",
            "    ret",
            concat!("4:  jmp     __real_", $name, "@PLT"),
            "5:  mov     eax, {continue_unwind}",
            "    ret",
            "    .cfi_endproc",
            concat!("    .size   __wrap_", $name, ", . - __wrap_", $name, ""),
            "    .text",
            mode = const module::MODE,
            size = const unwinding::SIZE,
            target = const unwinding::TARGET,
            get_cfa = const unwinding::GET_CFA,
            get_ip = const unwinding::GET_IP,
            find_function = const unwinding::FIND_FUNCTION,
            block = const unwinding::BLOCK,
            cleanup_phase = const CLEANUP_PHASE,
            install_context = const INSTALL_CONTEXT,
            continue_unwind = const CONTINUE_UNWIND,
        );
    };
}

personality!("__gxx_personality_v0");
personality!("__gcc_personality_v0");
personality!("rust_eh_personality");

// C++ ABI for Itanium: Exception Handling, 1.1 (`_Unwind_Reason_Code`) and 1.3 (`_Unwind_Action`).
const CLEANUP_PHASE: u32 = 2;
const INSTALL_CONTEXT: u32 = 7;
/// What one answers that is not there.
const CONTINUE_UNWIND: u32 = 8;

/// With the two registers that it keeps, and the return address.
const _: () = assert!((unwinding::SIZE + 16 + 3 * 8).is_multiple_of(16));
