//! Samples of where threads spend their CPU time: something interrupts each thread now and then,
//! and the handler writes the interrupted address into the thread's own chunk. The calls and
//! returns around it are the call path, so no stack is copied.
//!
//! Where the kernel allows it, its events interrupt a thread in user mode alone: one that
//! came in a system call could end that with EINTR. What the thread does in the kernel, a timer of
//! its CPU time tells, whose signal comes when the kernel has done its work. Where events are not
//! allowed, the timer alone tells all.
//!
//! The signal is SIGURG, or, where the program takes that for itself, SIGWINCH. One that comes where
//! nobody handles it does nothing; of most others it would be the program's end.
//!
//! A thread tells its CPU time when it ends ([`ending`]). Its timer and events ([`sources`]) may
//! outlive it.

mod ending;
mod restarts;
mod sources;

use crate::arch;
use crate::clock;
use crate::event::{self, writing, writing::Told};
use crate::module;
use crate::off_cpu;
use crate::pauses;
use crate::platform::{self, Mask, Usage, timer, timer::Information};
use crate::process::{self, Life};
use crate::signals;
use crate::thread::{self, State, Thread};
use crate::writer;
use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32};
use sources::TIMER_NS;
use teeperf_wire::compose;
use teeperf_wire::word::{code, sample};

/// Most that one sample stands for: what a word can say.
const MOST_NS: u32 = i32::MAX as u32;

/// Readies a process that was attached just now: it has no timers. Says whether threads can be
/// sampled.
pub(crate) fn begin() -> bool {
    sources::forget();
    if platform::thread_cpu_ns().is_none() {
        // Refused by a filter that the program was executed under.
        end_for_filter(false);
    }
    if IS_FILTERED.load(Relaxed) {
        return false;
    }
    ending::begin();
    OF_WRITING.forget();
    OF_RENEWAL.forget();
    let tick_ns = platform::tick_ns().unwrap_or(0).min(MOST_NS.into());
    TICK_NS.store(tick_ns as u32, Relaxed);
    has_signal(timer::place())
}

/// Takes a signal to interrupt threads by: one of [`timer::SIGNALS`], from this place on, that the
/// program does not handle. Says whether there is one.
fn has_signal(first: usize) -> bool {
    (first..timer::SIGNALS.len()).any(|place| {
        timer::set_place(place);
        let Some(handler) = timer::handler() else { return false };
        // In the child of a fork it is the runtime's own.
        if handler == interrupted as timer::Handler as usize {
            return true;
        }
        signals::inherited(handler);
        platform::is_no_handler(handler) && timer::handle(interrupted)
    })
}

/// Leaves the signal to the program, and goes on by another, if there is one. Else all threads run,
/// for good. Says whether it goes on. `leave` has nothing become of the signal.
pub(crate) fn leave_signal(leave: impl FnOnce()) -> bool {
    sources::stop();
    leave();
    let goes_on = has_signal(timer::place() + 1);
    if goes_on {
        sources::go_on();
    } else {
        end();
    }
    goes_on
}

/// Lets all threads run, for good: the program is about to forbid itself what a handler needs, or
/// handles the signal itself.
fn end() {
    process::is_sampled_no_more();
    sources::end();
}

/// Whether a filter of system calls has ended samples, whether no thread can tell its CPU time
/// since, and whether a note of it is due.
static IS_FILTERED: AtomicBool = AtomicBool::new(false);
static IS_UNTIMED: AtomicBool = AtomicBool::new(false);
static IS_NOTE_DUE: AtomicBool = AtomicBool::new(false);

/// As [`end`], for a filter of system calls. Says whether threads can still tell their CPU time.
pub(crate) fn end_for_filter(is_timed: bool) {
    end();
    if process::wants_samples() {
        IS_UNTIMED.fetch_or(!is_timed, Relaxed);
        if !IS_FILTERED.swap(true, Relaxed) {
            IS_NOTE_DUE.store(true, Relaxed);
        }
    }
}

/// The child of a fork has its parent's filter, and tells so itself.
pub(crate) fn heed_inherited_filter() {
    IS_NOTE_DUE.store(IS_FILTERED.load(Relaxed), Relaxed);
}

/// Has the calling thread tell what [`tell_of_filter`] tells: it may call nothing for long.
pub(crate) fn tell_of_filter_now() {
    if process::is_attached() {
        event::put(None, |_| true);
    }
}

/// Tells of a filter that has ended samples. Each chunk of a thread without CPU time says that the
/// clock tells its time, whatever a reader has before it; the process has one note. The thread has
/// a chunk, and the runtime makes no system call for this.
#[inline(always)]
pub(crate) fn tell_of_filter(thread: &Thread) {
    if IS_FILTERED.load(Relaxed) {
        write_of_filter(thread);
    }
}

#[cold]
fn write_of_filter(thread: &Thread) {
    const NOTE: &[u8] =
        b"the program filters its system calls: its CPU time is not sampled from here on";
    if !process::wants_samples() || process::has_trees() {
        return;
    }
    let sequence = thread.sequence.load(Relaxed);
    if IS_UNTIMED.load(Relaxed) && thread.clocked_in.load(Relaxed) != sequence {
        let bits = sample::END | sample::CLOCKED;
        let none = compose::Sample { bits, ..compose::Sample::default() };
        if writer::words(thread, &compose::sample(&none)) {
            thread.clocked_in.store(sequence, Relaxed);
        }
    }
    if IS_NOTE_DUE.swap(false, Relaxed) && !writer::text(thread, code::NOTE, NOTE) {
        IS_NOTE_DUE.store(true, Relaxed);
    }
}

/// Has the calling thread interrupted.
pub(crate) fn begin_thread(thread: &Thread) {
    if process::is_sampled() {
        sources::begin_thread(thread);
    }
    if process::wants_samples() {
        // Those before are no part of what the thread tells of.
        if let Some(usage) = platform::thread_usage() {
            thread.faults.store(usage.faults, Relaxed);
            thread.switches.store(usage.switches, Relaxed);
            thread.waits_told.store(usage.waits, Relaxed);
        }
        ending::begin_thread();
    }
}

/// Whether the thread's events are written in this process.
fn is_written(thread: &Thread) -> bool {
    thread.epoch.load(Relaxed) == process::epoch() && !process::has_trees()
}

/// Writes the calling thread's CPU time, behind which no sample may come.
pub(crate) fn tell_cpu_time() {
    let thread = thread::current();
    let is_running = is_written(thread) && thread.state() == State::Running;
    let is_timed = process::wants_samples() && !IS_UNTIMED.load(Relaxed);
    if !process::is_attached() || !is_timed || !is_running {
        return;
    }
    let Some(cpu_ns) = platform::thread_cpu_ns() else { return };
    let (kind, period_ns) = match thread.period_ns.load(Relaxed) {
        0 => (sample::ALONE, TIMER_NS as u32),
        of_events => (sample::USER, of_events),
    };
    let (bits, missed) = (sample::END | kind, thread.missed.swap(0, Relaxed));
    let end = compose::Sample { bits, site: 0, address: 0, cpu_ns, missed, period_ns };
    event::put(None, |thread| write_outside_pauses(thread, &end));
}

/// Source of an interruption.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// One of its events.
    Event,
    /// Its timer, beside events.
    Timer,
    /// Its timer, where it has no events.
    LoneTimer,
}

/// Where a thread was interrupted.
#[derive(Clone, Copy)]
struct Place {
    address: usize,
    /// The runtime looked through frames for an exception.
    is_unwinding: bool,
    /// The handler of another signal was about to begin there.
    is_at_handler: bool,
}

/// A thread was interrupted here.
#[derive(Clone, Copy)]
struct Interruption {
    source: Source,
    place: Place,
    /// The kernel's counts of the thread, where a timer interrupted it.
    usage: Option<Usage>,
    /// The thread's CPU time, and the part of it that this stands for.
    cpu_ns: u64,
    stands_for_ns: u32,
}

/// On the stack of whatever was interrupted, which may be a small one: nothing is called here that
/// takes more than some hundred bytes.
extern "C" fn interrupted(_signal: i32, information: &Information, context: usize) {
    let (is_of_event, is_of_timer) = (information.is_of_event(), information.is_of_timer());
    let thread = thread::current();
    let mut usage = None;
    if is_of_timer {
        // SAFETY: the kernel calls this so, and it has taken little of the stack.
        unsafe {
            let handler = interrupted as timer::Handler as usize;
            let other = arch::take_other_handler(context, handler);
            usage = platform::thread_usage();
            restarts::heed(thread, context, other, usage);
        }
    }
    let is_ours = (is_of_event || is_of_timer) && !IS_FILTERED.load(Relaxed);
    if !is_ours || process::life() != Life::On || clock::is_stopped() {
        return;
    }
    if !is_written(thread) {
        return;
    }
    if process::is_paused() {
        return pauses::meet(thread);
    }
    // A filter has the thread paused, which goes on at its next call or return.
    if thread.state() == State::Paused && thread.was_left_out.load(Relaxed) {
        return;
    }
    let events_ns = thread.period_ns.load(Relaxed);
    let source = match is_of_event {
        true if events_ns == 0 => return,
        true => Source::Event,
        false if events_ns == 0 => Source::LoneTimer,
        false => Source::Timer,
    };
    // SAFETY: as the kernel gives it to a handler.
    let (address, stack, is_at_handler) = unsafe {
        let interrupted = arch::interrupted_context(context);
        let stack = arch::stack_pointer_in_context(interrupted);
        (arch::address_in_context(interrupted), stack, interrupted != context)
    };
    let is_unwinding = stack < thread.unwinding.load(Relaxed);
    let cpu_ns = platform::thread_cpu_ns();
    let is_single = information.is_of_single_event();
    if is_single && cpu_ns.is_some_and(|cpu_ns| has_come_again(thread, cpu_ns)) {
        return;
    }
    let expirations = if is_of_event { 1 } else { information.expirations() };
    let since_look_ns = cpu_ns.and_then(|cpu_ns| off_cpu::since_look_ns(thread, cpu_ns));
    let stands_for_ns = match is_of_event {
        false => {
            let tick_ns = TICK_NS.load(Relaxed).max(TIMER_NS as u32);
            stands_for_ns(expirations, since_look_ns, tick_ns)
        }
        true if is_single => events_ns,
        true => sources::stands_for_ns(events_ns, number(thread, cpu_ns.unwrap_or(u64::MAX))),
    };
    let writes = |cpu_ns| {
        let place = Place { address, is_unwinding, is_at_handler };
        write(thread, Interruption { source, place, usage, cpu_ns, stands_for_ns })
    };
    if thread.is_busy() || !cpu_ns.is_some_and(writes) {
        let is_counted = source != Source::Timer;
        thread.missed.fetch_add(if is_counted { expirations } else { 0 }, Relaxed);
    }
    let is_renewal_due = |cpu_ns| match source {
        Source::Event => sources::is_renewal_due(thread, cpu_ns),
        Source::Timer => false,
        Source::LoneTimer => {
            sources::has_lost_events(thread) && waits_seldom(thread, usage, cpu_ns)
        }
    };
    if let Some(cpu_ns) = cpu_ns.filter(|_| !thread.is_busy())
        && is_renewal_due(cpu_ns)
    {
        OF_RENEWAL.lend(renew, cpu_ns as usize);
    }
}

extern "C" fn renew(cpu_ns: usize) {
    sources::renew(thread::current(), cpu_ns as u64);
}

/// Whether the event that is to come once would have interrupted a thread before, in the kernel.
/// The kernel lets it come then when as much time is over again, and code that is seldom in the
/// kernel would have too many samples.
fn has_come_again(thread: &Thread, cpu_ns: u64) -> bool {
    let age_ns = cpu_ns.saturating_sub(thread.events_began_at.load(Relaxed));
    sources::is_repeated(age_ns, thread.single_event_ns.load(Relaxed))
}

/// Of the event that interrupted a thread at this CPU time, and comes again each period: how often
/// it came, with those that fell into the kernel.
fn number(thread: &Thread, cpu_ns: u64) -> u64 {
    let period_ns = u64::from(thread.period_ns.load(Relaxed)).max(1);
    let age_ns = cpu_ns.saturating_sub(thread.events_began_at.load(Relaxed));
    age_ns.saturating_add(period_ns / 2) / period_ns
}

/// CPU time that so many expirations of a timer stand for. The kernel looks at timers at its ticks,
/// so a sample stands for whole ones. The signal comes at the end of a system call, and what the
/// call has had since its tick would count twice otherwise, at the cost of the code behind it.
///
/// Expirations also count CPU time in which no tick came, since the thread did not run at any.
/// Where the thread has waited since the timer's last signal, and looked since, the ticks came
/// behind that look.
fn stands_for_ns(expirations: u32, since_look_ns: Option<u64>, tick_ns: u32) -> u32 {
    let since_ns = expirations.saturating_mul(TIMER_NS as u32).min(MOST_NS);
    let since_look_ns = since_look_ns.map_or(u32::MAX, |ns| ns.min(u32::MAX.into()) as u32);
    match since_look_ns < since_ns {
        true => since_look_ns.max(tick_ns),
        false => (since_ns - since_ns % tick_ns).max(tick_ns),
    }
}

/// Of the kernel.
static TICK_NS: AtomicU32 = AtomicU32::new(0);

/// Writes a sample; in the next chunk where this one has no room.
fn write(thread: &Thread, here: Interruption) -> bool {
    // A thread that calls nothing goes on here when a pause is over.
    let is_running = match thread.state() {
        State::Running => true,
        State::Paused => false,
        _ => return false,
    };
    let Interruption { place: Place { address, is_unwinding, is_at_handler }, cpu_ns, .. } = here;
    // SAFETY: the thread runs it.
    let has_hook = || unsafe { module::has_hook_at(address) };
    let is_in_hook = is_unwinding || arch::own_code().contains(&address) || has_hook();
    let mut bits = if is_in_hook { sample::HOOK } else { 0 };
    bits |= match here.source {
        Source::Event => sample::USER,
        Source::Timer => {
            // The kernel does not count page faults that end in a signal (SIGSEGV).
            let has_met = has_met_faults(thread, here.usage, cpu_ns) || is_at_handler;
            if has_met { sample::FAULTS } else { 0 }
        }
        Source::LoneTimer => sample::ALONE,
    };
    // An event that falls due where the kernel takes no interrupts comes behind the call.
    if arch::is_behind_call_of_kernel(address) {
        bits |= sample::KERNEL;
    }
    let address = address as u64;
    let site = if is_in_hook { 0 } else { module::sampled_site(address) };
    let is_counted = here.source != Source::Timer;
    let missed = if is_counted { thread.missed.swap(0, Relaxed) } else { 0 };
    let period_ns = here.stands_for_ns;
    let sample = compose::Sample { bits, site, address, cpu_ns, missed, period_ns };
    let is_all_told = is_running && thread.jumped().is_none() && has_told_of_pauses(thread);
    let has_room = is_all_told && write_outside_pauses(thread, &sample);
    let is_written = has_room || write_carefully(&sample);
    if !is_written {
        thread.missed.fetch_add(missed, Relaxed);
    }
    is_written
}

/// Writes a sample with the thread's CPU time, of which it tells what was outside of pauses.
fn write_outside_pauses(thread: &Thread, sample: &compose::Sample) -> bool {
    let cpu_ns = pauses::outside(thread, sample.cpu_ns);
    let words = compose::sample(&compose::Sample { cpu_ns, ..*sample });
    writing::write(thread, Told::Leap(&words))
}

/// Whether a thread with events may have met page faults since its timer interrupted it last.
fn has_met_faults(thread: &Thread, usage: Option<Usage>, cpu_ns: u64) -> bool {
    let Some(usage) = usage else { return true };
    heed_switches(thread, usage.switches, cpu_ns);
    thread.faults.swap(usage.faults, Relaxed) != usage.faults
}

/// A thread with events has left its processor so often, and has had so much CPU time.
fn heed_switches(thread: &Thread, switches: u64, cpu_ns: u64) {
    if each_wait_ns(thread, switches, cpu_ns).is_some_and(|each_ns| each_ns < EACH_WAIT_NS) {
        sources::without_events(thread);
    }
}

/// Whether a thread that has lost its events no longer waits all the time.
fn waits_seldom(thread: &Thread, usage: Option<Usage>, cpu_ns: u64) -> bool {
    let switches = usage.map(|usage| usage.switches);
    let each_ns = switches.and_then(|switches| each_wait_ns(thread, switches, cpu_ns));
    each_ns.is_some_and(|each_ns| each_ns > 2 * EACH_WAIT_NS)
}

/// CPU time from one wait of a thread to the next since the last look, if the next look is due. It
/// has left its processor so often, and has had so much CPU time.
fn each_wait_ns(thread: &Thread, switches: u64, cpu_ns: u64) -> Option<u64> {
    let new_ns = cpu_ns.saturating_sub(thread.counted_at.load(Relaxed));
    if new_ns < LOOK_NS {
        return None;
    }
    thread.counted_at.store(cpu_ns, Relaxed);
    let new = switches.saturating_sub(thread.switches.swap(switches, Relaxed));
    Some(new_ns / new.max(1))
}

/// CPU time of a thread from one look at its waits to the next, nanoseconds.
const LOOK_NS: u64 = 10_000_000;
/// Least CPU time from one wait to the next of a thread with events. A wait of such a thread costs
/// some microseconds. Without events, the kernel's time around waits is told as too little: it
/// keeps interrupts back there.
const EACH_WAIT_NS: u64 = 30_000;

/// Whether the thread's stream has all pauses up to now. Time that a sample moves on to would
/// include them otherwise.
fn has_told_of_pauses(thread: &Thread) -> bool {
    process::units_of_pauses_over() == Some(thread.left_out.load(Relaxed))
}

/// A stack for what takes more of one than there may be where a thread was interrupted. One thread
/// at a time uses it.
#[repr(C, align(16))]
struct Stack<const SIZE: usize> {
    bytes: UnsafeCell<[u8; SIZE]>,
    is_used: AtomicBool,
}
// SAFETY: the thread that has set the flag uses the bytes.
unsafe impl<const SIZE: usize> Sync for Stack<SIZE> {}
static OF_WRITING: Stack<{ 32 << 10 }> = Stack::new();
static OF_RENEWAL: Stack<{ 8 << 10 }> = Stack::new();

impl<const SIZE: usize> Stack<SIZE> {
    const fn new() -> Self {
        Self { bytes: UnsafeCell::new([0; SIZE]), is_used: AtomicBool::new(false) }
    }

    /// In the child of a fork, another thread of the parent may have had it.
    fn forget(&self) {
        self.is_used.store(false, Relaxed);
    }

    /// Does something on it; says whether it was free.
    fn lend(&self, work: extern "C" fn(usize), argument: usize) -> bool {
        // It is too small for handlers of the program's, which may jump out of it besides.
        let _mask = Mask::new();
        if self.is_used.swap(true, Acquire) {
            return false;
        }
        let top = self.bytes.get() as usize + SIZE;
        // SAFETY: the flag was not set before.
        unsafe { arch::on_stack(top, work, argument) };
        self.is_used.store(false, Release);
        true
    }
}

/// A sample to be written, and whether it is.
struct Task<'a> {
    sample: &'a compose::Sample,
    is_done: bool,
}

/// Writes as a hook does: first what the thread has not told yet, and in the next chunk where this
/// one is full. A thread that calls nothing would have no room for samples otherwise.
#[cold]
fn write_carefully(sample: &compose::Sample) -> bool {
    let mut task = Task { sample, is_done: false };
    OF_WRITING.lend(change_and_write, &raw mut task as usize) && task.is_done
}

extern "C" fn change_and_write(task: usize) {
    // SAFETY: the caller waits for this.
    let task = unsafe { &mut *(task as *mut Task<'_>) };
    task.is_done = event::put(None, |thread| write_outside_pauses(thread, task.sample));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: system calls that are told longer than they were, as naps lie between the ticks.
    #[test]
    fn a_sample_of_a_timer_stands_for_ticks_since_the_last_wait() {
        const TICK: u32 = 4_000_000;
        let since_wait = |ns: u64| stands_for_ns(9, Some(ns), TICK);
        assert_eq!(since_wait(100_000), TICK);
        assert_eq!(since_wait(5_500_000), 5_500_000);
        assert_eq!([since_wait(50_000_000), stands_for_ns(9, None, TICK)], [2 * TICK; 2]);
        assert_eq!(stands_for_ns(1, None, TICK), TICK);
        assert_eq!(stands_for_ns(3, None, TIMER_NS as u32), 3_000_000);
        assert_eq!(stands_for_ns(u32::MAX, None, TIMER_NS as u32), 2_147_000_000);
    }
}
