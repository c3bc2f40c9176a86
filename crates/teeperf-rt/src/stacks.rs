//! Which stack a thread is on, told by its stack pointer: for programs whose stacks are switched by a few instructions of
//! their own, which no hook and no wrapper sees.
//!
//! Where code is loaded that does so ([`code`]), or a stack pointer is seen far from where its thread began, stacks are watched:
//! hooks look whether the stack pointer lies in the thread's **window** ([`hook::thread::STACK_LOW`]),
//! ([`hook::module::STACKS`]). Who comes from outside of it comes here, before the event is written:
//!
//! * the thread's own stack has the bounds that the kernel tells;
//! * a stack for signal handlers is no other stack: the handler runs on top of what it interrupted;
//! * any other stack is known by its pages ([`pages`]). A page that nobody knows belongs to the stack right above or below
//!   it; if there is none, a stack begins there.
//!
//! Nobody says when such a stack ends. Where its first function, or another at its place, is called again, it begins anew.
//!
//! A program that says by itself where its stacks change ([`are_told`]) is not watched.

pub(crate) mod code;
mod pages;

use crate::arch;
use crate::block::Block;
use crate::leap;
use crate::maps;
use crate::module;
use crate::platform;
use crate::process;
use crate::thread::Thread;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;
use pages::{PAGE, Record};
#[cfg(doc)]
use teeperf_wire::hook;

/// Nobody looks; a stack pointer far from where the thread began has them watched.
const UNWATCHED: u8 = 0;
/// Hooks look at each event.
const WATCHED: u8 = 1;
/// Never: the program says so by itself, or that was asked for.
const NEVER: u8 = 2;

static MODE: AtomicU8 = AtomicU8::new(UNWATCHED);

/// A stack pointer so far from where a thread was first seen is taken for that of another stack, where nobody looks at each
/// event: the usual limit of a stack is half of it.
const FAR: u64 = 16 << 20;
/// A frame is its stack's when so many bytes, or fewer, are between the two.
const NEAR: u64 = 8 << 10;
/// The largest frame that is known as such.
const LARGEST_FRAME: u64 = 256 << 10;
/// Pages of a window above and below where a thread is.
const WINDOW: u64 = 64;

/// Where an event's hook was called.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// The function's stack pointer: what it calls returns to below that.
    pub(crate) pointer: u64,
    /// The function.
    pub(crate) address: u64,
    /// Where the function returns to, 0 if that is not known.
    pub(crate) site: u64,
    /// Whether it is called.
    pub(crate) is_call: bool,
}

/// Whether hooks are to look at the stack pointer.
pub(crate) fn are_watched() -> bool {
    MODE.load(Relaxed) == WATCHED
}

/// As the recorder wants it for a process that attaches.
pub(crate) fn begin(is_watched: bool, is_never: bool) {
    // The child of a fork goes on as its parent, who has looked through the libraries.
    match (is_watched, is_never, MODE.load(Relaxed)) {
        (_, true, _) => MODE.store(NEVER, Relaxed),
        (true, _, UNWATCHED) => MODE.store(WATCHED, Relaxed),
        (_, _, UNWATCHED) if process::epoch() == 0 => code::look_through_libraries(),
        _ => {}
    }
}

/// The program says where its stacks change, and is believed.
pub(crate) fn are_told() {
    MODE.store(NEVER, Relaxed);
}

/// Hooks look at each event from here on, unless they never are to.
pub(crate) fn watch() {
    if MODE.compare_exchange(UNWATCHED, WATCHED, Relaxed, Relaxed).is_ok() {
        module::watch_stacks();
    }
}

/// This memory is one stack, of this id, on which nothing is open.
pub(crate) fn is_memory(low: u64, size: u64, id: u64) {
    if let Some(record) = pages::begin(id) {
        // The page that it shares with what lies below it is the other one's: a stack is used from its upper end.
        let first = low.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        pages::claim(first, low.saturating_add(size), &record);
        record.is_told();
    }
}

/// An event comes the long way: if it is on another stack than those before, that is written first.
#[inline(always)]
pub(crate) fn look(block: &Block, place: Place) {
    let mode = MODE.load(Relaxed);
    if mode == NEVER {
        return;
    }
    let thread = block.thread();
    let is_near = if mode == WATCHED {
        is_in_window(thread, place.pointer)
    } else {
        place.pointer.abs_diff(thread.anchor.load(Relaxed)) < FAR
    };
    if !is_near {
        look_closely(thread, block, place);
    }
}

fn is_in_window(thread: &Thread, pointer: u64) -> bool {
    let (low, size) = (thread.stack_low.load(Relaxed), thread.stack_size.load(Relaxed));
    pointer.wrapping_sub(low) < size
}

#[cold]
#[inline(never)]
fn look_closely(thread: &Thread, block: &Block, place: Place) {
    if thread.is_busy() || !process::is_attached() {
        return;
    }
    if !are_watched() {
        if thread.anchor.load(Relaxed) == 0 {
            return thread.anchor.store(place.pointer, Relaxed);
        }
        if platform::signal_stack().is_some() {
            return;
        }
        watch();
    }
    let Some((low, high)) = own_stack(thread, &place) else {
        // What is not known cannot be left.
        return set_window(thread, 0, u64::MAX);
    };
    if (low..high).contains(&place.pointer) {
        return go_on(thread, block, 0, (low, high));
    }
    if let Some((low, high)) = platform::signal_stack() {
        return set_window(thread, low, high);
    }
    let Some(record) = pages::owner(place.pointer).or_else(|| neighbour(&place)) else {
        return begin_stack(thread, block, place);
    };
    pages::claim(place.pointer, place.pointer + 1, &record);
    let id = record.id();
    if id != thread.stack.load(Relaxed)
        && place.is_call
        && record.begins_anew(&place, frame(&place))
    {
        leap::begin_stack(Some(block), id);
    }
    go_on(thread, block, id, pages::around(place.pointer, &record, WINDOW));
}

/// Nobody has seen this stack.
fn begin_stack(thread: &Thread, block: &Block, place: Place) {
    // An address within the stack, and odd: no number that a program gives to a stack by its address.
    let Some(record) = pages::begin(place.pointer | 1) else {
        return set_window(thread, 0, u64::MAX);
    };
    let frame = frame(&place);
    pages::claim(place.pointer, frame + 1, &record);
    if place.is_call {
        record.set_base(&place, frame);
    }
    leap::begin_stack(Some(block), record.id());
    go_on(thread, block, record.id(), pages::around(place.pointer, &record, WINDOW));
}

/// The thread is on this stack from here on.
fn go_on(thread: &Thread, block: &Block, id: u64, (low, high): (u64, u64)) {
    if id == thread.stack.load(Relaxed) || leap::enter(Some(block), id) {
        set_window(thread, low, high);
    } else {
        // To be written with the next event.
        set_window(thread, 0, 0);
    }
}

fn set_window(thread: &Thread, low: u64, high: u64) {
    thread.stack_size.store(0, Relaxed);
    thread.stack_low.store(low, Relaxed);
    thread.stack_size.store(high - low, Relaxed);
}

/// Bounds of the thread's own stack, where they can be told.
fn own_stack(thread: &Thread, place: &Place) -> Option<(u64, u64)> {
    let known = (thread.own_low.load(Relaxed), thread.own_high.load(Relaxed));
    if known.1 != 0 {
        return Some(known);
    }
    let pointer = arch::thread_pointer() as u64;
    let is_first = platform::thread_id() == platform::process_id();
    let (low, high) =
        maps::own_stack(is_first, pointer, process::is_forked().then_some(place.pointer))?;
    thread.own_low.store(low, Relaxed);
    thread.own_high.store(high, Relaxed);
    Some((low, high))
}

/// The stack that a page belongs to which nobody knows.
fn neighbour(place: &Place) -> Option<Record> {
    let top = place.pointer.checked_next_multiple_of(PAGE)?;
    let above = |from: u64, most: u64| {
        let bounds = (from..from.saturating_add(most)).step_by(PAGE as usize);
        bounds.into_iter().find_map(|at| pages::owner(at).map(|record| (at, record)))
    };
    if let Some((_, record)) = above(top, NEAR) {
        return Some(record);
    }
    // A large frame, or frames of functions without hooks. Where the function returns to stands at its frame's upper end.
    if place.is_call
        && let Some((at, record)) = above(top, LARGEST_FRAME)
        && let Some(frame) = return_slot(place, at)
        && at.saturating_sub(frame) < NEAR
    {
        pages::claim(frame, frame + 1, &record);
        return Some(record);
    }
    pages::owner(place.pointer.saturating_sub(PAGE))
}

/// The upper end of a called function's frame, or what is known of it.
fn frame(place: &Place) -> u64 {
    let end = place.pointer.saturating_add(NEAR);
    return_slot(place, end).unwrap_or(place.pointer)
}

/// Where the function's return address stands, between its stack pointer and an address above.
fn return_slot(place: &Place, end: u64) -> Option<u64> {
    if place.site == 0 || !place.is_call {
        return None;
    }
    let mut at = place.pointer & !7;
    while at < end {
        if at.is_multiple_of(PAGE) && !platform::is_readable(at as usize) {
            return None;
        }
        // SAFETY: aligned, and in a page that is there: the stack pointer's, or one that was just looked at.
        if unsafe { (at as *const u64).read_volatile() } == place.site {
            return Some(at);
        }
        at += 8;
    }
    None
}
