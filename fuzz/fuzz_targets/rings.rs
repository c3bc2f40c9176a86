//! Any bytes as what a hostile program writes to where its samples are, while the recorder takes them.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    teeperf_record::fuzz::any_rings(bytes);
});
