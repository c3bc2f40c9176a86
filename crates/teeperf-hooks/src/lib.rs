//! Hooks for Rust code that has no system of its own: trusted applications, enclaves, bare-metal images.
//! The compiler has none of its own to give (but `-Z instrument-mcount`, which counts calls), so each
//! function that is to be recorded says so:
//!
//! ```
//! fn checksum(bytes: &[u8]) -> u32 {
//!     teeperf_hooks::scope!(checksum);
//!     bytes.iter().map(|&byte| u32::from(byte)).sum()
//! }
//! # assert_eq!(checksum(b"ab"), 195);
//! ```
//!
//! With the feature `hooks` it is recorded from there to its end, whichever way it ends, by the
//! `libteeperf_tee.a` that the image is linked with; without, the line is nothing. `teeperf_tee.h`, which lies beside
//! that library, says how memory is lent to it. No allocation, nothing of the standard library.
#![cfg_attr(not(test), no_std)]
#![warn(missing_docs, clippy::undocumented_unsafe_blocks)]

#[cfg(any(feature = "hooks", test))]
mod hooks;
#[cfg(any(feature = "hooks", test))]
pub use hooks::Scope;

/// Records the function that it stands in, until the block ends that it stands in.
///
/// `scope!(f)` is recorded as a call of `f`, which is any path to a function: `Self::f`, `f::<T>`. It may be inlined.
/// `scope!()` is recorded as whatever function the code ends up in: for closures, and functions that
/// are `#[inline(never)]`.
#[cfg(any(feature = "hooks", test))]
#[macro_export]
macro_rules! scope {
    () => {
        let _scope = $crate::Scope::here();
    };
    ($function:expr) => {
        let _scope = $crate::Scope::of($function as *const ());
    };
}

/// Nothing: the feature `hooks` is not asked for.
#[cfg(not(any(feature = "hooks", test)))]
#[macro_export]
macro_rules! scope {
    () => {};
    ($function:expr) => {
        let _ = $function as *const ();
    };
}
