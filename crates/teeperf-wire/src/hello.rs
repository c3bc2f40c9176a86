//! How a traced process finds its memory: one exchange on a `SOCK_SEQPACKET` Unix socket
//! in the abstract namespace, then the socket is closed, so that nothing of it is left for
//! the program to close, inherit or trip over. The name is in the environment, which
//! survives `exec` and a daemon that closes every descriptor.
//!
//! ```text
//! runtime  ── Hello ──►  recorder      who asks, and for which segment
//! runtime  ◄─ Welcome ─  recorder      with the memfds: clock page (only with segment 0
//!                                      of a process) and the segment asked for
//! ```

/// Environment variable with the socket's abstract name (without the leading 0 byte).
pub const SOCKET_VARIABLE: &str = "TEEPERF_SOCKET";
/// Before that name, of a socket in the file system: an abstract one belongs to a network, which a process may leave.
pub const SOCKET_FOLDER: &str = "/tmp/.";
/// Before the process id of a recorder, of a symbolic link that leads to nothing but its socket's name: so a process that has no
/// variable finds the recorder that it descends from.
pub const RECORDER_LINK: &str = "/tmp/.teeperf-of-";
/// Nanoseconds for which a process that asks no recorder waits at most until a recorder above it
/// has looked at all processes.
pub const LONGEST_STAY_NS: u64 = 2_000_000_000;
/// Longest socket name accepted.
pub const MAX_SOCKET_NAME: usize = 100;
/// Version of this exchange and of [`crate::shared`]. A recorder that does not know a
/// runtime's version answers with [`refusal::VERSION`], and says so to its user.
pub const VERSION: u32 = 4;
/// Bytes of a [`Hello`].
pub const HELLO_SIZE: usize = 32;
/// Bytes of a [`Welcome`].
pub const WELCOME_SIZE: usize = 48;
const HELLO_MAGIC: u32 = u32::from_le_bytes(*b"TPHi");
const WELCOME_MAGIC: u32 = u32::from_le_bytes(*b"TPOk");

/// Before the number of filters of system calls (seccomp(2)) that a recorder has itself, at the end of its socket's name.
pub const FILTERS: u8 = b'f';

/// Filters of system calls that the recorder of this name has, where the name tells.
pub fn filters_in(name: &[u8]) -> Option<u32> {
    let last = name.rsplit(|&byte| byte == b'-').next()?;
    core::str::from_utf8(last.strip_prefix(&[FILTERS])?).ok()?.parse().ok()
}

/// What a runtime asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// [`VERSION`].
    pub version: u32,
    /// Which segment is asked for. 0 attaches a new process (or one that went through
    /// `exec` or `fork`); a later one must have been announced in the first segment.
    pub segment: u32,
    /// 0 with segment 0; else the token that the process got when it attached.
    pub token: u64,
    /// Process id as the process knows it.
    pub pid: u32,
    /// [`want`].
    pub want: u32,
}

/// What memory a [`Hello`] asks for.
pub mod want {
    /// The clock page and segments.
    pub const SEGMENTS: u32 = 0;
    /// Arenas ([`crate::arena`]): one with each hello, whatever its segment is but for 0, which
    /// attaches the process.
    pub const ARENA: u32 = 1;
    /// Which functions of a module pass a filter ([`crate::filter`]), whose number stands for the segment: behind the hello
    /// stand the words of a [`crate::word::code::MODULE`] escape that says what module. For processes that are attached.
    pub const FILTER: u32 = 2;
    /// Whether a thread is left out: the segment is its id, as the process knows it.
    pub const THREAD: u32 = 3;
    /// That recording goes on, because a function is called that it waits for: answered when it does. The segment is the id of
    /// the thread that calls it, as the process knows it.
    pub const BEGIN: u32 = 4;
    /// Nothing: the process could not map the memory that it was given, and is not recorded. The segment is not 0, and
    /// there is no answer.
    pub const UNMAPPED: u32 = 5;
}

/// Why a [`Welcome`] carries nothing.
pub mod refusal {
    /// Not refused.
    pub const NONE: u32 = 0;
    /// The versions do not fit.
    pub const VERSION: u32 = 1;
    /// No such segment, or no such token.
    pub const UNKNOWN: u32 = 2;
    /// The recorder is ending, or has as many processes as it takes.
    pub const CLOSED: u32 = 3;
}

/// Wishes in a [`Welcome`].
pub mod flag {
    /// The counter is to be read when all work before it is done.
    pub const ORDERED: u32 = 1;
    /// With the tick, words are to be reserved by restartable sequences, where a thread can.
    pub const RESTARTABLE: u32 = 2;
    /// Calls and times are summed in trees ([`crate::tree`]); no events are written.
    pub const TREE: u32 = 4;
    /// In trees, calls of functions that are open on the path stand in those.
    pub const FOLDS: u32 = 8;
    /// The segment that comes with this welcome has trees in place of chunks: a chunk's size is that of a
    /// tree's memory.
    pub const OF_TREES: u32 = 16;
    /// What comes with this welcome is the map of a filter: a chunk's size is that of the map.
    pub const OF_FILTER: u32 = 32;
    /// The thread that asked is left out.
    pub const LEFT_OUT: u32 = 64;
    /// Of an arena: only the calls between the worlds are recorded, so it is lent to nobody.
    pub const CROSSINGS_ALONE: u32 = 128;
    /// Hooks are to look at the stack pointer, whatever the program's code is like.
    pub const STACKS: u32 = 256;
    /// They are not.
    pub const NO_STACKS: u32 = 512;
    /// Threads are to be interrupted by timers of their CPU time, and to write where they are.
    pub const SAMPLES: u32 = 1024;
}

/// What the recorder answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// [`VERSION`].
    pub version: u32,
    /// [`refusal`].
    pub refusal: u32,
    /// [`crate::shared::ClockKind`].
    pub clock: u32,
    /// [`crate::shared::OnFull`].
    pub on_full: u32,
    /// To be named when asking for further segments.
    pub token: u64,
    /// Clock units in a second.
    pub hz: u64,
    /// Bytes of a chunk of this segment.
    pub chunk_size: u32,
    /// Chunks of this segment.
    pub chunks: u32,
    /// [`flag`]s; a runtime passes over those it does not know.
    pub flags: u32,
}

impl Hello {
    /// As bytes.
    pub fn encode(&self) -> [u8; HELLO_SIZE] {
        let mut out = [0; HELLO_SIZE];
        out[0..4].copy_from_slice(&HELLO_MAGIC.to_le_bytes());
        out[4..8].copy_from_slice(&self.version.to_le_bytes());
        out[8..12].copy_from_slice(&self.segment.to_le_bytes());
        out[12..16].copy_from_slice(&self.pid.to_le_bytes());
        out[16..24].copy_from_slice(&self.token.to_le_bytes());
        out[24..28].copy_from_slice(&self.want.to_le_bytes());
        out
    }

    /// From bytes; longer ones are of a later version and keep what is known. Nothing when
    /// the bytes are no hello.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= HELLO_SIZE && u32_at(bytes, 0)? == HELLO_MAGIC).then_some(())?;
        Some(Self {
            version: u32_at(bytes, 4)?,
            segment: u32_at(bytes, 8)?,
            pid: u32_at(bytes, 12)?,
            token: u64_at(bytes, 16)?,
            want: u32_at(bytes, 24)?,
        })
    }
}

impl Welcome {
    /// As bytes.
    pub fn encode(&self) -> [u8; WELCOME_SIZE] {
        let mut out = [0; WELCOME_SIZE];
        let words = [WELCOME_MAGIC, self.version, self.refusal, self.clock, self.on_full];
        for (at, word) in words.iter().enumerate() {
            out[at * 4..at * 4 + 4].copy_from_slice(&word.to_le_bytes());
        }
        out[20..24].copy_from_slice(&self.chunk_size.to_le_bytes());
        out[24..32].copy_from_slice(&self.token.to_le_bytes());
        out[32..40].copy_from_slice(&self.hz.to_le_bytes());
        out[40..44].copy_from_slice(&self.chunks.to_le_bytes());
        out[44..48].copy_from_slice(&self.flags.to_le_bytes());
        out
    }

    /// From bytes; nothing when they are no welcome.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= WELCOME_SIZE && u32_at(bytes, 0)? == WELCOME_MAGIC).then_some(())?;
        Some(Self {
            version: u32_at(bytes, 4)?,
            refusal: u32_at(bytes, 8)?,
            clock: u32_at(bytes, 12)?,
            on_full: u32_at(bytes, 16)?,
            chunk_size: u32_at(bytes, 20)?,
            token: u64_at(bytes, 24)?,
            hz: u64_at(bytes, 32)?,
            chunks: u32_at(bytes, 40)?,
            flags: u32_at(bytes, 44)?,
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn hello_comes_back(version: u32, segment: u32, pid: u32, token: u64, want: u32) {
            let hello = Hello { version, segment, token, pid, want };
            prop_assert_eq!(Hello::decode(&hello.encode()), Some(hello));
        }

        #[test]
        fn welcome_comes_back(n: [u32; 7], token: u64, hz: u64) {
            let welcome = Welcome {
                version: n[0], refusal: n[1], clock: n[2], on_full: n[3], token, hz,
                chunk_size: n[4], chunks: n[5], flags: n[6],
            };
            prop_assert_eq!(Welcome::decode(&welcome.encode()), Some(welcome));
        }

        #[test]
        fn strange_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Hello::decode(&bytes);
            let _ = Welcome::decode(&bytes);
        }
    }
}
