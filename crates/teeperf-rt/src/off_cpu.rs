//! Time in which a thread was off its processor: it slept, or another thread ran.
//!
//! It is what passed by the system's clock less the thread's CPU time. The thread asks for both
//! when an event meets a tick, and when the kernel took it off the processor since its last event.
//! So it is known which function was on top.
//!
//! The kernel tells of the latter by a restartable sequence (rseq(2)): hooks leave the address of
//! one in the thread's area, and the kernel clears that when it has the thread go on elsewhere than
//! in the sequence, behind a switch or with a signal.

use crate::arch;
use crate::block::Sequence;
use crate::clock;
use crate::platform;
use crate::process;
use crate::thread::Thread;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;
use teeperf_wire::compose;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word;

/// A sequence that no thread is ever in.
static NONE: Sequence = Sequence::none();

/// Readies a process that was attached just now.
pub(crate) fn begin() {
    NONE.forget();
}

/// Time off the processor that a thread has not told yet.
#[derive(Clone, Copy)]
pub(crate) struct Untold {
    /// Nanoseconds that it has told of, and those that it will have.
    told_ns: u64,
    all_ns: u64,
    /// Clock units.
    units: u64,
    /// How often the thread waited, and how many waits it will have told.
    waits: u64,
    all_waits: u64,
}

/// Most waits that are told at once: as many as a word holds.
const MOST_WAITS: u64 = 0x7FFF_FFFF;

/// Whether the kernel took the calling thread off its processor, or interrupted it by a signal,
/// since the last event or the last call of this.
pub(crate) fn was_switched(thread: &Thread) -> bool {
    let Some(sequence) = sequence(thread).filter(|sequence| sequence.load(Relaxed) == 0) else {
        return false;
    };
    sequence.store(&raw const NONE as usize, Relaxed);
    true
}

/// Has the next event tell what this one had no room for.
pub(crate) fn tell_later(thread: &Thread) {
    sequence(thread).into_iter().for_each(|sequence| sequence.store(0, Relaxed));
}

/// CPU time that the calling thread has had since it last looked, nanoseconds, if it looks after
/// each switch.
pub(crate) fn since_look_ns(thread: &Thread, cpu_ns: u64) -> Option<u64> {
    let is_watched = thread.rseq.load(Relaxed) != 0;
    is_watched.then(|| cpu_ns.saturating_sub(thread.looked_at.load(Relaxed)))
}

/// Where the calling thread's sequence is told to the kernel, if it knows of any.
fn sequence(thread: &Thread) -> Option<&AtomicUsize> {
    let offset = thread.rseq.load(Relaxed);
    let area = arch::thread_pointer().wrapping_add_signed(offset as isize);
    // SAFETY: the C library's area of this thread, which the kernel writes at any time.
    (offset != 0).then(|| unsafe { &*(area as *const AtomicUsize) })
}

/// Time off its processor that the calling thread has not told, if that is worth a word.
pub(crate) fn untold(thread: &Thread) -> Option<Untold> {
    let told_ns = told_ns(thread)?;
    let cpu_ns = platform::thread_cpu_ns()?;
    let all_ns = all_ns(cpu_ns)?;
    let since_ns = cpu_ns.saturating_sub(thread.looked_at.load(Relaxed));
    thread.looked_at.store(cpu_ns, Relaxed);
    let unit_ns = clock::unit_ns();
    let units = all_ns.saturating_sub(told_ns) / unit_ns;
    let all_ns = told_ns + units * unit_ns;
    let may_have_more_waits = units > 0 && since_ns > word::off_cpu::MOST_OF_A_WAIT_NS;
    let told = thread.waits_told.load(Relaxed);
    let all = may_have_more_waits.then(waits).flatten();
    let one = u64::from(units * unit_ns >= word::off_cpu::LEAST_WAIT_NS);
    // None, where others ran in the thread's place.
    let waits = all.map_or(one, |all| all.saturating_sub(told));
    let all_waits = all.unwrap_or(told + one);
    // A debugger may stop the thread at each system call, also at those that this made. The next
    // event need not look for these stops.
    was_switched(thread);
    (units > 0).then_some(Untold { told_ns, all_ns, units, waits, all_waits })
}

/// How often the calling thread has waited.
fn waits() -> Option<u64> {
    platform::thread_usage().map(|usage| usage.waits)
}

impl Untold {
    /// As an escape.
    pub(crate) fn words(self) -> [u32; 5] {
        compose::off_cpu(self.units, self.waits.min(MOST_WAITS) as u32)
    }

    /// Whether it is this caller that tells of it: a signal handler may have done so just before.
    pub(crate) fn is_claimed(self, thread: &Thread) -> bool {
        let Self { told_ns, all_ns, all_waits, .. } = self;
        let is_claimed =
            thread.off_cpu_ns.compare_exchange(told_ns, all_ns, Relaxed, Relaxed).is_ok();
        if is_claimed {
            thread.waits_told.store(all_waits, Relaxed);
        }
        is_claimed
    }
}

/// The calling thread begins. It does not tell for how long it was off its processor before.
pub(crate) fn begin_thread(thread: &Thread) {
    if process::wants_samples() && clock::kind() == ClockKind::Tick {
        let all_ns = platform::thread_cpu_ns().and_then(all_ns);
        thread.off_cpu_ns.store(all_ns.unwrap_or(0), Relaxed);
    }
}

/// A pause of so many clock units is left out of the thread's time, and with it the time that the
/// thread was off its processor meanwhile. Gives the rest of the pause, nanoseconds, in which it
/// was on one.
pub(crate) fn leave_out(thread: &Thread, units: u64) -> u64 {
    let all_ns = || platform::thread_cpu_ns().and_then(all_ns);
    let Some((told_ns, all_ns)) = told_ns(thread).zip(all_ns()) else { return 0 };
    let paused_ns = units.saturating_mul(clock::unit_ns());
    let off_ns = paused_ns.min(all_ns.saturating_sub(told_ns));
    thread.off_cpu_ns.store(told_ns + off_ns, Relaxed);
    paused_ns - off_ns
}

/// Nanoseconds off its processor that the thread has told, if it tells of them.
fn told_ns(thread: &Thread) -> Option<u64> {
    Some(thread.off_cpu_ns.load(Relaxed)).filter(|&told_ns| told_ns > 0)
}

/// Nanoseconds that the calling thread was off its processor since the system's clock began, by its
/// CPU time, which it asked for just before: what passes in between is not taken for waiting twice.
fn all_ns(cpu_ns: u64) -> Option<u64> {
    Some(platform::monotonic_ns()?.saturating_sub(cpu_ns).max(1))
}
