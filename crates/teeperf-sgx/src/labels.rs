//! Frames of what are no functions: ECALLs and OCALLs by their numbers, and the names of what is counted in ECALLs. Each is
//! a place in this library with a symbol, so that readers name it as they name functions. Nobody calls it.

use std::arch::global_asm;

global_asm!(
    r#"
    .macro  teeperf_label name:vararg
    .type   "\name", %function
    .size   "\name", 1
"\name":
    .byte   0
    .endm

    .macro  teeperf_numbered first:vararg
    .irp    c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
    teeperf_label \first \c
    .endr
    .irp    b, 1, 2, 3, 4, 5, 6, 7, 8, 9
    .irp    c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
    teeperf_label \first \b\c
    .endr
    .endr
    .irp    b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
    .irp    c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
    teeperf_label \first 1\b\c
    .endr
    .endr
    .endm

    .section .text.teeperf_labels, "ax", %progbits
    .globl  teeperf_labels
    .hidden teeperf_labels
teeperf_labels:
    .byte   0
    teeperf_numbered ECALL
    teeperf_label another ECALL
    teeperf_numbered switchless ECALL
    teeperf_label another switchless ECALL
    teeperf_numbered OCALL
    teeperf_label another OCALL
    teeperf_numbered switchless OCALL
    teeperf_label another switchless OCALL
    teeperf_numbered page faults in ECALL
    teeperf_label page faults in another ECALL
    teeperf_numbered context switches in ECALL
    teeperf_label context switches in another ECALL
    .text
    "#
);

unsafe extern "C" {
    static teeperf_labels: u8;
}

/// What has labels, in the order above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Ecall,
    SwitchlessEcall,
    Ocall,
    SwitchlessOcall,
    PageFaults,
    Switches,
}

/// Numbers that have labels of their own; behind those is that of the others.
const NUMBERS: usize = 200;

/// The place of a label.
pub(crate) fn at(label: Label, number: usize) -> usize {
    let first = &raw const teeperf_labels as usize + 1;
    first + label as usize * (NUMBERS + 1) + number.min(NUMBERS)
}
