//! The image runs one thread at a time.

use crate::arena::Refusal;
use crate::thread::{Image, Thread};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The one thread there is.
struct Only(Thread);

// SAFETY: the image runs one thread at a time; interrupts that run hooked code need the feature `nested`.
unsafe impl Sync for Only {}

static ONLY: Only = Only(Thread::new());

/// It.
#[inline(always)]
#[cfg(not(target_arch = "aarch64"))]
pub(crate) fn thread() -> &'static Thread {
    &ONLY.0
}

/// It. Of an address that it knows, the compiler makes two instructions between any two checks of a hook;
/// this one it does not know.
#[inline(always)]
#[cfg(target_arch = "aarch64")]
pub(crate) fn thread() -> &'static Thread {
    let mut only = &raw const ONLY.0;
    // SAFETY: nothing is done, and the address is still that of a static.
    unsafe {
        core::arch::asm!("/* {0} */", inout(reg) only, options(pure, nomem, nostack, preserves_flags));
        &*only
    }
}

/// # Safety
/// As [`Thread::attach`].
pub(crate) unsafe fn attach(base: *mut u8, length: usize, image: &Image) -> Result<bool, Refusal> {
    // SAFETY: the caller's promise.
    unsafe { ONLY.0.attach(base, length, image) }
}

pub(crate) fn detach() {
    ONLY.0.detach();
}

/// It does not.
pub(crate) fn end_thread() {}

/// There is but one clock at a time.
pub(crate) const fn epoch() -> u32 {
    0
}

/// A new thread's number.
pub(crate) fn next_serial() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let serial = NEXT.load(Relaxed);
    NEXT.store(serial.wrapping_add(1), Relaxed);
    serial
}
