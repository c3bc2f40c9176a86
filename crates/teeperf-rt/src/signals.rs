//! The program's own wishes for the signal by which the runtime interrupts threads: what it would have
//! done with it is done with those that are not the runtime's.

use crate::platform::mask;
use crate::process;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicUsize};

const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
const SA_RESTART: usize = 0x1000_0000;
const SA_NODEFER: usize = 0x4000_0000;
const SA_RESETHAND: usize = 0x8000_0000;

/// `struct sigaction` of C libraries for x86-64 Linux.
#[repr(C)]
pub struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: i32,
    restorer: usize,
}

/// What the program has asked for: words of a `struct sigaction` that count.
struct Wish {
    handler: AtomicUsize,
    mask: AtomicUsize,
    flags: AtomicU32,
}

static WISH: Wish = Wish {
    handler: AtomicUsize::new(SIG_DFL),
    mask: AtomicUsize::new(0),
    flags: AtomicU32::new(0),
};

/// Keeps what the process had inherited, as the kernel has it.
pub(crate) fn inherited(handler: usize, flags: usize, mask: usize) {
    set(handler, flags, mask);
}

fn set(handler: usize, flags: usize, mask: usize) {
    WISH.flags.store(flags as u32, Relaxed);
    WISH.mask.store(mask, Relaxed);
    WISH.handler.store(handler, Release);
}

fn has_handler() -> bool {
    !matches!(WISH.handler.load(Acquire), SIG_DFL | SIG_IGN)
}

/// Lets the calling thread get the signal, unless the program cares for it itself.
pub(crate) fn unblock() {
    if process::is_sampled() && !has_handler() {
        mask::let_through();
    }
}

/// Calls the handler of the program, if it has one, for a signal that is not the runtime's.
///
/// # Safety
/// The arguments are those of a handler.
pub(crate) unsafe fn hand_on(signal: i32, information: usize, context: usize) {
    let handler = WISH.handler.load(Acquire);
    if matches!(handler, SIG_DFL | SIG_IGN) {
        return;
    }
    let flags = WISH.flags.load(Relaxed) as usize;
    if flags & SA_RESETHAND != 0 {
        WISH.handler.store(SIG_DFL, Release);
    }
    // SAFETY: the caller's promise.
    let before = unsafe { crate::arch::mask_in_context(context) };
    mask::set(before | WISH.mask.load(Relaxed) as u64, flags & SA_NODEFER == 0);
    // SAFETY: the program's handler, which takes one argument or three. The kernel restores the mask.
    unsafe {
        core::mem::transmute::<usize, extern "C" fn(i32, usize, usize)>(handler)(
            signal,
            information,
            context,
        );
    }
}

/// The program asks for another action, or what it is. Says whether it was the runtime's business.
///
/// # Safety
/// Both are null or as sigaction(2) has them.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub unsafe extern "C" fn teeperf_rt_sigaction(action: *const Action, before: *mut Action) -> i32 {
    if !process::is_sampled() {
        return 0;
    }
    let handler = WISH.handler.load(Acquire);
    let mut mask = [0; 16];
    mask[0] = WISH.mask.load(Relaxed) as u64;
    let flags = WISH.flags.load(Relaxed).cast_signed();
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(action) = action.as_ref() {
            set(action.handler, action.flags as usize, action.mask[0] as usize);
        }
        if let Some(before) = before.as_mut() {
            *before = Action { handler, mask, flags, restorer: 0 };
        }
    }
    1
}

/// What [`teeperf_rt_signal`] gives: whether it was the runtime's business, and the handler before.
#[repr(C)]
pub struct Before {
    is_ours: usize,
    handler: usize,
}

/// The program asks for another handler.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_signal(handler: usize) -> Before {
    if !process::is_sampled() {
        return Before { is_ours: 0, handler: 0 };
    }
    let before = WISH.handler.load(Acquire);
    set(handler, SA_RESTART, 0);
    Before { is_ours: 1, handler: before }
}

/// The calling thread has changed which signals it blocks.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_unblock() {
    unblock();
}
