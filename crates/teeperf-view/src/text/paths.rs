//! The call tree, all threads merged: callers above, what they called indented below.

use std::io::{self, Write};

use teeperf_profile::aggregate;
use teeperf_profile::model::{Profile, Tree};

use super::{Options, flagged, heading};
use crate::apart::Apart;
use crate::layout::{Children, subtree_sizes};
use crate::style::{Paint, Style};
use crate::{names, units};

/// Columns that a name is never squeezed below by its indentation.
const LEAST_NAME: usize = 28;

pub(super) fn write(
    profile: &Profile,
    whole: f64,
    options: &Options,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let tree = aggregate::merged(&profile.threads);
    let has_lacks = profile.threads.iter().any(|thread| thread.no_room.is_some());
    let title = format!(
        "Call tree: paths with at least {} of {}",
        units::percent_inline(options.least_share),
        units::time_inline(profile.info.unit, whole),
    );
    heading(style, &title, out)?;
    let calls = tree.nodes.iter().skip(1).map(|node| units::count(node.calls).len()).max();
    let name = units::calls_head(&profile.info);
    let calls = calls.unwrap_or(0).max(name.len());
    let head = format!("{:>6} {:>9} {:>9}  {name:>calls$}  FUNCTION", "TOTAL%", "TOTAL ", "SELF ");
    writeln!(out, "{}", style.paint(Paint::Faint, head))?;
    let room = style.columns().saturating_sub(6 + 9 + 9 + calls + 6);
    let printer = Printer {
        children: Children::of(&tree, &profile.functions),
        apart: Apart::of(&profile.functions),
        sizes: subtree_sizes(&tree),
        tree: &tree,
        seen: has_lacks.then(|| aggregate::merged_as_seen(&profile.threads)),
        profile,
        style,
        whole,
        options,
        calls,
        room,
    };
    printer.print(out)
}

struct Printer<'a> {
    tree: &'a Tree,
    /// The same without what times may lack, where they may lack some.
    seen: Option<Tree>,
    children: Children,
    apart: Apart,
    sizes: Vec<u32>,
    profile: &'a Profile,
    style: &'a Style,
    whole: f64,
    options: &'a Options,
    calls: usize,
    room: usize,
}

/// A line to come.
enum Step {
    /// A call path.
    Path(u32),
    /// Siblings that were pruned.
    Pruned(Pruned),
}

/// Call paths that are not printed.
#[derive(Clone, Copy, Default)]
struct Pruned {
    paths: u64,
    time: f64,
}

impl Printer<'_> {
    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        // Depth first without recursion: stacks may be deeper than ours.
        let mut steps = Vec::new();
        let mut pruned = Pruned::default();
        self.push(0, 0, &mut steps, &mut pruned);
        let mut lines = 0;
        while let Some((step, depth)) = steps.pop() {
            match step {
                Step::Path(_) if lines == self.options.most_paths => {
                    let more =
                        steps.iter().filter(|(step, _)| matches!(step, Step::Path(_))).count();
                    let text = format!(
                        "… cut off after {}; {} and what they call follow",
                        units::counted(lines as u64, "line"),
                        units::counted(more as u64 + 1, "call path"),
                    );
                    return writeln!(out, "{}", self.style.paint(Paint::Faint, text));
                }
                Step::Path(node) => {
                    lines += 1;
                    self.path(node, depth, out)?;
                    self.push(node, depth + 1, &mut steps, &mut pruned);
                }
                Step::Pruned(siblings) => self.siblings(siblings, depth, out)?,
            }
        }
        if pruned.paths == 0 {
            return Ok(());
        }
        let text = format!(
            "{} below the limit not shown, {} of the time in all",
            units::counted(pruned.paths, "call path"),
            units::percent_inline(units::share(pruned.time, self.whole)),
        );
        writeln!(out, "{}", self.style.paint(Paint::Faint, text))
    }

    /// Children of a node, the first on top of the steps. Those pruned are counted, and are
    /// one step below the others if together they would be worth a line.
    fn push(
        &self,
        node: u32,
        depth: usize,
        steps: &mut Vec<(Step, usize)>,
        pruned_in_all: &mut Pruned,
    ) {
        let children = if self.tree.nodes.is_empty() { &[] } else { self.children.of_node(node) };
        let total = |&child: &u32| self.tree.nodes[child as usize].total.value;
        // Widest first, so that those to prune are last.
        let kept = children.partition_point(|child| {
            units::share(total(child), self.whole) >= self.options.least_share
        });
        let (kept, pruned) = children.split_at(kept);
        let pruned = Pruned {
            paths: pruned.iter().map(|&child| u64::from(self.sizes[child as usize])).sum(),
            time: pruned.iter().map(total).sum(),
        };
        pruned_in_all.paths += pruned.paths;
        pruned_in_all.time += pruned.time;
        if pruned.paths > 0 && units::share(pruned.time, self.whole) >= self.options.least_share {
            steps.push((Step::Pruned(pruned), depth));
        }
        steps.extend(kept.iter().rev().map(|&child| (Step::Path(child), depth)));
    }

    fn path(&self, node: u32, depth: usize, out: &mut impl Write) -> io::Result<()> {
        let seen = self.seen.as_ref().map(|seen| &seen.nodes[node as usize]);
        let node = &self.tree.nodes[node as usize];
        let lacks_self = seen.is_some_and(|seen| node.self_time.high > seen.self_time.high);
        let lacks_total = seen.is_some_and(|seen| node.total.high > seen.total.high);
        let share = units::share(node.total.value, self.whole);
        let function = self.profile.functions.get(node.function.0 as usize);
        let name = function.map_or("[unknown]", |function| function.name.as_str());
        let indent = self.indent(depth);
        let room = self.room.saturating_sub(names::columns(&indent)).max(1);
        let name = self.apart.fit(node.function, name, room);
        let own = Paint::of_share(units::share(node.self_time.value, self.whole));
        writeln!(
            out,
            "{} {} {}  {:>calls$}  {}{name}",
            self.style.paint(Paint::of_share(share), units::percent(share)),
            flagged(self.profile.info.unit, &node.total, lacks_total),
            self.style.paint(own, flagged(self.profile.info.unit, &node.self_time, lacks_self)),
            units::count(node.calls),
            self.style.paint(Paint::Faint, indent),
            calls = self.calls,
        )
    }

    fn siblings(&self, pruned: Pruned, depth: usize, out: &mut impl Write) -> io::Result<()> {
        let indent = self.indent(depth);
        let text =
            format!("{indent}… {} below the limit", units::counted(pruned.paths, "call path"));
        let line = format!(
            "{} {}  {:>9}  {:>calls$}  {text}",
            units::percent(units::share(pruned.time, self.whole)),
            units::time(self.profile.info.unit, pruned.time),
            "",
            "",
            calls = self.calls,
        );
        writeln!(out, "{}", self.style.paint(Paint::Faint, line))
    }

    /// Two columns a level; a depth that leaves no room for a name is said in figures.
    fn indent(&self, depth: usize) -> String {
        let most = self.room.saturating_sub(LEAST_NAME);
        if depth * 2 <= most { "· ".repeat(depth) } else { format!("·{depth}· ") }
    }
}
