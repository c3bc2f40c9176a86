//! A function whose call has recording begin: until then it is paused, and the filter lets these functions alone pass, so that
//! hooks leave out all others by themselves.

use crate::clock;
use crate::event::{self, Event};
use crate::filter;
use crate::module;
use crate::process;
use crate::thread::Thread;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

/// A recorder that did not answer is not asked again: each time may take long.
static IS_IN_VAIN: AtomicBool = AtomicBool::new(false);

/// Whether recording goes on because of this event, which was about to be left out: then the call is recorded
/// as any other.
pub(crate) fn fires(thread: &Thread, event: Event) -> bool {
    clock::is_armed() && begin(thread, event)
}

#[cold]
fn begin(thread: &Thread, event: Event) -> bool {
    let is_meant = filter::in_effect().is_on && module::passes(event.address);
    if event.is_return || !is_meant || process::is_paused_inside() || IS_IN_VAIN.load(Relaxed) {
        return false;
    }
    let mut begins = false;
    event::claimed(thread, || {
        begins = process::asks_to_begin();
        if !begins {
            IS_IN_VAIN.store(true, Relaxed);
        }
    });
    begins
}
