//! Several profiles as one. Associative: which of them are put together first makes no
//! difference to calls and times but for the rounding of sums.

use std::collections::HashMap;

use crate::model::{CallGraph, FunctionId, Health, Line, Mended, Node, Profile, Waits};
use crate::names::key;

/// All threads of both, functions of one name, module and place as one; the sum of their call graphs,
/// where they have such. What is known of the run is that of the first, but for its length and its
/// samples, which are sums.
pub fn combine(mut first: Profile, mut second: Profile) -> Profile {
    add_timer_samples(&mut first, &mut second);
    let numbered = first.functions.iter().zip(0..);
    let mut known: HashMap<_, _> =
        numbered.map(|(function, number)| (key(function), FunctionId(number))).collect();
    first.places.resize(first.functions.len(), None);
    let places = second.places.into_iter().chain(std::iter::repeat(None));
    let numbers: Vec<FunctionId> = second
        .functions
        .into_iter()
        .zip(places)
        .map(|(function, place)| {
            *known.entry(key(&function)).or_insert_with(|| {
                first.functions.push(function);
                first.places.push(place);
                FunctionId(first.functions.len() as u32 - 1)
            })
        })
        .collect();
    let is_of_one_unit = first.length_unit_ns == second.length_unit_ns;
    if !is_of_one_unit {
        // Buckets of one clock's units cannot be told in those of another.
        first.length_unit_ns = None;
        first.threads.iter_mut().for_each(|thread| thread.lengths.clear());
    }
    for mut thread in second.threads {
        thread.lengths.retain(|_| is_of_one_unit);
        for (function, _) in thread.lengths.iter_mut().chain(&mut thread.counted) {
            *function = numbers[function.0 as usize];
        }
        // The root's function means nothing.
        for node in thread.tree.nodes.iter_mut().skip(1) {
            node.function = numbers[node.function.0 as usize];
        }
        if let Some(no_room) = &mut thread.no_room {
            no_room.renumber(|function| numbers[function.0 as usize]);
        }
        first.threads.push(thread);
    }
    first.graph = match (first.graph, second.graph) {
        (Some(a), Some(b)) => Some(a.plus(&b, |function| numbers[function.0 as usize])),
        (None, Some(b)) => {
            Some(CallGraph::default().plus(&b, |function| numbers[function.0 as usize]))
        }
        (a, None) => a,
    };
    for waits in second.waits {
        let function = numbers[waits.function.0 as usize];
        match first.waits.iter_mut().find(|known| known.function == function) {
            Some(known) => {
                known.times = known.times.saturating_add(waits.times);
                known.total_ns += waits.total_ns;
                known.longest_ns = known.longest_ns.max(waits.longest_ns);
            }
            None => first.waits.push(Waits { function, ..waits }),
        }
    }
    first.waits.sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns).then(a.function.cmp(&b.function)));
    for line in second.lines {
        first.lines.push(Line { function: numbers[line.function.0 as usize], ..line });
    }
    sum_lines(&mut first.lines);
    first.points.extend(second.points);
    first.info.duration_ns = first.info.duration_ns.saturating_add(second.info.duration_ns);
    add_mended(&mut first.health.mended_in, &second.health.mended_in, &numbers);
    add_health(&mut first.health, second.health);
    first
}

/// Samples of timers of both. Where one has none, its clock's ticks stand for such samples.
fn add_timer_samples(first: &mut Profile, second: &mut Profile) {
    let samples = [&*first, &*second].map(|profile| profile.info.timer_samples);
    if samples == [None, None] {
        return;
    }
    let mut all_ns = 0.0;
    for (profile, samples) in [&mut *first, second].into_iter().zip(samples) {
        match samples {
            Some(samples) => all_ns += profile.info.period_ns * samples as f64,
            None => tell_by_ticks(profile),
        }
    }
    let sum = samples.into_iter().flatten().fold(0, u64::saturating_add);
    if sum > 0 {
        first.info.period_ns = all_ns / sum as f64;
    }
    first.info.timer_samples = Some(sum);
    first.left_out += second.left_out;
}

/// Gives times of a clock that ticks the variance of as many samples.
fn tell_by_ticks(profile: &mut Profile) {
    for thread in &mut profile.threads {
        let nodes = &mut thread.tree.nodes;
        for node in nodes.iter_mut() {
            node.spent.variance = node.self_time.value * profile.info.period_ns;
            node.spent.total_variance = node.spent.variance;
        }
        for at in (1..nodes.len()).rev() {
            let Node { parent, spent, .. } = nodes[at];
            nodes[parent as usize].spent.total_variance += spent.total_variance;
        }
    }
}

/// One entry for each function; those of the second have these numbers in the first.
fn add_mended(first: &mut Vec<Mended>, second: &[Mended], numbers: &[FunctionId]) {
    for mended in second {
        let function = numbers[mended.function.0 as usize];
        match first.iter_mut().find(|known| known.function == function) {
            Some(known) => known.frames = known.frames.saturating_add(mended.frames),
            None => first.push(Mended { function, ..*mended }),
        }
    }
    first.sort_by_key(|mended| (std::cmp::Reverse(mended.frames), mended.function));
}

/// One entry for each line of a function.
fn sum_lines(lines: &mut Vec<Line>) {
    lines.sort_by(|a, b| (a.function, &a.file, a.line).cmp(&(b.function, &b.file, b.line)));
    lines.dedup_by(|line, sum| {
        let is_same = (sum.function, &sum.file, sum.line) == (line.function, &line.file, line.line);
        if is_same {
            sum.samples += line.samples;
            sum.self_ns += line.self_ns;
        }
        is_same
    });
}

fn add_health(health: &mut Health, other: Health) {
    // Where there are no calls, none were recorded one by one either.
    health.only_sums = match (health.events, other.events) {
        (0, _) => other.only_sums,
        (_, 0) => health.only_sums,
        _ => health.only_sums && other.only_sums,
    };
    health.events = health.events.saturating_add(other.events);
    health.lost = health.lost.saturating_add(other.lost);
    health.unrecorded = health.unrecorded.saturating_add(other.unrecorded);
    health.mended = health.mended.saturating_add(other.mended);
    health.open = health.open.saturating_add(other.open);
    health.unopened = health.unopened.saturating_add(other.unopened);
    let more = other.unopened_in_coroutines;
    health.unopened_in_coroutines = health.unopened_in_coroutines.saturating_add(more);
    health.taken_over = health.taken_over.saturating_add(other.taken_over);
    health.stacks += other.stacks;
    for (name, times, ns) in other.gaps {
        match health.gaps.iter_mut().find(|gap| gap.0 == name) {
            Some(gap) => {
                gap.1 += times;
                gap.2 = gap.2.saturating_add(ns);
            }
            None => health.gaps.push((name, times, ns)),
        }
    }
    for missing in other.missing {
        if !health.missing.contains(&missing) {
            health.missing.push(missing);
        }
    }
    health.warnings.extend(other.warnings);
}
