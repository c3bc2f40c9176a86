//! Trees cut down to a number of call paths that a browser can hold: those with least
//! time go, their time stays with the caller's frame under a name that says so.

use teeperf_profile::model::{Function, FunctionId, Node, Profile, Thread, Time, Tree};

use crate::findings::Finding;
use crate::units;

/// Trees of a profile's threads, cut where there were too many call paths.
#[derive(Debug, Default)]
pub(crate) struct Pruned {
    /// One for each thread; empty when nothing was cut.
    trees: Vec<Tree>,
    /// What stands for the paths left out, behind the profile's own functions.
    pub(crate) function: Option<Function>,
    /// What the reader must know.
    pub(crate) finding: Option<Finding>,
}

impl Pruned {
    /// Threads with the tree to draw for each.
    pub(crate) fn threads<'a>(
        &'a self,
        profile: &'a Profile,
    ) -> impl Iterator<Item = (&'a Thread, &'a Tree)> {
        profile
            .threads
            .iter()
            .enumerate()
            .map(|(at, thread)| (thread, self.trees.get(at).unwrap_or(&thread.tree)))
    }
}

/// Leaves at most about `most` call paths in all: those that are longest. A caller's total
/// is never less than its callee's, so what stays hangs together.
pub(crate) fn to(profile: &Profile, most: usize) -> Pruned {
    let paths = |thread: &Thread| thread.tree.nodes.len().saturating_sub(1);
    if profile.threads.iter().map(paths).sum::<usize>() <= most {
        return Pruned::default();
    }
    let mut totals: Vec<f64> = profile
        .threads
        .iter()
        .flat_map(|thread| thread.tree.nodes.iter().skip(1))
        .map(|node| node.total.value)
        .collect();
    let all = totals.len();
    // Of equal ones none stays rather than too many.
    let (_, &mut limit, _) = totals.select_nth_unstable_by(most, |a, b| b.total_cmp(a));
    let rest = FunctionId(profile.functions.len() as u32);
    let mut left_out = LeftOut::default();
    let trees = profile
        .threads
        .iter()
        .map(|thread| cut(&thread.tree, limit, rest, &mut left_out))
        .collect();
    let whole: f64 = totals_of_roots(profile);
    let what = format!(
        "{} of {} call paths, those with at most {} each, are left out of this page: {} of the \
         time, shown as `{REST}`. The table of functions does not count them.",
        units::count(left_out.paths),
        units::count(all as u64),
        units::time_inline(profile.info.unit, limit),
        units::percent_inline(units::share(left_out.time, whole)),
    );
    let next = "For the rest, draw fewer threads or functions, or use the text or JSON report.";
    Pruned {
        trees,
        function: Some(Function { name: REST.into(), ..Function::default() }),
        finding: Some(Finding { warning: false, what, next: next.into() }),
    }
}

const REST: &str = "[short call paths]";

fn totals_of_roots(profile: &Profile) -> f64 {
    profile.threads.iter().map(|thread| thread.tree.framed_ns()).sum()
}

#[derive(Default)]
struct LeftOut {
    paths: u64,
    time: f64,
}

/// The tree without nodes of at most `limit`; what hung below a node that stays becomes
/// one leaf of function `rest` there.
fn cut(tree: &Tree, limit: f64, rest: FunctionId, left_out: &mut LeftOut) -> Tree {
    let mut kept = Tree::default();
    // New place of a node that stays.
    let mut place = vec![None; tree.nodes.len()];
    // Time cut off right below a node, by the node's new place.
    let mut below: Vec<Time> = Vec::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        let parent =
            if at == 0 { Some(0) } else { place.get(node.parent as usize).copied().flatten() };
        match parent {
            Some(parent) if at == 0 || node.total.value > limit => {
                place[at] = Some(kept.nodes.len() as u32);
                kept.nodes.push(Node { parent, ..*node });
                below.push(Time::default());
            }
            Some(parent) => {
                left_out.paths += 1;
                left_out.time += node.total.value;
                below[parent as usize] += node.total;
            }
            None => left_out.paths += 1,
        }
    }
    for (parent, time) in below.into_iter().enumerate() {
        if time.value > 0.0 {
            let parent = parent as u32;
            kept.nodes.push(Node {
                parent,
                function: rest,
                calls: 0,
                self_time: time,
                total: time,
                extremes: None,
                spent: Default::default(),
            });
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_profile::model::Health;

    fn node(parent: u32, function: u32, self_ns: f64, total_ns: f64) -> Node {
        let exact = |ns| Time { value: ns, low: ns, high: ns };
        Node {
            parent,
            function: FunctionId(function),
            calls: 1,
            self_time: exact(self_ns),
            total: exact(total_ns),
            extremes: None,
            spent: Default::default(),
        }
    }

    fn profile() -> Profile {
        let function =
            |name: &str| Function { name: name.into(), module: "m".into(), ..Function::default() };
        let nodes = vec![
            node(0, 0, 0.0, 100.0),
            node(0, 0, 50.0, 100.0),
            node(1, 1, 30.0, 45.0),
            node(2, 2, 15.0, 15.0),
            node(1, 2, 3.0, 5.0),
            node(4, 1, 2.0, 2.0),
        ];
        Profile {
            functions: vec![function("main"), function("a"), function("b")],
            threads: vec![Thread { tree: Tree { nodes }, merged: 1, ..Thread::default() }],
            health: Health::default(),
            ..Profile::default()
        }
    }

    #[test]
    fn nothing_is_cut_that_fits() {
        let pruned = to(&profile(), 5);
        assert!(pruned.finding.is_none() && pruned.function.is_none());
    }

    #[test]
    fn shortest_paths_go_and_their_time_stays() {
        let profile = profile();
        let pruned = to(&profile, 3);
        let (_, tree) = pruned.threads(&profile).next().unwrap();
        // 5 and 2 go, and are 5 of time below main, which is node 1.
        let expected = vec![
            node(0, 0, 0.0, 100.0),
            node(0, 0, 50.0, 100.0),
            node(1, 1, 30.0, 45.0),
            node(2, 2, 15.0, 15.0),
            Node { calls: 0, ..node(1, 3, 5.0, 5.0) },
        ];
        assert_eq!(tree.nodes, expected);
        let finding = pruned.finding.unwrap();
        assert!(finding.what.starts_with("2 of 5 call paths, those with at most 5.000 ns each"));
        assert!(finding.what.contains("5.0 % of the time"));
    }
}
