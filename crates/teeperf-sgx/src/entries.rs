//! Where hosts and the runtime come in. Each entry says that it was entered, calls what it stands for, with the same arguments, and
//! says that this came back. Meanwhile nothing of ours is on the stack but the entry's frame, which debuggers and exceptions
//! pass by its call frame information; who leaves by `longjmp`, or ends the thread, passes it as well.

use crate::crossings::{ecall_enters, ecall_leaves, ocall_enters, ocall_leaves};
use crate::tables::ENTRIES;
use std::arch::{global_asm, naked_asm};

/// Entry of an ECALL: (enclave, number, table, argument), with what kind of ECALL it is.
macro_rules! ecall {
    ($is_switchless:literal) => {
        naked_asm!(
            ".cfi_startproc",
            "push rbp",
            ".cfi_def_cfa_offset 16",
            ".cfi_offset rbp, -16",
            "mov rbp, rsp",
            ".cfi_def_cfa_register rbp",
            "push rbx",
            ".cfi_offset rbx, -24",
            "push r12",
            ".cfi_offset r12, -32",
            "push r13",
            "push r14",
            ".cfi_offset r14, -48",
            "mov rbx, rdi",
            "mov r12d, esi",
            "mov r14, rcx",
            // Frame, number, table as it is, where it returns to.
            "mov rdi, rbp",
            "mov rcx, [rbp + 8]",
            concat!("mov r8d, ", $is_switchless),
            "call {enters}",
            // What to call, and with which table.
            "mov rdi, rbx",
            "mov esi, r12d",
            "mov rcx, r14",
            "call rax",
            "mov rbx, rax",
            "mov rdi, rbp",
            "call {leaves}",
            "mov rax, rbx",
            "pop r14",
            "pop r13",
            "pop r12",
            "pop rbx",
            "pop rbp",
            ".cfi_def_cfa rsp, 8",
            "ret",
            ".cfi_endproc",
            enters = sym ecall_enters,
            leaves = sym ecall_leaves,
        )
    };
}

/// `sgx_status_t sgx_ecall(const sgx_enclave_id_t eid, const int index, const void *ocall_table, void *ms)` (sgx_edger8r.h).
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn sgx_ecall() {
    ecall!("0")
}

/// `sgx_ecall_switchless`, likewise: a thread that is inside already does it, where one is free.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn sgx_ecall_switchless() {
    ecall!("1")
}

global_asm!(
    r#"
    .section .text.teeperf_ocalls, "ax", %progbits
    .globl  teeperf_ocalls
    .hidden teeperf_ocalls
    .type   teeperf_ocalls, %function
    .cfi_startproc
    .balign 16
teeperf_ocalls:
    .set    teeperf_ocall, 0
    .rept   {entries}
    .balign 16
    mov     eax, teeperf_ocall
    jmp     2f
    .set    teeperf_ocall, teeperf_ocall + 1
    .endr
    .balign 16
2:  push    rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    mov     rbp, rsp
    .cfi_def_cfa_register rbp
    push    rbx
    .cfi_offset rbx, -24
    push    rcx
    mov     rbx, rdi
    mov     edi, eax
    mov     rsi, rbp
    call    {enters}
    mov     rdi, rbx
    call    rax
    mov     rbx, rax
    mov     rdi, rbp
    call    {leaves}
    mov     rax, rbx
    pop     rcx
    pop     rbx
    pop     rbp
    .cfi_def_cfa rsp, 8
    ret
    .cfi_endproc
    .size   teeperf_ocalls, . - teeperf_ocalls
    .text
    "#,
    entries = const ENTRIES,
    enters = sym ocall_enters,
    leaves = sym ocall_leaves,
);

unsafe extern "C" {
    static teeperf_ocalls: u8;
}

/// Bytes of an entry.
const ENTRY: usize = 16;

/// The entry of this number, for an OCALL: a function of its argument.
pub(crate) fn of_ocall(number: usize) -> usize {
    &raw const teeperf_ocalls as usize + number * ENTRY
}
