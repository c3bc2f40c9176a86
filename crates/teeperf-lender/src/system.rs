//! What is asked of the C library, which the program has loaded.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};

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
    fn __errno_location() -> *mut c_int;
    fn mmap(
        wish: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: c_long,
    ) -> *mut c_void;
}

/// The function of this name that the program would have without the library that asks; null: none.
pub fn next(name: &CStr) -> *mut c_void {
    // SAFETY: a string of C.
    unsafe { dlsym(NEXT, name.as_ptr()) }
}

/// The program's own function of this name and type, looked up once.
#[macro_export]
macro_rules! real {
    ($name:literal as $kind:ty) => {{
        static FOUND: std::sync::OnceLock<Option<$kind>> = std::sync::OnceLock::new();
        *FOUND.get_or_init(|| {
            const NAME: &std::ffi::CStr = $name;
            let found = $crate::system::next(NAME);
            // SAFETY: the function of that name has this type.
            (!found.is_null())
                .then(|| unsafe { std::mem::transmute::<*mut std::ffi::c_void, $kind>(found) })
        })
    }};
}

/// The file that the code at an address was loaded from.
pub fn file_of(address: usize) -> Option<&'static CStr> {
    use std::ptr::{null, null_mut};
    let mut found = Found { file: null(), base: null_mut(), name: null(), address: null_mut() };
    // SAFETY: any address may be asked about; the answer stays as long as the file is loaded.
    unsafe {
        let is_found = dladdr(address as *const c_void, &raw mut found) != 0;
        (is_found && !found.file.is_null()).then(|| CStr::from_ptr(found.file))
    }
}

/// The calling thread's id.
pub fn thread_id() -> u32 {
    // SAFETY: no pointers.
    unsafe { gettid() as u32 }
}

/// Does something of which the program's `errno` knows nothing.
pub fn keeping_errno<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the calling thread's own, as long as it lives.
    let place = unsafe { __errno_location() };
    // SAFETY: as above.
    let before = unsafe { place.read() };
    let result = work();
    // SAFETY: as above.
    unsafe { place.write(before) };
    result
}

/// The processor's counter, read when all work before it is done; nothing where the recorder does not read the same.
pub fn counter() -> Option<u64> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // SAFETY: every x86-64 processor has both instructions.
        let now = unsafe {
            std::arch::x86_64::_mm_lfence();
            std::arch::x86_64::_rdtsc()
        };
        Some(now)
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    None
}

/// Maps all of a file of shared memory.
pub fn map(file: &std::fs::File, length: usize) -> Option<*mut u8> {
    use std::os::fd::AsRawFd;
    const READ_WRITE: c_int = 3;
    const SHARED: c_int = 1;
    let null = std::ptr::null_mut();
    // SAFETY: a new mapping where the kernel finds room.
    let base = unsafe { mmap(null, length, READ_WRITE, SHARED, file.as_raw_fd(), 0) };
    (base as isize != -1).then_some(base.cast())
}
