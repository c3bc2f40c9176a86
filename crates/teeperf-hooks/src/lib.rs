//! placeholder
#![cfg_attr(not(test), no_std)]

#[cfg(any(
    test,
    feature = "hooks",
    all(feature = "on", target_os = "linux", target_arch = "x86_64")
))]
mod live;
#[cfg(any(
    test,
    feature = "hooks",
    all(feature = "on", target_os = "linux", target_arch = "x86_64")
))]
pub use live::{Polled, Scope, Site, Sites};

#[cfg(not(any(
    test,
    feature = "hooks",
    all(feature = "on", target_os = "linux", target_arch = "x86_64")
)))]
mod idle;

#[cfg(feature = "attributes")]
pub use teeperf_macros::{profile, profile_all};

// Its hooks, and what tells the runtime of them.
#[cfg(all(not(test), feature = "on", target_os = "linux", target_arch = "x86_64"))]
extern crate teeperf_stub as _;

/// What macros write in programs refers to this, whatever they have in scope.
#[doc(hidden)]
pub mod __private {
    pub use core;
}
