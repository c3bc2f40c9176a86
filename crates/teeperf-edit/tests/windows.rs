//! Windows of a recording add up to the whole: calls, self times and losses of each path, whatever the words are, and
//! wherever the borders lie.

#[path = "../../teeperf-profile/tests/support/mod.rs"]
mod by_hand;
mod support;

use by_hand::Builder;
use by_hand::item::Chunk;
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::chunks::{chunks, writers_chunks};
use support::{Memory, Path, counts, lengths, paths, replay};
use teeperf_edit::cut::{Cut, Made, When, cut};
use teeperf_profile::Recording;

fn window(bytes: &[u8], since: Option<u64>, until: Option<u64>) -> (Vec<u8>, Made) {
    let out = Memory::default();
    let [since, until] = [since, until].map(|time| time.map(When::Units));
    let wanted = Cut { since, until, ..Cut::default() };
    let recording = Recording::from_read(bytes, "whole");
    let made = cut(recording, &wanted, out.output(), "out", &mut |_| {}).unwrap();
    (out.bytes(), made)
}

fn recording(chunks: &[Chunk]) -> Vec<u8> {
    let mut builder = Builder::new();
    builder.process(1, 77, "/bin/program");
    builder.filters();
    for (i, chunk) in chunks.iter().enumerate() {
        builder.chunk(chunk.header(), &chunk.words(), i % 2 == 0);
    }
    builder.end()
}

/// Whole and windows say the same.
fn add_up(bytes: &[u8], borders: &[u64]) {
    let whole = replay(bytes);
    let mut borders: Vec<u64> = borders.to_vec();
    borders.sort_unstable();
    borders.dedup();
    let starts = [None].into_iter().chain(borders.iter().copied().map(Some));
    let ends = borders.iter().copied().map(Some).chain([None]);
    let mut sums: BTreeMap<Path, (u64, u64)> = BTreeMap::new();
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    let mut timed = lengths(&whole);
    for (since, until) in starts.zip(ends) {
        let (window, made) = window(bytes, since, until);
        let profile = replay(&window);
        assert_eq!(made.notices, Vec::<String>::new());
        // Where nothing is called, it says so.
        let is_quiet = |told: &&String| told.contains("is in the window that was cut out");
        let (quiet, told): (Vec<_>, Vec<_>) = profile.health.warnings.iter().partition(is_quiet);
        assert!(told.is_empty(), "{since:?} to {until:?}: {told:?}");
        assert!(quiet.is_empty() || made.words == 0 && profile.health.events == 0, "{quiet:?}");
        for (path, (calls, time)) in paths(&profile) {
            let sum = sums.entry(path).or_default();
            *sum = (sum.0 + calls, sum.1 + time);
        }
        // A call that is in a window is as long there as it is in the whole.
        for (key, calls) in lengths(&profile) {
            let left = timed.get(&key).and_then(|there| there.checked_sub(calls));
            assert!(left.is_some(), "{since:?} to {until:?}: {calls} of {key:?}");
            timed.extend(left.map(|left| (key, left)));
        }
        for (name, count) in counts(&profile) {
            *counted.entry(name).or_default() += count;
        }
    }
    assert_eq!(sums, paths(&whole));
    assert_eq!(counted, counts(&whole));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn windows_add_up(
        chunks in writers_chunks(8),
        borders in proptest::collection::vec(0u64..4000, 1..5),
    ) {
        let bytes = recording(&chunks);
        let borders: Vec<u64> = borders.into_iter().map(|at| 0xFFFF_FD00 + at).collect();
        add_up(&bytes, &borders);
    }

    #[test]
    fn a_window_of_a_window_is_that_of_the_whole(chunks in chunks(6), [a, b] in [0u64..2500, 0u64..2500]) {
        let bytes = recording(&chunks);
        // A window has some time in it.
        let [a, b] = [a.min(b), a.max(b) + 1].map(|at| 0xFFFF_FD00 + at);
        let (once, _) = window(&bytes, Some(a), Some(b));
        let (first, _) = window(&bytes, Some(a), None);
        let (twice, _) = window(&first, None, Some(b));
        let [once, twice] = [&once, &twice].map(|bytes| replay(bytes));
        prop_assert_eq!((paths(&once), counts(&once)), (paths(&twice), counts(&twice)));
    }
}
