//! System calls that another signal is to end with EINTR, and that the sampler's signal comes with:
//! the kernel asks the first handler alone whether to make the call again, and the sampler's comes
//! before one of a signal for the whole process.

use crate::arch::{self, OtherHandler};
use crate::module;
use crate::platform::{Action, Usage, mask};
use crate::process::{self, Life};
use crate::thread::Thread;
use core::sync::atomic::Ordering::Relaxed;
use teeperf_wire::shared::chunk;
use teeperf_wire::word::{self, Word};

/// Has the interrupted system call end with EINTR, if it would have without the sampler's signal.
/// `other` is the handler that ran just before, and `usage` what the kernel tells of the thread.
///
/// # Safety
/// `context` is the address of the `ucontext_t` of the sampler's handler.
pub(super) unsafe fn heed(
    thread: &Thread,
    context: usize,
    other: Option<OtherHandler>,
    usage: Option<Usage>,
) {
    // Also where nothing else is to be done: the next look compares with this one.
    let has_waited = has_waited(thread, usage);
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
fn has_waited(thread: &Thread, usage: Option<Usage>) -> bool {
    usage.is_none_or(|Usage { waits, .. }| thread.waits_at_timer.swap(waits, Relaxed) != waits)
}

/// Whether the kernel ends calls for this handler. A frame without information has what was on the
/// stack before: the sampler's own signal, perhaps.
fn ends_calls(thread: &Thread, other: OtherHandler) -> bool {
    let is_told = |action: &Action| {
        action.has_handler() && action.has_information() && !action.is_of_runtime()
    };
    match Action::of(other.signal as usize).filter(is_told) {
        Some(action) => action.ends_calls(),
        None => may_end_calls(last_return(thread)),
    }
}

/// Whether some handler ends calls, of those that the kernel tells nothing but the signal, so that
/// their frames do not name it. A handler with hooks has returned last. One that is none any more
/// (SA_RESETHAND) ends calls, as of signal(2) of System V.
fn may_end_calls(last_return: Option<u32>) -> bool {
    let signals = || (1..=64).filter(|signal| mask::SYNCHRONOUS >> (signal - 1) & 1 == 0);
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
