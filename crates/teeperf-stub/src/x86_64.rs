//! The stub on x86-64, System V calling convention, ELF.

/// Begins assembly that defines symbols with `teeperf_define`.
#[cfg(all(feature = "hooks", not(feature = "weak")))]
macro_rules! define {
    () => {
        ".macro teeperf_define name\n.globl \\name\n.endm"
    };
}
#[cfg(all(feature = "hooks", feature = "weak"))]
macro_rules! define {
    () => {
        ".macro teeperf_define name\n.weak \\name\n.endm"
    };
}
#[cfg(feature = "hooks")]
use define;

#[cfg(all(feature = "hooks", not(feature = "weak")))]
mod catch;
#[cfg(feature = "hooks")]
mod hooks;
#[cfg(feature = "hooks")]
mod late;
#[cfg(feature = "hooks")]
mod module;
#[cfg(feature = "hooks")]
mod waits;
mod wrap;
