//! Within an ordinary program: the normal world's side of a client, and tests.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

static NEXT_SERIAL: AtomicU32 = AtomicU32::new(1);

/// A new thread's number.
pub(crate) fn next_serial() -> u32 {
    NEXT_SERIAL.fetch_add(1, Relaxed)
}

/// There is nothing that is not the host's.
pub(crate) fn is_outside(_start: *const u8, _length: usize) -> bool {
    true
}

/// Lets others run; says how many microseconds it rested, 0 where that is not known.
pub(crate) fn pause() -> u32 {
    #[cfg(test)]
    if played::HOST.with_borrow(|host| host.as_ref().map(|host| host()).is_some()) {
        return 1000;
    }
    core::hint::spin_loop();
    0
}

/// Whether there is one that the recorder reads as well.
pub(crate) fn has_counter() -> bool {
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
}

/// The processor's counter, as the recorder reads it.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) fn counter() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The processor's counter, as the recorder reads it.
#[cfg(all(target_arch = "aarch64", not(miri)))]
pub(crate) fn counter() -> u64 {
    let value: u64;
    // SAFETY: reads a register that Linux lets every program read.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) value, options(nomem, nostack)) };
    value
}

/// There is none.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn counter() -> u64 {
    0
}

pub(crate) fn counter_hz() -> u64 {
    0
}

/// Nothing is summed here.
pub(crate) fn tree_memory() -> Option<(*mut u8, usize)> {
    None
}

pub(crate) fn always_sums() -> bool {
    #[cfg(test)]
    return played::SUMS.get();
    #[cfg(not(test))]
    false
}

/// There is but one clock at a time.
pub(crate) const fn epoch() -> u32 {
    0
}

/// Nothing is counted here.
pub(crate) fn arcs_memory() -> Option<(*mut u8, usize)> {
    None
}

/// What a test has in place of a platform.
#[cfg(test)]
pub(crate) mod played {
    use std::cell::{Cell, RefCell};

    thread_local! {
        /// What the host does in each millisecond that it is waited for.
        pub(crate) static HOST: RefCell<Option<Box<dyn Fn()>>> = const { RefCell::new(None) };
        /// Whether events are summed though they could be written.
        pub(crate) static SUMS: Cell<bool> = const { Cell::new(false) };
    }
}
