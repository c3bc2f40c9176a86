//! Calls between functions where no call paths are known: sums them up and estimates totals. Never
//! makes up a call path.
//!
//! Only what a function took itself is known, and how often who called whom. As in gprof
//! (Graham, Kessler, McKusick: "gprof: a call graph execution profiler", 1982; the manual of GNU gprof,
//! "How gprof works"), each call of a function is taken to have cost the same, whoever made it:
//!
//! ```text
//! time of an arc   = total of the callee × calls of the arc / calls of the callee
//! total            = self time + Σ over arcs to others: time of the arc
//! ```
//!
//! Calls of a function by itself count in neither. Functions that call each other in circles are
//! one: their common total is given to those that called into the circle, by their share of these calls.
//! Calls by nobody known count among the calls; their share of the time is nobody's.

use std::ops::Range;

use crate::model::{Arc, CallGraph, Cycle, FunctionId, Time, Vertex};

impl CallGraph {
    /// Of functions' own times, nanoseconds where they have no bounds, and of calls: caller, callee, how many. What
    /// stands there more than once is added up.
    pub fn new(
        times: impl IntoIterator<Item = (FunctionId, impl Into<Time>)>,
        calls: impl IntoIterator<Item = (Option<FunctionId>, FunctionId, u64)>,
    ) -> Self {
        let mut times: Vec<(FunctionId, Time)> =
            times.into_iter().map(|(function, time)| (function, time.into())).collect();
        let mut arcs: Vec<Arc> = calls
            .into_iter()
            .filter(|call| call.2 > 0)
            .map(|(caller, callee, calls)| Arc { caller, callee, calls, total: 0.0 })
            .collect();
        arcs.sort_unstable_by_key(|arc| (arc.caller, arc.callee));
        arcs.dedup_by(|next, sum| {
            let same = (next.caller, next.callee) == (sum.caller, sum.callee);
            if same {
                sum.calls = sum.calls.saturating_add(next.calls);
            }
            same
        });
        let called = arcs.iter().flat_map(|arc| arc.caller.into_iter().chain([arc.callee]));
        times.extend(called.map(|function| (function, Time::default())));
        // Stable, so that sums do not depend on how it is sorted.
        times.sort_by_key(|time| time.0);
        times.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            if same {
                sum.1 += next.1;
            }
            same
        });
        let functions = times.into_iter().map(|(function, time)| vertex(function, time)).collect();
        let mut graph = Self { functions, arcs, cycles: Vec::new() };
        graph.estimate();
        graph
    }

    /// This and another, whose functions have the numbers that `number` gives them here.
    pub fn plus(&self, other: &Self, number: impl Fn(FunctionId) -> FunctionId) -> Self {
        let times = |graph: &Self| -> Vec<_> {
            graph.functions.iter().map(|v| (v.function, v.self_time)).collect()
        };
        let calls = |graph: &Self| -> Vec<_> {
            graph.arcs.iter().map(|arc| (arc.caller, arc.callee, arc.calls)).collect()
        };
        let here = |function| number(function);
        Self::new(
            times(self).into_iter().chain(times(other).into_iter().map(|(f, ns)| (here(f), ns))),
            calls(self)
                .into_iter()
                .chain(calls(other).into_iter().map(|(from, to, n)| (from.map(here), here(to), n))),
        )
    }

    /// Time in all functions.
    pub fn time(&self) -> f64 {
        self.functions.iter().map(|vertex| vertex.self_time.value).sum()
    }

    /// What is known of a function.
    pub fn vertex(&self, function: FunctionId) -> Option<&Vertex> {
        let at = self.place(function)?;
        self.functions.get(at)
    }

    /// What a function called.
    pub fn callees(&self, function: FunctionId) -> &[Arc] {
        let first = self.arcs.partition_point(|arc| arc.caller < Some(function));
        let behind = self.arcs.partition_point(|arc| arc.caller <= Some(function));
        &self.arcs[first..behind]
    }

    fn place(&self, function: FunctionId) -> Option<usize> {
        self.functions.binary_search_by_key(&function, |vertex| vertex.function).ok()
    }

    fn estimate(&mut self) {
        let place = |function| self.place(function).unwrap_or_default();
        let ends: Vec<(Option<usize>, usize)> =
            self.arcs.iter().map(|arc| (arc.caller.map(place), place(arc.callee))).collect();
        // Arcs stand in the order of their callers.
        let mut outgoing: Vec<Range<usize>> = vec![0..0; self.functions.len()];
        for (arc, &(caller, callee)) in ends.iter().enumerate() {
            let vertex = &mut self.functions[callee];
            vertex.calls = vertex.calls.saturating_add(self.arcs[arc].calls);
            if let Some(caller) = caller {
                if caller == callee {
                    vertex.own_calls = self.arcs[arc].calls;
                }
                let begin = if outgoing[caller].is_empty() { arc } else { outgoing[caller].start };
                outgoing[caller] = begin..arc + 1;
            }
        }
        let groups = groups(&outgoing, &ends);
        let mut group_of = vec![0; self.functions.len()];
        for (number, group) in groups.iter().enumerate() {
            group.iter().for_each(|&member| group_of[member] = number);
        }
        let mut outer_calls = vec![0u64; groups.len()];
        for (arc, &(caller, callee)) in self.arcs.iter().zip(&ends) {
            let group = group_of[callee];
            if caller.map(|caller| group_of[caller]) != Some(group) {
                outer_calls[group] = outer_calls[group].saturating_add(arc.calls);
            }
        }
        // Callees come before callers, so the totals of what a group called are known.
        let mut totals: Vec<f64> = Vec::with_capacity(groups.len());
        for (number, group) in groups.iter().enumerate() {
            for &member in group {
                let mut below = 0.0;
                for arc in outgoing[member].clone() {
                    let callee = group_of[ends[arc].1];
                    if callee != number {
                        let share = self.arcs[arc].calls as f64 / outer_calls[callee] as f64;
                        self.arcs[arc].total = totals[callee] * share;
                        below += self.arcs[arc].total;
                    }
                }
                let vertex = &mut self.functions[member];
                vertex.total = vertex.self_time;
                vertex.total += below.into();
            }
            totals.push(group.iter().map(|&at| self.functions[at].total.value).sum());
        }
        for (arc, &(caller, callee)) in self.arcs.iter_mut().zip(&ends) {
            if caller.is_none() {
                let group = group_of[callee];
                arc.total = totals[group] * arc.calls as f64 / outer_calls[group] as f64;
            }
        }
        for (number, group) in groups.iter().enumerate().filter(|(_, group)| group.len() > 1) {
            let cycle = self.cycles.len() as u32;
            let (mut calls, mut own) = (0u64, 0.0);
            for &member in group {
                let vertex = &mut self.functions[member];
                vertex.cycle = Some(cycle);
                calls = calls.saturating_add(vertex.calls);
                own += vertex.self_time.value;
            }
            let mut members: Vec<FunctionId> =
                group.iter().map(|&member| self.functions[member].function).collect();
            members.sort_unstable();
            self.cycles.push(Cycle {
                members,
                calls: outer_calls[number],
                inner_calls: calls.saturating_sub(outer_calls[number]),
                self_time: own.into(),
                total: totals[number].into(),
            });
        }
    }
}

fn vertex(function: FunctionId, self_time: Time) -> Vertex {
    Vertex { function, calls: 0, own_calls: 0, self_time, total: Time::default(), cycle: None }
}

/// Functions that call each other in circles, together; all others alone. Callees before callers
/// (Tarjan: "Depth-first search and linear graph algorithms", 1972, without its recursion: chains of
/// calls may be longer than our stack).
fn groups(outgoing: &[Range<usize>], ends: &[(Option<usize>, usize)]) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let count = outgoing.len();
    let (mut order, mut low) = (vec![UNSEEN; count], vec![0; count]);
    let mut is_open = vec![false; count];
    let (mut open, mut next, mut out) = (Vec::new(), 0, Vec::new());
    for start in 0..count {
        if order[start] != UNSEEN {
            continue;
        }
        let mut path = vec![(start, 0)];
        while let Some(&mut (at, ref mut arc)) = path.last_mut() {
            if *arc == 0 {
                (order[at], low[at], is_open[at]) = (next, next, true);
                open.push(at);
                next += 1;
            }
            let callee = outgoing[at].clone().nth(*arc).map(|arc| ends[arc].1);
            *arc += 1;
            match callee {
                Some(callee) if order[callee] == UNSEEN => path.push((callee, 0)),
                Some(callee) if is_open[callee] => low[at] = low[at].min(order[callee]),
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some(&(caller, _)) = path.last() {
                        low[caller] = low[caller].min(low[at]);
                    }
                    if low[at] == order[at] {
                        let first = open.iter().rposition(|&member| member == at);
                        let group = open.split_off(first.unwrap_or_default());
                        group.iter().for_each(|&member| is_open[member] = false);
                        out.push(group);
                    }
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOBODY: u32 = u32::MAX;

    fn graph(times: &[f64], calls: &[(u32, u32, u64)]) -> CallGraph {
        let id = |n: u32| (n != NOBODY).then_some(FunctionId(n));
        CallGraph::new(
            (0..).map(FunctionId).zip(times.iter().copied()),
            calls.iter().map(|&(from, to, n)| (id(from), FunctionId(to), n)),
        )
    }

    fn totals(graph: &CallGraph) -> Vec<f64> {
        graph.functions.iter().map(|vertex| vertex.total.value).collect()
    }

    #[test]
    fn time_goes_to_callers_by_their_share_of_the_calls() {
        // main (0) calls parse (1) once and read (2) 10 times, parse calls read 30 times.
        let graph = graph(&[1.0, 2.0, 8.0], &[(0, 1, 1), (0, 2, 10), (1, 2, 10), (1, 2, 20)]);
        assert_eq!(totals(&graph), [11.0, 8.0, 8.0]);
        let arcs: Vec<_> = graph.arcs.iter().map(|arc| (arc.calls, arc.total)).collect();
        assert_eq!(arcs, [(1, 8.0), (10, 2.0), (30, 6.0)]);
        assert_eq!((graph.time(), graph.functions[2].calls, graph.cycles.len()), (11.0, 40, 0));
    }

    #[test]
    fn calls_by_itself_and_by_nobody() {
        // f (1) is called by main once, by itself 9 times and by nobody known 3 times.
        let graph = graph(&[0.0, 8.0], &[(0, 1, 1), (1, 1, 9), (NOBODY, 1, 3)]);
        assert_eq!(totals(&graph), [2.0, 8.0]);
        let f = graph.vertex(FunctionId(1)).unwrap();
        assert_eq!((f.calls, f.own_calls, f.cycle), (13, 9, None));
        let nobody = graph.arcs.iter().find(|arc| arc.caller.is_none()).unwrap();
        assert_eq!(nobody.total, 6.0);
    }

    #[test]
    fn a_cycle_is_one() {
        // main (0) calls even (1) twice and odd (2) twice; they call each other, odd also leaf (3).
        let calls = [(0, 1, 2), (0, 2, 2), (1, 2, 10), (2, 1, 9), (2, 2, 5), (2, 3, 4)];
        let graph = graph(&[1.0, 10.0, 20.0, 6.0], &calls);
        assert_eq!(totals(&graph), [37.0, 10.0, 26.0, 6.0]);
        let [cycle] = &graph.cycles[..] else { panic!("{:?}", graph.cycles) };
        assert_eq!(cycle.members, [FunctionId(1), FunctionId(2)]);
        assert_eq!((cycle.calls, cycle.inner_calls), (4, 24));
        assert_eq!((cycle.self_time.value, cycle.total.value), (30.0, 36.0));
        assert_eq!(graph.functions[2].cycle, Some(0));
        assert_eq!(graph.arcs[0].total, 18.0);
    }

    #[test]
    fn a_chain_deeper_than_any_stack() {
        let count = 200_000;
        let calls: Vec<_> = (1..count).map(|n| (n - 1, n, 1)).collect();
        let graph = graph(&vec![1.0; count as usize], &calls);
        assert_eq!(graph.functions[0].total.value, f64::from(count));
    }

    #[test]
    fn two_graphs_are_added_by_their_functions() {
        let a = graph(&[1.0, 2.0], &[(0, 1, 3)]);
        let b = graph(&[4.0, 8.0], &[(1, 0, 5)]);
        let sum = a.plus(&b, |FunctionId(n)| FunctionId(1 - n));
        assert_eq!(sum, graph(&[9.0, 6.0], &[(0, 1, 8)]));
    }

    proptest! {
        /// No time comes from nowhere and none is lost: what has no caller holds all of it.
        #[test]
        fn time_is_kept(calls in prop::collection::vec((0u32..12, 1u32..12, 1u64..9), 0..40)) {
            let times: Vec<f64> = (0..12).map(f64::from).collect();
            let graph = graph(&times, &calls);
            let called = |number: usize, v: &Vertex| match v.cycle {
                Some(cycle) => graph.cycles[cycle as usize].calls > 0,
                None => graph.functions[number].calls > v.own_calls,
            };
            let tops: f64 = graph.functions.iter().enumerate()
                .filter(|(number, v)| !called(*number, v)).map(|(_, v)| v.total.value).sum();
            prop_assert!((tops - graph.time()).abs() < 1e-6, "{} {}", tops, graph.time());
        }
    }
}
