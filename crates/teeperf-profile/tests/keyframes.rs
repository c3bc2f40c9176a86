//! Recordings that begin with keyframes, made by hand; expectations were worked out by hand.

mod support;

use support::Builder;
use teeperf_profile::model::Profile;
use teeperf_profile::{Options, Recording};
use teeperf_wire::body::chunk;
use teeperf_wire::body::keyframe as tag;
use teeperf_wire::packet::kind;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{call, code, escape, payload, ret, split62};

/// Unsigned LEB128 numbers.
fn numbers(numbers: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    for &number in numbers {
        let mut rest = number;
        while rest >= 0x80 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }
    out
}

fn keyframe(builder: &mut Builder, fields: &[(u16, u64)], frames: &[u64]) {
    let values: Vec<(u16, [u8; 8])> =
        [&[(tag::PROCESS, 1), (tag::THREAD, 1), (tag::SEQUENCE, 2)], fields]
            .concat()
            .into_iter()
            .map(|(tag, number)| (tag, number.to_le_bytes()))
            .collect();
    let frames = numbers(frames);
    let mut fields: Vec<(u16, &[u8])> =
        values.iter().map(|(tag, value)| (*tag, &value[..])).collect();
    fields.push((tag::FRAMES, &frames));
    builder.fields(kind::KEYFRAME, &fields);
}

fn replay(keyframes: impl FnOnce(&mut Builder), words: &[u32]) -> Profile {
    let mut builder = Builder::new();
    keyframes(&mut builder);
    let header = chunk::Header {
        process: 1,
        thread: 1,
        tid: 7,
        sequence: 2,
        cpu_ns: u64::MAX,
        clock: ClockKind::Tick as u8,
        flags: chunk::WHOLE,
        ..chunk::Header::default()
    };
    builder.chunk(header, words, false);
    let mut options = Options { jobs: 1, ..Options::default() };
    Recording::from_read(&builder.end()[..], "test").replay(&mut options).unwrap()
}

/// Calls and self time by function.
fn figures(profile: &Profile) -> Vec<(String, u64, u64)> {
    let nodes = profile.threads[0].tree.nodes.iter().skip(1);
    let mut out: Vec<_> = nodes
        .map(|node| {
            let name = profile.functions[node.function.0 as usize].name.clone();
            (name, node.calls, node.self_time.value as u64)
        })
        .collect();
    out.sort();
    out
}

fn named(figures: &[(u32, u64, u64)]) -> Vec<(String, u64, u64)> {
    let name = |site| format!("[unknown module]+{site:#x}");
    figures.iter().map(|&(site, calls, time)| (name(site), calls, time)).collect()
}

const A: u32 = 0x2200;
const B: u32 = 0x2240;
const C: u32 = 0x2280;

fn tick(units: u32) -> u32 {
    escape(code::TICK, units)
}

#[test]
fn frames_are_open_and_their_calls_do_not_count() {
    let open = [u64::from(call(A)), 1, u64::from(call(B)), 1];
    let words = [tick(4), ret(B), tick(3), call(C), tick(1), ret(C), ret(A)];
    let profile = replay(|builder| keyframe(builder, &[], &open), &words);
    assert_eq!(figures(&profile), named(&[(A, 0, 3), (B, 0, 4), (C, 1, 1)]));
    let health = &profile.health;
    assert_eq!((health.unopened, health.mended, health.open), (0, 0, 0));
    assert_eq!(health.warnings, Vec::<String>::new());
}

#[test]
fn what_passed_before_is_not_charged_and_gaps_take_the_window_first() {
    let gap = |units: u64| {
        let ([a, b], [c, d]) = (split62(0), split62(units));
        [escape(code::GAP, 4), payload(6), a, b, payload(0), payload(0), c, d]
    };
    // 10 pass, 4 of them here. A gap of 7 takes these, and 3 of the 5 before; one of 3 takes of these.
    for (units, left) in [(7, 0), (3, 1), (12, 0)] {
        let words = [&[tick(10)][..], &gap(units), &[ret(A)]].concat();
        let open = [u64::from(call(A)), 1];
        let fields = [(tag::RECENT, 5), (tag::DEBT, 6)];
        let profile = replay(|builder| keyframe(builder, &fields, &open), &words);
        assert_eq!(figures(&profile), named(&[(A, 0, left)]), "{units}");
    }
}

#[test]
fn a_stack_in_parts_and_one_that_was_left() {
    let words = [
        &[ret(C), ret(B), ret(A), escape(code::SWITCH, 0), payload(4)][..],
        &split62(0),
        &split62(3),
        &[tick(2), ret(B)],
    ]
    .concat();
    let profile = replay(
        |builder| {
            keyframe(builder, &[], &[u64::from(call(A)), 1, u64::from(call(B)), 1]);
            // One that tells of a third frame is missing.
            keyframe(builder, &[(tag::BELOW, 3)], &[u64::from(call(C)), 1]);
            keyframe(builder, &[(tag::LEFT, 1), (tag::STACK, 3)], &[u64::from(call(B)), 1]);
        },
        &words,
    );
    // The return from B closes what is not known, that from A what is of B.
    assert_eq!((profile.health.mended, profile.health.unopened, profile.health.open), (1, 0, 0));
    let b = figures(&profile).into_iter().find(|(_, calls, time)| (*calls, *time) == (0, 2));
    assert!(b.is_some_and(|(name, ..)| name.ends_with("+0x2240")));
}

#[test]
fn frames_beyond_counting_take_no_time_and_no_memory() {
    let endless = [u64::from(call(A)), 1 << 50, u64::from(call(B)), u64::MAX, 0, u64::MAX];
    let profile = replay(|builder| keyframe(builder, &[], &endless), &[ret(B), ret(A)]);
    assert!(profile.health.open > 1 << 50);
    let cut = [u64::from(ret(A)), 1];
    let profile = replay(|builder| keyframe(builder, &[], &cut), &[tick(1)]);
    assert!(profile.health.warnings.iter().any(|text| text.contains("cannot be read")));
}
