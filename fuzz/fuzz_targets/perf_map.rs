//! Any bytes as what a just-in-time compiler tells perf of its functions.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| teeperf_profile::fuzz::any_perf_map(bytes));
