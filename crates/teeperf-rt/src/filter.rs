//! Which functions are recorded, and which of them timed by the counter, as the recorder decides while the program runs ([`teeperf_wire::filter`]).
//!
//! Hooks leave out by themselves what a module's map has not. Whoever sees that another filter is due puts it into
//! effect for the whole process; each thread then says from which of its events on it holds. Between a filter's coming and its
//! holding every event comes to the runtime, so that no thread goes on under the old one behind that.

pub(crate) mod map;

use crate::arch;
use crate::clock;
use crate::event;
use crate::module;
use crate::process;
use crate::sums;
use crate::thread::{self, Thread};
use crate::writer;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use teeperf_wire::filter::Filter;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::code;

static IN_EFFECT: AtomicU32 = AtomicU32::new(0);

/// The filter that modules' hooks have.
pub(crate) fn in_effect() -> Filter {
    Filter::decode(IN_EFFECT.load(Acquire))
}

/// Whether it leaves out what programs put on the time line.
pub(crate) fn leaves_out_points() -> bool {
    in_effect().is_without_points
}

/// Modules have this one from now on.
pub(crate) fn is_in_effect(word: u32) {
    IN_EFFECT.store(word, Release);
}

/// Whether another filter is to come than the thread has told of: as long as that is so, each of its events is to come
/// here.
pub(crate) fn is_to_come(thread: &Thread) -> bool {
    clock::filter() != thread.filter.load(Relaxed)
}

/// The counter at a return that may be timed, as early as it can be: what this hook does is no part of the call.
#[inline(always)]
pub(crate) fn counter_at_return(is_return: bool) -> Option<u64> {
    (is_return && in_effect().is_timed).then(arch::counter_in_order)
}

/// Whether an event that its thread's filter lets pass is timed by the counter.
pub(crate) fn is_timed(thread: &Thread, address: u64) -> bool {
    clock::kind() == ClockKind::Tick
        && Filter::decode(thread.filter.load(Relaxed)).is_timed
        && module::is_timed(address)
}

/// Puts the filter into effect that is due.
#[inline(always)]
pub(crate) fn heed() {
    if clock::filter_due() != IN_EFFECT.load(Acquire) {
        module::filter_all();
    }
}

/// Whether the thread has told of a filter.
pub(crate) fn is_told(thread: &Thread) -> bool {
    thread.filter.load(Relaxed) != 0 && !process::has_trees()
}

/// Whether the thread has not told of the filter that is in effect, and has a place to tell it.
pub(crate) fn is_to_be_told(thread: &Thread) -> bool {
    thread.filter.load(Relaxed) != IN_EFFECT.load(Acquire) && !process::has_trees()
}

/// Says under which filter the thread goes on; says whether there was room for that.
#[inline(always)]
pub(crate) fn tell(thread: &Thread) -> bool {
    let word = IN_EFFECT.load(Acquire);
    thread.filter.load(Relaxed) == word || tell_word(thread, word)
}

#[cold]
fn tell_word(thread: &Thread, word: u32) -> bool {
    if process::has_trees() {
        sums::forget_frames(thread);
    } else if !writer::escape(thread, code::FILTER, Filter::decode(word).number, &[]) {
        return false;
    }
    thread.filter.store(word, Relaxed);
    true
}

/// Whether the filter leaves the thread out, which the recorder tells by its name. A thread is often named some time
/// after it began, so it asks again, after a millisecond and then less and less often.
#[inline(always)]
pub(crate) fn leaves_out(thread: &Thread) -> bool {
    in_effect().is_of_threads && leaves_out_now(thread)
}

#[cold]
fn leaves_out_now(thread: &Thread) -> bool {
    let (number, now) = (in_effect().number, clock::now());
    let is_new = thread.asked.swap(number, Relaxed) != number;
    if is_new || now >= thread.ask_at.load(Relaxed) {
        let first = thread::most_cpu_pause();
        let pause = if is_new { first } else { 2 * thread.ask_in.load(Relaxed) };
        let pause = pause.clamp(first, LONGEST_PAUSE * first);
        thread.ask_in.store(pause, Relaxed);
        thread.ask_at.store(now.saturating_add(pause), Relaxed);
        event::claimed(thread, || {
            thread.is_left_out.store(process::asks_whether_left_out(), Relaxed);
        });
    }
    thread.is_left_out.load(Relaxed)
}

/// Longest time between two questions, in those of the first.
const LONGEST_PAUSE: u64 = 1000;

/// Whether an event that came here is to be recorded under the filter that its thread has told of: hooks let pass what
/// is in doubt. Nothing where another is due meanwhile: then that is to be told first.
pub(crate) fn passes(thread: &Thread, address: u64) -> Option<bool> {
    let word = thread.filter.load(Relaxed);
    let filter = Filter::decode(word);
    let passes = !filter.is_on || module::passes(address);
    (clock::filter_due() == word).then_some(passes)
}
