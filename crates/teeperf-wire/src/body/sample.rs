//! Samples: states of threads that were interrupted. [`crate::packet::kind::SAMPLES`] has them,
//! [`crate::packet::kind::SAMPLED`] says what they were taken of.
//!
//! The payload of a `SAMPLES` packet is a header of [`HEADER`] bytes, then samples:
//!
//! ```text
//! 0   4  samples         their number
//! 4   4  bytes           of the samples decompressed, at most MAX_BYTES
//! 8   8  lost            samples that were taken since the packet before, or should have been, and are in none
//! 16  4  event           number of the event whose samples were lost; 0: not known, or none were
//! 20  1  encoding        0 plain; 1 zstd
//! 21  3  0
//! 24  …  data
//! ```
//!
//! A sample is a head of [`SAMPLE_HEADER`] bytes, then its parts in this order, each only as long as the head says:
//!
//! ```text
//! 0   4  size            bytes of the whole sample, a multiple of 8; what is behind the last part is skipped
//! 4   2  event           number of what was sampled
//! 6   1  mode            what the processor ran in, see `mode`
//! 7   1  abi             of the registers: 0 there are none; 1 of 32 bits; 2 of 64 bits
//! 8   8  time_ns         when, on the clock of `sampled::ZERO_NS`; all ones: not known
//! 16  4  pid             process id
//! 20  4  tid             thread id
//! 24  4  cpu             the processor; all ones: not known
//! 28  4  chain           addresses of the call chain
//! 32  8  ip              instruction pointer
//! 40  8  period          how much of the event the sample stands for
//! 48  8  registers       mask: bit N, register N is there
//! 56  4  stack           bytes of the copy of the user's stack
//! 60  4  branches        entries of the branch stack
//! 64  …  chain (u64 each), registers (u64 each, by number), stack (filled up to a multiple of 8), branches (from
//!        and to, u64 each, the latest first), the outer stack
//! ```
//!
//! An outer stack is there where the sample does not end before it: a head of [`OUTER_HEADER`] bytes, then its parts.
//!
//! ```text
//! 0   8  registers       mask, as above; 0: there is none
//! 8   4  stack           bytes of the copy of the outer stack
//! 12  4  0
//! 16  …  registers (u64 each, by number), stack (filled up to a multiple of 8)
//! ```
//!
//! A call chain is as perf's: innermost first, and addresses above [`CONTEXT_MAX`] say which mode those behind
//! them are of. Registers have the numbers of perf for the machine, in Linux's `asm/perf_regs.h`. A stack copy begins at the
//! stack pointer.

use super::{put, u32_at, u64_at};

/// Bytes before the samples.
pub const HEADER: usize = 24;
/// Most bytes that samples of a packet take, decompressed: what a packet has room for if they are not.
pub const MAX_BYTES: usize = crate::packet::MAX_PAYLOAD - HEADER;
/// Bytes of a sample before its parts.
pub const SAMPLE_HEADER: usize = 64;
/// Bytes of an outer stack before its parts.
pub const OUTER_HEADER: usize = 16;
/// Longest copy of a stack: perf's limit, a u16 that is a multiple of 8.
pub const MAX_STACK: usize = 65528;
/// Most addresses in a call chain. Linux's `perf_event_max_stack` is 127 and can be raised; each begins with a context.
pub const MAX_CHAIN: usize = 8192;
/// Addresses from here on are no addresses but say a mode: `PERF_CONTEXT_MAX`, -4095.
pub const CONTEXT_MAX: u64 = -4095i64 as u64;
/// Of a call chain: what is behind it is the hypervisor's. `PERF_CONTEXT_HV`.
pub const CONTEXT_HYPERVISOR: u64 = -32i64 as u64;
/// Of a call chain: what is behind it is the kernel's. `PERF_CONTEXT_KERNEL`.
pub const CONTEXT_KERNEL: u64 = -128i64 as u64;
/// Of a call chain: what is behind it is the user's. `PERF_CONTEXT_USER`.
pub const CONTEXT_USER: u64 = -512i64 as u64;
/// Of a call chain: the user's part comes in a record of its own, and the entry behind this is its number.
/// `PERF_CONTEXT_USER_DEFERRED`.
pub const CONTEXT_DEFERRED: u64 = -640i64 as u64;
/// Of a call chain: what is behind it is a guest's: of an unknown mode, its kernel's, its user's. `PERF_CONTEXT_GUEST`,
/// `PERF_CONTEXT_GUEST_KERNEL`, `PERF_CONTEXT_GUEST_USER`.
pub const CONTEXT_GUEST: u64 = -2048i64 as u64;
/// See there.
pub const CONTEXT_GUEST_KERNEL: u64 = -2176i64 as u64;
/// See there.
pub const CONTEXT_GUEST_USER: u64 = -2560i64 as u64;
/// A processor that is not known.
pub const NO_CPU: u32 = u32::MAX;
/// A time that is not known.
pub const NO_TIME: u64 = u64::MAX;
pub use super::tree::encoding;

/// What a processor ran in, numbered as `PERF_RECORD_MISC_CPUMODE_MASK`.
pub mod mode {
    /// Not known.
    pub const UNKNOWN: u8 = 0;
    /// The kernel.
    pub const KERNEL: u8 = 1;
    /// A program.
    pub const USER: u8 = 2;
    /// The hypervisor.
    pub const HYPERVISOR: u8 = 3;
    /// The kernel of a guest.
    pub const GUEST_KERNEL: u8 = 4;
    /// A program of a guest.
    pub const GUEST_USER: u8 = 5;
}

/// Registers of a sample.
pub mod abi {
    /// None.
    pub const NONE: u8 = 0;
    /// 32 bits each, in eight bytes.
    pub const BITS_32: u8 = 1;
    /// 64 bits each.
    pub const BITS_64: u8 = 2;
}

/// Header of a packet of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// See the table.
    pub samples: u32,
    /// See the table.
    pub bytes: u32,
    /// See the table.
    pub lost: u64,
    /// See the table.
    pub event: u32,
    /// See the table.
    pub encoding: u8,
}

impl Header {
    /// As bytes.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        put(&mut out, &[self.samples, self.bytes], &[self.lost]);
        out[16..20].copy_from_slice(&self.event.to_le_bytes());
        out[20] = self.encoding;
        out
    }

    /// Header and data of a payload; nothing when it is too short or claims more than a packet has.
    pub fn decode(payload: &[u8]) -> Option<(Self, &[u8])> {
        let (head, data) = payload.split_at_checked(HEADER)?;
        let header = Self {
            samples: u32_at(head, 0),
            bytes: u32_at(head, 4),
            lost: u64_at(head, 8),
            event: u32_at(head, 16),
            encoding: head[20],
        };
        (header.bytes as usize <= MAX_BYTES).then_some((header, data))
    }
}

/// A row of numbers of eight bytes that need not be aligned.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Numbers<'a>(&'a [[u8; 8]]);

impl<'a> Numbers<'a> {
    /// Of bytes; a rest that is no number is left out.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self(bytes.as_chunks().0)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One of them.
    pub fn get(&self, at: usize) -> Option<u64> {
        self.0.get(at).map(|&bytes| u64::from_le_bytes(bytes))
    }

    /// One by one.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + use<'a> {
        self.0.iter().map(|&bytes| u64::from_le_bytes(bytes))
    }

    /// As they stand.
    pub fn bytes(&self) -> &'a [u8] {
        self.0.as_flattened()
    }
}

impl core::fmt::Debug for Numbers<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample<'a> {
    /// See the table.
    pub event: u16,
    /// See the table.
    pub mode: u8,
    /// See the table.
    pub abi: u8,
    /// See the table.
    pub time_ns: u64,
    /// See the table.
    pub pid: u32,
    /// See the table.
    pub tid: u32,
    /// See the table.
    pub cpu: u32,
    /// See the table.
    pub ip: u64,
    /// See the table.
    pub period: u64,
    /// Which registers `registers` has.
    pub mask: u64,
    /// Addresses of the call chain.
    pub chain: Numbers<'a>,
    /// As many as `mask` has bits.
    pub registers: Numbers<'a>,
    /// From the stack pointer on.
    pub stack: &'a [u8],
    /// From and to in turn.
    pub branches: Numbers<'a>,
    /// Who called the outermost function of the parts before.
    pub outer: Outer<'a>,
}

/// Where the call chain, or the stack, of a sample ends in code that was entered from another stack, such as an enclave's: that one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outer<'a> {
    /// Which registers `registers` has; of none, there is no such stack.
    pub mask: u64,
    /// As many as `mask` has bits. The instruction pointer is where the other code was entered.
    pub registers: Numbers<'a>,
    /// From the stack pointer on.
    pub stack: &'a [u8],
}

impl<'a> Outer<'a> {
    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        self.mask != 0
    }

    /// Which register, by its number.
    pub fn register(&self, number: u32) -> Option<u64> {
        register(self.mask, self.registers, number)
    }

    fn size(&self) -> usize {
        if !self.is_there() {
            return 0;
        }
        OUTER_HEADER + 8 * self.registers.len() + self.stack.len().next_multiple_of(8)
    }

    fn head(&self) -> [u8; OUTER_HEADER] {
        let mut out = [0; OUTER_HEADER];
        out[..8].copy_from_slice(&self.mask.to_le_bytes());
        out[8..12].copy_from_slice(&(self.stack.len() as u32).to_le_bytes());
        out
    }

    /// What stands behind the other parts; nothing where it says that there is more than there is.
    fn decode(bytes: &'a [u8]) -> Option<Self> {
        let Some((head, parts)) = bytes.split_at_checked(OUTER_HEADER) else {
            return Some(Self::default());
        };
        let mask = u64_at(head, 0);
        if mask == 0 {
            return Some(Self::default());
        }
        let (registers, parts) = numbers(parts, mask.count_ones())?;
        let stack = parts.get(..u32_at(head, 8) as usize)?;
        Some(Self { mask, registers, stack })
    }
}

/// What stands before the parts of a sample, and before those of its outer stack.
#[derive(Clone, Copy, Debug)]
pub struct Heads([u8; SAMPLE_HEADER], [u8; OUTER_HEADER]);

impl<'a> Sample<'a> {
    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        let numbers = self.chain.len() + self.registers.len() + self.branches.len();
        SAMPLE_HEADER + 8 * numbers + self.stack.len().next_multiple_of(8) + self.outer.size()
    }

    /// What its bytes begin with; see [`Sample::parts`].
    pub fn heads(&self) -> Heads {
        Heads(self.head(), self.outer.head())
    }

    /// Its bytes, piece by piece.
    pub fn parts<'b>(&'b self, Heads(head, outer_head): &'b Heads) -> [&'b [u8]; 10] {
        const ZEROES: [u8; 8] = [0; 8];
        let filling = |stack: &[u8]| &ZEROES[..stack.len().next_multiple_of(8) - stack.len()];
        let (outer_head, outer) = match self.outer.is_there() {
            true => (&outer_head[..], self.outer),
            false => (&[][..], Outer::default()),
        };
        [
            head,
            self.chain.bytes(),
            self.registers.bytes(),
            self.stack,
            filling(self.stack),
            self.branches.bytes(),
            outer_head,
            outer.registers.bytes(),
            outer.stack,
            filling(outer.stack),
        ]
    }

    /// Its head, without what comes behind it.
    pub fn head(&self) -> [u8; SAMPLE_HEADER] {
        let mut out = [0; SAMPLE_HEADER];
        out[0..4].copy_from_slice(&(self.size() as u32).to_le_bytes());
        out[4..6].copy_from_slice(&self.event.to_le_bytes());
        out[6..8].copy_from_slice(&[self.mode, self.abi]);
        out[8..16].copy_from_slice(&self.time_ns.to_le_bytes());
        put(
            &mut out[16..],
            &[self.pid, self.tid, self.cpu, self.chain.len() as u32],
            &[self.ip, self.period, self.mask],
        );
        put(&mut out[56..], &[self.stack.len() as u32, self.branches.len() as u32 / 2], &[]);
        out
    }

    /// Which register, by its number.
    pub fn register(&self, number: u32) -> Option<u64> {
        register(self.mask, self.registers, number)
    }

    /// The registers with their numbers, in the order of these.
    pub fn numbered(&self) -> impl Iterator<Item = (u32, u64)> + use<'a> {
        let mut mask = self.mask;
        self.registers.iter().map_while(move |value| {
            let number = mask.trailing_zeros();
            mask &= mask.checked_sub(1)?;
            Some((number, value))
        })
    }

    /// The first sample of some bytes, and what is behind it; nothing when it isn't whole.
    pub fn decode(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let size = bytes.first_chunk().map(|&size| u32::from_le_bytes(size))? as usize;
        if !size.is_multiple_of(8) {
            return None;
        }
        let (sample, rest) = bytes.split_at_checked(size)?;
        let (head, parts) = sample.split_at_checked(SAMPLE_HEADER)?;
        let mask = u64_at(head, 48);
        let (chain, parts) = numbers(parts, u32_at(head, 28))?;
        let (registers, parts) = numbers(parts, mask.count_ones())?;
        let stack = u32_at(head, 56) as usize;
        let (filled, parts) = parts.split_at_checked(stack.checked_next_multiple_of(8)?)?;
        let (branches, parts) = numbers(parts, u32_at(head, 60).checked_mul(2)?)?;
        let sample = Self {
            event: u16::from_le_bytes([head[4], head[5]]),
            mode: head[6],
            abi: head[7],
            time_ns: u64_at(head, 8),
            pid: u32_at(head, 16),
            tid: u32_at(head, 20),
            cpu: u32_at(head, 24),
            ip: u64_at(head, 32),
            period: u64_at(head, 40),
            mask,
            chain,
            registers,
            stack: &filled[..stack],
            branches,
            outer: Outer::decode(parts)?,
        };
        (sample.chain.len() <= MAX_CHAIN).then_some((sample, rest))
    }
}

fn register(mask: u64, registers: Numbers<'_>, number: u32) -> Option<u64> {
    let bit = 1u64.checked_shl(number)?;
    if mask & bit == 0 {
        return None;
    }
    registers.get((mask & (bit - 1)).count_ones() as usize)
}

fn numbers(bytes: &[u8], count: u32) -> Option<(Numbers<'_>, &[u8])> {
    let (first, rest) = bytes.split_at_checked((count as usize).checked_mul(8)?)?;
    Some((Numbers::of(first), rest))
}

/// Samples one by one, until what is left is no whole one: [`Samples::rest`] of it.
#[derive(Clone, Debug)]
pub struct Samples<'a> {
    /// Bytes that were not read.
    pub rest: &'a [u8],
}

impl<'a> Iterator for Samples<'a> {
    type Item = Sample<'a>;

    fn next(&mut self) -> Option<Sample<'a>> {
        let (sample, rest) = Sample::decode(self.rest)?;
        self.rest = rest;
        Some(sample)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;
    use std::vec;

    proptest! {
        #[test]
        fn a_sample_comes_back(
            n: [u32; 3], wide: [u64; 3], event: u16, mode: u8, masks: [u64; 2],
            chain in proptest::collection::vec(any::<[u8; 8]>(), 0..5),
            stacks in [proptest::collection::vec(any::<u8>(), 0..40), proptest::collection::vec(any::<u8>(), 0..40)],
            branches in proptest::collection::vec(any::<[[u8; 8]; 2]>(), 0..3),
            has_outer: bool, behind in 0usize..OUTER_HEADER / 8,
        ) {
            let (seven, nine) = ([7; 512], [9; 512]);
            let [mask, outer] = masks;
            let outer = if has_outer { outer } else { 0 };
            let sample = Sample {
                event, mode, abi: 2, time_ns: wide[0], pid: n[0], tid: n[1], cpu: n[2], ip: wide[1], period: wide[2],
                mask,
                chain: Numbers(&chain),
                registers: Numbers::of(&seven[..8 * mask.count_ones() as usize]),
                stack: &stacks[0],
                branches: Numbers(branches.as_flattened()),
                outer: Outer {
                    mask: outer,
                    registers: Numbers::of(&nine[..8 * outer.count_ones() as usize]),
                    stack: if outer == 0 { &[] } else { &stacks[1] },
                },
            };
            let mut bytes = sample.parts(&sample.heads()).concat();
            prop_assert_eq!(sample.size(), bytes.len());
            bytes.extend([1, 2, 3]);
            prop_assert_eq!(Sample::decode(&bytes), Some((sample, &[1u8, 2, 3][..])));
            prop_assert_eq!(Sample::decode(&bytes[..bytes.len() - 4]), None);
            for number in 0..70 {
                let is_there = number < 64 && mask >> number & 1 == 1;
                prop_assert_eq!(sample.register(number), is_there.then_some(u64::from_le_bytes([7; 8])));
                let is_there = number < 64 && outer >> number & 1 == 1;
                prop_assert_eq!(sample.outer.register(number), is_there.then_some(u64::from_le_bytes([9; 8])));
            }
            let by_number = (0..64).filter_map(|number| Some((number, sample.register(number)?)));
            prop_assert!(sample.numbered().eq(by_number));
            // What is shorter than its head is no outer stack; one that says it is longer than there is makes no sample.
            bytes.truncate(sample.size());
            if outer == 0 {
                bytes.extend(vec![0xff; 8 * behind]);
                let size = bytes.len() as u32;
                bytes[..4].copy_from_slice(&size.to_le_bytes());
                prop_assert_eq!(Sample::decode(&bytes), Some((sample, &[][..])));
            } else {
                let size = bytes.len() as u32 - 8;
                bytes[..4].copy_from_slice(&size.to_le_bytes());
                prop_assert_eq!(Sample::decode(&bytes), None);
            }
        }

        #[test]
        fn header_comes_back(samples: u32, bytes in 0..=MAX_BYTES as u32, lost: u64, event: u32, encoding: u8) {
            let header = Header { samples, bytes, lost, event, encoding };
            let mut with_data = header.encode().to_vec();
            with_data.push(9);
            prop_assert_eq!(Header::decode(&with_data), Some((header, &[9u8][..])));
        }

        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..400), size in 0u32..50) {
            let sized = [&(8 * size).to_le_bytes()[..], &bytes].concat();
            for bytes in [&bytes, &sized] {
                let samples = Samples { rest: bytes };
                prop_assert!(samples.clone().count() <= bytes.len() / SAMPLE_HEADER);
                for sample in samples {
                    let again = sample.parts(&sample.heads()).concat();
                    prop_assert_eq!(Sample::decode(&again), Some((sample, &[][..])));
                }
            }
        }
    }
}
