//! The image runs several threads, each of which attaches memory of its own, such as a host's thread lends with each call: one goes
//! on in what its caller has written. Where a thread's data lie the image says, which knows its threads: an enclave
//! has them by the thread control structure that it was entered through.

use crate::arena::Refusal;
use crate::thread::{Image, Thread};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

#[cfg(feature = "threads")]
compile_error!("what a thread attaches is for all threads, or for itself: `threads` or `apart`");
#[cfg(feature = "nested")]
compile_error!(
    "threads for which the image has no memory share what `nested` would write: without `apart`"
);

unsafe extern "C" {
    fn teeperf_port_thread() -> *const Thread;
}

/// `TEEPERF_THREAD` of `teeperf_tee.h`: bytes that the image keeps for each thread.
const THREAD: usize = 512;
const _: () = assert!(size_of::<Thread>() <= THREAD && align_of::<Thread>() <= 8);

/// Of threads for which the image has nothing. Nobody attaches it, so hooks find nothing to do and change nothing.
struct Nobody(Thread);

// SAFETY: no field of it ever changes: what an unattached thread does is to look whether it is attached.
unsafe impl Sync for Nobody {}

static NOBODY: Nobody = Nobody(Thread::new());

/// The calling thread.
#[inline(always)]
pub(crate) fn thread() -> &'static Thread {
    // SAFETY: the image's promise: memory of the calling thread's own, of this size and alignment, zeroed before the first time,
    // as long as hooks come. All zero is a new one: numbers and null pointers.
    unsafe { teeperf_port_thread().as_ref() }.unwrap_or(&NOBODY.0)
}

/// # Safety
/// As [`Thread::attach`].
pub(crate) unsafe fn attach(base: *mut u8, length: usize, image: &Image) -> Result<bool, Refusal> {
    let own = thread();
    if core::ptr::eq(own, &raw const NOBODY.0) {
        return Err(Refusal::Attached);
    }
    // What is attached still was by a call that never came to its end. Whose that memory is now, nobody knows here.
    own.let_go();
    // SAFETY: the caller's promise.
    unsafe { own.attach(base, length, image) }
}

pub(crate) fn detach() {
    thread().detach();
}

/// Its chunk is the host's, who has named the thread.
pub(crate) fn end_thread() {}

/// There is but one clock at a time.
pub(crate) const fn epoch() -> u32 {
    0
}

/// A new thread's number, where the host has not named it.
pub(crate) fn next_serial() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Relaxed)
}
