//! Recordings made of recordings.
//!
//! * [`cut`]: a window of one, which reads as the whole does between these times.
//! * [`repair`]: what is right of a damaged one.
//! * [`merge`]: several as one.
//! * [`pack`]: one with the files that it names, in an archive.
//! * [`rotate`]: one that keeps its latest part alone.
//! * [`send`], [`collect`]: those that others send.
//!
//! A [`target`] is where each of these goes, but for what others send.
//!
//! Reads as [`teeperf_profile`] does and writes as [`teeperf_record`] does. What is read is hostile; memory does not
//! grow with its length.
#![forbid(unsafe_code)]

pub mod collect;
pub mod cut;
mod error;
pub mod fuzz;
pub mod greeting;
mod head;
pub mod merge;
mod output;
pub mod pack;
pub mod repair;
pub mod rotate;
pub mod secured;
pub mod send;
pub mod target;

pub use error::EditError;
