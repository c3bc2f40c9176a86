//! Chunks that come in pieces: the header of each repeats what was so at the chunk's start.

mod support;

use support::Builder;
use teeperf_profile::model::Profile;
use teeperf_profile::{Options, Recording};
use teeperf_wire::body::chunk::{Header, WHOLE};
use teeperf_wire::word::{call, code, escape, payload, ret, split62};

const OUTER: u32 = 0x1000;
const INNER: u32 = 0x1010;

fn switch(left: u64, entered: u64) -> Vec<u32> {
    let ids = [split62(left), split62(entered)].concat();
    [vec![escape(code::SWITCH, 0), payload(4)], ids].concat()
}

/// One chunk of these words, cut before each of these indices.
fn replay(words: &[u32], cuts: &[usize], batch_chunks: usize) -> Profile {
    let mut builder = Builder::new();
    builder.process(1, 77, "/bin/program");
    let mut first = 0;
    for &end in cuts.iter().chain([&words.len()]) {
        let flags = if end == words.len() { WHOLE } else { 0 };
        let place = Header { sequence: 1, first: first as u32, flags, ..Header::default() };
        let header = Header { process: 1, thread: 1, tid: 1, clock: 1, cpu_ns: u64::MAX, ..place };
        builder.chunk(header, &words[first..end], false);
        first = end;
    }
    let mut options = Options { batch_chunks, ..Options::default() };
    Recording::from_read(&builder.end()[..], "test").replay(&mut options).unwrap()
}

#[test]
fn a_later_piece_does_not_go_back_to_the_stack_of_the_chunks_start() {
    let enter = [&[call(OUTER)][..], &switch(0, 5), &[call(INNER)]].concat();
    let leave = [&[ret(INNER)][..], &switch(5, 0), &[ret(OUTER)]].concat();
    let words = [&enter[..], &leave].concat();
    for batch_chunks in [1, 2, 8] {
        for cuts in [&[][..], &[enter.len()], &[7, 8], &[7, 9]] {
            let profile = replay(&words, cuts, batch_chunks);
            let health = &profile.health;
            let warned = health.warnings.iter().find(|text| text.contains("chunk"));
            assert_eq!(warned, None, "{cuts:?}");
            let counts = (health.events, health.mended, health.unopened, health.open);
            assert_eq!(counts, (4, 0, 0, 0), "{cuts:?} in batches of {batch_chunks}");
        }
    }
}
