//! Any bytes as a file of gprof: read, made a profile, and written again, which must come to the same.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| teeperf_interop::fuzz::any_gmon(bytes));
