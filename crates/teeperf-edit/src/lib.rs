//! Recordings made of recordings.
//!
//! * [`cut`]: a window of one, which reads as the whole does between these times.
//! * [`repair`]: what is right of a damaged one.
//! * [`merge`]: several as one.
//!
//! Reads as [`teeperf_profile`] does and writes as [`teeperf_record`] does. What is read is hostile; memory does not
//! grow with its length.
#![forbid(unsafe_code)]

pub mod cut;
mod error;
pub mod merge;
mod output;
pub mod repair;

pub use error::EditError;
