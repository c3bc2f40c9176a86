//! Where threads begin and end: `pthread_create`, and what the C library calls when a thread returns, exits or is cancelled.

use crate::libc::{self, Next};
use crate::{process, signals};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

type Start = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut c_void, *const c_void, Start, *mut c_void) -> c_int;

static CREATE: Next = Next::new(c"pthread_create");
/// Its destructor is called at a thread's end.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

thread_local! {
    /// The thread's stack, which a child of its fork has as well.
    static STACK: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// The program's first thread.
pub(crate) fn first() {
    let mut key = 0;
    // SAFETY: a number, and a function that stays.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } == 0 {
        KEY.store(key, Relaxed);
    }
    begins();
}

/// The only thread of a child.
pub(crate) fn of_child() {
    let (start, end) = STACK.get();
    if let Some(process) = process::this() {
        process.sampler.thread_begins(start..end);
    }
}

/// The calling thread is sampled from here on.
fn begins() {
    let Some(process) = process::this() else { return };
    let stack = libc::stack();
    STACK.set((stack.start, stack.end));
    signals::unblock();
    if process.sampler.thread_begins(stack).is_some() {
        // SAFETY: of the key that was made; any value but null has the destructor called.
        unsafe { libc::pthread_setspecific(KEY.load(Relaxed), (&raw const KEY).cast()) };
    }
}

extern "C" fn ended(_: *mut c_void) {
    if let Some(process) = process::this() {
        process.sampler.thread_ends();
    }
}

/// Has nothing to undo when the thread is unwound, by `pthread_exit` or where it is cancelled.
unsafe extern "C-unwind" fn thread(argument: *mut c_void) -> *mut c_void {
    // SAFETY: made below, for this thread alone.
    let (start, argument) = *unsafe { Box::from_raw(argument.cast::<(Start, *mut c_void)>()) };
    begins();
    // SAFETY: as the program has it.
    unsafe { start(argument) }
}

/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_create(
    id: *mut c_void,
    attributes: *const c_void,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: its type.
    let create: Create = unsafe { CREATE.get() };
    if process::this().is_none() {
        // SAFETY: the caller's promise.
        return unsafe { create(id, attributes, start, argument) };
    }
    let both = Box::into_raw(Box::new((start, argument)));
    // SAFETY: the caller's promise; the box is the new thread's, if there is one.
    unsafe {
        let result = create(id, attributes, thread, both.cast());
        if result != 0 {
            drop(Box::from_raw(both));
        }
        result
    }
}
