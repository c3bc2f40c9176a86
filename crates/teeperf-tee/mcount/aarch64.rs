//! 64-bit Arm. Compilers call `_mcount` as any function, with the return address as its argument; so they count on
//! nothing but the registers that every function keeps. All in which an argument may be are kept nevertheless.

use teeperf_tally::arcs::{SPREAD, layout};

// The thread's table, in `x9`.
#[cfg(feature = "threads")]
macro_rules! arcs_here {
    () => {
        "
    .macro  teeperf_arcs_here
    mrs     x9, tpidr_el0
    adrp    x10, :gottprel:teeperf_arcs
    ldr     x10, [x10, :gottprel_lo12:teeperf_arcs]
    add     x9, x9, x10
    .endm
        "
    };
}
#[cfg(not(feature = "threads"))]
macro_rules! arcs_here {
    () => {
        "
    .macro  teeperf_arcs_here
    adrp    x9, teeperf_arcs
    add     x9, x9, :lo12:teeperf_arcs
    .endm
        "
    };
}

// Leads away where the table's clock may be gone. May change `x11` and `x12`.
#[cfg(feature = "threads")]
macro_rules! clock_or {
    () => {
        "
    .macro  teeperf_clock_or where
    adrp    x11, teeperf_tee_epoch
    ldr     w11, [x11, :lo12:teeperf_tee_epoch]
    ldr     w12, [x9, #{epoch}]
    cmp     w11, w12
    b.ne    \\where
    .endm
        "
    };
}

// What a call may change of the registers for floating-point numbers and vectors, where there are any.
#[cfg(target_feature = "neon")]
macro_rules! floats {
    () => {
        "
    .macro  teeperf_floats what
    \\what  q0, q1, [sp, #96]
    \\what  q2, q3, [sp, #128]
    \\what  q4, q5, [sp, #160]
    \\what  q6, q7, [sp, #192]
    .endm
        "
    };
}
#[cfg(not(target_feature = "neon"))]
macro_rules! floats {
    () => {
        "
    .macro  teeperf_floats what
    .endm
        "
    };
}

entries!(
    [arcs_here!(), clock_or!(), floats!()],
    "
    .section .text.teeperf_mcount, \"ax\", %progbits
    .p2align 4
    .globl  _mcount
    .hidden _mcount
    .type   _mcount, %function
_mcount:
    // A place that may be jumped to (BTI c).
    hint    #34
    teeperf_arcs_here
    add     w10, w0, w30, lsl #2
    mov     w11, #{spread_low}
    movk    w11, #{spread_high}, lsl #16
    mul     w10, w10, w11
    ldr     x11, [x9, #{places}]
    ldr     x12, [x9, #{first}]
    ldr     x13, [x9, #{end}]
    mul     x10, x10, x11
    lsr     x10, x10, #32
    add     x10, x10, x10, lsl #1
    add     x10, x12, x10, lsl #3
2:  cmp     x10, x13
    b.hs    4f
    ldr     x11, [x10, #{from}]
    ldr     x12, [x10, #{to}]
    cmp     x11, x0
    ccmp    x12, x30, #0, eq
    b.ne    3f
    teeperf_clock_or 4f
    ldr     x11, [x9, #{watched}]
    ldr     w11, [x11]
    ldr     w12, [x9, #{last}]
    cmp     w11, w12
    b.ne    4f
    str     x10, [x9, #{latest}]
    ldr     x11, [x10, #{count}]
    add     x11, x11, #1
    str     x11, [x10, #{count}]
    ret
3:  cbz     x12, 4f
    add     x10, x10, #{place}
    b       2b
4:  stp     x29, x30, [sp, #-224]!
    mov     x29, sp
    stp     x0, x1, [sp, #16]
    stp     x2, x3, [sp, #32]
    stp     x4, x5, [sp, #48]
    stp     x6, x7, [sp, #64]
    stp     x8, x18, [sp, #80]
    teeperf_floats stp
    mov     x1, x0
    mov     x2, x30
    mov     x0, x9
    bl      teeperf_tee_arc
    teeperf_floats ldp
    ldp     x8, x18, [sp, #80]
    ldp     x6, x7, [sp, #64]
    ldp     x4, x5, [sp, #48]
    ldp     x2, x3, [sp, #32]
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp], #224
    ret
    .size   _mcount, . - _mcount
    .text
    ",
    spread_low = const SPREAD & 0xFFFF,
    spread_high = const SPREAD >> 16,
);

const _: () = assert!(layout::PLACE == 24);
