//! Frames of what are no functions: commands of trusted applications by their numbers, and what the secure world
//! asks its supplicant for. Each is a place in this library with a symbol, so that readers name it as they name
//! functions. Nobody calls it.

use std::arch::global_asm;

global_asm!(
    r#"
    .macro  teeperf_label name:vararg
    .type   "\name", %function
    .size   "\name", 1
"\name":
    .byte   0
    .endm

    .section .text.teeperf_labels, "ax", %progbits
    .globl  teeperf_labels
    .hidden teeperf_labels
teeperf_labels:
    .byte   0
    teeperf_label another request
    teeperf_label request to load an application
    teeperf_label request to the RPMB
    teeperf_label request to the file system
    teeperf_label request for memory
    teeperf_label request to give memory back
    teeperf_label request to gprof
    teeperf_label request to a socket
    teeperf_label request to ftrace
    teeperf_label request to a plug-in
    teeperf_label another command
    .irp    c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
    teeperf_label command \c
    .endr
    .irp    b, 1, 2, 3, 4, 5, 6, 7, 8, 9
    .irp    c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
    teeperf_label command \b\c
    .endr
    .endr
    .irp    a, 1, 2, 3, 4, 5, 6, 7, 8, 9
    .irp    b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
    .irp    c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
    teeperf_label command \a\b\c
    .endr
    .endr
    .endr
    .text
    "#
);

unsafe extern "C" {
    static teeperf_labels: u8;
}

/// Requests of the secure world that have labels of their own, by number (OP-TEE's optee_rpc_cmd.h), in the order above.
const REQUESTS: [u32; 9] = [0, 1, 2, 6, 7, 9, 10, 11, 12];
/// Commands that have labels of their own.
const COMMANDS: usize = 1000;
/// The label of the other requests, before those; and behind those that of the other commands, before command 0.
const OTHER_REQUESTS: usize = 1;
const OTHER_COMMANDS: usize = OTHER_REQUESTS + REQUESTS.len() + 1;

fn at(place: usize) -> usize {
    &raw const teeperf_labels as usize + place
}

/// Of a command.
pub(crate) fn command(number: u32) -> usize {
    let number = number as usize;
    at(OTHER_COMMANDS + if number < COMMANDS { 1 + number } else { 0 })
}

/// Of a request.
pub(crate) fn request(number: u32) -> usize {
    let own = REQUESTS.iter().position(|&request| request == number);
    at(OTHER_REQUESTS + own.map_or(0, |own| 1 + own))
}
