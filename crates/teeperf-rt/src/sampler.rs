//! Samples of where threads spend their CPU time: something interrupts each thread now and then,
//! and the handler writes the interrupted address into the thread's own chunk. The calls and
//! returns around it are the call path, so no stack is copied.
//!
//! Where the kernel allows it, its events interrupt a thread in user mode alone: one that
//! came in a system call could end that with EINTR. What the thread does in the kernel, a timer of
//! its CPU time tells, whose signal comes when the kernel has done its work. Where events are not
//! allowed, the timer alone tells all.
//!
//! The signal is SIGURG. One that comes where nobody handles it does nothing; of most others it
//! would be the program's end.
//!
//! Timers and events outlive their thread. The next threads that begin look through the table of
//! these, a few places each, and let go what belongs to threads that are gone.

use crate::arch;
use crate::clock;
use crate::event::{self, writing, writing::Told};
use crate::module;
use crate::platform::{self, perf, perf::When, timer, timer::Information};
use crate::process::{self, Life};
use crate::signals;
use crate::thread::{self, State, Thread};
use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use teeperf_wire::compose;
use teeperf_wire::word::sample;

/// CPU time between two expirations of a thread's timer, nanoseconds. Kernels that look at timers
/// of CPU time at their tick alone interrupt threads less often.
const TIMER_NS: u64 = 1_000_000;
/// Most that one sample stands for: what a word can say.
const MOST_NS: u32 = i32::MAX as u32;
/// Mean CPU time between two interruptions by a thread's event, and how much more or less that may
/// be in a thread, so that not all beat with a program.
const EVENT_NS: u64 = 1_000_000;
const SPREAD_NS: u64 = 150_000;
/// Least CPU time of a thread at its first sample: what the kernel's timers can do.
const LEAST_NS: u64 = 10_000;

/// Timer and events of a thread, which outlive it.
struct Owned {
    /// Thread id, 0 while the place is free.
    thread: AtomicU32,
    /// Id of its timer plus one, 0 where it has none.
    timer: AtomicU32,
    /// Mappings of its events, 0 where it has none.
    events: [AtomicUsize; EVENTS],
}

/// One event comes again and again. The other comes once, before it: at any time of the first period
/// alike.
const EVENTS: usize = 2;
/// Threads for which there is no place are not sampled.
static OWNED: [Owned; PLACES] = [const {
    Owned {
        thread: AtomicU32::new(0),
        timer: AtomicU32::new(0),
        events: [const { AtomicUsize::new(0) }; EVENTS],
    }
}; PLACES];
const PLACES: usize = 4096;
/// Places that a thread looks through when it begins, for threads that are gone.
const LOOKED_THROUGH: usize = 4;
/// Where the next thread looks, and how many places were ever taken.
static NEXT: AtomicUsize = AtomicUsize::new(0);
static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// In a place that is being taken or let go.
const BUSY: u32 = u32::MAX;

impl Owned {
    /// Takes the place, if it has this owner; says whether it did.
    fn takes(&self, owner: u32) -> bool {
        self.thread.compare_exchange(owner, BUSY, AcqRel, Relaxed).is_ok()
    }

    /// Lets go of all that is in it.
    fn release(&self) {
        if let Some(timer) = self.timer.swap(0, Relaxed).checked_sub(1) {
            timer::delete(timer.cast_signed());
        }
        self.end_events();
    }

    fn end_events(&self) {
        for event in &self.events {
            let mapping = event.swap(0, Relaxed);
            if mapping != 0 {
                perf::end(mapping);
            }
        }
    }

    /// Has the calling thread interrupted, whose id this is. Gives the time that a sample of its
    /// events stands for, 0 where there are none.
    fn begin(&self, thread: u32) -> u32 {
        if let Some(timer) = timer::create(thread) {
            self.timer.store(timer.cast_unsigned().wrapping_add(1), Relaxed);
            timer::start(timer, TIMER_NS);
        }
        let mut seed = arch::counter() ^ u64::from(thread) << 32;
        let mut below = |most: u64| {
            // Marsaglia, "Xorshift RNGs", 2003.
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % most
        };
        let period = EVENT_NS - SPREAD_NS + below(2 * SPREAD_NS);
        let first = LEAST_NS + below(period);
        let whens = [When::Each(period), When::Once(first)];
        if !perf::begin(thread, &whens, &self.events) {
            self.end_events();
            return 0;
        }
        period as u32
    }
}

/// Readies a process that was attached just now: it has no timers. Says whether threads can be
/// sampled.
pub(crate) fn begin() -> bool {
    TAKEN.store(0, Relaxed);
    // In the child of a fork, another thread of the parent may have had it.
    IS_STACK_USED.store(false, Relaxed);
    for place in &OWNED {
        // Those of the process that it was forked from: they are not here.
        place.thread.store(0, Relaxed);
        place.timer.store(0, Relaxed);
        place.events.iter().for_each(|event| event.store(0, Relaxed));
    }
    let Some(handler) = timer::handler() else { return false };
    // In the child of a fork it is the runtime's own.
    if handler == interrupted as timer::Handler as usize {
        return true;
    }
    signals::inherited(handler);
    signals::is_none(handler) && timer::handle(interrupted)
}

/// Has the calling thread interrupted.
pub(crate) fn begin_thread(thread: &Thread) {
    if !process::is_sampled() {
        return;
    }
    let taken = TAKEN.load(Relaxed).min(PLACES);
    let start = NEXT.fetch_add(LOOKED_THROUGH, Relaxed) % taken.max(1);
    let looked = OWNED.iter().take(taken).cycle().skip(start).take(LOOKED_THROUGH);
    let mut free = None;
    for place in looked {
        let owner = place.thread.load(Relaxed);
        if owner != 0 && owner != BUSY && !platform::has_thread(owner) && place.takes(owner) {
            place.release();
            place.thread.store(0, Release);
        }
        if free.is_none() && place.takes(0) {
            free = Some(place);
        }
    }
    let new = || {
        let place = OWNED.get(TAKEN.fetch_add(1, Relaxed))?;
        place.takes(0).then_some(place)
    };
    let Some(place) = free.or_else(new) else { return };
    let id = thread.tid.load(Relaxed);
    thread.period_ns.store(place.begin(id), Relaxed);
    place.thread.store(id, Release);
}

/// Lets all threads run, for good: the program is about to forbid itself what a handler needs, or
/// handles the signal itself.
pub(crate) fn end() {
    process::is_sampled_no_more();
    for place in &OWNED {
        let owner = place.thread.load(Relaxed);
        if owner != 0 && owner != BUSY && place.takes(owner) {
            place.release();
            place.thread.store(0, Release);
        }
    }
}

/// On the stack of whatever was interrupted, which may be a small one: nothing is called here that
/// takes more than some hundred bytes.
extern "C" fn interrupted(_signal: i32, information: &Information, context: usize) {
    let is_of_event = information.is_of_event();
    let is_ours = is_of_event || information.is_of_timer();
    if !is_ours || process::life() != Life::On || clock::is_stopped() || process::is_paused() {
        return;
    }
    // SAFETY: as the kernel gives it to a handler.
    let (address, stack) =
        unsafe { (arch::address_in_context(context), arch::stack_pointer_in_context(context)) };
    let thread = thread::current();
    let is_unwinding = stack < thread.unwinding.load(Relaxed);
    let events_ns = thread.period_ns.load(Relaxed);
    let has_events = events_ns != 0;
    let is_elsewhere = thread.epoch.load(Relaxed) != process::epoch() || process::has_trees();
    if is_elsewhere || thread.state() == State::Paused || is_of_event && !has_events {
        return;
    }
    let expirations = if is_of_event { 1 } else { information.expirations() };
    let stands_for_ns = match is_of_event {
        false => expirations.saturating_mul(TIMER_NS as u32).min(MOST_NS),
        true if information.is_of_single_event() => events_ns,
        // The single one stands for the first period, at the end of which this comes.
        true if !thread.was_interrupted.swap(true, Relaxed) => events_ns / 2,
        true => events_ns,
    };
    if thread.is_busy() || !write(thread, address, is_unwinding, is_of_event, stands_for_ns) {
        let is_counted = is_of_event == has_events;
        thread.missed.fetch_add(if is_counted { expirations } else { 0 }, Relaxed);
    }
}

/// Writes a sample; in the next chunk where this one has no room.
fn write(
    thread: &Thread,
    address: usize,
    is_unwinding: bool,
    is_of_event: bool,
    period_ns: u32,
) -> bool {
    if thread.state() != State::Running {
        return false;
    }
    let Some(cpu_ns) = platform::thread_cpu_ns() else { return false };
    // SAFETY: the thread runs it.
    let has_hook = || unsafe { module::has_hook_at(address) };
    let is_in_hook = is_unwinding || arch::own_code().contains(&address) || has_hook();
    let mut bits = if is_in_hook { sample::HOOK } else { 0 };
    if is_of_event {
        bits |= sample::USER;
    } else {
        let faults = platform::thread_faults();
        if faults.is_none_or(|faults| thread.faults.swap(faults, Relaxed) != faults) {
            bits |= sample::FAULTS;
        }
        if arch::is_behind_call_of_kernel(address) {
            bits |= sample::KERNEL;
        }
    }
    let address = address as u64;
    let site = if is_in_hook { 0 } else { module::sampled_site(address) };
    let is_counted = is_of_event || thread.period_ns.load(Relaxed) == 0;
    let missed = if is_counted { thread.missed.swap(0, Relaxed) } else { 0 };
    let words =
        compose::sample(&compose::Sample { bits, site, address, cpu_ns, missed, period_ns });
    let is_all_told = thread.jumped().is_none() && has_told_of_pauses(thread);
    let has_room = is_all_told && writing::write(thread, Told::Leap(&words));
    let is_written = has_room || write_carefully(&words);
    if !is_written {
        thread.missed.fetch_add(missed, Relaxed);
    }
    is_written
}

/// A stack for what takes more of one than there may be where a thread was interrupted. One thread
/// at a time uses it.
#[repr(C, align(16))]
struct Stack(UnsafeCell<[u8; STACK]>);
const STACK: usize = 32 << 10;
// SAFETY: who has set the flag uses it.
unsafe impl Sync for Stack {}
static STACK_OF_ALL: Stack = Stack(UnsafeCell::new([0; STACK]));
static IS_STACK_USED: AtomicBool = AtomicBool::new(false);

/// Words to be written, and whether they are.
struct Task<'a> {
    words: &'a [u32],
    is_done: bool,
}

/// Whether the thread's stream has all pauses up to now. Time that a sample moves on to would
/// include them otherwise.
fn has_told_of_pauses(thread: &Thread) -> bool {
    process::units_of_pauses_over() == Some(thread.left_out.load(Relaxed))
}

/// Writes as a hook does: first what the thread has not told yet, and in the next chunk where this
/// one is full. A thread that calls nothing would have no room for samples otherwise.
#[cold]
fn write_carefully(words: &[u32]) -> bool {
    if IS_STACK_USED.swap(true, Acquire) {
        return false;
    }
    let mut task = Task { words, is_done: false };
    let top = STACK_OF_ALL.0.get() as usize + STACK;
    // SAFETY: the flag was not set before.
    unsafe { arch::on_stack(top, change_and_write, &raw mut task as usize) };
    IS_STACK_USED.store(false, Release);
    task.is_done
}

extern "C" fn change_and_write(task: usize) {
    // SAFETY: the caller waits for this.
    let task = unsafe { &mut *(task as *mut Task<'_>) };
    task.is_done = event::put(None, |thread| writing::write(thread, Told::Leap(task.words)));
}
