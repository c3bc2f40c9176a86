//! What workers found, put together: a profile for each event.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use teeperf_wire::body::sampled::source;

use super::driver::Driver;
use super::functions;
use super::modules::Location;
use super::paths::{Of, Step, Thread as Sampled};
use super::worker::Found;
use crate::contents;
use crate::model::{
    Code, Function, FunctionId, Health, Info, Line, Node, Place, Profile, Stacks, Thread, Time,
    Tree, Unit,
};
use crate::warnings::Warnings;

/// The profiles, by number of the event.
pub(super) fn of(
    driver: &Driver,
    found: Vec<Found>,
    info: &Info,
    warnings: &mut Warnings,
) -> Vec<Profile> {
    let mut merged = Merged::default();
    for found in found {
        merged.add(found, warnings);
    }
    if merged.untold > 0 {
        let untold = merged.untold;
        warnings
            .add(|| format!("{untold} samples are of events that the recording does not tell of"));
    }
    if merged.shortened > 0 {
        let shortened = merged.shortened;
        warnings.add(|| format!("there are more call paths than a profile can have: {shortened} samples stand in callers of their functions. `--most-paths` allows more paths"));
    }
    let missing = driver.modules.missing();
    if let [(_, first), others @ ..] = &missing[..] {
        let others = match others.len() {
            0 => String::new(),
            1 => " (and one more file)".into(),
            more => format!(" (and {more} more files)"),
        };
        warnings.add(|| format!("{first}{others}: its functions have no names, and callers behind it may be missing. If it is on another machine, `teeperf pack` the recording there, or say with --symfs where its files are"));
    }
    let lines = merged.lines(driver);
    for text in driver.modules.incomplete() {
        warnings.add(|| text);
    }
    let all = driver.functions.all();
    let (numbers, order) = in_order(&all);
    let functions: Vec<Function> = order.iter().map(|&at| function(&all[at])).collect();
    let places: Vec<Option<Place>> = order.iter().map(|&at| place(&all[at], driver)).collect();
    let mut children = merged.children(&numbers);
    let mut profiles: BTreeMap<u16, Profile> = BTreeMap::new();
    for (of, thread) in &merged.threads {
        let profile = profiles.entry(of.event).or_insert_with(|| {
            let event = driver.events.get(&of.event);
            let lost = driver.lost.get(&u32::from(of.event)).copied().unwrap_or(0);
            let nobodys = driver.lost.get(&0).copied().unwrap_or(0);
            Profile {
                info: about(info, event),
                functions: functions.clone(),
                places: places.clone(),
                health: Health {
                    lost: lost.saturating_add(nobodys),
                    missing: missing.clone(),
                    ..Health::default()
                },
                ..Profile::default()
            }
        });
        let tree = merged.tree(thread.root, &mut children, &numbers);
        let events = tree.nodes.iter().fold(0u64, |sum, node| sum.saturating_add(node.calls));
        profile.health.events += events;
        let (first, last) = thread.span.unwrap_or_default();
        profile.threads.push(Thread {
            pid: of.pid,
            tid: of.tid,
            name: merged.names.get(of).map_or_else(String::new, |(_, name)| name.to_string()),
            merged: 1,
            events,
            wall_ns: last - first,
            tree,
            ..Thread::default()
        });
    }
    for ((event, function, file, line), (samples, weight)) in lines {
        if let (Some(profile), Some(&function)) =
            (profiles.get_mut(&event), numbers.get(function as usize))
        {
            let self_ns = weight as f64;
            profile.lines.push(Line { function, file, line, samples, self_ns });
        }
    }
    let stacks = merged.stacks();
    for (event, profile) in &mut profiles {
        let total = |thread: &Thread| thread.tree.total_ns();
        profile.threads.sort_by(|a, b| {
            total(b).total_cmp(&total(a)).then((a.pid, a.tid).cmp(&(b.pid, b.tid)))
        });
        // What samples stand for is what was reached, whatever was asked for.
        if profile.health.events > 0 {
            let all: f64 = profile.threads.iter().map(&total).sum();
            profile.info.period_ns = all / profile.health.events as f64;
        }
        profile
            .lines
            .sort_by(|a, b| (a.function, &a.file, a.line).cmp(&(b.function, &b.file, b.line)));
        profile.health.stacks = stacks.get(event).copied().unwrap_or_default();
    }
    if profiles.is_empty()
        && let Some(event) = driver.events.values().next()
    {
        let lost = driver.lost.values().fold(0, |sum: u64, lost| sum.saturating_add(*lost));
        let health = Health { lost, ..Health::default() };
        let none = Profile { info: about(info, Some(event)), health, ..Profile::default() };
        profiles.insert(event.event, none);
    }
    profiles.into_values().collect()
}

/// What is known of the run, and of this event.
fn about(info: &Info, event: Option<&contents::Sampled>) -> Info {
    let mut info = Info { clock: "samples".into(), ..info.clone() };
    info.event = "samples".into();
    let Some(event) = event else { return info };
    if !event.name.is_empty() {
        info.event.clone_from(&event.name);
    }
    info.is_foreign = event.source == source::FOREIGN;
    info.is_from_within = matches!(event.source, source::TIMER | source::AEX);
    info.unit = if event.unit == 1 { Unit::Nanoseconds } else { Unit::Counts };
    let by_frequency = match (info.unit, event.frequency) {
        (_, 0) | (Unit::Counts, _) => 0.0,
        (Unit::Nanoseconds, hz) => 1e9 / hz as f64,
    };
    info.asked_ns = if event.period > 0 { event.period as f64 } else { by_frequency };
    info.period_ns = info.asked_ns;
    info.asked_stack = event.stack;
    let how = match event.source {
        source::PERF_EVENT => "of the kernel",
        source::TIMER => "of timers",
        source::AEX | source::AEX_ATTACHED => "of enclaves' exits",
        source::COUNTER => "of a counter",
        _ => "of another profiler",
    };
    let random = if event.is_random { ", periods at random" } else { "" };
    info.clock_reason = format!("{} {how}{random}", event.name);
    info
}

/// New numbers of functions, in the order of their names, and the old ones in that order.
fn in_order(all: &[functions::Function]) -> (Vec<FunctionId>, Vec<usize>) {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| (&all[a].name, &all[a].module).cmp(&(&all[b].name, &all[b].module)));
    let mut numbers = vec![FunctionId(0); all.len()];
    for (new, &old) in order.iter().enumerate() {
        numbers[old] = FunctionId(new as u32);
    }
    (numbers, order)
}

fn function(known: &functions::Function) -> Function {
    let (file, line) = known.defined.clone().unzip();
    let line = line.flatten();
    Function {
        name: known.name.to_string(),
        module: known.module.to_string(),
        file,
        line,
        place: None,
    }
}

fn place(known: &functions::Function, driver: &Driver) -> Option<Place> {
    let (module, address) = known.start?;
    let (path, build_id) = driver.modules.file(module)?;
    let path = String::from_utf8_lossy(&path).into();
    Some(Place { path, build_id, address, size: 0, code: Code::Process })
}

/// Call paths of all workers.
#[derive(Default)]
struct Merged {
    steps: Vec<Step>,
    known: FxHashMap<(u32, u32), u32>,
    threads: BTreeMap<Of, Sampled>,
    /// As workers have them: the latest counts, whoever took it.
    names: FxHashMap<Of, (u64, Arc<str>)>,
    untold: u64,
    shortened: u64,
    places: FxHashMap<(u16, Location), (u64, u64)>,
}

/// Event, function, source file and line.
type LineOf = (u16, u32, Arc<str>, u32);

impl Merged {
    fn add(&mut self, mut found: Found, warnings: &mut Warnings) {
        warnings.append(&mut found.warnings);
        self.untold += found.untold;
        self.shortened += found.paths.shortened;
        for (place, (samples, weight)) in found.places.into_iter().flatten() {
            add(self.places.entry(place).or_default(), samples, weight);
        }
        for (of, (number, name)) in found.names {
            let known = self.names.entry(of).or_insert_with(|| (number, name.clone()));
            if known.0 < number {
                *known = (number, name);
            }
        }
        let mut threads = found.paths.threads.into_iter();
        let mut numbers: Vec<u32> = Vec::with_capacity(found.paths.steps.len());
        for (at, step) in (0..).zip(&found.paths.steps) {
            let number = if step.parent == at {
                let Some((of, mut other)) = threads.next() else { break };
                let next = self.steps.len() as u32;
                other.root = next;
                let thread = self.threads.entry(of).or_insert(other);
                if thread.root == next {
                    self.steps.push(Step { parent: next, samples: 0, weight: 0, ..*step });
                } else {
                    thread.add(&other);
                }
                thread.root
            } else {
                let (parent, next) = (numbers[step.parent as usize], self.steps.len() as u32);
                let number = *self.known.entry((parent, step.function)).or_insert(next);
                if number == next {
                    self.steps.push(Step { parent, samples: 0, weight: 0, ..*step });
                }
                number
            };
            numbers.push(number);
            let there = &mut self.steps[number as usize];
            there.samples += step.samples;
            there.weight = there.weight.saturating_add(step.weight);
        }
    }

    /// Samples and periods by source line, as far as that is known of places.
    fn lines(&mut self, driver: &Driver) -> BTreeMap<LineOf, (u64, u64)> {
        let mut view = driver.modules.view();
        let mut lines = BTreeMap::new();
        for ((event, location), (samples, weight)) in std::mem::take(&mut self.places) {
            let Some((id, relative)) = location.parts() else { continue };
            let Some((module, _)) = view.module(id) else { continue };
            let Some((named, (file, line))) = module.line(relative) else { continue };
            let function = driver.functions.number(Some(id), &module.name, named);
            add(lines.entry((event, function, file.into(), line)).or_default(), samples, weight);
        }
        lines
    }

    /// Of each step those below it, the last in the functions' order first.
    fn children(&mut self, order: &[FunctionId]) -> Vec<Vec<u32>> {
        self.known = FxHashMap::default();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.steps.len()];
        for (at, step) in (0..).zip(&self.steps) {
            if step.parent != at {
                children[step.parent as usize].push(at);
            }
        }
        for list in &mut children {
            list.sort_unstable_by_key(|&at| {
                std::cmp::Reverse(order[self.steps[at as usize].function as usize])
            });
        }
        children
    }

    /// The tree below a root; takes the lists of its steps.
    fn tree(&self, root: u32, children: &mut [Vec<u32>], numbers: &[FunctionId]) -> Tree {
        let mut nodes = Vec::new();
        let mut left = vec![(root, 0)];
        while let Some((at, parent)) = left.pop() {
            let step = &self.steps[at as usize];
            let function = numbers.get(step.function as usize).copied().unwrap_or_default();
            let below = nodes.len() as u32;
            nodes.push(Node {
                parent,
                function,
                calls: step.samples,
                self_time: Time::from(step.weight as f64),
                total: Time::default(),
                extremes: None,
                spent: Default::default(),
            });
            let list = std::mem::take(&mut children[at as usize]);
            left.extend(list.into_iter().map(|child| (child, below)));
        }
        let mut tree = Tree { nodes };
        tree.sum_up();
        tree
    }

    /// What became of stacks, by event.
    fn stacks(&self) -> BTreeMap<u16, Stacks> {
        let mut stacks: BTreeMap<u16, Stacks> = BTreeMap::new();
        for (of, thread) in &self.threads {
            let sum = stacks.entry(of.event).or_default();
            *sum += thread.stacks;
        }
        stacks
    }
}

fn add(sum: &mut (u64, u64), samples: u64, weight: u64) {
    *sum = (sum.0 + samples, sum.1.saturating_add(weight));
}

impl Sampled {
    fn add(&mut self, other: &Self) {
        self.stacks += other.stacks;
        self.span = match (self.span, other.span) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
    }
}
