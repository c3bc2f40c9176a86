//! Ways out of a function that no hook sees, told by the stub's wrappers of C library functions:
//! `setjmp` and `longjmp`, `vfork`, `ucontext`, caught exceptions. While nothing is recorded, and in the
//! midst of a change of chunks, they are left out, and a reader mends the frames at the next return; but
//! a `longjmp` is told late, where it is known where to.

use crate::arch;
use crate::block::Block;
use crate::event;
use crate::event::writing::{self, Told};
use crate::filter;
use crate::module;
use crate::process;
use crate::stacks;
use crate::sums::{self, Leap};
use crate::thread::{self, Thread};
use crate::writer;
use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use teeperf_wire::compose;
use teeperf_wire::hook::unwinding;
use teeperf_wire::shared::chunk::STACK_NOT_TOLD;
use teeperf_wire::word::{self, code};

/// Whether threads of this process have other stacks than their own, between which they may jump.
static HAS_STACKS: AtomicBool = AtomicBool::new(false);

/// A mark, jump, or begin or end of a `vfork`: `what` is its code, at `place` in memory.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_leap(what: u32, place: usize, _: usize, block: &Block) {
    match what {
        code::MARK | code::JUMP if event::is_claimed() => {
            let thread = thread::current();
            if leap_unwritten(thread, what, name_of(place)) {
                thread.abandon();
            }
        }
        code::MARK | code::JUMP => plain(block, what, place),
        code::VFORK_BEGIN => {
            plain(block, what, place);
            // The child has the thread's storage, but the kernel does not know of its sequences.
            thread::current().rseq.store(0, Relaxed);
        }
        code::VFORK_END => {
            thread::current().find_rseq();
            plain(block, what, place);
        }
        _ => {}
    }
}

/// The context at `a` is about to run (`what` is [`code::JUMP`]), or that at `b`, with the present
/// one kept at `a` ([`code::SWITCH`]). On the stack that runs already it is a jump to where
/// the context was taken.
///
/// # Safety
/// The addresses are those of contexts (`ucontext_t`).
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub unsafe extern "C" fn teeperf_rt_context(what: u32, a: usize, b: usize, block: &Block) {
    let entered = if what == code::SWITCH { b } else { a };
    // SAFETY: the caller's promise.
    let stack = unsafe { arch::stack_of_context(entered) };
    let left = thread::current().stack.load(Relaxed);
    if what == code::SWITCH {
        plain(block, code::MARK, a);
    }
    let is_there = if left == STACK_NOT_TOLD {
        // SAFETY: the caller's promise.
        unsafe { arch::is_on_stack_of_context(entered) }
    } else {
        stack == left
    };
    if is_there {
        plain(block, code::JUMP, entered);
        return;
    }
    enter(Some(block), stack);
    if left == STACK_NOT_TOLD && stack == 0 {
        // Perhaps it was on its own stack all the time.
        plain(block, code::JUMP, entered);
        thread::current().stack.store(0, Relaxed);
    }
}

/// A context was made, to begin with a function on a stack of its own.
///
/// # Safety
/// `context` is that of the context.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub unsafe extern "C" fn teeperf_rt_context_made(context: usize, block: &Block) {
    // SAFETY: the caller's promise.
    let stack = unsafe { arch::stack_of_context(context) };
    if stack != 0 {
        begin_stack(Some(block), stack);
        // SAFETY: the caller's promise.
        stacks::is_memory(stack, unsafe { arch::stack_size_of_context(context) }, stack);
        // SAFETY: the caller's promise; the context has not run yet.
        unsafe { arch::watch_end_of_context(context) };
    }
}

/// A context's function has returned; the context it was linked to, if any, is about to run.
pub(crate) fn context_ended(linked: usize) {
    if linked != 0 {
        // SAFETY: the C library is about to run the context there.
        switch(None, word::ABANDONED, unsafe { arch::stack_of_context(linked) });
    }
}

/// The stack of this id runs from here on, whichever did before; says whether that is written.
pub(crate) fn enter(block: Option<&Block>, stack: u64) -> bool {
    HAS_STACKS.store(true, Relaxed);
    let is_written = event::put(block, |thread| tell(thread, Leap::Stack(stack)));
    thread::current().stack.store(stack, Relaxed);
    is_written
}

/// Another stack runs from here on.
pub(crate) fn switch(block: Option<&Block>, left: u64, entered: u64) {
    HAS_STACKS.store(true, Relaxed);
    event::put(block, |thread| tell(thread, Leap::Switch(left, entered)));
    thread::current().stack.store(entered, Relaxed);
}

/// A stack begins anew and empty.
pub(crate) fn begin_stack(block: Option<&Block>, stack: u64) {
    HAS_STACKS.store(true, Relaxed);
    event::put(block, |thread| tell(thread, Leap::NewStack(stack)));
}

/// The function at `address` caught an exception.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_catch(address: usize, block: &Block) {
    event::put(Some(block), |thread| tell(thread, Leap::Catch(address as u64)));
}

/// Has the thread's tree follow it, or writes it where events are written; says whether there was room.
pub(crate) fn tell(thread: &Thread, leap: Leap) -> bool {
    if let Leap::Catch(address) = leap
        && filter::passes(thread, address) == Some(false)
    {
        // There is no frame of it to fall to.
        return true;
    }
    if process::has_trees() {
        sums::leap(thread, leap);
        return true;
    }
    let out = |words: &[u32]| writing::write(thread, Told::Leap(words));
    match leap {
        // The function that runs stays the same.
        Leap::Mark(name) => writer::escape(thread, code::MARK, name, &[]),
        Leap::VforkBegin => writer::escape(thread, code::VFORK_BEGIN, 0, &[]),
        Leap::Jump(name) => out(&[word::escape(code::JUMP, name)]),
        Leap::VforkEnd => out(&[word::escape(code::VFORK_END, 0)]),
        Leap::Switch(left, entered) => out(&compose::switch(left, entered)),
        Leap::Stack(stack) => out(&compose::stack(stack)),
        Leap::NewStack(stack) => out(&compose::stack_new(stack)),
        Leap::Catch(address) => {
            module::site_of(address).is_none_or(|site| out(&compose::catch(site)))
        }
    }
}

/// Tells of a jump when it is over: what passed since is not known to be before it.
pub(crate) fn tell_late(thread: &Thread, name: u32) -> bool {
    if process::has_trees() {
        sums::leap_late(thread, name);
        return true;
    }
    writer::escape(thread, code::JUMP, name, &[])
}

/// What the stub's wrapper has on its stack: [`unwinding`].
#[repr(C)]
pub struct Unwinding {
    target: usize,
    get_cfa: extern "C" fn(*mut c_void) -> usize,
    get_ip: extern "C" fn(*mut c_void) -> usize,
    find_function: extern "C" fn(usize) -> usize,
    block: *const Block,
}

const _: () = assert!(core::mem::offset_of!(Unwinding, target) == unwinding::TARGET);
const _: () = assert!(core::mem::offset_of!(Unwinding, get_cfa) == unwinding::GET_CFA);
const _: () = assert!(core::mem::offset_of!(Unwinding, get_ip) == unwinding::GET_IP);
const _: () = assert!(core::mem::offset_of!(Unwinding, find_function) == unwinding::FIND_FUNCTION);
const _: () = assert!(core::mem::offset_of!(Unwinding, block) == unwinding::BLOCK);
const _: () = assert!(size_of::<Unwinding>() == unwinding::SIZE);

/// A frame that an exception leaves, from the innermost on, on its way to where it goes on: where its
/// function has hooks, it returns. Says whether to go on (C++ ABI for Itanium: Exception Handling, 1.1).
///
/// # Safety
/// `unwinding` is that of the wrapper, and `context` the unwinder's.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub unsafe extern "C" fn teeperf_rt_left(context: *mut c_void, unwinding: &Unwinding) -> c_int {
    const GO_ON: c_int = 0;
    const STOP: c_int = 4;
    let is_done = (unwinding.get_cfa)(context) >= unwinding.target;
    // The frame of the function that has this done, whose callees unwind.
    let place = if is_done { 0 } else { &raw const *unwinding as usize };
    thread::current().unwinding.store(place, Relaxed);
    if is_done {
        return STOP;
    }
    let call = (unwinding.get_ip)(context).wrapping_sub(1);
    let part = (unwinding.find_function)(call);
    if let Some((block, code)) = module::block_of(part as u64) {
        // SAFETY: the module's own code, which has come as far as this call.
        let (function, is_left) = unsafe {
            let function = arch::whole_function(part, code.start);
            let end = if function == part { call } else { code.end };
            let is_hooked = arch::calls(part, call, block.hook())
                || arch::has_late_hook(function, end, block.late_word());
            (function, is_hooked)
        };
        if is_left {
            // SAFETY: the stub's block.
            unsafe {
                event::teeperf_rt_event(function, 1, &*unwinding.block, 0, arch::stack_pointer())
            };
        }
    }
    GO_ON
}

fn plain(block: &Block, what: u32, place: usize) {
    let name = name_of(place);
    if what == code::JUMP && HAS_STACKS.load(Relaxed) {
        // The mark may be on another stack, which replay knows.
        thread::current().stack.store(STACK_NOT_TOLD, Relaxed);
    }
    let leap = match what {
        code::MARK => Leap::Mark(name),
        code::JUMP => Leap::Jump(name),
        code::VFORK_BEGIN => Leap::VforkBegin,
        _ => Leap::VforkEnd,
    };
    if !event::put(Some(block), |thread| tell(thread, leap)) && process::is_attached() {
        leap_unwritten(thread::current(), what, name);
    }
}

/// Says whether it is a jump to a mark that is written.
fn leap_unwritten(thread: &Thread, what: u32, name: u32) -> bool {
    if what == code::MARK {
        thread.mark_unwritten(name);
    }
    what == code::JUMP && thread.jump_unwritten(name)
}

/// 24 bits that stand for an address.
fn name_of(place: usize) -> u32 {
    ((place as u64 >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u32
}
