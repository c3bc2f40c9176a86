//! Samples: from interrupted states to call paths.
//!
//! ```text
//! packets ─► spaces, events (in order) ─► batch ─► worker: stack ─► locations ─► functions ─► paths ─► profiles
//! ```
//!
//! The caller's thread reads packets and keeps what stands where in each process; workers take packets of samples with
//! the state that held then, and sum call paths of their own, which are put together at the end. So memory holds a few
//! packets, the files' tables and the paths, however long the recording is; and the result depends on the recording
//! alone, not on which worker took what, as long as each worker has room for the paths that it comes across.

mod chain;
mod chains;
mod decode;
mod driver;
mod follow;
mod functions;
pub(crate) mod fuzz;
mod inside;
pub mod jitted;
pub mod kernel;
mod module;
mod modules;
mod paths;
mod profile;
mod registers;
mod sorted;
mod spaces;
mod unwind;
mod worker;

pub(crate) use driver::{Driver, Settings};
pub(crate) use worker::Data;

pub use chains::Chains;
pub use decode::{Decoder, SamplesError};
pub use module::is_file;
