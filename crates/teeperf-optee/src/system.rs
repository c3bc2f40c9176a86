//! What is asked of the kernel's driver of TEEs.

use std::ffi::{c_int, c_ulong, c_void};
use teeperf_lender::real;

/// The C library's `ioctl`.
///
/// # Safety
/// As the system has it.
pub(crate) unsafe fn real_ioctl(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    type Ioctl = unsafe extern "C" fn(c_int, c_ulong, ...) -> c_int;
    match real!(c"ioctl" as Ioctl) {
        // SAFETY: the caller's promise.
        Some(ioctl) => unsafe { ioctl(file, request, argument) },
        None => -1,
    }
}

/// Whether the TEE takes memory as the client has it. Where it does not, its driver copies memory to and
/// fro with every call, which an arena does not bear. Where there is no driver, nobody knows.
pub(crate) fn takes_memory() -> bool {
    use std::os::fd::AsRawFd;
    /// `TEE_IOC_VERSION`, `_IOR(0xa4, 0, struct tee_ioctl_version_data)`, linux/tee.h.
    const VERSION: c_ulong = 2 << 30 | 12 << 16 | 0xA4 << 8;
    /// `TEE_GEN_CAP_REG_MEM`.
    const REGISTERS: u32 = 1 << 2;
    let Ok(device) = std::fs::File::open("/dev/tee0") else { return true };
    let mut version = [0u32; 3];
    // SAFETY: the driver writes three numbers there.
    let result = unsafe { real_ioctl(device.as_raw_fd(), VERSION, (&raw mut version).cast()) };
    result != 0 || version[2] & REGISTERS != 0
}
