//! The part of a profile that somebody wants to look at: some threads, the call paths
//! through some functions or from some on, or all but those; with functions put together.

use crate::aggregate;
use crate::model::{Function, FunctionId, Point, Profile, Thread};
use crate::paths::PathPattern;
use crate::pattern::Pattern;
use std::collections::HashMap;

/// What is wanted. Empty lists want everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Threads of these ids or names.
    pub threads: Vec<Pattern>,
    /// Only call paths through functions that fit, and if there are several patterns, through
    /// a function for each of them.
    pub focus: Vec<Pattern>,
    /// No call paths through functions that fit any of these.
    pub ignore: Vec<Pattern>,
    /// Only call paths in which these are found, and if there are several, all of them.
    pub paths: Vec<PathPattern>,
    /// Only call paths from functions that fit on, whoever called these.
    pub root: Vec<Pattern>,
    /// Functions that are shown as one.
    pub groups: Vec<Group>,
    /// Whether time in code without hooks is that of the function that called it.
    pub fold_unhooked: bool,
}

/// Functions that are shown as one, `[name]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What they are called.
    pub name: String,
    /// Which.
    pub patterns: Vec<Pattern>,
}

impl Group {
    /// Of `name=pattern,pattern`: commas within brackets and regular expressions are theirs.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Self, String> {
        let Some((name, patterns)) = text.split_once('=').filter(|(name, _)| !name.is_empty())
        else {
            return Err("not NAME=PATTERN, such as alloc=malloc,free".into());
        };
        let patterns = parts(patterns).into_iter().map(Pattern::new).collect::<Result<_, _>>();
        Ok(Self { name: name.into(), patterns: patterns.map_err(|error| error.to_string())? })
    }
}

fn parts(list: &str) -> Vec<&str> {
    let (mut begin, mut depth, mut is_regex) = (0, 0usize, list.starts_with('/'));
    let mut found = Vec::new();
    for (at, c) in list.char_indices() {
        match c {
            '(' | '<' | '[' | '{' if !is_regex => depth += 1,
            ')' | '>' | ']' | '}' if !is_regex => depth = depth.saturating_sub(1),
            ',' if depth == 0 && (!is_regex || (at > begin + 1 && list[..at].ends_with('/'))) => {
                found.push(&list[begin..at]);
                begin = at + 1;
                is_regex = list[begin..].starts_with('/');
            }
            _ => {}
        }
    }
    found.push(&list[begin..]);
    found
}

impl Selection {
    /// Whether everything is wanted.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether all of the time is wanted, if under other names.
    fn is_of_all_time(&self) -> bool {
        Self { groups: Vec::new(), fold_unhooked: false, ..self.clone() }.is_all()
    }

    /// That part of a profile. Totals are of what is left, and events those of threads that are; what is known of the run
    /// and of the recording's health otherwise stays that of the whole.
    pub fn of(&self, profile: Profile) -> Profile {
        let events = |profile: &Profile| {
            profile.threads.iter().fold(0u64, |sum, thread| sum.saturating_add(thread.events))
        };
        let before = events(&profile);
        let mut part = self.part_of(profile);
        let gone = before.saturating_sub(events(&part));
        part.health.events = part.health.events.saturating_sub(gone);
        part
    }

    fn part_of(&self, mut profile: Profile) -> Profile {
        if !self.is_all() {
            if !self.is_of_all_time() {
                let all = profile.part_of_ns.unwrap_or_else(|| profile.framed_ns());
                profile.part_of_ns = Some(all);
            }
            // These have neither threads nor paths.
            profile.graph = None;
            profile.lines.clear();
            profile.waits.clear();
        }
        if !self.threads.is_empty() {
            self.keep_threads(&mut profile.threads);
            let threads = &profile.threads;
            let is_one =
                |thread: &Thread, point: &Point| (thread.pid, thread.tid) == (point.pid, point.tid);
            profile.points.retain(|point| threads.iter().any(|thread| is_one(thread, point)));
        }
        for pattern in &self.focus {
            let found = pattern.among(&profile.functions);
            profile = profile.with_trees(|tree, _| aggregate::focus(tree, &found));
        }
        for pattern in &self.ignore {
            let found = pattern.among(&profile.functions);
            profile = profile.with_trees(|tree, _| aggregate::ignore(tree, &found));
        }
        for pattern in &self.paths {
            profile = profile
                .with_trees(|tree, functions| aggregate::fitting_paths(tree, functions, pattern));
        }
        for pattern in &self.root {
            let found = pattern.among(&profile.functions);
            profile = profile.with_trees(|tree, _| aggregate::rooted(tree, &found));
        }
        if self.fold_unhooked {
            profile = folded(profile);
        }
        if self.groups.is_empty() { profile } else { self.grouped(profile) }
    }

    /// With functions of groups put together; of one that fits several the first counts.
    fn grouped(&self, mut profile: Profile) -> Profile {
        let count = profile.functions.len();
        let mut numbers: HashMap<&str, FunctionId> = HashMap::new();
        let mut of: Vec<Option<FunctionId>> = vec![None; count];
        for group in &self.groups {
            let next = FunctionId(profile.functions.len() as u32);
            let number = *numbers.entry(&group.name).or_insert(next);
            for pattern in &group.patterns {
                let fits = pattern.among(&profile.functions[..count]).fits;
                for (of, _) in of.iter_mut().zip(fits).filter(|(_, fits)| *fits) {
                    of.get_or_insert(number);
                }
            }
            if number == next {
                let name = format!("[{}]", group.name);
                profile.functions.push(Function { name, ..Function::default() });
            }
        }
        profile.with_trees(|tree, _| {
            aggregate::grouped(tree, |function| of.get(function.0 as usize).copied().flatten())
        })
    }

    fn keep_threads(&self, threads: &mut Vec<Thread>) {
        let found: Vec<Vec<bool>> =
            self.threads.iter().map(|pattern| pattern.threads(threads)).collect();
        let mut places = 0..;
        threads
            .retain(|_| places.next().is_some_and(|at: usize| found.iter().any(|fits| fits[at])));
    }
}

/// With the time of functions that were never called, as far as hooks know, in their callers'.
fn folded(profile: Profile) -> Profile {
    let mut has_hooks = vec![false; profile.functions.len()];
    for node in profile.threads.iter().flat_map(|thread| &thread.tree.nodes) {
        has_hooks[node.function.0 as usize] |= node.calls > 0;
    }
    profile.with_trees(|tree, _| {
        aggregate::within_callers(tree, |function| !has_hooks[function.0 as usize])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Node, Time, Tree};

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
            events: 10,
            tree: Tree { nodes: nodes.clone() },
            ..Thread::default()
        };
        Profile {
            functions: vec![function("main"), function("read"), function("parse")],
            threads: vec![thread(7, "worker 1"), thread(8, "worker 2")],
            health: crate::model::Health { events: 21, ..Default::default() },
            ..Profile::default()
        }
    }

    #[test]
    fn a_part_knows_of_how_much_it_is_one() {
        let focus = texts(&["parse"]);
        let part = Selection { focus, ..Selection::default() }.of(profile());
        assert_eq!((part.framed_ns(), part.part_of_ns), (24.0, Some(30.0)));
        assert_eq!(Selection::default().of(profile()).part_of_ns, None);
        // One event is of no thread; 10 each of these.
        let events = |list: &[&str]| {
            let selection = Selection { threads: texts(list), ..Selection::default() };
            selection.of(profile()).health.events
        };
        assert_eq!((events(&[]), events(&["7"]), events(&["7", "8"])), (21, 11, 21));
    }

    fn totals(selection: &Selection) -> Vec<(u32, f64)> {
        let part = selection.of(profile());
        part.threads.iter().map(|thread| (thread.tid, thread.tree.nodes[0].total.value)).collect()
    }

    fn texts(list: &[&str]) -> Vec<Pattern> {
        list.iter().map(|text| Pattern::new(text).unwrap()).collect()
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
    fn paths_from_a_function_on_are_summed_over_its_callers() {
        let of = |root: &str| {
            let selection = Selection { root: texts(&[root]), ..Selection::default() };
            let part = selection.of(profile());
            let nodes = &part.threads[0].tree.nodes;
            nodes
                .iter()
                .map(|n| (n.parent, n.function.0, n.calls, n.total.value))
                .collect::<Vec<_>>()
        };
        assert_eq!(of("read"), [(0, 0, 0, 10.0), (0, 1, 2, 10.0)]);
        assert_eq!(of("parse"), [(0, 0, 0, 12.0), (0, 2, 1, 12.0), (1, 1, 1, 8.0)]);
        // What is called within such a path stays there.
        assert_eq!(of("/parse|read/")[1..], [(0, 1, 1, 2.0), (0, 2, 1, 12.0), (2, 1, 1, 8.0)]);
    }

    #[test]
    fn groups_are_one_function_each() {
        let of = |groups: &[&str]| {
            let groups = groups.iter().map(|text| Group::new(text).unwrap()).collect();
            let part = Selection { groups, ..Selection::default() }.of(profile());
            assert_eq!(part.part_of_ns, None);
            let name = |id: FunctionId| part.functions[id.0 as usize].name.clone();
            let nodes = part.threads[0].tree.nodes.iter().skip(1);
            nodes
                .map(|n| (n.parent, name(n.function), n.calls, n.self_time.value, n.total.value))
                .collect::<Vec<_>>()
        };
        let io = |parent, calls, own, total| (parent, "[io]".to_owned(), calls, own, total);
        let main = (0, "main".to_owned(), 1, 1.0, 15.0);
        assert_eq!(of(&["io=read,parse"]), [main.clone(), io(1, 2, 14.0, 14.0)]);
        assert_eq!(of(&["io=read", "io=/pars/"]), [main.clone(), io(1, 2, 14.0, 14.0)]);
        let parse = (1, "[io]".to_owned(), 1, 4.0, 12.0);
        let read = |parent, own| (parent, "[b]".to_owned(), 1, own, own);
        assert_eq!(
            of(&["io=parse", "b=*a*,read"]),
            [(0, "[b]".to_owned(), 1, 3.0, 15.0), (1, parse.1, 1, 4.0, 12.0), read(2, 8.0),]
        );
        assert!(Group::new("read").is_err() && Group::new("=read").is_err());
        assert!(Group::new("a=").is_err() && Group::new("a=read,").is_err());
        let texts = |text: &str| -> Vec<String> {
            Group::new(text).unwrap().patterns.iter().map(|one| one.text().to_owned()).collect()
        };
        assert_eq!(texts("a=f(int, int),g<a,b>,h"), ["f(int, int)", "g<a,b>", "h"]);
        assert_eq!(texts("a=/x{1,2}/,h,/,/"), ["/x{1,2}/", "h", "/,/"]);
    }

    #[test]
    fn code_without_hooks_is_its_callers() {
        let mut profile = profile();
        let memcpy = FunctionId(profile.functions.len() as u32);
        profile.functions.push(Function { name: "memcpy".into(), ..Function::default() });
        for thread in &mut profile.threads {
            for parent in [0, 2, 4] {
                thread.tree.nodes.push(Node { calls: 0, ..node(parent, memcpy.0, 1.0, 1.0) });
            }
        }
        let part = Selection { fold_unhooked: true, ..Selection::default() }.of(profile);
        assert_eq!(part.part_of_ns, None);
        let nodes = &part.threads[0].tree.nodes;
        let own: Vec<f64> = nodes.iter().map(|node| node.self_time.value).collect();
        assert_eq!(own, [1.0, 1.0, 3.0, 4.0, 9.0]);
    }

    #[test]
    fn paths_by_expression() {
        let of = |list: &[&str]| {
            let paths = list.iter().map(|text| PathPattern::new(text).unwrap()).collect();
            let selection = Selection { threads: texts(&["7"]), paths, ..Selection::default() };
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
