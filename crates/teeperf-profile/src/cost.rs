//! Takes the cost of the hooks off the times of a tree.
//!
//! A hook has four parts: of a call and of a return, what passes before its look at the
//! clock falls to whoever ran before, the rest to whoever runs after. So for each node
//!
//! ```text
//! own cost = calls × (call callee + return callee) + Σ over children: calls × (call caller + return caller)
//! ```
//!
//! is what its hooks took where the processor had nothing else to do. It is known hot (caches
//! and predictors hot) and cold. How much of it was added to the program's time is another matter:
//! while a processor waits for the program's own work, it does the hooks' work meanwhile. A chain of
//! multiplications of 20 ns a call takes no longer with the hooks of a tick, one of 5 ns almost as
//! much longer as if nothing were hidden; work that leaves the processor no free slot pays all of it,
//! however long it takes. What is added even to such a chain of 20 ns is known as well: the *least*
//! cost, which for the cycle clock is most of it, because reading the counter is never hidden. So
//!
//! * [`Time::low`] has the cold cost taken off, nothing hidden, and the least once more: processors
//!   read their counter up to some tens of instructions early or late (Intel's Software Developer's
//!   Manual, volume 2, RDTSC: it is not serializing),
//! * [`Time::high`] has nothing taken off, for the same reason,
//! * [`Time::value`] has the hot cost taken off, less what of it, beyond the least, is hidden in a
//!   function of ordinary code: as much as [`HIDDEN`] of its own time, or more where more was hidden
//!   in the chain.
//!
//! What is hidden was in the caller's time as well, up to the look at the clock, while the processor
//! was at the callee's work: that part is the callee's.
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
    /// Which part of the two is never hidden.
    pub(crate) least_part: f64,
}

/// How much of a function's own time processors have room for the work of hooks: between the half
/// and more that chains of dependent instructions leave, and nothing. Chosen so that chains of
/// 5 and of 20 ns a call, and the whole of lua's interpreter, come out within a few percent.
const HIDDEN: f64 = 0.3;
/// Never more than this: code that does something has slots taken.
const MOST_HIDDEN: f64 = 0.5;
/// About what a call of the chain takes beside which the least cost is measured, nanoseconds.
const CHAIN_NS: f64 = 20.0;

impl HookCost {
    /// From picoseconds: call caller, call callee, return callee, return caller; and of all that,
    /// the least.
    pub(crate) fn from_ps(ps: [u64; 4], least_ps: u64) -> Self {
        let ns = |a: u64, b: u64| (a as f64 + b as f64) / 1000.0;
        let (callee_ns, caller_ns) = (ns(ps[1], ps[2]), ns(ps[0], ps[3]));
        let both = callee_ns + caller_ns;
        let least_part = if both > 0.0 { (least_ps as f64 / 1000.0 / both).min(1.0) } else { 0.0 };
        Self { callee_ns, caller_ns, least_part }
    }

    /// The same where each reading of the counter came as much too late as it takes.
    fn with_late_readings(self) -> Self {
        Self {
            callee_ns: self.callee_ns * (1.0 + self.least_part),
            caller_ns: self.caller_ns * (1.0 + self.least_part),
            ..self
        }
    }

    /// What is hidden or not, of a call and its return: in the caller's time, in the callee's.
    fn rest(&self) -> (f64, f64) {
        let rest = 1.0 - self.least_part;
        (self.caller_ns * rest, self.callee_ns * rest)
    }

    /// The part of a function's own time in which hooks are hidden.
    fn hidden(&self) -> f64 {
        let (caller, callee) = self.rest();
        ((caller + callee) / CHAIN_NS).clamp(HIDDEN, MOST_HIDDEN)
    }

    /// What is never hidden, of calls of a function and of calls that it made.
    fn least(&self, calls: u64, below: u64) -> f64 {
        (calls as f64 * self.callee_ns + below as f64 * self.caller_ns) * self.least_part
    }
}

/// Takes the cost off all self times. Totals are not touched: see [`sum_up`].
pub(crate) fn take_off(tree: &mut Tree, functions: usize, hot: HookCost, cold: HookCost) {
    let calls_below = calls_below(&tree.nodes);
    let left = |cost, hidden| remaining(&tree.nodes, &calls_below, functions, cost, hidden);
    let (low, value) = (left(cold.with_late_readings(), 0.0), left(hot, hot.hidden()));
    let high = left(HookCost { least_part: 0.0, ..hot }, 1.0);
    for (at, node) in tree.nodes.iter_mut().enumerate() {
        // What one path cannot bear another does, more of it where more is taken off.
        let value = value[at];
        node.self_time = Time { value, low: low[at].min(value), high: high[at].max(value) };
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

/// Of what the hooks took beyond the least, the part that was added to the time of a function, which
/// is `time` with that and without the least. The processor has room for `hidden` of the
/// function's own time.
fn added_part(took: f64, time: f64, hidden: f64) -> f64 {
    if took <= 0.0 || hidden >= 1.0 {
        0.0
    } else {
        // added = took - hidden * own, and own = time - added.
        ((took - hidden * time) / (1.0 - hidden) / took).clamp(0.0, 1.0)
    }
}

/// Sums over all nodes of a function.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Self time without the least cost.
    time: f64,
    /// What the caller's parts of calls that it made took of that.
    below: f64,
    /// What the caller's parts of its own calls took of its callers' times.
    above: f64,
    /// What the callee's parts of its own calls took of its own.
    own: f64,
    /// What is left in the end, where that is more than nothing.
    left: f64,
    /// What was to be taken off and could not.
    owed: f64,
}

impl Sums {
    /// How much of the caller's parts was there to be taken off.
    fn borne(&self) -> f64 {
        if self.below > self.time { (self.time / self.below).max(0.0) } else { 1.0 }
    }
}

/// What is left of each node's self time.
fn remaining(
    nodes: &[Node],
    calls_below: &[u64],
    functions: usize,
    cost: HookCost,
    hidden: f64,
) -> Vec<f64> {
    let (caller, callee) = cost.rest();
    let function =
        |at: usize, node: &Node| if at == 0 { functions } else { node.function.0 as usize };
    // By function, the root's as the last.
    let mut sums = vec![Sums::default(); functions + 1];
    for (at, (node, &below)) in nodes.iter().zip(calls_below).enumerate() {
        let sum = &mut sums[function(at, node)];
        sum.time += node.self_time.value - cost.least(node.calls, below);
        sum.below += below as f64 * caller;
        sum.own += node.calls as f64 * callee;
    }
    // What a call took of its caller's time, as far as that was there.
    let above: Vec<f64> = nodes
        .iter()
        .map(|node| {
            let parent = node.parent as usize;
            node.calls as f64 * caller * sums[function(parent, &nodes[parent])].borne()
        })
        .collect();
    for (at, (node, above)) in nodes.iter().zip(&above).enumerate() {
        sums[function(at, node)].above += above;
    }
    let added: Vec<f64> = sums
        .iter()
        .map(|sum| added_part(sum.above + sum.own, sum.time - sum.below + sum.above, hidden))
        .collect();
    let mut left = Vec::with_capacity(nodes.len());
    for (at, (node, &below)) in nodes.iter().zip(calls_below).enumerate() {
        let added = added[function(at, node)];
        // The work that hooks were done beside took its time in the caller as well: what
        // was hidden there is the callee's.
        let hidden_above = above[at] * (1.0 - added);
        let own = node.calls as f64 * callee * added + below as f64 * caller;
        let rest = node.self_time.value - cost.least(node.calls, below) - own + hidden_above;
        let sum = &mut sums[function(at, node)];
        sum.left += rest.max(0.0);
        sum.owed -= rest.min(0.0);
        left.push(rest.max(0.0));
    }
    for (at, (node, left)) in nodes.iter().zip(&mut left).enumerate() {
        let Sums { left: there, owed, .. } = sums[function(at, node)];
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

    const HOT: HookCost = HookCost { callee_ns: 2.0, caller_ns: 3.0, least_part: 0.0 };
    const COLD: HookCost = HookCost { callee_ns: 20.0, caller_ns: 30.0, least_part: 0.0 };

    fn times(tree: &Tree) -> Vec<(f64, f64, f64)> {
        let times = tree.nodes.iter().map(|node| node.self_time);
        times.map(|time| (time.low, time.value.round(), time.high)).collect()
    }

    #[test]
    fn caller_and_callee_pay_their_parts() {
        // main calls f 100 times. Main's part of that is 300 of its 400. With f's own part it makes
        // 500 of 600, of which (500 - 0.3 * 600) / 0.7 = 457 were added, and 143 are left. Main's
        // own call is hidden in the 100 left, and its 3 of the root's time come back to it.
        let mut tree =
            Tree { nodes: vec![node(0, 0, 0, 3.0), node(0, 0, 1, 400.0), node(1, 1, 100, 300.0)] };
        take_off(&mut tree, 2, HOT, COLD);
        sum_up(&mut tree);
        assert_eq!(times(&tree), [(0.0, 0.0, 0.0), (0.0, 103.0, 103.0), (0.0, 143.0, 600.0)]);
        assert_eq!(tree.nodes[1].total.value.round(), 246.0);
        assert_eq!(tree.nodes[0].total.high, 703.0);
    }

    #[test]
    fn what_finds_room_in_long_work_is_not_taken_off_but_the_least_is() {
        let nodes = vec![node(0, 0, 0, 0.0), node(0, 0, 1000, 90_000.0)];
        let mut tree = Tree { nodes: nodes.clone() };
        take_off(&mut tree, 1, HOT, COLD);
        assert_eq!(times(&tree)[1], (70_000.0, 90_000.0, 90_000.0));
        let mut tree = Tree { nodes };
        let with_least = |cost: HookCost| HookCost { least_part: 1.5 / cost.callee_ns, ..cost };
        take_off(&mut tree, 1, with_least(HOT), with_least(COLD));
        assert_eq!(times(&tree)[1], (68_500.0, 88_500.0, 90_000.0));
    }

    #[test]
    fn what_one_path_cannot_bear_the_others_of_its_function_do() {
        // f is called on two paths, 50 times each; a tick fell into one of them only. Each has to
        // bear 100.
        let mut tree = Tree {
            nodes: vec![
                node(0, 0, 0, 0.0),
                node(0, 0, 1, 1e6),
                node(0, 1, 1, 1e6),
                node(1, 2, 50, 0.0),
                node(2, 2, 50, 1000.0),
            ],
        };
        let cost = HookCost { least_part: 1.0, ..HOT };
        take_off(&mut tree, 3, cost, cost);
        assert_eq!(times(&tree)[3..], [(0.0, 0.0, 150.0), (600.0, 800.0, 1150.0)]);
    }

    #[test]
    fn as_much_is_hidden_as_was_in_the_chain() {
        let hidden = |hot, least| HookCost::from_ps([hot, hot, hot, hot], least).hidden();
        assert_eq!([hidden(0, 0), hidden(1_000, 0), hidden(10_000, 39_000)], [HIDDEN; 3]);
        assert_eq!(hidden(2_000, 0), 0.4);
        assert_eq!(hidden(9_000, 1_000), MOST_HIDDEN);
    }

    #[test]
    fn nothing_falls_below_zero() {
        let mut tree = Tree { nodes: vec![node(0, 0, 0, 0.0), node(0, 0, 1000, 5.0)] };
        take_off(&mut tree, 1, HOT, COLD);
        sum_up(&mut tree);
        let total = Time { high: 5.0, ..Time::default() };
        assert!(tree.nodes.iter().all(|n| n.total == total));
    }
}
