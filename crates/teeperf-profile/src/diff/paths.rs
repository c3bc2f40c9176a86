//! The call paths of both sides in one tree.

use super::{Side, Sides};
use crate::aggregate;
use crate::model::{FunctionId, Thread};
use std::collections::HashMap;

/// A call path, on either side or on both.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Path {
    /// Place of its caller's, which always comes first; 0 of the first, which is the root.
    pub parent: u32,
    /// The function; meaningless in the root.
    pub function: FunctionId,
    /// What a run of each side has.
    pub sums: Sides<Sum>,
}

/// Of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// Times it was entered, in the mean of runs.
    pub calls: f64,
    /// Time in the function itself on this path, nanoseconds.
    pub self_ns: f64,
    /// Time in it and all it called, nanoseconds.
    pub total_ns: f64,
}

/// Paths as runs bring them: sums of each run apart only by what they are multiplied with.
#[derive(Default)]
pub(super) struct Paths {
    nodes: Vec<(u32, FunctionId)>,
    known: HashMap<(u32, FunctionId), u32>,
    /// Of each run, its paths by place, with calls and self time.
    runs: Sides<Vec<Vec<(u32, f64, f64)>>>,
}

impl Paths {
    pub(super) fn add(&mut self, side: Side, threads: &[Thread]) {
        let tree = aggregate::merged_as_seen(threads);
        if self.nodes.is_empty() {
            self.nodes.push((0, FunctionId(0)));
        }
        let mut numbers: Vec<u32> = Vec::with_capacity(tree.nodes.len());
        let mut run = Vec::with_capacity(tree.nodes.len());
        for (at, node) in tree.nodes.iter().enumerate() {
            if at == 0 {
                // Time with no frame is no part of the picture.
                numbers.push(0);
                continue;
            }
            let place = self.place(numbers[node.parent as usize], node.function);
            run.push((place, node.calls as f64, node.self_time.value.max(0.0)));
            numbers.push(place);
        }
        self.runs.of_mut(side).push(run);
    }

    fn place(&mut self, parent: u32, function: FunctionId) -> u32 {
        *self.known.entry((parent, function)).or_insert_with(|| {
            self.nodes.push((parent, function));
            self.nodes.len() as u32 - 1
        })
    }

    /// Functions have other numbers: paths that are equal then are one.
    pub(super) fn renumber(&mut self, numbers: &HashMap<FunctionId, FunctionId>) {
        let old = std::mem::take(self);
        self.nodes.push((0, FunctionId(0)));
        let mut places = vec![0u32];
        for &(parent, function) in old.nodes.iter().skip(1) {
            let function = numbers.get(&function).copied().unwrap_or(function);
            let place = self.place(places[parent as usize], function);
            places.push(place);
        }
        let moved = |runs: Vec<Vec<(u32, f64, f64)>>| {
            let move_run = |run: Vec<(u32, f64, f64)>| {
                run.into_iter().map(|(at, calls, ns)| (places[at as usize], calls, ns)).collect()
            };
            runs.into_iter().map(move_run).collect()
        };
        self.runs = Sides { before: moved(old.runs.before), after: moved(old.runs.after) };
    }

    /// The tree of both sides, of the means of their runs, times of each run multiplied as told.
    pub(super) fn finish(self, scales: &Sides<Vec<f64>>) -> Vec<Path> {
        let path =
            |&(parent, function): &(u32, FunctionId)| Path { parent, function, ..Path::default() };
        let mut paths: Vec<Path> = self.nodes.iter().map(path).collect();
        for side in [Side::Before, Side::After] {
            let runs = self.runs.of(side);
            let part = 1.0 / runs.len().max(1) as f64;
            for (run, scale) in runs.iter().zip(scales.of(side)) {
                for &(at, calls, ns) in run {
                    let sum = paths[at as usize].sums.of_mut(side);
                    sum.calls += calls * part;
                    sum.self_ns += ns * part * scale;
                }
            }
            for at in (0..paths.len()).rev() {
                let sum = paths[at].sums.of_mut(side);
                sum.total_ns += sum.self_ns;
                let total = sum.total_ns;
                if at > 0 {
                    let parent = paths[at].parent as usize;
                    paths[parent].sums.of_mut(side).total_ns += total;
                }
            }
        }
        paths
    }
}
