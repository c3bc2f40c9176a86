//! CPU time of a thread in pauses. Its stream leaves it out, as it does the time of pauses: the CPU
//! time that samples and chunks tell is what the thread had outside of them.
//!
//! A thread looks at its CPU time where it meets a pause: where it has recording pause itself, at a
//! hook, or where its timer interrupts it meanwhile.

use crate::platform;
use crate::process;
use crate::thread::{State, Thread};
use core::sync::atomic::Ordering::Relaxed;

/// In the place of the CPU time at which a thread met a pause: it has left that pause, and its
/// stream does not tell of it yet.
const LEFT: u64 = u64::MAX;

/// The calling thread has met a pause.
pub(crate) fn meet(thread: &Thread) {
    let is_new = matches!(thread.paused_at.load(Relaxed), 0 | LEFT);
    let is_begun = matches!(thread.state(), State::Running | State::Paused);
    if process::wants_samples() && is_new && is_begun {
        thread.paused_at.store(platform::thread_cpu_ns().unwrap_or(0), Relaxed);
    }
}

/// The calling thread is about to have recording go on. One that a filter leaves out does not.
pub(crate) fn leave(thread: &Thread) {
    let met_at = thread.paused_at.load(Relaxed);
    if matches!(met_at, 0 | LEFT) || thread.was_left_out.load(Relaxed) {
        return;
    }
    if let Some(cpu_ns) = platform::thread_cpu_ns() {
        thread.paused_ns.fetch_add(cpu_ns.saturating_sub(met_at), Relaxed);
        thread.paused_at.store(LEFT, Relaxed);
    }
}

/// A pause is over for the calling thread. Where the thread did not meet it, it was on a processor
/// for so long in it, by the clock, nanoseconds.
pub(crate) fn end(thread: &Thread, by_clock_ns: u64) {
    if !process::wants_samples() {
        return;
    }
    let paused_ns = match thread.paused_at.swap(0, Relaxed) {
        0 => by_clock_ns,
        LEFT => 0,
        met_at => platform::thread_cpu_ns().map_or(0, |cpu_ns| cpu_ns.saturating_sub(met_at)),
    };
    thread.paused_ns.fetch_add(paused_ns, Relaxed);
}

/// The part of a thread's CPU time that it had outside of pauses.
pub(crate) fn outside(thread: &Thread, cpu_ns: u64) -> u64 {
    cpu_ns.saturating_sub(thread.paused_ns.load(Relaxed))
}
