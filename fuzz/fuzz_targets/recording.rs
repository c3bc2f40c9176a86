//! Any bytes as a recording: walked over packet by packet and event by event, and replayed
//! with one worker and with two, which must come to the same.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| teeperf_profile::fuzz::any_recording(bytes));
