//! Several recordings as one say what each of them says, wherever their times are put.

#[path = "../../teeperf-profile/tests/support/mod.rs"]
mod by_hand;
mod support;

use by_hand::Builder;
use by_hand::item::Chunk;
use proptest::prelude::*;
use support::chunks::chunks;
use support::{Memory, counts, paths, replay};
use teeperf_edit::EditError;
use teeperf_edit::merge::{Input, Merged, merge};
use teeperf_profile::Recording;
use teeperf_wire::body::start;

const BEGAN: u64 = 0xFFFF_F000;

/// Of a machine of this name, begun so many nanoseconds after the others.
fn recording(host: &str, later: u64, clock: u64, hz: u64, chunks: &[Chunk]) -> Vec<u8> {
    let mut builder = Builder::empty();
    let [clock, hz, began, wall] =
        [clock, hz, BEGAN, 1_000_000_000_000 + later].map(u64::to_le_bytes);
    builder.start(&[
        (start::CLOCK, &clock),
        (start::HZ, &hz),
        (start::CLOCK_START, &began),
        (start::WALL_NS, &wall),
        (start::HOST, host.as_bytes()),
    ]);
    builder.process(1, 77, "/bin/program");
    for (i, chunk) in chunks.iter().enumerate() {
        builder.chunk(chunk.header(), &chunk.words(), i % 2 == 0);
    }
    builder.end()
}

fn merged(recordings: &[&[u8]]) -> Result<(Vec<u8>, Merged), EditError> {
    let out = Memory::default();
    let inputs = recordings.iter().enumerate().map(|(number, bytes)| {
        let name = format!("recording {number}");
        Input { recording: Recording::from_read(*bytes, &name[..]), name }
    });
    let made = merge(inputs.collect(), out.output(), "out", &mut |_| {})?;
    Ok((out.bytes(), made))
}

/// Any time, or one after which upper halves of times change within chunks.
fn later() -> impl Strategy<Value = u64> {
    prop_oneof![
        20_000_000u64..10_000_000_000,
        (1u64..3, 0u64..4000).prop_map(|(n, by)| (n << 32) - 2000 + by)
    ]
}

#[test]
fn clocks_that_differ_are_refused_with_the_next_step() {
    let of = |clock, hz| recording("a", 0, clock, hz, &[]);
    let refused = |other: &[u8]| merged(&[&of(1, 1000), other]).unwrap_err().to_string();
    assert!(refused(&of(2, 1000)).contains("--clock tick"));
    assert!(refused(&of(1, 2000)).contains("--clock tick"));
    let (_, told) = merged(&[&of(1, 1_000_000_000), &of(1, 1_000_000_001)]).unwrap();
    assert!(told.notices[0].contains("is that of recording 0"), "{told:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn each_says_what_it_said(one in chunks(6), other in chunks(6), later in later()) {
        let clock = one[0].clock;
        let other: Vec<Chunk> = other.into_iter().map(|chunk| Chunk { thread: chunk.thread + 10, ..chunk }).collect();
        prop_assume!(other[0].clock == clock);
        let one = recording("a", 0, clock as u64, 1_000_000_000, &one);
        let other = recording("b", later, clock as u64, 1_000_000_000, &other);
        let (both, told) = merged(&[&one, &other]).unwrap();
        prop_assert!(told.notices.iter().any(|text| text.contains("were moved")), "{told:?}");
        let [one, other, both] = [&one, &other, &both].map(|bytes| replay(bytes));
        let mut expected = paths(&one);
        expected.extend(paths(&other));
        prop_assert_eq!(paths(&both), expected);
        let mut expected = counts(&one);
        for (name, count) in counts(&other) {
            *expected.entry(name).or_default() += count;
        }
        prop_assert_eq!(counts(&both), expected);
        prop_assert_eq!(both.health.warnings, Vec::<String>::new());
    }
}
