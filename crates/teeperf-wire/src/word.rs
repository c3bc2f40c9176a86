//! Words: what a hook writes. One 32-bit word for a call or a return; escape words for
//! what does not fit. **No word is ever 0**, so a reader of a zeroed chunk takes words up
//! to the first 0.
//!
//! ```text
//! event    site:31 kind:1                site in 1 ..= MAX_SITE, kind 0 call, 1 return
//! escape   111 code:5 arg:24             code 0..16 stands alone
//!                                        code 16..32 is followed by a count word
//!                                        (top bit, n) and n payload words
//! payload  1 value:31                    never 0
//! ```
//!
//! In a chunk of the `cycle` clock ([`crate::shared::ClockKind::Cycle`]) every event word
//! is followed by one time word: the low 32 bits of the counter with bit 0 set. A
//! [`code::STAMP`] stands before an event whose high 32 bits are not those of the latest one
//! or of the chunk's header. Where a signal interrupted a hook, its event may stand behind those of the
//! handler with a time before theirs: for readers no time has passed then. Escapes carry no time word.
//! In a chunk of the `tick` clock, time moves by `Escape::Tick`.
//!
//! A reader that does not know a code can skip it: the code alone says its length.

/// Largest site. Sites are offsets into one space in which each module has a window.
pub const MAX_SITE: u32 = 0x6FFF_FFFF;
/// First site given to a module; the sites below it are never used.
pub const FIRST_SITE: u32 = 0x1000;
/// Words from here on are escapes.
pub const ESCAPE_BASE: u32 = 0xE000_0000;
/// Largest value of an escape's own 24-bit argument.
pub const MAX_ARG: u32 = 0x00FF_FFFF;
/// Id in place of the stack left when that one will not run again ([`code::SWITCH`]).
pub const ABANDONED: u64 = (1 << 62) - 1;
/// Most payload words that a writer puts behind one escape; a reader takes what is there.
pub const MAX_PAYLOAD: u32 = 512;

/// Escape codes. 0 to 15 stand alone, 16 to 31 carry a count word and payload.
pub mod code {
    /// The clock moved by `arg` units (1 ..= MAX_ARG) since the last time in this chunk.
    pub const TICK: u32 = 0;
    /// An event was reserved here and never written (its thread was interrupted and
    /// never came back, or was killed). Written by the recorder in place of a 0; within payload,
    /// where this would be a value, it writes 1.
    pub const HOLE: u32 = 1;
    /// `setjmp`: the stack's present depth is remembered under `arg`.
    pub const MARK: u32 = 2;
    /// `longjmp`: the stack falls to the depth remembered under `arg`.
    pub const JUMP: u32 = 3;
    /// `vfork` is about to run: depth is remembered.
    pub const VFORK_BEGIN: u32 = 4;
    /// The parent goes on after `vfork`: depth falls back to that of the last begin.
    pub const VFORK_END: u32 = 5;
    /// Nothing: fills a place. Also the last word of every chunk that its thread handed over,
    /// so that a 0 before it is a place that was reserved and not yet written.
    pub const PAD: u32 = 6;
    /// From here on only functions are recorded that pass the filter of number `arg`, which the recording has
    /// ([`crate::filter`]): 0, all. The functions of open frames may be others, and functions may be open that have
    /// no frames.
    pub const FILTER: u32 = 7;
    /// Absolute time in clock units: payload is [`super::split62`] of it.
    pub const STAMP: u32 = 16;
    /// A stretch without events. `arg` is a [`super::gap`] reason; payload: events lost
    /// (62 bits, two words), frames popped below where the gap began, frames pushed
    /// since, then clock units to leave out of the time of the function on top (62 bits,
    /// two words).
    pub const GAP: u32 = 17;
    /// Another stack runs from here on: payload is the id of the stack left (two words)
    /// and of the stack entered (two words). Id 0 is the thread's own stack;
    /// [`super::ABANDONED`] for "left" says that the stack left will not run again.
    pub const SWITCH: u32 = 18;
    /// A stack id begins anew and empty: payload is the id (two words).
    pub const STACK_NEW: u32 = 19;
    /// An exception is caught: payload is the site of the catching function; frames
    /// above its topmost frame are gone.
    pub const CATCH: u32 = 20;
    /// A call or return of code outside every window: `arg` is the kind, payload the
    /// address (three words, [`super::split64`]). In `cycle` chunks followed by a time
    /// word, which counts as its fourth payload word.
    pub const FAR: u32 = 21;
    /// A module took or gave back a window: see [`super::module`].
    pub const MODULE: u32 = 22;
    /// This chunk's thread is named: payload is UTF-8, three bytes a word, low first.
    pub const NAME: u32 = 23;
    /// Text the program wants on the time line; payload as for `NAME`.
    pub const NOTE: u32 = 24;
    /// An async function goes on that had nothing to do: payload is its site, then the clock units since it was polled
    /// last (two words). They are no time of the thread.
    pub const WAIT: u32 = 25;
    /// A moment that the program marks, or a counter's value then: `arg` is one of [`super::point`]; payload is the site that
    /// has its name, the time (two words), and the value (three words, [`super::split64`]).
    pub const POINT: u32 = 26;
    /// What the processor's counter was at the event that is the next item, where the clock is `tick`: payload is
    /// [`super::split62`] of it.
    pub const TIMED: u32 = 27;
    /// The thread is on the stack of this id from here on: payload is the id (two words). If it was on another one, that
    /// keeps its frames under the id that it has.
    pub const STACK: u32 = 28;
    /// The thread was interrupted here: `arg` has bits of [`super::sample`]; payload is the site of
    /// the interrupted instruction, 0 where it has none, its address (three words,
    /// [`super::split64`]), the thread's CPU time in nanoseconds (two words), how many samples of
    /// its kind before it had no place, and the nanoseconds that it stands for.
    pub const SAMPLE: u32 = 29;
    /// Since its last event the thread was off its processor: it slept, or another one ran. Payload is
    /// [`super::split62`] of the clock units, and how often the thread waited, as far as it knows.
    pub const OFF_CPU: u32 = 30;
}

/// Limits of waits in a [`code::OFF_CPU`].
pub mod off_cpu {
    /// Least time off the processor that is a wait, nanoseconds. Less than that interrupts of the
    /// system's, and of its host's, take as well.
    pub const LEAST_WAIT_NS: u64 = 5_000;
    /// Most time of the kernel around a wait that no tick sees, nanoseconds. Where a thread has had
    /// more CPU time since it looked last, it may have waited more than once.
    pub const MOST_OF_A_WAIT_NS: u64 = 40_000;
}

/// What a [`code::SAMPLE`] is: bits of its argument.
pub mod sample {
    /// The instruction is one of the hooks, or of the runtime behind them.
    pub const HOOK: u32 = 1;
    /// It stands behind a system call: the kernel was interrupted in that.
    pub const KERNEL: u32 = 2;
    /// The event that interrupted the thread counts time in user mode alone.
    pub const USER: u32 = 4;
    /// Of a timer: the thread may have met page faults since its timer interrupted it last.
    pub const FAULTS: u32 = 8;
    /// Of a timer: the thread has no events.
    pub const ALONE: u32 = 16;
    /// Nothing interrupted the thread: it tells its CPU time when it ends.
    pub const END: u32 = 32;
    /// With [`END`]: the thread cannot tell its CPU time from here on, and the clock tells its time.
    /// It tells no CPU time with this.
    pub const CLOCKED: u32 = 64;
}

/// What a [`code::POINT`] is.
pub mod point {
    /// A moment; the value is 0.
    pub const MARK: u32 = 0;
    /// The value of a counter, a signed integer of 64 bits.
    pub const INTEGER: u32 = 1;
    /// The value of a counter, a number of IEEE 754, binary64.
    pub const REAL: u32 = 2;
}

/// Why a gap is there ([`code::GAP`]).
pub mod gap {
    /// Recording was paused by the program or the host.
    pub const PAUSED: u32 = 1;
    /// No chunk was free, and the recording does not wait.
    pub const DROPPED: u32 = 2;
    /// A signal handler ran while the runtime was changing chunks.
    pub const NESTED: u32 = 3;
    /// The thread slept until a chunk was free: nothing is lost, time is left out.
    pub const WAITED: u32 = 4;
    /// The thread waited, the recorder made no progress for a second, and waiting ended.
    pub const STALLED: u32 = 5;
    /// Functions left out on purpose.
    pub const FILTERED: u32 = 6;
    /// First word of a process that began by fork: frames of the parent lie below.
    pub const FORKED: u32 = 7;
    /// Recording stopped for good in this process.
    pub const STOPPED: u32 = 8;
}

/// Payload of [`code::MODULE`].
///
/// Word 0: [`module::OPENED`], [`module::RETIRED`] or [`module::ANCHORED`]. Words 1, 2: first site and
/// number of sites. Words 3..6: address of the window's first byte. Words 6..9: load
/// bias, which is the address less the file's own virtual address. Word 9: bytes of
/// build-id; then build-id, three bytes a word, low first, and the path likewise to the
/// payload's end.
pub mod module {
    /// The window is retired.
    pub const RETIRED: u32 = 0;
    /// The window opens.
    pub const OPENED: u32 = 1;
    /// The window opens, and its address is told from that of the symbol [`ANCHOR`] on, modulo 2^64; the load
    /// bias is 0. The code cannot know where its file says that it lies, and where it does lie is not told.
    pub const ANCHORED: u32 = 2;
    /// Name of that symbol, which is in the module's own symbol table.
    pub const ANCHOR: &str = "teeperf_anchor";
    /// Words before the build-id.
    pub const FIXED: usize = 10;
    /// Longest build-id kept, in bytes.
    pub const MAX_BUILD_ID: usize = 64;
    /// Longest path kept, in bytes; a longer one keeps its end.
    pub const MAX_PATH: usize = 1200;
}

/// A word taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// No word here yet.
    End,
    /// A function was entered.
    Call {
        /// Site of the function.
        site: u32,
    },
    /// A function was left.
    Return {
        /// Site of the function.
        site: u32,
    },
    /// An escape: its code and argument. [`has_payload`] says whether a count word follows.
    Escape {
        /// One of [`code`].
        code: u32,
        /// 24 bits.
        arg: u32,
    },
    /// Word 1, which no writer makes.
    Invalid,
}

/// Takes a word apart.
pub const fn decode(word: u32) -> Word {
    if word >= ESCAPE_BASE {
        Word::Escape { code: word >> 24 & 0x1F, arg: word & MAX_ARG }
    } else if word < 2 {
        if word == 0 { Word::End } else { Word::Invalid }
    } else if word & 1 == 0 {
        Word::Call { site: word >> 1 }
    } else {
        Word::Return { site: word >> 1 }
    }
}

/// Word of a call of the function at `site`.
pub const fn call(site: u32) -> u32 {
    site << 1
}

/// Word of a return from the function at `site`.
pub const fn ret(site: u32) -> u32 {
    site << 1 | 1
}

/// Escape word; `arg` keeps its low 24 bits, `code` its low 5.
pub const fn escape(code: u32, arg: u32) -> u32 {
    ESCAPE_BASE | (code & 0x1F) << 24 | (arg & MAX_ARG)
}

/// Whether an escape of this code is followed by a count word and payload.
pub const fn has_payload(code: u32) -> bool {
    code >= 16
}

/// A payload or count word; the value keeps its low 31 bits.
pub const fn payload(value: u32) -> u32 {
    value | 0x8000_0000
}

/// Value of a payload or count word, or nothing when its top bit is clear.
pub const fn payload_value(word: u32) -> Option<u32> {
    if word & 0x8000_0000 != 0 { Some(word & 0x7FFF_FFFF) } else { None }
}

/// Two payload words for a value below 2^62, low first. Larger values keep their low bits.
pub const fn split62(value: u64) -> [u32; 2] {
    [payload(value as u32), payload((value >> 31) as u32)]
}

/// Three payload words for any 64-bit value, low first.
pub const fn split64(value: u64) -> [u32; 3] {
    [payload(value as u32), payload((value >> 31) as u32), payload((value >> 62) as u32)]
}

/// Value of two or three payload words, or nothing when one of them is no payload word.
pub fn join(words: &[u32]) -> Option<u64> {
    let mut value = 0u64;
    for (i, &word) in words.iter().enumerate().take(3) {
        value |= (payload_value(word)? as u64).wrapping_shl(31 * i as u32);
    }
    Some(value)
}

/// Payload words for up to three bytes, low first; the fourth byte is the marker 0x80.
pub fn pack_bytes(bytes: &[u8]) -> u32 {
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0) as u32;
    payload(at(0) | at(1) << 8 | at(2) << 16)
}

/// The three bytes of a word made by [`pack_bytes`].
pub const fn unpack_bytes(word: u32) -> [u8; 3] {
    [word as u8, (word >> 8) as u8, (word >> 16) as u8]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_back(site in FIRST_SITE..=MAX_SITE) {
            prop_assert_eq!(decode(call(site)), Word::Call { site });
            prop_assert_eq!(decode(ret(site)), Word::Return { site });
        }

        #[test]
        fn no_word_is_zero_and_escapes_come_back(c in 0u32..32, arg in 0u32..=MAX_ARG, v: u32) {
            prop_assert_ne!(escape(c, arg), 0);
            prop_assert_ne!(payload(v), 0);
            prop_assert_eq!(decode(escape(c, arg)), Word::Escape { code: c, arg });
        }

        #[test]
        fn wide_values_come_back(v: u64) {
            prop_assert_eq!(join(&split64(v)), Some(v));
            prop_assert_eq!(join(&split62(v >> 2)), Some(v >> 2));
        }

        #[test]
        fn any_word_decodes(w: u32) {
            match decode(w) {
                Word::End => prop_assert_eq!(w, 0),
                Word::Invalid => prop_assert_eq!(w, 1),
                Word::Call { site } => prop_assert_eq!(call(site), w),
                Word::Return { site } => prop_assert_eq!(ret(site), w),
                Word::Escape { code, arg } => prop_assert_eq!(escape(code, arg), w),
            }
        }
    }
}
