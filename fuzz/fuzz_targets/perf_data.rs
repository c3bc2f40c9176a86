//! Any bytes as a `perf.data`: read as a file and as what comes out of a pipe.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| teeperf_interop::fuzz::any_perf_data(bytes));
