//! Any bytes as a log of the original TEE-Perf: read, taken for events, and replayed in several ways, which must agree.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| teeperf_interop::fuzz::any_log(bytes));
