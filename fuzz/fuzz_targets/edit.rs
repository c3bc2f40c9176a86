//! Any bytes as a recording that is cut, repaired and merged, as an archive of one, and as what comes over a connection.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    teeperf_edit::fuzz::any_greeting(bytes);
    teeperf_edit::fuzz::any_recording(bytes);
});
