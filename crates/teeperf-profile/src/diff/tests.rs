//! Comparisons of profiles made by hand.

use super::*;
use crate::model::{CallGraph, Node, Profile, Thread, Time, Tree};

/// A profile of functions with calls and self time in milliseconds, each called by the first.
fn profile(program: &str, functions: &[(&str, &str, u64, f64)]) -> Profile {
    let mut nodes = vec![node(0, 0, 0, 0.0)];
    for (at, &(_, _, calls, ms)) in functions.iter().enumerate() {
        nodes.push(node(u32::from(at > 0), at as u32, calls, ms));
    }
    for at in (1..nodes.len()).rev() {
        let total = nodes[at].total;
        let parent = nodes[at].parent as usize;
        nodes[parent].total += total;
    }
    let mut profile = Profile {
        functions: functions.iter().map(|&(name, module, ..)| function(name, module)).collect(),
        threads: vec![Thread { tree: Tree { nodes }, merged: 1, ..Thread::default() }],
        ..Profile::default()
    };
    profile.info.command = vec![format!("./{program}")];
    profile.info.period_ns = 100_000.0;
    profile
}

fn function(name: &str, module: &str) -> Function {
    Function { name: name.into(), module: module.into(), ..Function::default() }
}

fn node(parent: u32, function: u32, calls: u64, ms: f64) -> Node {
    let time = Time::from(ms * 1e6);
    Node {
        parent,
        function: FunctionId(function),
        calls,
        self_time: time,
        total: time,
        extremes: None,
        spent: Default::default(),
    }
}

fn compared(before: &[Profile], after: &[Profile], options: &Options) -> Diff {
    let mut comparison = Comparison::default();
    before.iter().for_each(|profile| comparison.add(Side::Before, "b", profile.clone()));
    after.iter().for_each(|profile| comparison.add(Side::After, "a", profile.clone()));
    comparison.finish(options)
}

/// Name, presence, calls and self time of both sides in milliseconds, and whether the latter changed.
fn rows(diff: &Diff) -> Vec<(&str, Presence, [f64; 4], bool)> {
    let row = |change: &Change| {
        let Change { self_time, calls, .. } = change;
        let figures = [calls.before, calls.after, self_time.before / 1e6, self_time.after / 1e6];
        let name = diff.functions[change.function.0 as usize].name.as_str();
        (name, change.presence, figures, self_time.is_change)
    };
    diff.changes.iter().map(row).collect()
}

#[test]
fn functions_are_matched_whatever_builds_call_their_files() {
    let before = profile(
        "old",
        &[
            ("main", "old", 1, 100.0),
            ("parse.constprop.0", "old", 4, 300.0),
            ("inflate", "libz.so.1.2", 7, 50.0),
            ("left", "old", 2, 80.0),
        ],
    );
    let after = profile(
        "new",
        &[
            ("main", "new", 1, 101.0),
            ("parse", "new", 4, 600.0),
            ("inflate", "libz.so.1.3", 7, 51.0),
            ("came", "new", 3, 90.0),
        ],
    );
    let diff = compared(&[before], &[after], &Options::default());
    assert_eq!(
        rows(&diff),
        [
            ("parse", Presence::Both, [4.0, 4.0, 300.0, 600.0], true),
            ("came", Presence::New, [0.0, 3.0, 0.0, 90.0], true),
            ("left", Presence::Gone, [2.0, 0.0, 80.0, 0.0], true),
            ("main", Presence::Both, [1.0, 1.0, 100.0, 101.0], false),
            ("inflate", Presence::Both, [7.0, 7.0, 50.0, 51.0], false),
        ]
    );
    assert_eq!((diff.whole.before, diff.whole.after, diff.whole.is_change), (530e6, 842e6, true));
    let main =
        diff.changes.iter().find(|c| diff.functions[c.function.0 as usize].name == "main").unwrap();
    assert_eq!((main.total.before, main.total.after), (530e6, 842e6));
    // As the second side calls it.
    assert_eq!(diff.functions[main.function.0 as usize].module, "new");
}

#[test]
fn one_module_of_another_name_is_the_same() {
    let of = |module: &str, other: &str| {
        profile(
            "run.sh",
            &[("main", module, 1, 10.0), ("f", module, 2, 20.0), ("g", other, 2, 20.0)],
        )
    };
    let diff =
        compared(&[of("app-old", "libx.so")], &[of("app-new", "libx.so")], &Options::default());
    assert_eq!(diff.paired, Some(("app-old".into(), "app-new".into())));
    assert!(
        diff.changes.iter().all(|change| change.presence == Presence::Both),
        "{:?}",
        rows(&diff)
    );
    assert_eq!(
        diff.paths.iter().filter(|path| path.sums.before.calls != path.sums.after.calls).count(),
        0
    );
    // Two of them may be anything.
    let diff =
        compared(&[of("app-old", "libx.so")], &[of("app-new", "liby.so")], &Options::default());
    assert_eq!(diff.paired, None);
    assert!(diff.changes.iter().all(Change::is_one_sided));
}

#[test]
fn a_program_that_another_one_ran_is_itself() {
    let of = |command: &str| {
        let functions = [("main", "app", 1, 10.0), ("f", "app", 2, 20.0), ("g", "libx.so", 2, 5.0)];
        let kernel = ("irq", "[kernel]", 1, 0.1);
        let unknown = ("[unknown]", "", 1, 1.0);
        let mut functions = functions.to_vec();
        functions.extend((command == "perf").then_some(kernel));
        functions.push(unknown);
        profile(command, &functions)
    };
    for (before, after) in [("perf", "app"), ("app", "perf")] {
        let diff = compared(&[of(before)], &[of(after)], &Options::default());
        let apart = diff.changes.iter().filter(|change| change.is_one_sided());
        let apart: Vec<_> = apart.map(|c| &diff.functions[c.function.0 as usize].name).collect();
        assert_eq!(apart, ["irq"], "{:?}", rows(&diff));
        let paths = diff.paths.iter().filter(|p| p.sums.before.calls != p.sums.after.calls);
        assert_eq!(paths.count(), 1);
    }
}

#[test]
fn runs_are_means_and_the_second_sides_is_what_times_become() {
    let of = |ms| profile("p", &[("main", "p", 1, ms), ("f", "p", 10, 3.0 * ms)]);
    let sides = ([of(100.0), of(300.0)], [of(400.0)]);
    let diff = compared(&sides.0, &sides.1, &Options::default());
    assert_eq!(rows(&diff)[0].2, [10.0, 10.0, 600.0, 1200.0]);
    let options = Options { normalize: true, ..Options::default() };
    let diff = compared(&sides.0, &sides.1, &options);
    assert_eq!(rows(&diff)[0], ("f", Presence::Both, [10.0, 10.0, 1200.0, 1200.0], false));
    let f = &diff.paths[2].sums;
    assert_eq!((f.before.self_ns, f.after.self_ns), (1200e6, 1200e6));
}

#[test]
fn paths_of_both_sides_stand_in_one_tree() {
    let before = profile("p", &[("main", "p", 1, 10.0), ("old", "p", 1, 20.0)]);
    let after = profile("p", &[("main", "p", 1, 10.0), ("new", "p", 5, 40.0)]);
    let diff = compared(&[before], &[after], &Options::default());
    let paths: Vec<_> = diff
        .paths
        .iter()
        .skip(1)
        .map(|path| {
            let name = diff.functions[path.function.0 as usize].name.as_str();
            (path.parent, name, path.sums.before.total_ns / 1e6, path.sums.after.total_ns / 1e6)
        })
        .collect();
    assert_eq!(paths, [(0, "main", 30.0, 50.0), (1, "old", 20.0, 0.0), (1, "new", 0.0, 40.0)]);
    assert!(diff.tells_apart(20e6, 40e6) && !diff.tells_apart(20e6, 20.5e6));
}

#[test]
fn lost_calls_are_no_change_of_calls() {
    let of = |calls, lost| {
        let mut profile = profile("p", &[("main", "p", 1, 10.0), ("f", "p", calls, 20.0)]);
        profile.health.lost = lost;
        profile
    };
    let calls =
        |diff: &Diff| diff.changes.iter().find(|c| c.calls.before > 1.0).unwrap().calls.is_change;
    assert!(calls(&compared(&[of(100, 0)], &[of(101, 0)], &Options::default())));
    assert!(!calls(&compared(&[of(100, 0)], &[of(101, 5)], &Options::default())));
    assert!(calls(&compared(&[of(100, 0)], &[of(110, 5)], &Options::default())));
}

#[test]
fn files_without_call_paths_are_compared_too() {
    let of = |ms: f64| {
        let (main, f) = (FunctionId(0), FunctionId(1));
        let graph =
            CallGraph::new([(main, 1e6), (f, ms * 1e6)], [(None, main, 1), (Some(main), f, 9)]);
        Profile {
            functions: vec![function("main", "p"), function("f", "p")],
            graph: Some(graph),
            ..Profile::default()
        }
    };
    let diff = compared(&[of(10.0)], &[of(30.0)], &Options::default());
    assert_eq!(rows(&diff)[0], ("f", Presence::Both, [9.0, 9.0, 10.0, 30.0], true));
    assert!(diff.runs.before[0].has_graph);
}

#[test]
fn nothing_is_compared_with_nothing() {
    let diff = compared(&[Profile::default()], &[Profile::default()], &Options::default());
    assert!(diff.changes.is_empty() && !diff.whole.is_change);
}
