//! What `teeperf_tee.h` promises.

use crate::arena::Refusal;
use crate::outside;
use crate::platform;
use core::ffi::c_int;

/// Records into memory that a host lends, from now on until [`teeperf_tee_detach`]; 0, or why not: one
/// of [`Refusal`]. `is_permitted`: this build may be traced.
///
/// # Safety
/// `length` bytes at `base` stay mapped until then, and are the host's to read and write.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub unsafe extern "C" fn teeperf_tee_attach(
    base: *mut u8,
    length: usize,
    is_permitted: c_int,
) -> c_int {
    if is_permitted == 0 {
        return Refusal::Forbidden as c_int;
    }
    let image = platform::image();
    // SAFETY: the caller's promise.
    match unsafe { platform::attach(base, length, &image) } {
        Ok(_) => 0,
        Err(refusal) => refusal as c_int,
    }
}

/// Touches lent memory no more.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_tee_detach() {
    platform::detach();
}

/// Writes the next piece of what the calling thread has summed, and says how many bytes it has; 0: nothing is left, or
/// fewer than [`teeperf_wire::piece::LEAST_ROOM`] bytes are there, or this build may not be traced.
///
/// # Safety
/// `length` bytes at `base` can be written.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub unsafe extern "C" fn teeperf_tee_take(
    base: *mut u8,
    length: usize,
    is_permitted: c_int,
) -> usize {
    // Threads apart sum nothing.
    if is_permitted == 0 || base.is_null() || cfg!(feature = "apart") {
        return 0;
    }
    // Written once and never read: others may have it as well.
    // SAFETY: the offset is below the length, and the caller has promised the rest.
    let put = |at, byte| unsafe { base.add(at).write_volatile(byte) };
    platform::thread().take(length, put, &platform::image())
}

/// The calling thread calls nothing hooked any more.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_tee_end_thread() {
    platform::end_thread();
}

/// 1 if all of a stretch of memory lies outside of another, as [`outside::is_outside`] has it.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_tee_is_outside(
    start: usize,
    length: usize,
    base: usize,
    size: usize,
) -> c_int {
    c_int::from(outside::is_outside(start, length, base, size))
}

/// 1 while events of the calling thread are recorded, else 0.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_tee_recording() -> c_int {
    c_int::from(platform::thread().is_recording())
}
