//! What views need of a profile, so that they only draw: one tree for many threads, tables
//! of functions, callers and callees, filters. Everything is made of [`Tree`]s and gives
//! trees or rows; nothing here knows how a profile was made.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::model::{
    Extremes, Function, FunctionId, Info, Node, Profile, Sampled, Spent, Thread, Time, Tree, Vertex,
};
use crate::paths::PathPattern;
use crate::pattern::Found;
use crate::replay::LONGEST_NS;

/// Levels of callers in [`bottom_up`].
pub const MOST_CALLERS: usize = 256;

/// A function over all its call paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Which.
    pub function: FunctionId,
    /// Times called.
    pub calls: u64,
    /// Time in it and all it called. A call within a call of the same function is in it once.
    pub total: Time,
    /// Time in itself.
    pub self_time: Time,
    /// Its shortest and longest call, where they are known.
    pub extremes: Option<Extremes>,
    /// Samples, waiting and hooks beside its CPU time.
    pub spent: Spent,
}

/// What a table is sorted by; equal rows stand in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Largest total first.
    Total,
    /// Largest self time first.
    SelfTime,
    /// Most calls first.
    Calls,
    /// Largest mean time of a call first.
    Mean,
    /// Longest shortest call first; what is not known last.
    Shortest,
    /// Longest longest call first; what is not known last.
    Longest,
    /// By name.
    Name,
}

/// One tree for several threads: paths of the same functions are one. Its times have what they may lack as their
/// bounds.
pub fn merged<'a>(threads: impl IntoIterator<Item = &'a Thread>) -> Tree {
    merge(threads, Thread::times)
}

/// The same with the bounds of what was seen alone: same nodes, in the same order.
pub fn merged_as_seen<'a>(threads: impl IntoIterator<Item = &'a Thread>) -> Tree {
    merge(threads, |thread, at| {
        let node = &thread.tree.nodes[at];
        (node.self_time, node.total)
    })
}

fn merge<'a>(
    threads: impl IntoIterator<Item = &'a Thread>,
    times: impl Fn(&Thread, usize) -> (Time, Time),
) -> Tree {
    let mut out = Tree { nodes: vec![empty_node(0, FunctionId(0))] };
    let mut known: HashMap<(u32, FunctionId), u32> = HashMap::new();
    for thread in threads {
        let mut numbers: Vec<u32> = Vec::with_capacity(thread.tree.nodes.len());
        for (at, node) in thread.tree.nodes.iter().enumerate() {
            let number = if at == 0 {
                0
            } else {
                let parent = numbers[node.parent as usize];
                *known.entry((parent, node.function)).or_insert_with(|| {
                    out.nodes.push(empty_node(parent, node.function));
                    out.nodes.len() as u32 - 1
                })
            };
            let there = &mut out.nodes[number as usize];
            let (self_time, total) = times(thread, at);
            there.calls += node.calls;
            there.self_time += self_time;
            there.total += total;
            there.extremes = Extremes::of_both(there.extremes, node.extremes);
            there.spent += node.spent;
            numbers.push(number);
        }
    }
    out
}

/// The tree seen from its leaves: below the root the functions, each with all its self time,
/// below each its callers with the part of that time, and of its calls, that was on their
/// account. A node's self time is that of the function right below the root, and none deeper.
/// Callers are followed so many levels up as [`MOST_CALLERS`] says, so that a deep recursion
/// makes no tree of the square of its depth.
pub fn bottom_up(tree: &Tree) -> Tree {
    let mut out = Tree { nodes: vec![empty_node(0, FunctionId(0))] };
    let mut known: HashMap<(u32, FunctionId), u32> = HashMap::new();
    for at in 1..tree.nodes.len() {
        let own = tree.nodes[at];
        out.nodes[0].total += own.self_time;
        let (mut caller, mut there) = (at, 0u32);
        for _ in 0..MOST_CALLERS {
            if caller == 0 {
                break;
            }
            let node = &tree.nodes[caller];
            there = *known.entry((there, node.function)).or_insert_with(|| {
                out.nodes.push(empty_node(there, node.function));
                out.nodes.len() as u32 - 1
            });
            let sum = &mut out.nodes[there as usize];
            sum.calls += own.calls;
            sum.total += own.self_time;
            if caller == at {
                sum.self_time += own.self_time;
            }
            caller = node.parent as usize;
        }
    }
    out
}

fn empty_node(parent: u32, function: FunctionId) -> Node {
    let (self_time, total) = (Time::default(), Time::default());
    Node { parent, function, calls: 0, self_time, total, extremes: None, spent: Default::default() }
}

/// The functions of a tree, one row each, sorted.
pub fn rows(tree: &Tree, functions: &[Function], sort: Sort) -> Vec<Row> {
    let mut all: Vec<Row> = (0..functions.len() as u32).map(|i| empty_row(FunctionId(i))).collect();
    // Calls of each function that are open on the path we are on.
    let mut open = vec![0u32; functions.len()];
    walk(tree, |step| match step {
        Step::Enter(at) => {
            let node = &tree.nodes[at as usize];
            let row = &mut all[node.function.0 as usize];
            row.calls += node.calls;
            row.self_time += node.self_time;
            row.extremes = Extremes::of_both(row.extremes, node.extremes);
            row.spent += node.spent.of_itself();
            if open[node.function.0 as usize] == 0 {
                row.total += node.total;
                row.spent.add_totals(&node.spent);
            }
            open[node.function.0 as usize] += 1;
        }
        Step::Leave(at) => open[tree.nodes[at as usize].function.0 as usize] -= 1,
    });
    let has_time = |row: &Row| row.total.high > 0.0 || row.spent.total_waiting_ns > 0.0;
    all.retain(|row| row.calls > 0 || has_time(row));
    sort_rows(&mut all, functions, sort);
    all
}

/// Time in each of `count` groups of functions and in all that they called, over all call paths. A call within a call of
/// the same group is in it once.
pub fn totals(tree: &Tree, count: usize, group: impl Fn(FunctionId) -> usize) -> Vec<Time> {
    let mut totals = vec![Time::default(); count];
    let mut open = vec![0u32; count];
    walk(tree, |step| match step {
        Step::Enter(at) => {
            let node = &tree.nodes[at as usize];
            let group = group(node.function);
            if open[group] == 0 {
                totals[group] += node.total;
            }
            open[group] += 1;
        }
        Step::Leave(at) => open[group(tree.nodes[at as usize].function)] -= 1,
    });
    totals
}

/// The functions of a profile over all threads, sorted, their intervals as wide as its clock makes them.
pub fn table(profile: &Profile, sort: Sort) -> Vec<Row> {
    let mut rows = if profile.threads.is_empty() {
        Vec::new()
    } else {
        // What paths may lack is no more for a function that has many.
        rows(&merged_as_seen(&profile.threads), &profile.functions, sort)
    };
    add_sampling_error(&mut rows, &profile.info, &profile.sampled());
    add_what_they_lack(&mut rows, profile);
    let Some(graph) = &profile.graph else { return rows };
    let places: HashMap<FunctionId, usize> =
        rows.iter().enumerate().map(|(place, row)| (row.function, place)).collect();
    for &Vertex { function, calls, mut self_time, mut total, .. } in &graph.functions {
        if profile.info.period_ns > 0.0 {
            widen(&mut self_time, profile.info.period_ns, 0.0);
            widen(&mut total, profile.info.period_ns, 0.0);
        }
        match places.get(&function) {
            // Some of its calls have a path, and others have none.
            Some(&place) => {
                let row = &mut rows[place];
                row.calls = row.calls.saturating_add(calls);
                row.self_time += self_time;
                row.total += total;
            }
            None => rows.push(Row { calls, total, self_time, ..empty_row(function) }),
        }
    }
    sort_rows(&mut rows, &profile.functions, sort);
    rows
}

/// Makes the intervals of rows as wide as a clock that ticks makes them. The ticks that fall into a
/// function are counted, so their number has a deviation of its root: twice that on both sides. Of
/// what no tick fell into, three may have been due. And `AHEAD_NS` of each call may have gone to
/// its caller. Samples of timers tell shares of all time, which hooks may make wrong. Any function
/// may have the time of which no sample tells, and any with time of the kernel that of the kernel
/// whose place no sample tells.
pub fn add_sampling_error(rows: &mut [Row], info: &Info, sampled: &Sampled) {
    let period_ns = info.period_ns;
    if period_ns == 0.0 {
        return;
    }
    if info.timer_samples.is_none() {
        for row in rows {
            let ahead = AHEAD_NS * row.calls as f64;
            for time in [&mut row.self_time, &mut row.total] {
                widen(time, period_ns, ahead);
            }
        }
        return;
    }
    let &Sampled { hooks_ns, unsampled_ns, unplaced_ns, .. } = sampled;
    let whole_ns = sampled.whole_ns.max(f64::MIN_POSITIVE);
    // The kernel's time is a function's own where code without hooks is.
    let mut in_kernel = rows.iter().filter(|row| row.spent.kernel_ns > 0.0).peekable();
    let is_own = in_kernel.peek().is_some() && in_kernel.all(|row| row.calls > 0);
    let unseen_ns = unseen_in_kernel(sampled);
    for row in rows {
        let Spent { variance, total_variance, shared_ns, total_shared_ns, .. } = row.spent;
        let Spent { kernel_ns, total_kernel_ns, .. } = row.spent;
        let unsampled_ns = if row.spent.unsampled_ns > 0.0 { 0.0 } else { unsampled_ns };
        let unplaced_ns = if row.spent.unplaced_ns > 0.0 { 0.0 } else { unplaced_ns };
        let parts = [
            (&mut row.self_time, variance, shared_ns, kernel_ns, is_own),
            (&mut row.total, total_variance, total_shared_ns, total_kernel_ns, true),
        ];
        for (time, variance, shared_ns, kernel_ns, has_kernel) in parts {
            spread(time, variance, whole_ns, period_ns);
            let share = (time.value / whole_ns).clamp(0.0, 1.0);
            let below = DEVIATIONS * shared_ns * (1.0 - share).sqrt();
            let is_unseen = kernel_ns == 0.0 && has_kernel;
            let above = if is_unseen { below.hypot(unseen_ns) } else { below };
            time.low = (time.value - (time.value - time.low).hypot(below)).max(0.0);
            time.high = time.value + (time.high - time.value).hypot(above);
            let lacks_ns = unsampled_ns + if kernel_ns > 0.0 { unplaced_ns } else { 0.0 };
            time.high = (time.high + lacks_ns).min(whole_ns.max(time.value));
        }
        add_hidden_work(row, whole_ns - hooks_ns, hooks_ns);
        // Its own time is part of the total, however little is known of the rest.
        row.total.low = row.total.low.max(row.self_time.low);
        row.total.high = row.total.high.max(row.self_time.high);
    }
}

/// Most time of the kernel in a function of which no sample tells any, nanoseconds. Such samples are
/// rarer than those of its own code.
fn unseen_in_kernel(sampled: &Sampled) -> f64 {
    (DEVIATIONS * DEVIATIONS * sampled.tick_ns).min(sampled.kernel_ns)
}

/// A processor does some of a function's work beside that of its hooks, and an interrupt falls on
/// the hooks: the function may have had a part of their time. What other functions had in that way
/// makes its share smaller. `whole_ns` is the time of all functions, and `hooks_ns` that of hooks.
fn add_hidden_work(row: &mut Row, whole_ns: f64, hooks_ns: f64) {
    let Spent { hooks_ns: own_ns, total_hooks_ns, .. } = row.spent;
    for (time, within_ns) in [(&mut row.self_time, own_ns), (&mut row.total, total_hooks_ns)] {
        time.high += HIDDEN * within_ns;
        let hidden_elsewhere_ns = HIDDEN * (hooks_ns - within_ns).max(0.0);
        time.low *= whole_ns / (whole_ns + hidden_elsewhere_ns).max(f64::MIN_POSITIVE);
    }
}

/// The part of hooks' time that may be work of functions. With it, bounds of 114 of 121 functions
/// of lua, sqlite3, bzip2, zstd and made programs with late hooks hold the truth. With 0.15 it is
/// 107 of them, and with one half 118, which are half again as wide. Hooks of the source hide up to
/// all of it: 104 of 134 hold with a quarter, and 122 with all.
const HIDDEN: f64 = 0.25;

/// Deviations on both sides of what 95 % of figures lie within.
const DEVIATIONS: f64 = 1.96;

/// Makes a figure an interval of 95 % confidence: a binomial share of `whole`. Of what no sample
/// fell into, three may have been due.
fn spread(time: &mut Time, variance: f64, whole: f64, period_ns: f64) {
    let share = (time.value / whole).clamp(0.0, 1.0);
    // Wilson's interval, which few samples do not make too narrow (Brown, Cai and DasGupta,
    // "Interval estimation for a binomial proportion", 2001). So many samples of the same weight
    // would have it:
    let weight = if time.value > 0.0 { variance / time.value } else { period_ns };
    let samples = (whole / weight).max(1.0);
    let square = DEVIATIONS * DEVIATIONS;
    let middle = (share + square / (2.0 * samples)) / (1.0 + square / samples);
    let half = DEVIATIONS / (1.0 + square / samples)
        * (share * (1.0 - share) / samples + square / (4.0 * samples * samples)).sqrt();
    time.low = ((middle - half).max(0.0) * whole).min(time.value);
    // A small figure that is a difference of larger ones is no share of few samples.
    let most = time.value + DEVIATIONS * variance.sqrt() + square * LONGEST_NS.max(period_ns);
    time.high = ((middle + half).min(1.0) * whole).min(most).max(time.value);
}

/// Raises the upper bounds of rows by what had no room: see [`crate::model::NoRoom`].
fn add_what_they_lack(rows: &mut [Row], profile: &Profile) {
    if profile.threads.iter().all(|thread| thread.no_room.is_none()) {
        return;
    }
    let period_ns = profile.info.period_ns;
    let most = |ns: f64| {
        let mut time = Time::from(ns);
        if ns > 0.0 && period_ns > 0.0 {
            widen(&mut time, period_ns, 0.0);
        }
        time.high
    };
    for row in rows {
        let lack = profile.lack(row.function);
        row.self_time.high += most(lack.self_ns);
        row.total.high += most(lack.total_ns);
    }
}

fn widen(time: &mut Time, period_ns: f64, ahead: f64) {
    let error = 2.0 * (time.value.max(0.0) * period_ns).sqrt();
    time.low = (time.low - error).max(0.0);
    time.high += error.max(3.0 * period_ns) + ahead;
}

/// A processor looks at the tick while work before that is still under way. Of a chain of multiplications that
/// took 17.5 ns an EPYC saw 12 to 15 behind the tick that its return looked at, of one of 4.4 ns 3.
const AHEAD_NS: f64 = 6.0;

/// Sorts rows.
pub fn sort_rows(rows: &mut [Row], functions: &[Function], sort: Sort) {
    let name = |row: &Row| {
        let function = &functions[row.function.0 as usize];
        (&function.name, &function.module)
    };
    let mean = |row: &Row| row.total.value / row.calls.max(1) as f64;
    let extreme =
        |row: &Row, of: fn(&Extremes) -> f64| row.extremes.as_ref().map_or(f64::NEG_INFINITY, of);
    let order = |a: &Row, b: &Row| match sort {
        Sort::Total => b.total.value.total_cmp(&a.total.value),
        Sort::SelfTime => b.self_time.value.total_cmp(&a.self_time.value),
        Sort::Calls => b.calls.cmp(&a.calls),
        Sort::Mean => mean(b).total_cmp(&mean(a)),
        Sort::Shortest => {
            extreme(b, |both| both.shortest_ns).total_cmp(&extreme(a, |both| both.shortest_ns))
        }
        Sort::Longest => {
            extreme(b, |both| both.longest_ns).total_cmp(&extreme(a, |both| both.longest_ns))
        }
        Sort::Name => Ordering::Equal,
    };
    rows.sort_by(|a, b| order(a, b).then_with(|| name(a).cmp(&name(b))));
}

/// Who called a function: for each caller the calls, and the time of those calls in the
/// function and all it called. Time of calls within calls of the function is not counted
/// twice. Calls by none (the thread itself) have no caller. Largest total first.
pub fn callers(
    tree: &Tree,
    functions: &[Function],
    function: FunctionId,
) -> Vec<(Option<FunctionId>, Row)> {
    let mut found: HashMap<Option<FunctionId>, Row> = HashMap::new();
    let mut open = 0u32;
    walk(tree, |step| match step {
        Step::Enter(at) if tree.nodes[at as usize].function == function => {
            let node = &tree.nodes[at as usize];
            let caller = (node.parent != 0).then(|| tree.nodes[node.parent as usize].function);
            let outer = open == 0;
            add_to(found.entry(caller).or_insert_with(|| empty_row(function)), node, outer);
            open += 1;
        }
        Step::Leave(at) if tree.nodes[at as usize].function == function => open -= 1,
        _ => {}
    });
    sorted(found.into_iter().collect(), functions, |caller| *caller)
}

/// Whom a function called: the calls, and the time of those calls without calls of the function further down, whose time
/// is in its own and in that of what it calls then. So its total is its own time and these totals. Largest total first.
pub fn callees(
    tree: &Tree,
    functions: &[Function],
    function: FunctionId,
) -> Vec<(Option<FunctionId>, Row)> {
    callees_of_each(tree, functions, &[function]).pop().unwrap_or_default()
}

/// Those of several functions, in their order; the tree is walked once.
pub fn callees_of_each(
    tree: &Tree,
    functions: &[Function],
    wanted: &[FunctionId],
) -> Vec<Vec<(Option<FunctionId>, Row)>> {
    let places: HashMap<FunctionId, usize> = wanted.iter().copied().zip(0..).collect();
    let mut found: Vec<HashMap<Option<FunctionId>, Row>> = vec![HashMap::new(); wanted.len()];
    // Of the path we are on: what each of the functions has called that is open.
    let mut open: Vec<Vec<FunctionId>> = vec![Vec::new(); wanted.len()];
    let place_of_caller = |node: &Node| {
        let caller = (node.parent != 0).then(|| tree.nodes[node.parent as usize].function)?;
        places.get(&caller).copied()
    };
    walk(tree, |step| match step {
        Step::Enter(at) => {
            let node = &tree.nodes[at as usize];
            if let Some(place) = place_of_caller(node) {
                let callees = &mut found[place];
                let row =
                    callees.entry(Some(node.function)).or_insert_with(|| empty_row(node.function));
                add_to(row, node, true);
                open[place].push(node.function);
            }
            // It is called again: from here on time is no longer that of what it had called.
            if let Some(&place) = places.get(&node.function)
                && let Some(callee) = open[place].last()
                && let Some(row) = found[place].get_mut(&Some(*callee))
            {
                take_from(&mut row.total, &node.total);
            }
        }
        Step::Leave(at) => {
            if let Some(place) = place_of_caller(&tree.nodes[at as usize]) {
                open[place].pop();
            }
        }
    });
    let rows =
        |callees: HashMap<_, _>| sorted(callees.into_iter().collect(), functions, |callee| *callee);
    found.into_iter().map(rows).collect()
}

/// What is left when a part of it is taken away: sums of fractions may be off in their last digits.
fn take_from(time: &mut Time, part: &Time) {
    time.value = (time.value - part.value).max(0.0);
    time.low = (time.low - part.low).max(0.0);
    time.high = (time.high - part.high).max(0.0);
}

fn empty_row(function: FunctionId) -> Row {
    let (total, self_time) = (Time::default(), Time::default());
    Row { function, calls: 0, total, self_time, extremes: None, spent: Default::default() }
}

fn add_to(row: &mut Row, node: &Node, outer: bool) {
    row.calls += node.calls;
    row.self_time += node.self_time;
    row.extremes = Extremes::of_both(row.extremes, node.extremes);
    row.spent += node.spent.of_itself();
    if outer {
        row.total += node.total;
        row.spent.add_totals(&node.spent);
    }
}

fn sorted(
    mut rows: Vec<(Option<FunctionId>, Row)>,
    functions: &[Function],
    who: impl Fn(&Option<FunctionId>) -> Option<FunctionId>,
) -> Vec<(Option<FunctionId>, Row)> {
    let name =
        |row: &(Option<FunctionId>, Row)| who(&row.0).map(|id| &functions[id.0 as usize].name);
    rows.sort_by(|a, b| {
        b.1.total
            .value
            .total_cmp(&a.1.total.value)
            .then_with(|| name(a).cmp(&name(b)))
            .then(a.0.cmp(&b.0))
    });
    rows
}

/// The paths that go through a function that was found: below it whole, above it without their
/// own time. Totals are of what is left.
pub fn focus(tree: &Tree, found: &Found) -> Tree {
    let count = tree.nodes.len();
    // In a fitting function, or called from one, at whatever depth.
    let mut within = vec![false; count];
    for at in 1..count {
        let node = &tree.nodes[at];
        within[at] = within[node.parent as usize] || found.has(node.function);
    }
    let mut keep = within.clone();
    for at in (1..count).rev() {
        if keep[at] {
            keep[tree.nodes[at].parent as usize] = true;
        }
    }
    select(tree, |at| keep[at], |at| within[at])
}

/// The call paths that fit an expression, with their own time; what leads to them is without. Totals are of what is
/// left.
pub fn fitting_paths(tree: &Tree, functions: &[Function], pattern: &PathPattern) -> Tree {
    let fits = pattern.fits(tree, functions);
    let mut keep = fits.clone();
    for at in (1..keep.len()).rev() {
        if keep[at] {
            keep[tree.nodes[at].parent as usize] = true;
        }
    }
    let mut out = select(tree, |at| keep[at], |at| fits[at]);
    // Calls of what only leads there are not those that were asked for.
    let kept = (0..keep.len()).filter(|&at| at == 0 || keep[at]);
    for (node, at) in out.nodes.iter_mut().zip(kept) {
        if !fits[at] {
            (node.calls, node.extremes) = (0, None);
        }
    }
    out
}

/// The tree without functions that were found, and without all that they called. Totals are of what
/// is left.
pub fn ignore(tree: &Tree, found: &Found) -> Tree {
    let mut keep = vec![true; tree.nodes.len()];
    for (at, node) in tree.nodes.iter().enumerate().skip(1) {
        keep[at] = keep[node.parent as usize] && !found.has(node.function);
    }
    select(tree, |at| keep[at], |_| true)
}

/// The paths from functions that were found on, whoever called these; those that are called within such a path stay in it.
pub fn rooted(tree: &Tree, found: &Found) -> Tree {
    rebuilt(tree, None, |node, above| match above {
        Some((above, _)) => Some(Place::Below(above, node.function)),
        None => found.has(node.function).then_some(Place::Below(0, node.function)),
    })
}

/// The tree where functions are of groups, which have numbers of their own: what functions of one group call of their own is
/// within one frame, and the group's calls are those from outside.
pub fn grouped(tree: &Tree, group: impl Fn(FunctionId) -> Option<FunctionId>) -> Tree {
    rebuilt(tree, tree.nodes.first(), |node, above| {
        let (above, function_above) = above?;
        let group = group(node.function);
        match group.is_some() && above != 0 && group == Some(function_above) {
            true => Some(Place::Within(above)),
            false => Some(Place::Below(above, group.unwrap_or(node.function))),
        }
    })
}

/// The tree where these functions are none: their time is that of the function that called them.
pub fn within_callers(tree: &Tree, is_within: impl Fn(FunctionId) -> bool) -> Tree {
    rebuilt(tree, tree.nodes.first(), |node, above| {
        let (above, _) = above?;
        Some(match is_within(node.function) {
            true => Place::Within(above),
            false => Place::Below(above, node.function),
        })
    })
}

/// Where a node goes.
enum Place {
    /// Below that of this number, as this function.
    Below(u32, FunctionId),
    /// Into that one.
    Within(u32),
}

/// Another tree of the same nodes. Of each it is asked where it goes, knowing where its caller's has gone: the number, and the
/// function there. `root` is the root with its time, below which nodes stand from the beginning.
fn rebuilt(
    tree: &Tree,
    root: Option<&Node>,
    place: impl Fn(&Node, Option<(u32, FunctionId)>) -> Option<Place>,
) -> Tree {
    let mut out = Tree { nodes: vec![empty_node(0, FunctionId(0))] };
    if let Some(&Node { self_time, spent, .. }) = root {
        out.nodes[0] = Node { self_time, spent, ..out.nodes[0] };
    }
    let mut known: HashMap<(u32, FunctionId), u32> = HashMap::new();
    let mut numbers: Vec<Option<u32>> = Vec::with_capacity(tree.nodes.len());
    for (at, node) in tree.nodes.iter().enumerate() {
        if at == 0 {
            numbers.push(root.map(|_| 0));
            continue;
        }
        let above = numbers[node.parent as usize];
        let above = above.map(|above| (above, out.nodes[above as usize].function));
        let number = match place(node, above) {
            None => None,
            Some(Place::Within(number)) => {
                out.nodes[number as usize].self_time += node.self_time;
                out.nodes[number as usize].spent += node.spent;
                Some(number)
            }
            Some(Place::Below(parent, function)) => {
                let number = *known.entry((parent, function)).or_insert_with(|| {
                    out.nodes.push(empty_node(parent, function));
                    out.nodes.len() as u32 - 1
                });
                let there = &mut out.nodes[number as usize];
                there.calls = there.calls.saturating_add(node.calls);
                there.self_time += node.self_time;
                there.extremes = Extremes::of_both(there.extremes, node.extremes);
                there.spent += node.spent;
                Some(number)
            }
        };
        numbers.push(number);
    }
    out.sum_up();
    out
}

fn select(tree: &Tree, keep: impl Fn(usize) -> bool, with_time: impl Fn(usize) -> bool) -> Tree {
    let mut numbers = vec![0u32; tree.nodes.len()];
    let mut out = Tree { nodes: Vec::new() };
    for (at, node) in tree.nodes.iter().enumerate() {
        if at > 0 && !keep(at) {
            continue;
        }
        numbers[at] = out.nodes.len() as u32;
        let (self_time, spent) = match with_time(at) {
            true => (node.self_time, node.spent),
            false => (Time::default(), Spent::default()),
        };
        let parent = numbers[node.parent as usize];
        out.nodes.push(Node { parent, self_time, total: Time::default(), spent, ..*node });
    }
    out.sum_up();
    out
}

impl Profile {
    /// The profile with another tree for each thread; threads that have no time and no call
    /// left are gone.
    pub fn with_trees(mut self, change: impl Fn(&Tree, &[Function]) -> Tree) -> Self {
        for thread in &mut self.threads {
            thread.whole = Some(thread.sampled());
            thread.tree = change(&thread.tree, &self.functions);
        }
        self.threads.retain(|thread| {
            let is_left = thread.tree.nodes.len() > 1
                || thread.tree.nodes.first().is_some_and(|root| root.total.high > 0.0);
            if !is_left {
                self.left_out += thread.sampled();
            }
            is_left
        });
        self
    }
}

/// A step of a walk over a tree.
enum Step {
    /// Into a node; its children follow.
    Enter(u32),
    /// Out of it.
    Leave(u32),
}

/// Walks over all nodes but the root, children within their parents, in order.
fn walk(tree: &Tree, mut visit: impl FnMut(Step)) {
    let count = tree.nodes.len();
    let (mut child, mut sibling) = (vec![0u32; count], vec![0u32; count]);
    for at in (1..count).rev() {
        let parent = tree.nodes[at].parent as usize;
        sibling[at] = child[parent];
        child[parent] = at as u32;
    }
    let mut at = child.first().copied().unwrap_or(0);
    while at != 0 {
        visit(Step::Enter(at));
        if child[at as usize] != 0 {
            at = child[at as usize];
            continue;
        }
        loop {
            visit(Step::Leave(at));
            if sibling[at as usize] != 0 {
                at = sibling[at as usize];
                break;
            }
            at = tree.nodes[at as usize].parent;
            if at == 0 {
                break;
            }
        }
    }
}
