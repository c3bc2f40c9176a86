//! What runtimes call by themselves: `teeperf_aex.h`.

use crate::process;
use std::ffi::{c_int, c_void};

/// A sample of the calling thread, which has left an enclave asynchronously by this TCS, and will resume there. 0: it was taken; -1:
/// nobody records, or the thread is not sampled.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn teeperf_aex_sample(tcs: *const c_void) -> c_int {
    let is_taken = process::this().is_some_and(|process| process.sampler.left(tcs as u64));
    if is_taken { 0 } else { -1 }
}
