//! What the program tells the driver of enclaves, and where their memory goes. The recorder looks at an enclave when it is whole, and
//! once more before it goes: what code is in it, the runtime's own list says, in the host's memory.

use crate::libc::Next;
use crate::process::{self, Process};
use std::ffi::{c_int, c_ulong, c_void};
use teeperf_aex::driver;
use teeperf_wire::sampling::{flag, what};

type Ioctl = unsafe extern "C" fn(c_int, c_ulong, ...) -> c_int;
type Munmap = unsafe extern "C" fn(*mut c_void, usize) -> c_int;

static IOCTL: Next = Next::new(c"ioctl");
static MUNMAP: Next = Next::new(c"munmap");

/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ioctl(
    file: c_int,
    request: c_ulong,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: its type, and the caller's promise.
    let result = unsafe { IOCTL.get::<Ioctl>()(file, request, argument) };
    let is_of_enclaves = matches!(request, driver::CREATE | driver::ADD_PAGES | driver::INIT);
    if let (0, true, Some(process)) = (result, is_of_enclaves, process::this()) {
        seen(process, file, request, argument as u64);
    }
    result
}

fn seen(Process { sampler, .. }: &Process, file: c_int, request: c_ulong, argument: u64) {
    if !sampler.settings.has_enclaves {
        return;
    }
    let left_out = sampler.enclaves.left_out();
    let whole = driver::seen(&sampler.enclaves, &sampler.memory, file, request, argument);
    if let Some(enclave) = whole {
        let flags = if enclave.secs.is_debug { flag::DEBUG } else { 0 };
        process::ask(what::MADE, flags, Some(&enclave));
    } else if sampler.enclaves.left_out() > left_out {
        process::ask(what::LEFT_OUT, 0, None);
    }
}

/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn munmap(base: *mut c_void, length: usize) -> c_int {
    if let Some(Process { sampler, .. }) = process::this()
        && let Some(enclave) = sampler.enclaves.overlapping(base as u64, length as u64)
    {
        process::ask(what::GOES, 0, Some(&enclave));
        sampler.enclaves.gone(base as u64, length as u64);
    }
    // SAFETY: its type, and the caller's promise.
    unsafe { MUNMAP.get::<Munmap>()(base, length) }
}
