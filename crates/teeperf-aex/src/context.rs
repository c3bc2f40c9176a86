//! What a signal handler is told of the thread that it interrupted: why the signal came, registers, and the stack of a thread that is
//! outside of enclaves. Structures are Linux's.

use crate::state::{MOST_CHAIN, MOST_STACK};
use core::ops::Range;
use teeperf_wire::body::sample::CONTEXT_USER;

/// Of `siginfo_t`: `si_code`, `si_value`, and `si_fd` at the same place.
const CODE: usize = 8;
const VALUE: usize = 24;
/// A timer's.
const SI_TIMER: i32 = -2;
/// A file's: POLL_IN to POLL_HUP.
const POLLED: core::ops::RangeInclusive<i32> = 1..=6;

/// What a signal came of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A timer that was made with this value.
    Timer(u64),
    /// A file's event.
    File(i32),
    Other,
}

impl Cause {
    /// # Safety
    /// `info` is a `siginfo_t`.
    pub(crate) unsafe fn of(info: *const u8) -> Self {
        // SAFETY: both lie within it.
        let (code, value) =
            unsafe { (info.add(CODE).cast::<i32>().read(), info.add(VALUE).cast::<u64>().read()) };
        match code {
            SI_TIMER => Self::Timer(value),
            code if POLLED.contains(&code) => Self::File(value as i32),
            _ => Self::Other,
        }
    }
}

/// Where registers are.
#[cfg(target_arch = "x86_64")]
mod machine {
    use crate::layout::Registers;

    /// `EM_X86_64` (ELF).
    pub(super) const MACHINE: u64 = 62;
    /// `gregs` in a `ucontext_t`.
    pub(super) const REGISTERS: usize = 40;
    pub(super) const COUNT: usize = Registers::COUNT;
    pub(super) const MASK: u64 = Registers::MASK;
    /// Where of those each of perf's registers is: AX BX CX DX SI DI BP SP IP FLAGS R8 … R15.
    pub(super) const PLACES: [u8; COUNT] =
        [13, 11, 14, 12, 9, 8, 10, 15, 16, 17, 0, 1, 2, 3, 4, 5, 6, 7];
    pub(super) const FRAME_POINTER: usize = 6;
    pub(super) const STACK_POINTER: usize = 7;
    pub(super) const INSTRUCTION_POINTER: usize = 8;
}

/// Where registers are.
#[cfg(target_arch = "aarch64")]
mod machine {
    /// `EM_AARCH64` (ELF).
    pub(super) const MACHINE: u64 = 183;
    /// `uc_mcontext.regs`.
    pub(super) const REGISTERS: usize = 184;
    pub(super) const COUNT: usize = 33;
    pub(super) const MASK: u64 = (1 << COUNT) - 1;
    /// X0 … X30, SP, PC, as perf has them.
    pub(super) const PLACES: [u8; COUNT] = {
        let mut places = [0; COUNT];
        let mut place = 0;
        while place < COUNT {
            places[place] = place as u8;
            place += 1;
        }
        places
    };
    pub(super) const FRAME_POINTER: usize = 29;
    pub(super) const STACK_POINTER: usize = 31;
    pub(super) const INSTRUCTION_POINTER: usize = 32;
}

/// Where nothing is sampled.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod machine {
    pub(super) const MACHINE: u64 = 0;
    pub(super) const REGISTERS: usize = 0;
    pub(super) const COUNT: usize = 1;
    pub(super) const MASK: u64 = 0;
    pub(super) const PLACES: [u8; COUNT] = [0];
    pub(super) const FRAME_POINTER: usize = 0;
    pub(super) const STACK_POINTER: usize = 0;
    pub(super) const INSTRUCTION_POINTER: usize = 0;
}

/// `e_machine` of code here.
pub(crate) const MACHINE: u64 = machine::MACHINE;
/// Registers that a sample has, by perf's numbers.
pub const REGISTERS: u64 = machine::MASK;

/// Registers of an interrupted thread, by perf's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupted(pub(crate) [u64; machine::COUNT]);

impl Interrupted {
    /// # Safety
    /// `context` is a `ucontext_t`.
    pub(crate) unsafe fn of(context: *const u8) -> Self {
        // SAFETY: within it.
        Self(machine::PLACES.map(|place| unsafe {
            context.add(machine::REGISTERS).cast::<u64>().add(place.into()).read()
        }))
    }

    pub(crate) fn instruction_pointer(&self) -> u64 {
        self.0[machine::INSTRUCTION_POINTER]
    }

    pub(crate) fn stack_pointer(&self) -> u64 {
        self.0[machine::STACK_POINTER]
    }

    fn frame_pointer(&self) -> u64 {
        self.0[machine::FRAME_POINTER]
    }

    /// Follows frame pointers within the thread's stack, and says how many entries that makes.
    ///
    /// # Safety
    /// What is above the stack pointer in `stack` is there to be read.
    pub(crate) unsafe fn chain(
        &self,
        stack: &Range<u64>,
        room: &mut [[u8; 8]; MOST_CHAIN],
    ) -> usize {
        let [user, place, rest @ ..] = room;
        *user = CONTEXT_USER.to_le_bytes();
        *place = self.instruction_pointer().to_le_bytes();
        let mut taken = 2;
        let (mut at, mut lowest) = (self.frame_pointer(), self.stack_pointer());
        if !stack.contains(&lowest) {
            // Of coroutines, and of signal handlers with a stack of their own.
            return taken;
        }
        for entry in rest {
            // A caller's frame is further up, so this ends.
            if at < lowest || !at.is_multiple_of(8) || at > stack.end.saturating_sub(16) {
                break;
            }
            // SAFETY: the caller's promise; both words lie above the stack pointer and within the stack.
            let [caller, back] = unsafe { (at as *const [u64; 2]).read() };
            if back == 0 {
                break;
            }
            *entry = back.to_le_bytes();
            taken += 1;
            lowest = at + 16;
            at = caller;
        }
        taken
    }

    /// The stack from its pointer on, as far as there is one, and `most` bytes of it.
    ///
    /// # Safety
    /// As for the chain; the thread does not run meanwhile.
    pub(crate) unsafe fn stack(&self, stack: &Range<u64>, most: usize) -> &'static [u8] {
        let from = self.stack_pointer();
        if !stack.contains(&from) {
            return &[];
        }
        let length = (stack.end - from).min(most.min(MOST_STACK) as u64) & !7;
        // SAFETY: the caller's promise.
        unsafe { core::slice::from_raw_parts(from as *const u8, length as usize) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn interrupted(sp: u64, fp: u64, ip: u64) -> Interrupted {
        let mut registers = Interrupted([0; machine::COUNT]);
        registers.0[machine::STACK_POINTER] = sp;
        registers.0[machine::FRAME_POINTER] = fp;
        registers.0[machine::INSTRUCTION_POINTER] = ip;
        registers
    }

    #[test]
    fn causes_are_told_apart() {
        let mut info = [0u8; 128];
        info[VALUE..VALUE + 8].copy_from_slice(&(7u64 | 1 << 32).to_le_bytes());
        for (code, expected) in [
            (-2i32, Cause::Timer(7 | 1 << 32)),
            (1, Cause::File(7)),
            (6, Cause::File(7)),
            (0, Cause::Other),
            (-6, Cause::Other),
            (0x80, Cause::Other),
        ] {
            info[CODE..CODE + 4].copy_from_slice(&code.to_le_bytes());
            // SAFETY: as long as a `siginfo_t`.
            assert_eq!(unsafe { Cause::of(info.as_ptr()) }, expected, "{code}");
        }
    }

    #[test]
    fn frames_are_followed_within_the_stack() {
        let mut words = [0u64; 16];
        let base = words.as_ptr() as u64;
        let stack = base..base + 128;
        let chain = |words: &[u64; 16], sp, fp| {
            let mut room = [[0; 8]; MOST_CHAIN];
            let _ = words;
            // SAFETY: the stack is the words.
            let taken = unsafe { interrupted(sp, fp, 1).chain(&stack, &mut room) };
            room[..taken].iter().map(|&entry| u64::from_le_bytes(entry)).collect::<Vec<_>>()
        };
        (words[2], words[3]) = (base + 48, 2);
        (words[6], words[7]) = (base + 112, 3);
        (words[14], words[15]) = (0, 4);
        assert_eq!(chain(&words, base, base + 16), [CONTEXT_USER, 1, 2, 3, 4]);
        // What is below the stack pointer, beside, outside or no frame is not read.
        for (sp, fp) in [(base + 24, base + 16), (base, base + 20), (base, base + 120), (base, 0)] {
            assert_eq!(chain(&words, sp, fp), [CONTEXT_USER, 1], "{sp:x} {fp:x}");
        }
        assert_eq!(chain(&words, base - 8, base + 16), [CONTEXT_USER, 1]);
        // A caller that is not further up ends it.
        words[6] = base + 16;
        assert_eq!(chain(&words, base, base + 16), [CONTEXT_USER, 1, 2, 3]);
        words[7] = 0;
        assert_eq!(chain(&words, base, base + 16), [CONTEXT_USER, 1, 2]);
    }

    #[test]
    fn a_stack_is_copied_to_its_end() {
        let words = [5u64; 16];
        let base = words.as_ptr() as u64;
        let copy = |sp, most| {
            // SAFETY: the stack is the words.
            unsafe { interrupted(sp, 0, 0).stack(&(base..base + 128), most) }
        };
        assert_eq!(copy(base, 64).len(), 64);
        assert_eq!(copy(base + 100, 64).len(), 24);
        assert_eq!((copy(base - 8, 64).len(), copy(base + 128, 64).len()), (0, 0));
        assert_eq!(copy(base + 8, 8), 5u64.to_le_bytes());
    }
}
