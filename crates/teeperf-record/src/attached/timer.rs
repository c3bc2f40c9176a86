//! When a thread is to be stopped: by an event of the kernel's that counts its processor time (perf_event_open(2)), and sends the tracer a
//! signal when a period is over. The signal's handler asks the thread to stop, whatever the tracer waits for at that moment.
//!
//! Where the kernel grants no events, the tracer looks at its own ticks at the time that threads had, and stops those that run.

use super::ptrace;
use crate::memory::checked;
use crate::sample::attr::{Attr, Kind, Request, ask, flag};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_TASK_CLOCK`.
const TASK_CLOCK: Kind = Kind { kind: 1, config: 1, name: "task-clock", is_time: true };

/// Threads that can have an event: as many descriptors.
const MOST: usize = 16_384;
/// Of a thread's id there: it was asked to stop, and has not been armed again.
const IS_DUE: u32 = 1 << 31;
/// The thread of each descriptor's event; 0: none.
static THREADS: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];

/// The signal that events send, and ticks.
fn signal() -> libc::c_int {
    libc::SIGRTMIN()
}

/// An event of a thread.
#[derive(Debug)]
pub(super) struct Timer(File);

impl Timer {
    /// For a thread that is traced, whose signals come to the calling one. It does not run yet.
    pub(super) fn of(tid: u32) -> io::Result<Self> {
        let open = |flags: u64| {
            let attr =
                Attr { sample_type: 0, flags, period: u64::MAX >> 1, ..Attr::new(TASK_CLOCK) };
            attr.open(tid.cast_signed(), -1)
        };
        let most = flag::DISABLED | flag::EXCLUDE_HYPERVISOR;
        // Time in the kernel is the program's too; where that may not be interrupted, what calls it is sampled behind it.
        let file = open(most).or_else(|_| open(most | flag::EXCLUDE_KERNEL))?;
        let number = file.as_raw_fd();
        let Some(thread) = THREADS.get(number as usize) else {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        };
        // F_OWNER_TID.
        // SAFETY: no pointers are involved.
        let owner = [0, unsafe { libc::gettid() }];
        const F_SETSIG: libc::c_int = 10;
        const F_SETOWN_EX: libc::c_int = 15;
        // SAFETY: the kernel reads two numbers.
        checked(unsafe { libc::fcntl(number, F_SETOWN_EX, &raw const owner) })?;
        for (what, argument) in [(F_SETSIG, signal()), (libc::F_SETFL, libc::O_ASYNC)] {
            // SAFETY: no pointers are involved.
            checked(unsafe { libc::fcntl(number, what, argument) })?;
        }
        thread.store(tid, Relaxed);
        Ok(Self(file))
    }

    /// Stops the thread once, when it had so many nanoseconds more.
    pub(super) fn arm(&self, nanoseconds: u64) {
        if let Some(thread) = self.thread() {
            thread.fetch_and(!IS_DUE, Relaxed);
        }
        // An event that is open takes both.
        let _ = ask(&self.0, Request::Period(nanoseconds));
        let _ = ask(&self.0, Request::Once);
    }

    /// Whether the thread was asked to stop.
    pub(super) fn is_due(&self) -> bool {
        self.thread().is_some_and(|thread| thread.load(Relaxed) & IS_DUE != 0)
    }

    fn thread(&self) -> Option<&'static AtomicU32> {
        THREADS.get(self.0.as_raw_fd() as usize)
    }
}

/// Whether the kernel grants events.
pub(super) fn are_granted() -> bool {
    // SAFETY: no pointers are involved.
    Timer::of(unsafe { libc::gettid() }.cast_unsigned()).is_ok()
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(thread) = self.thread() {
            thread.store(0, Relaxed);
        }
    }
}

/// The signal's handler, while it lives, and a tick in the calling thread, which ends what that waits for.
#[derive(Debug)]
pub(super) struct Ticks {
    before: Vec<(libc::c_int, libc::sigaction)>,
    timer: libc::timer_t,
}

impl Ticks {
    /// With this time between two.
    pub(super) fn start(nanoseconds: i64) -> io::Result<Self> {
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = due;
        // SAFETY: a struct of numbers and a function address, for which zeros are a value.
        let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
        // Without SA_RESTART: waiting is to end.
        (ours.sa_sigaction, ours.sa_flags) = (handler as usize, libc::SA_SIGINFO);
        let mut before = Vec::new();
        // What the kernel sends in its place when too many are under way.
        for number in [signal(), libc::SIGIO] {
            // SAFETY: as above.
            let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: both are such structs.
            checked(unsafe { libc::sigaction(number, &ours, &mut old) })?;
            before.push((number, old));
        }
        // SAFETY: a struct of numbers, for which zeros are a value.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal();
        // SAFETY: no pointers are involved.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: the kernel reads the event and fills in the timer.
        let made = unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) };
        let ticks = Self { before, timer };
        checked(made)?;
        let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
        let time = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: the kernel reads the time.
        checked(unsafe { libc::timer_settime(ticks.timer, 0, &time, std::ptr::null_mut()) })?;
        Ok(ticks)
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        if !self.timer.is_null() {
            // SAFETY: it was made.
            unsafe { libc::timer_delete(self.timer) };
        }
        // What still comes is for this thread alone, and ends with it.
        // SAFETY: a set of signals, for which zeros are a value, and which the calls fill; then numbers and structs that were filled before.
        unsafe {
            let mut both: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut both);
            self.before.iter().for_each(|(number, _)| _ = libc::sigaddset(&mut both, *number));
            libc::pthread_sigmask(libc::SIG_BLOCK, &both, std::ptr::null_mut());
            for (number, before) in &self.before {
                libc::sigaction(*number, before, std::ptr::null_mut());
            }
        }
    }
}

/// Has the thread stop whose event it is.
extern "C" fn due(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    /// `POLL_IN` to `POLL_HUP`: of a file, whose number is behind `si_band`.
    const POLLED: std::ops::RangeInclusive<i32> = 1..=6;
    const FILE: usize = 24;
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid address. errno is the interrupted thread's and is left as it was; ptrace
    // is a system call and no more.
    unsafe {
        if !POLLED.contains(&(*info).si_code) {
            return;
        }
        let file = info.cast::<u8>().add(FILE).cast::<i32>().read();
        let error = *libc::__errno_location();
        let thread = THREADS.get(file as usize).filter(|thread| thread.load(Relaxed) != 0);
        if let Some(thread) = thread {
            ptrace::interrupt(thread.fetch_or(IS_DUE, Relaxed) & !IS_DUE);
        }
        *libc::__errno_location() = error;
    }
}
