//! [`crate::packet::kind::KEYFRAME`]: what replay knows of a thread at one moment, so that a recording can begin
//! there.

/// [`super::process::ID`].
pub const PROCESS: u16 = 1;
/// Serial of the thread; 0: it is about the process alone.
pub const THREAD: u16 = 2;
/// Thread id.
pub const TID: u16 = 3;
/// Latest time that the thread's words have told.
pub const TIME: u16 = 4;
/// Id of the stack whose frames these are.
pub const STACK: u16 = 5;
/// Clock units charged since the thread's last event.
pub const RECENT: u16 = 6;
/// Clock units that are not charged to anybody before its next event.
pub const DEBT: u16 = 7;
/// Frames of the stack that keyframes before this one told of; 0: these are the lowest.
pub const BELOW: u16 = 8;
/// Frames, the lowest first: a row of unsigned LEB128 numbers. For each run of equal ones: the word of a call of
/// the function, or one of [`frame`]; with [`frame::FAR`] the function's address; how many there are.
pub const FRAMES: u16 = 9;
/// The same as one zstd frame, which decompresses to at most [`MAX_BYTES`].
pub const FRAMES_ZSTD: u16 = 10;
/// A list: key (u32), id of a stack (u64), number of frames (u64).
pub const MARK: u16 = 11;
/// A list: the payload words of a [`crate::word::code::MODULE`] escape.
pub const MODULE: u16 = 12;
/// Number of the chunk with which the thread goes on.
pub const SEQUENCE: u16 = 13;
/// Index of the word in it from which on it does.
pub const FIRST: u16 = 14;
/// 1: the thread, or all, have left the stack; [`GONE`].
pub const LEFT: u16 = 15;
/// Number of the filter that the thread's events stand under; missing: there was none.
pub const FILTER: u16 = 16;
/// Of its open frames, how many are of calls before that filter: the lowest.
pub const FLOOR: u16 = 17;
/// Of [`LEFT`]: nothing is kept of the stack.
pub const GONE: u64 = 2;

/// Functions of frames that have no site.
pub mod frame {
    /// Not known.
    pub const UNKNOWN: u64 = 0;
    /// The address comes next.
    pub const FAR: u64 = 1;
}

/// Key of the mark that `VFORK_BEGIN` sets.
pub const VFORK: u32 = u32::MAX;
/// Bytes of a mark.
pub const MARK_BYTES: usize = 20;
/// Most bytes that frames may decompress to.
pub const MAX_BYTES: usize = 1 << 20;
