//! Tables, filters and sums of profiles. The profiles are written down by hand, and so is
//! what must come of them.

use teeperf_profile::aggregate::{self, Sort};
use teeperf_profile::combine::combine;
use teeperf_profile::model::{
    CallGraph, Function, FunctionId, Health, Info, Node, Profile, Sampled, Spent, Thread, Time,
    Tree,
};
use teeperf_profile::pattern::Pattern;

fn time(ns: f64) -> Time {
    Time { value: ns, low: ns / 2.0, high: ns * 2.0 }
}

fn functions(names: &[&str]) -> Vec<Function> {
    let function =
        |name: &&str| Function { name: (*name).into(), module: "m".into(), ..Function::default() };
    names.iter().map(function).collect()
}

/// A tree of `(parent, function, calls, self, total)`; the root comes before these.
fn tree(root_total: f64, nodes: &[(u32, u32, u64, f64, f64)]) -> Tree {
    let root = Node {
        parent: 0,
        function: FunctionId(0),
        calls: 0,
        self_time: time(0.0),
        total: time(root_total),
        extremes: None,
        spent: Default::default(),
    };
    let rest = nodes.iter().map(|&(parent, function, calls, own, total)| Node {
        parent,
        function: FunctionId(function),
        calls,
        self_time: time(own),
        total: time(total),
        extremes: None,
        spent: Default::default(),
    });
    Tree { nodes: std::iter::once(root).chain(rest).collect() }
}

/// main(0) → walk(1) → walk → leaf(2); main → leaf.
fn recursive() -> (Tree, Vec<Function>) {
    let nodes = [
        (0, 0, 1, 10.0, 100.0),
        (1, 1, 2, 20.0, 70.0),
        (2, 1, 5, 30.0, 50.0),
        (3, 2, 9, 20.0, 20.0),
        (1, 2, 4, 20.0, 20.0),
    ];
    (tree(100.0, &nodes), functions(&["main", "walk", "leaf"]))
}

#[test]
fn recursion_is_in_the_total_once() {
    let (tree, functions) = recursive();
    let rows = aggregate::rows(&tree, &functions, Sort::Total);
    let told: Vec<_> =
        rows.iter().map(|r| (r.function.0, r.calls, r.total.value, r.self_time.value)).collect();
    assert_eq!(told, [(0, 1, 100.0, 10.0), (1, 7, 70.0, 50.0), (2, 13, 40.0, 40.0)]);
    let order = |sort| {
        aggregate::rows(&tree, &functions, sort).iter().map(|r| r.function.0).collect::<Vec<_>>()
    };
    assert_eq!(order(Sort::SelfTime), [1, 2, 0]);
    assert_eq!(order(Sort::Calls), [2, 1, 0]);
    assert_eq!(order(Sort::Name), [2, 0, 1]);
}

#[test]
fn callers_and_callees_count_recursion_once() {
    let (tree, functions) = recursive();
    let told = |rows: Vec<(Option<FunctionId>, aggregate::Row)>| -> Vec<_> {
        rows.iter().map(|(who, row)| (who.map(|id| id.0), row.calls, row.total.value)).collect()
    };
    assert_eq!(
        told(aggregate::callers(&tree, &functions, FunctionId(1))),
        [(Some(0), 2, 70.0), (Some(1), 5, 0.0)]
    );
    assert_eq!(
        told(aggregate::callers(&tree, &functions, FunctionId(2))),
        [(Some(0), 4, 20.0), (Some(1), 9, 20.0)]
    );
    assert_eq!(told(aggregate::callers(&tree, &functions, FunctionId(0))), [(None, 1, 100.0)]);
    assert_eq!(
        told(aggregate::callees(&tree, &functions, FunctionId(1))),
        [(Some(2), 9, 20.0), (Some(1), 5, 0.0)]
    );
    assert_eq!(
        told(aggregate::callees(&tree, &functions, FunctionId(0))),
        [(Some(1), 2, 70.0), (Some(2), 4, 20.0)]
    );
    assert_eq!(told(aggregate::callees(&tree, &functions, FunctionId(2))), []);
}

#[test]
fn focus_keeps_paths_through_a_function_and_ignore_drops_them() {
    let (tree, functions) = recursive();
    let told = |tree: &Tree| -> Vec<_> {
        tree.nodes
            .iter()
            .map(|n| (n.parent, n.function.0, n.self_time.value, n.total.value))
            .collect()
    };
    let found = |text: &str| Pattern::new(text).unwrap().among(&functions);
    let focused = aggregate::focus(&tree, &found("walk"));
    assert_eq!(
        told(&focused),
        [
            (0, 0, 0.0, 70.0),
            (0, 0, 0.0, 70.0),
            (1, 1, 20.0, 70.0),
            (2, 1, 30.0, 50.0),
            (3, 2, 20.0, 20.0)
        ]
    );
    let ignored = aggregate::ignore(&tree, &found("walk"));
    assert_eq!(told(&ignored), [(0, 0, 0.0, 30.0), (0, 0, 10.0, 30.0), (1, 2, 20.0, 20.0)]);
    let nothing = aggregate::focus(&tree, &found("nobody"));
    assert_eq!(told(&nothing), [(0, 0, 0.0, 0.0)]);
}

#[test]
fn what_a_function_called_adds_up_where_functions_call_each_other_in_turn() {
    // even calls odd, which calls even, which calls odd and leaf; odd calls leaf as well.
    let nodes = [
        (0, 0, 1, 10.0, 100.0),
        (1, 1, 1, 20.0, 90.0),
        (2, 0, 1, 5.0, 63.0),
        (3, 1, 1, 40.0, 48.0),
        (4, 2, 3, 8.0, 8.0),
        (3, 2, 2, 10.0, 10.0),
        (2, 2, 1, 7.0, 7.0),
    ];
    let (tree, functions) = (tree(100.0, &nodes), functions(&["even", "odd", "leaf"]));
    let of = |id| aggregate::callees(&tree, &functions, FunctionId(id));
    let told = |id| -> Vec<_> {
        of(id).iter().map(|(who, row)| (who.map(|id| id.0), row.calls, row.total.value)).collect()
    };
    // 10 and 5 of its own, and what is left of 100.
    assert_eq!(told(0), [(Some(1), 2, 75.0), (Some(2), 2, 10.0)]);
    // Of 90 the 60 are its own.
    assert_eq!(told(1), [(Some(0), 1, 15.0), (Some(2), 4, 15.0)]);
    // Bounds likewise: the upper ones are twice as much here.
    assert_eq!(of(0).iter().map(|(_, row)| row.total.high).sum::<f64>(), 170.0);
}

#[test]
fn a_pattern_of_many_stars_is_done_at_once() {
    let fits = |pattern: &str, name: &str| {
        let function = Function { name: name.into(), ..Function::default() };
        Pattern::new(pattern).unwrap().fits(&function)
    };
    assert!(fits("std::*<*>::push", "std::vec<int>::push"));
    assert!(!fits(&"*a".repeat(60), &"a".repeat(59)));
    assert!(!fits(&format!("{}b", "*a".repeat(40)), &"a".repeat(5000)));
}

#[test]
fn threads_are_merged_path_by_path() {
    let one = Thread {
        tree: tree(30.0, &[(0, 0, 1, 10.0, 30.0), (1, 1, 2, 20.0, 20.0)]),
        ..Thread::default()
    };
    let two = Thread {
        tree: tree(9.0, &[(0, 1, 5, 4.0, 4.0), (0, 0, 7, 2.0, 5.0), (2, 1, 1, 3.0, 3.0)]),
        ..Thread::default()
    };
    let merged = aggregate::merged([&one, &two]);
    let told: Vec<_> = merged
        .nodes
        .iter()
        .map(|n| (n.parent, n.function.0, n.calls, n.self_time.value, n.total.value))
        .collect();
    assert_eq!(
        told,
        [(0, 0, 0, 0.0, 39.0), (0, 0, 8, 12.0, 35.0), (1, 1, 3, 23.0, 23.0), (0, 1, 5, 4.0, 4.0)]
    );
}

fn profile(names: &[&str], events: u64) -> Profile {
    let nodes: Vec<_> =
        (0..names.len() as u32).map(|i| (i, i, events + u64::from(i), 2.0, 2.0)).collect();
    let threads = vec![Thread { tid: events as u32, tree: tree(2.0, &nodes), ..Thread::default() }];
    let gaps = vec![(format!("gap {}", events % 2), events, 10)];
    let health = Health { events, gaps, warnings: vec![format!("{events}")], ..Health::default() };
    Profile { functions: functions(names), threads, health, ..Profile::default() }
}

#[test]
fn combining_is_associative_and_makes_functions_one() {
    let make = || [profile(&["a", "b"], 1), profile(&["b", "c"], 2), profile(&["c", "a", "d"], 3)];
    let [one, two, three] = make();
    let left = combine(combine(one, two), three);
    let [one, two, three] = make();
    let right = combine(one, combine(two, three));
    assert_eq!(left.functions, right.functions);
    assert_eq!(left.health, right.health);
    let trees =
        |profile: &Profile| profile.threads.iter().map(|t| t.tree.clone()).collect::<Vec<_>>();
    assert_eq!(trees(&left), trees(&right));

    let names: Vec<&str> = left.functions.iter().map(|f| &f.name[..]).collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
    let of = |thread: usize| {
        left.threads[thread].tree.nodes[1..].iter().map(|n| n.function.0).collect::<Vec<_>>()
    };
    assert_eq!((of(0), of(1), of(2)), (vec![0, 1], vec![1, 2], vec![2, 0, 3]));
    assert_eq!(left.health.events, 6);
    assert_eq!(left.health.gaps, [("gap 1".to_owned(), 4, 20), ("gap 0".to_owned(), 2, 10)]);
}

#[test]
fn where_there_are_only_sums_nothing_beside_them_changes_that() {
    let of = |events, only_sums| Profile {
        health: Health { events, only_sums, ..Health::default() },
        ..Profile::default()
    };
    let both = |a, b| combine(a, b).health.only_sums;
    assert!(both(of(4, true), of(0, false)) && both(of(0, false), of(4, true)));
    assert!(both(of(4, true), of(2, true)));
    assert!(!both(of(4, true), of(2, false)) && !both(of(2, false), of(4, true)));
    assert!(!both(of(0, true), of(2, false)) && !both(of(2, false), of(0, true)));
}

#[test]
fn graphs_are_combined_by_their_functions() {
    let graph = |names: &[&str], period_ns: f64| Profile {
        info: teeperf_profile::model::Info { period_ns, ..Default::default() },
        functions: functions(names),
        graph: Some(CallGraph::new(
            [(FunctionId(0), 100.0), (FunctionId(1), 300.0)],
            [(Some(FunctionId(0)), FunctionId(1), 2)],
        )),
        ..Profile::default()
    };
    let sum = combine(graph(&["a", "b"], 100.0), graph(&["c", "b"], 100.0));
    let rows: Vec<_> = aggregate::table(&sum, Sort::Total)
        .iter()
        .map(|row| (row.function.0, row.calls, row.self_time.value, row.total.value))
        .collect();
    assert_eq!(rows, [(1, 4, 600.0, 600.0), (0, 0, 100.0, 400.0), (2, 0, 100.0, 400.0)]);
    // A sample each 100 ns: four are known to twice their root, more or less.
    let row = aggregate::table(&sum, Sort::Total)[1];
    assert_eq!((row.total.low, row.total.high), (0.0, 800.0));
    let alone = combine(
        Profile { functions: functions(&["z"]), ..Profile::default() },
        graph(&["a", "b"], 0.0),
    );
    assert_eq!(alone.graph.map(|graph| graph.arcs[0].callee), Some(FunctionId(2)));
}

/// Of a clock that ticks so often, nanoseconds.
fn ticking(period_ns: f64) -> Info {
    Info { period_ns, ..Info::default() }
}

#[test]
fn a_count_of_ticks_is_known_to_twice_its_root() {
    let row = |value: f64| aggregate::Row {
        function: FunctionId(0),
        calls: 0,
        total: Time { value, low: value, high: value },
        self_time: Time { value, low: value - 1.0, high: value + 1.0 },
        extremes: None,
        spent: Default::default(),
    };
    // A hundred ticks of 4 ns, one, and none.
    let mut rows = [row(400.0), row(4.0), row(0.0)];
    aggregate::add_sampling_error(&mut rows, &ticking(4.0), &Sampled::default());
    let bounds: Vec<_> = rows.iter().map(|row| (row.total.low, row.total.high)).collect();
    assert_eq!(bounds, [(320.0, 480.0), (0.0, 16.0), (0.0, 12.0)]);
    assert_eq!((rows[0].self_time.low, rows[0].self_time.high), (319.0, 481.0));
    // 6 ns of each call may have gone to the caller.
    let mut called = [aggregate::Row { calls: 50, ..row(400.0) }];
    aggregate::add_sampling_error(&mut called, &ticking(4.0), &Sampled::default());
    assert_eq!((called[0].total.low, called[0].total.high), (320.0, 780.0));
    assert_eq!((called[0].self_time.low, called[0].self_time.high), (319.0, 781.0));
    let counted = called;
    aggregate::add_sampling_error(&mut called, &ticking(0.0), &Sampled::default());
    assert_eq!(called, counted, "a counter counts all");
}

/// A function of so many milliseconds and samples.
fn sampled(ms: f64, spent: Spent) -> aggregate::Row {
    let time = Time::from(ms * 1e6);
    aggregate::Row {
        function: FunctionId(0),
        calls: 1,
        total: time,
        self_time: time,
        extremes: None,
        spent: Spent { variance: ms * 1e12, total_variance: ms * 1e12, ..spent },
    }
}

/// Guards: functions that lack what no sample tells.
#[test]
fn bounds_have_what_no_sample_tells() {
    let row = |own: f64, unsampled: f64| {
        sampled(own, Spent { unsampled_ns: unsampled * 1e6, ..Spent::default() })
    };
    let info = Info { timer_samples: Some(100), ..ticking(1e6) };
    let high_of = |unsampled: f64| {
        let mut rows = [row(60.0, 0.0), row(20.0, 0.0), row(unsampled, unsampled)];
        let all = Sampled { whole_ns: 100e6, unsampled_ns: unsampled * 1e6, ..Sampled::default() };
        aggregate::add_sampling_error(&mut rows, &info, &all);
        rows.map(|row| row.total.high)
    };
    let (without, with) = (high_of(0.0), high_of(20.0));
    assert_eq!(with[0], (without[0] + 20e6).min(100e6));
    assert_eq!(with[1], without[1] + 20e6);
    // The time without a sample does not have itself twice.
    assert!((20e6..40e6).contains(&with[2]), "{with:?}");
    // Nor is a figure of little time and large variance as wide as the whole.
    let mut rest = [aggregate::Row {
        spent: Spent { total_variance: 25e12, ..Spent::default() },
        ..row(0.01, 0.0)
    }];
    let all = Sampled { whole_ns: 1e9, ..Sampled::default() };
    aggregate::add_sampling_error(&mut rest, &info, &all);
    assert!(rest[0].total.high < 50e6, "{rest:?}");
}

/// Guards: functions whose work a processor did beside that of hooks.
#[test]
fn bounds_have_what_hooks_may_hide() {
    let row = |own: f64, hooks: f64, total_hooks: f64| {
        let (hooks_ns, total_hooks_ns) = (hooks * 1e6, total_hooks * 1e6);
        sampled(own, Spent { hooks_ns, total_hooks_ns, ..Spent::default() })
    };
    let info = Info { timer_samples: Some(1000), ..ticking(1e6) };
    let bounds_of = |hooks: f64| {
        let mut rows = [row(300.0, 0.0, hooks), row(400.0, 0.0, 0.0), row(300.0, hooks, hooks)];
        let (whole_ns, hooks_ns) = ((1000.0 + hooks) * 1e6, hooks * 1e6);
        let all = Sampled { whole_ns, hooks_ns, ..Sampled::default() };
        aggregate::add_sampling_error(&mut rows, &info, &all);
        rows.map(|row| [row.self_time, row.total])
    };
    let is_near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.02;
    let (without, with) = (bounds_of(0.0), bounds_of(400.0));
    // A quarter of 400 ms may be work of the function that has the hooks. It makes the others'
    // shares smaller, and not that of their caller with all it calls.
    let [[caller, caller_total], [other, _], [hooked, _]] = with;
    assert!(is_near(hooked.high, without[2][0].high + 100e6), "{hooked:?} {without:?}");
    assert!(is_near(other.low, without[1][0].low / 1.1), "{other:?} {without:?}");
    assert!(is_near(caller.low, without[0][0].low / 1.1), "{caller:?} {without:?}");
    assert!(is_near(caller_total.low, without[0][1].low), "{caller_total:?} {without:?}");
    assert!(is_near(caller_total.high, without[0][1].high + 100e6), "{caller_total:?}");
    assert!(is_near(hooked.low, without[2][0].low), "{hooked:?} {without:?}");
}

/// Guards: bounds of a part of a profile that are narrower than those of the same functions in the
/// whole, which samples of other functions make no surer.
#[test]
fn a_part_has_the_bounds_of_the_whole() {
    let node = |parent, function, ms: f64, unsampled: f64| Node {
        parent,
        function: FunctionId(function),
        calls: 1,
        self_time: Time::from(ms * 1e6),
        total: Time::default(),
        extremes: None,
        spent: Spent { variance: ms * 1e12, unsampled_ns: unsampled * 1e6, ..Spent::default() },
    };
    let thread = |nodes| {
        let mut tree = Tree { nodes };
        // Totals of trees without a level in between.
        for node in tree.nodes.iter_mut() {
            node.total = node.self_time;
            node.spent = node.spent.of_leaf();
        }
        tree.nodes[0].total = tree.nodes.iter().skip(1).fold(Time::default(), |mut sum, node| {
            sum += node.total;
            sum
        });
        Thread { tree, ..Thread::default() }
    };
    let function = |name: &str| Function { name: name.into(), ..Function::default() };
    let profile = Profile {
        info: Info { timer_samples: Some(100), ..ticking(1e6) },
        functions: ["f", "g", "[no sample]"].map(function).into(),
        threads: vec![
            thread(vec![
                node(0, 0, 0.0, 0.0),
                node(0, 0, 9.0, 0.0),
                node(0, 1, 50.0, 0.0),
                node(0, 2, 5.0, 5.0),
            ]),
            thread(vec![node(0, 0, 0.0, 0.0), node(0, 1, 40.0, 0.0)]),
        ],
        ..Profile::default()
    };
    let of_f = |profile: &Profile| {
        let rows = aggregate::table(profile, Sort::Name);
        rows.iter().find(|row| row.function == FunctionId(0)).unwrap().total
    };
    let whole = of_f(&profile);
    assert!(whole.low < 6e6 && whole.high > 20e6, "{whole:?}");
    let found = Pattern::new("f").unwrap().among(&profile.functions);
    let part = profile.with_trees(|tree, _| aggregate::focus(tree, &found));
    assert_eq!((part.threads.len(), of_f(&part)), (1, whole));
}

/// Guards: functions whose time is the kernel's, of which no tick tells.
#[test]
fn a_function_may_have_time_of_the_kernel_that_no_tick_tells() {
    let info = Info { timer_samples: Some(100), ..ticking(1e6) };
    let high_of = |kernel: f64| {
        let mut rows = [sampled(0.0, Spent::default())];
        let (kernel_ns, tick_ns) = (kernel * 1e6, 4e6);
        let all = Sampled { whole_ns: 1e9, kernel_ns, tick_ns, ..Sampled::default() };
        aggregate::add_sampling_error(&mut rows, &info, &all);
        rows[0].total.high / 1e6
    };
    assert!(high_of(0.0) < 5.0);
    assert!((5.0..7.0).contains(&high_of(4.0)));
    assert!((15.0..17.0).contains(&high_of(100.0)));
}
