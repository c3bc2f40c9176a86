//! From words to calling-context trees: exact calls, self times, open frames.
//!
//! ```text
//! packets ─► batch ─► summarise (workers) ─► summary ─► threads (in order) ─► result
//! ```
//!
//! The caller's thread reads packets, gathers chunks into batches, and puts summaries into
//! their threads in the order of the batches; workers make the summaries. So the result
//! depends on the recording alone, and memory holds a few batches, a few summaries and the
//! trees, however long the recording is.

mod apply;
mod arcs;
mod batch;
mod calltree;
mod counted;
mod drive;
mod fold;
mod hits;
mod keyframes;
mod mended;
mod points;
mod settle;
mod stack;
mod summarise;
mod summary;
mod sums;
mod threads;
mod timed;
mod tree;
mod waits;

pub(crate) use calltree::CallTree;
pub(crate) use drive::{Driver, Settings, run};
pub(crate) use hits::{Hits, Interrupted, Kinds, LONGEST_NS, Spent as SpentInTree};
pub(crate) use summarise::{Summariser, event_time, high_half};
pub(crate) use summary::Summary;
pub(crate) use threads::{Counts, Figures, Threads};
pub(crate) use tree::pseudo;

/// Mark for the depth at `vfork`, beyond those that programs have.
pub(crate) const VFORK_MARK: u32 = 1 << 24;
