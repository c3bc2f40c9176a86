//! The block of one thread, in thread-local storage. Hooks know its first fields
//! ([`teeperf_wire::hook::thread`]); everything else belongs to the slow path.
//!
//! No other thread ever touches it. Signal handlers on the same thread do, between any two
//! instructions, so the fields are atomic, with plain loads and stores for the most part.

use crate::arch;
use crate::clock;
use crate::cursor::{Cursor, PARKED};
use crate::pauses;
use crate::platform::{self, Mask};
use crate::pool;
use crate::process::{self, Life};
use crate::sums;
use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed,
    compiler_fence,
};
use teeperf_wire::hook;
use teeperf_wire::shared::ClockKind;

/// See the module.
#[repr(C, align(64))]
#[cfg_attr(test, derive(Default))]
pub(crate) struct Thread {
    /// [`hook::thread::LAST`].
    pub(crate) last: AtomicU32,
    /// [`hook::thread::LAST_HIGH`].
    pub(crate) last_high: AtomicU32,
    /// [`hook::thread::CURSOR`].
    pub(crate) cursor: Cursor,
    /// [`hook::thread::RSEQ`].
    pub(crate) rseq: AtomicI64,
    /// [`hook::thread::STACK_LOW`].
    pub(crate) stack_low: AtomicU64,
    /// [`hook::thread::STACK_SIZE`].
    pub(crate) stack_size: AtomicU64,
    /// Where calls are summed.
    pub(crate) own: sums::Own,
    /// Time up to which the chunk's words reach.
    pub(crate) time: AtomicU64,
    /// Stack pointer of the slow path under way that must not be entered again, 0: none. And signals
    /// that were kept back before it, [`UNMASKED`] where they are not in it either.
    busy: AtomicUsize,
    masked: AtomicU64,
    /// Stack pointer of the innermost wait for a chunk under way, 0: none, and how many there are.
    waiter: AtomicUsize,
    waiters: AtomicU32,
    /// What the recorder had drained when it was last seen to have drained something, and when that was, in
    /// nanoseconds.
    pub(crate) progress: AtomicU32,
    pub(crate) progress_at: AtomicU64,
    /// Whether recording was paused at the last look.
    pub(crate) saw_pause: AtomicBool,
    /// [`State`] as a number.
    state: AtomicU32,
    /// [`crate::process::epoch`] that the rest of the block belongs to.
    pub(crate) epoch: AtomicU32,
    /// Number within the process, from 1; 0: none yet.
    pub(crate) serial: AtomicU32,
    /// Number of the present chunk, from 1.
    pub(crate) sequence: AtomicU32,
    /// Thread id.
    pub(crate) tid: AtomicU32,
    /// Frames of the time before a gap that were left in it.
    popped: AtomicU32,
    /// Frames entered in a gap and still open.
    pushed: AtomicU32,
    /// Bytes of the present chunk.
    pub(crate) chunk_size: AtomicU32,
    /// Present chunk, null: none.
    pub(crate) chunk: AtomicPtr<u8>,
    /// Its state, in the first page of its segment.
    pub(crate) chunk_state: AtomicPtr<AtomicU32>,
    /// When the first chunk began, and from when on CPU time is asked for again.
    began: AtomicU64,
    cpu_due: AtomicU64,
    /// Events that should have been written, counted in shared memory as well.
    lost: AtomicU64,
    /// Events that were not to be recorded.
    meant: AtomicU64,
    /// Cursor to go on with after a pause.
    pub(crate) kept: AtomicU64,
    /// When the present pause, wait or loss began, or was last looked at: clock units, or
    /// nanoseconds of a loss.
    pub(crate) since: AtomicU64,
    /// Clock units of all pauses that the thread has told of, or that were before it had anything to tell.
    pub(crate) left_out: AtomicU64,
    /// Whether a filter has left it out since it counts its events and does not write them.
    pub(crate) was_left_out: AtomicBool,
    /// What hooks watch, when a thread without a chunk last looked for one.
    pub(crate) looked: AtomicU32,
    /// Id of the stack the thread is on, 0 its own;
    /// [`STACK_NOT_TOLD`](teeperf_wire::shared::chunk::STACK_NOT_TOLD): a jump came, and the runtime
    /// does not know where to.
    pub(crate) stack: AtomicU64,
    /// Stack pointer where the thread was first seen, 0: nowhere.
    pub(crate) anchor: AtomicU64,
    /// Bounds of its own stack; the upper one is 0 where they are not known.
    pub(crate) own_low: AtomicU64,
    pub(crate) own_high: AtomicU64,
    /// The filter under which the thread's latest events stand, as a word.
    pub(crate) filter: AtomicU32,
    /// Whether the filter leaves this thread out, which filter said so, when to ask again, and how long behind that.
    pub(crate) is_left_out: AtomicBool,
    pub(crate) asked: AtomicU32,
    pub(crate) ask_at: AtomicU64,
    pub(crate) ask_in: AtomicU64,
    /// One more than the name of the mark that was made since marks were written last, and the frames that
    /// were counted then; 0: none, [`MANY`].
    marked: AtomicU32,
    marked_popped: AtomicU32,
    marked_pushed: AtomicU32,
    /// One more than the name of the mark that the last jump went to that is still to be written; 0: none.
    jumped: AtomicU32,
    /// Samples that found no place since the last one that did.
    pub(crate) missed: AtomicU32,
    /// Number of the chunk that says that the clock tells the thread's time; 0: none does.
    pub(crate) clocked_in: AtomicU32,
    /// CPU time that a sample of an event stands for, nanoseconds; 0 where there are no events.
    pub(crate) period_ns: AtomicU32,
    /// Nanoseconds that it was off its processor up to now, as far as it has told ([`crate::off_cpu`]);
    /// 0 where it does not tell.
    pub(crate) off_cpu_ns: AtomicU64,
    /// Waits of which it has told with that.
    pub(crate) waits_told: AtomicU64,
    /// How often it had waited when its timer interrupted it last.
    pub(crate) waits_at_timer: AtomicU64,
    /// Page faults that it had met when its timer interrupted it last.
    pub(crate) faults: AtomicU64,
    /// How often it had left its processor when that was looked at last, and its CPU time then.
    pub(crate) switches: AtomicU64,
    pub(crate) counted_at: AtomicU64,
    /// Where the runtime has it look through the frames that an exception leaves: an address on
    /// its stack, below which that is done; else 0.
    pub(crate) unwinding: AtomicUsize,
    /// Its CPU time when its events began, nanoseconds.
    pub(crate) events_began_at: AtomicU64,
    /// CPU time from then on at which the event interrupts it that comes once, nanoseconds.
    pub(crate) single_event_ns: AtomicU32,
    /// Its CPU time when its event last had a new period, nanoseconds; 0 where it cannot have any.
    pub(crate) renewed_at: AtomicU64,
    /// Its CPU time when it last looked for time off its processor, nanoseconds.
    pub(crate) looked_at: AtomicU64,
    /// Its CPU time where it met a pause that is not over for it, else 0 or a mark
    /// ([`crate::pauses`]), and that in all pauses that are over, nanoseconds.
    pub(crate) paused_at: AtomicU64,
    pub(crate) paused_ns: AtomicU64,
}

// SAFETY: all fields but the tree are atomic, and that is used by its thread alone.
unsafe impl Sync for Thread {}

const _: () = assert!(core::mem::offset_of!(Thread, last) == hook::thread::LAST);
const _: () = assert!(core::mem::offset_of!(Thread, last_high) == hook::thread::LAST_HIGH);
const _: () = assert!(core::mem::offset_of!(Thread, cursor) == hook::thread::CURSOR);
const _: () = assert!(core::mem::offset_of!(Thread, rseq) == hook::thread::RSEQ);
const _: () = assert!(core::mem::offset_of!(Thread, stack_low) == hook::thread::STACK_LOW);
const _: () = assert!(core::mem::offset_of!(Thread, stack_size) == hook::thread::STACK_SIZE);
const _: () = sums::Own::assert_place(core::mem::offset_of!(Thread, own));

/// The calling thread's block, as of the present attachment ([`process::epoch`]).
///
/// There are two, taken in turn: in the child of a fork, the thread that forked still has the
/// parent's cursor in the one, and must not write through it if another thread of the child was
/// the first to meet the runtime.
pub(crate) fn current() -> &'static Thread {
    &arch::thread()[turn()]
}

/// Where [`current`] lies relative to the thread pointer.
pub(crate) fn offset() -> i64 {
    arch::thread_offset() + (turn() * size_of::<Thread>()) as i64
}

fn turn() -> usize {
    (process::epoch() % 2) as usize
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum State {
    /// Nothing written yet.
    New = 0,
    /// Writes into its chunk.
    Running = 1,
    /// Recording is paused; the chunk is kept.
    Paused = 2,
    /// No chunk; events are counted, because the policy says so.
    Dropping = 3,
    /// No chunk; events are counted, because waiting was in vain.
    Stalled = 4,
    /// No chunk; whoever comes here waits for one.
    Waiting = 5,
}

/// A wait for a chunk: the stack pointer in it, and what [`Thread`] said of others before it.
pub(crate) struct Waiting {
    here: usize,
    outer: (usize, u32),
}

/// Longest time between two looks at a thread's CPU time: a millisecond of the tick, which counts
/// microseconds, or less of a counter, which takes so many steps in some tenths of a millisecond.
pub(crate) fn most_cpu_pause() -> u64 {
    match clock::kind() {
        ClockKind::Tick => 1000,
        ClockKind::Cycle => 1 << 20,
    }
}

/// In [`Thread::masked`]: signals are not kept back. No set has SIGKILL in it.
const UNMASKED: u64 = u64::MAX;

/// Most waits for a chunk at once of one thread.
const MOST_WAITERS: u32 = 4;

/// In [`Thread::marked`]: several marks were made.
const MANY: u32 = u32::MAX;

/// What was not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    pub(crate) events: u64,
    pub(crate) popped: u32,
    pub(crate) pushed: u32,
    /// Events that count in shared memory until `Thread::said`.
    unsaid: u64,
}

impl Losses {
    /// What was left out while nothing was to be recorded, and what was lost. What both did
    /// to the stack stands with the first, if there is one.
    pub(crate) fn apart(self) -> (Self, Self) {
        let meant = self.events.saturating_sub(self.unsaid);
        if meant == 0 {
            return (Self::default(), self);
        }
        let lost = Self { events: self.unsaid, unsaid: self.unsaid, ..Self::default() };
        (Self { events: meant, unsaid: 0, ..self }, lost)
    }
}

impl Thread {
    pub(crate) fn state(&self) -> State {
        match self.state.load(Relaxed) {
            1 => State::Running,
            2 => State::Paused,
            3 => State::Dropping,
            4 => State::Stalled,
            5 => State::Waiting,
            _ => State::New,
        }
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u32, Relaxed);
    }

    /// Whether this is the child of a signal handler that forked since the look for the block.
    pub(crate) fn is_of_parent(&self) -> bool {
        let is_attached = matches!(process::life(), Life::On | Life::Off);
        !is_attached || !core::ptr::eq(self, current())
    }

    /// Begins anew: after a fork, or when recording took a new beginning. What was counted as
    /// lost goes with the time before. The thread is claimed.
    pub(crate) fn reset(&self, epoch: u32) {
        for block in arch::thread() {
            block.cursor.set(PARKED);
        }
        self.set_state(State::New);
        self.chunk.store(core::ptr::null_mut(), Relaxed);
        self.serial.store(0, Relaxed);
        self.sequence.store(0, Relaxed);
        self.filter.store(0, Relaxed);
        self.asked.store(0, Relaxed);
        self.is_left_out.store(false, Relaxed);
        self.take_losses();
        self.marked.store(0, Relaxed);
        self.forget_jump();
        self.missed.store(0, Relaxed);
        self.clocked_in.store(0, Relaxed);
        self.period_ns.store(0, Relaxed);
        self.events_began_at.store(0, Relaxed);
        self.single_event_ns.store(0, Relaxed);
        self.renewed_at.store(0, Relaxed);
        self.looked_at.store(0, Relaxed);
        self.paused_at.store(0, Relaxed);
        self.paused_ns.store(0, Relaxed);
        self.off_cpu_ns.store(0, Relaxed);
        self.waits_told.store(0, Relaxed);
        self.waits_at_timer.store(0, Relaxed);
        self.faults.store(0, Relaxed);
        self.switches.store(0, Relaxed);
        self.counted_at.store(0, Relaxed);
        self.unwinding.store(0, Relaxed);
        self.own.forget();
        self.stack_size.store(0, Relaxed);
        self.own_high.store(0, Relaxed);
        self.anchor.store(0, Relaxed);
        self.epoch.store(epoch, Relaxed);
    }

    /// Has hooks that look at the clock first come to the runtime, for a long time to come: those as well that had
    /// looked when a signal handler interrupted them, which is why it is not a time that was just before.
    pub(crate) fn keep_apart(&self) {
        self.last.store(clock::watched().load(Relaxed) ^ 1 << 31, Relaxed);
    }

    /// CPU time as of now, where it is worth a system call, which takes as long as some hundred events: at
    /// the thread's first chunk, and then when a sixteenth of its age or so has passed.
    pub(crate) fn cpu_ns(&self, now: u64, is_first: bool) -> Option<u64> {
        if is_first {
            self.began.store(now, Relaxed);
        } else if now < self.cpu_due.load(Relaxed) {
            return None;
        }
        let age = now.saturating_sub(self.began.load(Relaxed));
        self.cpu_due.store(now.saturating_add((age / 16).min(most_cpu_pause())), Relaxed);
        platform::thread_cpu_ns().map(|cpu_ns| pauses::outside(self, cpu_ns))
    }

    /// Has hooks reserve by restartable sequences, where that is wanted and the kernel knows of them.
    pub(crate) fn find_rseq(&self) {
        let offset = process::is_restartable().then(platform::rseq).flatten();
        self.rseq.store(offset.unwrap_or(0), Relaxed);
    }

    /// Claims the thread for a stretch that must not be entered again: events of signal
    /// handlers in between are counted, not written. Never inlined, so that its frame lies below
    /// that of whoever asked [`Thread::is_busy`] first.
    #[inline(never)]
    pub(crate) fn enter(&self, mask: &Mask) {
        self.masked.store(mask.before().unwrap_or(UNMASKED), Relaxed);
        if !self.has_losses() {
            self.marked.store(0, Relaxed);
        }
        self.busy.store(arch::stack_pointer(), Relaxed);
        self.own.close();
        compiler_fence(SeqCst);
    }

    /// Ends [`Thread::enter`].
    pub(crate) fn leave(&self) {
        compiler_fence(SeqCst);
        self.busy.store(0, Relaxed);
        compiler_fence(SeqCst);
        self.own.open();
    }

    /// Whether a claimed stretch is under way below on the stack. One that was left by a jump
    /// or an exception out of a signal handler is not: then the caller's frame lies above it.
    /// A handler on a stack of its own also may, so the kernel is asked before a stretch is
    /// taken for abandoned.
    ///
    /// Always inlined, as are its callers up to what hooks call: an abandoned stretch that was
    /// entered from where the caller is now lies below the caller, whatever frames there were.
    #[inline(always)]
    pub(crate) fn is_busy(&self) -> bool {
        let owner = self.busy.load(Relaxed);
        if owner == 0 {
            return false;
        }
        if arch::stack_pointer() <= owner || platform::on_signal_stack() {
            return true;
        }
        self.abandon();
        false
    }

    /// Ends a claimed stretch that was left by a jump out of a signal handler.
    #[cold]
    pub(crate) fn abandon(&self) {
        self.leave();
        let before = self.masked.load(Relaxed);
        if before != UNMASKED {
            Mask::end_abandoned(before);
        }
    }

    /// Begins a wait for a chunk, where there are not too many under way already, each in a signal
    /// handler that interrupts the one before. Those that a jump has left lie below the caller on the stack.
    pub(crate) fn begin_wait(&self) -> Option<Waiting> {
        let here = arch::stack_pointer();
        let outer = (self.waiter.load(Relaxed), self.waiters.load(Relaxed));
        let waiters = if outer.0 == 0 || here >= outer.0 { 0 } else { outer.1 };
        (waiters < MOST_WAITERS).then(|| {
            self.waiter.store(here, Relaxed);
            self.waiters.store(waiters + 1, Relaxed);
            Waiting { here, outer }
        })
    }

    /// There is a chunk: whoever still counts as waiting ends that by itself, or was left by a jump.
    pub(crate) fn end_all_waits(&self) {
        self.waiter.store(0, Relaxed);
        self.waiters.store(0, Relaxed);
    }

    pub(crate) fn end_wait(&self, waiting: Waiting) {
        if self.waiter.load(Relaxed) == waiting.here {
            self.waiter.store(waiting.outer.0, Relaxed);
            self.waiters.store(waiting.outer.1, Relaxed);
        }
    }

    /// A mark that is not written. One is remembered.
    pub(crate) fn mark_unwritten(&self, name: u32) {
        let before = self.marked.load(Relaxed);
        let is_one = before == 0 || before == name + 1;
        self.marked.store(if is_one { name + 1 } else { MANY }, Relaxed);
        self.marked_popped.store(self.popped.load(Relaxed), Relaxed);
        self.marked_pushed.store(self.pushed.load(Relaxed), Relaxed);
    }

    /// A jump that is not written. One to a mark that is written is told before the thread's next event, which
    /// comes the long way, and before the next gap, which counts frames from there on. Where several marks
    /// are not written, it may go to one of them, and frames stay as they are. Says whether it goes to a written
    /// one.
    pub(crate) fn jump_unwritten(&self, name: u32) -> bool {
        let marked = self.marked.load(Relaxed);
        if marked == MANY {
            return false;
        }
        let is_out = marked != name + 1;
        let (mut popped, mut pushed) = (0, 0);
        if is_out {
            self.jumped.store(name + 1, Relaxed);
            self.keep_apart();
            sums::delay(self);
        } else {
            popped = self.marked_popped.load(Relaxed);
            pushed = self.marked_pushed.load(Relaxed);
        }
        self.popped.store(popped, Relaxed);
        self.pushed.store(pushed, Relaxed);
        is_out
    }

    /// The jump that is still to be told.
    pub(crate) fn jumped(&self) -> Option<u32> {
        self.jumped.load(Relaxed).checked_sub(1)
    }

    /// It is told.
    pub(crate) fn forget_jump(&self) {
        self.jumped.store(0, Relaxed);
    }

    /// Counts an event that is not written. A signal handler may come in between and take what was counted;
    /// what it did to the stack then stands in its gap.
    pub(crate) fn lose(&self, is_return: bool, is_meant: bool) {
        self.cursor.settle();
        let one_less = |pushed: u32| pushed.checked_sub(1);
        if !is_return {
            self.pushed.fetch_add(1, Relaxed);
        } else if self.pushed.fetch_update(Relaxed, Relaxed, one_less).is_err() {
            self.popped.fetch_add(1, Relaxed);
        }
        if !is_meant {
            self.lost.fetch_add(1, Relaxed);
            // The thread may end before it has a chunk to say it in.
            pool::count_losses(self.serial.load(Relaxed), 1);
        } else {
            self.meant.fetch_add(1, Relaxed);
        }
    }

    /// Whether calls that were not written are still open.
    pub(crate) fn has_entered(&self) -> bool {
        self.pushed.load(Relaxed) != 0
    }

    /// What was counted since the last time, or nothing.
    pub(crate) fn take_losses(&self) -> Option<Losses> {
        // Each event is in one of the two, so a handler in between makes no difference.
        let (lost, meant) = (self.lost.swap(0, Relaxed), self.meant.swap(0, Relaxed));
        let losses = Losses {
            events: lost + meant,
            popped: self.popped.swap(0, Relaxed),
            pushed: self.pushed.swap(0, Relaxed),
            unsaid: lost,
        };
        (losses != Losses::default()).then_some(losses)
    }

    /// What was taken stands in a chunk now, or could not be written and is counted on.
    pub(crate) fn settle(&self, before: Losses, is_written: bool) {
        if !is_written {
            self.keep(before);
        } else if before.unsaid != 0 {
            pool::count_losses(self.serial.load(Relaxed), -(before.unsaid as i64));
        }
    }

    /// What was taken is counted on.
    pub(crate) fn keep(&self, before: Losses) {
        let since = self.take_losses().unwrap_or_default();
        let met = before.pushed.min(since.popped);
        let unsaid = before.unsaid + since.unsaid;
        self.popped.fetch_add(before.popped + since.popped - met, Relaxed);
        self.pushed.fetch_add(before.pushed - met + since.pushed, Relaxed);
        self.meant.fetch_add(before.events + since.events - unsaid, Relaxed);
        self.lost.fetch_add(unsaid, Relaxed);
    }

    /// Whether anything was counted.
    pub(crate) fn has_losses(&self) -> bool {
        self.losses() != 0
    }

    /// How many events were counted.
    pub(crate) fn losses(&self) -> u64 {
        self.lost.load(Relaxed) + self.meant.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn cpu_time_is_asked_for_less_often_the_older_a_thread_is() {
        let thread = Thread::default();
        let asks = |now, is_first| thread.cpu_ns(now, is_first).is_some();
        assert!(asks(1000, true));
        assert!(asks(1000, false), "the tick has not moved");
        assert!(asks(1160, false));
        assert!(!asks(1169, false));
        assert!(asks(1170, false));
        // Microseconds.
        let old = 60_000_000;
        assert!(asks(old, false));
        assert!(!asks(old + 999, false));
        assert!(asks(old + 1000, false));
    }

    /// A hook had looked at the clock, and a signal handler came in between, in which it moved.
    #[test]
    #[cfg_attr(miri, ignore = "looks at the clock")]
    fn no_hook_that_was_interrupted_finds_its_time_once_more() {
        let thread = Thread::default();
        let looked = clock::watched().load(Relaxed);
        thread.keep_apart();
        assert!(thread.last.load(Relaxed).abs_diff(looked) >= 1 << 30);
    }

    /// Waits, each deeper on the stack, that a jump leaves behind; the next one comes deeper still.
    #[test]
    #[cfg_attr(miri, ignore = "looks at the stack pointer")]
    fn waits_that_were_left_count_no_longer_when_there_is_a_chunk() {
        #[inline(never)]
        fn waits(thread: &Thread, from: u32, to: u32) -> u32 {
            let room = core::hint::black_box([from; 64]);
            let begins = from == 0 && thread.begin_wait().is_some();
            let deeper = if to > 0 { waits(thread, from.saturating_sub(1), to - 1) } else { 0 };
            u32::from(begins) + deeper + room[0] - from
        }
        let thread = Thread::default();
        assert_eq!(waits(&thread, 0, 9), MOST_WAITERS);
        assert_eq!(waits(&thread, 9, 9), 0);
        thread.end_all_waits();
        assert_eq!(waits(&thread, 9, 9), 1);
        assert_eq!(waits(&thread, 0, 0), 1, "above those that were left");

        let waiting = thread.begin_wait().unwrap();
        thread.end_all_waits();
        thread.end_wait(waiting);
        assert_eq!(thread.waiters.load(Relaxed), 0);
    }

    /// A pause may end between an event that is left out and the look at why it was.
    #[test]
    fn what_a_pause_leaves_out_is_no_loss_because_of_one_that_is() {
        let both = Losses { events: 9, popped: 1, pushed: 2, unsaid: 1 };
        let meant = Losses { events: 8, unsaid: 0, ..both };
        let lost = Losses { events: 1, unsaid: 1, ..Losses::default() };
        assert_eq!(both.apart(), (meant, lost));
        assert_eq!(meant.apart(), (meant, Losses::default()));
        let all_lost = Losses { events: 3, pushed: 1, unsaid: 3, popped: 0 };
        assert_eq!(all_lost.apart(), (Losses::default(), all_lost));
    }
}
