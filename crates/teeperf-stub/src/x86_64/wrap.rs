//! Wrappers of the C library's ways out of a function that no hook sees (`-Wl,--wrap`). Each
//! tells the runtime, where the module's hooks are on, and then jumps to the function itself with
//! registers and stack as they came: what returns twice still returns to the caller.
//!
//! A wrapper is an object of its own: its reference to the real function is a strong one, which
//! a static link must see to find the function, and must not see when the program never
//! calls it. (`__cxa_begin_catch` needs none of that: see `catch`.)
//!
//! Wrappers are protected, not hidden: GNU ld takes a reference of a shared library's, where it has no version, for one
//! to the wrapper, and refuses that to a hidden one.

#![allow(unused_imports, unused_macros, reason = "each feature alone brings a use of them")]

use core::arch::global_asm;
/// The wrapper of a function: parts of its assembly, then operands.
macro_rules! wrapper {
    ($name:literal, [$($part:tt)*] $($operands:tt)*) => {
        global_asm!(
            concat!(
                "
    .section .text.teeperf_wrap, \"ax\", @progbits
    .p2align 4
    .globl  __wrap_", $name, "
    .protected __wrap_", $name, "
    .type   __wrap_", $name, ", @function
__wrap_", $name, ":", $($part)*, "
    .size   __wrap_", $name, ", . - __wrap_", $name, "
    .text"
            )
            $($operands)*
        );
    };
}

#[cfg(feature = "dlmopen")]
mod dlmopen;
#[cfg(feature = "makecontext")]
mod makecontext;
#[cfg(any(feature = "prctl", feature = "syscall", feature = "seccomp_load"))]
mod restrict;
#[cfg(any(
    feature = "sigaction",
    feature = "signal",
    feature = "__sysv_signal",
    feature = "sigprocmask",
    feature = "pthread_sigmask"
))]
mod signals;
#[cfg(feature = "vfork")]
mod vfork;

use teeperf_wire::{hook::module, word::code};

/// `what` and the first argument, which stands for a place to come back to, go to the runtime.
macro_rules! leap {
    ($feature:literal, $runtime:literal, $what:expr) => {
        #[cfg(feature = $feature)]
        wrapper!(
            $feature,
            ["
    .hidden teeperf_module
    .weak   ", $runtime, "
    .cfi_startproc
    cmp     qword ptr [rip + teeperf_module + {mode}], 0
    je      1f
    push    rdi
    .cfi_adjust_cfa_offset 8
    push    rsi
    .cfi_adjust_cfa_offset 8
    sub     rsp, 8
    .cfi_adjust_cfa_offset 8
    mov     rdx, rsi
    mov     rsi, rdi
    mov     edi, {what}
    lea     rcx, [rip + teeperf_module]
    call    qword ptr [rip + ", $runtime, "@GOTPCREL]
    add     rsp, 8
    .cfi_adjust_cfa_offset -8
    pop     rsi
    .cfi_adjust_cfa_offset -8
    pop     rdi
    .cfi_adjust_cfa_offset -8
1:  jmp     __real_", $feature, "@PLT
    .cfi_endproc"],
            mode = const module::MODE,
            what = const $what,
        );
    };
}

leap!("setjmp", "teeperf_rt_leap", code::MARK);
leap!("_setjmp", "teeperf_rt_leap", code::MARK);
leap!("__sigsetjmp", "teeperf_rt_leap", code::MARK);
leap!("longjmp", "teeperf_rt_leap", code::JUMP);
leap!("_longjmp", "teeperf_rt_leap", code::JUMP);
leap!("siglongjmp", "teeperf_rt_leap", code::JUMP);
leap!("__longjmp_chk", "teeperf_rt_leap", code::JUMP);
leap!("getcontext", "teeperf_rt_leap", code::MARK);
leap!("setcontext", "teeperf_rt_context", code::JUMP);
leap!("swapcontext", "teeperf_rt_context", code::SWITCH);
