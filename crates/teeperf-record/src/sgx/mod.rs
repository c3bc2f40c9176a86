//! Samples that are taken within processes, by a library that is preloaded (`teeperf-inside`): of hosts of SGX enclaves, and of any
//! program where the kernel lets nothing be sampled otherwise.
//!
//! ```text
//!  library ── Ask ──► desk (own thread)    memory for a process; look at it now, while its enclave stands
//!  threads' handlers ──► rings ──► desk ──► packets ──► drain
//! ```
//!
//! * `desk`: the thread; `process`: what is known of one process; `enclave`: of one of its enclaves; `rings`: its threads' samples, out of the memory that is shared;
//!   `code`: what code a process has; `options`: what is asked for.
//!
//! The memory stays when a process goes, however it goes, so what it had sampled is taken.

mod code;
mod desk;
mod enclave;
mod options;
mod process;
mod rings;

pub use options::{Front, GivenModule, Sgx};

pub(crate) use code::{Code, Known};
pub(crate) use desk::{Desk, Means, sampled};
pub(crate) use options::Within;
pub(crate) use process::{Told, name, tell_code, tell_name};
pub(crate) use rings::{Counts, Found, Rings};

/// What is said where hosts of enclaves are sampled without the kernel's events.
pub(crate) const NO_EVENTS: &str = "the kernel permits no events (perf_event_open), so there are no more samples a second than it ticks \
                                    (CONFIG_HZ: 250 as most distributions have it); next: sudo sysctl kernel.perf_event_paranoid=2, \
                                    or, in a container, start it with --cap-add PERFMON";
