//! System calls that a signal cut short. The kernel makes them again when the handlers return, if
//! the first handler has SA_RESTART; else they end with EINTR (signal(7)). Where several signals
//! come at once, the kernel writes the frame of each handler on top of the one before, and asks the
//! first handler alone.

use super::context::{BYTES, FLAGS, FLOATING, R11, RAX, RCX, RDX, RIP, RSI, RSP};
use super::{number, return_from_signal};
use crate::platform;

const EINTR: isize = -4;
/// Bytes of the instruction that calls the kernel.
const CALL: usize = 2;
/// Numbers of calls that a signal whose handler has no SA_RESTART ends with EINTR, and that the
/// kernel makes again behind others (signal(7)), but for futex(2): read, write, open, ioctl, readv,
/// writev, sendfile, connect, accept, sendto, recvfrom, sendmsg, recvmsg, wait4, fcntl, flock,
/// creat, syslog, mq_timedsend, mq_timedreceive, waitid, openat, splice, tee, vmsplice, accept4,
/// preadv, pwritev, recvmmsg, sendmmsg, getrandom, preadv2, pwritev2, openat2, futex_waitv,
/// futex_wait.
const ENDED_BY_SIGNALS: [usize; 36] = [
    0, 1, 2, 16, 19, 20, 40, 42, 43, 44, 45, 46, 47, 61, 72, 73, 85, 103, 242, 243, 247, 257, 275,
    276, 278, 288, 295, 296, 299, 307, 318, 327, 328, 437, 449, 455,
];
/// Operations of futex(2) that the kernel makes again, without the bits of their kind: FUTEX_WAIT,
/// FUTEX_WAIT_BITSET.
const WAITS: [usize; 2] = [0, 9];
const FUTEX_BITS: usize = 128 | 256;
/// The area of the floating point's registers ends with its size, behind this word, where
/// there are more registers than FXSAVE knows (asm/sigcontext.h, `struct _fpx_sw_bytes`).
const SIZE_AT: usize = 464;
const HAS_SIZE: u32 = 0x4650_5853;
const FXSAVE: usize = 512;
/// Bytes below the stack pointer that are a function's own (psABI, 3.2.2).
const RED_ZONE: usize = 128;

/// Whether the interrupted code makes a system call again that signals may end with EINTR.
///
/// # Safety
/// `context` is the address of the `ucontext_t` of a handler.
pub(crate) unsafe fn is_made_again(context: usize) -> bool {
    // SAFETY: the caller's promise; the offsets lie within the structure.
    let at = |word: usize| unsafe { (context as *const usize).add(word).read() };
    // The kernel has been called from there: rcx has the address behind the call, and r11 the flags
    // (Intel SDM 2B, SYSCALL).
    at(RCX) == at(RIP).wrapping_add(CALL)
        && at(R11) == at(FLAGS)
        && match at(RAX) {
            number::FUTEX => WAITS.contains(&(at(RSI) & !FUTEX_BITS)),
            number => ENDED_BY_SIGNALS.contains(&number),
        }
}

/// Has the system call end with EINTR that would be made again.
///
/// # Safety
/// `context` is the address of the `ucontext_t` of a handler, of which [`is_made_again`] is true.
pub(crate) unsafe fn end_with_eintr(context: usize) {
    let at = |word: usize| (context as *mut usize).wrapping_add(word);
    // SAFETY: the caller's promise; the kernel takes the registers from there.
    unsafe {
        at(RAX).cast::<isize>().write(EINTR);
        *at(RIP) = (*at(RIP)).wrapping_add(CALL);
    }
}

/// The handler of another signal that ran just now, since that signal came at the same time as the
/// one with this context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OtherHandler {
    /// The signal, if the handler has SA_SIGINFO. Else any number.
    pub(crate) signal: u32,
}

/// The other handler, whose frame lies below the one of `handler`. The kernel wrote both before
/// either ran any instruction. The frame is not found again.
///
/// # Safety
/// `context` is the address of the `ucontext_t` with which the kernel called `handler`, which has
/// used less of the stack than the floating point's registers take.
pub(crate) unsafe fn take_other_handler(context: usize, handler: usize) -> Option<OtherHandler> {
    let frame = context - size_of::<usize>();
    // SAFETY: the caller's promise; the offset lies within the structure.
    let floating = unsafe { (context as *const usize).add(FLOATING).read() };
    let from_frame = floating.checked_sub(frame)?;
    // SAFETY: the kernel has saved the registers there.
    let (has_size, size) = unsafe {
        let place = (floating + SIZE_AT) as *const u32;
        (place.read_unaligned() == HAS_SIZE, place.add(1).read_unaligned() as usize)
    };
    let size = if has_size { size } else { FXSAVE };
    let other = (frame.checked_sub(RED_ZONE + size)? & !63).checked_sub(from_frame)?;
    // The handler's return address, and its context.
    let mut words = [0; 1 + RIP + 1];
    platform::read_own(other, &mut words)?;
    // The runtime's own handlers interrupt each other, too.
    let is_own = words[0] == return_from_signal();
    if is_own || [words[1 + RDX], words[1 + RSP], words[1 + RIP]] != [context, frame, handler] {
        return None;
    }
    let other_context = other + size_of::<usize>();
    let mut information = [0];
    platform::read_own(other_context + BYTES, &mut information)?;
    // A later signal may find the stack as it is left here.
    // SAFETY: the other handler has returned, and what it had on the stack is in no use.
    unsafe { (other_context as *mut usize).add(RIP).write(0) };
    Some(OtherHandler { signal: information[0] as u32 })
}
