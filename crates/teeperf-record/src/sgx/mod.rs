//! Samples of programs with SGX enclaves, taken within their processes or beside them (`teeperf_aex`).
//!
//! * `rings`: threads' samples, out of the memory that is shared with who takes them.

mod rings;

pub(crate) use rings::{Counts, Found, Rings};
