//! What compilers call at each entry with `-pg`, as the library has it: an object of its own, so that only images
//! with such calls take it. Finds an arc that is known in the thread's table, and counts it, with a few
//! registers and no call; all else goes to `teeperf_tee_arc`.
//!
//! Keeps every register in which an argument may be, those of floating-point numbers and vectors up to 128 bits
//! too, and that of the static chain. Never touches lent memory but for the clock's word.
//!
//! With the feature `threads` each thread has a table, in ELF thread-local storage, whose clock may be gone when
//! another thread has detached: that is seen by a number that changes with it. Else there is one table.
#![no_std]

/// Where the table lies.
#[cfg(feature = "threads")]
macro_rules! section {
    () => {
        "
    .hidden teeperf_tee_epoch
    .section .tbss.teeperf_arcs, \"awT\", %nobits
        "
    };
}
#[cfg(not(feature = "threads"))]
macro_rules! section {
    () => {
        ".section .bss.teeperf_arcs, \"aw\", %nobits"
    };
}

/// One thread's clock is not gone behind its back. Those for several are the processors' own.
#[cfg(not(feature = "threads"))]
macro_rules! clock_or {
    () => {
        "
    .macro  teeperf_clock_or where
    .endm
        "
    };
}

/// The table, and assembly that finds a call's place in it and counts it there. It is one piece, since compilers may
/// change the order of several.
macro_rules! entries {
    ([$($macros:expr),*], $text:literal, $($name:ident = const $value:expr),* $(,)?) => {
        core::arch::global_asm!(
            section!(),
            "
    .p2align 3
    .type   teeperf_arcs, %object
    // All zero: without memory. At {epoch} is what its clock is known by.
teeperf_arcs:
    .zero   {size}
    .size   teeperf_arcs, {size}
    .text
            ",
            $($macros,)*
            $text,
            $($name = const $value,)*
            size = const layout::SIZE,
            epoch = const layout::EPOCH,
            places = const layout::PLACES,
            first = const layout::FIRST,
            end = const layout::END,
            from = const layout::FROM,
            to = const layout::TO,
            watched = const layout::WATCHED,
            last = const layout::LAST,
            latest = const layout::LATEST,
            count = const layout::COUNT,
            place = const layout::PLACE,
        );
    };
}

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "arm")]
mod arm;
#[cfg(target_arch = "riscv64")]
mod riscv64;
#[cfg(target_arch = "x86_64")]
mod x86_64;
