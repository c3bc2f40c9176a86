//! System calls that a filter (seccomp(2)) forbids the process, some of which end it. The stub's wrappers of
//! what puts a filter into force come here before that, and the filter is asked, as the kernel would
//! ask it, about each system call of the runtime's: from then on none is made that it does not let pass or
//! refuse. Who cannot be asked is taken to forbid all, and so is a filter that only the recorder has seen.
//!
//! What is not made counts as refused. So a filter that ends a process at the first call which it does not know
//! costs the recording what such a call was for, and not the program.
//!
//! * `inherited`: filters that the program was executed under.

mod inherited;

pub(crate) use inherited::examine;

use crate::arch::{self, number};
use crate::platform;
use crate::sampler;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// One bit for each system call that must not be made.
static FORBIDDEN: [AtomicU64; NUMBERS / 64] = [const { AtomicU64::new(0) }; NUMBERS / 64];
/// Filters that came here since the process was attached.
static ASKED: AtomicU32 = AtomicU32::new(0);
const NUMBERS: usize = 512;

/// Whether a system call must not be made.
#[inline(always)]
pub(crate) fn forbids(number: usize) -> bool {
    let word = FORBIDDEN.get(number / 64);
    word.is_none_or(|word| word.load(Relaxed) & 1 << (number % 64) != 0)
}

/// What the process had when it attached is not counted with what comes.
pub(crate) fn begin() {
    ASKED.store(0, Relaxed);
}

/// The recorder sees so many filters more than there were when the process attached.
pub(crate) fn heed(filters: u32) {
    if filters > ASKED.load(Relaxed) {
        ASKED.store(filters, Relaxed);
        forbid_all();
    }
}

/// How `teeperf_rt_restrict` is called.
mod mode {
    /// read, write and ends alone (`SECCOMP_MODE_STRICT`).
    pub(super) const STRICT: u32 = 1;
    /// By a program for the kernel's packet filter (`SECCOMP_MODE_FILTER`).
    pub(super) const FILTER: u32 = 2;
    /// By one that a library makes.
    pub(super) const UNKNOWN: u32 = 3;
}

/// A filter is about to be put into force: `mode` as for prctl(2), and where its program is.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_restrict(mode: u32, program: usize) {
    match mode {
        // Some ask so whether the kernel has filters.
        mode::FILTER if program == 0 => {}
        mode::FILTER => {
            ASKED.fetch_add(1, Relaxed);
            match Program::at(program) {
                Some(program) => ask(&program),
                None => forbid_all_soon(),
            }
        }
        mode::STRICT | mode::UNKNOWN => {
            ASKED.fetch_add(1, Relaxed);
            forbid_all_soon();
        }
        _ => {}
    }
}

/// By a filter that may be in force.
fn forbid_all() {
    sampler::end_for_filter(false);
    FORBIDDEN.iter().for_each(|word| word.store(u64::MAX, Relaxed));
}

/// By a filter that is about to be put into force.
fn forbid_all_soon() {
    sampler::tell_cpu_time();
    forbid_all();
    sampler::tell_of_filter_now();
}

fn ask(program: &Program) {
    let all_pass = |number| {
        let mut asked = calls().into_iter().filter(|call| call.0 == number);
        asked.all(|(number, arguments)| program.passes(number, arguments))
    };
    // A handler must return, and looks at the thread's CPU time. Before others are forbidden.
    let is_timed = all_pass(number::CLOCK_GETTIME);
    let has_samples = is_timed && all_pass(number::RT_SIGRETURN);
    if !has_samples {
        if !is_timed {
            sampler::tell_cpu_time();
        }
        sampler::end_for_filter(is_timed);
    }
    for &(number, arguments) in &calls() {
        if !program.bears(number, arguments)
            && let Some(word) = FORBIDDEN.get(number / 64)
        {
            word.fetch_or(1 << (number % 64), Relaxed);
        }
    }
    if !has_samples {
        sampler::tell_of_filter_now();
    }
}

/// System calls of the runtime's behind its start, as far as filters look at arguments: never at what is at an
/// address.
fn calls() -> [(usize, [usize; 6]); CALLS] {
    let mut here = 0usize;
    let place = &raw mut here as usize;
    let (write, shared, anonymous) = (3, 1, 0x32);
    [
        (number::READ, [3, place, 512, 0, 0, 0]),
        (number::CLOSE, [3, 0, 0, 0, 0, 0]),
        (number::FSTAT, [3, place, 0, 0, 0, 0]),
        (number::MMAP, [0, 1 << 20, write, shared, 3, 0]),
        (number::MMAP, [place, 1 << 20, write, anonymous, usize::MAX, 0]),
        (number::MUNMAP, [place, 1 << 20, 0, 0, 0, 0]),
        (number::RT_SIGACTION, [1, 0, place, 8, 0, 0]),
        (number::RT_SIGRETURN, [0; 6]),
        (number::PROCESS_VM_READV, [1, place, 1, place, 1, 0]),
        (number::PERF_EVENT_OPEN, [place, 1, usize::MAX, usize::MAX, 8, 0]),
        (number::CLONE, [0x14900, 0, 0, 0, 0, 0]),
        (number::EXIT, [0; 6]),
        (number::FCNTL, [3, 4, 0x2002, 0, 0, 0]),
        (number::FCNTL, [3, 10, 23, 0, 0, 0]),
        (number::FCNTL, [3, 15, place, 0, 0, 0]),
        (number::IOCTL, [3, 0x2402, 1, 0, 0, 0]),
        (number::MMAP, [0, 4096, 1, shared, 3, 0]),
        (number::TIMER_CREATE, [3, place, place, 0, 0, 0]),
        (number::TIMER_SETTIME, [0, 0, place, 0, 0, 0]),
        (number::TIMER_DELETE, [0; 6]),
        (number::TGKILL, [1, 1, 0, 0, 0, 0]),
        (number::MMAP, [0, 1 << 20, write, 0x4022, usize::MAX, 0]),
        (number::RT_SIGPROCMASK, [usize::MAX, place, 0, 8, 0, 0]),
        (number::RT_SIGPROCMASK, [0, place, place, 8, 0, 0]),
        (number::RT_SIGPROCMASK, [1, place, 0, 8, 0, 0]),
        (number::RT_SIGPROCMASK, [2, place, 0, 8, 0, 0]),
        (number::SCHED_YIELD, [0; 6]),
        (number::MREMAP, [place, 0, 4096, 3, place, 0]),
        (number::MADVISE, [place, 4096, 18, 0, 0, 0]),
        (number::MADVISE, [place, 4096, 23, 0, 0, 0]),
        (number::GETPID, [0; 6]),
        (number::SOCKET, [1, 0o2_000_005, 0, 0, 0, 0]),
        (number::SOCKET, [1, 0o2_004_005, 0, 0, 0, 0]),
        (number::CONNECT, [3, place, 20, 0, 0, 0]),
        (number::SENDMSG, [3, place, 0x4000, 0, 0, 0]),
        (number::RECVMSG, [3, place, 0x4000_0000, 0, 0, 0]),
        (number::SETSOCKOPT, [3, 1, 20, place, 16, 0]),
        (number::SETSOCKOPT, [3, 1, 21, place, 16, 0]),
        (number::GETSOCKOPT, [3, 1, 17, place, place, 0]),
        (number::FCNTL, [3, 1034, 0, 0, 0, 0]),
        (number::READLINK, [place, place, 512, 0, 0, 0]),
        (number::GETEUID, [0; 6]),
        (number::GETEGID, [0; 6]),
        (number::SIGALTSTACK, [0, place, 0, 0, 0, 0]),
        (number::GETTID, [0; 6]),
        (number::FUTEX, [place, 0, 1, place, 0, 0]),
        (number::FUTEX, [place, 1, 1, 0, 0, 0]),
        (number::CLOCK_GETTIME, [1, place, 0, 0, 0, 0]),
        (number::CLOCK_GETTIME, [3, place, 0, 0, 0, 0]),
        (number::CLOCK_GETRES, [6, place, 0, 0, 0, 0]),
        (number::GETRUSAGE, [1, place, 0, 0, 0, 0]),
        (number::OPENAT, [-100isize as usize, place, 0o2_000_000, 0, 0, 0]),
        (number::RSEQ, [place, 32, 1, 0, 0, 0]),
    ]
}

const CALLS: usize = 53;

/// A filter's program, in the process's memory: `struct sock_fprog`. Its address is the program's to give, so
/// it is read as the kernel reads it.
struct Program {
    start: usize,
    length: u32,
}

/// `struct sock_filter` (linux/filter.h).
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

/// What a filter is asked about: `struct seccomp_data` as words of four bytes, without the address of the
/// instruction, which nobody knows beforehand.
struct Question {
    number: u32,
    arguments: [usize; 6],
}

/// Instructions that a program may have (`BPF_MAXINSNS`).
const MOST_INSTRUCTIONS: u32 = 4096;

/// Answers of a filter: seccomp(2).
const REFUSED: u32 = 0x0005_0000;
const LOGGED: u32 = 0x7FFC_0000;
const PASSES: u32 = 0x7FFF_0000;

impl Program {
    fn at(address: usize) -> Option<Self> {
        let mut program = [0usize; 2];
        platform::read_own(address, &mut program)?;
        let [length, start] = program;
        let length = length as u16 as u32;
        (length <= MOST_INSTRUCTIONS).then_some(Self { start, length })
    }

    fn instruction(&self, at: u32) -> Option<Instruction> {
        let mut word = [0usize; 1];
        let place = self.start.checked_add(8 * at as usize)?;
        (at < self.length).then(|| platform::read_own(place, &mut word)).flatten()?;
        let [word] = word;
        Some(Instruction {
            code: word as u16,
            if_true: (word >> 16) as u8,
            if_false: (word >> 24) as u8,
            value: (word >> 32) as u32,
        })
    }

    /// Whether a call passes, or is refused with an error.
    fn bears(&self, number: usize, arguments: [usize; 6]) -> bool {
        matches!(self.answer(number, arguments), Some(REFUSED | LOGGED | PASSES))
    }

    /// Whether a call passes.
    fn passes(&self, number: usize, arguments: [usize; 6]) -> bool {
        matches!(self.answer(number, arguments), Some(LOGGED | PASSES))
    }

    /// The filter's answer to a call.
    fn answer(&self, number: usize, arguments: [usize; 6]) -> Option<u32> {
        let question = Question { number: number as u32, arguments };
        run(&question, |at| self.instruction(at)).map(|answer| answer & 0xFFFF_0000)
    }
}

impl Question {
    fn word(&self, offset: u32) -> Option<u32> {
        let at = |index: usize| self.arguments.get(index).copied();
        match offset {
            0 => Some(self.number),
            4 => Some(arch::AUDIT),
            16..64 if offset.is_multiple_of(8) => Some(at(offset as usize / 8 - 2)? as u32),
            16..64 if offset.is_multiple_of(4) => Some((at(offset as usize / 8 - 2)? >> 32) as u32),
            _ => None,
        }
    }
}

/// Runs a program of the classic packet filter as far as the kernel lets filters of system calls have it
/// (`seccomp_check_filter` in kernel/seccomp.c); nothing where it does what they may not, or asks for what is not known.
/// Each jump goes forwards, so it ends.
fn run(question: &Question, instruction: impl Fn(u32) -> Option<Instruction>) -> Option<u32> {
    let (mut a, mut x, mut at) = (0u32, 0u32, 0u32);
    let mut memory = [0u32; 16];
    for _ in 0..MOST_INSTRUCTIONS {
        let Instruction { code, if_true, if_false, value } = instruction(at)?;
        at += 1;
        let operand = if code & 8 != 0 { x } else { value };
        match code {
            // Loads of the question, of its length, of a number, of memory.
            0x20 => a = question.word(value)?,
            0x80 => a = 64,
            0x81 => x = 64,
            0x00 => a = value,
            0x01 => x = value,
            0x60 => a = *memory.get(value as usize)?,
            0x61 => x = *memory.get(value as usize)?,
            0x02 => *memory.get_mut(value as usize)? = a,
            0x03 => *memory.get_mut(value as usize)? = x,
            // Arithmetic, with a number or with x.
            0x04 | 0x0C => a = a.wrapping_add(operand),
            0x14 | 0x1C => a = a.wrapping_sub(operand),
            0x24 | 0x2C => a = a.wrapping_mul(operand),
            0x34 | 0x3C => a = a.checked_div(operand)?,
            0x44 | 0x4C => a |= operand,
            0x54 | 0x5C => a &= operand,
            0x64 | 0x6C => a = a.checked_shl(operand)?,
            0x74 | 0x7C => a = a.checked_shr(operand)?,
            0xA4 | 0xAC => a ^= operand,
            0x84 => a = a.wrapping_neg(),
            0x07 => x = a,
            0x87 => a = x,
            // Jumps.
            0x05 => at = at.checked_add(value)?,
            0x15 | 0x1D | 0x25 | 0x2D | 0x35 | 0x3D | 0x45 | 0x4D => {
                let holds = match code & 0x70 {
                    0x10 => a == operand,
                    0x20 => a > operand,
                    0x30 => a >= operand,
                    _ => a & operand != 0,
                };
                at += u32::from(if holds { if_true } else { if_false });
            }
            0x06 => return Some(value),
            0x16 => return Some(a),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILL: u32 = 0x8000_0000;
    const ALLOW: u32 = 0x7FFF_0000;
    const ERRNO: u32 = 0x0005_0001;

    fn step(code: u16, if_true: u8, if_false: u8, value: u32) -> Instruction {
        Instruction { code, if_true, if_false, value }
    }

    fn bears(program: &[Instruction], number: usize, arguments: [usize; 6]) -> bool {
        let program = Program { start: program.as_ptr() as usize, length: program.len() as u32 };
        program.bears(number, arguments)
    }

    /// What a sandbox has that lets read pass, refuses getpid, and futex but for waits, and ends the rest.
    fn strict() -> Vec<Instruction> {
        vec![
            step(0x20, 0, 0, 4),
            step(0x15, 1, 0, arch::AUDIT),
            step(0x06, 0, 0, KILL),
            step(0x20, 0, 0, 0),
            step(0x15, 5, 0, number::READ as u32),
            step(0x15, 5, 0, number::GETPID as u32),
            step(0x15, 0, 2, number::FUTEX as u32),
            step(0x20, 0, 0, 24),
            step(0x15, 1, 0, 0),
            step(0x06, 0, 0, KILL),
            step(0x06, 0, 0, ALLOW),
            step(0x06, 0, 0, ERRNO),
        ]
    }

    /// Guards: samples that all fail, where a filter refuses what a handler needs.
    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn what_is_refused_does_not_pass() {
        let program = strict();
        let program = Program { start: program.as_ptr() as usize, length: program.len() as u32 };
        let told = |number| (program.bears(number, [0; 6]), program.passes(number, [0; 6]));
        assert_eq!(told(number::READ), (true, true));
        assert_eq!(told(number::GETPID), (true, false));
        assert_eq!(told(number::GETTID), (false, false));
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn a_filter_is_asked_as_the_kernel_asks_it() {
        let program = strict();
        assert!(bears(&program, number::READ, [0; 6]));
        assert!(bears(&program, number::GETPID, [0; 6]), "refused is not ended");
        assert!(bears(&program, number::FUTEX, [1, 0, 0, 0, 0, 0]));
        assert!(!bears(&program, number::FUTEX, [1, 1, 0, 0, 0, 0]));
        assert!(!bears(&program, number::GETTID, [0; 6]));
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn what_a_filter_may_not_do_is_taken_for_an_end() {
        let ends = |program: &[Instruction]| !bears(program, 0, [0; 6]);
        assert!(ends(&[]));
        assert!(ends(&[step(0x05, 0, 0, u32::MAX)]), "a jump out of it");
        assert!(ends(&[step(0x20, 0, 0, 8), step(0x06, 0, 0, ALLOW)]), "where the instruction is");
        assert!(ends(&[step(0x60, 0, 0, 16), step(0x06, 0, 0, ALLOW)]));
        assert!(ends(&[step(0x28, 0, 0, 0), step(0x06, 0, 0, ALLOW)]), "half a word");
        assert!(!ends(&[step(0x06, 0, 0, ALLOW)]));
        assert!(Program::at(8).is_none(), "nothing is there");
    }

    /// As the project's other tables of calls: each of the runtime's numbers is asked about.
    #[test]
    fn all_calls_behind_the_start_are_asked_about() {
        let asked: std::collections::BTreeSet<usize> =
            calls().iter().map(|(number, _)| *number).collect();
        let source = include_str!("arch/x86_64.rs");
        let numbers = source.split("pub(crate) mod number {").nth(1).unwrap();
        for line in numbers.lines().filter(|line| line.contains("const ")) {
            let value = line.split('=').nth(1).unwrap().trim().trim_end_matches(';');
            let value: usize = value.parse().unwrap();
            // Before a process is attached, or to look at a filter.
            let is_of_start = [
                number::PRCTL,
                number::GETPPID,
                number::GETUID,
                number::NEWFSTATAT,
                number::CLONE,
                number::WAIT4,
                number::EXIT_GROUP,
            ]
            .contains(&value);
            assert!(asked.contains(&value) || is_of_start, "{line}");
        }
    }

    /// Programs of instructions that mean something, most of them, drawn by a generator of its own.
    #[test]
    fn any_program_ends() {
        const CODES: [u16; 8] = [0x20, 0x15, 0x05, 0x64, 0x34, 0x06, 0x60, 0x02];
        let question = Question { number: 3, arguments: [usize::MAX; 6] };
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32
        };
        for _ in 0..if cfg!(miri) { 200 } else { 20_000 } {
            let program: Vec<Instruction> = (0..next() % 60)
                .map(|_| {
                    let known = CODES[next() as usize % CODES.len()];
                    let code = if next() % 8 == 0 { next() as u16 } else { known };
                    step(code, next() as u8 % 9, next() as u8 % 9, next() % 80)
                })
                .collect();
            let _ = run(&question, |at| program.get(at as usize).copied());
        }
    }
}
