//! What is said of times where a thread's tree had no room for paths.

mod support;

use std::collections::BTreeMap;

use support::Builder;
use teeperf_profile::aggregate::{self, Row, Sort};
use teeperf_profile::model::{Profile, Time};
use teeperf_profile::selection::Selection;
use teeperf_profile::{Options, Recording};
use teeperf_wire::body::tree::{Header, encoding, word};
use teeperf_wire::packet::kind;
use teeperf_wire::word::call;

/// How far back the caller is, word, calls, units in itself.
type Node = (u64, u32, u64, u64);

fn packet(thread: u32, nodes: &[Node]) -> Vec<u8> {
    let header = Header {
        process: 1,
        thread,
        tid: thread,
        nodes: nodes.len() as u32,
        encoding: encoding::PLAIN,
        ..Header::default()
    };
    let mut packet = header.encode().to_vec();
    for &(back, word, calls, own) in nodes {
        packet.extend(leb128(back));
        packet.extend(leb128(word.into()));
        if word == word::FAR {
            packet.push(0);
        }
        packet.extend([calls, own, 0, 0].into_iter().flat_map(leb128));
    }
    packet
}

fn leb128(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

const MAIN: u32 = call(0x1000);
const FILL: u32 = call(0x1010);
const SERVE: u32 = call(0x1020);
const WAIT: u32 = call(0x1030);
const IDLE: u32 = call(0x1040);

/// A thread of which nothing but main and fill found room, with so many calls that have no function; and another
/// one with room for all.
fn profile(nameless: u64) -> Profile {
    let full = [
        (0, word::FAR, 0, 0),
        (1, word::OVERFLOW, nameless, 500),
        (2, MAIN, 1, 10),
        (1, FILL, 5, 20),
        (3, SERVE, 1, 0),
        (4, WAIT, 40, 800),
    ];
    let mut builder = Builder::new();
    builder.packet(kind::TREE, &packet(1, &full));
    builder
        .packet(kind::TREE, &packet(2, &[(0, word::FAR, 0, 0), (1, IDLE, 1, 7), (1, WAIT, 1, 2)]));
    let name = |site, name| (site, 8, 1, name, "a.c");
    let names = [
        name(0x1000, "main"),
        name(0x1010, "fill"),
        name(0x1020, "serve"),
        name(0x1030, "wait"),
        name(0x1040, "idle"),
    ];
    builder.symbols(1, 0x1000, &names);
    let bytes = builder.end();
    Recording::from_read(&bytes[..], "test").replay(&mut Options::default()).unwrap()
}

/// Least, figure and most of self time and of total, by function.
fn rows(profile: &Profile) -> BTreeMap<String, [[f64; 3]; 2]> {
    let figures = |time: Time| [time.low, time.value, time.high];
    let name = |row: &Row| profile.functions[row.function.0 as usize].name.clone();
    let rows = aggregate::table(profile, Sort::Name);
    rows.iter().map(|row| (name(row), [figures(row.self_time), figures(row.total)])).collect()
}

#[test]
fn times_that_lack_what_found_no_room_have_bounds_that_say_so() {
    let profile = profile(0);
    let rows = rows(&profile);
    let time = [0.0, 0.0, 500.0];
    assert_eq!(rows["serve"], [time, [0.0, 0.0, 1300.0]]);
    assert_eq!(rows["main"], [[10.0; 3], [30.0, 30.0, 1330.0]]);
    assert_eq!(rows["fill"], [[20.0; 3], [20.0, 20.0, 1320.0]]);
    assert_eq!(rows["[no room]"], [[500.0; 3], [1300.0; 3]]);
    // Of it, 800 are known, and 2 of the other thread.
    assert_eq!(rows["wait"], [[802.0, 802.0, 1302.0]; 2]);
    // Nothing is missing in the other thread.
    assert_eq!(rows["idle"], [[7.0; 3], [9.0; 3]]);
}

#[test]
fn and_so_have_their_paths() {
    let profile = profile(0);
    let tree = aggregate::merged(&profile.threads);
    let highs = |name: &str| {
        let is = |at: usize| profile.functions[tree.nodes[at].function.0 as usize].name == name;
        let at = (1..tree.nodes.len()).find(|&at| is(at)).unwrap();
        (tree.nodes[at].self_time.high, tree.nodes[at].total.high)
    };
    assert_eq!((highs("main"), highs("fill")), ((10.0, 1330.0), (20.0, 1320.0)));
    assert_eq!((highs("serve"), highs("wait")), ((500.0, 1300.0), (1300.0, 1300.0)));
    assert_eq!((highs("[no room]"), highs("idle")), ((500.0, 1300.0), (7.0, 9.0)));
    assert_eq!(tree.nodes[0].total.high, 1339.0);
}

#[test]
fn what_has_no_function_may_be_any() {
    let rows = rows(&profile(3));
    assert_eq!(rows["fill"], [[20.0, 20.0, 520.0], [20.0, 20.0, 1320.0]]);
    assert_eq!(rows["idle"], [[7.0, 7.0, 507.0], [9.0, 9.0, 1309.0]]);
    assert_eq!(rows["serve"], [[0.0, 0.0, 500.0], [0.0, 0.0, 1300.0]]);
}

#[test]
fn what_is_looked_at_alone_lacks_as_much() {
    let focus = Selection {
        focus: vec![teeperf_profile::pattern::Pattern::new("main").unwrap()],
        ..Selection::default()
    };
    let rows = rows(&focus.of(profile(0)));
    assert_eq!(rows["main"], [[10.0; 3], [30.0, 30.0, 1330.0]]);
    assert!(!rows.contains_key("[no room]"));
}

#[test]
fn which_calls_have_returned_sums_do_not_say() {
    assert!(profile(0).health.only_sums);
}

#[test]
fn how_much_is_missing_is_said() {
    let said = |nameless| profile(nameless).health.warnings.join("\n");
    let (warnings, but) = (said(0), "but for 3 calls of functions for which there was none either");
    assert!(warnings.contains("41 calls found no room on their paths"), "{warnings}");
    assert!(warnings.contains("1.300 µs there are in no total"), "{warnings}");
    assert!(warnings.contains("500.000 ns of it are `[no room]`'s own"), "{warnings}");
    assert!(warnings.contains("--tree-size") && !warnings.contains("but for"), "{warnings}");
    assert!(said(3).contains(but), "{}", said(3));
}
