//! 32-bit Arm from Armv7 on, called from Arm and Thumb code. A function pushes its return address and calls
//! `__gnu_mcount_nc`, which takes that off the stack again, puts it back into `lr`, and keeps all else: `ip` as
//! well, which has the static chain.

use teeperf_tally::arcs::{SPREAD, layout};

// The thread's table, in `r0`; a constant of it lies behind the function. May change `r3`.
#[cfg(feature = "threads")]
macro_rules! arcs_here {
    () => {
        "
    .macro  teeperf_arcs_here
    ldr     r3, 9f
8:  ldr     r3, [pc, r3]
    mrc     p15, 0, r0, c13, c0, 3
    add     r0, r0, r3
    .endm
    .macro  teeperf_arcs_place
9:  .word   teeperf_arcs(GOTTPOFF) + (. - 8b - 8)
    .endm
        "
    };
}
#[cfg(not(feature = "threads"))]
macro_rules! arcs_here {
    () => {
        "
    .macro  teeperf_arcs_here
    ldr     r0, 9f
8:  add     r0, pc, r0
    .endm
    .macro  teeperf_arcs_place
9:  .word   teeperf_arcs - (8b + 8)
    .endm
        "
    };
}

// Leads away where the table's clock may be gone. May change `r4` and `r5`.
#[cfg(feature = "threads")]
macro_rules! clock_or {
    () => {
        "
    .macro  teeperf_clock_or where
    ldr     r4, 7f
6:  ldr     r4, [pc, r4]
    ldr     r5, [r0, #{epoch}]
    cmp     r4, r5
    bne     \\where
    .endm
        "
    };
}

// A constant of that, behind the function.
#[cfg(feature = "threads")]
macro_rules! clock_place {
    () => {
        "
    .macro  teeperf_clock_place
7:  .word   teeperf_tee_epoch - (6b + 8)
    .endm
        "
    };
}
#[cfg(not(feature = "threads"))]
macro_rules! clock_place {
    () => {
        "
    .macro  teeperf_clock_place
    .endm
        "
    };
}

// Where floating-point numbers are passed in registers of their own.
#[cfg(target_abi = "eabihf")]
macro_rules! floats {
    () => {
        "
    .macro  teeperf_floats what
    \\what  {{d0-d7}}
    .endm
        "
    };
}
#[cfg(not(target_abi = "eabihf"))]
macro_rules! floats {
    () => {
        "
    .macro  teeperf_floats what
    .endm
        "
    };
}

entries!(
    [arcs_here!(), clock_or!(), clock_place!(), floats!()],
    "
    // As the runtime: it goes into images that pass floating-point numbers in either manner.
    .eabi_attribute 28, 3
    .section .text.teeperf_mcount, \"ax\", %progbits
    .syntax unified
    .arm
    .p2align 2
    .globl  __gnu_mcount_nc
    .hidden __gnu_mcount_nc
    .type   __gnu_mcount_nc, %function
__gnu_mcount_nc:
    push    {{r0-r6}}
    ldr     r1, [sp, #28]
    // From here on it is where to go on, which is taken off last.
    str     lr, [sp, #28]
    // The lowest bit says which of the two kinds of code it is.
    bic     r6, r1, #1
    bic     r2, lr, #1
    teeperf_arcs_here
    add     r3, r6, r2, lsl #2
    movw    r4, #{spread_low}
    movt    r4, #{spread_high}
    mul     r3, r3, r4
    ldr     r4, [r0, #{places}]
    umull   r5, r3, r3, r4
    ldr     r4, [r0, #{first}]
    add     r3, r4, r3, lsl #4
    ldr     r5, [r0, #{end}]
2:  cmp     r3, r5
    bhs     5f
    ldr     r4, [r3, #{from}]
    cmp     r4, r6
    bne     4f
    ldr     r4, [r3, #{to}]
    cmp     r4, r2
    bne     4f
    teeperf_clock_or 5f
    ldr     r4, [r0, #{watched}]
    ldr     r4, [r4]
    ldr     r5, [r0, #{last}]
    cmp     r4, r5
    bne     5f
    str     r3, [r0, #{latest}]
    ldr     r4, [r3, #{count}]
    ldr     r5, [r3, #{count} + 4]
    adds    r4, r4, #1
    adc     r5, r5, #0
    str     r4, [r3, #{count}]
    str     r5, [r3, #{count} + 4]
3:  mov     lr, r1
    pop     {{r0-r6, pc}}
4:  ldr     r4, [r3, #{to}]
    cmp     r4, #0
    beq     5f
    add     r3, r3, #{place}
    b       2b
5:  push    {{r1, ip}}
    teeperf_floats vpush
    mov     r4, sp
    bic     sp, sp, #7
    mov     r1, r6
    bl      teeperf_tee_arc
    mov     sp, r4
    teeperf_floats vpop
    pop     {{r1, ip}}
    b       3b
    teeperf_arcs_place
    teeperf_clock_place
    .size   __gnu_mcount_nc, . - __gnu_mcount_nc
    .text
    ",
    spread_low = const SPREAD & 0xFFFF,
    spread_high = const SPREAD >> 16,
);

const _: () = assert!(layout::PLACE == 16);
