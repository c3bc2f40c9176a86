//! Takes the cost of the hooks off the times of a tree.
//!
//! A hook has four parts: of a call and of a return, what passes before its look at the
//! clock falls to whoever ran before, the rest to whoever runs after. So for each node
//!
//! ```text
//! own cost = calls × (call callee + return callee) + Σ over children: calls × (call caller + return caller)
//! ```
//!
//! is what its hooks took. It is known hot, in ordinary code of small functions, and cold. How much of
//! it was added to the program's time is another matter: while a processor waits for the program's own
//! work, it does the hooks' work meanwhile. A chain of multiplications of 20 ns a call takes no longer
//! with the hooks of a tick, one of 5 ns by a part of what they cost in other code; work that
//! leaves the processor no free slot pays all of it, however long it takes. What is added even to such a
//! chain of 20 ns is known as well: the *least* cost, which for the cycle clock is most of it, because
//! reading the counter is never hidden. So
//!
//! * [`Time::low`] has the cold cost taken off, nothing hidden, and the least once more: processors
//!   read their counter up to some tens of instructions early or late (Intel's Software Developer's
//!   Manual, volume 2, RDTSC: it is not serializing); or [`DENSE`] times the hot cost, if that is more,
//! * [`Time::high`] has nothing taken off, for the same reason,
//! * [`Time::value`] has [`ORDINARY`] times the hot cost taken off where a function makes or is a call every few
//!   nanoseconds, which in programs is ordinary code; the least alone where calls are [`LONG_NS`] apart, since then
//!   it makes little difference; a part of what is between the two in between.
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

use crate::model::{Info, Node, Time, Tree};

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

/// Time for each call, hooks included, up to which all of their work is added to it, nanoseconds.
const SHORT_NS: f64 = 10.0;
/// Time for each call from which on their work is hidden but for the least: what a call of the chain
/// takes beside which that is measured, 80 cycles or so, or more. Both chosen so that such chains come
/// out within a point of their share, and lua's and sqlite3's whole time as near as that allows.
const LONG_NS: f64 = 15.0;

/// How many times the hot cost hooks take of programs that are larger than the one in which it is measured, which has
/// caches and predictors to itself: more registers are saved for them, and more is missed. Of ten small functions
/// it was 0.7 to 1.8 times. Of what whole programs take without hooks there was left, by the tick and with the hot cost
/// alone, 1.8 times for lua, 1.6 for sqlite3, 2.7 for lz4 and 4.3 for zstd; with a quarter more 1.3 to 1.5, 1.4 to
/// 1.8, 1.5 to 2.2 and 3.3 to 4.4 (on an EPYC that others use too).
const ORDINARY: f64 = 1.25;

/// How many times the hot cost hooks may take. It is measured in a small program that has caches and
/// predictors to itself, and in the state that the processor then is in, of which some make hooks cost
/// twice as much as others. Hooks that follow each other every few nanoseconds for seconds share caches with
/// a larger program, and write lines that another processor reads. In lz4, 70 million calls of 1.5 ns,
/// they took 1.1 to 1.7 times the cost, under the tick as under the cycle clock.
const DENSE: f64 = 2.0;

/// What is taken for added of the cost beyond the least.
#[derive(Clone, Copy, Debug)]
enum Added {
    All,
    Nothing,
    /// As calls are short or long.
    ByLength,
}

impl Added {
    /// The part of a call and its return that is added where each has so much time.
    fn part(self, ns: f64) -> f64 {
        match self {
            Self::All => 1.0,
            Self::Nothing => 0.0,
            Self::ByLength => ((LONG_NS - ns) / (LONG_NS - SHORT_NS)).clamp(0.0, 1.0),
        }
    }

    /// By how many times the cost more than it is taken off where it was added.
    fn beyond(self) -> f64 {
        match self {
            Self::All | Self::Nothing => 0.0,
            Self::ByLength => ORDINARY - 1.0,
        }
    }
}

impl Info {
    /// What hooks took for a call and its return, picoseconds: as measured hot, and at most, readings of a counter that come late
    /// aside; if it was measured.
    pub fn hooks_took_ps(&self) -> Option<(u64, u64)> {
        // Samples tell what they took in this run.
        let (hot, cold) = self.hook_cost_ps.filter(|_| self.timer_samples == 0)?;
        Some((hot, cold.max((DENSE * hot as f64) as u64)))
    }
}

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

    /// The most that hooks may have taken.
    fn most(hot: Self, cold: Self) -> Self {
        let late = cold.with_late_readings();
        Self {
            callee_ns: late.callee_ns.max(DENSE * hot.callee_ns),
            caller_ns: late.caller_ns.max(DENSE * hot.caller_ns),
            ..late
        }
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

    /// What is never hidden, of calls of a function and of calls that it made.
    fn least(&self, calls: u64, below: u64) -> f64 {
        (calls as f64 * self.callee_ns + below as f64 * self.caller_ns) * self.least_part
    }
}

/// Takes the cost off all self times. Totals are not touched: see [`sum_up`].
pub(crate) fn take_off(tree: &mut Tree, functions: usize, hot: HookCost, cold: HookCost) {
    let calls_below = calls_below(&tree.nodes);
    let left = |cost, added| remaining(&tree.nodes, &calls_below, functions, cost, added);
    let (low, value) = (left(HookCost::most(hot, cold), Added::All), left(hot, Added::ByLength));
    let high = left(HookCost { least_part: 0.0, ..hot }, Added::Nothing);
    for (at, node) in tree.nodes.iter_mut().enumerate() {
        // What one path cannot bear another does, more of it where more is taken off.
        let value = value[at];
        node.self_time = Time { value, low: low[at].min(value), high: high[at].max(value) };
    }
}

/// Functions below this node called each other, and not it: each may have the callers' parts of all those calls.
pub(crate) fn allow_for_calls_beside(tree: &mut Tree, node: u32, hot: HookCost, cold: HookCost) {
    let below = || (1..).zip(tree.nodes.iter().skip(1)).filter(|(_, there)| there.parent == node);
    let calls = below().fold(0u64, |sum, (_, there)| sum.saturating_add(there.calls));
    let most = calls as f64 * HookCost::most(hot, cold).caller_ns;
    let below: Vec<usize> = below().map(|(at, _)| at).collect();
    for at in below {
        let low = &mut tree.nodes[at].self_time.low;
        *low = (*low - most).max(0.0);
    }
}

/// Makes the totals: each node's self time and the totals of its children.
pub(crate) fn sum_up(tree: &mut Tree) {
    for node in &mut tree.nodes {
        node.total = node.self_time;
        node.spent.total_waiting_ns = node.spent.waiting_ns;
        node.spent.total_variance = node.spent.variance;
    }
    for at in (1..tree.nodes.len()).rev() {
        let Node { parent, total, spent, .. } = tree.nodes[at];
        tree.nodes[parent as usize].total += total;
        tree.nodes[parent as usize].spent.add_totals(&spent);
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
    added: Added,
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
    let part = |sum: &Sums| {
        let (took, time) = (sum.above + sum.own, sum.time - sum.below + sum.above);
        // As many calls as would have taken that.
        if took > 0.0 { added.part(time * (caller + callee) / took) } else { 0.0 }
    };
    let more = added.beyond();
    let added: Vec<f64> = sums.iter().map(part).collect();
    // What calls took beyond the cost, of their own time and of their callers'.
    let mut beyond = vec![0.0; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        let calls = node.calls as f64 * added[function(at, node)] * more;
        beyond[at] += calls * cost.callee_ns;
        beyond[node.parent as usize] += calls * cost.caller_ns;
    }
    let mut left = Vec::with_capacity(nodes.len());
    for (at, (node, &below)) in nodes.iter().zip(calls_below).enumerate() {
        let added = added[function(at, node)];
        // The work that hooks were done beside took its time in the caller as well: what
        // was hidden there is the callee's.
        let hidden_above = above[at] * (1.0 - added);
        let own = node.calls as f64 * callee * added + below as f64 * caller + beyond[at];
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
            extremes: None,
            spent: Default::default(),
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
        // 500 of 600, 6 ns a call: all of it was added, and a quarter more: 25 of main are left and 50 of f. Main's
        // own call is hidden in that, and its 3 of the root's time come back to it.
        let mut tree =
            Tree { nodes: vec![node(0, 0, 0, 3.0), node(0, 0, 1, 400.0), node(1, 1, 100, 300.0)] };
        take_off(&mut tree, 2, HOT, COLD);
        sum_up(&mut tree);
        assert_eq!(times(&tree), [(0.0, 0.0, 0.0), (0.0, 28.0, 103.0), (0.0, 50.0, 600.0)]);
        assert_eq!(tree.nodes[1].total.value.round(), 78.0);
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
    fn the_low_bound_has_at_least_twice_the_hot_cost_taken_off() {
        // f's 100 calls took 10 ns each; hooks may have taken twice 2 of them, and twice 3 of the
        // caller's 10. What lies above is nothing: the root has no time.
        let low = |cold: HookCost| {
            let mut tree = Tree {
                nodes: vec![node(0, 0, 0, 0.0), node(0, 0, 1, 1000.0), node(1, 1, 100, 1000.0)],
            };
            take_off(&mut tree, 2, HOT, cold);
            [tree.nodes[1].self_time.low, tree.nodes[2].self_time.low]
        };
        assert_eq!(low(HOT), [1000.0 - 4.0 - 600.0, 1000.0 - 400.0]);
        // Late readings count, but not once more: 1.75 times the cost is less.
        assert_eq!(low(HookCost { least_part: 0.75, ..HOT }), [396.0, 600.0]);
        // Where caches are cold it was thrice as much; and half of that again where readings are late.
        let cold = HookCost { callee_ns: 6.0, caller_ns: 9.0, least_part: 0.0 };
        assert_eq!(low(cold), [1000.0 - 6.0 - 900.0, 1000.0 - 600.0]);
        assert_eq!(
            low(HookCost { callee_ns: 4.0, caller_ns: 6.0, least_part: 0.5 }),
            [94.0, 400.0]
        );
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
    fn how_much_was_added_depends_on_how_far_calls_are_apart() {
        // Each call has so many nanoseconds of its own, 2.5 of them the hooks'; none is in the root's time.
        let value = |ns: f64| {
            let mut tree = Tree { nodes: vec![node(0, 0, 0, 0.0), node(0, 0, 1000, 1000.0 * ns)] };
            let cost = HookCost { caller_ns: 0.0, ..HOT };
            take_off(&mut tree, 1, cost, cost);
            tree.nodes[1].self_time.value / 1000.0
        };
        let [short, half, long] = [SHORT_NS, (SHORT_NS + LONG_NS) / 2.0, LONG_NS];
        assert_eq!([value(3.0), value(short)], [0.5, short - 2.5]);
        assert_eq!([value(half), value(long), value(90.0)], [half - 1.25, long, 90.0]);
    }

    #[test]
    fn a_quarter_more_is_taken_off_as_far_as_it_was_added() {
        // f is called 1000 times by main, which has time for its part, 3 ns a call.
        let value = |ns: f64| {
            let mut tree = Tree {
                nodes: vec![
                    node(0, 0, 0, 0.0),
                    node(0, 0, 1, 9000.0),
                    node(1, 1, 1000, 1000.0 * ns),
                ],
            };
            take_off(&mut tree, 2, HOT, HOT);
            let [main, f] = [1, 2].map(|at| tree.nodes[at].self_time);
            assert!(f.high >= f.value && main.high + f.high <= 9000.0 + 1000.0 * ns);
            [main.value / 1000.0, f.value / 1000.0]
        };
        // Of calls of so much, main's part with it, all is added, half, nothing: that is f's.
        assert_eq!(value(SHORT_NS - 3.0), [9.0 - 3.75, SHORT_NS - 3.0 - 2.5]);
        let half = (SHORT_NS + LONG_NS) / 2.0;
        assert_eq!(value(half - 3.0), [9.0 - 3.0 - 0.375, half - 3.0 - 1.25 + 1.5]);
        assert_eq!(value(LONG_NS - 3.0), [9.0 - 3.0, LONG_NS]);
    }

    #[test]
    fn functions_side_by_side_may_have_called_each_other() {
        // f and g stand below node 1, and called each other 15 times in all; each of these took 6 of its caller
        // at most.
        let mut tree = Tree {
            nodes: vec![
                node(0, 0, 0, 0.0),
                node(0, 0, 0, 500.0),
                node(1, 1, 5, 1000.0),
                node(1, 2, 10, 60.0),
                node(0, 1, 1, 70.0),
            ],
        };
        allow_for_calls_beside(&mut tree, 1, HOT, HOT);
        let lows: Vec<f64> = tree.nodes.iter().map(|node| node.self_time.low).collect();
        assert_eq!(lows, [0.0, 500.0, 910.0, 0.0, 70.0]);
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
