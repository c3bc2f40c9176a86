//! Logs of the original TEE-Perf (2019): a header, then an entry for each call and return, in the order in which they
//! were begun. `docs/tee-perf-logs.md` describes them, with doubts.
//!
//! * [`is_log`]: whether bytes are the beginning of one.
//! * [`Log`]: its calls and returns as [packets](teeperf_profile::Packets), which replay and `dump` take as
//!   those of a recording.

mod error;
mod header;
mod log;

pub use error::Error;
pub use header::{HEADER, is_log};
pub use log::{Log, Options};
