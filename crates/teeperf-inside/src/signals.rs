//! The timers' signal, SIGURG. One that comes late, when a program is being executed in the place of ours and nobody handles it yet, does
//! nothing there: of most others, such as SIGPROF, it would be the program's end. Profilers that a program has in it use SIGPROF.
//!
//! It stays this library's, whatever the program does: a handler that the program installs gets those that are not of a timer of ours, as
//! it would without, and no thread is kept from it by a mask, unless the program has such a handler.

use crate::libc::Next;
use crate::{linux, process};
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

/// SIGURG.
pub(crate) const SIGNAL: c_int = 23;
const BIT: u64 = 1 << (SIGNAL - 1);
/// What a processor raises: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV.
const FAULTS: u64 = 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 10;
const SA_SIGINFO: c_int = 4;
const SA_ONSTACK: c_int = 0x0800_0000;
const SA_RESTART: c_int = 0x1000_0000;
const SA_NODEFER: c_int = 0x4000_0000;
const SA_RESETHAND: c_int = 0x8000_0000u32 as c_int;
const SIG_BLOCK: c_int = 0;
const SIG_UNBLOCK: c_int = 1;
const SIG_SETMASK: c_int = 2;
const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
/// Of a `ucontext_t`: `uc_sigmask`.
const MASK: usize = if cfg!(target_arch = "x86_64") { 296 } else { 40 };

/// glibc's `sigset_t`, of which the kernel has the first eight bytes.
type Set = [u64; 16];

/// glibc's `struct sigaction`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Action {
    handler: usize,
    mask: Set,
    flags: c_int,
    restorer: usize,
}

impl Action {
    const DEFAULT: Self = Self { handler: SIG_DFL, mask: [0; 16], flags: 0, restorer: 0 };
}

type Sigaction = unsafe extern "C" fn(c_int, *const Action, *mut Action) -> c_int;
type Signal = unsafe extern "C" fn(c_int, usize) -> usize;
type Sigmask = unsafe extern "C" fn(c_int, *const Set, *mut Set) -> c_int;
type Handler = unsafe extern "C" fn(c_int, *const u8, *const u8);

static SIGACTION: Next = Next::new(c"sigaction");
static SIGNAL_FUNCTION: Next = Next::new(c"signal");
static SIGPROCMASK: Next = Next::new(c"sigprocmask");
static PTHREAD_SIGMASK: Next = Next::new(c"pthread_sigmask");

/// What the program asked for, of which the latest counts: a handler that reads one is done with it long before that is written again.
struct Wish {
    actions: [UnsafeCell<Action>; KEPT],
    latest: AtomicUsize,
    is_written: AtomicBool,
}

// SAFETY: one writer at a time, and that not to what readers look at.
unsafe impl Sync for Wish {}

/// A row of them.
const KEPT: usize = 8;

static WISH: Wish = Wish {
    actions: [const { UnsafeCell::new(Action::DEFAULT) }; KEPT],
    latest: AtomicUsize::new(0),
    is_written: AtomicBool::new(false),
};
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

impl Wish {
    fn get(&self) -> Action {
        // SAFETY: nobody writes to it before another is the latest.
        unsafe { *self.actions[self.latest.load(Acquire) % KEPT].get() }
    }

    fn set(&self, action: Action) {
        while self.is_written.swap(true, Acquire) {
            std::hint::spin_loop();
        }
        let next = (self.latest.load(Relaxed) + 1) % KEPT;
        // SAFETY: this is the only writer, and readers are at the other.
        unsafe { *self.actions[next].get() = action };
        self.latest.store(next, Release);
        self.is_written.store(false, Release);
    }
}

/// Installs the handler. What the program had inherited, ignored or not, is its wish.
pub(crate) fn take() {
    let handler: Handler = expired;
    let mut mask = [u64::MAX; 16];
    mask[0] = !FAULTS;
    let action = Action {
        handler: handler as usize,
        mask,
        flags: SA_SIGINFO | SA_RESTART | SA_ONSTACK,
        restorer: 0,
    };
    let mut before = Action::DEFAULT;
    // SAFETY: its type; a handler of that kind.
    let result =
        unsafe { SIGACTION.get::<Sigaction>()(SIGNAL, &raw const action, &raw mut before) };
    if result == 0 {
        WISH.set(before);
        IS_TAKEN.store(true, Release);
    }
}

/// Lets the calling thread get the signal, unless the program cares for it itself.
pub(crate) fn unblock() {
    if !has_handler() {
        linux::mask(SIG_UNBLOCK as usize, BIT);
    }
}

fn has_handler() -> bool {
    !matches!(WISH.get().handler, SIG_DFL | SIG_IGN)
}

unsafe extern "C" fn expired(signal: c_int, info: *const u8, context: *const u8) {
    // SAFETY: as the kernel gave them to this handler, which its own mask keeps from being interrupted.
    let is_ours =
        process::this().is_some_and(|process| unsafe { process.sampler.expired(info, context) });
    if !is_ours {
        // SAFETY: as above.
        unsafe { hand_on(signal, info, context) };
    }
}

/// Does what the program wished.
unsafe fn hand_on(signal: c_int, info: *const u8, context: *const u8) {
    let wish = WISH.get();
    match wish.handler {
        SIG_DFL | SIG_IGN => {}
        handler => {
            if wish.flags & SA_RESETHAND != 0 {
                WISH.set(Action::DEFAULT);
            }
            let own = if wish.flags & SA_NODEFER == 0 { BIT } else { 0 };
            // SAFETY: within a `ucontext_t`.
            let before = unsafe { context.add(MASK).cast::<u64>().read() };
            linux::mask(SIG_SETMASK as usize, before | wish.mask[0] | own);
            // SAFETY: the program's, which takes one argument or three. The kernel restores the mask.
            unsafe { std::mem::transmute::<usize, Handler>(handler)(signal, info, context) };
        }
    }
}

/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sigaction(
    signal: c_int,
    action: *const Action,
    before: *mut Action,
) -> c_int {
    if signal != SIGNAL || !IS_TAKEN.load(Acquire) {
        // SAFETY: its type, and the caller's promise.
        return unsafe { SIGACTION.get::<Sigaction>()(signal, action, before) };
    }
    let old = WISH.get();
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(action) = action.as_ref() {
            WISH.set(*action);
        }
        if let Some(before) = before.as_mut() {
            *before = old;
        }
    }
    0
}

/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn signal(number: c_int, handler: usize) -> usize {
    if number != SIGNAL || !IS_TAKEN.load(Acquire) {
        // SAFETY: its type, and the caller's promise.
        return unsafe { SIGNAL_FUNCTION.get::<Signal>()(number, handler) };
    }
    let old = WISH.get().handler;
    WISH.set(Action { handler, flags: SA_RESTART, ..Action::DEFAULT });
    old
}

/// The set without the signal, where it would keep it from a thread.
///
/// # Safety
/// `set` is null or a set.
unsafe fn without(how: c_int, set: *const Set) -> Option<Set> {
    // SAFETY: the caller's promise.
    let mut set = unsafe { *set.as_ref()? };
    let keeps = matches!(how, SIG_BLOCK | SIG_SETMASK) && set[0] & BIT != 0;
    set[0] &= !BIT;
    (keeps && IS_TAKEN.load(Acquire) && !has_handler()).then_some(set)
}

/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sigprocmask(
    how: c_int,
    set: *const Set,
    before: *mut Set,
) -> c_int {
    // SAFETY: the caller's promise, and its type.
    unsafe {
        let changed = without(how, set);
        let set = changed.as_ref().map_or(set, |set| &raw const *set);
        SIGPROCMASK.get::<Sigmask>()(how, set, before)
    }
}

/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    set: *const Set,
    before: *mut Set,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let changed = without(how, set);
        let set = changed.as_ref().map_or(set, |set| &raw const *set);
        PTHREAD_SIGMASK.get::<Sigmask>()(how, set, before)
    }
}
