//! Any bytes as a program's memory with its runtime's list of enclaves, as Intel's, Open Enclave and Gramine keep them.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    teeperf_record::fuzz::any_lists(bytes);
});
