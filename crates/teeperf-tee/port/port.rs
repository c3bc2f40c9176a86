//! What an image may bring itself, as the library has it: each an object of its own, so that a
//! link takes those alone that the image does not bring.
#![no_std]

// As in the runtime: they link with code of either manner of passing floating-point numbers.
#[cfg(target_arch = "arm")]
core::arch::global_asm!(".eabi_attribute 28, 3");

/// The caller answers for it.
#[cfg(feature = "is_outside")]
#[unsafe(no_mangle)]
pub extern "C" fn teeperf_port_is_outside(_start: *const u8, _length: usize) -> i32 {
    1
}

/// No rest.
#[cfg(feature = "pause")]
#[unsafe(no_mangle)]
pub extern "C" fn teeperf_port_pause() -> u32 {
    0
}

/// There is none.
#[cfg(feature = "counter")]
#[unsafe(no_mangle)]
pub extern "C" fn teeperf_port_counter() -> u64 {
    0
}

/// It is not known.
#[cfg(feature = "counter_hz")]
#[unsafe(no_mangle)]
pub extern "C" fn teeperf_port_counter_hz() -> u64 {
    0
}

/// No name.
#[cfg(feature = "name")]
#[unsafe(no_mangle)]
pub extern "C" fn teeperf_port_name() -> *const u8 {
    c"".as_ptr().cast()
}

/// There is no memory for a tree.
#[cfg(feature = "tree")]
#[unsafe(no_mangle)]
pub extern "C" fn teeperf_port_tree(_length: *mut usize) -> *mut u8 {
    core::ptr::null_mut()
}

/// What can be written is.
#[cfg(feature = "sums")]
#[unsafe(no_mangle)]
pub extern "C" fn teeperf_port_sums() -> i32 {
    0
}

/// There is no memory for arcs.
#[cfg(feature = "arcs")]
#[unsafe(no_mangle)]
pub extern "C" fn teeperf_port_arcs(_length: *mut usize) -> *mut u8 {
    core::ptr::null_mut()
}
