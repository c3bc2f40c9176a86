//! The recorder: runs a program whose modules were built with hooks, gives it memory and a
//! clock, drains that memory while the program runs, and writes one recording.
//!
//! ```text
//!  program's threads          drain                          output
//!   chunk FULL ──────► copy, zero, FREE ─► compress ─► packets ─► file
//!                        │ sites seen                    ▲
//!                        └──────► symbols (own thread) ──┘
//!   hello ───► server (own thread): memory, and who is gone
//!   tick  ◄─── ticker (own thread)
//! ```
//!
//! [`Recorder::run`] is all of it. It trusts nothing that a traced process can write: a
//! process that writes nonsense gets a nonsensical recording, and nothing else happens.
//! The crate never reads a recording, and knows nothing of call trees.
//!
//! Beside it, [`writing`]: packets and words as recordings have them, for whoever else writes one; and
//! [`import`]: a recording of what code without a system handed over in pieces. [`offers`] tells what a machine has for a recording.

mod arcs;
mod arena;
mod attached;
mod clock;
mod compress;
pub mod control;
mod drain;
mod enclaves;
mod encode;
mod escapes;
mod families;
mod filter;
pub mod fuzz;
mod heirs;
pub mod import;
mod inside;
mod intervals;
mod launch;
mod link;
mod liveness;
mod machine;
mod made;
mod memory;
mod missing;
mod newcomers;
pub mod offers;
mod options;
mod order;
mod output_file;
mod packets;
mod pauses;
mod process;
mod recorder;
mod registry;
mod reserve;
mod rights;
mod room;
mod sample;
mod sampled;
mod seen;
mod segment;
mod server;
mod sgx;
mod signals;
mod sink;
mod socket;
mod start;
mod stats;
mod sums;
mod survey;
mod symbols;
mod trees;
mod trust;
mod verdict;
mod walk;
mod watch;
mod writer;
pub mod writing;

pub use arena::Lent;
pub use attached::{AttachError, Target};
pub use clock::{Choice, Period};
pub use filter::{Events, Rules};
pub use launch::LaunchError;
pub use options::{Options, StackWatch, Tree};
pub use recorder::{Outcome, RecordError, Recorder};
pub use rights::has_capabilities;
pub use sample::{Rate, Refused, Sampling, Stacks};
pub use sgx::{Front, GivenModule, Sgx};
pub use signals::file_limit_is_an_error;
pub use stats::{Snapshot, Stats};
pub use teeperf_select::BadPattern;
pub use teeperf_symbols::Search;
pub use teeperf_wire::shared::OnFull;
pub use writer::Output;

use packets::Level;
