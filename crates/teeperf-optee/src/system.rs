//! What is asked of the C library, which the client has loaded.

use std::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};
use std::sync::OnceLock;

/// `RTLD_NEXT` (dlfcn.h).
const NEXT: *mut c_void = -1isize as *mut c_void;

/// `Dl_info`.
#[repr(C)]
struct Found {
    file: *const c_char,
    base: *mut c_void,
    name: *const c_char,
    address: *mut c_void,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dladdr(address: *const c_void, found: *mut Found) -> c_int;
    fn gettid() -> c_int;
    fn mmap(
        wish: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: c_long,
    ) -> *mut c_void;
}

/// The function of this name that the client would have without this library; null: none.
pub(crate) fn next(name: &CStr) -> *mut c_void {
    // SAFETY: a string of C.
    unsafe { dlsym(NEXT, name.as_ptr()) }
}

/// The C library's `ioctl`.
///
/// # Safety
/// As the system has it.
pub(crate) unsafe fn real_ioctl(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    type Ioctl = unsafe extern "C" fn(c_int, c_ulong, ...) -> c_int;
    static FOUND: OnceLock<Option<Ioctl>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let found = next(c"ioctl");
        // SAFETY: the C library's function of that name has this type.
        (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Ioctl>(found) })
    });
    match found {
        // SAFETY: the caller's promise.
        Some(ioctl) => unsafe { ioctl(file, request, argument) },
        None => -1,
    }
}

/// The file that the code at an address was loaded from.
pub(crate) fn file_of(address: usize) -> Option<&'static CStr> {
    use std::ptr::{null, null_mut};
    let mut found = Found { file: null(), base: null_mut(), name: null(), address: null_mut() };
    // SAFETY: any address may be asked about; the answer stays as long as the file is loaded.
    unsafe {
        let is_found = dladdr(address as *const c_void, &raw mut found) != 0;
        (is_found && !found.file.is_null()).then(|| CStr::from_ptr(found.file))
    }
}

/// The calling thread's id.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: no pointers.
    unsafe { gettid() as u32 }
}

/// Maps all of a file of shared memory.
pub(crate) fn map(file: &std::fs::File, length: usize) -> Option<*mut u8> {
    use std::os::fd::AsRawFd;
    const READ_WRITE: c_int = 3;
    const SHARED: c_int = 1;
    let null = std::ptr::null_mut();
    // SAFETY: a new mapping where the kernel finds room.
    let base = unsafe { mmap(null, length, READ_WRITE, SHARED, file.as_raw_fd(), 0) };
    (base as isize != -1).then_some(base.cast())
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
