//! Linux, by raw system calls. Structures are those of the kernel's ABI for 64-bit
//! processors.

use crate::arch::{self, number, syscall};
use crate::sandbox;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
mod action;
mod attempt;
mod file;
mod inode;
pub(crate) mod mask;
pub(crate) mod perf;
mod rights;
mod socket;
pub(crate) mod timer;
pub(crate) use action::{Action, SIG_DFL, is_no_handler};
pub(crate) use attempt::child_survives;
pub(crate) use file::{File, open};
pub(crate) use inode::Inode;
pub(crate) use mask::Mask;
pub(crate) use rights::{effective_user, has_rights_of_its_own};
pub(crate) use socket::{exchange, is_abandoned};

const PAGE: usize = 4096;
const PROT_READ: usize = 1;
const PROT_WRITE: usize = 2;
const MAP_SHARED: usize = 1;
const MAP_PRIVATE: usize = 2;
const MAP_FIXED: usize = 0x10;
const MAP_NORESERVE: usize = 0x4000;
const MAP_ANONYMOUS: usize = 0x20;
const MADV_WIPEONFORK: usize = 18;
const MADV_POPULATE_WRITE: usize = 23;
const F_GET_SEALS: usize = 1034;
const SEALED_SIZE: isize = 0x2 | 0x4;
const CLOCK_REALTIME: usize = 0;
const CLOCK_MONOTONIC: usize = 1;
const CLOCK_THREAD_CPUTIME_ID: usize = 3;
const SS_ONSTACK: i32 = 1;
const EPERM: isize = -1;
const RSEQ_FLAG_UNREGISTER: usize = 1;
/// Bytes of `struct rseq` (linux/rseq.h) as C libraries register it.
const RSEQ_SIZE: usize = 32;
/// Where in it the number of the processor is: negative as long as the kernel does not know of the area.
const RSEQ_CPU_ID: usize = 4;
/// Where in it the address of the present sequence is.
const RSEQ_CS: i64 = 8;

/// Process id as the process knows it.
pub(crate) fn process_id() -> Option<u32> {
    // SAFETY: no pointers.
    u32::try_from(unsafe { syscall(number::GETPID, [0; 6]) }).ok()
}

/// Id of the process that this one is a child of, as this one knows it.
pub(crate) fn parent_id() -> Option<u32> {
    // SAFETY: no pointers.
    u32::try_from(unsafe { syscall(number::GETPPID, [0; 6]) }).ok()
}

/// The user that has started this process.
pub(crate) fn real_user() -> u32 {
    // SAFETY: no pointers.
    unsafe { syscall(number::GETUID, [0; 6]) as u32 }
}

/// Thread id as the process knows it.
pub(crate) fn thread_id() -> Option<u32> {
    // SAFETY: no pointers.
    u32::try_from(unsafe { syscall(number::GETTID, [0; 6]) }).ok()
}

/// Whether a thread of this process lives.
pub(crate) fn has_thread(thread: u32) -> bool {
    const ESRCH: isize = -3;
    let process = process_id().unwrap_or(0) as usize;
    // SAFETY: no pointers; signal 0 is none.
    unsafe { syscall(number::TGKILL, [process, thread as usize, 0, 0, 0, 0]) != ESRCH }
}

/// Copies words of this process's own memory, or says that there is none.
pub(crate) fn read_own(address: usize, into: &mut [usize]) -> Option<()> {
    let length = size_of_val(into);
    let (from, to) = ([address, length], [into.as_mut_ptr() as usize, length]);
    let process = process_id()? as usize;
    let (from, to) = (&raw const from as usize, &raw const to as usize);
    // SAFETY: the kernel writes into `into` alone, and reads where it can.
    let count = unsafe { syscall(number::PROCESS_VM_READV, [process, to, 1, from, 1, 0]) };
    (count == length as isize).then_some(())
}

/// Gives the processor to another thread.
pub(crate) fn give_way() {
    // SAFETY: no pointers.
    unsafe { syscall(number::SCHED_YIELD, [0; 6]) };
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn monotonic_ns() -> Option<u64> {
    clock_ns(CLOCK_MONOTONIC)
}

/// Nanoseconds of the real-time clock, which files have.
pub(crate) fn real_time_ns() -> Option<u64> {
    clock_ns(CLOCK_REALTIME)
}

/// CPU time of the calling thread in nanoseconds.
pub(crate) fn thread_cpu_ns() -> Option<u64> {
    clock_ns(CLOCK_THREAD_CPUTIME_ID)
}

/// Counts of the kernel since a thread began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Page faults.
    pub(crate) faults: u64,
    /// Times that it left its processor to wait.
    pub(crate) waits: u64,
    /// Times that it left its processor to wait, or to another thread.
    pub(crate) switches: u64,
}

/// Of the calling thread; nothing where the kernel does not tell.
pub(crate) fn thread_usage() -> Option<Usage> {
    const RUSAGE_THREAD: usize = 1;
    // `struct rusage`: two times, and fourteen numbers. The fifth and sixth are of faults, the last
    // two of switches to other threads.
    let mut usage = [0u64; 18];
    let place = &raw mut usage as usize;
    // SAFETY: the kernel writes 18 words there.
    let result = unsafe { syscall(number::GETRUSAGE, [RUSAGE_THREAD, place, 0, 0, 0, 0]) };
    let sum = |[one, other]: [u64; 2]| one.saturating_add(other);
    (result == 0).then(|| Usage {
        faults: sum([usage[8], usage[9]]),
        waits: usage[16],
        switches: sum([usage[16], usage[17]]),
    })
}

/// Time from one tick of the kernel's scheduler to the next, nanoseconds: that of its coarse clocks.
pub(crate) fn tick_ns() -> Option<u64> {
    const CLOCK_MONOTONIC_COARSE: usize = 6;
    time_of(number::CLOCK_GETRES, CLOCK_MONOTONIC_COARSE)
}

fn clock_ns(clock: usize) -> Option<u64> {
    time_of(number::CLOCK_GETTIME, clock)
}

fn time_of(call: usize, clock: usize) -> Option<u64> {
    let mut time = [0u64; 2];
    let place = &raw mut time as usize;
    // SAFETY: the kernel writes one `struct timespec`, two words, there.
    let result = unsafe { syscall(call, [clock, place, 0, 0, 0, 0]) };
    (result == 0).then(|| time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1]))
}

/// Whether the calling thread is on the stack that it gave to signal handlers.
pub(crate) fn on_signal_stack() -> bool {
    signal_stack().is_some()
}

/// Bounds of the stack that the calling thread gave to signal handlers, if it is on that.
pub(crate) fn signal_stack() -> Option<(u64, u64)> {
    #[repr(C)]
    #[derive(Default)]
    struct StackT {
        start: usize,
        flags: i32,
        size: usize,
    }
    let mut stack = StackT::default();
    let place = &raw mut stack as usize;
    // SAFETY: the kernel writes one `stack_t` there.
    let result = unsafe { syscall(number::SIGALTSTACK, [0, place, 0, 0, 0, 0]) };
    let is_on = result == 0 && stack.flags & SS_ONSTACK != 0;
    is_on.then(|| (stack.start as u64, (stack.start as u64).saturating_add(stack.size as u64)))
}

/// Sleeps until the word changes from `value`, somebody wakes it, a signal comes, or
/// `ns` nanoseconds (below a second) are over. The word may lie in shared memory.
pub(crate) fn sleep_on(word: &AtomicU32, value: u32, ns: u64) {
    /// Looks at the word in some tens of microseconds, where a thread cannot sleep.
    const LOOKS: u32 = 1000;
    if sandbox::forbids(number::FUTEX) {
        give_way();
        let mut looks = (0..LOOKS).take_while(|_| word.load(Relaxed) == value);
        return looks.by_ref().for_each(|_| core::hint::spin_loop());
    }
    let time = [0u64, ns];
    let arguments = [word.as_ptr() as usize, 0, value as usize, &raw const time as usize, 0, 0];
    // SAFETY: FUTEX_WAIT reads the word and the time, both alive here.
    unsafe { syscall(number::FUTEX, arguments) };
}

/// Wakes all threads of this process that sleep on the word.
pub(crate) fn wake(word: &AtomicU32) {
    const FUTEX_WAKE: usize = 1;
    let arguments = [word.as_ptr() as usize, FUTEX_WAKE, i32::MAX as usize, 0, 0, 0];
    // SAFETY: the word's address alone is used.
    unsafe { syscall(number::FUTEX, arguments) };
}

/// Whether memory can be read at an address: a set of signals, which the kernel copies before it looks what it is for.
pub(crate) fn is_readable(address: usize) -> bool {
    const NO_SUCH_CHANGE: usize = usize::MAX;
    const EINVAL: isize = -22;
    // SAFETY: the kernel reads eight bytes there, if it can, and does nothing with them.
    let answer = unsafe {
        syscall(number::RT_SIGPROCMASK, [NO_SUCH_CHANGE, address, 0, size_of::<u64>(), 0, 0])
    };
    // Any other answer, as where the call is forbidden, tells nothing.
    answer == EINVAL
}

/// Zeroed memory of the runtime's own, which is there when it is touched.
pub(crate) fn reserve(size: usize) -> Option<usize> {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    // SAFETY: new memory, wherever the kernel puts it.
    let address =
        unsafe { syscall(number::MMAP, [0, size, PROT_READ | PROT_WRITE, flags, usize::MAX, 0]) };
    usize::try_from(address).ok()
}

/// Asks the kernel to zero a page in every child of this process.
pub(crate) fn wipe_on_fork(page: usize, size: usize) -> bool {
    // SAFETY: acts on children only; the page belongs to the caller.
    unsafe { syscall(number::MADVISE, [page, size, MADV_WIPEONFORK, 0, 0, 0]) == 0 }
}

/// Has the pages of a mapping there before they are written to. Where the kernel cannot (before
/// Linux 5.14), they come one by one.
pub(crate) fn populate(start: usize, size: usize) {
    // SAFETY: the range is a mapping of the runtime's own, and keeps its contents.
    unsafe { syscall(number::MADVISE, [start, size, MADV_POPULATE_WRITE, 0, 0, 0]) };
}

/// Where the calling thread's `rseq_cs` lies relative to the thread pointer, if the kernel knows of it:
/// not of that of a thread without the C library's storage, nor of `vfork`'s child. The kernel is asked to
/// forget an area, with a signature that is not its own: where there is such an area, that is
/// not permitted, and elsewhere invalid.
pub(crate) fn rseq() -> Option<i64> {
    let offset = arch::rseq_area()?;
    let area = arch::thread_pointer().wrapping_add_signed(offset as isize);
    let forget = [area, RSEQ_SIZE, RSEQ_FLAG_UNREGISTER, 0, 0, 0];
    // SAFETY: an address that is compared and not followed.
    let answer = unsafe { syscall(number::RSEQ, forget) };
    // So is a filter of system calls; but then the C library has not come that far.
    // SAFETY: the C library's area of this thread, which the kernel writes at any time.
    let cpu = unsafe { &*((area + RSEQ_CPU_ID) as *const AtomicU32) }.load(Relaxed);
    (answer == EPERM && cpu.cast_signed() >= 0).then_some(offset + RSEQ_CS)
}

/// Maps memory that the recorder handed over, when it is `size` bytes long and can neither
/// shrink nor grow: in place of what lies at `place`, or anywhere where that is 0. Gives the address.
pub(crate) fn map_shared(file: &File, size: usize, writable: bool, place: usize) -> Option<usize> {
    let descriptor = file.0 as usize;
    // SAFETY: no pointers.
    let seals = unsafe { syscall(number::FCNTL, [descriptor, F_GET_SEALS, 0, 0, 0, 0]) };
    if seals < 0 || seals & SEALED_SIZE != SEALED_SIZE || file_size(file) != Some(size) {
        return None;
    }
    let protection = if writable { PROT_READ | PROT_WRITE } else { PROT_READ };
    let flags = if place == 0 { MAP_SHARED } else { MAP_SHARED | MAP_FIXED };
    // SAFETY: a new mapping where the kernel finds room, or in place of one that is the caller's.
    let address = unsafe { syscall(number::MMAP, [place, size, protection, flags, descriptor, 0]) };
    (address > 0 && (address as usize) < 1 << 47).then_some(address as usize)
}

/// Maps shared memory that is mapped at `from` a second time, in place of what is at `to`.
pub(crate) fn map_again(from: usize, to: usize, size: usize) -> bool {
    const MREMAP_MAYMOVE_FIXED: usize = 1 | 2;
    let arguments = [from, 0, size, MREMAP_MAYMOVE_FIXED, to, 0];
    // SAFETY: an old size of 0 leaves the mapping at `from` as it is; what is at `to` belongs to
    // the caller.
    unsafe { syscall(number::MREMAP, arguments) == to as isize }
}

/// Puts private zeroed memory where a shared mapping was.
pub(crate) fn cut_off(address: usize, size: usize) {
    // Hardly any of it is ever written: it counts for as little as it takes.
    let flags = MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE;
    let arguments = [address, size, PROT_READ | PROT_WRITE, flags, usize::MAX, 0];
    // SAFETY: the range is a mapping of the runtime's own; what still writes to it finds
    // memory there.
    unsafe { syscall(number::MMAP, arguments) };
}

/// Takes a mapping back that nobody has seen yet.
pub(crate) fn unmap(address: usize, size: usize) {
    // SAFETY: the caller's own mapping, without users.
    unsafe { syscall(number::MUNMAP, [address, size, 0, 0, 0, 0]) };
}

/// Bytes of a file.
pub(crate) fn file_size(file: &File) -> Option<usize> {
    // `struct stat` of x86-64 is 144 bytes with `st_size` at 48; the other 64-bit
    // processors' is 128 bytes with the same offset.
    let mut stat = [0u64; 18];
    let place = &raw mut stat as usize;
    // SAFETY: the kernel writes one `struct stat` there.
    let result = unsafe { syscall(number::FSTAT, [file.0 as usize, place, 0, 0, 0, 0]) };
    (result == 0).then_some(stat[6] as usize)
}

impl File {
    /// Reads byte by byte until `take` has what it looks for; says whether it has, or the file
    /// ended before. The file may have any length: a small piece of it is in memory.
    pub(crate) fn find_byte(&self, mut take: impl FnMut(u8) -> bool) -> bool {
        let mut piece = [0; 512];
        loop {
            let count = self.read(&mut piece);
            if count == 0 {
                return false;
            }
            if piece.iter().take(count).any(|&byte| take(byte)) {
                return true;
            }
        }
    }
}

/// Reads a symbolic link into `room`; gives the length.
pub(crate) fn read_link(path: &core::ffi::CStr, room: &mut [u8]) -> usize {
    let arguments = [path.as_ptr() as usize, room.as_mut_ptr() as usize, room.len(), 0, 0, 0];
    // SAFETY: the path is a string of C, and the kernel writes into `room` alone.
    let result = unsafe { syscall(number::READLINK, arguments) };
    usize::try_from(result).unwrap_or(0).min(room.len())
}
