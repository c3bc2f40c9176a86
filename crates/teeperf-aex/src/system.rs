//! What is asked of Linux, by raw system calls: a signal handler is to enter no C library.

use core::arch::asm;
use core::ffi::CStr;

const READ_AT: usize = 17;
const WAIT4: usize = 61;
const PTRACE: usize = 101;
const GETTID: usize = 186;
const TIMER_CREATE: usize = 222;
const TIMER_SETTIME: usize = 223;
const TIMER_DELETE: usize = 226;
const CLOCK_GETTIME: usize = 228;
const OPENAT: usize = 257;
const AT_FDCWD: usize = -100isize as usize;
const O_CLOEXEC: usize = 0o2000000;
const SIGEV_THREAD_ID: i32 = 4;
const EINTR: isize = -4;
const WNOHANG: usize = 1;
/// `__WALL`: threads as well as processes.
const WALL: usize = 0x4000_0000;

/// Clocks of Linux.
pub(crate) mod clock {
    pub(crate) const MONOTONIC: usize = 1;
    pub(crate) const THREAD_CPUTIME: usize = 3;
}

/// # Safety
/// As that call has it; its pointers are good for what it does.
unsafe fn syscall(number: usize, arguments: [usize; 4]) -> isize {
    let result;
    // SAFETY: the caller's promise; the kernel changes no more than these registers.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

fn is_done(result: isize) -> Option<usize> {
    usize::try_from(result).ok()
}

/// A descriptor of a file.
pub(crate) fn open_read_only(path: &CStr) -> Option<i32> {
    // SAFETY: a string of C.
    let result = unsafe { syscall(OPENAT, [AT_FDCWD, path.as_ptr() as usize, O_CLOEXEC, 0]) };
    is_done(result).map(|descriptor| descriptor as i32)
}

/// Reads from a place of a file.
pub(crate) fn read_at(descriptor: i32, at: u64, into: &mut [u8]) -> Option<usize> {
    let arguments = [descriptor as usize, into.as_mut_ptr() as usize, into.len(), at as usize];
    // SAFETY: the kernel writes no more than `into` has.
    is_done(unsafe { syscall(READ_AT, arguments) })
}

/// The calling thread's id.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: no pointers.
    unsafe { syscall(GETTID, [0; 4]) as u32 }
}

/// Nanoseconds of a clock.
pub(crate) fn now(clock: usize) -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: `struct timespec` is two numbers.
    unsafe { syscall(CLOCK_GETTIME, [clock, (&raw mut time) as usize, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

/// A timer whose signal goes to the calling thread and has `value` with it.
pub(crate) fn create_timer(clock: usize, signal: i32, value: u64) -> Option<i32> {
    /// `struct sigevent`.
    #[repr(C)]
    struct Event {
        value: u64,
        signal: i32,
        notify: i32,
        thread: u32,
        rest: [u32; 11],
    }
    let event =
        Event { value, signal, notify: SIGEV_THREAD_ID, thread: thread_id(), rest: [0; 11] };
    let mut timer = 0i32;
    let arguments = [clock, (&raw const event) as usize, (&raw mut timer) as usize, 0];
    // SAFETY: the kernel reads the event and writes a number.
    is_done(unsafe { syscall(TIMER_CREATE, arguments) }).map(|_| timer)
}

/// Lets a timer expire once, in so many nanoseconds.
pub(crate) fn arm_timer(timer: i32, nanoseconds: u64) {
    let time = [0, 0, nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000];
    // SAFETY: `struct itimerspec` is four numbers.
    unsafe { syscall(TIMER_SETTIME, [timer as usize, 0, (&raw const time) as usize, 0]) };
}

/// Ends a timer.
pub(crate) fn delete_timer(timer: i32) {
    // SAFETY: no pointers.
    unsafe { syscall(TIMER_DELETE, [timer as usize, 0, 0, 0]) };
}

/// `ptrace`, where it succeeds. What it writes is behind `data`, which the caller has made for it.
pub(crate) fn ptrace(request: usize, thread: u32, address: usize, data: usize) -> Option<()> {
    // SAFETY: requests of this crate write to nothing but the `iovec` that they are given.
    is_done(unsafe { syscall(PTRACE, [request, thread as usize, address, data]) }).map(|_| ())
}

/// A thread's next status; 0 if it has none yet and is not to be waited for. Nothing when there is no such thread.
pub(crate) fn wait(thread: u32, at_once: bool) -> Option<u32> {
    let mut status = 0u32;
    let options = if at_once { WALL | WNOHANG } else { WALL };
    let arguments = [thread as usize, (&raw mut status) as usize, options, 0];
    loop {
        // SAFETY: the kernel writes a number.
        match unsafe { syscall(WAIT4, arguments) } {
            EINTR => {}
            result => return is_done(result).map(|_| status),
        }
    }
}
