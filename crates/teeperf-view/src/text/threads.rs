//! The table of threads.

use std::collections::HashMap;
use std::io::{self, Write};

use teeperf_profile::model::{FunctionId, Profile, Thread, Tree};

use super::{Options, heading};
use crate::style::{Paint, Style};
use crate::{names, units};

/// The part of a caller's time that a function has to take to be on the path that tells threads apart.
const MOST_OF_CALLER: f64 = 0.5;
/// Deepest such path.
const DEEPEST: usize = 64;
/// Columns of a figure, and of the space behind it.
const FIGURE: usize = 8 + 2;
const NUMBER: usize = 7 + 2;
/// Fewest columns that a name has.
const LEAST_NAME: usize = 8;

pub(super) fn write(
    profile: &Profile,
    options: &Options,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let threads = &profile.threads;
    let shown = &threads[..threads.len().min(options.limit)];
    let tells_waiting = profile.info.timer_samples.is_some();
    let for_room = threads.iter().map(|thread| thread.waited_ns).fold(0, u64::saturating_add);
    let waited = match for_room {
        0 => String::new(),
        _ if !tells_waiting => "; WAITED is for room in memory".into(),
        ns => {
            let ns = units::time_inline(profile.info.unit_of_durations(), ns as f64);
            format!("; they waited {ns} for room in memory beside that")
        }
    };
    let title = format!("Threads: {} of {}{waited}", shown.len(), threads.len());
    heading(style, &title, out)?;
    let events = shown.iter().map(|thread| units::count(thread.events).len()).max();
    let what = if profile.info.is_sampled() { "SAMPLES" } else { "EVENTS" };
    let events = events.unwrap_or(0).max(what.len());
    let has_hooks = shown.iter().any(|thread| thread.hooks_ns() > 0.0);
    let is_one = shown.iter().all(|thread| thread.pid == shown[0].pid);
    let room = style.columns().saturating_sub(4 * FIGURE + events + 2 + NUMBER);
    // Where names lack room, the table leaves out the process if there is one alone, else hooks.
    let has_room = |columns: usize| columns + LEAST_NAME <= room;
    let tells_process = !is_one || has_room(NUMBER + if has_hooks { FIGURE } else { 0 });
    let of_process = if tells_process { NUMBER } else { 0 };
    let tells_hooks = has_hooks && has_room(of_process + FIGURE);
    let of_hooks = if tells_hooks { FIGURE } else { 0 };
    let room = room.saturating_sub(of_process + of_hooks).max(LEAST_NAME);
    let head = format!(
        "{:>8}  {:>8}  {:>8}  {:>8}  {}{what:>events$}  {}{:>7}  THREAD",
        "RECORDED",
        "WALL ",
        "CPU ",
        "WAITED ",
        if tells_hooks { "  HOOKS   " } else { "" },
        if tells_process { "PROCESS  " } else { "" },
        "ID"
    );
    writeln!(out, "{}", style.paint(Paint::Faint, head))?;
    let apart = apart(threads);
    for (at, thread) in shown.iter().enumerate() {
        let name = match thread.merged {
            0 | 1 => thread.name.clone(),
            merged => format!("{} ({merged} threads)", thread.name),
        };
        let unit = profile.info.unit_of_durations();
        let waited_ns = if tells_waiting { thread.waiting_ns() } else { thread.waited_ns as f64 };
        let cpu = thread.whole_cpu_ns().map_or("–  ".into(), |ns| units::time(unit, ns as f64));
        writeln!(
            out,
            "{}  {}  {cpu:>8}  {}  {}{:>events$}  {}{:>7}  {}",
            units::time(profile.info.unit, thread.tree.framed_ns()),
            units::time(unit, thread.wall_ns as f64),
            units::time(unit, waited_ns),
            if tells_hooks { units::time(unit, thread.hooks_ns()) + "  " } else { String::new() },
            units::count(thread.events),
            if tells_process { format!("{:>7}  ", thread.pid) } else { String::new() },
            thread.tid,
            match apart[at].and_then(|function| profile.functions.get(function.0 as usize)) {
                // What names have in common tells less.
                Some(function) => {
                    let name = names::cut_end(&names::printable(&name), room / 2);
                    let left = room.saturating_sub(names::columns(&name) + 2).max(8);
                    format!("{name}: {}", names::label(&function.name, left))
                }
                None => names::fit(&name, room),
            },
        )?;
    }
    if let Some(rest) = threads.get(shown.len()..).filter(|rest| !rest.is_empty()) {
        let time: f64 = rest.iter().map(|thread| thread.tree.framed_ns()).sum();
        let text = format!(
            "{}  … {} more",
            units::time(profile.info.unit, time),
            units::counted(rest.len() as u64, "thread"),
        );
        writeln!(out, "{}", style.paint(Paint::Faint, text))?;
    }
    Ok(())
}

/// What tells each thread from others of its name, in its process or in others: the first function at which the paths part
/// that took most of their time. Where they do not, the first one of threads of one process; other processes have ids.
fn apart(threads: &[Thread]) -> Vec<Option<FunctionId>> {
    let mut of_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, thread) in threads.iter().enumerate() {
        of_name.entry(&thread.name).or_default().push(at);
    }
    let mut apart = vec![None; threads.len()];
    for alike in of_name.into_values().filter(|alike| alike.len() > 1) {
        let paths: Vec<_> = alike.iter().map(|&at| busiest_path(&threads[at].tree)).collect();
        let mut of_process: HashMap<u32, u32> = HashMap::new();
        alike.iter().for_each(|&at| *of_process.entry(threads[at].pid).or_default() += 1);
        let longest = paths.iter().map(Vec::len).max().unwrap_or(0);
        let parts = (0..longest)
            .find(|&depth| paths.iter().any(|path| path.get(depth) != paths[0].get(depth)));
        for (&at, path) in alike.iter().zip(&paths) {
            apart[at] = match parts {
                Some(depth) => path.get(depth).or(path.last()).copied(),
                None if of_process[&threads[at].pid] > 1 => path.first().copied(),
                None => None,
            };
        }
    }
    apart
}

/// The functions that a thread spent most of its time in, each called by the one before.
fn busiest_path(tree: &Tree) -> Vec<FunctionId> {
    let mut busiest: Vec<Option<usize>> = vec![None; tree.nodes.len()];
    for (at, node) in tree.nodes.iter().enumerate().skip(1) {
        let Some(known) = busiest.get_mut(node.parent as usize) else { continue };
        let is_more =
            |other: usize| node.total.value.total_cmp(&tree.nodes[other].total.value).is_gt();
        if known.is_none_or(is_more) {
            *known = Some(at);
        }
    }
    let mut path = Vec::new();
    let mut whole = 0.0;
    let mut next = busiest.first().copied().flatten();
    while let Some(at) = next.filter(|_| path.len() < DEEPEST) {
        let node = &tree.nodes[at];
        if node.total.value < MOST_OF_CALLER * whole {
            break;
        }
        path.push(node.function);
        whole = node.total.value;
        next = busiest[at];
    }
    path
}
