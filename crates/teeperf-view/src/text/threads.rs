//! The table of threads.

use std::collections::HashMap;
use std::io::{self, Write};

use teeperf_profile::model::{Profile, Thread};

use super::{Options, heading};
use crate::style::{Paint, Style};
use crate::{names, units};

/// The part of a thread's time that has to lie between looks at its CPU time, for that to be shown beside it.
const MOST_SEEN: f64 = 0.9;

pub(super) fn write(
    profile: &Profile,
    options: &Options,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let threads = &profile.threads;
    let shown = &threads[..threads.len().min(options.limit)];
    heading(style, &format!("Threads: {} of {}", shown.len(), threads.len()), out)?;
    let events = shown.iter().map(|thread| units::count(thread.events).len()).max();
    let what = if profile.info.is_sampled() { "SAMPLES" } else { "EVENTS" };
    let events = events.unwrap_or(0).max(what.len());
    let head = format!(
        "{:>8}  {:>8}  {:>8}  {:>8}  {what:>events$}  {:>7}  {:>7}  THREAD",
        "RECORDED", "WALL ", "CPU ", "WAITED ", "PROCESS", "ID"
    );
    writeln!(out, "{}", style.paint(Paint::Faint, head))?;
    let room = style.columns().saturating_sub(8 * 4 + events + 7 * 2 + 2 * 7).max(8);
    let mut of_name: HashMap<(u32, &str), u64> = HashMap::new();
    for thread in threads {
        *of_name.entry((thread.pid, &thread.name)).or_default() += 1;
    }
    for thread in shown {
        let name = match thread.merged {
            0 | 1 => thread.name.clone(),
            merged => format!("{} ({merged} threads)", thread.name),
        };
        let cpu = thread
            .cpu_ns
            .filter(|_| thread.cpu_over_ns as f64 >= MOST_SEEN * thread.wall_ns as f64);
        let unit = profile.info.unit_of_durations();
        let cpu = cpu.map_or("–  ".into(), |ns| units::time(unit, ns as f64));
        writeln!(
            out,
            "{}  {}  {cpu:>8}  {}  {:>events$}  {:>7}  {:>7}  {}",
            units::time(profile.info.unit, thread.tree.framed_ns()),
            units::time(unit, thread.wall_ns as f64),
            units::time(unit, thread.waited_ns as f64),
            units::count(thread.events),
            thread.pid,
            thread.tid,
            match began(profile, thread).filter(|_| of_name[&(thread.pid, &*thread.name)] > 1) {
                // What names have in common tells less.
                Some(function) => {
                    let name = names::cut_end(&names::printable(&name), room / 2);
                    let left = room.saturating_sub(names::columns(&name) + 2).max(8);
                    format!("{name}: {}", names::label(function, left))
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

/// What tells a thread from others of its name: the function that it spent most time in, of those that nobody called.
fn began<'a>(profile: &'a Profile, thread: &Thread) -> Option<&'a str> {
    let nodes = thread.tree.nodes.iter().skip(1).filter(|node| node.parent == 0);
    let most = nodes.max_by(|a, b| a.total.value.total_cmp(&b.total.value))?;
    profile.functions.get(most.function.0 as usize).map(|function| &*function.name)
}
