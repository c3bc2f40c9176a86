//! Which functions to leave out of a next recording: those that make most of its events, and tell least.
//!
//! A call and its return are two events. Without its hooks a function's own time is its caller's: it **moves** to the
//! nearest caller that stays. And of the paths that led through it to others a **level** is gone. Time that was spent
//! at the end of a path is what the path tells; each of the path's n functions is taken to tell an nth of it. So what a
//! function tells is
//!
//! ```text
//! its own time + Σ over the time below it: time / functions on its path
//! ```
//!
//! and functions are left out in the order of events for what they tell, most first. Totals of functions that stay, and
//! who of them called whom, remain; what changes are their self times, by what moves.

use crate::aggregate;
use crate::model::{FunctionId, Profile, Tree};
use std::collections::HashMap;

/// Of fewer events a function is not worth a line.
const LEAST_EVENTS: f64 = 0.001;

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The part of the events that is to go, `0.0..=1.0`.
    pub events: f64,
    /// The part of all time that may at most move to any one function that stays, and that paths may tell less without
    /// any one that goes, `0.0..=1.0`.
    pub shares: f64,
}

/// What to leave out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suggestion {
    /// Functions, in the order in which they were chosen.
    pub functions: Vec<Left>,
    /// Calls of all functions.
    pub calls: u64,
    /// Time of all functions, nanoseconds.
    pub time_ns: f64,
    /// CPU time of hooks while it was recorded, nanoseconds, where samples tell it; it is in no
    /// function's time.
    pub hooks_ns: Option<f64>,
    /// To whom most time moves, and how much, nanoseconds; no name where it is nobody's.
    pub most_gained: Option<(Option<String>, f64)>,
    /// The first that would have been left out, had that not been too much: its name.
    pub first_kept: Option<String>,
}

/// A function to leave out. Those of the same name are one: patterns know them by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Left {
    /// Its name.
    pub name: String,
    /// Times called.
    pub calls: u64,
    /// Its own time, which moves, nanoseconds.
    pub moved_ns: f64,
    /// What paths tell less, nanoseconds.
    pub levels_ns: f64,
}

impl Suggestion {
    /// The part of the events that goes.
    pub fn events(&self) -> f64 {
        let gone: u64 = self.functions.iter().map(|left| left.calls).sum();
        gone as f64 / (self.calls as f64).max(1.0)
    }
}

/// Chooses what to leave out; nothing where no call paths are known.
pub fn suggest(profile: &Profile, options: &Options) -> Suggestion {
    let tree = aggregate::merged(&profile.threads);
    let mut groups = Groups::new(profile, &tree);
    let mut order: Vec<usize> = (0..groups.told.len()).collect();
    let all = groups.told.iter().map(|left| left.calls).sum::<u64>();
    order.retain(|&at| {
        let left = &groups.told[at];
        left.calls as f64 >= (LEAST_EVENTS * all as f64).max(1.0) && is_name(&left.name)
    });
    // What tells nothing at all is as good as what tells a picosecond a call.
    let worth = |left: &Left| {
        left.calls as f64 / (left.moved_ns + left.levels_ns).max(1e-3 * left.calls as f64)
    };
    order.sort_by(|&a, &b| {
        let (a, b) = (&groups.told[a], &groups.told[b]);
        worth(b).total_cmp(&worth(a)).then_with(|| a.name.cmp(&b.name))
    });
    let time_ns: f64 = tree.nodes.iter().skip(1).map(|node| node.self_time.value).sum();
    let hooks_ns = profile.info.timer_samples.is_some().then(|| profile.hooks_ns());
    let mut suggestion = Suggestion { calls: all, time_ns, hooks_ns, ..Suggestion::default() };
    for at in order {
        if suggestion.events() >= options.events {
            break;
        }
        let most_ns = options.shares * time_ns;
        let tells_little = groups.told[at].levels_ns <= most_ns;
        if tells_little && groups.leave_out(&tree, at, most_ns) {
            suggestion.functions.push(groups.told[at].clone());
        } else {
            suggestion.first_kept.get_or_insert_with(|| groups.told[at].name.clone());
        }
    }
    let most = groups.gained.iter().enumerate().filter(|(_, gained)| **gained > 0.0);
    let most = most.max_by(|(_, a), (_, b)| a.total_cmp(b));
    suggestion.most_gained =
        most.map(|(at, &gained)| (groups.told.get(at).map(|left| left.name.clone()), gained));
    suggestion
}

/// Whether it is the name of a function, and not of what is none or has no symbol.
fn is_name(name: &str) -> bool {
    !name.starts_with('[') && !name.contains("+0x")
}

/// Functions by name, and where time moves when some are left out.
struct Groups {
    told: Vec<Left>,
    /// Group of each node; the root's is behind all others.
    of_node: Vec<usize>,
    nodes: Vec<Vec<u32>>,
    /// Of each node the nearest caller that stays, or one on the way to it; itself, if it stays.
    up: Vec<u32>,
    /// Time of each node that stays, with what moved to it.
    held: Vec<f64>,
    /// What moved to each group; to the root behind all others.
    gained: Vec<f64>,
}

impl Groups {
    fn new(profile: &Profile, tree: &Tree) -> Self {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut told: Vec<Left> = Vec::new();
        let name_of = |function: FunctionId| {
            profile.functions.get(function.0 as usize).map_or("", |function| &function.name)
        };
        let mut of_node = Vec::with_capacity(tree.nodes.len());
        let mut depth = Vec::with_capacity(tree.nodes.len());
        for (at, node) in tree.nodes.iter().enumerate() {
            if at == 0 {
                of_node.push(usize::MAX);
                depth.push(0_u32);
                continue;
            }
            let name = name_of(node.function);
            let group = *numbers.entry(name).or_insert_with(|| {
                told.push(Left { name: name.to_owned(), ..Left::default() });
                told.len() - 1
            });
            told[group].calls = told[group].calls.saturating_add(node.calls);
            told[group].moved_ns += node.self_time.value;
            of_node.push(group);
            depth.push(depth[node.parent as usize] + 1);
        }
        // What each node has of the time at the ends of the paths through it.
        let mut part: Vec<f64> = vec![0.0; tree.nodes.len()];
        for at in (1..tree.nodes.len()).rev() {
            let node = &tree.nodes[at];
            let own = node.self_time.value / f64::from(depth[at]);
            told[of_node[at]].levels_ns += part[at];
            part[node.parent as usize] += part[at] + own;
        }
        let mut nodes = vec![Vec::new(); told.len()];
        for (at, &group) in of_node.iter().enumerate().skip(1) {
            nodes[group].push(at as u32);
        }
        of_node[0] = told.len();
        let up = (0..tree.nodes.len() as u32).collect();
        let held = tree.nodes.iter().map(|node| node.self_time.value).collect();
        let gained = vec![0.0; told.len() + 1];
        Self { told, of_node, nodes, up, held, gained }
    }

    /// The nearest that stays, from this node up.
    fn holder(&mut self, mut at: u32) -> u32 {
        while self.up[at as usize] != at {
            let next = self.up[at as usize];
            self.up[at as usize] = self.up[next as usize];
            at = next;
        }
        at
    }

    /// Leaves the group out, unless more than `most` nanoseconds would have moved to another one.
    fn leave_out(&mut self, tree: &Tree, group: usize, most: f64) -> bool {
        let nodes = std::mem::take(&mut self.nodes[group]);
        // Callers come before what they call, so those of the group itself have their holder already.
        let mut holders: HashMap<u32, u32> = HashMap::with_capacity(nodes.len());
        let mut moved: HashMap<usize, f64> = HashMap::new();
        for &at in &nodes {
            let above = self.holder(tree.nodes[at as usize].parent);
            let holder = holders.get(&above).copied().unwrap_or(above);
            holders.insert(at, holder);
            *moved.entry(self.of_node[holder as usize]).or_insert(0.0) += self.held[at as usize];
        }
        if moved.iter().any(|(&to, &more)| self.gained[to] + more > most) {
            self.nodes[group] = nodes;
            return false;
        }
        for (to, more) in moved {
            self.gained[to] += more;
        }
        self.gained[group] = 0.0;
        for at in nodes {
            let holder = holders[&at];
            self.held[holder as usize] += std::mem::take(&mut self.held[at as usize]);
            self.up[at as usize] = holder;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::profile;

    fn names(suggestion: &Suggestion) -> Vec<&str> {
        suggestion.functions.iter().map(|left| left.name.as_str()).collect()
    }

    /// main calls work, which calls leaf often and seldom middle, which calls leaf.
    fn usual() -> Profile {
        profile(
            &["main", "work", "leaf", "middle"],
            &[
                (0, 0, 1, 10.0),
                (1, 1, 10, 500.0),
                (2, 2, 900, 40.0),
                (2, 3, 50, 400.0),
                (4, 2, 39, 50.0),
            ],
        )
    }

    #[test]
    fn what_is_called_most_and_tells_least_goes_first() {
        let suggestion = suggest(&usual(), &Options { events: 0.9, shares: 1.0 });
        assert_eq!(names(&suggestion), ["leaf"]);
        assert_eq!(suggestion.calls, 1000);
        assert!((suggestion.events() - 0.939).abs() < 1e-9);
        let leaf = &suggestion.functions[0];
        assert_eq!((leaf.moved_ns, leaf.levels_ns), (90.0, 0.0));
        assert_eq!(suggestion.most_gained, Some((Some("middle".into()), 50.0)));
        let more = suggest(&usual(), &Options { events: 0.98, shares: 1.0 });
        assert_eq!(names(&more), ["leaf", "middle"]);
        // What had moved to middle moves on.
        assert_eq!(more.most_gained, Some((Some("work".into()), 490.0)));
        // A fourth of the 50 ns that leaf has below it.
        assert_eq!(more.functions[1].levels_ns, 12.5);
    }

    #[test]
    fn nobody_gains_more_than_may_be() {
        let suggestion = suggest(&usual(), &Options { events: 1.0, shares: 0.1 });
        assert_eq!(names(&suggestion), ["leaf"]);
        assert_eq!(suggestion.first_kept.as_deref(), Some("middle"));
        assert_eq!(suggestion.most_gained, Some((Some("middle".into()), 50.0)));
        let none = suggest(&usual(), &Options { events: 1.0, shares: 0.04 });
        assert_eq!((names(&none), none.first_kept.as_deref()), (vec![], Some("leaf")));
    }

    #[test]
    fn recursion_moves_to_the_caller_of_the_first() {
        let deep = profile(
            &["main", "f"],
            &[(0, 0, 1, 1.0), (1, 1, 10, 5.0), (2, 1, 10, 7.0), (3, 1, 10, 8.0)],
        );
        let suggestion = suggest(&deep, &Options { events: 0.5, shares: 1.0 });
        assert_eq!(names(&suggestion), ["f"]);
        assert_eq!(suggestion.most_gained, Some((Some("main".into()), 20.0)));
    }

    #[test]
    fn what_is_no_function_stays() {
        let odd = profile(
            &["[no room]", "lib.so+0x12", "f"],
            &[(0, 2, 1, 1.0), (1, 0, 50, 1.0), (1, 1, 50, 1.0)],
        );
        let suggestion = suggest(&odd, &Options { events: 0.9, shares: 1.0 });
        assert_eq!(names(&suggestion), ["f"]);
        assert_eq!(suggestion.most_gained, Some((None, 1.0)));
    }
}
