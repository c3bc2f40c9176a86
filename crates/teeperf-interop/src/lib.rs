//! Formats of other profilers, one module each. What is read becomes a
//! [`Profile`](teeperf_profile::model::Profile); what is written is made of one.
//!
//! * [`gmon`]: `gmon.out` of gprof, both ways.
//! * [`perf_data`]: `perf.data` of perf, read; its samples become packets as they are.
//! * [`tee_perf`]: logs of the original TEE-Perf, read. What has calls and returns one by one, as these, becomes
//!   packets by way of [`calls`].
//!
//! Files of others are hostile: whatever the bytes, there is what could be read, with a warning for what
//! could not, or an error that names file and offset; never a panic, and no allocation is larger than the
//! file warrants. Nothing here opens files, prints, or knows the command line.
#![deny(unsafe_code)]

pub mod calls;
pub mod fuzz;
pub mod gmon;
pub mod perf_data;
pub mod tee_perf;
