//! The recorder's clock page, mapped for reading only, and time as it comes from there or from
//! the processor's counter.

use crate::arch;
use crate::platform;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use teeperf_wire::shared::{ClockKind, clock, control};

pub(crate) static PAGE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static KIND: AtomicU32 = AtomicU32::new(0);
static IS_ORDERED: AtomicBool = AtomicBool::new(false);
static HZ: AtomicU64 = AtomicU64::new(0);

/// Takes the mapped clock page, [`clock::SIZE`] bytes, into use. The counter, where that is the
/// clock, is read in order if so said. It has so many units in a second.
pub(crate) fn set(page: usize, kind: ClockKind, is_ordered: bool, hz: u64) {
    HZ.store(hz, Relaxed);
    KIND.store(kind as u32, Relaxed);
    IS_ORDERED.store(is_ordered, Relaxed);
    PAGE.store(page as *mut u8, Relaxed);
}

/// Puts the page in the place of another, a module's; says whether it is there now.
pub(crate) fn show_at(place: usize) -> bool {
    platform::map_again(PAGE.load(Relaxed) as usize, place, clock::SIZE)
}

/// Which clock it is.
pub(crate) fn kind() -> ClockKind {
    if KIND.load(Relaxed) == ClockKind::Cycle as u32 { ClockKind::Cycle } else { ClockKind::Tick }
}

/// Whether hooks read the counter only when all work before that is done.
pub(crate) fn is_ordered() -> bool {
    IS_ORDERED.load(Relaxed)
}

/// The word that hooks watch.
pub(crate) fn watched() -> &'static AtomicU32 {
    word(match kind() {
        ClockKind::Tick => clock::TICK,
        ClockKind::Cycle => clock::GENERATION,
    })
}

/// Whether the clock ticks, and has not moved since it was at `time`, but for 2^32 units.
#[inline(always)]
pub(crate) fn stands_at(time: u64) -> bool {
    kind() == ClockKind::Tick && word(clock::TICK).load(Relaxed) == time as u32
}

/// Nanoseconds from one moment to another: by the system's clock, or by the recorder's where the system's
/// must not be asked for.
pub(crate) fn nanoseconds() -> u64 {
    platform::monotonic_ns().unwrap_or_else(|| {
        let hz = HZ.load(Relaxed).max(1);
        let now = now();
        let (seconds, rest) = (now / hz, now % hz);
        seconds.wrapping_mul(1_000_000_000).wrapping_add(rest.wrapping_mul(1_000_000_000) / hz)
    })
}

/// Nanoseconds of one of its units, where that is a round number.
pub(crate) fn unit_ns() -> u64 {
    (1_000_000_000 / HZ.load(Relaxed).max(1)).max(1)
}

/// The present time in clock units.
pub(crate) fn now() -> u64 {
    match kind() {
        ClockKind::Cycle => arch::counter(),
        ClockKind::Tick => tick(),
    }
}

/// Likewise, between two ticks too; that takes a call of the system.
pub(crate) fn exactly_now() -> u64 {
    let origin = word(clock::ORIGIN).load(Relaxed);
    let origin = u64::from(word(clock::ORIGIN + 4).load(Relaxed)) << 32 | u64::from(origin);
    match kind() {
        ClockKind::Tick if origin != 0 => {
            tick().max(platform::monotonic_ns().unwrap_or(0).saturating_sub(origin) / 1000)
        }
        _ => now(),
    }
}

fn tick() -> u64 {
    whole_tick(|offset| word(offset).load(Acquire))
}

/// The whole tick. Its halves are written high, low, high: a reader takes them in the other
/// order, and has a whole time when the highs agree. A recorder that never lets them agree gets
/// its own nonsense back.
#[inline(always)]
fn whole_tick(mut read: impl FnMut(usize) -> u32) -> u64 {
    let mut time = 0;
    for _ in 0..16 {
        let again = read(clock::TICK_HIGH_AGAIN);
        let low = read(clock::TICK);
        let high = read(clock::TICK_HIGH);
        time = u64::from(high) << 32 | u64::from(low);
        if again == high {
            break;
        }
    }
    time
}

/// Whether recording is paused from outside.
pub(crate) fn is_paused() -> bool {
    word(clock::CONTROL).load(Relaxed) & control::PAUSED != 0
}

/// Whether a call of a function that the filter names has recording go on.
pub(crate) fn is_armed() -> bool {
    word(clock::CONTROL).load(Relaxed) & control::ARMED != 0
}

/// Time in pauses from outside, as [`teeperf_wire::shared::pauses`] has it.
pub(crate) fn pauses() -> u64 {
    let page = PAGE.load(Relaxed);
    if page.is_null() {
        return 0;
    }
    // SAFETY: as in `word`; aligned to eight bytes.
    unsafe { &*page.add(clock::PAUSES).cast::<AtomicU64>() }.load(Acquire)
}

/// Whether recording has ended.
pub(crate) fn is_stopped() -> bool {
    word(clock::CONTROL).load(Relaxed) & control::STOPPED != 0
}

/// The filter that is to come, or holds, as a word.
pub(crate) fn filter() -> u32 {
    word(clock::FILTER).load(Acquire)
}

/// The filter that holds, as a word.
pub(crate) fn filter_due() -> u32 {
    word(clock::FILTER_DUE).load(Acquire)
}

/// Chunks the recorder has drained.
pub(crate) fn progress() -> u32 {
    word(clock::PROGRESS).load(Relaxed)
}

fn word(offset: usize) -> &'static AtomicU32 {
    /// Stands in until the page is there.
    static NONE: [AtomicU32; clock::SIZE / 4] = [const { AtomicU32::new(0) }; clock::SIZE / 4];
    let page = PAGE.load(Relaxed);
    if page.is_null() {
        return &NONE[offset / 4 % NONE.len()];
    }
    // SAFETY: the offset is one of the page's, which stays mapped for the process's life; other
    // processes write it, so it is read as an atomic.
    unsafe { &*page.add(offset).cast::<AtomicU32>() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recorder's three stores, when the high half moves, come before any of the reads.
    #[test]
    fn a_time_is_never_put_together_from_two() {
        const BEFORE: u64 = 0x7_FFFF_FFFF;
        const AFTER: u64 = 0x8_0000_0005;
        const STORES: [usize; 3] = [clock::TICK_HIGH, clock::TICK, clock::TICK_HIGH_AGAIN];
        let half = |time: u64, offset| if offset == clock::TICK { time } else { time >> 32 } as u32;
        for first in 0..8 {
            for second in first..8 {
                for third in second..8 {
                    let moments = [first, second, third];
                    let mut reads = 0;
                    let time = whole_tick(|offset| {
                        let at = STORES.iter().position(|&store| store == offset).unwrap();
                        let is_stored = moments[at] <= reads;
                        reads += 1;
                        half(if is_stored { AFTER } else { BEFORE }, offset)
                    });
                    assert!([BEFORE, AFTER].contains(&time), "{time:X}, stores at {moments:?}");
                }
            }
        }
    }
}
