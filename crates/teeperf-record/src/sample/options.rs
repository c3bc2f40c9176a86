//! What the user asks of the sampler.

/// How to sample. [`Sampling::default`] has the usual values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// How often.
    pub rate: Rate,
    /// What is kept of the stack.
    pub stacks: Stacks,
    /// Whether all periods are the same: wrong for programs that beat in step with them, and there to show that.
    pub is_constant: bool,
    /// Bytes in which the kernel leaves samples of one processor until they are fetched.
    pub ring: usize,
}

/// How often a thread that runs is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// So many times a second of its processor time.
    Frequency(u32),
    /// After so many nanoseconds of its processor time, on average.
    Period(u64),
}

impl Rate {
    /// Highest frequency: beyond, handling samples is all that happens.
    pub const MOST: u32 = 50_000;

    /// The mean period, nanoseconds.
    pub fn period_ns(self) -> u64 {
        match self {
            Self::Frequency(hz) => 1_000_000_000 / u64::from(hz.max(1)),
            Self::Period(ns) => ns,
        }
    }
}

/// What is kept of the stack of a thread that was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stacks {
    /// Registers and a copy of so many bytes, to be unwound later by what compilers write for debuggers and exceptions.
    Copied(u16),
    /// Return addresses, as the chain of frame pointers has them.
    FramePointers,
    /// Nothing: only where it was.
    None,
}

impl Stacks {
    /// Bytes of a copy unless asked for otherwise, as perf has it.
    pub const USUAL: u16 = 8192;
    /// The kernel's limit.
    pub const MOST: u16 = 65528;
}

impl Default for Sampling {
    /// Not 1000: much beats a thousand times a second.
    fn default() -> Self {
        Self {
            rate: Rate::Frequency(999),
            stacks: Stacks::Copied(Stacks::USUAL),
            is_constant: false,
            ring: 4 << 20,
        }
    }
}
