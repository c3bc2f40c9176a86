//! The **stub**: what is linked into every hooked module (executable or shared library).
//!
//! It holds the two functions that the compiler calls at each entry and exit, the page that
//! switches them on ([`teeperf_wire::hook`]), the constructor and destructor that tell
//! the runtime of the module, and wrappers of the C library's ways out of a function that
//! no hook sees (`-Wl,--wrap`, see `link_flags.txt`). All of it is the module's own, so
//! each module has its own; the runtime is referred to weakly, so a module links and
//! runs where there is none. Nothing here needs Rust's run-time support, thread-local
//! storage of its own, or a C library.
//!
//! Each feature is one object: `hooks` is always linked; the wrappers lie in an archive, from
//! which a link takes those the module calls, so that none brings a symbol that the
//! module's C library may lack.
//!
//! One folder for each architecture; the contract between hook and runtime is the same.
#![no_std]

#[cfg(target_arch = "x86_64")]
mod x86_64;
