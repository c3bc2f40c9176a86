//! Any bytes as an ELF file, and as registers and a stack that leads through its code. The first two bytes say how long the
//! file is.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&size, rest)) = bytes.split_first_chunk() else { return };
    let Some((file, stack)) = rest.split_at_checked(u16::from_le_bytes(size).into()) else {
        return;
    };
    teeperf_profile::fuzz::any_stack(file, stack);
});
