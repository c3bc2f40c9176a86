//! Profiles made by hand, for tests.

use crate::model::{Function, FunctionId, Node, Profile, Thread, Time, Tree};

/// A thread of these nodes: parent, function, calls, own nanoseconds.
pub(crate) fn profile(names: &[&str], nodes: &[(u32, u32, u64, f64)]) -> Profile {
    let node = |&(parent, function, calls, own): &(u32, u32, u64, f64)| Node {
        parent,
        function: FunctionId(function),
        calls,
        self_time: Time::from(own),
        total: Time::default(),
        extremes: None,
        spent: Default::default(),
    };
    let mut tree = Tree { nodes: [(0, 0, 0, 0.0)].iter().chain(nodes).map(node).collect() };
    tree.sum_up();
    let function = |name: &&str| Function { name: (*name).into(), ..Function::default() };
    let functions = names.iter().map(function).collect();
    let thread = Thread { tree, ..Thread::default() };
    Profile { functions, threads: vec![thread], ..Profile::default() }
}
