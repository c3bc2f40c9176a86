//! `gmon.out`, the file that programs built with `-pg` leave for gprof: calls between functions, and how
//! often the program counter was seen where. `docs/gmon.md` describes it, with its sources.
//!
//! * [`read`](fn@read): bytes to a [`Gmon`]. `profile`: that to a profile, with the names of an ELF file.
//! * [`Gmon::write`]: to bytes. [`Builder`]: from calls and times of any source; `export`: from a profile.
//!
//! Knows no call paths, since the file has none, and makes none up.

mod build;
mod error;
mod export;
mod names;
mod profile;
mod read;
mod write;

pub use build::{Builder, RATE, RATES};
pub use error::Error;
pub use export::{Export, LeftOut, Which, export};
pub use names::Names;
pub use profile::profile;
pub use read::{MAX_FILE, read};

/// What a file begins with.
pub const MAGIC: &[u8; 4] = b"gmon";

/// Bytes before the first record: the magic, the version, twelve of no meaning.
const HEADER: usize = 20;
/// The version that there is.
const VERSION: u32 = 1;
/// What LD_PROFILE writes for sprof, which goes on in another way.
const SPROF_VERSION: u32 = 0x1_ffff;

/// First byte of each record.
mod tag {
    pub(super) const HISTOGRAM: u8 = 0;
    pub(super) const ARC: u8 = 1;
    pub(super) const BLOCKS: u8 = 2;
}

/// Unit of what a histogram counts, in 15 bytes, and its short form.
const SECONDS: &[u8; 15] = b"seconds\0\0\0\0\0\0\0\0";
const SECONDS_SHORT: u8 = b's';
/// Bytes of an address that gprof takes for one: places within are not told apart.
const UNIT: u64 = 2;

/// How numbers and addresses stand in a file. It says the first of the two itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Whether the byte of least value comes first.
    pub little_endian: bool,
    /// Whether addresses have eight bytes, not four.
    pub wide: bool,
}

impl Layout {
    /// Of x86-64 and most others today.
    pub const LITTLE_64: Self = Self { little_endian: true, wide: true };

    fn address_bytes(self) -> usize {
        if self.wide { 8 } else { 4 }
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bits = if self.wide { 64 } else { 32 };
        let order = if self.little_endian { "little" } else { "big" };
        write!(f, "{bits}-bit, {order}-endian")
    }
}

/// What a file says. Addresses are as it has them, mostly those of the ELF file.
#[derive(Clone, Debug, PartialEq)]
pub struct Gmon {
    /// How its numbers stand.
    pub layout: Layout,
    /// Calls, in no order; two of the same ends add up.
    pub arcs: Vec<Arc>,
    /// Where the program counter was seen: ranges that do not overlap.
    pub histograms: Vec<Histogram>,
    /// What was left out in reading, and why; each names its offset.
    pub warnings: Vec<String>,
}

/// Calls of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arc {
    /// An address in the caller, mostly that behind the call; 0 for nobody known.
    pub from: u64,
    /// An address in the callee.
    pub to: u64,
    /// How often.
    pub calls: u64,
}

/// How often the program counter was in each part of a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// First address.
    pub low: u64,
    /// Behind the last, more than `low`.
    pub high: u64,
    /// Samples in a unit of time, 0 when not known.
    pub hz: u32,
    /// In how many parts of one size the range is divided. Their size may be a fraction.
    pub parts: u32,
    /// Samples in each part; where some are missing at the end, nothing is known of these.
    pub bins: Vec<u32>,
}
