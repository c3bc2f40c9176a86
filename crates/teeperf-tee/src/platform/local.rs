//! Where a thread's own data lie: ELF thread-local storage in the local-exec model, which an executable
//! and what is linked into it have (Ulrich Drepper, "ELF Handling For Thread-Local Storage", 4.3, and the
//! psABI of each processor). Rust has no stable word for that without a library, so it is a few
//! instructions.

use super::threads::Local;
use core::arch::{asm, global_asm};

// All zero: `.tbss` has no contents.
global_asm!(
    ".pushsection .tbss.teeperf_tee_local,\"awT\",%nobits",
    ".balign {alignment}",
    ".globl teeperf_tee_local",
    ".hidden teeperf_tee_local",
    ".type teeperf_tee_local, %tls_object",
    ".size teeperf_tee_local, {size}",
    "teeperf_tee_local:",
    ".zero {size}",
    ".popsection",
    alignment = const core::mem::align_of::<Local>(),
    size = const core::mem::size_of::<Local>(),
);

/// The calling thread's.
#[inline(always)]
pub(super) fn local() -> &'static Local {
    // SAFETY: its storage has this size and alignment and lives as long as the thread, which alone uses
    // what is returned. All zero is a new one: numbers and null pointers.
    unsafe { &*address() }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn address() -> *const Local {
    let address;
    // SAFETY: reads the thread pointer from where the psABI has it.
    unsafe {
        asm!(
            "mov {address}, qword ptr fs:[0]",
            "lea {address}, [{address} + teeperf_tee_local@TPOFF]",
            address = out(reg) address,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    address
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn address() -> *const Local {
    let address;
    // SAFETY: reads the thread pointer.
    unsafe {
        asm!(
            "mrs {address}, tpidr_el0",
            "add {address}, {address}, #:tprel_hi12:teeperf_tee_local, lsl #12",
            "add {address}, {address}, #:tprel_lo12_nc:teeperf_tee_local",
            address = out(reg) address,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    address
}

#[cfg(target_arch = "arm")]
#[inline(always)]
fn address() -> *const Local {
    let address;
    // SAFETY: reads the thread pointer, and how far from it the storage lies, beside the code.
    unsafe {
        asm!(
            "ldr {offset}, 2f",
            "mrc p15, 0, {address}, c13, c0, 3",
            "b 3f",
            ".balign 4",
            "2: .word teeperf_tee_local(TPOFF)",
            "3: add {address}, {address}, {offset}",
            offset = out(reg) _,
            address = out(reg) address,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    address
}

#[cfg(target_arch = "riscv64")]
#[inline(always)]
fn address() -> *const Local {
    let address;
    // SAFETY: reads the thread pointer.
    unsafe {
        asm!(
            "lui {address}, %tprel_hi(teeperf_tee_local)",
            "add {address}, {address}, tp, %tprel_add(teeperf_tee_local)",
            "addi {address}, {address}, %tprel_lo(teeperf_tee_local)",
            address = out(reg) address,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    address
}
