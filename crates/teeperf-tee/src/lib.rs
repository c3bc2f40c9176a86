//! The runtime inside code that has no system of its own to ask for anything: trusted applications,
//! enclaves, bare-metal images. It needs memory that a host lends ([`teeperf_wire::arena`]), loads and
//! stores of 32 bits, and nothing else. With the feature `threads` also thread-local storage, and
//! compare-and-exchange; with `apart` the image says where a thread's data lie.
//!
//! * [`thread`]: one thread's recording: what a hook does, what it does once in a while;
//! * [`arena`]: lent memory, checked once and never believed; `outside`: whether it is the host's, for who has a range of addresses;
//! * `hooks`: the functions that compilers call; `api`: what `teeperf_tee.h` promises;
//! * `sums`: what is summed where no event can be written;
//! * `arcs`: calls that code compiled with `-pg` makes, counted;
//! * `taking`: what is summed as bytes, for whatever way out there is;
//! * [`platform`]: what differs from one place to the next.
//!
//! What it never does: allocate, call a library, wait for ever, use a value from lent memory as an
//! address, or as an index that it has not checked. A hostile host gets a senseless recording.
#![cfg_attr(not(test), no_std)]

#[cfg(feature = "object")]
pub mod api;
mod arcs;
pub mod arena;
mod chunk;
#[cfg(feature = "object")]
pub mod hooks;
mod losses;
#[cfg(any(feature = "nested", test))]
mod nested;
#[cfg(any(feature = "object", test))]
mod outside;
pub mod platform;
mod sums;
mod taking;
pub mod thread;

// It passes no floating-point numbers, so that it goes into images that pass them in either manner
// (Tag_ABI_VFP_args; "Addenda to, and Errata in, the ABI for the Arm Architecture").
#[cfg(all(feature = "object", target_arch = "arm"))]
core::arch::global_asm!(".eabi_attribute 28, 3");

/// The runtime has no way to panic that a test has not found; if there is one, the image
/// must not go on with half an invariant.
#[cfg(all(feature = "object", not(test)))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
