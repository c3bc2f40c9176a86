//! The state of a thread that left an enclave by an asynchronous exit: registers, and its call chain or a copy of its stack.

use crate::debug_read::{Counted, DebugRead, Refused};
use crate::enclaves::Enclave;
use crate::layout::{Registers, Tcs, u64_at};
use teeperf_wire::body::sample::CONTEXT_USER;

/// Longest copy of a stack.
pub const MOST_STACK: usize = 8192;
/// Bytes of the host's stack that are copied beside a chain.
pub const HOST_STACK: usize = 2048;
/// Most entries of a chain: what says that it is the user's, and addresses.
pub const MOST_CHAIN: usize = 128;

/// What is read beside the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing.
    Registers,
    /// A call chain, by frame pointers: two words a call.
    Chain,
    /// A copy of the stack, of no more than so many bytes.
    Stack(usize),
}

impl Wanted {
    /// Most bytes of the host's stack that are copied beside what is read of an enclave. Hosts have frame pointers seldom, and copying
    /// ordinary memory takes little: so it is a copy in any case, which is followed when it is read.
    pub fn host(self) -> usize {
        match self {
            Self::Registers => 0,
            Self::Chain => HOST_STACK,
            Self::Stack(most) => most.min(MOST_STACK),
        }
    }
}

/// Room for a state.
#[repr(C)]
#[derive(Debug)]
pub struct Room {
    /// Numbers of eight bytes.
    pub chain: [[u8; 8]; MOST_CHAIN],
    /// From the stack pointer on.
    pub stack: [u8; MOST_STACK],
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// General registers.
    pub registers: Registers,
    /// Entries of the chain in the room.
    pub chain: usize,
    /// Bytes of the stack in the room.
    pub stack: usize,
    /// Reads that the kernel was asked for.
    pub calls: u64,
    /// Words of eight bytes that they read.
    pub words: u64,
}

/// Reads the state behind a TCS. An error where the enclave's memory cannot be read, or what it says is no state.
pub fn read(
    memory: &impl DebugRead,
    enclave: &Enclave,
    tcs: u64,
    wanted: Wanted,
    room: &mut Room,
) -> Result<State, Refused> {
    if !enclave.secs.is_debug {
        return Err(Refused);
    }
    let memory = &mut Counted::new(memory);
    let mut bytes = [0; Tcs::BYTES];
    memory.read_all(tcs.wrapping_add(Tcs::OFFSET), &mut bytes)?;
    let thread = Tcs::of(&bytes);
    let registers = frame(memory, enclave, &thread, thread.cssa)?;
    let mut state = State { registers, ..State::default() };
    match wanted {
        Wanted::Registers => {}
        Wanted::Chain => state.chain = chain(memory, enclave, &thread, registers, &mut room.chain),
        Wanted::Stack(most) => {
            state.stack = stack(memory, enclave, &registers, most, &mut room.stack)
        }
    }
    Ok(State { calls: memory.calls, words: memory.words, ..state })
}

fn frame<R: DebugRead>(
    memory: &mut Counted<'_, R>,
    enclave: &Enclave,
    thread: &Tcs,
    number: u32,
) -> Result<Registers, Refused> {
    let secs = &enclave.secs;
    let at = thread.registers_at(number, secs.frame, secs.size).ok_or(Refused)?;
    let mut bytes = [0; Registers::BYTES];
    memory.read_all(secs.base + at, &mut bytes)?;
    Ok(Registers::of(&bytes))
}

/// Follows frame pointers; below an exception's handler is what it interrupted, in the frame before.
fn chain<R: DebugRead>(
    memory: &mut Counted<'_, R>,
    enclave: &Enclave,
    thread: &Tcs,
    innermost: Registers,
    room: &mut [[u8; 8]; MOST_CHAIN],
) -> usize {
    let mut free = room.iter_mut();
    let mut put = |address: u64| free.next().map(|place| *place = address.to_le_bytes());
    let mut taken = 0;
    let mut add = |address| put(address).map(|()| taken += 1);
    add(CONTEXT_USER);
    let mut registers = innermost;
    for number in (1..=thread.cssa).rev() {
        if number != thread.cssa {
            let Ok(below) = frame(memory, enclave, thread, number) else { break };
            registers = below;
        }
        let mut is_room = add(registers.instruction_pointer()).is_some();
        let (mut at, mut lowest) = (registers.frame_pointer(), registers.stack_pointer());
        // A caller's frame is further up, so this ends.
        while is_room
            && at >= lowest
            && at.is_multiple_of(8)
            && enclave.has(at)
            && enclave.has(at.wrapping_add(15))
        {
            let mut words = [0; 16];
            if memory.read_all(at, &mut words).is_err() {
                break;
            }
            let (caller, back) = (u64_at(&words, 0), u64_at(&words, 8));
            if !enclave.has(back) {
                break;
            }
            is_room = add(back).is_some();
            lowest = at + 16;
            at = caller;
        }
        if !is_room {
            break;
        }
    }
    taken
}

fn stack<R: DebugRead>(
    memory: &mut Counted<'_, R>,
    enclave: &Enclave,
    registers: &Registers,
    most: usize,
    room: &mut [u8; MOST_STACK],
) -> usize {
    let from = registers.stack_pointer();
    // On the way in and out RSP is the host's.
    if !enclave.has(from) {
        return 0;
    }
    let above = enclave.secs.base + enclave.secs.size - from;
    let length = most.min(room.len()).min(usize::try_from(above).unwrap_or(usize::MAX));
    memory.read(from, &mut room[..length]).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Secs;
    use std::vec;
    use std::vec::Vec;

    const BASE: u64 = 1 << 20;
    const SIZE: usize = 1 << 16;
    const TCS: u64 = BASE + 0x1000;
    const ENCLAVE: Enclave = Enclave {
        secs: Secs { size: SIZE as u64, base: BASE, frame: 4096, is_debug: true },
        number: 1,
        threads: 1,
        is_initialised: true,
    };

    struct Memory(Vec<u8>);

    impl Memory {
        fn put(&mut self, at: u64, words: &[u64]) {
            for (word, at) in words.iter().zip((at - BASE..).step_by(8)) {
                self.0[at as usize..][..8].copy_from_slice(&word.to_le_bytes());
            }
        }

        /// Registers of a frame: RSP, RBP, RIP.
        fn put_frame(&mut self, number: u64, [sp, bp, ip]: [u64; 3]) {
            let region = BASE + 0x2000 + number * 4096 - 184;
            self.put(region + 32, &[sp, bp]);
            self.put(region + 136, &[ip]);
        }
    }

    impl DebugRead for Memory {
        fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Refused> {
            let from = self
                .0
                .get(at.wrapping_sub(BASE) as usize..)
                .filter(|from| !from.is_empty())
                .ok_or(Refused)?;
            let count = from.len().min(into.len());
            into[..count].copy_from_slice(&from[..count]);
            Ok(count)
        }
    }

    fn memory(cssa: u64) -> Memory {
        let mut memory = Memory(vec![0; SIZE]);
        memory.put(TCS + 16, &[0x2000, 2 << 32 | cssa]);
        memory
    }

    fn room() -> Room {
        Room { chain: [[0; 8]; MOST_CHAIN], stack: [0; MOST_STACK] }
    }

    fn chain_of(memory: &Memory) -> Vec<u64> {
        let mut room = room();
        let state = read(memory, &ENCLAVE, TCS, Wanted::Chain, &mut room).unwrap();
        room.chain[..state.chain].iter().map(|&entry| u64::from_le_bytes(entry)).collect()
    }

    #[test]
    fn frame_pointers_are_followed_within_the_enclave() {
        let mut memory = memory(1);
        memory.put_frame(1, [BASE + 0x8000, BASE + 0x8010, BASE + 0x100]);
        memory.put(BASE + 0x8010, &[BASE + 0x8040, BASE + 0x200]);
        memory.put(BASE + 0x8040, &[0, BASE + 0x300]);
        assert_eq!(chain_of(&memory), [CONTEXT_USER, BASE + 0x100, BASE + 0x200, BASE + 0x300]);
        let mut room = room();
        let state = read(&memory, &ENCLAVE, TCS, Wanted::Chain, &mut room).unwrap();
        // TCS, registers, two frames; two words, eighteen, and twice two.
        assert_eq!((state.calls, state.words), (4, 24));
        // A caller that is further down, or where it was, ends it; so does one outside.
        for caller in [BASE + 0x8010, BASE + 0x8000, 8, u64::MAX - 7, BASE + SIZE as u64 - 8] {
            memory.put(BASE + 0x8010, &[caller, BASE + 0x200]);
            assert_eq!(chain_of(&memory).len(), 3, "{caller:x}");
        }
        memory.put(BASE + 0x8010, &[BASE + 0x8040, 0x200]);
        assert_eq!(chain_of(&memory).len(), 2);
        // What is as deep as the enclave ends where the room does.
        for frame in (0x8010..0xf000).step_by(16) {
            memory.put(BASE + frame, &[BASE + frame + 16, BASE + 0x200]);
        }
        assert_eq!(chain_of(&memory).len(), MOST_CHAIN);
    }

    #[test]
    fn what_a_handler_interrupted_is_below_it() {
        let mut memory = memory(2);
        memory.put_frame(1, [BASE + 0x8000, BASE + 0x8010, BASE + 0x100]);
        memory.put(BASE + 0x8010, &[0, BASE + 0x200]);
        memory.put_frame(2, [BASE + 0x7000, 0, BASE + 0x400]);
        assert_eq!(chain_of(&memory), [CONTEXT_USER, BASE + 0x400, BASE + 0x100, BASE + 0x200]);
    }

    #[test]
    fn a_stack_is_copied_as_far_as_there_is_one() {
        let mut memory = memory(1);
        let mut room = room();
        let mut copied = |memory: &Memory, sp, most| {
            let mut other = Memory(memory.0.clone());
            other.put_frame(1, [sp, 0, 0]);
            let state = read(&other, &ENCLAVE, TCS, Wanted::Stack(most), &mut room).unwrap();
            (state.stack, room.stack[0], state.words)
        };
        memory.0[0x8000] = 7;
        assert_eq!(copied(&memory, BASE + 0x8000, 2048), (2048, 7, 2 + 18 + 256));
        assert_eq!(copied(&memory, BASE + 0x8000, usize::MAX), (8192, 7, 2 + 18 + 1024));
        assert_eq!(copied(&memory, BASE + SIZE as u64 - 16, 2048).0, 16);
        assert_eq!(copied(&memory, BASE - 16, 2048).0, 0);
        memory.0.truncate(0x8010);
        assert_eq!(copied(&memory, BASE + 0x8000, 2048), (16, 7, 2 + 18 + 2));
    }

    #[test]
    fn what_says_no_state_is_refused() {
        let mut room = room();
        let mut is_refused = |memory: &Memory, enclave: &Enclave, tcs| {
            read(memory, enclave, tcs, Wanted::Chain, &mut room) == Err(Refused)
        };
        assert!(!is_refused(&memory(1), &ENCLAVE, TCS));
        assert!(is_refused(&memory(0), &ENCLAVE, TCS));
        assert!(is_refused(&memory(3), &ENCLAVE, TCS));
        assert!(is_refused(&memory(1), &ENCLAVE, u64::MAX - 4095));
        let production = Enclave { secs: Secs { is_debug: false, ..ENCLAVE.secs }, ..ENCLAVE };
        assert!(is_refused(&memory(1), &production, TCS));
        assert!(is_refused(&Memory(vec![0; 0x1018]), &ENCLAVE, TCS));
    }
}
