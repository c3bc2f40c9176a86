//! An enclave whose making nobody saw, as when the sampler comes later, or the host asks the kernel without the C library: what
//! its control structure said is found from an exit of one of its threads.
//!
//! The frame that the processor wrote has the host's RSP and RBP in it, which the thread shows again. So of the sizes
//! that a frame may have, and the bases that the range may have, those are right whose frame has both.

use crate::debug_read::DebugRead;
use crate::layout::{Registers, Secs, Tcs, u64_at};

/// Longest frame that is tried, in pages; Intel's tools make one of one, or four with AMX.
const MOST_PAGES: u64 = 16;
/// How much greater an enclave's range may be than what is mapped of it: doublings that are tried.
const DOUBLINGS: u32 = 8;
/// In GPRSGX: RSP and RBP of the host, behind RIP.
const OUTSIDE: u64 = Registers::BYTES as u64;

/// A thread that left an enclave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Its TCS.
    pub tcs: u64,
    /// RSP and RBP, which it shows.
    pub sp: u64,
    /// See there.
    pub bp: u64,
}

/// The enclave that is mapped from `low` to `high`. One that cannot be read has a frame that nobody knows. Nothing where no
/// frame fits.
pub fn probe(memory: &impl DebugRead, exit: &Exit, low: u64, high: u64) -> Option<Secs> {
    if high <= low || !(low..high).contains(&exit.tcs) {
        return None;
    }
    let smallest = (high - low).checked_next_power_of_two()?;
    let sizes = (0..=DOUBLINGS).filter_map(|doubled| smallest.checked_mul(1 << doubled));
    let ranges = sizes.filter_map(|size| {
        let base = low & !(size - 1);
        (high - base <= size && base.checked_add(size).is_some()).then_some((base, size))
    });
    let mut bytes = [0; Tcs::BYTES];
    if memory.read_all(exit.tcs.checked_add(Tcs::OFFSET)?, &mut bytes).is_err() {
        return ranges.map(|(base, size)| Secs { size, base, frame: 4096, is_debug: false }).next();
    }
    let thread = Tcs::of(&bytes);
    let mut tried = None;
    for (base, size) in ranges.filter(|&(base, _)| tried.replace(base) != Some(base)) {
        for frame in (1..=MOST_PAGES).map(|pages| pages * 4096) {
            let Some(at) = thread.registers_at(thread.cssa, frame, size) else { break };
            let mut shown = [0; 16];
            let is_read = memory.read_all(base + at + OUTSIDE, &mut shown).is_ok();
            if is_read && (u64_at(&shown, 0), u64_at(&shown, 8)) == (exit.sp, exit.bp) {
                return Some(Secs { size, base, frame, is_debug: true });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug_read::Refused;
    use std::vec;
    use std::vec::Vec;

    struct Memory(u64, Vec<u8>);

    impl DebugRead for Memory {
        fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Refused> {
            let at = at.wrapping_sub(self.0) as usize;
            let from =
                at.checked_add(into.len()).and_then(|end| self.1.get(at..end)).ok_or(Refused)?;
            into.copy_from_slice(from);
            Ok(into.len())
        }
    }

    const SIZE: u64 = 1 << 18;
    const EXIT: Exit = Exit { tcs: SIZE + 0x9000, sp: 0x7ffe_0010, bp: 0x7ffe_0090 };

    /// An enclave at its size, of which all from 0x8000 on is mapped, with an exit in the frame of `cssa`.
    fn memory(pages: u64, cssa: u64) -> Memory {
        let mut bytes = vec![0; SIZE as usize - 0x8000];
        let mut put = |at: u64, word: u64| {
            bytes[at as usize - 0x8000..][..8].copy_from_slice(&word.to_le_bytes())
        };
        put(0x9010, 0xa000);
        put(0x9018, 2 << 32 | cssa);
        let end = 0xa000 + cssa * pages * 4096;
        put(end - 40, EXIT.sp);
        put(end - 32, EXIT.bp);
        Memory(SIZE + 0x8000, bytes)
    }

    #[test]
    fn size_of_frames_and_base_are_found() {
        for (pages, cssa) in [(1, 1), (4, 1), (2, 2), (16, 2)] {
            let found = probe(&memory(pages, cssa), &EXIT, SIZE + 0x8000, 2 * SIZE);
            assert_eq!(
                found,
                Some(Secs { size: SIZE, base: SIZE, frame: 4096 * pages, is_debug: true }),
                "{pages}"
            );
        }
        // With less of it mapped, its range may be one that is smaller; the base is not.
        let found = probe(&memory(1, 1), &EXIT, SIZE + 0x8000, SIZE + 0xc000)
            .map(|secs| (secs.base, secs.frame));
        assert_eq!(found, Some((SIZE, 4096)));
    }

    #[test]
    fn what_fits_nowhere_is_not_found() {
        let other = Exit { bp: 0, ..EXIT };
        assert_eq!(probe(&memory(1, 1), &other, SIZE + 0x8000, 2 * SIZE), None);
        assert_eq!(probe(&memory(17, 1), &EXIT, SIZE + 0x8000, 2 * SIZE), None);
        assert_eq!(probe(&memory(1, 0), &EXIT, SIZE + 0x8000, 2 * SIZE), None);
        assert_eq!(probe(&memory(1, 1), &EXIT, 2 * SIZE, 3 * SIZE), None);
        assert_eq!(probe(&memory(1, 1), &EXIT, 2 * SIZE, SIZE), None);
        assert_eq!(probe(&memory(1, 1), &Exit { tcs: u64::MAX - 4095, ..EXIT }, 0, u64::MAX), None);
    }

    #[test]
    fn one_that_cannot_be_read_is_a_production_enclave() {
        let found = probe(&Memory(0, vec![]), &EXIT, SIZE + 0x8000, 2 * SIZE).unwrap();
        assert_eq!((found.is_debug, found.base, found.size), (false, SIZE, SIZE));
    }
}
