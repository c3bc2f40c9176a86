//! What is asked of Linux, by raw system calls: a signal handler is to enter no C library, and no call is one that a thread is
//! cancelled at.

use core::arch::asm;
use core::ffi::CStr;

const AT_FDCWD: usize = -100isize as usize;
const O_CLOEXEC: usize = 0o2000000;
const SIGEV_THREAD_ID: i32 = 4;

/// Numbers of system calls.
#[cfg(target_arch = "x86_64")]
#[allow(missing_docs, reason = "they have the kernel's names")]
pub mod number {
    pub const READ: usize = 0;
    pub const CLOSE: usize = 3;
    pub const FSTAT: usize = 5;
    pub const MMAP: usize = 9;
    pub const RT_SIGPROCMASK: usize = 14;
    pub const IOCTL: usize = 16;
    pub const READ_AT: usize = 17;
    pub const SOCKET: usize = 41;
    pub const CONNECT: usize = 42;
    pub const SENDMSG: usize = 46;
    pub const RECVMSG: usize = 47;
    pub const SETSOCKOPT: usize = 54;
    pub const GETSOCKOPT: usize = 55;
    pub const FCNTL: usize = 72;
    pub const GETPID: usize = 39;
    pub const GETEUID: usize = 107;
    pub const GETEGID: usize = 108;
    pub const PRCTL: usize = 157;
    pub const GETTID: usize = 186;
    pub const TIMER_CREATE: usize = 222;
    pub const TIMER_SETTIME: usize = 223;
    pub const TIMER_DELETE: usize = 226;
    pub const CLOCK_GETTIME: usize = 228;
    pub const CLOCK_GETRES: usize = 229;
    pub const OPENAT: usize = 257;
    pub const GETCPU: usize = 309;
    pub const PERF_EVENT_OPEN: usize = 298;
}

/// Numbers of system calls (Linux's `asm-generic/unistd.h`).
#[cfg(not(target_arch = "x86_64"))]
#[allow(missing_docs, reason = "they have the kernel's names")]
pub mod number {
    pub const FCNTL: usize = 25;
    pub const IOCTL: usize = 29;
    pub const OPENAT: usize = 56;
    pub const CLOSE: usize = 57;
    pub const READ: usize = 63;
    pub const READ_AT: usize = 67;
    pub const FSTAT: usize = 80;
    pub const TIMER_CREATE: usize = 107;
    pub const TIMER_SETTIME: usize = 110;
    pub const TIMER_DELETE: usize = 111;
    pub const CLOCK_GETTIME: usize = 113;
    pub const CLOCK_GETRES: usize = 114;
    pub const RT_SIGPROCMASK: usize = 135;
    pub const GETCPU: usize = 168;
    pub const PRCTL: usize = 167;
    pub const GETPID: usize = 172;
    pub const GETEUID: usize = 175;
    pub const GETEGID: usize = 177;
    pub const GETTID: usize = 178;
    pub const SOCKET: usize = 198;
    pub const CONNECT: usize = 203;
    pub const SETSOCKOPT: usize = 208;
    pub const GETSOCKOPT: usize = 209;
    pub const SENDMSG: usize = 211;
    pub const RECVMSG: usize = 212;
    pub const MMAP: usize = 222;
    pub const PERF_EVENT_OPEN: usize = 241;
}

/// Clocks of Linux.
pub(crate) mod clock {
    pub(crate) const MONOTONIC: usize = 1;
    pub(crate) const THREAD_CPUTIME: usize = 3;
    pub(crate) const MONOTONIC_COARSE: usize = 6;
}

/// Where this crate knows no processor's way into the kernel, nothing is done (ENOSYS).
///
/// # Safety
/// As that call has it; its pointers are good for what it does.
pub unsafe fn syscall(number: usize, arguments: [usize; 6]) -> isize {
    let result;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise; the kernel changes no more than these registers.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") arguments[0] => result,
            in("x1") arguments[1],
            in("x2") arguments[2],
            in("x3") arguments[3],
            in("x4") arguments[4],
            in("x5") arguments[5],
            options(nostack),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        const ENOSYS: isize = -38;
        let _ = (number, arguments);
        result = ENOSYS;
    }
    result
}

fn is_done(result: isize) -> Option<usize> {
    usize::try_from(result).ok()
}

/// A descriptor of a file.
pub(crate) fn open_read_only(path: &CStr) -> Option<i32> {
    // SAFETY: a string of C.
    let result =
        unsafe { syscall(number::OPENAT, [AT_FDCWD, path.as_ptr() as usize, O_CLOEXEC, 0, 0, 0]) };
    is_done(result).map(|descriptor| out_of_the_way(descriptor as i32))
}

/// The same file under a number that programs hardly ask for, if there is one.
fn out_of_the_way(file: i32) -> i32 {
    const DUPFD_CLOEXEC: usize = 1030;
    const HIGH: usize = 700;
    // SAFETY: no pointers.
    let result = unsafe { syscall(number::FCNTL, [file as usize, DUPFD_CLOEXEC, HIGH, 0, 0, 0]) };
    match is_done(result) {
        Some(high) => {
            close(file);
            high as i32
        }
        None => file,
    }
}

/// Reads from a place of a file.
pub(crate) fn read_at(descriptor: i32, at: u64, into: &mut [u8]) -> Option<usize> {
    let arguments =
        [descriptor as usize, into.as_mut_ptr() as usize, into.len(), at as usize, 0, 0];
    // SAFETY: the kernel writes no more than `into` has.
    is_done(unsafe { syscall(number::READ_AT, arguments) })
}

/// The calling thread's id.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: no pointers.
    unsafe { syscall(number::GETTID, [0; 6]) as u32 }
}

/// The processor that the calling thread is on.
pub(crate) fn processor() -> Option<u32> {
    let mut number = 0u32;
    let arguments = [(&raw mut number) as usize, 0, 0, 0, 0, 0];
    // SAFETY: the kernel writes a number.
    is_done(unsafe { syscall(number::GETCPU, arguments) }).map(|_| number)
}

/// Nanoseconds of a clock.
pub(crate) fn now(clock: usize) -> u64 {
    time(number::CLOCK_GETTIME, clock)
}

/// What one of the calls that ask of a clock says, in nanoseconds; 0 where it says nothing.
fn time(call: usize, clock: usize) -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: `struct timespec` is two numbers.
    unsafe { syscall(call, [clock, (&raw mut time) as usize, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

/// Nanoseconds between two of the kernel's ticks: this clock goes on at each (`clock_getres(2)`).
pub(crate) fn tick() -> u64 {
    /// The longest there is (CONFIG_HZ of 100), where it is not told.
    const LONGEST_NS: u64 = 10_000_000;
    match time(number::CLOCK_GETRES, clock::MONOTONIC_COARSE) {
        0 => LONGEST_NS,
        tick => tick,
    }
}

/// A timer of the calling thread's processor time, whose signal goes to it and has `value` with it.
pub(crate) fn create_timer(signal: i32, value: u64) -> Option<i32> {
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
    let arguments =
        [clock::THREAD_CPUTIME, (&raw const event) as usize, (&raw mut timer) as usize, 0, 0, 0];
    // SAFETY: the kernel reads the event and writes a number.
    is_done(unsafe { syscall(number::TIMER_CREATE, arguments) }).map(|_| timer)
}

/// Lets a timer expire once, in so many nanoseconds.
pub(crate) fn arm_timer(timer: i32, nanoseconds: u64) {
    let time = [0, 0, nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000];
    // SAFETY: `struct itimerspec` is four numbers.
    unsafe {
        syscall(number::TIMER_SETTIME, [timer as usize, 0, (&raw const time) as usize, 0, 0, 0])
    };
}

/// Ends a timer.
pub(crate) fn delete_timer(timer: i32) {
    // SAFETY: no pointers.
    unsafe { syscall(number::TIMER_DELETE, [timer as usize, 0, 0, 0, 0, 0]) };
}

/// Lets an event count this thread's time, which has the kernel send it this signal when a period is over: of `perf_event_open(2)`.
pub(crate) fn open_event(signal: i32, period_ns: u64) -> Option<i32> {
    const SOFTWARE: u32 = 1;
    const TASK_CLOCK: u64 = 1;
    const DISABLED: u64 = 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HV: u64 = 1 << 6;
    /// `PERF_FLAG_FD_CLOEXEC`.
    const CLOSED_ON_EXEC: usize = 8;
    const ANY_PROCESSOR: usize = usize::MAX;
    const NO_GROUP: usize = usize::MAX;
    // Type and size, configuration, period, kind of sample, of reading, flags: as of the structure's first version.
    const BYTES: u32 = 64;
    let open = |flags: u64| {
        let attr = [
            u64::from(SOFTWARE) | u64::from(BYTES) << 32,
            TASK_CLOCK,
            period_ns,
            0,
            0,
            flags,
            1,
            0,
        ];
        let arguments = [(&raw const attr) as usize, 0, ANY_PROCESSOR, NO_GROUP, CLOSED_ON_EXEC, 0];
        // SAFETY: the kernel reads as many bytes as the structure says it has.
        is_done(unsafe { syscall(number::PERF_EVENT_OPEN, arguments) })
            .map(|file| out_of_the_way(file as i32))
    };
    // Time in the kernel is the program's too; where that may not be interrupted, what calls it is sampled behind it.
    let file =
        open(DISABLED | EXCLUDE_HV).or_else(|| open(DISABLED | EXCLUDE_HV | EXCLUDE_KERNEL))?;
    let is_set = signals(file, signal);
    if is_set.is_none() {
        close(file);
    }
    is_set.map(|()| file)
}

/// Has the file send its signal to the calling thread.
fn signals(file: i32, signal: i32) -> Option<()> {
    const SETFL: usize = 4;
    const SETSIG: usize = 10;
    const SETOWN_EX: usize = 15;
    const O_ASYNC: usize = 0o20000;
    // F_OWNER_TID, and whom.
    let owner = [0, thread_id()];
    for (what, argument) in
        [(SETOWN_EX, (&raw const owner) as usize), (SETSIG, signal as usize), (SETFL, O_ASYNC)]
    {
        // SAFETY: the kernel reads the owner; the others are numbers.
        is_done(unsafe { syscall(number::FCNTL, [file as usize, what, argument, 0, 0, 0]) })?;
    }
    Some(())
}

/// Lets an event send its signal once, in so many nanoseconds.
pub(crate) fn arm_event(file: i32, nanoseconds: u64) {
    const REFRESH: usize = 0x2402;
    set_period(file, nanoseconds, REFRESH, 1);
}

/// Lets an event send its signal time and again, so many nanoseconds apart.
pub(crate) fn let_event_go_on(file: i32, nanoseconds: u64) {
    const ENABLE: usize = 0x2400;
    set_period(file, nanoseconds, ENABLE, 0);
}

/// Has an event count no more.
pub(crate) fn stop_event(file: i32) {
    const DISABLE: usize = 0x2401;
    // SAFETY: no pointers. Of another file it is no request.
    unsafe { syscall(number::IOCTL, [file as usize, DISABLE, 0, 0, 0, 0]) };
}

fn set_period(file: i32, nanoseconds: u64, start: usize, argument: usize) {
    const PERIOD: usize = 0x4008_2404;
    // SAFETY: the kernel reads a number. Of another file these are no requests.
    unsafe {
        syscall(number::IOCTL, [file as usize, PERIOD, (&raw const nanoseconds) as usize, 0, 0, 0]);
        syscall(number::IOCTL, [file as usize, start, argument, 0, 0, 0]);
    }
}

/// Closes a descriptor.
pub(crate) fn close(file: i32) {
    // SAFETY: no pointers.
    unsafe { syscall(number::CLOSE, [file as usize, 0, 0, 0, 0, 0]) };
}
