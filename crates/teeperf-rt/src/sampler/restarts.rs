//! System calls that a signal of the program's is to end with EINTR, where the sampler's came at the
//! same time: the kernel asks the first handler alone whether to make the call again, and the
//! sampler's comes before one of a signal for the whole process.

use crate::arch::{self, OtherHandler};
use crate::module;
use crate::platform::{self, Action, mask};
use crate::process::{self, Life};
use crate::thread::Thread;
use core::sync::atomic::Ordering::Relaxed;
use teeperf_wire::shared::chunk;
use teeperf_wire::word::{self, Word};

/// Has the interrupted system call end with EINTR, if it would have without the sampler's signal.
///
/// # Safety
/// `context` is the address of the `ucontext_t` with which the kernel called `handler` just now, in
/// this thread.
pub(super) unsafe fn heed(thread: &Thread, context: usize, handler: usize) {
    // SAFETY: the caller's promise. A handler's first instructions take little of the stack.
    let other = unsafe { arch::take_other_handler(context, handler) };
    let has_waited = has_waited(thread);
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(other) = other
            && has_waited
            && arch::is_made_again(context)
            && ends_calls(thread, other)
        {
            arch::end_with_eintr(context);
        }
    }
}

/// Whether the thread has waited since its timer interrupted it before. A system call that is about
/// to be made looks like one that is made again.
fn has_waited(thread: &Thread) -> bool {
    let Some(usage) = platform::thread_usage() else { return true };
    thread.waits_at_timer.swap(usage.waits, Relaxed) != usage.waits
}

/// Whether the kernel ends calls for this handler. A frame without information has what was on the
/// stack before: the sampler's own signal, perhaps.
fn ends_calls(thread: &Thread, other: OtherHandler) -> bool {
    let told = Action::of(other.signal).filter(|action| action.has_information());
    match told.filter(|action| action.has_handler() && !action.is_of_runtime()) {
        Some(action) => action.ends_calls(),
        None => may_end_calls(last_return(thread)),
    }
}

/// Whether some handler ends calls, of those that the kernel tells nothing but the signal, so that
/// their frames do not name it. A handler with hooks has returned last. One that is none any more
/// (SA_RESETHAND) ends calls, as of signal(2) of System V.
fn may_end_calls(last_return: Option<u32>) -> bool {
    let signals = || (1..=u64::BITS).filter(|signal| mask::SYNCHRONOUS >> (signal - 1) & 1 == 0);
    let is_silent = |action: &Action| action.has_handler() && !action.has_information();
    let silent = || signals().filter_map(Action::of).filter(is_silent);
    let has_site = |site| silent().filter(move |action| site_of(action) == Some(site));
    let of_returned = last_return.and_then(|site| some_ends_calls(has_site(site)));
    of_returned.or_else(|| some_ends_calls(silent())).unwrap_or(true)
}

fn site_of(action: &Action) -> Option<u32> {
    module::site_of(action.handler as u64)
}

/// Nothing where there are none.
fn some_ends_calls(mut actions: impl Iterator<Item = Action>) -> Option<bool> {
    let first = actions.next()?;
    Some(first.ends_calls() || actions.any(Action::ends_calls))
}

/// Site of the function that returned last, if the thread wrote nothing behind that.
fn last_return(thread: &Thread) -> Option<u32> {
    if process::life() != Life::On || !super::is_written(thread) {
        return None;
    }
    let next = thread.cursor.reserve(0)? as usize;
    let start = thread.chunk.load(Relaxed) as usize;
    let first = start + chunk::WORDS;
    let end = start + thread.chunk_size.load(Relaxed) as usize;
    let has_words = start != 0 && next > first && next <= end && next.is_multiple_of(4);
    // SAFETY: the chunk is the thread's own.
    let last = has_words.then(|| unsafe { ((next - 4) as *const u32).read_volatile() });
    match word::decode(last?) {
        Word::Return { site } => Some(site),
        _ => None,
    }
}
