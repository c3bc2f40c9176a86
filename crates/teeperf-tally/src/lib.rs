//! Probes that sum in place, in memory of a fixed size, for runs without end and for places from
//! which no stream of events leads out.
//!
//! * [`tree`]: calls and times for each call path ([`teeperf_wire::tree`]).
//!
//! What it never does: allocate, call anybody, or use a number from the memory it writes as an address, or as
//! an index that it has not checked: others may write there.
#![cfg_attr(not(test), no_std)]

mod folding;
mod memory;
mod positions;
pub mod tree;
