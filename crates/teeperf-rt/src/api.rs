//! What the stub calls when a module comes and goes, and what `teeperf.h` promises programs.

use crate::block::Block;
use crate::clock;
use crate::event;
use crate::filter;
use crate::leap;
use crate::module;
use crate::pauses;
use crate::process::{self, Life};
use crate::sampler;
use crate::stacks;
use crate::thread;
use crate::writer::{self, MAX_TEXT};
use core::ffi::{CStr, c_char, c_int};
use teeperf_wire::word::{self, code};

/// A module's constructor.
///
/// # Safety
/// `block` is the block of a stub, in a module that stays loaded until it is unregistered.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub unsafe extern "C" fn teeperf_rt_register(block: &'static Block) {
    // SAFETY: the caller's promise.
    unsafe { module::register(block) };
}

/// A module's destructor.
///
/// # Safety
/// `block` is the block of a stub.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub unsafe extern "C" fn teeperf_rt_unregister(block: &'static Block) {
    sampler::tell_cpu_time();
    module::unregister(block);
}

/// Stops recording in this process until [`teeperf_rt_resume`], in every thread from its next event
/// on. Not for signal handlers.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_pause() {
    process::set_paused(true);
    pauses::meet(thread::current());
    module::look_again();
}

/// Goes on after [`teeperf_rt_pause`]. Not for signal handlers.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_resume() {
    pauses::leave(thread::current());
    process::set_paused(false);
    module::look_again();
}

/// 1 while events of the calling thread are recorded, else 0.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_recording() -> c_int {
    c_int::from(process::life() == Life::On && !process::is_paused())
}

/// Puts a text on the time line.
///
/// # Safety
/// `text` is a string of C.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub unsafe extern "C" fn teeperf_rt_note(text: *const c_char) {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_bytes();
    let text = &text[..text.len().min(MAX_TEXT)];
    event::put(None, |thread| {
        filter::leaves_out_points() || writer::text(thread, code::NOTE, text)
    });
}

/// Another stack runs from here on: ids are any numbers that stand for stacks, 0 for the thread's
/// own.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_stack_switch(left: u64, entered: u64) {
    stacks::are_told();
    leap::switch(None, left, entered);
}

/// The stack of this id runs from here on, whichever did before.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_stack_enter(stack: u64) {
    stacks::are_told();
    leap::enter(None, stack);
}

/// The memory of a stack that begins anew and empty: which stack runs is told by the stack pointer.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_stack_memory(low: usize, size: usize) {
    stacks::is_memory(low as u64, size as u64, low as u64);
    stacks::watch();
    leap::begin_stack(None, low as u64);
}

/// A stack begins anew and empty; it is entered by [`teeperf_rt_stack_switch`].
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_stack_new(stack: u64) {
    leap::begin_stack(None, stack);
}

/// The present time in clock units; 0 while nothing is recorded.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_now() -> u64 {
    if process::life() == Life::On { clock::now() } else { 0 }
}

/// The async function at `address` goes on, which was polled last at `since`, a time of [`teeperf_rt_now`]. Where calls are
/// summed in place of being written, so that runs can be of any length, waits are not written either.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_wait(address: usize, since: u64) {
    if since == 0 || process::has_trees() {
        return;
    }
    event::put(None, |thread| {
        let Some(site) = module::site_of(address as u64) else { return true };
        let [low, high] = word::split62(clock::now().saturating_sub(since));
        writer::escape(thread, code::WAIT, 0, &[word::payload(site), low, high])
    });
}

/// Puts a point on the time line: what it is says [`word::point`], how it is called the site at `address`. Where calls are
/// summed in place of being written, there is none.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_point(address: usize, kind: u32, value: u64) {
    if process::life() != Life::On || process::has_trees() {
        return;
    }
    let now = clock::exactly_now();
    event::put(None, |thread| {
        let site = module::site_of(address as u64).filter(|_| !filter::leaves_out_points());
        let Some(site) = site else { return true };
        let ([low, high], [a, b, c]) = (word::split62(now), word::split64(value));
        writer::escape(thread, code::POINT, kind, &[word::payload(site), low, high, a, b, c])
    });
}

/// The runtime's version: major and minor, sixteen bits each.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_version() -> u32 {
    VERSION
}

const VERSION: u32 = 1;
