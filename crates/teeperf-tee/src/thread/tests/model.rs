//! What a thread is to have written, found out slowly.

use super::host::{Host, Seen};
use super::{LENGTH, LOW, STEPS, attach};
use crate::thread::Thread;
use proptest::prelude::*;
use teeperf_wire::arena::baton;
use teeperf_wire::shared::{OnFull, clock, control};
use teeperf_wire::word::gap;

/// What happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// So many calls (kind 0) or returns of a function, which may be far away.
    Events {
        address: usize,
        kind: u32,
        times: usize,
    },
    Tick(u64),
    /// Leaves, and comes back where the memory lies elsewhere.
    Comes,
    /// Nonsense in the baton, which names no thread, while nobody is inside.
    Baton(u32, u32, u64),
    Pause(bool),
    Drain,
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let most = STEPS.min(300);
    let events = |low: usize, length: usize| {
        (0..length, 0u32..2, 1..most).prop_map(move |(at, kind, times)| Step::Events {
            address: low + at * 2,
            kind,
            times,
        })
    };
    let tick = prop_oneof![
        6 => 1u64..2000,
        1 => (1u64 << 24) - 2..(1 << 24) + 2,
        1 => (1u64 << 32) + 1..(1 << 33) - 1,
    ];
    let step = prop_oneof![
        6 => events(LOW, LENGTH / 2),
        1 => events(LOW - 64, 32),
        1 => events(LOW + LENGTH, 32),
        4 => tick.prop_map(Step::Tick),
        1 => Just(Step::Comes),
        1 => (any::<u32>(), any::<u32>(), any::<u64>()).prop_map(|(a, b, c)| Step::Baton(a, b, c)),
        1 => any::<bool>().prop_map(Step::Pause),
        2 => Just(Step::Drain),
    ];
    prop::collection::vec(step, 1..STEPS.min(60))
}

/// Frames open at the end, of those that are begun in what is seen.
pub(super) fn depth(seen: &[(u64, Seen)]) -> i64 {
    seen.iter().fold(0, |depth, (_, seen)| match *seen {
        Seen::Event { kind: 0, .. } => depth + 1,
        Seen::Event { .. } => depth - 1,
        Seen::Gap { popped, pushed, .. } => depth - i64::from(popped) + i64::from(pushed),
        Seen::Module { .. } => depth,
    })
}

/// Runs the steps. Where nothing was left out, every event stands there with its time, and every pause is
/// a gap; where something was, all sums are right.
pub(super) fn compare(length: usize, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut host = Host::new(length, OnFull::Drop);
    let thread = Thread::new();
    let (mut time, mut is_paused) = (1, false);
    let mut expected = Vec::new();
    let mut total = 0;
    host.tick(time);
    attach(&thread, &host).unwrap();
    for &step in steps {
        match step {
            Step::Events { address, kind, times } => {
                for _ in 0..times {
                    thread.event(address, kind);
                    expected.push((time, is_paused, Seen::Event { address, kind }));
                    total += 1;
                }
            }
            Step::Tick(by) => {
                time += by;
                host.tick(time);
            }
            Step::Comes => {
                thread.detach();
                host.move_elsewhere();
                attach(&thread, &host).unwrap();
            }
            Step::Baton(chunk, used, at) => {
                thread.detach();
                host.write(baton::CHUNK, chunk);
                host.write(baton::USED, used);
                host.write(baton::TIME, at as u32);
                host.write(baton::SERIAL, used);
                attach(&thread, &host).unwrap();
            }
            Step::Pause(pauses) => {
                is_paused = pauses;
                host.write(clock::CONTROL, if pauses { control::PAUSED } else { 0 });
                // Threads look when the clock moves.
                time += 1;
                host.tick(time);
            }
            Step::Drain => host.drain(),
        }
    }
    host.write(clock::CONTROL, 0);
    thread.detach();
    let seen = host.seen();
    let found = |seen: &(u64, Seen)| matches!(seen.1, Seen::Event { .. });
    let events: Vec<_> = seen.iter().copied().filter(found).collect();
    let told: u64 = seen
        .iter()
        .map(|(_, seen)| if let Seen::Gap { events, .. } = seen { *events } else { 0 })
        .sum();
    prop_assert_eq!(events.len() as u64 + told + host.untold(), total);
    let is_whole = |seen: &(u64, Seen)| !matches!(seen.1, Seen::Gap { reason, events, .. } if reason != gap::PAUSED && events > 0);
    if host.untold() == 0 && seen.iter().all(is_whole) {
        let written: Vec<_> = expected
            .iter()
            .filter(|(_, is_paused, _)| !is_paused)
            .map(|&(time, _, seen)| (time, seen))
            .collect();
        prop_assert_eq!(&events, &written);
        let all: Vec<_> = expected.iter().map(|&(time, _, seen)| (time, seen)).collect();
        prop_assert_eq!(depth(&seen), depth(&all));
    }
    Ok(())
}
