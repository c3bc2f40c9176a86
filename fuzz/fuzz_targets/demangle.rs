//! Any text as a mangled name.

#![no_main]

libfuzzer_sys::fuzz_target!(|name: &str| {
    let shown = teeperf_symbols::demangle(name);
    assert!(shown.len() <= name.len() + (1 << 16));
});
