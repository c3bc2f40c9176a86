//! Names that would fill much more than was read. A small file may give each function a name of
//! many kilobytes, and views write a name once for each path, thread and arc: some hundred
//! kilobytes would fill gigabytes. Where that is so, long names are cut, and a warning says it.

use crate::model::{FunctionId, Profile};
use std::borrow::Cow;

/// Bytes that names may take in any case, and how often what was read.
const FREE: u64 = 64 << 20;
const TIMES: u64 = 16;
/// Bytes of a name that is not cut, and of its two ends where one is.
const SHORT: usize = 256;
const ENDS: [usize; 2] = [192, 48];

/// Cuts long names of a profile that was made of so many bytes, if they take too much.
pub(crate) fn cut(profile: &mut Profile, read: u64) {
    let room = read.saturating_mul(TIMES).saturating_add(FREE);
    let wanted = wanted(profile);
    if wanted > room {
        let functions = profile.functions.iter_mut();
        let names = functions.flat_map(|function| [&mut function.module, &mut function.name]);
        let long = names.filter(|name| name.len() > SHORT);
        let cut = long.map(|name| *name = short(name).into_owned()).count();
        if cut > 0 {
            profile.health.warnings.push(format!(
                "{cut} names of functions and modules have more than {SHORT} bytes, and are cut: \
                 they would take {} MiB where they are shown, and {read} bytes were read",
                wanted >> 20
            ));
        }
    }
    profile.beside.iter_mut().for_each(|beside| cut(beside, read));
}

/// Bytes of all names, each as often as it is shown.
fn wanted(profile: &Profile) -> u64 {
    let lengths: Vec<u64> = profile
        .functions
        .iter()
        .map(|function| (function.name.len() + function.module.len()) as u64)
        .collect();
    let length = |function: FunctionId| lengths.get(function.0 as usize).copied().unwrap_or(0);
    let nodes = profile.threads.iter().flat_map(|thread| &thread.tree.nodes);
    let arcs = profile.graph.iter().flat_map(|graph| &graph.arcs);
    let ends = arcs.flat_map(|arc| [arc.caller, Some(arc.callee)]).flatten();
    let all = nodes.map(|node| node.function).chain(ends);
    all.fold(0u64, |sum, function| sum.saturating_add(length(function)))
}

/// A name, or its two ends where it is long.
pub fn short(name: &str) -> Cow<'_, str> {
    if name.len() <= SHORT {
        return Cow::Borrowed(name);
    }
    let is_boundary = |at: &usize| name.is_char_boundary(*at);
    let [first, last] = [ENDS[0], name.len() - ENDS[1]];
    let first = (0..=first).rev().find(is_boundary).unwrap_or(0);
    let last = (last..=name.len()).find(is_boundary).unwrap_or(name.len());
    Cow::Owned(format!("{}…{}", &name[..first], &name[last..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Function, Node, Thread, Time};

    /// A profile of one function in so many threads.
    fn profile(name: &str, threads: usize) -> Profile {
        let function = Function { name: name.into(), ..Function::default() };
        let mut thread = Thread::default();
        let (self_time, total) = (Time::default(), Time::default());
        let of = FunctionId(0);
        let node = Node {
            parent: 0,
            function: of,
            calls: 1,
            self_time,
            total,
            extremes: None,
            spent: Default::default(),
        };
        thread.tree.nodes = vec![node; 2];
        Profile { functions: vec![function], threads: vec![thread; threads], ..Profile::default() }
    }

    #[test]
    fn long_names_are_cut_where_they_would_fill_more_than_was_read() {
        let name = "ä".repeat(1 << 15);
        let (enough, few) = (512, 3 << 18);
        for (threads, read, is_cut) in [(enough, 0, false), (600, 0, true), (600, few, false)] {
            let mut profile = profile(&name, threads);
            cut(&mut profile, read);
            let length = profile.functions[0].name.len();
            assert_eq!(length, if is_cut { 192 + 3 + 48 } else { name.len() }, "{threads}, {read}");
            assert_eq!(profile.health.warnings.len(), usize::from(is_cut));
        }
    }

    #[test]
    fn names_of_people_are_never_cut() {
        let mut profile = profile(&"a".repeat(SHORT), 1 << 18);
        cut(&mut profile, 0);
        assert_eq!(profile.functions[0].name.len(), SHORT);
        assert!(profile.health.warnings.is_empty());
    }
}
