//! The program's own wishes for the signal by which the runtime interrupts threads. As long as the
//! program does not handle it, the runtime does, and no thread blocks it. Where the program
//! installs a handler of its own, or blocks it by name, the signal is the program's. The runtime
//! goes on by another (`platform::timer::SIGNALS`), or no thread is sampled any more.

use crate::event;
use crate::platform::{SIG_DFL, is_no_handler, mask, timer};
use crate::process;
use crate::sampler;
use crate::writer;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use teeperf_wire::word::code;

/// `struct sigaction` of C libraries for x86-64 Linux.
#[repr(C)]
pub struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: i32,
    restorer: usize,
}

/// SIG_DFL or SIG_IGN, as the present signal would have without the runtime.
static INSTEAD: AtomicUsize = AtomicUsize::new(SIG_DFL);

/// Keeps what the process had inherited.
pub(crate) fn inherited(handler: usize) {
    INSTEAD.store(handler, Release);
}

/// Lets the calling thread get the signal, unless the program has blocked it by name: to wait for
/// it, perhaps, or to read it from a descriptor.
pub(crate) fn unblock() {
    while process::is_sampled() && mask::let_through() {
        mask::keep_back();
        leave_to_program(
b"the program blocks SIGURG and SIGWINCH itself: its CPU time is not sampled from here on",
);
    }
}

/// The signal is the program's. Where no other takes its place, a note says so.
fn leave_to_program(text: &[u8]) {
    if !sampler::leave_signal(|| timer::handle_no_more(INSTEAD.load(Acquire))) {
        event::put(None, |thread| writer::text(thread, code::NOTE, text));
    }
}

/// Whether a signal is the one by which threads are interrupted.
fn is_ours(signal: usize) -> bool {
    process::is_sampled() && signal == timer::signal()
}

/// The program wants this handler for a signal. Gives the one before; nothing where the signal is
/// the program's.
fn handle(signal: usize, handler: usize) -> Option<usize> {
    if !is_ours(signal) {
        return None;
    }
    if is_no_handler(handler) {
        return Some(INSTEAD.swap(handler, Release));
    }
    leave_to_program(
        b"the program handles SIGURG and SIGWINCH itself: its CPU time is not sampled from here on",
    );
    None
}

/// The program asks for another action, or what it is. Says whether it was the runtime's business.
///
/// # Safety
/// Both are null or as sigaction(2) has them.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub unsafe extern "C" fn teeperf_rt_sigaction(
    action: *const Action,
    before: *mut Action,
    signal: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    let (action, before) = unsafe { (action.as_ref(), before.as_mut()) };
    let handler = match action {
        Some(action) => handle(signal, action.handler),
        None => is_ours(signal).then(|| INSTEAD.load(Acquire)),
    };
    let Some(handler) = handler else { return 0 };
    if let Some(before) = before {
        *before = Action { handler, mask: [0; 16], flags: 0, restorer: 0 };
    }
    1
}

/// The answer of [`teeperf_rt_signal`]: whether it was the runtime's business, and the handler before.
#[repr(C)]
pub struct Before {
    is_ours: usize,
    handler: usize,
}

/// The program asks for another handler.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_signal(handler: usize, _: usize, signal: usize) -> Before {
    match handle(signal, handler) {
        Some(handler) => Before { is_ours: 1, handler },
        None => Before { is_ours: 0, handler: INSTEAD.load(Relaxed) },
    }
}

/// The calling thread has changed which signals it blocks.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_unblock() {
    unblock();
}
