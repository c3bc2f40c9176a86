//! Samples in windows, and in what is kept of a recording that loses its oldest part.

#[path = "../../teeperf-profile/tests/support/mod.rs"]
mod by_hand;
mod support;

use by_hand::Builder;
use by_hand::samples::Chain;
use proptest::prelude::*;
use support::{Memory, replay};
use teeperf_edit::cut::{Cut, When, cut};
use teeperf_profile::Recording;
use teeperf_wire::body::sample::CONTEXT_USER;
use teeperf_wire::body::task::what;

const CODE: u64 = 0x40_0000;

/// Samples at these times, each of a thread of its own number and as long as its number says.
fn recording(times: &[u64]) -> Vec<u8> {
    let mut builder = Builder::new();
    builder.sampled(1, "cpu-clock", 62);
    builder.task(what::NAME, (7, 7), (0, 0), "one");
    builder.map(7, (CODE, 0x1000, 0), "/no/such/file");
    let chain = [CONTEXT_USER, CODE + 5];
    let samples: Vec<Vec<u8>> = (1..)
        .zip(times)
        .map(|(tid, &time_ns)| {
            Chain { event: 1, task: (7, tid), time_ns, period: u64::from(tid), chain: &chain }
                .encoded()
        })
        .collect();
    for (at, samples) in samples.chunks(3).enumerate() {
        builder.samples(samples, 0, at % 2 == 0);
    }
    builder.end()
}

fn window(bytes: &[u8], wanted: Cut) -> Vec<u8> {
    let out = Memory::default();
    cut(Recording::from_read(bytes, "whole"), &wanted, out.output(), "out", &mut |_| {}).unwrap();
    out.bytes()
}

/// Threads that have samples, sorted, and their time.
fn threads(bytes: &[u8]) -> Vec<(u32, f64)> {
    let profile = replay(bytes);
    let mut found: Vec<(u32, f64)> = profile
        .threads
        .iter()
        .map(|thread| (thread.tid, thread.tree.nodes[0].total.value))
        .collect();
    found.sort_by_key(|(tid, _)| *tid);
    found
}

proptest! {
    #[test]
    fn a_sample_is_in_one_window(times in proptest::collection::vec(0u64..5000, 1..12), border in 1u64..5000) {
        let bytes = recording(&times);
        let units = |n| Some(When::Units(n));
        let before = window(&bytes, Cut { until: units(border), ..Cut::default() });
        let behind = window(&bytes, Cut { since: units(border), ..Cut::default() });
        let expected = |in_window: &dyn Fn(u64) -> bool| -> Vec<(u32, f64)> {
            let kept = (1u32..).zip(&times).filter(|(_, time)| in_window(**time));
            kept.map(|(tid, _)| (tid, f64::from(tid))).collect()
        };
        prop_assert_eq!(threads(&before), expected(&|time| time < border));
        prop_assert_eq!(threads(&behind), expected(&|time| time >= border));
        // Cut once more, it is the same: the samples' clock is still known.
        let again = window(&behind, Cut { since: units(border), until: units(border + 700), ..Cut::default() });
        prop_assert_eq!(threads(&again), expected(&|time| (border..border + 700).contains(&time)));
    }
}

#[test]
fn threads_and_processes_are_chosen() {
    let bytes = recording(&[10, 20, 30, 40]);
    let chosen = window(&bytes, Cut { threads: vec![2, 4], ..Cut::default() });
    assert_eq!(threads(&chosen), [(2, 2.0), (4, 4.0)]);
    let nobody = Cut { processes: vec![8], ..Cut::default() };
    let out = Memory::default();
    let refused =
        cut(Recording::from_read(&bytes[..], "whole"), &nobody, out.output(), "out", &mut |_| {});
    assert!(refused.unwrap_err().to_string().contains("there is no process 8"));
    assert_eq!(threads(&window(&bytes, Cut { processes: vec![7], ..Cut::default() })).len(), 4);
}
