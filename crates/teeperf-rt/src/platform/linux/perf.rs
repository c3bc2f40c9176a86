//! Events of the kernel that interrupt a thread of this process (perf_event_open(2)): its CPU time,
//! in user mode alone. One that were to interrupt system calls as well would end some of them with
//! EINTR.
//!
//! An event lives as long as a mapping of it. So no descriptor is needed, which the program could
//! close, or whose number it could need.

use super::timer;
use crate::arch::{self, number, syscall};
use crate::sandbox;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

const TYPE_SOFTWARE: u32 = 1;
const TASK_CLOCK: u64 = 1;
/// `PERF_ATTR_SIZE_VER0`.
const SIZE: u32 = 64;
const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const CLOSE_ON_EXEC: usize = 8;
/// `PERF_EVENT_IOC_REFRESH`: enables an event until it has come so often.
const REFRESH: usize = 0x2402;
const F_SETFL: usize = 4;
const F_SETSIG: usize = 10;
const F_SETOWN_EX: usize = 15;
const O_RDWR: usize = 2;
const O_ASYNC: usize = 0x2000;
const PROT_READ: usize = 1;
const MAP_SHARED: usize = 1;
/// Any processor, and no group.
const ANY: usize = usize::MAX;
const NONE: usize = usize::MAX;

/// `struct perf_event_attr`, as much of it as all kernels know.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
}

/// When an event interrupts a thread: nanoseconds of CPU time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// Each time that it has had so many.
    Each(u64),
    /// When it has had so many, and never again.
    Once(u64),
}

/// The task of the thread that makes the events of another one.
struct Work<'a> {
    thread: u32,
    whens: &'a [When],
    mappings: &'a [AtomicUsize],
}

/// Interrupts the calling thread, whose id this is, when `whens` says, one event for each of these,
/// unless the kernel runs then. Gives the addresses of the mappings that the events live in; says
/// whether there are all of them.
///
/// Another thread makes them, which has descriptors of its own: no other thread of this process,
/// and no child that it forks, ever sees one. It is gone when this returns, so that a program may
/// do what the kernel lets a process of one thread alone do.
pub(crate) fn begin(thread: u32, whens: &[When], mappings: &[AtomicUsize]) -> bool {
    const NEEDED: [usize; 3] = [number::PERF_EVENT_OPEN, number::FCNTL, number::IOCTL];
    if NEEDED.iter().any(|&number| sandbox::forbids(number)) {
        return false;
    }
    let work = Work { thread, whens, mappings };
    let mut stack = [0; 128];
    let _mask = super::Mask::new();
    // SAFETY: the other thread writes to nothing but the addresses.
    let maker = unsafe { arch::beside(open_all, &raw const work as usize, &mut stack) };
    if let Ok(maker @ 1..) = u32::try_from(maker) {
        await_end(maker);
    }
    mappings.iter().all(|mapping| mapping.load(Relaxed) != 0)
}

/// Waits until a thread is gone that has nothing to do any more. A debugger may keep it for longer.
fn await_end(thread: u32) {
    const MOST: usize = 1000;
    for _ in 0..MOST {
        if !super::has_thread(thread) {
            return;
        }
        super::give_way();
    }
}

extern "C" fn open_all(work: usize) {
    // SAFETY: the thread that waits for this has put it there.
    let Work { thread, whens, mappings } = unsafe { &*(work as *const Work<'_>) };
    for (&when, mapping) in whens.iter().zip(*mappings) {
        mapping.store(open(*thread, when).unwrap_or(0), Relaxed);
    }
}

fn open(thread: u32, when: When) -> Option<usize> {
    let (period, disabled) = match when {
        When::Each(period) => (period, 0),
        When::Once(period) => (period, DISABLED),
    };
    let attributes = Attributes {
        kind: TYPE_SOFTWARE,
        size: SIZE,
        config: TASK_CLOCK,
        period,
        flags: disabled | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        wakeup: 1,
        ..Attributes::default()
    };
    let attributes = &raw const attributes as usize;
    let thread_id = thread as usize;
    // SAFETY: the kernel reads the structure.
    let event = unsafe {
        syscall(number::PERF_EVENT_OPEN, [attributes, thread_id, ANY, NONE, CLOSE_ON_EXEC, 0])
    };
    let event = usize::try_from(event).ok()?;
    tell(event, thread)?;
    let mapping = map(event)?;
    if disabled != 0 {
        // SAFETY: no pointers.
        unsafe { syscall(number::IOCTL, [event, REFRESH, 1, 0, 0, 0]) };
    }
    Some(mapping)
}

/// Ends an event.
pub(crate) fn end(mapping: usize) {
    super::unmap(mapping, super::PAGE);
}

fn tell(event: usize, thread: u32) -> Option<()> {
    // `struct f_owner_ex`: F_OWNER_TID, and the thread.
    let owner = [0u32, thread];
    let owner = &raw const owner as usize;
    let calls = [(F_SETSIG, timer::signal()), (F_SETOWN_EX, owner), (F_SETFL, O_RDWR | O_ASYNC)];
    // SAFETY: the kernel reads the owner.
    let is_done = |&(what, argument): &(usize, usize)| unsafe {
        syscall(number::FCNTL, [event, what, argument, 0, 0, 0]) == 0
    };
    calls.iter().all(is_done).then_some(())
}

fn map(event: usize) -> Option<usize> {
    // SAFETY: a new mapping, wherever the kernel puts it.
    let address =
        unsafe { syscall(number::MMAP, [0, super::PAGE, PROT_READ, MAP_SHARED, event, 0]) };
    usize::try_from(address).ok()
}
