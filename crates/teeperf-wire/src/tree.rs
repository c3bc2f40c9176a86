//! A **tree**: calls and times summed for each call path, in memory that the program owns. One thread
//! writes it; anybody may look meanwhile, since its counters only grow. (Trees that nobody else sees are handed over by
//! their writer, who takes out what it has read.)
//!
//! ```text
//! 0    header
//! 64   nodes, 64 bytes each: 0 the root, 1 what found no room, then one for each call path
//! …    a table by which the writer finds children: twice as many places, 8 bytes each
//! …    the writer's guesses, 4 bytes each: a power of two, at most 4096
//! …    ways back from folded calls, where calls are folded: 16 bytes each
//! …    records of marks, and of stacks that were left: 32 bytes each, to the end
//! ```
//!
//! A node is there when its index is below [`header::USED`], which is written behind it. Its parent's
//! index is below its own. Where the writer's words have 32 bits, it changes halves of a counter one
//! after the other: [`header::CARRY`] is odd while it does, and another number behind it, so that a reader who
//! sees it even and the same before and behind a look has seen no half.
//!
//! Numbers are little-endian.

/// First eight bytes: "TPTREE", 0, and the layout's version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"TPTREE\0\x01");
/// Bytes of the header, and of a node.
pub const NODE: usize = 64;
/// Bytes of a place of the table: index of the child (u32, 0: nobody's place), and of the node that it was
/// called from (u32).
pub const PLACE: usize = 8;
/// Bytes of a guess: index of a node, 0: none.
pub const GUESS: usize = 4;
/// Most guesses of a tree.
const MOST_GUESSES: usize = 4096;
/// Where it is kept which node a call is likely to be of: the sum of the function's address and of what tells its
/// frame from others, times this, is shifted, in 32 bits; of that as many bits count as guesses have numbers.
/// (Fibonacci hashing: 2^32 over the golden ratio.)
pub const GUESS_FACTOR: u32 = 0x9E37_79B9;
/// See [`GUESS_FACTOR`].
pub const GUESS_SHIFT: u32 = 16;
/// Bytes of a way back, and of a record.
pub const WAY: usize = 16;
/// See [`WAY`].
pub const RECORD: usize = 32;
/// One in so many bytes is for ways back and records.
const BESIDE: usize = 16;
/// Index of the thread itself.
pub const ROOT: u32 = 0;
/// Index of the node whose children are functions that found no room on their own paths.
pub const OVERFLOW: u32 = 1;
/// Fewest nodes of a tree.
pub const MIN_NODES: usize = 16;
/// Most nodes of a tree.
pub const MAX_NODES: usize = 1 << 24;

/// The header: byte offsets.
pub mod header {
    /// u64, [`super::MAGIC`]. Written last.
    pub const MAGIC: usize = 0;
    /// u32, how many nodes there is room for.
    pub const NODES: usize = 8;
    /// u32, how many there are.
    pub const USED: usize = 12;
    /// u32, see the module.
    pub const CARRY: usize = 16;
    /// u32, [`crate::shared::ClockKind`].
    pub const CLOCK: usize = 20;
    /// u64, when it was begun, clock units.
    pub const BEGAN: usize = 24;
    /// u64, time up to which time is charged.
    pub const TIME: usize = 32;
    /// u32, process id.
    pub const PID: usize = 40;
    /// u32, thread id.
    pub const TID: usize = 44;
    /// u32, number of the thread within its process.
    pub const SERIAL: usize = 48;
    /// u32, 1: calls of functions that are open on the path stand in those.
    pub const FOLDS: usize = 52;
    /// u64, frames that were closed, or returns left out, because a call or return was not seen.
    pub const MENDED: usize = 56;
}

/// A node: byte offsets.
pub mod node {
    /// u32, word of a call of the function ([`crate::word`]); 0: it has no site.
    pub const WORD: usize = 0;
    /// u32, index of the caller's node.
    pub const PARENT: usize = 4;
    /// u64, times called.
    pub const CALLS: usize = 8;
    /// u64, clock units in the function itself.
    pub const SELF: usize = 16;
    /// u64, 2^64 - 1 less the clock units of its shortest call; 0 where none has ended.
    pub const LEAST: usize = 24;
    /// u64, clock units of its longest call.
    pub const MOST: usize = 32;
    /// u64, address of the function.
    pub const ADDRESS: usize = 40;
    /// u64, when its present or last call began; below [`super::OVERFLOW`]: which time without room that was.
    pub const ENTERED: usize = 48;
    /// u32, of a node below [`super::OVERFLOW`]: how many of its frames are open. Of one whose address is 0: how many
    /// frames it stands for. Else, where calls are folded: 0: none is open; 1: one is; more: others too, and this
    /// less 2 is the way back from the last.
    pub const OPEN: usize = 56;
    /// u32, below [`super::OVERFLOW`], and of that: index of the node that ran when the first of these frames was entered.
    pub const BACK: usize = 60;
}

/// A way back from calls that are folded: byte offsets, u32 each.
pub mod way {
    /// Index of the node to go back to.
    pub const TO: usize = 0;
    /// How often in turn.
    pub const TIMES: usize = 4;
    /// One more than the number of the way below it, or of the next that is free; 0: none.
    pub const NEXT: usize = 8;
}

/// Where the thread was when a mark was made, or when it left a stack: byte offsets.
pub mod record {
    /// u64, which mark or stack; 0: the record is free.
    pub const KEY: usize = 0;
    /// u64, id of the stack of a mark.
    pub const STACK: usize = 8;
    /// u32, index of the node on top, of those that found room.
    pub const TOP: usize = 16;
    /// u32, frames open above it that found none.
    pub const SWALLOWED: usize = 20;
    /// u32, where calls are folded: frames open up to [`TOP`].
    pub const DEPTH: usize = 24;
}

/// Nodes that fit into so many bytes; nothing when that is too few.
pub const fn nodes_in(bytes: usize) -> Option<usize> {
    const EACH: usize = NODE + 2 * PLACE;
    let room = (bytes - bytes / BESIDE).saturating_sub(NODE);
    let many = room.saturating_sub(MOST_GUESSES * GUESS) / EACH;
    let nodes = if many < MOST_GUESSES { room / (EACH + GUESS) } else { many };
    if nodes < MIN_NODES {
        None
    } else if nodes > MAX_NODES {
        Some(MAX_NODES)
    } else {
        Some(nodes)
    }
}

/// Guesses where there are so many nodes.
pub const fn guesses(nodes: usize) -> usize {
    match nodes.checked_ilog2() {
        Some(bits) if nodes < MOST_GUESSES => 1 << bits,
        Some(_) => MOST_GUESSES,
        None => 1,
    }
}

/// Bytes behind which guesses lie, where there are so many nodes.
pub const fn behind_places(nodes: usize) -> usize {
    NODE + nodes * (NODE + 2 * PLACE)
}

/// Bytes behind which ways back and records lie.
pub const fn behind_guesses(nodes: usize) -> usize {
    behind_places(nodes) + guesses(nodes) * GUESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_tree_fits_into_its_memory() {
        let around = [344_000, 367_000, 1 << 20].map(|bytes| bytes - 2000..bytes + 2000);
        for bytes in (0..20_000).chain(around.into_iter().flatten()) {
            let Some(nodes) = nodes_in(bytes) else { continue };
            let (taken, room) = (behind_guesses(nodes), bytes - bytes / BESIDE);
            assert!(taken <= room && room - taken < room / 20 + NODE, "{taken} of {room} bytes");
        }
        assert_eq!((guesses(16), guesses(4095), guesses(4096)), (16, 2048, 4096));
    }
}
