//! 64-bit RISC-V. Compilers call `_mcount` as any function, with the return address as its argument. All registers
//! in which an argument may be are kept nevertheless, and `t2`, the static chain.

use teeperf_tally::arcs::{SPREAD, layout};

// The thread's table, in `t0`.
#[cfg(feature = "threads")]
macro_rules! arcs_here {
    () => {
        "
    .macro  teeperf_arcs_here
    la.tls.ie t0, teeperf_arcs
    add     t0, t0, tp
    .endm
        "
    };
}
#[cfg(not(feature = "threads"))]
macro_rules! arcs_here {
    () => {
        "
    .macro  teeperf_arcs_here
    lla     t0, teeperf_arcs
    .endm
        "
    };
}

// Leads away where the table's clock may be gone. May change `t4` and `t5`.
#[cfg(feature = "threads")]
macro_rules! clock_or {
    () => {
        "
    .macro  teeperf_clock_or where
    lla     t4, teeperf_tee_epoch
    lw      t4, 0(t4)
    lw      t5, {epoch}(t0)
    bne     t4, t5, \\where
    .endm
        "
    };
}

// What a call may change of the registers for floating-point numbers, where there are any.
#[cfg(target_feature = "d")]
macro_rules! floats {
    () => {
        "
    .macro  teeperf_floats what
    \\what  fa0, 96(sp)
    \\what  fa1, 104(sp)
    \\what  fa2, 112(sp)
    \\what  fa3, 120(sp)
    \\what  fa4, 128(sp)
    \\what  fa5, 136(sp)
    \\what  fa6, 144(sp)
    \\what  fa7, 152(sp)
    .endm
        "
    };
}
#[cfg(not(target_feature = "d"))]
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
    .section .text.teeperf_mcount, \"ax\", @progbits
    .p2align 2
    .globl  _mcount
    .hidden _mcount
    .type   _mcount, @function
_mcount:
    teeperf_arcs_here
    slli    t1, ra, 2
    add     t1, t1, a0
    li      t3, {spread}
    mul     t1, t1, t3
    slli    t1, t1, 32
    srli    t1, t1, 32
    ld      t3, {places}(t0)
    mul     t1, t1, t3
    srli    t1, t1, 32
    slli    t3, t1, 1
    add     t1, t1, t3
    slli    t1, t1, 3
    ld      t3, {first}(t0)
    add     t1, t1, t3
    ld      t3, {end}(t0)
2:  bgeu    t1, t3, 4f
    ld      t4, {from}(t1)
    ld      t5, {to}(t1)
    bne     t4, a0, 3f
    bne     t5, ra, 3f
    teeperf_clock_or 4f
    ld      t4, {watched}(t0)
    lw      t4, 0(t4)
    lw      t5, {last}(t0)
    bne     t4, t5, 4f
    sd      t1, {latest}(t0)
    ld      t4, {count}(t1)
    addi    t4, t4, 1
    sd      t4, {count}(t1)
    ret
3:  beqz    t5, 4f
    addi    t1, t1, {place}
    j       2b
4:  addi    sp, sp, -160
    sd      ra, 0(sp)
    sd      t2, 8(sp)
    sd      a0, 16(sp)
    sd      a1, 24(sp)
    sd      a2, 32(sp)
    sd      a3, 40(sp)
    sd      a4, 48(sp)
    sd      a5, 56(sp)
    sd      a6, 64(sp)
    sd      a7, 72(sp)
    teeperf_floats fsd
    mv      a1, a0
    mv      a2, ra
    mv      a0, t0
    call    teeperf_tee_arc
    teeperf_floats fld
    ld      a7, 72(sp)
    ld      a6, 64(sp)
    ld      a5, 56(sp)
    ld      a4, 48(sp)
    ld      a3, 40(sp)
    ld      a2, 32(sp)
    ld      a1, 24(sp)
    ld      a0, 16(sp)
    ld      t2, 8(sp)
    ld      ra, 0(sp)
    addi    sp, sp, 160
    ret
    .size   _mcount, . - _mcount
    .text
    ",
    spread = const SPREAD.cast_signed(),
);

const _: () = assert!(layout::PLACE == 24);
