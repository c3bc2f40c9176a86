//! Folded stacks: a line for each call path with time of its own, `thread;a;b;c 123`, as
//! flamegraph.pl, inferno, speedscope and others read them. The format has no place for a
//! unit: the weight is in [`Unit`].
//!
//! The readers split a line at every `;` and at the last space. So, as the collapsing
//! scripts of flamegraph.pl do, `;` in a name becomes `:`, line ends and other control
//! characters a space, and spaces in a thread's name `_`.

use std::io::{self, Write};

use crate::names::steers;
use teeperf_profile::model::{Profile, Thread};

/// What the integer behind a stack counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    #[default]
    Nanoseconds,
    /// Microseconds.
    Microseconds,
}

/// Writes the self time of every call path. Fractions of a unit are carried to the next
/// path of the thread, so that a thread's sum is right within one unit.
pub fn write(profile: &Profile, unit: Unit, out: &mut impl Write) -> io::Result<()> {
    let frames: Vec<String> =
        profile.functions.iter().map(|function| frame(&function.name)).collect();
    for thread in &profile.threads {
        write_thread(thread, &frames, unit, out)?;
    }
    Ok(())
}

fn write_thread(
    thread: &Thread,
    frames: &[String],
    unit: Unit,
    out: &mut impl Write,
) -> io::Result<()> {
    let size = match unit {
        Unit::Nanoseconds => 1.0,
        Unit::Microseconds => 1e3,
    };
    let label = thread_label(thread);
    let mut exact = 0.0;
    let mut written = 0.0;
    let mut stack = Vec::new();
    for (at, node) in thread.tree.nodes.iter().enumerate().skip(1) {
        exact += node.self_time.value.max(0.0) / size;
        let weight = (exact - written).round();
        if weight < 1.0 {
            continue;
        }
        written += weight;
        stack.clear();
        let mut place = at;
        // Parents have smaller numbers, so this ends.
        while place > 0 {
            let node = &thread.tree.nodes[place];
            stack.push(frames.get(node.function.0 as usize).map_or("[unknown]", String::as_str));
            place = (node.parent as usize).min(place - 1);
        }
        out.write_all(label.as_bytes())?;
        for frame in stack.iter().rev() {
            write!(out, ";{frame}")?;
        }
        writeln!(out, " {}", weight as u64)?;
    }
    Ok(())
}

/// `name/tid`, or `name_(12_threads)` for merged ones.
fn thread_label(thread: &Thread) -> String {
    let label = if thread.merged > 1 {
        format!("{} ({} threads)", thread.name, thread.merged)
    } else {
        format!("{}/{}", thread.name, thread.tid)
    };
    frame(&label).replace(' ', "_")
}

/// A name as a part of a stack.
pub(crate) fn frame(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|c| match c {
            ';' => ':',
            c if steers(c) || c.is_whitespace() => ' ',
            c => c,
        })
        .collect();
    let clean = clean.trim();
    if clean.is_empty() { "[no name]".into() } else { clean.into() }
}
