//! The part of a profile that somebody wants to look at: some threads, the call paths
//! through some functions, or all but those.

use crate::aggregate::{self, Pattern};
use crate::model::{Point, Profile, Thread};
use crate::paths::PathPattern;

/// What is wanted. Empty lists want everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Threads of these: a number is a thread's id, anything else a [`Pattern`] for names.
    pub threads: Vec<String>,
    /// Only call paths through functions that fit, and if there are several patterns, through
    /// a function for each of them.
    pub focus: Vec<String>,
    /// No call paths through functions that fit any of these.
    pub ignore: Vec<String>,
    /// Only call paths in which these are found, and if there are several, all of them.
    pub paths: Vec<PathPattern>,
}

impl Selection {
    /// Whether everything is wanted.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// That part of a profile. Totals are of what is left; what is known of the run and of
    /// the recording's health stays that of the whole.
    pub fn of(&self, mut profile: Profile) -> Profile {
        if !self.is_all() {
            profile.part_of_ns = Some(profile.part_of_ns.unwrap_or_else(|| profile.framed_ns()));
            // These have neither threads nor paths.
            profile.graph = None;
            profile.waits.clear();
        }
        profile.threads.retain(|thread| self.has(thread));
        if !self.threads.is_empty() {
            let threads = &profile.threads;
            let is_one =
                |thread: &Thread, point: &Point| (thread.pid, thread.tid) == (point.pid, point.tid);
            profile.points.retain(|point| threads.iter().any(|thread| is_one(thread, point)));
        }
        for pattern in self.focus.iter().map(Pattern::new) {
            profile =
                profile.with_trees(|tree, functions| aggregate::focus(tree, functions, &pattern));
        }
        for pattern in self.ignore.iter().map(Pattern::new) {
            profile =
                profile.with_trees(|tree, functions| aggregate::ignore(tree, functions, &pattern));
        }
        for pattern in &self.paths {
            profile = profile
                .with_trees(|tree, functions| aggregate::fitting_paths(tree, functions, pattern));
        }
        profile
    }

    fn has(&self, thread: &Thread) -> bool {
        let is = |wanted: &String| match wanted.parse::<u32>() {
            Ok(id) => id == thread.tid,
            Err(_) => Pattern::new(wanted).fits(&thread.name),
        };
        self.threads.is_empty() || self.threads.iter().any(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Function, FunctionId, Node, Time, Tree};

    fn node(parent: u32, function: u32, self_ns: f64, total_ns: f64) -> Node {
        let exact = |ns| Time { value: ns, low: ns, high: ns };
        Node {
            parent,
            function: FunctionId(function),
            calls: 1,
            self_time: exact(self_ns),
            total: exact(total_ns),
            extremes: None,
        }
    }

    /// `main` (1) calls `read` (2) and `parse` (4), which calls `read` (8); twice.
    fn profile() -> Profile {
        let function = |name: &str| Function { name: name.into(), ..Function::default() };
        let nodes = vec![
            node(0, 0, 0.0, 15.0),
            node(0, 0, 1.0, 15.0),
            node(1, 1, 2.0, 2.0),
            node(1, 2, 4.0, 12.0),
            node(3, 1, 8.0, 8.0),
        ];
        let thread = |tid, name: &str| Thread {
            tid,
            name: name.into(),
            tree: Tree { nodes: nodes.clone() },
            ..Thread::default()
        };
        Profile {
            functions: vec![function("main"), function("read"), function("parse")],
            threads: vec![thread(7, "worker 1"), thread(8, "worker 2")],
            ..Profile::default()
        }
    }

    #[test]
    fn a_part_knows_of_how_much_it_is_one() {
        let focus = texts(&["parse"]);
        let part = Selection { focus, ..Selection::default() }.of(profile());
        assert_eq!((part.framed_ns(), part.part_of_ns), (24.0, Some(30.0)));
        assert_eq!(Selection::default().of(profile()).part_of_ns, None);
    }

    fn totals(selection: &Selection) -> Vec<(u32, f64)> {
        let part = selection.of(profile());
        part.threads.iter().map(|thread| (thread.tid, thread.tree.nodes[0].total.value)).collect()
    }

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn threads_by_id_and_by_name() {
        let threads =
            |list: &[&str]| totals(&Selection { threads: texts(list), ..Default::default() });
        assert_eq!(threads(&[]), [(7, 15.0), (8, 15.0)]);
        assert_eq!(threads(&["8"]), [(8, 15.0)]);
        assert_eq!(threads(&["1"]), []);
        assert_eq!(threads(&["*r 1"]), [(7, 15.0)]);
        assert_eq!(threads(&["7", "worker 2"]), [(7, 15.0), (8, 15.0)]);
        assert_eq!(threads(&["other"]), []);
    }

    #[test]
    fn functions_in_and_out() {
        let of = |focus: &[&str], ignore: &[&str]| {
            let selection = Selection {
                threads: texts(&["7"]),
                focus: texts(focus),
                ignore: texts(ignore),
                ..Selection::default()
            };
            totals(&selection).first().map(|thread| thread.1)
        };
        assert_eq!(of(&["read"], &[]), Some(10.0));
        assert_eq!(of(&["parse"], &[]), Some(12.0));
        assert_eq!(of(&["parse", "read"], &[]), Some(8.0));
        assert_eq!(of(&["read"], &["parse"]), Some(2.0));
        assert_eq!(of(&[], &["read", "parse"]), Some(1.0));
        assert_eq!(of(&["nothing"], &[]), None);
    }

    #[test]
    fn paths_by_expression() {
        let of = |texts: &[&str]| {
            let paths = texts.iter().map(|text| PathPattern::new(text).unwrap()).collect();
            let selection = Selection { threads: vec!["7".into()], paths, ..Selection::default() };
            let part = selection.of(profile());
            part.threads.first().map(|thread| {
                let calls: u64 = thread.tree.nodes.iter().skip(1).map(|node| node.calls).sum();
                (thread.tree.nodes[0].total.value, calls)
            })
        };
        assert_eq!(of(&["^main;read"]), Some((2.0, 1)));
        assert_eq!(of(&["read$"]), Some((10.0, 2)));
        assert_eq!(of(&["parse"]), Some((12.0, 2)));
        assert_eq!(of(&["parse", "read$"]), Some((8.0, 1)));
        assert_eq!(of(&["^read"]), None);
    }
}
