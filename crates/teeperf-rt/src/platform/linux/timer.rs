//! Timers of a thread's CPU time (timer_create(2)), and the handler of their signal.

use super::Action;
use crate::arch::{number, syscall};
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

/// Signals that may interrupt threads, the first that the program leaves alone: SIGURG and
/// SIGWINCH. Where nobody handles one of these it does nothing; most others would be the end of a
/// program.
pub(crate) const SIGNALS: [usize; 2] = [23, 28];
/// Which of them does.
static PLACE: AtomicUsize = AtomicUsize::new(0);

/// Place of the present one among them.
pub(crate) fn place() -> usize {
    PLACE.load(Relaxed)
}

pub(crate) fn set_place(place: usize) {
    PLACE.store(place, Relaxed);
}

/// The present one.
pub(crate) fn signal() -> usize {
    SIGNALS.get(place()).copied().unwrap_or(SIGNALS[0])
}

const SI_TIMER: i32 = -2;
const POLL_IN: i32 = 1;
const POLL_HUP: i32 = 6;
const SIGEV_THREAD_ID: i32 = 4;
/// Comes with the signal of a timer of the runtime's.
const OURS: u64 = u64::from_le_bytes(*b"teeperf\0");

/// `struct sigevent` (asm-generic/siginfo.h).
#[repr(C)]
struct Event {
    value: u64,
    signal: i32,
    notify: i32,
    thread: u32,
    rest: [u32; 11],
}

/// The beginning of a `siginfo_t` that a timer brings.
#[repr(C)]
pub(crate) struct Information {
    signal: i32,
    error: i32,
    code: i32,
    padding: i32,
    timer: i32,
    overruns: i32,
    value: u64,
}

/// A timer of a thread's CPU time, whose id is this. It does not run yet.
pub(crate) fn create(thread: u32) -> Option<i32> {
    /// `CPUCLOCK_PERTHREAD_MASK` and `CPUCLOCK_SCHED` (linux/posix-timers.h).
    const OF_THREAD: u32 = 4 | 2;
    let clock = (!thread << 3 | OF_THREAD).cast_signed() as usize;
    let mut timer = 0i32;
    let (signal, notify) = (signal() as i32, SIGEV_THREAD_ID);
    let event = Event { value: OURS, signal, notify, thread, rest: [0; 11] };
    let (event, place) = (&raw const event as usize, &raw mut timer as usize);
    // SAFETY: the kernel reads the event, and writes an integer of the C language.
    let result = unsafe { syscall(number::TIMER_CREATE, [clock, event, place, 0, 0, 0]) };
    (result == 0).then_some(timer)
}

/// Has a timer expire after `first_ns` nanoseconds, and then each `period_ns`.
pub(crate) fn start(timer: i32, first_ns: u64, period_ns: u64) {
    // `struct itimerspec`: the period, and when it expires first.
    let time = [0, period_ns, 0, first_ns];
    let time = &raw const time as usize;
    // SAFETY: the kernel reads four words.
    unsafe { syscall(number::TIMER_SETTIME, [timer as usize, 0, time, 0, 0, 0]) };
}

/// Deletes a timer.
pub(crate) fn delete(timer: i32) {
    // SAFETY: no pointers.
    unsafe { syscall(number::TIMER_DELETE, [timer as usize, 0, 0, 0, 0, 0]) };
}

/// A handler as the kernel calls it: signal, what came with it, the interrupted state.
pub(crate) type Handler = extern "C" fn(i32, &Information, usize);

/// The handler that the process has; nothing where that cannot be told.
pub(crate) fn handler() -> Option<usize> {
    Action::of(signal()).map(|action| action.handler)
}

/// Has `handler` called where a timer expires; says whether it will be.
pub(crate) fn handle(handler: Handler) -> bool {
    Action::of_runtime(handler as usize).set(signal())
}

/// Has nothing become of the signal, as one of these two says: SIG_DFL, SIG_IGN.
pub(crate) fn handle_no_more(instead: usize) {
    Action::of_none(instead).set(signal());
}

impl Information {
    /// Whether it is a timer of [`create`] that has expired.
    pub(crate) fn is_of_timer(&self) -> bool {
        self.code == SI_TIMER && self.value == OURS
    }

    /// Expirations of the timer that this stands for.
    pub(crate) fn expirations(&self) -> u32 {
        self.overruns.max(0).cast_unsigned().saturating_add(1)
    }

    /// Whether it is an event of [`super::perf`] that does not come again.
    pub(crate) fn is_of_single_event(&self) -> bool {
        self.code == POLL_HUP
    }

    /// Whether it is an event of [`super::perf`], or another descriptor that is ready.
    pub(crate) fn is_of_event(&self) -> bool {
        (POLL_IN..=POLL_HUP).contains(&self.code)
    }
}
