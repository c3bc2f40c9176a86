//! What puts a filter of system calls into force: `prctl`, `syscall`, and libseccomp's `seccomp_load`. The
//! runtime is told before, with what the filter is made of, as long as it may look at that. `syscall` and
//! `prctl` take any number of arguments, so all registers come to the function as they were.

use core::arch::global_asm;

/// `look` jumps to 1 where no filter is meant, and leaves the mode in edi and the program in rsi.
macro_rules! restrict {
    ($feature:literal, $look:literal) => {
        #[cfg(feature = $feature)]
        wrapper!(
            $feature,
            [
                "
    .weak   teeperf_rt_restrict
    .cfi_startproc
    cmp     qword ptr [rip + teeperf_rt_restrict@GOTPCREL], 0
    je      2f
    push    rdi
    .cfi_adjust_cfa_offset 8
    push    rsi
    .cfi_adjust_cfa_offset 8
    push    rdx
    .cfi_adjust_cfa_offset 8
    push    rcx
    .cfi_adjust_cfa_offset 8
    push    r8
    .cfi_adjust_cfa_offset 8
    push    r9
    .cfi_adjust_cfa_offset 8
    push    rax
    .cfi_adjust_cfa_offset 8
",
                $look,
                "
    call    qword ptr [rip + teeperf_rt_restrict@GOTPCREL]
1:  pop     rax
    .cfi_adjust_cfa_offset -8
    pop     r9
    .cfi_adjust_cfa_offset -8
    pop     r8
    .cfi_adjust_cfa_offset -8
    pop     rcx
    .cfi_adjust_cfa_offset -8
    pop     rdx
    .cfi_adjust_cfa_offset -8
    pop     rsi
    .cfi_adjust_cfa_offset -8
    pop     rdi
    .cfi_adjust_cfa_offset -8
2:  jmp     __real_",
                $feature,
                "@PLT
    .cfi_endproc"
            ]
        );
    };
}

// prctl(PR_SET_SECCOMP, mode, program).
restrict!(
    "prctl",
    "
    cmp     edi, 22
    jne     1f
    mov     edi, esi
    mov     rsi, rdx"
);

// syscall(SYS_seccomp, mode - 1, flags, program), and prctl by its number.
restrict!(
    "syscall",
    "
    cmp     edi, 317
    je      3f
    cmp     edi, 157
    jne     1f
    cmp     esi, 22
    jne     1f
    mov     edi, edx
    mov     rsi, rcx
    jmp     4f
3:  cmp     esi, 1
    ja      1f
    lea     edi, [rsi + 1]
    mov     rsi, rcx
4:"
);

// What is in the filter is the library's.
restrict!(
    "seccomp_load",
    "
    mov     edi, 3
    xor     esi, esi"
);
