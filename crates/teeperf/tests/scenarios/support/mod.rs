//! What the scenarios share: programs are built with `teeperf cc`, run under `teeperf record`,
//! read back with `teeperf report --json`, and compared with what the program itself told of
//! its calls. Never looks into the recorder or the reader by another way than a user has.

mod agreement;
mod build;
mod folded;
mod late;
mod phases;
mod report;
mod run;
mod sandbox;
mod simulator;
mod told;

pub(crate) use agreement::assert_paths_agree;
pub(crate) use build::{Compiler, Workshop, is_hooked};
pub(crate) use folded::{folded, percent, report};
pub(crate) use late::assert_late_library_is_known;
pub(crate) use phases::Phases;
pub(crate) use report::{Report, assert_calls, assert_paths, assert_seen, json};
pub(crate) use run::{
    Outcome, Progress, Recorded, Recording, Running, TEEPERF, are_late, are_thorough, cache,
    child_of, repeats, run, signal_of, teeperf, wait_until,
};
pub(crate) use sandbox::without_perf_event_open;
pub(crate) use told::Told;
