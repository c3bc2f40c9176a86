//! Any bytes as a recording that is cut, repaired and merged, and as an archive of one.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| teeperf_edit::fuzz::any_recording(bytes));
