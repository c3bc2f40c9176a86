//! Samples of ordinary processes, taken by the kernel: perf_event_open(2).
//!
//! ```text
//!  command, stopped before exec ──pid──► sampler (own thread) ──go──► command
//!                                          │ events on each processor, inherited
//!   kernel ──► ring of each processor ──►  │ order of time ──► packets ──► drain
//! ```
//!
//! The events begin with the command's exec, and threads and children inherit them, so that nothing of what it runs is
//! missed. Times are `CLOCK_MONOTONIC`'s, which the recording relates to its own clock. Weights of samples are their periods: see
//! `events` for why they are what was spent, and why there are two.
//!
//! Nothing is lost silently: what found no room in a ring is counted by the kernel, and told with the samples.

pub(crate) mod attr;
mod containers;
mod events;
mod gate;
mod jit_maps;
mod kernel;
mod offer;
mod options;
mod order;
mod outlet;
mod packets;
mod record;
mod ring;
mod sampler;

pub use offer::Refused;
pub use options::{Rate, Sampling, Stacks};

pub(crate) use events::online;
pub(crate) use gate::{Gate, Keeper, gate};
pub(crate) use offer::{Chosen, choose};
pub(crate) use order::Order;
pub(crate) use outlet::{Outlet, Parcel};
pub(crate) use packets::Packets;
pub(crate) use record::{Kin, Map, Record, read as read_record, time as time_of_record};
pub(crate) use ring::Ring;
pub(crate) use sampler::{Means, Sampler, sampled};
