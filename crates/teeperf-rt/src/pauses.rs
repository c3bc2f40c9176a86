//! CPU time of a thread in pauses. Its stream leaves it out, as it does the time of pauses: the CPU
//! time that samples and chunks tell is what the thread had outside of them.
//!
//! A thread looks at its CPU time where it meets a pause: at a hook, or where its timer interrupts
//! it meanwhile.

use crate::platform;
use crate::process;
use crate::thread::Thread;
use core::sync::atomic::Ordering::Relaxed;

/// The calling thread has met a pause.
pub(crate) fn meet(thread: &Thread) {
    if process::wants_samples() && thread.paused_at.load(Relaxed) == 0 {
        thread.paused_at.store(platform::thread_cpu_ns().unwrap_or(0), Relaxed);
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
        met_at => platform::thread_cpu_ns().map_or(0, |cpu_ns| cpu_ns.saturating_sub(met_at)),
    };
    thread.paused_ns.fetch_add(paused_ns, Relaxed);
}

/// What is outside of pauses, of so much CPU time of a thread.
pub(crate) fn outside(thread: &Thread, cpu_ns: u64) -> u64 {
    cpu_ns.saturating_sub(thread.paused_ns.load(Relaxed))
}
