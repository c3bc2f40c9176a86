//! What is asked of the C library, which the program has loaded. Its functions are looked for once, behind this library's own.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// `RTLD_NEXT` (dlfcn.h).
const NEXT: *mut c_void = -1isize as *mut c_void;

/// `pthread_t` of the calling thread and `pthread_attr_t`, whose size is at most this.
type Attributes = [u64; 8];

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
    fn pthread_self() -> usize;
    fn pthread_getattr_np(thread: usize, attributes: *mut Attributes) -> c_int;
    fn pthread_attr_getstack(
        attributes: *const Attributes,
        start: *mut usize,
        size: *mut usize,
    ) -> c_int;
    fn pthread_attr_destroy(attributes: *mut Attributes) -> c_int;
    pub(crate) fn pthread_key_create(
        key: *mut u32,
        destructor: Option<extern "C" fn(*mut c_void)>,
    ) -> c_int;
    pub(crate) fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
    pub(crate) fn pthread_atfork(
        before: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// A function of the C library, or of another library that stands before it.
pub(crate) struct Next {
    name: &'static CStr,
    found: AtomicUsize,
}

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicUsize::new(0) }
    }

    /// # Safety
    /// `T` is the function's type, and each C library has it.
    pub(crate) unsafe fn get<T: Copy>(&self) -> T {
        // SAFETY: the caller's promise.
        unsafe { self.find() }.expect("the C library has it")
    }

    /// Nothing where it is newer than the C library.
    ///
    /// # Safety
    /// `T` is the function's type.
    pub(crate) unsafe fn find<T: Copy>(&self) -> Option<T> {
        let mut found = self.found.load(Relaxed);
        if found == 0 {
            // SAFETY: a string of C.
            found = unsafe { dlsym(NEXT, self.name.as_ptr()) } as usize;
            self.found.store(found, Relaxed);
        }
        const { assert!(size_of::<T>() == size_of::<usize>()) };
        // SAFETY: the caller's promise.
        (found != 0).then(|| unsafe { std::mem::transmute_copy(&found) })
    }
}

/// Sets `errno`.
pub(crate) fn set_error(error: c_int) {
    // SAFETY: the calling thread's own.
    unsafe { *__errno_location() = error };
}

/// The calling thread's stack; an empty one where it is not known.
pub(crate) fn stack() -> std::ops::Range<u64> {
    let (mut attributes, mut start, mut size) = (Attributes::default(), 0, 0);
    // SAFETY: each address is that of a value of this kind.
    unsafe {
        if pthread_getattr_np(pthread_self(), &raw mut attributes) != 0 {
            return 0..0;
        }
        pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut size);
        pthread_attr_destroy(&raw mut attributes);
    }
    start as u64..start as u64 + size as u64
}
