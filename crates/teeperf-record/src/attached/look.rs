//! What a thread shows that stands: whether it left an enclave, registers, and what is on its stack.

use std::fs::File;
use std::os::unix::fs::FileExt;
use teeperf_aex::attached::{Stopped, UserRegisters};
use teeperf_aex::debug_read::{DebugRead, Refused};
use teeperf_aex::layout::Registers;
use teeperf_aex::state::{MOST_CHAIN, MOST_STACK, Room, Wanted};
use teeperf_wire::body::sample::CONTEXT_USER;

/// `/proc/PID/mem` of a process: the kernel gives its memory, and that of debug enclaves in it.
#[derive(Debug)]
pub(super) struct Memory(File);

impl Memory {
    pub(super) fn open(pid: u32) -> std::io::Result<Self> {
        File::open(format!("/proc/{pid}/mem")).map(Self)
    }
}

impl DebugRead for Memory {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Refused> {
        self.0.read_at(into, at).ok().filter(|&count| count > 0).ok_or(Refused)
    }
}

/// The exit from an enclave that a thread stands behind: its TCS.
pub(super) fn tcs(memory: &impl DebugRead, stopped: &Stopped) -> Option<u64> {
    stopped.shown.tcs(|at| {
        let mut byte = [0];
        memory.read_all(at, &mut byte).is_ok().then_some(byte[0])
    })
}

/// Which of ptrace's registers those of perf are: AX BX CX DX SI DI BP SP IP FLAGS R8 … R15.
const PLACES: [usize; Registers::COUNT] =
    [10, 5, 11, 12, 13, 14, 4, 19, 16, 18, 9, 8, 7, 6, 3, 2, 1, 0];

/// Registers of a thread outside of enclaves.
pub(super) fn outside(registers: &UserRegisters) -> Registers {
    Registers(PLACES.map(|place| registers[place]))
}

/// Entries of its call chain, or bytes of its stack, that were put into the room.
pub(super) fn stack(
    memory: &impl DebugRead,
    registers: &Registers,
    wanted: Wanted,
    room: &mut Room,
) -> (usize, usize) {
    let sp = registers.stack_pointer();
    let mut copy = |most: usize| {
        let most = most.min(MOST_STACK);
        // A multiple of eight, as far as there is a stack.
        memory.read(sp, &mut room.stack[..most]).unwrap_or(0) & !7
    };
    match wanted {
        Wanted::Registers => (0, 0),
        Wanted::Stack(most) => (0, copy(most)),
        Wanted::Chain => {
            let length = copy(WINDOW);
            (chain(memory, registers, &room.stack[..length], &mut room.chain), 0)
        }
    }
}

/// A copy of a stack, as far as there is one, in words.
pub(super) fn copy(memory: &impl DebugRead, sp: u64, most: usize, into: &mut Vec<u8>) {
    into.resize(most, 0);
    let length = memory.read(sp, into).unwrap_or(0) & !7;
    into.truncate(length);
}

/// Most chains need no more of a stack than this: one read for all of it.
const WINDOW: usize = 2048;

/// Follows frame pointers; `window` is what the stack begins with.
fn chain(
    memory: &impl DebugRead,
    registers: &Registers,
    window: &[u8],
    room: &mut [[u8; 8]; MOST_CHAIN],
) -> usize {
    let sp = registers.stack_pointer();
    let [user, place, rest @ ..] = room;
    *user = CONTEXT_USER.to_le_bytes();
    *place = registers.instruction_pointer().to_le_bytes();
    let (mut at, mut lowest, mut taken) = (registers.frame_pointer(), sp, 2);
    for entry in rest {
        // A caller's frame is further up, so this ends.
        if at < lowest || !at.is_multiple_of(8) {
            break;
        }
        let mut words = [[0; 8]; 2];
        let known = usize::try_from(at - sp).ok().and_then(|from| window.get(from..)?.get(..16));
        match known {
            Some(known) => words.as_flattened_mut().copy_from_slice(known),
            None if memory.read_all(at, words.as_flattened_mut()).is_err() => break,
            None => {}
        }
        let [caller, back] = words.map(u64::from_le_bytes);
        if back == 0 {
            break;
        }
        *entry = back.to_le_bytes();
        taken += 1;
        let Some(above) = at.checked_add(16) else { break };
        (lowest, at) = (above, caller);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words from an address on, and nothing around them.
    struct Words(u64, Vec<u64>);

    impl DebugRead for Words {
        fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Refused> {
            let bytes: Vec<u8> = self.1.iter().flat_map(|word| word.to_le_bytes()).collect();
            let from = usize::try_from(at.wrapping_sub(self.0)).map_err(|_| Refused)?;
            let there = bytes.get(from..).filter(|there| !there.is_empty()).ok_or(Refused)?;
            let length = there.len().min(into.len());
            into[..length].copy_from_slice(&there[..length]);
            Ok(length)
        }
    }

    fn registers(sp: u64, bp: u64, ip: u64) -> Registers {
        let mut registers: UserRegisters = [0; 27];
        (registers[19], registers[4], registers[16]) = (sp, bp, ip);
        outside(&registers)
    }

    fn chain_of(memory: &Words, sp: u64, bp: u64) -> Vec<u64> {
        let mut room = Room { chain: [[0; 8]; MOST_CHAIN], stack: [0; MOST_STACK] };
        let (taken, copied) = stack(memory, &registers(sp, bp, 7), Wanted::Chain, &mut room);
        assert_eq!(copied, 0);
        room.chain[1..taken].iter().map(|&entry| u64::from_le_bytes(entry)).collect()
    }

    #[test]
    fn frames_are_followed_within_what_was_read_and_behind_it() {
        let mut words = vec![0; 1000];
        // Frames at 2, 10 and, behind the window, 900.
        (words[2], words[3]) = (0x1000 + 80, 21);
        (words[10], words[11]) = (0x1000 + 7200, 22);
        (words[900], words[901]) = (0, 23);
        let memory = Words(0x1000, words);
        assert_eq!(chain_of(&memory, 0x1000, 0x1010), [7, 21, 22, 23]);
        // What is below the stack pointer, not aligned, or nowhere is no frame.
        for (sp, bp) in
            [(0x1018, 0x1010), (0x1000, 0x1014), (0x1000, 0x9000), (0x1000, u64::MAX - 7)]
        {
            assert_eq!(chain_of(&memory, sp, bp), [7], "{sp:x} {bp:x}");
        }
        // A frame whose caller is itself ends.
        let memory = Words(0x1000, vec![0x1000, 9, 0]);
        assert_eq!(chain_of(&memory, 0x1000, 0x1000), [7, 9]);
    }

    #[test]
    fn a_stack_is_copied_as_far_as_there_is_one() {
        let memory = Words(0x1000, (0..50).collect());
        let mut room = Room { chain: [[0; 8]; MOST_CHAIN], stack: [0; MOST_STACK] };
        let at = registers(0x1000 + 320, 0, 7);
        assert_eq!(stack(&memory, &at, Wanted::Stack(4096), &mut room), (0, 80));
        assert_eq!(room.stack[..8], 40u64.to_le_bytes());
        assert_eq!(stack(&memory, &at, Wanted::Stack(16), &mut room), (0, 16));
        assert_eq!(stack(&memory, &registers(0, 0, 7), Wanted::Stack(16), &mut room), (0, 0));
        assert_eq!(stack(&memory, &at, Wanted::Registers, &mut room), (0, 0));
        let mut copied = vec![7; 3];
        for (sp, most, length) in [(320, 4096, 80), (320, 16, 16), (0x9000, 16, 0), (320, 0, 0)] {
            copy(&memory, 0x1000 + sp, most, &mut copied);
            assert_eq!(copied.len(), length);
            assert!(copied.iter().take(8).eq(&40u64.to_le_bytes()[..copied.len().min(8)]));
        }
    }
}
