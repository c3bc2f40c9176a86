//! System calls that a signal of the program's is to end with EINTR, where the sampler's came at the
//! same time: the kernel asks the first handler alone whether to make the call again, and the
//! sampler's comes before one of a signal for the whole process.

use crate::arch::{self, OtherHandler};
use crate::platform::{Action, mask};

/// Has the interrupted system call end with EINTR, if it would have without the sampler's signal.
///
/// # Safety
/// `context` is the address of the `ucontext_t` with which the kernel called `handler` just now.
pub(super) unsafe fn heed(context: usize, handler: usize) {
    // SAFETY: the caller's promise. A handler's first instructions take little of the stack.
    unsafe {
        if arch::is_made_again(context)
            && let Some(other) = arch::other_handler(context, handler)
            && ends_calls(other, handler)
        {
            arch::end_with_eintr(context);
        }
    }
}

/// Whether the kernel ends calls for this handler, which is not `handler`: a frame without
/// information has what was on the stack before, perhaps that of another frame.
fn ends_calls(other: OtherHandler, handler: usize) -> bool {
    let is_told = |action: &Action| {
        action.has_handler() && action.has_information() && action.handler != handler
    };
    let told = Action::of(other.signal).filter(is_told);
    told.map_or_else(may_end_calls, Action::ends_calls)
}

/// Whether some handler ends calls, of those that the kernel tells nothing but the signal, so that
/// their frames do not name it. Signals by which users end a program come but once, so others were
/// meant, if there are any.
fn may_end_calls() -> bool {
    let silent = |signals: u64| {
        let actions = (1..=u64::BITS).filter(move |signal| signals >> (signal - 1) & 1 != 0);
        let actions = actions.filter_map(Action::of);
        actions.filter(|action| action.has_handler() && !action.has_information())
    };
    let mut others = silent(!(mask::SYNCHRONOUS | mask::ENDING)).peekable();
    match others.peek() {
        Some(_) => others.any(Action::ends_calls),
        None => silent(mask::ENDING).any(Action::ends_calls),
    }
}
