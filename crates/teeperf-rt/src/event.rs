//! An event the long way round: the clock moved, the address has no site in its own module, the
//! chunk is full, the thread is new, recording is paused, the process forked, or recording is over.

pub(crate) mod writing;

use crate::block::Block;
use crate::chunk;
use crate::clock;
use crate::filter;
use crate::module;
use crate::off_cpu;
use crate::pauses;
use crate::platform::Mask;
use crate::pool;
use crate::process::{self, Life};
use crate::sampler;
use crate::signals;
use crate::stacks;
use crate::sums;
use crate::thread::{self, Losses, State, Thread};
use crate::trigger;
use crate::writer;
use core::sync::atomic::Ordering::Relaxed;
use teeperf_wire::word::{self, code, gap};
use writing::Told;

/// What happened.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) address: u64,
    pub(crate) is_return: bool,
    /// Of a call: alike for calls from one place at one depth.
    pub(crate) frame: usize,
    /// Of a return that may be timed: the counter when the hook began.
    pub(crate) counter: Option<u64>,
}

/// Called by a hook with nothing done yet, at this stack pointer. `kind` is 0 for a call, 1 for a return; `frame` is the stack
/// pointer and where the function returns to, added.
///
/// # Safety
/// `block` is the module block of the stub that calls.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub unsafe extern "C" fn teeperf_rt_event(
    address: usize,
    kind: u32,
    block: &Block,
    frame: usize,
    pointer: usize,
) {
    let is_return = kind & 1 != 0;
    stacks::look(
        block,
        stacks::Place {
            // Before the hook was called.
            pointer: pointer as u64 + size_of::<usize>() as u64,
            address: address as u64,
            site: frame.wrapping_sub(pointer) as u64,
            is_call: !is_return,
        },
    );
    let counter = filter::counter_at_return(is_return);
    let event = Event { address: address as u64, is_return, frame, counter };
    if !sums::sum(event, block) {
        event_slowly(event, block);
    }
}

#[inline(never)]
fn event_slowly(event: Event, block: &Block) {
    pool::heed_filters();
    for _ in 0..2 {
        let epoch = process::epoch();
        let is_ready = is_ready(Some(block));
        if is_ready && record(thread::current(), until_it_waits(event)) {
            return;
        }
        if epoch == process::epoch() && process::life() != Life::Unborn {
            let saw_pause = || thread::current().saw_pause.load(Relaxed);
            let is_paused = if is_ready { saw_pause() } else { process::is_paused() };
            if is_ready && is_paused {
                let thread = thread::current();
                if trigger::fires(thread, event) && record(thread, event) {
                    return;
                }
                return pass_by(thread, event);
            }
            let is_meant = is_paused || !process::is_attached();
            return lose(thread::current(), event, is_meant);
        }
        // A signal handler has forked, and this is the child: it begins anew.
    }
}

/// Where the thread is not in the midst of its chunk, it may wait before the event is written, and say so in a gap before
/// it: then the counter is read behind that.
fn until_it_waits(event: Event) -> Event {
    let is_running = thread::current().state() == State::Running;
    Event { counter: event.counter.filter(|_| is_running), ..event }
}

/// An event in a pause.
fn pass_by(thread: &Thread, event: Event) {
    if filter::passes(thread, event.address) == Some(false) {
        return;
    }
    // Of a call before the pause, which a filter may have left out: a number of returns would not tell.
    let is_told = event.is_return
        && filter::is_told(thread)
        && thread.state() == State::Paused
        && !thread.has_entered()
        && out_of_pause(thread, |thread| matches!(write(thread, event), Written::Done));
    if !is_told {
        lose(thread, event, true);
    }
}

/// Writes something as if recording went on for so long; says whether it is written.
fn out_of_pause(thread: &Thread, write: impl FnOnce(&Thread) -> bool) -> bool {
    claimed(thread, || resume(thread));
    let is_written = thread.state() == State::Running && filter::tell(thread) && write(thread);
    if thread.state() == State::Running {
        pause(thread);
    }
    is_written
}

/// Counts an event that is not written. Where a signal handler went on with recording just before, and
/// told of its own losses, this one is told as well, before the thread's next event.
fn lose(thread: &Thread, event: Event, is_meant: bool) {
    if process::lose_early() {
        return;
    }
    thread.lose(event.is_return, is_meant);
    if process::is_attached() && is_ours(thread) && !thread.is_busy() {
        tell_losses(thread);
    }
}

/// Writes what was counted as lost, where the thread has a chunk.
fn tell_losses(thread: &Thread) {
    if thread.state() == State::Running && thread.has_losses() {
        chunk::settle_losses(thread, gap::NESTED);
    }
}

/// Writes what `write` writes, which is no event, in the next chunk where the present one has no
/// room; says whether it is written. While nothing is recorded, or in the midst of a change of chunks, it is
/// not.
pub(crate) fn put(block: Option<&Block>, write: impl Fn(&Thread) -> bool) -> bool {
    if !is_ready(block) {
        return false;
    }
    let write = |thread: &Thread| if write(thread) { Written::Done } else { Written::NoRoom };
    write_in_turn(thread::current(), 2, write)
}

/// Whether the caller interrupts a stretch for which the thread is claimed.
#[inline(always)]
pub(crate) fn is_claimed() -> bool {
    process::is_attached() && thread::current().is_busy()
}

/// Whether the process is recorded, and the thread not in the midst of something. Switches the
/// caller's module off where the process is not.
#[inline(always)]
fn is_ready(block: Option<&Block>) -> bool {
    if process::life() != Life::On || clock::is_stopped() {
        return wake_or_end(block);
    }
    !thread::current().is_busy()
}

#[cold]
fn wake_or_end(block: Option<&Block>) -> bool {
    if process::life() == Life::On {
        process::stop();
    }
    if process::is_on() {
        return !thread::current().is_busy();
    }
    if let Some(block) = block.filter(|_| process::life() == Life::Off) {
        block.switch_off();
    }
    false
}

/// Writes an event, in the chunk there is or in the next; says whether it is written.
fn record(thread: &Thread, event: Event) -> bool {
    if process::has_trees() {
        return sums::record(thread, event);
    }
    let sequence = thread.sequence.load(Relaxed);
    write_in_turn(thread, 4, |thread| {
        let is_same_chunk = thread.sequence.load(Relaxed) == sequence;
        write(thread, Event { counter: event.counter.filter(|_| is_same_chunk), ..event })
    })
}

/// What came of a try to write.
enum Written {
    Done,
    /// The chunk is full.
    NoRoom,
    /// Another filter is to be told first.
    Early,
}

/// Writes what `write` writes in the chunk there is or, so many times, in the next; says whether it is written.
fn write_in_turn(thread: &Thread, tries: u32, write: impl Fn(&Thread) -> Written) -> bool {
    let (mut tries, mut filters) = (tries, MOST_FILTERS);
    while tries > 0 && filters > 0 {
        if !is_running(thread) {
            return false;
        }
        let written = if filter::tell(thread) { write(thread) } else { Written::NoRoom };
        match written {
            Written::Done => return true,
            Written::Early => filters -= 1,
            Written::NoRoom if change_chunk(thread) => tries -= 1,
            Written::NoRoom => return false,
        }
    }
    false
}

/// Most filters that may come while one event is written: they come milliseconds apart.
const MOST_FILTERS: u32 = 100;

/// Goes on to the next chunk; says whether there is one. Where recording ended just before, the event is
/// still written: the next may find room for itself where this one, with the time, had none.
fn change_chunk(thread: &Thread) -> bool {
    if !is_current(thread) {
        return false;
    }
    // Asking the recorder takes long, as does memory that nobody has used.
    pool::map_announced();
    claimed(thread, || {
        if thread.state() == State::Running {
            chunk::change(thread);
        }
    });
    let is_running = has_chunk(thread);
    if is_running {
        // As above. Where a handler changed the chunk again, this one's pages do no harm.
        pool::prepare(thread.chunk.load(Relaxed) as usize);
    }
    is_running
}

/// Does what must not be left in the midst of it, nor begun again. Signals wait meanwhile; of those that
/// cannot, the handlers' events are counted, and written behind it, if that can be. Does nothing where a
/// handler has forked just before and this is the child.
pub(crate) fn claimed(thread: &Thread, what: impl FnOnce()) {
    let mask = Mask::new();
    thread.enter(&mask);
    if is_current(thread) {
        what();
    }
    thread.leave();
    drop(mask);
    if is_current(thread) {
        tell_losses(thread);
    }
}

/// Whether the block is that of the calling thread in this process, and not in one that it was forked from.
fn is_current(thread: &Thread) -> bool {
    process::life() == Life::On && core::ptr::eq(thread, thread::current())
}

/// Whether the thread has a chunk to write into, in which all that came before is told; sees to it that
/// it has, where that can be.
pub(crate) fn is_running(thread: &Thread) -> bool {
    let is_running = has_chunk(thread);
    if is_running {
        chunk::tell_jump(thread);
    }
    is_running
}

fn has_chunk(thread: &Thread) -> bool {
    if !is_current(thread) {
        return false;
    }
    if !is_ours(thread) {
        claimed(thread, || {
            if !is_ours(thread) {
                thread.reset(process::epoch());
            }
        });
    }
    filter::heed();
    let is_left_out = filter::leaves_out(thread);
    let is_paused = process::is_paused() || is_left_out;
    thread.saw_pause.store(is_paused, Relaxed);
    if is_left_out {
        thread.was_left_out.store(true, Relaxed);
    }
    match thread.state() {
        State::Running if !is_paused => {
            if let Some(units) = process::units_of_pauses_over()
                && units != thread.left_out.load(Relaxed)
            {
                pass_over(thread);
                if !is_current(thread) || thread.state() != State::Running {
                    return false;
                }
            }
            sampler::tell_of_filter(thread);
            if module::is_pending() {
                module::announce(thread);
            }
            return true;
        }
        State::Running => pause(thread),
        // What returned before another filter came is told apart from what returns under it.
        State::Paused if is_paused && filter::is_to_be_told(thread) => {
            out_of_pause(thread, |_| true);
        }
        _ if is_paused => {}
        State::New => {
            if process::has_trees() {
                // Memory that is there and only not mapped is none to wait for.
                pool::map_announced();
            }
            claimed(thread, || {
                if thread.state() == State::New {
                    chunk::begin_thread(thread);
                }
            });
            signals::unblock();
            wait(thread);
        }
        State::Paused => {
            claimed(thread, || resume(thread));
            wait(thread);
        }
        State::Dropping => come_back(thread, gap::DROPPED),
        State::Stalled => come_back(thread, gap::STALLED),
        State::Waiting => wait(thread),
    }
    thread.state() == State::Running && is_current(thread)
}

// Whoever claims the thread looks at its state once more: a signal handler may have changed it, and the
// chunk with it, just before.

fn pause(thread: &Thread) {
    claimed(thread, || {
        if thread.state() != State::Running {
            return;
        }
        let paused = process::paused_units().saturating_sub(thread.left_out.load(Relaxed));
        sums::pause(thread, paused);
        pauses::meet(thread);
        thread.kept.store(thread.cursor.keep(), Relaxed);
        thread.since.store(clock::now(), Relaxed);
        thread.set_state(State::Paused);
        chunk::is_apart(thread, true);
    });
}

/// Tells of pauses in which the thread has called nothing.
#[cold]
fn pass_over(thread: &Thread) {
    claimed(thread, || {
        let (all, told) = (process::paused_units(), thread.left_out.load(Relaxed));
        if thread.state() != State::Running || all <= told {
            return;
        }
        leave_out(thread, Losses::default(), all - told);
        chunk::tells_of_pauses(thread, all);
    });
}

/// Writes of a pause what was left out in it. The thread is claimed, and runs.
fn leave_out(thread: &Thread, meant: Losses, units: u64) {
    sums::leave_out(thread, units);
    pauses::end(thread, off_cpu::leave_out(thread, units));
    // What passed before a jump is time of the function that was left: of that the pause is left out.
    let write = || {
        let is_jump = thread.jumped().is_some();
        let before = if is_jump { Losses::default() } else { meant };
        writer::gap(thread, gap::PAUSED, before, units)
            && (!is_jump || chunk::tell_jump(thread) && writer::gap(thread, gap::PAUSED, meant, 0))
    };
    let mut is_written = write();
    if !is_written {
        chunk::change(thread);
        is_written = thread.state() == State::Running && write();
    }
    thread.settle(meant, is_written);
    if thread.state() == State::Waiting {
        // Of one time without events there is one gap.
        thread.since.store(thread.since.load(Relaxed).saturating_sub(units), Relaxed);
    }
}

/// The thread is claimed.
fn resume(thread: &Thread) {
    if thread.state() != State::Paused {
        return;
    }
    let (all, told) = (process::paused_units(), thread.left_out.load(Relaxed));
    let units = if thread.was_left_out.swap(false, Relaxed) {
        clock::now().saturating_sub(thread.since.load(Relaxed))
    } else {
        all.saturating_sub(told)
    };
    thread.set_state(State::Running);
    thread.cursor.set(thread.kept.load(Relaxed));
    move_time(thread);
    let (meant, lost) = thread.take_losses().unwrap_or_default().apart();
    leave_out(thread, meant, units);
    thread.keep(lost);
    chunk::tells_of_pauses(thread, all);
    chunk::is_apart(thread, false);
}

fn come_back(thread: &Thread, reason: u32) {
    if !chunk::is_look_due(thread) {
        return;
    }
    pool::map_announced();
    claimed(thread, || {
        if matches!(thread.state(), State::Dropping | State::Stalled) {
            chunk::find(thread, None, reason);
        }
    });
}

/// Waits for a chunk, where the thread is to. It is not claimed meanwhile: signal handlers that come wait as
/// well, and who finds a chunk first begins it for all. One that interrupts many others has its events counted. A
/// handler may also fork: then the child begins anew.
fn wait(thread: &Thread) {
    let waits = || thread.state() == State::Waiting && process::is_attached() && is_current(thread);
    if !waits() {
        return;
    }
    let Some(outer) = thread.begin_wait() else { return look(thread) };
    let mut seen = chunk::Wait::default();
    while waits() {
        let slept = chunk::sleep_unless(thread, &mut seen, || {
            look(thread);
            thread.state() != State::Waiting
        });
        if slept.is_none() {
            claimed(thread, || {
                if thread.state() == State::Waiting {
                    thread.since.store(clock::nanoseconds(), Relaxed);
                    thread.set_state(State::Stalled);
                }
            });
            process::stalls();
        }
    }
    thread.end_wait(outer);
}

/// Takes a chunk, if one is free, for a thread that waits.
fn look(thread: &Thread) {
    pool::map_announced();
    claimed(thread, || {
        if thread.state() == State::Waiting {
            let waited = clock::now().saturating_sub(thread.since.load(Relaxed));
            chunk::find(thread, Some(waited), gap::NESTED);
        }
    });
}

/// Whether the thread's block is of this process, not of the one that it was forked from.
fn is_ours(thread: &Thread) -> bool {
    thread.epoch.load(Relaxed) == process::epoch()
}

/// Brings the chunk's time up to now, where there is room.
fn move_time(thread: &Thread) {
    let now = clock::now();
    if now > thread.time.swap(now, Relaxed) {
        writer::escape(thread, code::STAMP, 0, &word::split62(now));
    }
}

/// Writes the time where it moved, and the event, as one, if it is to be recorded; says whether there was room. Where
/// another filter has come meanwhile, that one comes first.
fn write(thread: &Thread, event: Event) -> Written {
    match filter::passes(thread, event.address) {
        Some(true) => {}
        Some(false) => return Written::Done,
        None => return Written::Early,
    }
    let is_written = writing::write(thread, Told::Event(event));
    if filter::is_to_come(thread) {
        thread.keep_apart();
    }
    if is_written { Written::Done } else { Written::NoRoom }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_wire::shared::ClockKind;
    use teeperf_wire::shared::clock as clock_page;

    /// A pause may end where the chunk is full and no other is free.
    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn a_pause_and_the_wait_behind_it_are_one_gap() {
        let page = vec![0_u64; clock_page::SIZE / 8].leak().as_mut_ptr().cast();
        // SAFETY: as many bytes as were made.
        let page: &mut [u32] =
            unsafe { core::slice::from_raw_parts_mut(page, clock_page::SIZE / 4) };
        page[clock_page::TICK / 4] = 1000;
        // Over, after 600 units.
        page[clock_page::PAUSES / 4] = 600 << 1;
        clock::set(page.as_ptr() as usize, ClockKind::Tick, false, 1_000_000);
        let thread = Thread::default();
        thread.kept.store(crate::cursor::PARKED, Relaxed);
        thread.since.store(420, Relaxed);
        thread.set_state(State::Paused);
        resume(&thread);
        assert_eq!((thread.state(), thread.since.load(Relaxed)), (State::Waiting, 400));
    }
}
