//! Linked into an image: what the image itself may bring, each a C function of which `teeperf_tee.h`
//! says what it is to do. Of those it does not bring the library has one that does the least.

use crate::hooks::ADDRESS;
use crate::thread::Image;
use core::ffi::c_int;
use teeperf_wire::word::module::MAX_PATH;

unsafe extern "C" {
    fn teeperf_port_is_outside(start: *const u8, length: usize) -> c_int;
    fn teeperf_port_pause() -> u32;
    fn teeperf_port_counter() -> u64;
    fn teeperf_port_counter_hz() -> u64;
    fn teeperf_port_name() -> *const u8;
    fn teeperf_port_tree(length: *mut usize) -> *mut u8;
    fn teeperf_port_sums() -> c_int;
    fn teeperf_port_arcs(length: *mut usize) -> *mut u8;
}

/// Readers find by it where the image lies: a function, which symbol tables keep. Never called.
#[unsafe(no_mangle)]
pub extern "C" fn teeperf_anchor() {}

/// Addresses on each side of the anchor that have sites.
const REACH: usize = 16 << 20;

/// The image that the runtime is linked into.
pub(crate) fn image() -> Image {
    let anchor = teeperf_anchor as extern "C" fn() as usize & ADDRESS;
    Image { anchor, low: anchor.wrapping_sub(REACH), length: 2 * REACH, name: name() }
}

/// The bytes of a string of C, which the image or the library brings.
fn name() -> &'static [u8] {
    // SAFETY: it ends in a 0, before which every byte is its own, and stays as it is.
    unsafe {
        let start = teeperf_port_name();
        if start.is_null() {
            return &[];
        }
        let mut length = 0;
        while length < MAX_PATH && start.add(length).read() != 0 {
            length += 1;
        }
        core::slice::from_raw_parts(start, length)
    }
}

/// Whether all of a stretch of memory is the host's.
pub(crate) fn is_outside(start: *const u8, length: usize) -> bool {
    // SAFETY: the image's own function, which looks at the addresses alone.
    unsafe { teeperf_port_is_outside(start, length) != 0 }
}

/// Between two looks at memory that the host is to free: says how many microseconds it rested, 0 where it cannot.
pub(crate) fn pause() -> u32 {
    // SAFETY: as above.
    unsafe { teeperf_port_pause() }
}

/// Whether there is a counter that the image may read.
pub(crate) fn has_counter() -> bool {
    counter() != 0
}

/// That counter, 0 where there is none.
pub(crate) fn counter() -> u64 {
    // SAFETY: as above.
    unsafe { teeperf_port_counter() }
}

/// How much it counts in a second, 0 where that is not known.
pub(crate) fn counter_hz() -> u64 {
    // SAFETY: as above.
    unsafe { teeperf_port_counter_hz() }
}

/// Memory for a tree, if the image has some.
pub(crate) fn tree_memory() -> Option<(*mut u8, usize)> {
    let mut length = 0;
    // SAFETY: as above; it writes the one number.
    let base = unsafe { teeperf_port_tree(&raw mut length) };
    (!base.is_null()).then_some((base, length))
}

/// Whether events are summed though they could be written.
pub(crate) fn always_sums() -> bool {
    // SAFETY: as above.
    !cfg!(any(feature = "threads", feature = "apart")) && unsafe { teeperf_port_sums() != 0 }
}

/// Memory for calls of code that is compiled with `-pg`, if the image has some.
pub(crate) fn arcs_memory() -> Option<(*mut u8, usize)> {
    let mut length = 0;
    // SAFETY: as above; it writes the one number.
    let base = unsafe { teeperf_port_arcs(&raw mut length) };
    (!base.is_null()).then_some((base, length))
}
