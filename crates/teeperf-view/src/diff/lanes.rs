//! Both sides as trees of the same nodes: what pages and pictures are drawn from.

use crate::findings::Finding;
use crate::units;
use teeperf_profile::diff::{Diff, Path, Side, Sum};
use teeperf_profile::model::{Function, FunctionId, Node, Thread, Time, Tree};

/// What stands for paths that are left out.
const REST: &str = "[short call paths]";

/// Paths of a comparison, at most so many.
pub(super) struct Lanes {
    pub(super) functions: Vec<Function>,
    pub(super) paths: Vec<Path>,
    /// What the reader must know, where some are left out.
    pub(super) finding: Option<Finding>,
}

impl Lanes {
    /// Of the longest paths on either side; what is left out stands below the caller's as one.
    pub(super) fn of(diff: &Diff, most: usize) -> Self {
        let mut functions = diff.functions.clone();
        if diff.paths.len() <= most.saturating_add(1) {
            return Self { functions, paths: diff.paths.clone(), finding: None };
        }
        let length = |path: &Path| path.sums.before.total_ns.max(path.sums.after.total_ns);
        let mut lengths: Vec<f64> = diff.paths.iter().skip(1).map(length).collect();
        let all = lengths.len();
        let (_, &mut limit, _) = lengths.select_nth_unstable_by(most, |a, b| b.total_cmp(a));
        let rest = FunctionId(functions.len() as u32);
        functions.push(Function { name: REST.into(), ..Function::default() });
        let (mut paths, mut places) = (Vec::new(), vec![None; diff.paths.len()]);
        let mut below: Vec<[f64; 2]> = Vec::new();
        for (at, path) in diff.paths.iter().enumerate() {
            let Some(parent) = (if at == 0 { Some(0) } else { places[path.parent as usize] })
            else {
                continue;
            };
            if at == 0 || length(path) > limit {
                places[at] = Some(paths.len() as u32);
                paths.push(Path { parent, ..*path });
                below.push([0.0; 2]);
            } else {
                below[parent as usize][0] += path.sums.before.total_ns;
                below[parent as usize][1] += path.sums.after.total_ns;
            }
        }
        let kept = paths.len() - 1;
        for (parent, [before, after]) in below.into_iter().enumerate() {
            let sum = |ns| Sum { calls: 0.0, self_ns: ns, total_ns: ns };
            if before > 0.0 || after > 0.0 {
                let mut path = Path { parent: parent as u32, function: rest, ..Path::default() };
                (path.sums.before, path.sums.after) = (sum(before), sum(after));
                paths.push(path);
            }
        }
        let what = format!(
            "{} of {} call paths, those with at most {} each, stand here as `{REST}`.",
            units::count((all - kept) as u64),
            units::count(all as u64),
            units::time_inline(diff.unit, limit),
        );
        Self {
            functions,
            paths,
            finding: Some(Finding { warning: false, what, next: String::new() }),
        }
    }

    /// One side's tree.
    pub(super) fn tree(&self, side: Side) -> Tree {
        let node = |path: &Path| {
            let Sum { calls, self_ns, total_ns } = *path.sums.of(side);
            Node {
                parent: path.parent,
                function: path.function,
                calls: calls.round() as u64,
                self_time: Time::from(self_ns),
                total: Time::from(total_ns),
                extremes: None,
                spent: Default::default(),
            }
        };
        Tree { nodes: self.paths.iter().map(node).collect() }
    }

    /// The same as a thread, which is what pages show.
    pub(super) fn thread(&self, side: Side) -> Thread {
        let name = match side {
            Side::Before => "Before",
            Side::After => "After",
        };
        Thread { name: name.into(), merged: 1, tree: self.tree(side), ..Thread::default() }
    }
}
