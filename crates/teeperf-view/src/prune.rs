//! Trees cut down to a number of call paths that a browser can hold: those with least
//! time go. Their time, waiting and hooks stay with the caller's frame under a name that says so.

use teeperf_profile::model::{Function, FunctionId, Node, Profile, Spent, Thread, Time, Tree};

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
    // New place of the innermost node that stays, of each path; and whether it is the path's own.
    let mut places: Vec<(u32, bool)> = Vec::with_capacity(tree.nodes.len());
    // Time, waiting and hooks that are cut off below a node, by the node's new place.
    let mut below: Vec<(Time, Spent)> = Vec::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        let (parent, is_parent_kept) = match at {
            0 => (0, true),
            _ => places[node.parent as usize],
        };
        if is_parent_kept && (at == 0 || node.total.value > limit) {
            places.push((kept.nodes.len() as u32, true));
            kept.nodes.push(Node { parent, ..*node });
            below.push(Default::default());
            continue;
        }
        places.push((parent, false));
        left_out.paths += 1;
        let (time, spent) = &mut below[parent as usize];
        add_own(spent, &node.spent);
        if is_parent_kept {
            left_out.time += node.total.value;
            *time += node.total;
        }
    }
    for (parent, (time, spent)) in below.into_iter().enumerate() {
        if time.value > 0.0 || spent != Spent::default() {
            let parent = parent as u32;
            kept.nodes.push(Node {
                parent,
                function: rest,
                calls: 0,
                self_time: time,
                total: time,
                extremes: None,
                spent,
            });
        }
    }
    kept
}

/// Adds a path's own part to that of a leaf.
fn add_own(leaf: &mut Spent, path: &Spent) {
    *leaf += path.of_itself();
    *leaf = leaf.of_leaf();
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
    fn waiting_and_hooks_of_paths_that_go_stay() {
        let mut profile = profile();
        let nodes = &mut profile.threads[0].tree.nodes;
        // Nodes 4 and 5 go, one below the other.
        for (at, waiting_ns, hooks_ns) in
            [(0, 7.0, 0.0), (2, 1.0, 0.5), (4, 2.0, 0.25), (5, 4.0, 8.0)]
        {
            nodes[at].spent = Spent { waiting_ns, hooks_ns, ..Spent::default() };
        }
        let pruned = to(&profile, 3);
        let (_, tree) = pruned.threads(&profile).next().unwrap();
        let spent = |at: usize| (tree.nodes[at].spent.waiting_ns, tree.nodes[at].spent.hooks_ns);
        assert_eq!([0, 1, 2, 4].map(spent), [(7.0, 0.0), (0.0, 0.0), (1.0, 0.5), (6.0, 8.25)]);
        assert_eq!(tree.nodes[4].spent.total_waiting_ns, 6.0);
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
