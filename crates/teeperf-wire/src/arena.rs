//! An **arena**: memory that a host lends to code which has no system to ask for any, such as a
//! trusted application, an enclave or a bare-metal image. It is one stretch of ordinary shared
//! memory, whatever the platform calls it, and begins at a multiple of [`ALIGNMENT`].
//!
//! ```text
//! 0      head and baton (this module), then the words of the clock page (crate::shared::clock)
//! 4096   one segment (crate::shared::segment): states, then chunks
//! ```
//!
//! The host writes the head, the clock and the states of chunks it gives back; the code inside writes
//! the baton, chunks it took and their states. Neither believes the other: each reads a
//! number once, checks it against what it knows by itself (the length that it was told by its own
//! side), and uses its copy.
//!
//! # The baton
//!
//! A call into a TEE and the return from it are moments of one thread, which is outside before, inside
//! meanwhile and outside again. So both sides write into the same chunk, one after the other: who
//! leaves the arena writes down how far the thread's present chunk is filled, who enters goes on
//! there. What the other side left is only ever used as a place within the arena. Where it makes no sense,
//! or nothing is left, whoever enters takes a fresh chunk.
//!
//! # Sums
//!
//! Code that sums in memory of its own hands over what that grew by, in chunks of their own kinds ([`OF_TREE`],
//! [`OF_ARCS`]): when it leaves, and while it stays, whenever the host asks ([`request`]). What found no chunk counts
//! among the losses of the segment until it is handed over.

use crate::shared::segment;

/// First eight bytes of an arena: "TPARENA" and the layout's version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"TPARENA\x01");
/// An arena begins at a multiple of this.
pub const ALIGNMENT: usize = 64;
/// Where the segment begins.
pub const SEGMENT: usize = crate::shared::PAGE;
/// Least length: one small chunk.
pub const MIN_LENGTH: usize = SEGMENT + segment::DATA + segment::SMALL_CHUNK;
/// From this length on chunks are large.
const LARGE_LENGTH: usize = 1 << 20;

/// In the place of a chunk's clock ([`crate::shared::chunk::CLOCK`]): in place of words the chunk has nodes of a
/// [`crate::tree`], with what they grew by since they were handed over last. Then its header says in
/// [`piece`] what those are.
pub const OF_TREE: u32 = 3;

/// In the serial of a thread: what stands there was summed while the thread was inside.
pub const OF_SUMS: u32 = 0x8000_0000;

/// Likewise: the chunk has calls between places of code, and times, each as [`item`] says, and its header says in
/// [`items`] which.
pub const OF_ARCS: u32 = 4;

/// A chunk of calls between places of code, with what they grew by since they were handed over last: byte offsets
/// in its header.
pub mod items {
    /// u64, time up to which the sums are.
    pub const END: usize = super::piece::END;
    /// u64, calls that found no room and are in no arc.
    pub const LOST: usize = crate::shared::chunk::CPU_NS;
    /// u32, how many items are arcs: the first ones. The rest are spans.
    pub const ARCS: usize = super::piece::FIRST;
    /// u32, how many items.
    pub const COUNT: usize = super::piece::COUNT;
    /// u64, time from which on the sums are.
    pub const BEGIN: usize = super::piece::BEGIN;
}

/// An arc, or a span of time: byte offsets. Each has two places of code, as the word of a call there
/// ([`crate::word`]), or where that is 0, as an address; an address of 0 is nobody known.
///
/// An arc is from a call to the function that was called. A span is time between the entry of a function and the
/// next call: from that function to where the call was; nobody where none came.
pub mod item {
    /// Bytes of an item.
    pub const SIZE: usize = 32;
    /// u32, word of the one place.
    pub const FROM_WORD: usize = 0;
    /// u32, word of the other.
    pub const TO_WORD: usize = 4;
    /// u64, address of the one, where it has no word.
    pub const FROM: usize = 8;
    /// u64, address of the other, where it has no word.
    pub const TO: usize = 16;
    /// u64, calls, or clock units.
    pub const COUNT: usize = 24;
}

/// A piece of a tree: byte offsets in a chunk's header.
pub mod piece {
    /// u64, time up to which the sums are.
    pub const END: usize = crate::shared::chunk::TIME;
    /// u64, time when the tree was begun, or where no counter says that, what
    /// [`baton::ENTERED`](super::baton::ENTERED) was when its code came first: with the thread's serial it says which tree
    /// it is.
    pub const BEGAN: usize = crate::shared::chunk::CPU_NS;
    /// u32, index of the first node.
    pub const FIRST: usize = crate::shared::chunk::STACK;
    /// u32, how many nodes.
    pub const COUNT: usize = crate::shared::chunk::STACK + 4;
    /// u64, time from which on the sums are.
    pub const BEGIN: usize = 48;
    /// u64, frames that were closed, or returns left out, since pieces of this tree were handed over last, because a
    /// call or return was not seen: in the first piece.
    pub const MENDED: usize = 56;
}

/// The head, written by the host before it lends the arena. Byte offsets.
pub mod head {
    /// u64, [`super::MAGIC`]. Written last.
    pub const MAGIC: usize = 0;
    /// u32, [`crate::shared::ClockKind`].
    pub const CLOCK: usize = 8;
    /// u32, [`crate::shared::OnFull`].
    pub const ON_FULL: usize = 12;
    /// u64, never 0 and never the same twice: says whether an arena is the one that was lent before,
    /// wherever it is mapped now.
    pub const COOKIE: usize = 16;
    /// u64, clock units in a second.
    pub const HZ: usize = 24;
}

/// The baton: which thread the next one to enter is to go on with, and where. Byte offsets, u32 each
/// unless said otherwise.
pub mod baton {
    /// Process id that chunks are to bear.
    pub const PID: usize = 64;
    /// Thread id that chunks are to bear; 0: whoever enters numbers its threads itself.
    pub const TID: usize = 68;
    /// Number of the thread within its process, not 0 where [`TID`] is not.
    pub const SERIAL: usize = 72;
    /// Number of the thread's present chunk, or its last one.
    pub const SEQUENCE: usize = 76;
    /// One more than the index of the thread's present chunk; 0: it has none.
    pub const CHUNK: usize = 80;
    /// Words written into it.
    pub const USED: usize = 84;
    /// u64, time up to which they reach, low half first.
    pub const TIME: usize = 88;
    /// First site that the module which enters may use; 0: the first of all.
    pub const FIRST_SITE: usize = 96;
    /// Sites it may use from there on.
    pub const SITES: usize = 100;
    /// Whoever enters adds 1: so the host knows that there is a runtime inside.
    pub const ENTERED: usize = 104;
    /// 1 while somebody is in the arena. Who finds it so when entering goes on behind one who ended there without a
    /// word: the baton is not what that one has left, but the thread's chunks are.
    pub const HELD: usize = 108;
    /// In [`HELD`]: somebody wanted to enter who has not the counter that is the arena's clock.
    pub const WITHOUT_COUNTER: u32 = 2;
    /// u64, events that whoever left the arena had no chunk to say of: the next one says so.
    pub const LOST: usize = 112;
    /// Frames of the time before those that were left.
    pub const POPPED: usize = 120;
    /// Frames entered since and still open.
    pub const PUSHED: usize = 124;
}

/// Sums of code that stays inside for long: byte offsets, u32 each, beside [`crate::shared::clock::CONTROL`], at which
/// that code looks as well.
pub mod request {
    /// Not 0. The host counts it up when it wants what was summed. Who sums hands that over at the next event
    /// that is not the simplest.
    pub const ASKED: usize = 136;
    /// The last value of [`ASKED`] for which that was done; 0: nobody is inside who sums.
    pub const ANSWERED: usize = 140;
    /// In [`ANSWERED`]: several threads sum, each of which answers for itself. Whether all have done so nobody says.
    pub const SEVERAL: u32 = u32::MAX;
    /// How often somebody has entered who found [`ANSWERED`] as one who ended inside without a word has left it.
    pub const ENDED: usize = 144;
}

/// Bytes of a chunk, and chunks, of an arena this long; nothing when it is too short.
pub const fn shape(length: usize) -> Option<(usize, usize)> {
    if length < MIN_LENGTH {
        return None;
    }
    let chunk_size =
        if length < LARGE_LENGTH { segment::SMALL_CHUNK } else { segment::LARGE_CHUNK };
    let chunks = (length - SEGMENT - segment::DATA) / chunk_size;
    Some((chunk_size, if chunks < segment::MAX_CHUNKS { chunks } else { segment::MAX_CHUNKS }))
}

// The head and the baton lie in what the clock page leaves free.
const _: () = assert!(baton::PUSHED + 4 <= crate::shared::clock::GENERATION);
const _: () = assert!(crate::shared::clock::CONTROL + 4 <= request::ASKED);
const _: () = assert!(request::ENDED + 4 <= crate::shared::clock::PROGRESS);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_chunks_lie_within(length in 0usize..1 << 27) {
            match shape(length) {
                None => prop_assert!(length < MIN_LENGTH),
                Some((chunk_size, chunks)) => {
                    let size = segment::size(chunk_size, chunks).unwrap();
                    prop_assert!(SEGMENT + size <= length);
                }
            }
        }
    }
}
