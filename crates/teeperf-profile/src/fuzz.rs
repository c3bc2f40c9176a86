//! One door for fuzzers: any bytes as a recording, as a stack, or as what a just-in-time compiler tells.

use crate::contents::Body;
use crate::samples;
use crate::{Options, Recording, chunks::Decoder, events};

/// Walks over every packet and every event, then replays with one worker and with two, with room
/// for many call paths and for few. With as much room both profiles must be the same. Never panics, and takes time and
/// memory in proportion to the words that the bytes stand for.
pub fn any_recording(bytes: &[u8]) {
    let mut recording = Recording::from_read(bytes, "bytes");
    let Ok(mut decoder) = Decoder::new() else { return };
    let mut has_samples = false;
    while let Ok(Some(packet)) = recording.next_packet() {
        match packet.body {
            Body::Chunk(header, data) => {
                if let Ok(events) = events::events(&mut decoder, &header, data) {
                    assert!(events.count() <= header.count as usize);
                }
            }
            Body::Symbols(symbols) => assert!(symbols.iter().count() <= bytes.len()),
            Body::Samples(..) => has_samples = true,
            _ => {}
        }
    }
    for most_paths in [0, 3] {
        let replay = |jobs| {
            let mut options =
                Options { jobs, most_paths, lengths: most_paths > 0, ..Options::default() };
            Recording::from_read(bytes, "bytes").replay(&mut options).ok()
        };
        let (one, two) = (replay(1), replay(2));
        assert_eq!(one.is_some(), two.is_some());
        // Each worker has room for so many paths of samples, so where that is too little it counts who took which.
        if has_samples && most_paths > 0 {
            continue;
        }
        if let (Some(one), Some(two)) = (one, two) {
            assert_eq!(one.functions, two.functions);
            assert_eq!(one.health, two.health);
            assert!(one.threads.iter().map(|t| &t.tree).eq(two.threads.iter().map(|t| &t.tree)));
        }
    }
}

/// Follows the stack that `bytes` are, registers first, through the program that `file` is, as samples' stacks are. Never
/// panics, and comes to an end.
pub fn any_stack(file: &[u8], bytes: &[u8]) {
    samples::fuzz::any_stack(file, bytes);
}

/// Reads `bytes` as a `/tmp/perf-PID.map`. At each address that a line begins at, and at the last before it ends, is the function of the
/// last line that has the address. Never panics.
pub fn any_perf_map(bytes: &[u8]) {
    samples::fuzz::any_perf_map(bytes);
}
