//! Where threads begin and end: `pthread_create`, and what the C library calls when a thread returns, exits or is cancelled.

use crate::libc::{self, Next};
use crate::{descriptors, process, signals};
use std::arch::global_asm;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
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
        process.sampler.timer_file().into_iter().for_each(descriptors::keep);
    }
}

/// The calling thread is sampled from here on.
fn begins() {
    let Some(process) = process::this() else { return };
    let stack = libc::stack();
    STACK.set((stack.start, stack.end));
    signals::unblock();
    if process.sampler.thread_begins(stack).is_some() {
        process.sampler.timer_file().into_iter().for_each(descriptors::keep);
        // SAFETY: of the key that was made; any value but null has the destructor called.
        unsafe { libc::pthread_setspecific(KEY.load(Relaxed), (&raw const KEY).cast()) };
    }
}

extern "C" fn ended(_: *mut c_void) {
    if let Some(process) = process::this() {
        process.sampler.timer_file().into_iter().for_each(descriptors::leave);
        process.sampler.thread_ends();
    }
}

/// What the program wants a thread to begin with.
#[repr(C)]
struct First {
    start: Start,
    argument: *mut c_void,
}

/// In a new thread, before what the program wants of it.
extern "C" fn prepare(first: *mut First) -> First {
    // SAFETY: made below, for this thread alone.
    let first = *unsafe { Box::from_raw(first) };
    begins();
    first
}

unsafe extern "C" {
    /// Where new threads begin. It leaves no frame: threads are unwound by `pthread_exit`, and where they are cancelled, and Rust's
    /// frames let nobody through.
    fn teeperf_inside_thread(first: *mut c_void) -> *mut c_void;
}

// Both parts of a structure of two words are in registers (System V ABI for AMD64, 3.2.3).
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".globl  teeperf_inside_thread",
    ".hidden teeperf_inside_thread",
    "teeperf_inside_thread:",
    "    sub     rsp, 8",
    "    call    {prepare}",
    "    add     rsp, 8",
    "    mov     rdi, rdx",
    "    jmp     rax",
    prepare = sym prepare,
);

// As above (AAPCS64, 6.9).
#[cfg(target_arch = "aarch64")]
global_asm!(
    ".globl  teeperf_inside_thread",
    ".hidden teeperf_inside_thread",
    "teeperf_inside_thread:",
    "    stp     x29, x30, [sp, #-16]!",
    "    bl      {prepare}",
    "    ldp     x29, x30, [sp], #16",
    "    mov     x2, x0",
    "    mov     x0, x1",
    "    br      x2",
    prepare = sym prepare,
);

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
    let first = Box::into_raw(Box::new(First { start, argument }));
    // SAFETY: the caller's promise; the box is the new thread's, if there is one.
    unsafe {
        let result = create(id, attributes, teeperf_inside_thread, first.cast());
        if result != 0 {
            drop(Box::from_raw(first));
        }
        result
    }
}
