//! Reads recordings and makes profiles of them.
//!
//! * [`Recording`]: packets of a file or a stream, whole or damaged, one by one.
//! * [`Packets`]: likewise, of whatever else is known call by call; [`packets::replay`] makes a profile of them.
//! * [`Recording::replay`]: the [`model::Profile`] of a recording: exact calls, times, call
//!   trees.
//! * [`info`]: what is in a recording, without replay.
//! * [`samples`]: states of interrupted threads.
//! * [`stacks`]: the stacks of a recording alone, so that windows of it can be made.
//! * [`aggregate`]: what views need of a profile: tables, callers, filters.
//! * [`around`]: callers and callees of a function; [`groups`]: functions by thread, process, module, file.
//! * [`annotate`]: functions by where their source stands, with what they call from which lines.
//! * [`graph`]: calls between functions where no call paths are known, and estimates of totals.
//! * [`suggest`]: which functions to leave out of a next recording.
//! * [`crossings`]: functions whose time is that of going into the kernel or out of a TEE.
//! * [`pattern`]: functions as somebody names them.
//! * [`paths`]: which call paths fit a regular expression.
//! * [`lengths`]: how long calls took, as a histogram.
//! * [`inlined`]: what compilers inlined into functions.
//! * [`combine`]: several profiles as one.
//! * [`diff`]: what is different between two sides of runs, and what of it is noise.
//!
//! What is read is hostile: whatever the bytes, there is a profile or an [`Error`] that
//! names file and offset, in bounded memory, never a panic.
#![forbid(unsafe_code)]

pub mod aggregate;
pub mod annotate;
pub mod arcs;
pub mod around;
pub mod chunks;
pub mod combine;
pub mod contents;
pub mod crossings;
pub mod diff;
mod error;
pub mod escape;
pub mod events;
mod filters;
mod finish;
mod framing;
pub mod fuzz;
pub mod graph;
pub mod groups;
pub mod info;
pub mod inlined;
pub mod join;
pub mod keyframes;
pub mod lengths;
mod long_names;
#[cfg(test)]
mod made;
pub mod model;
mod names;
mod no_room;
pub mod packets;
pub mod paths;
pub mod pattern;
#[cfg(test)]
mod random;
mod recording;
mod replay;
pub mod samples;
pub mod selection;
mod spent;
pub mod stacks;
pub mod suggest;
pub mod trees;
mod warnings;

pub use error::Error;
pub use finish::gap_name;
pub use framing::RawPacket;
pub use long_names::short as short_name;
pub use names::{SiteNames, far_name};
pub use packets::{MAX_PATHS, Options, Packets, Progress};
pub use recording::Recording;
