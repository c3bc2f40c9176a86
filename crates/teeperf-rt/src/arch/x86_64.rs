//! x86-64 with Linux's system calls and the ELF thread-local storage.

mod calls;
mod inside;
mod late;
#[cfg(feature = "object")]
mod memory;

pub(crate) use calls::{OtherHandler, end_with_eintr, is_made_again, take_other_handler};
pub(crate) use inside::is_of_hook;
pub(crate) use late::{has_late_hook, nowhere, whole_function};

use crate::thread::Thread;
use core::arch::{asm, global_asm};
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use teeperf_wire::hook::FULL;

// Two thread blocks ([`crate::thread::current`]), in the initial-exec model: their place relative
// to the thread pointer is fixed when the program is loaded, and reading it calls nothing. The
// cursors begin full, and hooks do not sum, so a thread's first event takes the slow path.
global_asm!(
    "
    .section .tdata.teeperf_thread, \"awT\", @progbits
    .p2align 6
    .globl  teeperf_thread
    .hidden teeperf_thread
    .type   teeperf_thread, @tls_object
    .size   teeperf_thread, 2 * {size}
teeperf_thread:
    .rept   2
    .zero   {cursor}
    .quad   {full}
    .zero   {tree_last} - {cursor} - 8
    .quad   {sums_not}
    .zero   {size} - {tree_last} - 8
    .endr
    .weak   environ
    .weak   __rseq_offset
    .weak   __rseq_size
    .weak   __ehdr_start
    .hidden __ehdr_start
    .weak   pthread_key_create
    .weak   pthread_setspecific
    .text
    ",
    size = const size_of::<Thread>(),
    cursor = const teeperf_wire::hook::thread::CURSOR,
    tree_last = const teeperf_wire::hook::thread::TREE_LAST,
    sums_not = const teeperf_wire::hook::thread::SUMS_NOT as i64,
    full = const FULL,
);

/// Where the first thread block lies relative to the thread pointer: below it, so negative.
#[inline(always)]
pub(crate) fn thread_offset() -> i64 {
    let offset: i64;
    // SAFETY: reads one word that the linker or loader filled; touches nothing else.
    unsafe {
        asm!("mov {}, qword ptr [rip + teeperf_thread@gottpoff]", out(reg) offset,
            options(pure, nomem, nostack, preserves_flags));
    }
    offset
}

/// The calling thread's blocks.
pub(crate) fn thread() -> &'static [Thread; 2] {
    let address = thread_pointer().wrapping_add_signed(thread_offset() as isize);
    // SAFETY: the blocks lie there in every thread, zeroed but for their cursors, which is a
    // valid `Thread`. They are shared only with signal handlers on this thread, and all fields are
    // atomic. They live as long as the thread, and so does every use, since a hook ends before
    // its thread.
    unsafe { &*(address as *const [Thread; 2]) }
}

/// The cycle counter.
pub(crate) fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; the recorder chooses the `cycle`
    // clock only where the system lets programs use it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The cycle counter when all work before that is done (Intel SDM 2B, RDTSC and LFENCE).
#[inline(always)]
pub(crate) fn counter_in_order() -> u64 {
    // SAFETY: as above; the fence is part of SSE2, which x86-64 has.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    }
}

/// An address within the caller's stack frame.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    let address: usize;
    // SAFETY: reads a register.
    unsafe {
        asm!("mov {}, rsp", out(reg) address, options(nomem, nostack, preserves_flags));
    }
    address
}

/// Address of the C library's `environ`, 0 where there is none.
pub(crate) fn environ() -> *const *const *const u8 {
    let address;
    // SAFETY: reads an entry of the global offset table.
    unsafe {
        asm!("mov {}, qword ptr [rip + environ@GOTPCREL]", out(reg) address,
            options(pure, nomem, nostack, preserves_flags));
    }
    address
}

/// pthread_key_create(3) and pthread_setspecific(3) of the C library, which may have neither.
pub(crate) fn thread_keys() -> Option<(CreateKey, SetKey)> {
    let (create, set): (usize, usize);
    // SAFETY: reads two entries of the global offset table.
    unsafe {
        asm!("mov {}, qword ptr [rip + pthread_key_create@GOTPCREL]",
            "mov {}, qword ptr [rip + pthread_setspecific@GOTPCREL]", out(reg) create,
            out(reg) set, options(pure, nomem, nostack, preserves_flags));
    }
    // SAFETY: functions of these types, by the C library's declarations.
    let functions =
        || unsafe { (transmute::<usize, CreateKey>(create), transmute::<usize, SetKey>(set)) };
    (create != 0 && set != 0).then(functions)
}

pub(crate) type CreateKey = extern "C" fn(&mut u32, extern "C" fn(usize)) -> i32;
pub(crate) type SetKey = extern "C" fn(u32, usize) -> i32;

/// Where the C library keeps each thread's restartable sequences, relative to the thread pointer: glibc
/// from 2.35 on (its manual, "Restartable Sequences").
pub(crate) fn rseq_area() -> Option<i64> {
    let (offset, size): (*const i64, *const u32);
    // SAFETY: reads two entries of the global offset table.
    unsafe {
        asm!("mov {}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {}, qword ptr [rip + __rseq_size@GOTPCREL]", out(reg) offset, out(reg) size,
            options(pure, nomem, nostack, preserves_flags));
    }
    // SAFETY: both are null, or the C library's constants, which are set before any constructor runs.
    let (offset, size) = unsafe { (*offset.as_ref()?, *size.as_ref()?) };
    (size > 0).then_some(offset)
}

/// The thread pointer.
#[inline(always)]
pub(crate) fn thread_pointer() -> usize {
    let address;
    // SAFETY: its first word is its own address (System V ABI for thread-local storage).
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) address,
            options(pure, readonly, nostack, preserves_flags));
    }
    address
}

/// Address of the ELF header of the module that the runtime is part of, 0 if not loaded.
pub(crate) fn own_header() -> usize {
    let address;
    // SAFETY: reads an entry of the global offset table.
    unsafe {
        asm!("mov {}, qword ptr [rip + __ehdr_start@GOTPCREL]", out(reg) address,
            options(pure, nomem, nostack, preserves_flags));
    }
    address
}

/// How the kernel calls this processor when it asks filters of system calls (`AUDIT_ARCH_X86_64`).
pub(crate) const AUDIT: u32 = 0xC000_003E;

/// A system call with up to six arguments; negative results are error numbers. One that a filter forbids is
/// not made: not permitted.
///
/// # Safety
/// As the call itself: pointers must be good for what the kernel does with them.
pub(crate) unsafe fn syscall(number: usize, arguments: [usize; 6]) -> isize {
    const EPERM: isize = -1;
    if crate::sandbox::forbids(number) {
        return EPERM;
    }
    let result;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the kernel keeps all registers but these; the caller answers for the rest.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// Has another thread run `work` with `argument`, on this stack, while the calling thread waits.
/// The other thread has a table of descriptors of its own, as a child has, and the calling thread's
/// mask of signals. No `wait` sees it, whatever flags that has. Gives its thread id.
///
/// # Safety
/// `work` leaves alone what the calling thread is in the midst of. Signals are blocked: the stack
/// is too small for their handlers.
pub(crate) unsafe fn beside(
    work: extern "C" fn(usize),
    argument: usize,
    stack: &mut [u128],
) -> isize {
    const CLONE_VM: usize = 0x100;
    const CLONE_SIGHAND: usize = 0x800;
    const CLONE_VFORK: usize = 0x4000;
    const CLONE_THREAD: usize = 0x10000;
    if crate::sandbox::forbids(number::CLONE) || crate::sandbox::forbids(number::EXIT) {
        return -1;
    }
    let result;
    // SAFETY: the kernel keeps all registers but these, in the new thread as well, which has the
    // end of its stack and comes to no other code; the caller answers for the rest.
    unsafe {
        asm!(
            "syscall",
            "test   rax, rax",
            "jnz    2f",
            "xor    ebp, ebp",
            "mov    rdi, r9",
            "call   r8",
            "mov    eax, {exit}",
            "xor    edi, edi",
            "syscall",
            "ud2",
            "2:",
            exit = const number::EXIT,
            inlateout("rax") number::CLONE as isize => result,
            in("rdi") CLONE_VM | CLONE_SIGHAND | CLONE_VFORK | CLONE_THREAD,
            in("rsi") stack.as_mut_ptr_range().end,
            in("rdx") 0, in("r10") 0, in("r8") work, in("r9") argument,
            lateout("rcx") _, lateout("r11") _, options(nostack),
        );
    }
    result
}

/// Ends the process at once.
#[cfg(feature = "object")]
pub(crate) fn trap() -> ! {
    // SAFETY: an undefined instruction, which the kernel answers with SIGILL.
    unsafe { asm!("ud2", options(noreturn, nomem, nostack)) }
}

/// Offsets in a `ucontext_t` of the C libraries for x86-64 Linux, in words of eight bytes.
mod context {
    pub(super) const LINK: usize = 1;
    pub(super) const STACK_START: usize = 2;
    pub(super) const STACK_SIZE: usize = 4;
    pub(super) const R11: usize = 8;
    pub(super) const RDI: usize = 13;
    pub(super) const RSI: usize = 14;
    pub(super) const RBX: usize = 16;
    pub(super) const RDX: usize = 17;
    pub(super) const RAX: usize = 18;
    pub(super) const RCX: usize = 19;
    pub(super) const RSP: usize = 20;
    pub(super) const RIP: usize = 21;
    pub(super) const FLAGS: usize = 22;
    pub(super) const FLOATING: usize = 28;
    /// Bytes of the kernel's `struct ucontext`, behind which the `siginfo_t` lies; in front of it,
    /// the handler's return address (`struct rt_sigframe` of asm/sigframe.h).
    pub(super) const BYTES: usize = 304;
}

/// The context of the code that was interrupted. Where several signals come at once, each but the
/// first interrupts the handler of another one before its first instruction, and the other's context
/// is meant.
///
/// # Safety
/// `context` is the address of the `ucontext_t` of a handler.
pub(crate) unsafe fn interrupted_context(mut context: usize) -> usize {
    const SIGNALS: usize = 64;
    for _ in 0..SIGNALS {
        // SAFETY: the caller's promise, or the frame of a handler that has not run: only there do
        // these registers point at each other so. The offsets lie within the structure.
        let register = |at: usize| unsafe { (context as *const usize).add(at).read() };
        let of_handler = register(context::RSP).wrapping_add(size_of::<usize>());
        let begins = (1..=SIGNALS).contains(&register(context::RDI))
            && register(context::RSI) == of_handler.wrapping_add(context::BYTES)
            && register(context::RDX) == of_handler;
        if !begins {
            break;
        }
        context = of_handler;
    }
    context
}

/// The instruction that a signal interrupted.
///
/// # Safety
/// `context` is the address of the `ucontext_t` of a handler.
pub(crate) unsafe fn address_in_context(context: usize) -> usize {
    // SAFETY: the caller's promise; the offset lies within the structure.
    unsafe { (context as *const usize).add(context::RIP).read() }
}

/// The stack pointer that a signal interrupted.
///
/// # Safety
/// `context` is the address of the `ucontext_t` of a handler.
pub(crate) unsafe fn stack_pointer_in_context(context: usize) -> usize {
    // SAFETY: the caller's promise; the offset lies within the structure.
    unsafe { (context as *const usize).add(context::RSP).read() }
}

/// Whether the instruction in front of the one at `address`, which the thread is about to run,
/// calls the kernel (Intel SDM 2B, SYSCALL). Where another page would have to be looked at, it is
/// not known.
pub(crate) fn is_behind_call_of_kernel(address: usize) -> bool {
    const SYSCALL: [u8; 2] = [0x0F, 0x05];
    let is_on_one_page = address & 0xFFF >= SYSCALL.len();
    // SAFETY: the page has code that runs, and is aligned to bytes.
    is_on_one_page && unsafe { *((address - SYSCALL.len()) as *const [u8; 2]) } == SYSCALL
}

// A handler returns to this code. Unwinders know it by its instructions.
global_asm!(
    "
    .section teeperf_code, \"ax\", @progbits
    .p2align 4
    .byte   0x90
    .type   teeperf_return_from_signal, @function
teeperf_return_from_signal:
    .byte   0x48, 0xC7, 0xC0, 0x0F, 0, 0, 0
    syscall
    .size   teeperf_return_from_signal, . - teeperf_return_from_signal
    .weak   __start_teeperf_code
    .weak   __stop_teeperf_code
    .hidden __start_teeperf_code
    .hidden __stop_teeperf_code
    .text
    ",
);

/// Where a handler of the runtime's returns to: rt_sigreturn(2).
pub(crate) fn return_from_signal() -> usize {
    let address;
    // SAFETY: takes an address.
    unsafe {
        asm!("lea {}, [rip + teeperf_return_from_signal]", out(reg) address,
            options(pure, nomem, nostack, preserves_flags));
    }
    address
}

// rdi: behind the highest address of a stack; rsi: a function; rdx: its argument. `stacks::code` takes
// a copy into the stack pointer for code that switches stacks, and does not know this form.
global_asm!(
    "
    .section teeperf_code, \"ax\", @progbits
    .p2align 4
    .type   teeperf_on_stack, @function
teeperf_on_stack:
    .cfi_startproc
    push    rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    mov     rbp, rsp
    .cfi_def_cfa_register rbp
    push    rdi
    pop     rsp
    mov     rdi, rdx
    call    rsi
    mov     rsp, rbp
    pop     rbp
    .cfi_def_cfa rsp, 8
    ret
    .cfi_endproc
    .size   teeperf_on_stack, . - teeperf_on_stack
    .text
    ",
);

unsafe extern "C" {
    fn teeperf_on_stack(top: usize, what: extern "C" fn(usize), argument: usize);
}

/// Calls a function on another stack.
///
/// # Safety
/// Nobody else uses the stack meanwhile. `top` is a multiple of 16, behind its highest address.
pub(crate) unsafe fn on_stack(top: usize, what: extern "C" fn(usize), argument: usize) {
    // SAFETY: the caller's promise.
    unsafe { teeperf_on_stack(top, what, argument) };
}

/// Addresses of the runtime's own code, and of the hooks of the module that it is part of.
pub(crate) fn own_code() -> core::ops::Range<usize> {
    let (start, end);
    // SAFETY: takes two addresses, which the linker tells.
    unsafe {
        asm!("lea {}, [rip + __start_teeperf_code]", "lea {}, [rip + __stop_teeperf_code]",
            out(reg) start, out(reg) end, options(pure, nomem, nostack, preserves_flags));
    }
    start..end
}

/// The stack that a context runs on: its address, or 0 for one that the context did not bring.
///
/// # Safety
/// `context` is the address of a `ucontext_t`.
pub(crate) unsafe fn stack_of_context(context: usize) -> u64 {
    // SAFETY: the caller's promise; all offsets lie within the structure.
    let at = |offset: usize| unsafe { (context as *const u64).add(offset).read() };
    let start = at(context::STACK_START);
    let is_within = at(context::RSP).wrapping_sub(start) <= at(context::STACK_SIZE);
    if is_within { start } else { 0 }
}

/// Bytes of the stack that a context brought.
///
/// # Safety
/// `context` is the address of a `ucontext_t`.
pub(crate) unsafe fn stack_size_of_context(context: usize) -> u64 {
    // SAFETY: the caller's promise; the offset lies within the structure.
    unsafe { (context as *const u64).add(context::STACK_SIZE).read() }
}

/// Whether the caller runs on the stack that a context brought.
///
/// # Safety
/// `context` is the address of a `ucontext_t`.
pub(crate) unsafe fn is_on_stack_of_context(context: usize) -> bool {
    // SAFETY: the caller's promise.
    let start = unsafe { stack_of_context(context) };
    // SAFETY: the caller's promise.
    let size = unsafe { stack_size_of_context(context) };
    start != 0 && (stack_pointer() as u64).wrapping_sub(start) < size
}

/// Where the C library goes on when a context's function has returned.
static CONTEXT_ENDS: AtomicUsize = AtomicUsize::new(0);

/// Has the runtime told when the function of a new context returns: its return address is the
/// C library's own code, which takes the linked context from where rbx points. Where the
/// context does not look so, nothing is done.
///
/// # Safety
/// `context` is a `ucontext_t` that `makecontext` has just filled.
pub(crate) unsafe fn watch_end_of_context(context: usize) {
    // SAFETY: the label below; it is never called, its address is taken.
    unsafe extern "C" {
        fn teeperf_context_ends();
    }
    // SAFETY: the caller's promise; all offsets lie within the structure.
    let at = |offset: usize| unsafe { (context as *const usize).add(offset).read() };
    let (start, size) = (at(context::STACK_START), at(context::STACK_SIZE));
    let is_within = |address: usize| address.wrapping_sub(start) <= size.saturating_sub(8);
    let (top, link) = (at(context::RSP), at(context::RBX));
    // SAFETY: both lie within the stack that the program gave to the context.
    unsafe {
        if is_within(top) && is_within(link) && *(link as *const usize) == at(context::LINK) {
            CONTEXT_ENDS.store(*(top as *const usize), Relaxed);
            *(top as *mut usize) = teeperf_context_ends as *const () as usize;
        }
    }
}

extern "C" fn end_of_context(link: *const usize) -> usize {
    // SAFETY: rbx points to the linked context's address on the context's stack
    // (`watch_end_of_context`), and functions leave it as it was.
    crate::leap::context_ended(unsafe { *link });
    CONTEXT_ENDS.load(Relaxed)
}

// The function returned to here: the stack is aligned as before a call.
global_asm!(
    "
    .section .text.teeperf_context_ends, \"ax\", @progbits
    .globl  teeperf_context_ends
    .hidden teeperf_context_ends
teeperf_context_ends:
    mov     rdi, rbx
    call    {end_of_context}
    jmp     rax
    .text
    ",
    end_of_context = sym end_of_context,
);

/// Whether a function calls its module's enter hook. It does so first of all, behind what makes its frame, and in
/// one form (`call rel32`: Intel SDM 2A, CALL), since the hook lies in the same module.
///
/// # Safety
/// There is code from `function` to `end`.
pub(crate) unsafe fn calls(function: usize, end: usize, hook: usize) -> bool {
    const CALL: u8 = 0xE8;
    const PROLOGUE: usize = 512;
    let length = end.saturating_sub(function).min(PROLOGUE);
    // SAFETY: the caller's promise.
    let code = unsafe { core::slice::from_raw_parts(function as *const u8, length) };
    code.windows(5).enumerate().any(|(at, bytes)| match *bytes {
        [CALL, a, b, c, d] => {
            let behind = function + at + bytes.len();
            let distance = i32::from_le_bytes([a, b, c, d]);
            behind.wrapping_add_signed(distance as isize) == hook
        }
        _ => false,
    })
}

/// Numbers of the system calls that the runtime uses.
pub(crate) mod number {
    pub(crate) const READ: usize = 0;
    pub(crate) const CLOSE: usize = 3;
    pub(crate) const FSTAT: usize = 5;
    pub(crate) const MMAP: usize = 9;
    pub(crate) const MUNMAP: usize = 11;
    pub(crate) const RT_SIGACTION: usize = 13;
    pub(crate) const RT_SIGPROCMASK: usize = 14;
    pub(crate) const RT_SIGRETURN: usize = 15;
    pub(crate) const IOCTL: usize = 16;
    pub(crate) const SCHED_YIELD: usize = 24;
    pub(crate) const MREMAP: usize = 25;
    pub(crate) const MADVISE: usize = 28;
    pub(crate) const GETPID: usize = 39;
    pub(crate) const SOCKET: usize = 41;
    pub(crate) const CONNECT: usize = 42;
    pub(crate) const SENDMSG: usize = 46;
    pub(crate) const RECVMSG: usize = 47;
    pub(crate) const SETSOCKOPT: usize = 54;
    pub(crate) const GETSOCKOPT: usize = 55;
    pub(crate) const CLONE: usize = 56;
    pub(crate) const EXIT: usize = 60;
    pub(crate) const WAIT4: usize = 61;
    pub(crate) const FCNTL: usize = 72;
    pub(crate) const READLINK: usize = 89;
    pub(crate) const GETRUSAGE: usize = 98;
    pub(crate) const GETUID: usize = 102;
    pub(crate) const GETEUID: usize = 107;
    pub(crate) const GETEGID: usize = 108;
    pub(crate) const GETPPID: usize = 110;
    pub(crate) const SIGALTSTACK: usize = 131;
    pub(crate) const PRCTL: usize = 157;
    pub(crate) const GETTID: usize = 186;
    pub(crate) const FUTEX: usize = 202;
    pub(crate) const TIMER_CREATE: usize = 222;
    pub(crate) const TIMER_SETTIME: usize = 223;
    pub(crate) const TIMER_DELETE: usize = 226;
    pub(crate) const CLOCK_GETTIME: usize = 228;
    pub(crate) const CLOCK_GETRES: usize = 229;
    pub(crate) const EXIT_GROUP: usize = 231;
    pub(crate) const TGKILL: usize = 234;
    pub(crate) const OPENAT: usize = 257;
    pub(crate) const NEWFSTATAT: usize = 262;
    pub(crate) const PERF_EVENT_OPEN: usize = 298;
    pub(crate) const PROCESS_VM_READV: usize = 310;
    pub(crate) const RSEQ: usize = 334;
}
