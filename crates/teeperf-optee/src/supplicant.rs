//! The supplicant: the program in the normal world that the secure world asks for what it has not itself, files
//! above all. It fetches each request and sends the answer with a call of `ioctl`; the time between is a frame.

use crate::labels;
use crate::system;
use std::cell::Cell;
use std::ffi::{c_int, c_ulong, c_void};
use teeperf_lender::thread;

/// `TEE_IOC_SUPPL_RECV` and `TEE_IOC_SUPPL_SEND`: `_IOR(0xa4, 6 or 7, struct tee_ioctl_buf_data)`, linux/tee.h.
const RECEIVE: u32 = 2 << 30 | 16 << 16 | 0xA4 << 8 | 6;
const SEND: u32 = RECEIVE + 1;

/// `struct tee_ioctl_buf_data`.
#[repr(C)]
struct Buffer {
    address: u64,
    length: u64,
}

thread_local! {
    /// The request that the thread is about: where its label is; 0: none.
    static ANSWERS: Cell<usize> = const { Cell::new(0) };
}

/// `ioctl`, of whatever file.
///
/// # Safety
/// As the system has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ioctl(
    file: c_int,
    request: c_ulong,
    argument: *mut c_void,
) -> c_int {
    let wanted = request as u32;
    if wanted == SEND || wanted == RECEIVE {
        has_answered();
    }
    // SAFETY: the caller's promise.
    let result = unsafe { system::real_ioctl(file, request, argument) };
    if wanted == RECEIVE && result == 0 {
        // SAFETY: the driver has taken what it is for a description of a buffer, and written a request there.
        let request = unsafe { number_of(argument.cast()) };
        answers(request);
    }
    result
}

/// `struct tee_iocl_supp_recv_arg` begins with it.
///
/// # Safety
/// It describes a buffer with a request.
unsafe fn number_of(buffer: *const Buffer) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { ((*buffer).address as *const u32).read_unaligned() }
}

fn answers(request: u32) {
    let label = labels::request(request);
    if let Some(own) = thread::take().own() {
        own.event(label, 0);
        ANSWERS.set(label);
    }
}

fn has_answered() {
    let label = ANSWERS.replace(0);
    if label != 0
        && let Some(own) = thread::take().own()
    {
        own.event(label, 1);
    }
}
