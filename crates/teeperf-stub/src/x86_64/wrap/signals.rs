//! Wrappers of functions that concern the signals by which the runtime interrupts threads (SIGURG,
//! or SIGWINCH). They tell the runtime of a handler of the program's own. A thread that blocks all
//! signals gets the one that is used all the same.

use core::arch::global_asm;

/// The runtime answers in eax: 0, it is the C library's business.
macro_rules! handled {
    ($feature:literal, $runtime:literal, $result:literal) => {
        #[cfg(feature = $feature)]
        wrapper!(
            $feature,
            [
                "
    .weak   ",
                $runtime,
                "
    .cfi_startproc
    cmp     edi, 23
    je      3f
    cmp     edi, 28
    jne     1f
3:  cmp     qword ptr [rip + ",
                $runtime,
                "@GOTPCREL], 0
    je      1f
    push    rdi
    .cfi_adjust_cfa_offset 8
    push    rsi
    .cfi_adjust_cfa_offset 8
    push    rdx
    .cfi_adjust_cfa_offset 8
    mov     eax, edi
    mov     rdi, rsi
    mov     rsi, rdx
    mov     edx, eax
    call    qword ptr [rip + ",
                $runtime,
                "@GOTPCREL]
    pop     rcx
    .cfi_adjust_cfa_offset -8
    pop     rsi
    .cfi_adjust_cfa_offset -8
    pop     rdi
    .cfi_adjust_cfa_offset -8
    test    eax, eax
    jnz     2f
    mov     rdx, rcx
1:  jmp     __real_",
                $feature,
                "@PLT
2:  mov     rax, ",
                $result,
                "
    ret
    .cfi_endproc"
            ]
        );
    };
}

/// Behind the function itself.
macro_rules! followed {
    ($feature:literal) => {
        #[cfg(feature = $feature)]
        wrapper!(
            $feature,
            [
                "
    .weak   teeperf_rt_unblock
    .cfi_startproc
    cmp     qword ptr [rip + teeperf_rt_unblock@GOTPCREL], 0
    je      1f
    sub     rsp, 8
    .cfi_adjust_cfa_offset 8
    call    __real_",
                $feature,
                "@PLT
    mov     dword ptr [rsp], eax
    call    qword ptr [rip + teeperf_rt_unblock@GOTPCREL]
    mov     eax, dword ptr [rsp]
    add     rsp, 8
    .cfi_adjust_cfa_offset -8
    ret
1:  jmp     __real_",
                $feature,
                "@PLT
    .cfi_endproc"
            ]
        );
    };
}

handled!("sigaction", "teeperf_rt_sigaction", "0");
// Its second argument is the handler, and it gives the one before, which the runtime leaves in rdx.
handled!("signal", "teeperf_rt_signal", "rdx");
// The same where a program asks for no more than its language's standard.
handled!("__sysv_signal", "teeperf_rt_signal", "rdx");
followed!("sigprocmask");
followed!("pthread_sigmask");
