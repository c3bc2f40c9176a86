//! Replay, in batches of any size with any number of workers, comes to the same as the slow
//! model, whatever the words are.

mod support;

use proptest::prelude::*;
use std::collections::BTreeMap;
use support::Builder;
use support::item::{Chunk, Item};
use support::slow::{self, Outcome, Paths};
use teeperf_profile::lengths::Lengths;
use teeperf_profile::model::{FunctionId, Profile, Thread};
use teeperf_profile::{Options, Recording};
use teeperf_wire::shared::ClockKind;
use teeperf_wire::shared::chunk::STACK_NOT_TOLD;

fn replay(chunks: &[Chunk], jobs: usize, batch_chunks: usize) -> Profile {
    replay_with(chunks, Options { jobs, batch_chunks, ..Options::default() })
}

fn replay_with(chunks: &[Chunk], options: Options<'_>) -> Profile {
    let mut builder = Builder::empty();
    // Of a counter as fast as the clock.
    builder.start(&[(teeperf_wire::body::start::COUNTER_HZ, &1_000_000_000u64.to_le_bytes())]);
    builder.process(1, 77, "/bin/program");
    builder.filters();
    for (i, chunk) in chunks.iter().enumerate() {
        builder.chunk(chunk.header(), &chunk.words(), i % 2 == 0);
    }
    let mut options = Options { ..options };
    Recording::from_read(&builder.end()[..], "test").replay(&mut options).unwrap()
}

fn paths(profile: &Profile, tree: &teeperf_profile::model::Tree) -> Paths {
    let mut names: Vec<Vec<String>> = Vec::new();
    let mut out = Paths::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        let mut path = if at == 0 { vec![] } else { names[node.parent as usize].clone() };
        if at > 0 {
            path.push(profile.functions[node.function.0 as usize].name.clone());
        }
        let twice = out.insert(path.clone(), (node.calls, node.self_time.value as u64));
        assert!(twice.is_none(), "two nodes for {path:?}");
        names.push(path);
    }
    out
}

fn mended_in(profile: &Profile) -> BTreeMap<String, u64> {
    let mended = profile.health.mended_in.iter();
    mended.map(|m| (profile.functions[m.function.0 as usize].name.clone(), m.frames)).collect()
}

fn told(profile: &Profile) -> Outcome {
    let of = |thread: &teeperf_profile::model::Thread| thread.tid - 1000;
    let reason = |name: &str| match name {
        "paused" => 1,
        "waited" => 4,
        "forked" => 7,
        other => panic!("{other}"),
    };
    Outcome {
        threads: profile.threads.iter().map(|t| (of(t), paths(profile, &t.tree))).collect(),
        events: profile.health.events,
        lost: profile.health.lost,
        mended: profile.health.mended,
        mended_in: mended_in(profile),
        unopened: profile.health.unopened,
        open: profile.health.open,
        waited: profile
            .threads
            .iter()
            .filter(|t| t.waited_ns > 0)
            .map(|t| (of(t), t.waited_ns))
            .collect(),
        gaps: profile
            .health
            .gaps
            .iter()
            .map(|(name, times, ns)| (reason(name), (*times, *ns)))
            .collect(),
    }
}

/// Paths with neither calls nor time may be there or not.
fn without_empty(mut outcome: Outcome) -> Outcome {
    for paths in outcome.threads.values_mut() {
        paths.retain(|_, counts| *counts != (0, 0));
    }
    outcome.waited.retain(|_, units| *units > 0);
    outcome
}

/// Of each path only its function.
fn by_function(mut outcome: Outcome) -> Outcome {
    for paths in outcome.threads.values_mut() {
        let mut functions = Paths::new();
        for (path, (calls, time)) in std::mem::take(paths) {
            let sum = functions.entry(path.last().cloned().into_iter().collect()).or_default();
            *sum = (sum.0 + calls, sum.1 + time);
        }
        *paths = functions;
    }
    outcome
}

fn site() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0x1000u32..0x1004, 1 => 0x1000u32..0x1040]
}

fn item(thread: u32) -> impl Strategy<Value = Item> {
    // Stacks of their own: what moves between threads depends on which is read first.
    let stack = move || prop_oneof![1 => Just(0u64), 4 => (1u64..4).prop_map(move |i| u64::from(thread) * 10 + i)];
    let key = move || (0u32..3).prop_map(move |key| thread * 10 + key);
    let time = prop_oneof![9 => 0u64..5000, 1 => 0xFFFF_F000..0xFFFF_FFFFu64];
    prop_oneof![
        40 => (site(), time.clone()).prop_map(|(site, time)| Item::Call { site, time }),
        40 => (site(), time.clone()).prop_map(|(site, time)| Item::Return { site, time }),
        2 => (1u64..4, time.clone()).prop_map(|(n, time)| Item::FarCall { address: n << 40, time }),
        2 => (1u64..4, time.clone()).prop_map(|(n, time)| Item::FarReturn { address: n << 40, time }),
        8 => (1u32..100).prop_map(Item::Tick),
        2 => (0u64..9000, 0u64..3).prop_map(|(low, high)| Item::Stamp(low + (high << 32))),
        1 => Just(Item::Hole),
        1 => Just(Item::Pad),
        4 => key().prop_map(Item::Mark),
        4 => key().prop_map(Item::Jump),
        1 => Just(Item::VforkBegin),
        1 => Just(Item::VforkEnd),
        3 => site().prop_map(Item::Catch),
        3 => (prop_oneof![Just(1u32), Just(4), Just(7)], 0u64..9, 0u32..4, 0u32..4, 0u64..60)
            .prop_map(|(reason, lost, popped, pushed, units)| Item::Gap { reason, lost, popped, pushed, units }),
        2 => (prop_oneof![3 => stack(), 1 => Just(teeperf_wire::word::ABANDONED)], stack())
            .prop_map(|(left, entered)| Item::Switch { left, entered }),
        1 => stack().prop_map(Item::StackNew),
        2 => stack().prop_map(Item::Stack),
        3 => (0u32..4).prop_map(Item::Filter),
        30 => (0u64..90_000).prop_map(Item::Timed),
        1 => Just(Item::Note("a note")),
        1 => (site(), 0u64..9000).prop_map(|(site, units)| Item::Wait { site, units }),
        1 => (prop_oneof![Just(9u32), Just(29)], 0u32..3).prop_map(|(code, payload)| Item::Strange { code, payload }),
    ]
}

fn clock() -> impl Strategy<Value = ClockKind> {
    prop_oneof![Just(ClockKind::Tick), Just(ClockKind::Cycle)]
}

fn chunk(thread: u32, longest: usize) -> impl Strategy<Value = Chunk> {
    let stack =
        prop_oneof![6 => Just(None), 1 => (0u64..3).prop_map(Some), 3 => Just(Some(u64::MAX))];
    (
        proptest::collection::vec(item(thread), 0..longest),
        clock(),
        0u64..9000,
        stack,
        proptest::bool::weighted(0.05),
    )
        .prop_map(move |(mut items, clock, time, stack, cut)| {
            if cut {
                items.insert(items.len() / 2, Item::Invalid);
            }
            let stack = match stack {
                None | Some(0) => 0,
                Some(u64::MAX) => STACK_NOT_TOLD,
                Some(i) => u64::from(thread) * 10 + i,
            };
            Chunk { thread, sequence: 0, clock, time, stack, items }
        })
}

fn chunks(longest: usize) -> impl Strategy<Value = Vec<Chunk>> {
    let any_thread = (1u32..4).prop_flat_map(move |thread| chunk(thread, longest));
    proptest::collection::vec(any_thread, 1..14).prop_map(|mut chunks| {
        let mut sequences: BTreeMap<u32, u32> = BTreeMap::new();
        for chunk in &mut chunks {
            let sequence = sequences.entry(chunk.thread).or_default();
            *sequence += 1;
            chunk.sequence = *sequence;
        }
        chunks
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_items_in_any_batches(chunks in chunks(60), jobs in 1usize..4, batch in 1usize..6) {
        let expected = without_empty(slow::outcome(&chunks));
        prop_assert_eq!(without_empty(told(&replay(&chunks, jobs, batch))), expected);
    }

    #[test]
    fn beyond_the_most_paths_functions_are_counted_as_exactly(chunks in chunks(60), most_paths in 1usize..30, batch_chunks in 1usize..6) {
        let options = Options { jobs: 1, batch_chunks, most_paths, ..Options::default() };
        let expected = without_empty(by_function(slow::outcome(&chunks)));
        let told = told(&replay_with(&chunks, options));
        prop_assert_eq!(without_empty(by_function(told)), expected);
    }
}

/// Lengths by thread and function, as [`slow::lengths`] has them.
fn told_lengths(
    profile: &Profile,
    of_thread: impl Fn(&Thread) -> &[(FunctionId, Lengths)],
) -> BTreeMap<(u32, String), Lengths> {
    let of = |thread: &Thread, (function, lengths): &(FunctionId, Lengths)| {
        let name = profile.functions[function.0 as usize].name.clone();
        ((thread.tid - 1000, name), lengths.clone())
    };
    let of_all = profile.threads.iter();
    of_all.flat_map(|t| of_thread(t).iter().map(move |each| of(t, each))).collect()
}

/// Of all calls, in whatever batches, within what a bucket may be off.
fn lengths_are_right(chunks: &[Chunk], options: Options<'_>) {
    let profile = replay_with(chunks, Options { lengths: true, ..options });
    are_these(&told_lengths(&profile, |thread| &thread.lengths), slow::lengths(chunks));
    // In picoseconds.
    let mut counted = slow::counted(chunks);
    counted.values_mut().flatten().for_each(|length| *length *= 1000);
    are_these(&told_lengths(&profile, |thread| &thread.counted), counted);
    // And nothing else is another than without.
    let plain = without_empty(self::told(&replay(chunks, 1, 0)));
    assert_eq!(without_empty(self::told(&profile)), plain);
}

fn are_these(told: &BTreeMap<(u32, String), Lengths>, expected: slow::Lengths) {
    let keys = |n: usize| format!("{n} functions");
    assert_eq!(keys(told.len()), keys(expected.len()));
    for (key, mut exact) in expected {
        let lengths = &told[&key];
        exact.sort_unstable();
        assert_eq!(lengths.calls(), exact.len() as u64, "{key:?}");
        assert_eq!(lengths.sum(), exact.iter().sum::<u64>(), "{key:?}");
        assert_eq!(lengths.extremes(), Some((exact[0], exact[exact.len() - 1])), "{key:?}");
        for percent in [1, 25, 50, 90, 99] {
            let rank = (percent * exact.len()).div_ceil(100);
            let (told, exact) =
                (lengths.percentile(percent as f64 / 100.0).unwrap(), exact[rank - 1]);
            assert!(told.abs_diff(exact) <= exact / 64 + 1, "{key:?}: {told} for {exact}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn calls_are_timed(chunks in chunks(60), jobs in 1usize..4, batch_chunks in 1usize..6) {
        lengths_are_right(&chunks, Options { jobs, batch_chunks, ..Options::default() });
    }
}

/// Twice as many with `cargo xtask test --thorough`.
fn long_cases() -> u32 {
    if std::env::var_os("TEEPERF_TEST_THOROUGH").is_some() { 40 } else { 20 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: long_cases(), ..ProptestConfig::default() })]

    #[test]
    fn long_chunks_with_deep_stacks(chunks in chunks(1200), batch in 1usize..4) {
        let expected = without_empty(slow::outcome(&chunks));
        prop_assert_eq!(without_empty(told(&replay(&chunks, 1, batch))), expected);
    }

    #[test]
    fn long_chunks_beyond_the_most_paths(chunks in chunks(1200), most_paths in 1usize..300) {
        let options = Options { jobs: 1, most_paths, ..Options::default() };
        let expected = without_empty(by_function(slow::outcome(&chunks)));
        let told = told(&replay_with(&chunks, options));
        prop_assert_eq!(without_empty(by_function(told)), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn calls_of_long_chunks_are_timed(chunks in chunks(1200), batch_chunks in 1usize..4) {
        lengths_are_right(&chunks, Options { jobs: 1, batch_chunks, ..Options::default() });
    }
}

/// A gap is known to ticks: of a call that was shorter than one in it nothing is known, and surely not that it took no time.
#[test]
fn a_call_shorter_than_a_gap_in_it_has_no_length() {
    let call = |gap: u64, steps: u64| {
        [
            Item::Timed(1000),
            Item::Call { site: 0x1000, time: 0 },
            Item::Stamp(500),
            Item::Gap { reason: 4, lost: 0, popped: 0, pushed: 0, units: gap },
            Item::Timed(1000 + steps),
            Item::Return { site: 0x1000, time: 0 },
        ]
    };
    let chunk = |items: Vec<Item>| Chunk {
        thread: 1,
        sequence: 0,
        clock: ClockKind::Tick,
        time: 0,
        stack: 0,
        items,
    };
    let counted = |gap, steps| {
        let options = Options { lengths: true, ..Options::default() };
        let profile = replay_with(&[chunk(call(gap, steps).into())], options);
        let of = |each: &(_, Lengths)| each.1.extremes();
        profile.threads[0].counted.first().and_then(of)
    };
    assert_eq!(counted(0, 300), Some((300_000, 300_000)));
    assert_eq!(counted(100, 300), Some((200_000, 200_000)));
    assert_eq!(counted(300, 300), None);
    assert_eq!(counted(400, 300), None);
}
