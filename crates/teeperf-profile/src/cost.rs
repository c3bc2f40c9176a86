//! Takes the cost of the hooks off the times of a tree.
//!
//! A hook has four parts: of a call and of a return, what passes before its look at the
//! clock falls to whoever ran before, the rest to whoever runs after. So for each node
//!
//! ```text
//! own cost = calls × (call callee + return callee) + Σ over children: calls × (call caller + return caller)
//! ```
//!
//! is time that the program would not have spent. It is known hot (all in the caches, all
//! branches foreseen) and cold. [`Time::high`] has the hot cost taken off, [`Time::low`] the
//! cold, and [`Time::value`] the hot one: cost matters where calls are many, and where they
//! are many they are hot.
//!
//! No time becomes negative. Under a clock that ticks, a path whose calls are short was
//! given no time at all, or a whole tick: the cost that one path of a function cannot bear is
//! taken off the function's other paths in proportion to their time, so that a function's sum
//! over all its paths is what it would be with exact times, as long as that is not below
//! zero. What no path of the function can bear is let go. Totals are sums of self times, so
//! what is taken off a function is missing from all its callers, and goes nowhere else.

use crate::model::{Node, Time, Tree};

/// Nanoseconds that hooks cost, hot or cold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct HookCost {
    /// Of a call and its return, in the function itself.
    pub(crate) callee_ns: f64,
    /// Of a call and its return, in its caller.
    pub(crate) caller_ns: f64,
}

impl HookCost {
    /// From picoseconds: call caller, call callee, return callee, return caller.
    pub(crate) fn from_ps(ps: [u64; 4]) -> Self {
        let ns = |a: u64, b: u64| (a as f64 + b as f64) / 1000.0;
        Self { callee_ns: ns(ps[1], ps[2]), caller_ns: ns(ps[0], ps[3]) }
    }
}

/// Takes the cost off all self times. Totals are not touched: see [`sum_up`].
pub(crate) fn take_off(tree: &mut Tree, functions: usize, hot: HookCost, cold: HookCost) {
    let calls_below = calls_below(&tree.nodes);
    let high = remaining(&tree.nodes, &calls_below, functions, hot);
    let low = remaining(&tree.nodes, &calls_below, functions, cold);
    for ((node, high), low) in tree.nodes.iter_mut().zip(high).zip(low) {
        node.self_time = Time { value: high, low: low.min(high), high };
    }
}

/// Makes the totals: each node's self time and the totals of its children.
pub(crate) fn sum_up(tree: &mut Tree) {
    for node in &mut tree.nodes {
        node.total = node.self_time;
    }
    for at in (1..tree.nodes.len()).rev() {
        let Node { parent, total, .. } = tree.nodes[at];
        tree.nodes[parent as usize].total += total;
    }
}

/// Calls that each node made.
fn calls_below(nodes: &[Node]) -> Vec<u64> {
    let mut calls = vec![0; nodes.len()];
    for node in nodes.iter().skip(1) {
        calls[node.parent as usize] += node.calls;
    }
    calls
}

/// What is left of each node's self time.
fn remaining(nodes: &[Node], calls_below: &[u64], functions: usize, cost: HookCost) -> Vec<f64> {
    let mut left = Vec::with_capacity(nodes.len());
    // By function, the root's as the last: what is left, and what could not be taken off.
    let mut sums = vec![(0.0f64, 0.0f64); functions + 1];
    let function =
        |at: usize, node: &Node| if at == 0 { functions } else { node.function.0 as usize };
    for (at, (node, &below)) in nodes.iter().zip(calls_below).enumerate() {
        let own = node.calls as f64 * cost.callee_ns + below as f64 * cost.caller_ns;
        let rest = node.self_time.value - own;
        let sum = &mut sums[function(at, node)];
        sum.0 += rest.max(0.0);
        sum.1 -= rest.min(0.0);
        left.push(rest.max(0.0));
    }
    for (at, (node, left)) in nodes.iter().zip(&mut left).enumerate() {
        let (there, owed) = sums[function(at, node)];
        if owed > 0.0 && there > 0.0 {
            *left *= (1.0 - owed / there).max(0.0);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FunctionId;

    fn node(parent: u32, function: u32, calls: u64, ns: f64) -> Node {
        let time = Time { value: ns, low: ns, high: ns };
        Node {
            parent,
            function: FunctionId(function),
            calls,
            self_time: time,
            total: Time::default(),
        }
    }

    const HOT: HookCost = HookCost { callee_ns: 2.0, caller_ns: 3.0 };
    const COLD: HookCost = HookCost { callee_ns: 20.0, caller_ns: 30.0 };

    #[test]
    fn caller_and_callee_pay_their_parts() {
        // main calls f 100 times: f pays 200 of its 1000, main 300 of its 5000 and 2 for itself.
        let mut tree = Tree {
            nodes: vec![node(0, 0, 0, 10.0), node(0, 0, 1, 5000.0), node(1, 1, 100, 1000.0)],
        };
        take_off(&mut tree, 2, HOT, COLD);
        sum_up(&mut tree);
        let selves: Vec<f64> = tree.nodes.iter().map(|n| n.self_time.value).collect();
        assert_eq!(selves, [7.0, 4698.0, 800.0]);
        assert_eq!(tree.nodes[1].total.value, 5498.0);
        assert_eq!(tree.nodes[0].total.value, 5505.0);
        assert_eq!(tree.nodes[2].self_time.low, 0.0);
        assert_eq!(tree.nodes[1].self_time.low, 5000.0 - 3000.0 - 20.0);
        assert_eq!(tree.nodes[1].self_time.high, 4698.0);
    }

    #[test]
    fn what_one_path_cannot_bear_the_others_of_its_function_do() {
        // f is called on two paths, 50 times each; a tick fell into one of them only.
        let mut tree = Tree {
            nodes: vec![
                node(0, 0, 0, 0.0),
                node(0, 0, 1, 1e6),
                node(0, 1, 1, 1e6),
                node(1, 2, 50, 0.0),
                node(2, 2, 50, 1000.0),
            ],
        };
        take_off(&mut tree, 3, HOT, HOT);
        assert_eq!(tree.nodes[3].self_time.value, 0.0);
        assert_eq!(tree.nodes[4].self_time.value, 800.0);
    }

    #[test]
    fn nothing_falls_below_zero() {
        let mut tree = Tree { nodes: vec![node(0, 0, 0, 0.0), node(0, 0, 1000, 5.0)] };
        take_off(&mut tree, 1, HOT, COLD);
        sum_up(&mut tree);
        assert!(tree.nodes.iter().all(|n| n.total == Time::default()));
    }
}
