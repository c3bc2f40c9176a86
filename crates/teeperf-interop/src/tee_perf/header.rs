//! The first bytes of a log.

use super::Error;

/// Bytes of the header.
pub const HEADER: usize = 56;
/// The version that there is.
const VERSION: u16 = 1;
/// Versions that a later one may have.
const MOST_VERSIONS: u16 = 16;
/// Flag: entries have a third number, the thread's id.
const THREADS: u64 = 1 << 16;
/// Flag: events are recorded. Where it stands in the description of the format, and where in files: there
/// bit 31 alone, or all from there on, as a C compiler makes them of `1 << 31`.
const ACTIVE: [u64; 4] = [0, 1 << 63, 1 << 31, !0 << 31];
/// Largest log that is believed.
const LARGEST: u64 = 1 << 48;

/// What a log says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The counter's last value.
    pub(super) counter: u64,
    /// Whether entries have the thread's id.
    pub(super) has_threads: bool,
    pub(super) pid: u64,
    /// Bytes of header and entries.
    pub(super) size: u64,
    /// Entries that were begun, though there may have been no room for the last.
    pub(super) begun: u64,
    /// Where the function `__profiler_map_info` lay.
    pub(super) map_info: u64,
}

impl Header {
    /// Takes it apart.
    pub(super) fn read(name: &str, bytes: &[u8]) -> Result<Self, Error> {
        let Some([counter, flags, _, pid, size, begun, map_info]) = numbers(bytes) else {
            return Err(Error::Header { name: name.to_owned(), length: bytes.len() });
        };
        match flags as u16 {
            VERSION => {}
            version => return Err(Error::Version { name: name.to_owned(), version }),
        }
        let has_threads = flags & THREADS != 0;
        Ok(Self { counter, has_threads, pid, size, begun, map_info })
    }

    /// Bytes of an entry.
    pub(super) fn entry(&self) -> u64 {
        if self.has_threads { 24 } else { 16 }
    }

    /// Entries that there was room for.
    pub(super) fn room(&self) -> u64 {
        self.size.saturating_sub(HEADER as u64) / self.entry()
    }
}

/// Whether a file that begins like this is a log: by its flags, in which most bits are 0, and its size. A file
/// that ends in the header is none.
pub fn is_log(start: &[u8]) -> bool {
    let Some([_, flags, _, _, size, begun, _]) = numbers(start) else { return false };
    let active = flags & !(THREADS | u64::from(u16::MAX));
    (1..=MOST_VERSIONS).contains(&(flags as u16))
        && ACTIVE.contains(&active)
        && (HEADER as u64..LARGEST).contains(&size)
        && begun < LARGEST
}

/// The numbers of the header, if it is whole.
fn numbers(bytes: &[u8]) -> Option<[u64; 7]> {
    let (numbers, _) = bytes.get(..HEADER)?.as_chunks::<8>();
    <[[u8; 8]; 7]>::try_from(numbers).ok().map(|numbers| numbers.map(u64::from_le_bytes))
}
