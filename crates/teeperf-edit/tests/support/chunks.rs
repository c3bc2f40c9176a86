//! Chunks of any words that runtimes write.

use crate::by_hand::item::{Chunk, Item};
use proptest::prelude::*;
use std::collections::BTreeMap;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::shared::chunk::STACK_NOT_TOLD;

fn site() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0x1000u32..0x1004, 1 => 0x1000u32..0x1040]
}

/// A gap, with what stands before it.
type Gaps = BoxedStrategy<Vec<Item>>;

fn reason() -> impl Strategy<Value = u32> {
    prop_oneof![Just(1u32), Just(4), Just(7)]
}

/// Gaps that leave out any time.
fn any_gaps() -> Gaps {
    (reason(), 0u64..9, 0u32..4, 0u32..4, 0u64..60)
        .prop_map(|(reason, lost, popped, pushed, units)| {
            vec![Item::Gap { reason, lost, popped, pushed, units }]
        })
        .boxed()
}

/// Gaps that leave out time that is yet to come, behind an event, or time that was just told.
fn writers_gaps() -> Gaps {
    let before = prop_oneof![
        (site(), 0u32..60).prop_map(|(site, units)| (Item::Call { site, time: 0 }, units)),
        (0u32..60, 0u32..60).prop_map(|(units, more)| (Item::Tick(units + more), units)),
    ];
    (before, reason(), 0u64..9, 0u32..4, 0u32..4)
        .prop_map(|((before, units), reason, lost, popped, pushed)| {
            vec![before, Item::Gap { reason, lost, popped, pushed, units: units.into() }]
        })
        .boxed()
}

fn item(thread: u32, gap: Gaps) -> impl Strategy<Value = Vec<Item>> {
    let stack = move || prop_oneof![1 => Just(0u64), 4 => (1u64..4).prop_map(move |i| u64::from(thread) * 10 + i)];
    // Of marks on stacks that threads share it depends on which thread is read first.
    let key = move || (0u32..3).prop_map(move |key| thread * 10 + key);
    let one = |item| vec![item];
    prop_oneof![
        40 => site().prop_map(move |site| one(Item::Call { site, time: 0 })),
        40 => site().prop_map(move |site| one(Item::Return { site, time: 0 })),
        2 => (1u64..4).prop_map(move |n| one(Item::FarCall { address: n << 40, time: 0 })),
        2 => (1u64..4).prop_map(move |n| one(Item::FarReturn { address: n << 40, time: 0 })),
        // The clock is looked at where something happens.
        8 => (1u32..100, site(), any::<bool>()).prop_map(|(units, site, is_return)| vec![
            Item::Tick(units),
            if is_return { Item::Return { site, time: 0 } } else { Item::Call { site, time: 0 } }]),
        1 => Just(one(Item::Hole)),
        4 => key().prop_map(move |key| one(Item::Mark(key))),
        4 => key().prop_map(move |key| one(Item::Jump(key))),
        1 => Just(one(Item::VforkBegin)),
        1 => Just(one(Item::VforkEnd)),
        3 => site().prop_map(move |site| one(Item::Catch(site))),
        3 => gap,
        // As runtimes write it: the time, then what was waited of it.
        4 => (1u32..100, 0u64..=100).prop_map(|(tick, percent)| vec![Item::Tick(tick), Item::Gap {
            reason: 4, lost: 0, popped: 0, pushed: 0, units: u64::from(tick) * percent / 100 }]),
        2 => (stack(), stack()).prop_map(move |(left, entered)| one(Item::Switch { left, entered })),
        1 => stack().prop_map(move |stack| one(Item::StackNew(stack))),
        2 => stack().prop_map(move |stack| one(Item::Stack(stack))),
        3 => (0u32..4).prop_map(move |number| one(Item::Filter(number))),
    ]
}

/// Threads of one clock whose time goes forward, with more than 2^32 units in all.
pub(crate) fn chunks(most: usize) -> impl Strategy<Value = Vec<Chunk>> {
    chunks_with(most, any_gaps())
}

/// The same, with gaps that leave out no more than passed since the time that was told before.
pub(crate) fn writers_chunks(most: usize) -> impl Strategy<Value = Vec<Chunk>> {
    chunks_with(most, writers_gaps())
}

fn chunks_with(most: usize, gap: Gaps) -> impl Strategy<Value = Vec<Chunk>> {
    let thread = move |thread: u32| {
        let items = proptest::collection::vec((item(thread, gap.clone()), 0u64..60), 0..40);
        let pieces = proptest::collection::vec((0u64..300, items), 1..most);
        (Just(thread), pieces)
    };
    let clock = prop_oneof![Just(ClockKind::Tick), Just(ClockKind::Cycle)];
    (clock, thread(1), thread(2), any::<u64>()).prop_map(|(clock, one, two, seed)| {
        let mut out = Vec::new();
        for (thread, pieces) in [one, two] {
            // Not far below where the upper half of times changes.
            let mut now = 0xFFFF_FE00;
            let mut whole = now;
            for (sequence, (pause, items)) in pieces.into_iter().enumerate() {
                now += pause;
                let begin = now;
                whole = if clock == ClockKind::Cycle { now } else { whole };
                let mut done = Vec::new();
                for (items, step) in items {
                    for mut item in items {
                        match &mut item {
                            Item::Tick(units) => now += u64::from(*units),
                            Item::Call { time, .. }
                            | Item::Return { time, .. }
                            | Item::FarCall { time, .. }
                            | Item::FarReturn { time, .. }
                                if clock == ClockKind::Cycle =>
                            {
                                now += step;
                                if now >> 32 != whole >> 32 {
                                    done.push(Item::Stamp(now));
                                    whole = now;
                                }
                                *time = now;
                            }
                            _ => {}
                        }
                        done.push(item);
                    }
                }
                out.push(Chunk {
                    thread,
                    sequence: sequence as u32 + 1,
                    clock,
                    time: begin,
                    stack: u64::MAX,
                    items: done,
                });
            }
        }
        // In any order, but that of each thread.
        let mut noise = seed | 1;
        for at in 1..out.len() {
            noise = noise.wrapping_mul(6364136223846793005).wrapping_add(1);
            if noise >> 63 == 1 && out[at].thread != out[at - 1].thread {
                out.swap(at, at - 1);
            }
        }
        // Headers tell the stack that the thread is on, or that it is the one that it was on.
        let mut stacks: BTreeMap<u32, u64> = BTreeMap::new();
        for chunk in &mut out {
            let stack = stacks.entry(chunk.thread).or_default();
            chunk.stack = if chunk.sequence % 3 == 1 { *stack } else { STACK_NOT_TOLD };
            for item in &chunk.items {
                if let Item::Switch { entered, .. } | Item::Stack(entered) = item {
                    *stack = *entered;
                }
            }
        }
        out
    })
}
