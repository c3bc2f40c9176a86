//! Profiles with round figures, made by hand.

use teeperf_profile::model::{
    CallGraph, Extremes, Function, FunctionId, Health, Info, Node, Profile, Spent, Thread, Time,
    Tree, Unit,
};

/// A time without error.
pub(crate) fn exact(ns: f64) -> Time {
    Time { value: ns, low: ns, high: ns }
}

/// A function without a source file.
pub(crate) fn function(name: &str, module: &str) -> Function {
    Function { name: name.into(), module: module.into(), ..Function::default() }
}

/// A node with exact times in milliseconds.
pub(crate) fn node(parent: u32, function: u32, calls: u64, self_ms: f64, total_ms: f64) -> Node {
    Node {
        parent,
        function: FunctionId(function),
        calls,
        self_time: exact(self_ms * 1e6),
        total: exact(total_ms * 1e6),
        extremes: None,
        spent: Default::default(),
    }
}

/// A thread of these nodes; the first is the root.
pub(crate) fn thread(tid: u32, name: &str, nodes: Vec<Node>) -> Thread {
    Thread { pid: 10, tid, name: name.into(), merged: 1, tree: Tree { nodes }, ..Thread::default() }
}

/// Two threads and a recursion, with their shortest and longest calls of all functions but `serve`; the tick is
/// 100 µs.
pub(crate) fn summed_kitchen() -> Profile {
    let mut profile = kitchen();
    for node in profile.threads.iter_mut().flat_map(|thread| &mut thread.tree.nodes[1..]) {
        let (shortest_ns, longest_ns) = (f64::from(node.parent) * 150_000.0, node.total.value);
        let is_known = node.function != FunctionId(3);
        node.extremes = is_known.then_some(Extremes { shortest_ns, longest_ns });
    }
    profile
}

/// Two threads and a recursion:
///
/// ```text
/// kitchen/11  main 1 s (self 100 ms)
///               parse 600 ms (300) ── parse 300 ms (100) ── read 200 ms (200)
///               read 300 ms (300)
/// reader/12   serve 250 ms (50) ── read 200 ms (200)
/// ```
pub(crate) fn kitchen() -> Profile {
    let mut read = function("read", "libio.so");
    read.file = Some("io/read.c".into());
    read.line = Some(42);
    let first = vec![
        node(0, 0, 0, 0.0, 1000.0),
        node(0, 0, 1, 100.0, 1000.0),
        node(1, 1, 4, 300.0, 600.0),
        node(2, 1, 2, 100.0, 300.0),
        node(3, 2, 8_000, 200.0, 200.0),
        node(1, 2, 10_000, 300.0, 300.0),
    ];
    let second = vec![
        node(0, 0, 0, 0.0, 250.0),
        node(0, 3, 1, 50.0, 250.0),
        node(1, 2, 5_000, 200.0, 200.0),
    ];
    let first = Thread {
        events: 36_014,
        wall_ns: 1_000_000_000,
        cpu_ns: Some(900_000_000),
        cpu_over_ns: 990_000_000,
        ..thread(11, "kitchen", first)
    };
    let second = Thread {
        events: 10_002,
        wall_ns: 250_000_000,
        waited_ns: 1_500_000,
        ..thread(12, "reader", second)
    };
    Profile {
        info: Info {
            timer_samples: None,
            event: String::new(),
            command: vec!["./kitchen".into(), "--soup".into()],
            host: "stove".into(),
            system: "Linux 6.1".into(),
            machine: "x86_64".into(),
            processor: "CPU".into(),
            processors: 2,
            clock: "tick".into(),
            clock_reason: "chosen by hand".into(),
            is_foreign: false,
            is_from_within: false,
            unit: Unit::Nanoseconds,
            period_ns: 100_000.0,
            asked_ns: 0.0,
            asked_stack: 0,
            started_ns: 1_795_250_559_000_000_000,
            duration_ns: 2_000_000_000,
            exit_status: Some(3),
            signal: None,
            summed: false,
            filters: Vec::new(),
            timed: Vec::new(),
        },
        functions: vec![
            function("main", "kitchen"),
            function("parse", "kitchen"),
            read,
            function("serve", "kitchen"),
        ],
        threads: vec![first, second],
        health: Health { events: 46_016, ..Health::default() },
        graph: None,
        waits: Vec::new(),
        ..Profile::default()
    }
}

/// What a file of gprof knows of a parser: `main` calls `parse` and `read`, `parse` and `expr` call
/// each other and `parse` itself, both call `read`, which is also called by nobody known.
pub(crate) fn parser() -> Profile {
    let calls = [
        (Some(0), 1, 1),
        (Some(0), 3, 500),
        (Some(1), 1, 6),
        (Some(1), 2, 40),
        (Some(2), 1, 39),
        (Some(1), 3, 1_000),
        (Some(2), 3, 2_000),
        (None, 3, 500),
    ];
    let times = [(0, 100.0), (1, 400.0), (2, 600.0), (3, 2_000.0)];
    Profile {
        info: Info {
            command: vec!["parser".into()],
            clock: "samples".into(),
            clock_reason: "a gmon file".into(),
            period_ns: 1e7,
            ..Info::default()
        },
        functions: ["main", "parse", "expr", "read"].map(|name| function(name, "parser")).into(),
        graph: Some(CallGraph::new(
            times.map(|(function, ms)| (FunctionId(function), ms * 1e6)),
            calls.map(|(from, to, n)| (from.map(FunctionId), FunctionId(to), n)),
        )),
        health: Health { events: 4_086, ..Health::default() },
        ..Profile::default()
    }
}

/// `kitchen` with samples: its first thread waits outside of all functions, and in `read`; hooks
/// take time in `parse`. Its second one does not wait.
pub(crate) fn interrupted_kitchen() -> Profile {
    let mut profile = kitchen();
    profile.info.timer_samples = Some(7);
    let nodes = &mut profile.threads[0].tree.nodes;
    for (at, waiting_ns, hooks_ns) in [(0, 5.0, 1.0), (2, 0.0, 300.4), (4, 2e9, 0.0)] {
        nodes[at].spent = Spent { waiting_ns, hooks_ns, ..Spent::default() };
    }
    profile
}
