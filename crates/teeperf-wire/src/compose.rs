//! Rows of words that runtimes write, each to be written as a whole.

use crate::word::{code, escape, payload, split62, split64};

/// The clock stands at `time`.
pub const fn stamp(time: u64) -> [u32; 4] {
    let [low, high] = split62(time);
    [escape(code::STAMP, 0), payload(2), low, high]
}

/// The counter is `count` at the event behind it.
pub const fn timed(count: u64) -> [u32; 4] {
    let [low, high] = split62(count);
    [escape(code::TIMED, 0), payload(2), low, high]
}

/// The thread was off its processor for so long since its last event, and waited so often.
pub const fn off_cpu(units: u64, waits: u32) -> [u32; 5] {
    let [low, high] = split62(units);
    [escape(code::OFF_CPU, 0), payload(3), low, high, payload(waits)]
}

/// Another stack runs from here on than the one of the id `left`, which may be [`crate::word::ABANDONED`].
pub const fn switch(left: u64, entered: u64) -> [u32; 6] {
    let ([left_low, left_high], [low, high]) = (split62(left), split62(entered));
    [escape(code::SWITCH, 0), payload(4), left_low, left_high, low, high]
}

/// The thread is on the stack of this id from here on.
pub const fn stack(id: u64) -> [u32; 4] {
    let [low, high] = split62(id);
    [escape(code::STACK, 0), payload(2), low, high]
}

/// The stack of this id begins anew and empty.
pub const fn stack_new(stack: u64) -> [u32; 4] {
    let [low, high] = split62(stack);
    [escape(code::STACK_NEW, 0), payload(2), low, high]
}

/// The function at this site catches an exception.
pub const fn catch(site: u32) -> [u32; 3] {
    [escape(code::CATCH, 0), payload(1), payload(site)]
}

/// On the time line at this time: a [`crate::word::point`] of this kind, whose name is that of a site.
pub const fn point(kind: u32, site: u32, time: u64, value: u64) -> [u32; 8] {
    let [time_low, time_high] = split62(time);
    let [low, middle, high] = split64(value);
    [escape(code::POINT, kind), payload(6), payload(site), time_low, time_high, low, middle, high]
}

/// A thread was interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Bits of [`crate::word::sample`].
    pub bits: u32,
    /// Site of the instruction, 0 where it has none.
    pub site: u32,
    /// Its address.
    pub address: u64,
    /// CPU time of the thread, nanoseconds.
    pub cpu_ns: u64,
    /// Samples before it that found no place, of an event; expirations that found none, of a timer.
    pub missed: u32,
    /// CPU time that it stands for by its event's or timer's period, nanoseconds.
    pub period_ns: u32,
}

/// As an escape.
pub const fn sample(sample: &Sample) -> [u32; 10] {
    let [low, middle, high] = split64(sample.address);
    let [cpu_low, cpu_high] = split62(sample.cpu_ns);
    [
        escape(code::SAMPLE, sample.bits),
        payload(8),
        payload(sample.site),
        low,
        middle,
        high,
        cpu_low,
        cpu_high,
        payload(sample.missed),
        payload(sample.period_ns),
    ]
}

/// A call (kind 0) or return (1) of code outside every window. Of the `cycle` clock a time word
/// comes behind it, which counts as payload.
pub const fn far(address: u64, kind: u32, is_timed: bool) -> [u32; 5] {
    let [low, middle, high] = split64(address);
    [escape(code::FAR, kind), payload(3 + is_timed as u32), low, middle, high]
}

/// A gap: its [`crate::word::gap`] reason, events lost, frames popped below where it began, frames
/// pushed since, clock units to leave out.
pub const fn gap(reason: u32, events: u64, popped: u32, pushed: u32, units: u64) -> [u32; 8] {
    let [lost_low, lost_high] = split62(events);
    let [units_low, units_high] = split62(units);
    [
        escape(code::GAP, reason),
        payload(6),
        lost_low,
        lost_high,
        payload(popped),
        payload(pushed),
        units_low,
        units_high,
    ]
}

/// A module's window opens or is retired ([`crate::word::module`]), up to the bytes of its
/// build-id: build-id and path, three bytes a word each, come behind.
pub const fn module(window: &Window, build_id_bytes: usize, path_bytes: usize) -> [u32; 12] {
    let text = build_id_bytes.div_ceil(3) + path_bytes.div_ceil(3);
    let [address_low, address_middle, address_high] = split64(window.address);
    let [bias_low, bias_middle, bias_high] = split64(window.bias);
    [
        escape(code::MODULE, 0),
        payload((crate::word::module::FIXED + text) as u32),
        payload(match window {
            Window { opens: false, .. } => crate::word::module::RETIRED,
            Window { is_anchored: true, .. } => crate::word::module::ANCHORED,
            Window { is_anchored: false, .. } => crate::word::module::OPENED,
        }),
        payload(window.first_site),
        payload(window.sites),
        address_low,
        address_middle,
        address_high,
        bias_low,
        bias_middle,
        bias_high,
        payload(build_id_bytes as u32),
    ]
}

/// What [`module`] says of a window.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Whether it opens, or is retired.
    pub opens: bool,
    /// See [`crate::word::module::ANCHORED`].
    pub is_anchored: bool,
    /// Its first site.
    pub first_site: u32,
    /// Its number of sites, which are bytes of memory.
    pub sites: u32,
    /// Address of its first byte.
    pub address: u64,
    /// Load bias of the module.
    pub bias: u64,
}
