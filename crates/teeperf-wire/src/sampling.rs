//! How a process that samples itself speaks with the recorder: one exchange each on a `SOCK_SEQPACKET` Unix socket in the abstract
//! namespace, which is closed at once, as [`crate::hello`] has it. Who asks is told by the kernel.
//!
//! ```text
//! library  ── Ask ────►  recorder      ATTACH: memory for samples; the others: look at the process now, while it stands
//! library  ◄── Terms ──  recorder      with the memory's file, where it was asked for
//! ```
//!
//! The memory is a row of places, one for each thread, whose layout is that of `teeperf_aex::threads`.

use crate::body::{put, u32_at, u64_at};

/// Environment variable with the socket's abstract name (without the leading 0 byte).
pub const SAMPLES_VARIABLE: &str = "TEEPERF_SAMPLES";
/// Version of this exchange and of the memory.
pub const VERSION: u32 = 1;
/// Bytes of an [`Ask`].
pub const ASK_SIZE: usize = crate::hello::HELLO_SIZE;
/// Bytes of [`Terms`].
pub const TERMS_SIZE: usize = crate::hello::WELCOME_SIZE;
const ASK_MAGIC: u32 = u32::from_le_bytes(*b"TPSa");
const TERMS_MAGIC: u32 = u32::from_le_bytes(*b"TPSt");

/// What is asked.
pub mod what {
    /// A process began: by exec, or, with [`super::flag::FORKED`], by fork.
    pub const ATTACH: u16 = 1;
    /// An enclave is whole, and can be entered from here on.
    pub const MADE: u16 = 2;
    /// One goes.
    pub const GOES: u16 = 3;
    /// The process ends.
    pub const ENDS: u16 = 4;
    /// There was no room to remember an enclave.
    pub const LEFT_OUT: u16 = 5;
}

/// Of what is asked.
pub mod flag {
    /// The process is the child of one that attached, with the same program.
    pub const FORKED: u16 = 1;
    /// The kernel permits no events: timers are as fast as its ticks.
    pub const NO_EVENTS: u16 = 2;
    /// The enclave's memory can be read.
    pub const DEBUG: u16 = 4;
}

/// What a library asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// [`VERSION`].
    pub version: u32,
    /// [`what`].
    pub what: u16,
    /// [`flag`].
    pub flags: u16,
    /// Process id as the process knows it.
    pub pid: u32,
    /// Where the enclave is.
    pub base: u64,
    /// Bytes of its range.
    pub size: u64,
}

impl Ask {
    /// As bytes.
    pub fn encode(&self) -> [u8; ASK_SIZE] {
        let mut out = [0; ASK_SIZE];
        let kind = u32::from(self.what) | u32::from(self.flags) << 16;
        put(&mut out, &[ASK_MAGIC, self.version, kind, self.pid], &[self.base, self.size]);
        out
    }

    /// From bytes that anyone may have sent.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let is_one = bytes.len() == ASK_SIZE && u32_at(bytes, 0) == ASK_MAGIC;
        is_one.then(|| Self {
            version: u32_at(bytes, 4),
            what: u32_at(bytes, 8) as u16,
            flags: (u32_at(bytes, 8) >> 16) as u16,
            pid: u32_at(bytes, 12),
            base: u64_at(bytes, 16),
            size: u64_at(bytes, 24),
        })
    }
}

/// What the periods of samples are counted in.
pub mod clock {
    /// Processor time, by timers that the kernel looks at in its ticks.
    pub const PROCESSOR: u16 = 0;
    /// Processor time, by events of the kernel where it permits them.
    pub const EVENT: u16 = 1;
}

/// What is kept beside registers.
pub mod kept {
    /// Nothing.
    pub const NOTHING: u16 = 0;
    /// A call chain, by frame pointers.
    pub const CHAIN: u16 = 1;
    /// A copy of the stack.
    pub const STACK: u16 = 2;
}

/// How to sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// [`VERSION`]; 0: the process is not to be sampled.
    pub version: u32,
    /// Process id as the recorder knows it.
    pub process: u32,
    /// Threads at one time that there are places for.
    pub places: u32,
    /// Bytes of each one's ring, a power of two.
    pub capacity: u32,
    /// [`clock`].
    pub clock: u16,
    /// [`kept`].
    pub kept: u16,
    /// Bytes of a copy of the stack.
    pub stack: u32,
    /// Mean period, nanoseconds.
    pub period_ns: u64,
    /// All periods are the same.
    pub is_constant: bool,
    /// Threads inside enclaves are told apart, and what they do there.
    pub has_enclaves: bool,
}

impl Terms {
    /// As bytes.
    pub fn encode(&self) -> [u8; TERMS_SIZE] {
        let mut out = [0; TERMS_SIZE];
        let how = u32::from(self.clock) | u32::from(self.kept) << 16;
        put(
            &mut out,
            &[TERMS_MAGIC, self.version, self.process, self.places, self.capacity, how],
            &[
                self.period_ns,
                self.stack.into(),
                u64::from(self.is_constant) | u64::from(self.has_enclaves) << 1,
            ],
        );
        out
    }

    /// From bytes that anyone may have sent.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let is_one = bytes.len() == TERMS_SIZE && u32_at(bytes, 0) == TERMS_MAGIC;
        is_one.then(|| Self {
            version: u32_at(bytes, 4),
            process: u32_at(bytes, 8),
            places: u32_at(bytes, 12),
            capacity: u32_at(bytes, 16),
            clock: u32_at(bytes, 20) as u16,
            kept: (u32_at(bytes, 20) >> 16) as u16,
            period_ns: u64_at(bytes, 24),
            stack: u64_at(bytes, 32) as u32,
            is_constant: u64_at(bytes, 40) & 1 != 0,
            has_enclaves: u64_at(bytes, 40) & 2 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_come_back(n: [u32; 6], small: [u16; 2], wide: [u64; 2], is_constant: bool, has_enclaves: bool) {
            let ask = Ask { version: n[0], what: small[0], flags: small[1], pid: n[1], base: wide[0], size: wide[1] };
            prop_assert_eq!(Ask::decode(&ask.encode()), Some(ask));
            let terms = Terms {
                version: n[0], process: n[1], places: n[2], capacity: n[3], clock: small[0], kept: small[1],
                stack: n[4], period_ns: wide[0], is_constant, has_enclaves,
            };
            prop_assert_eq!(Terms::decode(&terms.encode()), Some(terms));
            prop_assert_eq!(Ask::decode(&terms.encode()), None);
        }

        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(Ask::decode(&bytes), None);
            prop_assert_eq!(Terms::decode(&bytes), None);
        }
    }
}
