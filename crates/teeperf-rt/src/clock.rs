//! The recorder's clock page, mapped for reading only, and time as it comes from there or from
//! the processor's counter.

use crate::arch;
use crate::platform;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::Acquire, Ordering::Relaxed};
use teeperf_wire::shared::{ClockKind, clock, control};

static PAGE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static KIND: AtomicU32 = AtomicU32::new(0);
static IS_ORDERED: AtomicBool = AtomicBool::new(false);

/// Takes the mapped clock page, [`clock::SIZE`] bytes, into use. The counter, where that is the
/// clock, is read in order if so said.
pub(crate) fn set(page: usize, kind: ClockKind, is_ordered: bool) {
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

/// The present time in clock units.
pub(crate) fn now() -> u64 {
    match kind() {
        ClockKind::Cycle => arch::counter(),
        ClockKind::Tick => tick(),
    }
}

/// The whole tick. Its halves are written high, low, high: a reader takes them in the other
/// order, and has a whole time when the highs agree. A recorder that never lets them agree gets
/// its own nonsense back.
fn tick() -> u64 {
    let mut time = 0;
    for _ in 0..16 {
        let again = word(clock::TICK_HIGH_AGAIN).load(Acquire);
        let low = word(clock::TICK).load(Acquire);
        let high = word(clock::TICK_HIGH).load(Acquire);
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

/// Whether recording has ended.
pub(crate) fn is_stopped() -> bool {
    word(clock::CONTROL).load(Relaxed) & control::STOPPED != 0
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
