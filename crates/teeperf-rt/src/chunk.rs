//! A thread's chunk: begun, handed over, looked for. What does so runs with the thread claimed
//! ([`Thread::enter`]) and signals kept back.

use crate::clock;
use crate::cursor::{self, Cursor, Parked};
use crate::filter;
use crate::leap;
use crate::module;
use crate::off_cpu;
use crate::platform;
use crate::pool::{self, Taken};
use crate::process;
use crate::sampler;
use crate::sums;
use crate::thread::{Losses, State, Thread};
use crate::writer::{self, Places};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};
use teeperf_wire::shared::{ClockKind, OnFull, STALL_NS, UNKNOWN_THREAD, chunk, state};
use teeperf_wire::word::{self, gap};

/// Words at a chunk's end that hooks do not get: for the word that ends it, and for
/// a last gap when recording stops.
const TAIL: usize = 10;
/// First sleep of a thread that waits.
const SLICE_NS: u64 = 10_000_000;
/// Longest: thousands that wait must leave the recorder some processor.
const LONG_SLICE_NS: u64 = 160_000_000;
/// How often a thread without a chunk looks for one, beside each time the tick moved.
const RETRY_EVENTS: u64 = 1024;

/// Gives the thread its first chunk, if there is one; else its state says what becomes of its events.
pub(crate) fn begin_thread(thread: &Thread) {
    if thread.serial.load(Relaxed) == 0 {
        thread.serial.store(process::next_serial(), Relaxed);
        let serial = thread.serial.load(Relaxed);
        thread.tid.store(platform::thread_id().unwrap_or(UNKNOWN_THREAD | serial), Relaxed);
        thread.find_rseq();
        sampler::begin_thread(thread);
        // The thread has waited for its timers and events, which is none of its time.
        off_cpu::begin_thread(thread);
    }
    if !find(thread, None, gap::NESTED) {
        run_out(thread);
    }
}

/// Hands the present chunk over and takes the next, if there is one; else the thread's state says what
/// becomes of its events.
pub(crate) fn change(thread: &Thread) {
    if let Some(taken) = take(thread) {
        hand_over(thread, None);
        begin(thread, taken, None, gap::NESTED);
        return;
    }
    let stops = process::on_full() == OnFull::Stop;
    hand_over(thread, stops.then_some(gap::STOPPED));
    run_out(thread);
}

/// Takes a free chunk, if there is one, for a thread that has none, waited so long, and lost what it lost
/// for this reason; says whether there was.
pub(crate) fn find(thread: &Thread, waited: Option<u64>, reason: u32) -> bool {
    let taken = take(thread);
    if let Some(taken) = taken {
        sums::come_back(thread);
        begin(thread, taken, waited, reason);
    }
    taken.is_some()
}

/// A thread's first chunk is a small one.
fn take(thread: &Thread) -> Option<Taken> {
    if process::has_trees() && !sums::take(thread, &thread.serial) {
        return None;
    }
    // Threads begin their searches in different places, but each always in the same: the chunks in
    // use stay few, and warm in the cache.
    let start = (thread.serial.load(Relaxed) as usize).wrapping_mul(13);
    pool::take(thread.sequence.load(Relaxed) > 0, start)
}

/// No chunk is free: what becomes of the thread's events.
fn run_out(thread: &Thread) {
    sums::run_out(thread);
    pool::want();
    match process::on_full() {
        OnFull::Wait => {
            thread.since.store(clock::now(), Relaxed);
            thread.progress.store(clock::progress(), Relaxed);
            thread.progress_at.store(clock::nanoseconds(), Relaxed);
            thread.set_state(State::Waiting);
        }
        OnFull::Drop => {
            thread.since.store(clock::nanoseconds(), Relaxed);
            thread.set_state(State::Dropping);
        }
        OnFull::Stop => process::stop(),
    }
}

/// Whether a thread that counts its events is to look for a chunk again: each time the clock has moved, and
/// now and then if it has not. It stands when the recorder is gone, which is found out here as well.
pub(crate) fn is_look_due(thread: &Thread) -> bool {
    let watched = clock::watched().load(Relaxed);
    // Not where hooks look: one that was interrupted would find there what it saw, and memory since.
    let moved = watched != thread.looked.load(Relaxed);
    let is_turn = thread.losses().is_multiple_of(RETRY_EVENTS);
    if !moved && !is_turn {
        return false;
    }
    thread.looked.store(watched, Relaxed);
    if is_turn {
        pool::want();
        let now = clock::nanoseconds();
        if now.saturating_sub(thread.since.load(Relaxed)) >= STALL_NS {
            thread.since.store(now, Relaxed);
            process::stop_if_alone();
        }
    }
    true
}

/// Writes what was counted as lost, where there is room.
pub(crate) fn settle_losses(thread: &Thread, reason: u32) {
    settle(thread, reason, thread.take_losses().unwrap_or_default());
}

/// Writes a jump that is still to be told, if there is one; says whether there was room. What is lost behind
/// it is told behind it.
pub(crate) fn tell_jump(thread: &Thread) -> bool {
    let Some(name) = thread.jumped() else { return true };
    let is_written = leap::tell_late(thread, name);
    if is_written {
        thread.forget_jump();
    }
    is_written
}

fn settle(thread: &Thread, reason: u32, losses: Losses) {
    let (meant, lost) = losses.apart();
    let mut is_written = tell_jump(thread);
    for (reason, part) in [(gap::PAUSED, meant), (reason, lost)] {
        if part == Losses::default() {
            continue;
        }
        is_written = is_written && writer::gap(thread, reason, part, 0);
        thread.settle(part, is_written);
    }
}

/// What a thread that waits has seen.
pub(crate) struct Wait {
    /// Segments mapped before the last look, and the word that moves when chunks are freed.
    seen: Option<(usize, u32)>,
    /// How long to sleep next.
    slice_ns: u64,
}

impl Default for Wait {
    fn default() -> Self {
        Self { seen: None, slice_ns: SLICE_NS }
    }
}

/// Sleeps until a chunk may be free, if `looks` has not found one. Nothing when there is no use in waiting: the
/// recorder gave no memory for [`STALL_NS`].
pub(crate) fn sleep_unless(
    thread: &Thread,
    wait: &mut Wait,
    looks: impl FnOnce() -> bool,
) -> Option<()> {
    let wake = pool::wake_word()?;
    // What was freed before it moved to this is seen below.
    let before = wake.load(Acquire);
    let news = Some((pool::mapped(), before));
    // Without news there is hardly anything to find, and a look at thousands of chunks takes its time. Once in a
    // long while it is made all the same: of a chunk that another thread gives back by itself there is no news.
    let is_news = wait.seen != news;
    wait.slice_ns = if is_news { SLICE_NS } else { (wait.slice_ns * 2).min(LONG_SLICE_NS) };
    let is_due = is_news || wait.slice_ns == LONG_SLICE_NS;
    wait.seen = news;
    if is_due && looks() {
        return Some(());
    }
    let (progress, now) = (clock::progress(), clock::nanoseconds());
    if thread.progress.swap(progress, Relaxed) != progress {
        thread.progress_at.store(now, Relaxed);
    } else if now.saturating_sub(thread.progress_at.load(Relaxed)) >= STALL_NS {
        return None;
    }
    platform::sleep_on(wake, before, wait.slice_ns);
    Some(())
}

/// Makes a taken chunk the thread's own: header, clock, cursor. Then what has to stand at its start: time
/// waited, what is not there, modules that nobody has announced yet.
fn begin(thread: &Thread, taken: Taken, waited: Option<u64>, reason: u32) {
    // First whose it is, so that it is not forgotten should a signal handler jump out of here.
    thread.chunk_size.store(taken.size as u32, Relaxed);
    thread.chunk_state.store((&raw const *taken.state).cast_mut(), Relaxed);
    thread.chunk.store(taken.start, Relaxed);
    let watched = clock::watched().load(Relaxed);
    let now = clock::now();
    let sequence = thread.sequence.load(Relaxed) + 1;
    narrow(taken.start, chunk::PID).store(process::id(), Relaxed);
    narrow(taken.start, chunk::TID).store(thread.tid.load(Relaxed), Relaxed);
    narrow(taken.start, chunk::SERIAL).store(thread.serial.load(Relaxed), Relaxed);
    narrow(taken.start, chunk::SEQUENCE).store(sequence, Relaxed);
    wide(taken.start, chunk::TIME).store(now, Relaxed);
    let cpu_ns = thread.cpu_ns(now, sequence == 1).unwrap_or(u64::MAX);
    wide(taken.start, chunk::CPU_NS).store(cpu_ns, Relaxed);
    wide(taken.start, chunk::STACK).store(thread.stack.load(Relaxed), Relaxed);
    if sequence == 1 || waited.is_some() {
        // Before it began there was nothing, and what it waited is left out as a whole.
        thread.left_out.store(process::paused_units(), Relaxed);
    }
    wide(taken.start, chunk::LEFT_OUT).store(thread.left_out.load(Relaxed), Relaxed);
    // Written last, so that whoever sees it sees the rest.
    narrow(taken.start, chunk::CLOCK).store(clock::kind() as u32, Release);
    thread.sequence.store(sequence, Relaxed);

    thread.time.store(now, Relaxed);
    thread.last_high.store((now >> 32) as u32, Relaxed);
    let last = match clock::kind() {
        ClockKind::Tick => now as u32,
        ClockKind::Cycle => watched,
    };
    thread.last.store(last, Relaxed);
    if process::has_trees() || filter::is_to_come(thread) {
        thread.keep_apart();
    }
    thread.set_state(State::Running);
    thread.end_all_waits();
    let words = (taken.size - chunk::WORDS) / 4 - TAIL;
    thread.cursor.set(Cursor::at(taken.start as u64 + chunk::WORDS as u64, words as u64));

    // The thread that forked is the child's first, whichever thread comes here first.
    if sequence == 1 && process::is_forked() && thread.tid.load(Relaxed) == process::id() {
        writer::gap(thread, gap::FORKED, Losses::default(), 0);
    }
    if let Some(units) = waited {
        off_cpu::leave_out(thread, units);
        writer::gap(thread, gap::WAITED, Losses::default(), units);
    }
    settle_losses(thread, reason);
    module::announce(thread);
}

/// The thread has told of pauses of so many units in all.
pub(crate) fn tells_of_pauses(thread: &Thread, units: u64) {
    thread.left_out.store(units, Relaxed);
    let start = thread.chunk.load(Relaxed);
    if !start.is_null() {
        // Behind the words that tell of them.
        wide(start, chunk::LEFT_OUT).store(units, Release);
    }
}

/// Whether the thread counts its events and does not write them, for the recorder.
pub(crate) fn is_apart(thread: &Thread, is_apart: bool) {
    let start = thread.chunk.load(Relaxed);
    if !start.is_null() {
        narrow(start, chunk::APART).store(is_apart.into(), Release);
    }
}

/// A field of the header of a chunk that this thread took.
fn narrow(start: *mut u8, offset: usize) -> &'static AtomicU32 {
    // SAFETY: within a taken chunk, in a segment that stays mapped; chunks are aligned to pages and
    // the fields to their size. Other processes may look at it, so it is an atomic.
    unsafe { &*start.add(offset).cast() }
}

/// As [`narrow`], for fields of eight bytes.
fn wide(start: *mut u8, offset: usize) -> &'static AtomicU64 {
    // SAFETY: as above.
    unsafe { &*start.add(offset).cast() }
}

/// Gives the present chunk, if there is one, to the recorder. Behind its last reserved place comes
/// a word that ends it: without that, a place that an interrupted hook has yet to fill could
/// not be told from one that was never used.
fn hand_over(thread: &Thread, last_gap: Option<u32>) {
    let parked = thread.cursor.park();
    let start = thread.chunk.swap(core::ptr::null_mut(), Relaxed);
    if start.is_null() {
        return;
    }
    let size = thread.chunk_size.load(Relaxed) as usize;
    // SAFETY: the state of the chunk taken, in a segment that stays mapped.
    let state = unsafe { &*thread.chunk_state.load(Relaxed) };
    if parked == Parked::Before && narrow(start, chunk::CLOCK).load(Relaxed) == 0 {
        // A handler jumped out of `begin`: the chunk goes back as it came, zeroed.
        for offset in (0..chunk::WORDS).step_by(4) {
            narrow(start, offset).store(0, Relaxed);
        }
        state::give_back(state);
        return;
    }
    let tail = start as usize + size - TAIL * 4;
    let end = match parked {
        Parked::Room(cursor) => cursor::address(cursor),
        Parked::Full(_) => tail,
        Parked::Before => end_of_words(start, size),
    };
    // SAFETY: every reserved place lies below `end`, which leaves `TAIL` places to this thread.
    let mut places = unsafe { Places::at(end as *mut u32, TAIL) };
    if let Some(reason) = last_gap {
        let losses = thread.take_losses().unwrap_or_default();
        places.put_all(&writer::gap_words(reason, losses, 0));
        thread.settle(losses, true);
    }
    places.end();
    if parked == Parked::Before {
        thread.sequence.store(narrow(start, chunk::SEQUENCE).load(Relaxed), Relaxed);
    }
    state::hand_over(state);
}

/// Behind the last word of a chunk whose cursor is lost: a handler jumped out of the slow path.
fn end_of_words(start: *mut u8, size: usize) -> usize {
    let mut end = size - TAIL * 4;
    while end > chunk::WORDS && narrow(start, end - 4).load(Relaxed) == 0 {
        end -= 4;
    }
    let unit = if clock::kind() == ClockKind::Cycle { 8 } else { 4 };
    start as usize + end.next_multiple_of(unit)
}

const _: () = assert!(word::MAX_PAYLOAD as usize + 64 < (4096 - chunk::WORDS) / 4);

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_wire::shared::segment::SMALL_CHUNK;
    use teeperf_wire::word::{call, escape};

    /// A chunk of this thread's with so many words in it, header and all; its state.
    fn chunk_with(thread: &Thread, words: usize) -> (*mut u8, &'static AtomicU32) {
        let memory = vec![0u64; SMALL_CHUNK / 8].leak();
        let start = memory.as_mut_ptr().cast::<u8>();
        let state: &AtomicU32 = Box::leak(Box::new(AtomicU32::new(state::TAKEN)));
        narrow(start, chunk::SEQUENCE).store(7, Relaxed);
        narrow(start, chunk::CLOCK).store(ClockKind::Tick as u32, Relaxed);
        for at in 0..words {
            narrow(start, chunk::WORDS + 4 * at).store(call(0x1000), Relaxed);
        }
        thread.chunk.store(start, Relaxed);
        thread.chunk_size.store(SMALL_CHUNK as u32, Relaxed);
        thread.chunk_state.store((&raw const *state).cast_mut(), Relaxed);
        (start, state)
    }

    fn word_behind(start: *mut u8, words: usize) -> u32 {
        narrow(start, chunk::WORDS + 4 * words).load(Relaxed)
    }

    const END: u32 = escape(word::code::PAD, 0);

    #[test]
    fn a_chunk_ends_behind_its_last_reserved_place() {
        let thread = Thread::default();
        let (start, state) = chunk_with(&thread, 5);
        // Seven places are reserved, two of them not written yet.
        thread.cursor.set(Cursor::at(start as u64 + chunk::WORDS as u64 + 4 * 7, 100));
        hand_over(&thread, None);
        assert_eq!(state.load(Relaxed), state::FULL);
        assert_eq!((word_behind(start, 6), word_behind(start, 7)), (0, END));
    }

    /// A handler jumped out of a change of chunks: where the cursor was is not known any more.
    #[test]
    fn a_chunk_whose_cursor_is_lost_ends_behind_its_last_word() {
        let thread = Thread::default();
        let (start, state) = chunk_with(&thread, 5);
        thread.cursor.park();
        hand_over(&thread, None);
        assert_eq!(state.load(Relaxed), state::FULL);
        assert_eq!((word_behind(start, 5), word_behind(start, 6)), (END, 0));
        assert_eq!(thread.sequence.load(Relaxed), 7);
        assert!(thread.chunk.load(Relaxed).is_null());
    }

    #[test]
    fn a_chunk_without_its_header_goes_back_zeroed() {
        let thread = Thread::default();
        let (start, state) = chunk_with(&thread, 0);
        narrow(start, chunk::CLOCK).store(0, Relaxed);
        thread.cursor.park();
        hand_over(&thread, None);
        assert_eq!(state.load(Relaxed), state::FREE);
        assert_eq!(narrow(start, chunk::SEQUENCE).load(Relaxed), 0);
    }

    #[test]
    fn a_last_gap_fits_behind_a_full_chunk() {
        let thread = Thread::default();
        let words = (SMALL_CHUNK - chunk::WORDS) / 4 - TAIL;
        let (start, _) = chunk_with(&thread, words);
        thread.cursor.set(Cursor::at(start as u64 + chunk::WORDS as u64 + 4 * words as u64, 0));
        hand_over(&thread, Some(gap::STOPPED));
        assert_eq!(word_behind(start, words), escape(word::code::GAP, gap::STOPPED));
        assert_eq!(word_behind(start, words + 8), END);
    }
}
