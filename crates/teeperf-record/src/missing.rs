//! Processes and libraries with hooks that are not recorded, and say nothing: executed without a name to
//! ask, kept from asking by a filter of system calls, with more rights than their starter, in a namespace of
//! their own. Those that descend from the recorder are looked at now and then, below `/proc`, and what
//! is in none of the recorder's lists is told at the end, by file.
//!
//! * `look`: the thread that looks; `mapped`: what a process has mapped; `file`: whether a file has hooks;
//! * `news`: what the kernel tells of programs, and `lives`: how long each lasts;
//! * `why`: why a process is not recorded; `ledger`: who is missing.
//!
//! Where the kernel tells nothing, as to a recorder of a user without rights, the thread does not see a process
//! that ends between two looks and never asks the recorder.

mod file;
mod files;
mod ledger;
mod lives;
mod look;
mod mapped;
mod news;
mod why;

pub(crate) use ledger::{Ledger, Missing};
pub(crate) use look::Lookout;
pub(crate) use mapped::unescaped;
pub(crate) use why::Why;
