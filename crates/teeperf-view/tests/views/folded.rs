//! Folded stacks, read back the way flamegraph.pl reads them.

use crate::support::{exact, function, kitchen, node, thread};
use teeperf_profile::model::Profile;
use teeperf_view::folded::{self, Unit};

fn fold(profile: &Profile, unit: Unit) -> String {
    let mut out = Vec::new();
    folded::write(profile, unit, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// As flamegraph.pl: `/^(.*)\s+?(\d+(?:\.\d*)?)$/`, then split at `;`.
fn parse(folded: &str) -> Vec<(Vec<&str>, u64)> {
    let line = |line| -> (Vec<&str>, u64) {
        let (stack, weight) = str::rsplit_once(line, ' ').expect("a space before the weight");
        (stack.split(';').collect(), weight.parse().expect("a whole number"))
    };
    folded.lines().map(line).collect()
}

#[test]
fn every_call_path_with_time_of_its_own() {
    assert_eq!(fold(&kitchen(), Unit::Nanoseconds), include_str!("data/folded/kitchen.folded"));
}

#[test]
fn round_trip_through_another_reader() {
    let profile = kitchen();
    let folded = fold(&profile, Unit::Microseconds);
    let stacks = parse(&folded);
    assert_eq!(stacks.len(), 7);
    assert_eq!(stacks[3], (vec!["kitchen/11", "main", "parse", "parse", "read"], 200_000));
    let sum: u64 = stacks.iter().map(|(_, weight)| weight).sum();
    assert_eq!(sum, 1_250_000);
}

#[test]
fn names_cannot_break_a_line() {
    let mut profile = kitchen();
    profile.functions =
        ["a;b", "line\nbreak\r", "f(int, char) 7", " "].map(|name| function(name, "")).into();
    profile.threads[0].name = "two words;three".into();
    profile.threads[1].merged = 12;
    let folded = fold(&profile, Unit::Nanoseconds);
    let stacks = parse(&folded);
    assert_eq!(stacks.len(), 7);
    let thread = "two_words:three/11";
    assert_eq!(stacks[0], (vec![thread, "a:b"], 100_000_000));
    assert_eq!(stacks[1], (vec![thread, "a:b", "line break"], 300_000_000));
    assert_eq!(stacks[4], (vec![thread, "a:b", "f(int, char) 7"], 300_000_000));
    assert_eq!(stacks[5].0, ["reader_(12_threads)", "[no name]"]);
}

#[test]
fn fractions_are_carried_not_dropped() {
    let mut nodes = vec![node(0, 0, 0, 0.0, 0.0)];
    for _ in 0..1000 {
        let mut short = node(0, 0, 1, 0.0, 0.0);
        short.self_time = exact(300.0);
        short.total = exact(300.0);
        nodes.push(short);
    }
    let profile = Profile {
        functions: vec![function("f", "m")],
        threads: vec![thread(1, "t", nodes)],
        ..Profile::default()
    };
    let folded = fold(&profile, Unit::Microseconds);
    let sum: u64 = parse(&folded).iter().map(|(_, weight)| weight).sum();
    assert_eq!(sum, 300);
}
