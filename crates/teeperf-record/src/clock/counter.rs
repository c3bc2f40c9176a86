//! The machine's own counter: reading it, whether it runs evenly, and how fast.

use std::time::Duration;

/// The counter that cycle hooks read.
#[cfg(target_arch = "x86_64")]
pub(crate) fn read() -> u64 {
    // SAFETY: rdtsc exists on every x86-64 processor. Where the system forbids it, the
    // traced program could not read it either.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The counter that cycle hooks read.
#[cfg(target_arch = "aarch64")]
pub(crate) fn read() -> u64 {
    let value: u64;
    // SAFETY: reads a register that Linux lets every program read.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) value, options(nomem, nostack)) };
    value
}

/// Whether it runs at one speed, whatever the processor does: Intel SDM volume 2, CPUID
/// leaf 0x8000_0007, EDX bit 8.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_even() -> bool {
    use core::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
}

/// Whether it runs at one speed: Arm DDI 0487, D12: the generic timer does.
#[cfg(target_arch = "aarch64")]
pub(crate) fn is_even() -> bool {
    true
}

/// Counts in a second, measured against the system's undisciplined clock over `window`.
pub(crate) fn measure_hz(window: Duration) -> u64 {
    let (counter, nanoseconds) = both();
    std::thread::sleep(window);
    let (counter_later, nanoseconds_later) = both();
    let counts = counter_later.wrapping_sub(counter) as u128;
    let passed = nanoseconds_later.saturating_sub(nanoseconds).max(1) as u128;
    (counts * 1_000_000_000 / passed).clamp(1, u64::MAX as u128) as u64
}

/// Counter and clock of one moment: the closest of several pairs, so that an interrupt
/// between the two readings does not count.
fn both() -> (u64, u64) {
    let pair = || {
        let before = read();
        let nanoseconds = raw_nanoseconds();
        let after = read();
        (
            after.wrapping_sub(before),
            before.wrapping_add(after.wrapping_sub(before) / 2),
            nanoseconds,
        )
    };
    let (_, counter, nanoseconds) =
        (0..16).map(|_| pair()).min_by_key(|&(width, ..)| width).unwrap_or_else(pair);
    (counter, nanoseconds)
}

fn raw_nanoseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the address is that of a timespec. The clock exists since Linux 2.6.28.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_and_its_speed_is_believable() {
        let before = read();
        let hz = measure_hz(Duration::from_millis(2));
        assert!(read().wrapping_sub(before) > 0);
        assert!((1_000_000..100_000_000_000).contains(&hz), "{hz}");
    }
}
