//! Takes in run after run, keeps of each what is compared, and compares.

use super::identity::{self, Identity};
use super::noise::{self, Measured, Pair};
use super::{Change, Diff, Figure, Options, Presence, Run, Side, Sides, Spread, paths};
use crate::aggregate::{self, Row, Sort};
use crate::model::{CallGraph, Function, FunctionId, Info, Profile, Time, Unit};
use std::collections::{BTreeSet, HashMap, HashSet};

/// A comparison that is still being fed.
#[derive(Default)]
pub struct Comparison {
    functions: Vec<Function>,
    known: HashMap<Identity, FunctionId>,
    sides: Sides<Vec<Taken>>,
    paths: paths::Paths,
}

struct Taken {
    run: Run,
    rows: Vec<Row>,
}

impl Comparison {
    /// Takes in the profile of a run, and what its recording is called.
    pub fn add(&mut self, side: Side, name: impl Into<String>, mut profile: Profile) {
        self.rename(side, &mut profile);
        self.paths.add(side, &profile.threads);
        // Without a period the bounds have no ticks in them. Those of samples have all.
        let period_ns = profile.info.period_ns;
        if profile.info.timer_samples.is_none() {
            profile.info.period_ns = 0.0;
        }
        let rows = aggregate::table(&profile, Sort::Name);
        profile.info.period_ns = period_ns;
        let time_ns = rows.iter().map(|row| row.self_time.value).sum();
        let has_graph = profile.graph.is_some();
        let (name, info, health) = (name.into(), profile.info, profile.health);
        let run = Run { name, info, health, time_ns, has_graph };
        self.sides.of_mut(side).push(Taken { run, rows });
    }

    /// The comparison of all that was taken in.
    pub fn finish(mut self, options: &Options) -> Diff {
        self.pair_programs();
        let paired = self.pair_modules();
        let scales = self.scales(options.normalize);
        let figures = self.figures(&scales);
        let spread = Spread::of(figures.iter().map(|figures| &figures.self_time), options.noise);
        let whole = self.whole(&scales).judge(spread);
        let (before, after) = self.whole(&scales).means();
        let lost = |side: &Vec<Taken>| side.iter().map(|taken| taken.run.health.lost).sum::<u64>();
        let lost = lost(&self.sides.before) + lost(&self.sides.after);
        let changes = changes(&figures, spread, lost as f64);
        let paths = self.paths.finish(&scales);
        let runs = |side: Vec<Taken>| side.into_iter().map(|taken| taken.run).collect::<Vec<_>>();
        let runs = Sides { before: runs(self.sides.before), after: runs(self.sides.after) };
        let unit = |runs: &[Run]| runs.iter().any(|run| run.info.unit == Unit::Counts);
        let is_counted = unit(&runs.before) || unit(&runs.after);
        Diff {
            functions: self.functions,
            changes,
            whole: Figure {
                before,
                after,
                margin: whole.margin,
                probability: whole.probability,
                is_change: noise::is_told(&whole),
            },
            paths,
            unit: if is_counted { Unit::Counts } else { Unit::Nanoseconds },
            runs,
            spread: Some(spread),
            is_normalized: options.normalize,
            paired,
        }
    }

    /// Gives the functions of a profile the numbers that they have here.
    fn rename(&mut self, side: Side, profile: &mut Profile) {
        let program = program(&profile.info).to_owned();
        let mut numbers = Vec::with_capacity(profile.functions.len());
        for function in &profile.functions {
            let next = FunctionId(self.functions.len() as u32);
            let number = *self.known.entry(Identity::of(function, &program)).or_insert(next);
            let name = teeperf_symbols::without_copy(&function.name).to_owned();
            let plain = Function { name, place: None, ..function.clone() };
            match self.functions.get_mut(number.0 as usize) {
                Some(known) if side == Side::After => *known = plain,
                Some(_) => {}
                None => self.functions.push(plain),
            }
            numbers.push(number);
        }
        let number = |function: FunctionId| numbers[function.0 as usize];
        for thread in &mut profile.threads {
            // The root's function means nothing.
            for node in thread.tree.nodes.iter_mut().skip(1) {
                node.function = number(node.function);
            }
            if let Some(no_room) = &mut thread.no_room {
                no_room.renumber(number);
            }
        }
        profile.graph = profile.graph.take().map(|graph| CallGraph::default().plus(&graph, number));
        profile.functions.clone_from(&self.functions);
    }

    /// Where one module is of one side alone, and one of the other, they are the same file under two names.
    fn pair_modules(&mut self) -> Option<(String, String)> {
        let modules = |side: &Vec<Taken>| -> BTreeSet<&str> {
            let rows = side.iter().flat_map(|taken| &taken.rows);
            let module = |row: &Row| self.functions[row.function.0 as usize].module.as_str();
            rows.map(module).filter(|module| !module.is_empty()).collect()
        };
        let stems = |names: BTreeSet<&str>| -> BTreeSet<String> {
            names.iter().map(|name| identity::stem(name).into_owned()).collect()
        };
        // Of the program both names are known to be its.
        let is_a_program = |name: &str| {
            let mut runs = self.sides.before.iter().chain(&self.sides.after);
            runs.any(|taken| program(&taken.run.info) == name)
        };
        let before = stems(modules(&self.sides.before));
        let after = stems(modules(&self.sides.after));
        let only = |here: &BTreeSet<String>, there: &BTreeSet<String>| -> Vec<String> {
            here.difference(there).filter(|name| !is_a_program(name)).cloned().collect()
        };
        let (gone, new) = (only(&before, &after), only(&after, &before));
        let ([gone], [new]) = (&gone[..], &new[..]) else { return None };
        let (gone, new) = (gone.clone(), new.clone());
        self.is_the_same(Side::Before, &gone, &new).then_some((gone, new))
    }

    /// Where the program that one side ran is a module of another one's on the other side, it is the same: files of perf
    /// name perf as the command, and a script may have run it.
    fn pair_programs(&mut self) {
        for (here, there) in [(Side::Before, Side::After), (Side::After, Side::Before)] {
            // What is in no known file has no module either.
            let has_file =
                |number: FunctionId| !self.functions[number.0 as usize].module.is_empty();
            let known = self.known.iter();
            let is_programs: HashSet<FunctionId> = known
                .filter(|&(identity, &number)| {
                    identity.module == identity::PROGRAM && has_file(number)
                })
                .map(|(_, &number)| number)
                .collect();
            let has_program = |side: Side| {
                let mut rows = self.sides.of(side).iter().flat_map(|taken| &taken.rows);
                rows.any(|row| is_programs.contains(&row.function))
            };
            if !has_program(here) || has_program(there) {
                continue;
            }
            let programs: BTreeSet<String> =
                self.sides.of(here).iter().map(|taken| program(&taken.run.info).into()).collect();
            for name in programs {
                self.is_the_same(there, &name, identity::PROGRAM);
            }
            return;
        }
    }

    /// Functions of a module have the numbers, on this side, of those of another one. Whether there are any.
    fn is_the_same(&mut self, side: Side, module: &str, other: &str) -> bool {
        let mut numbers: HashMap<FunctionId, FunctionId> = HashMap::new();
        for (identity, &number) in &self.known {
            let there = Identity { module: other.to_owned(), name: identity.name.clone() };
            if identity.module == module
                && let Some(&same) = self.known.get(&there)
            {
                numbers.insert(number, same);
            }
        }
        if numbers.is_empty() {
            return false;
        }
        for row in self.sides.of_mut(side).iter_mut().flat_map(|taken| &mut taken.rows) {
            row.function = numbers.get(&row.function).copied().unwrap_or(row.function);
        }
        self.paths.renumber(&numbers);
        true
    }

    /// What times of each run are multiplied by.
    fn scales(&self, normalize: bool) -> Sides<Vec<f64>> {
        let times = |side: &Vec<Taken>| side.iter().map(|taken| taken.run.time_ns).collect();
        let times: Sides<Vec<f64>> =
            Sides { before: times(&self.sides.before), after: times(&self.sides.after) };
        let wanted = times.after.iter().sum::<f64>() / times.after.len().max(1) as f64;
        let scale = |time: &f64| if normalize && *time > 0.0 { wanted / time } else { 1.0 };
        let of = |times: &Vec<f64>| times.iter().map(scale).collect();
        Sides { before: of(&times.before), after: of(&times.after) }
    }

    /// The figures of each function in each run, by number.
    fn figures(&self, scales: &Sides<Vec<f64>>) -> Vec<Figures> {
        let mut all = vec![Figures::default(); self.functions.len()];
        for side in [Side::Before, Side::After] {
            for (taken, &scale) in self.sides.of(side).iter().zip(scales.of(side)) {
                let period = taken.run.info.period_ns * scale;
                for figures in &mut all {
                    let nothing = Measured { period, ..Measured::default() };
                    figures.self_time.of_mut(side).push(nothing);
                    figures.total.of_mut(side).push(nothing);
                    figures.calls.of_mut(side).push(0.0);
                }
                for row in &taken.rows {
                    let figures = &mut all[row.function.0 as usize];
                    let of = |time: &Time| measured(time, &taken.run.info, scale);
                    set_last(figures.self_time.of_mut(side), of(&row.self_time));
                    set_last(figures.total.of_mut(side), of(&row.total));
                    set_last(figures.calls.of_mut(side), row.calls as f64);
                }
            }
        }
        all
    }

    /// The time of each run in all functions.
    fn whole(&self, scales: &Sides<Vec<f64>>) -> Pair {
        let mut pair = Pair::default();
        for side in [Side::Before, Side::After] {
            for (taken, &scale) in self.sides.of(side).iter().zip(scales.of(side)) {
                let info = &taken.run.info;
                let sum = |of: fn(Measured) -> f64| {
                    let rows = taken.rows.iter();
                    rows.map(|row| of(measured(&row.self_time, info, scale))).sum()
                };
                pair.of_mut(side).push(Measured {
                    ns: taken.run.time_ns * scale,
                    less: sum(|row| row.less),
                    more: sum(|row| row.more),
                    period: info.period_ns * scale,
                    variance: None,
                });
            }
        }
        pair
    }
}

/// A time of a run, which is longer by such a factor.
fn measured(&Time { value, low, high }: &Time, info: &Info, scale: f64) -> Measured {
    let time = Time { value: value * scale, low: low * scale, high: high * scale };
    let period = info.period_ns * scale;
    if info.timer_samples.is_some() {
        return Measured::by_samples(&time, period);
    }
    let (less, more) = ((value - low).max(0.0) * scale, (high - value).max(0.0) * scale);
    Measured { ns: time.value, less, more, period, variance: None }
}

#[derive(Clone, Default)]
struct Figures {
    calls: Sides<Vec<f64>>,
    self_time: Pair,
    total: Pair,
}

/// The name of the program that a recording says it is of.
fn program(info: &Info) -> &str {
    let command = info.command.first().map_or("", String::as_str);
    command.rsplit('/').next().unwrap_or_default()
}

fn set_last<T>(list: &mut [T], value: T) {
    if let Some(last) = list.last_mut() {
        *last = value;
    }
}

/// One for each function that was called or has time. `lost` calls may be anybody's.
fn changes(all: &[Figures], spread: Spread, lost: f64) -> Vec<Change> {
    let mut found: Vec<Change> = Vec::new();
    for (at, figures) in all.iter().enumerate() {
        let mean = |calls: &[f64]| calls.iter().sum::<f64>() / calls.len().max(1) as f64;
        let (before, after) = (mean(&figures.calls.before), mean(&figures.calls.after));
        let verdict = noise::calls(&figures.calls.before, &figures.calls.after);
        let calls = Figure { before, after, ..of_verdict(verdict) };
        let time = |pair: &Pair| {
            let (before, after) = pair.means();
            Figure { before, after, ..of_verdict(pair.judge(spread)) }
        };
        let (self_time, total) = (time(&figures.self_time), time(&figures.total));
        if before + after + total.before + total.after + self_time.before + self_time.after <= 0.0 {
            continue;
        }
        let presence = match (before > 0.0, after > 0.0) {
            (false, true) => Presence::New,
            (true, false) => Presence::Gone,
            _ => Presence::Both,
        };
        found.push(Change { function: FunctionId(at as u32), presence, calls, self_time, total });
    }
    // What has no time on either side is no figure that could be a change.
    tell(&mut found, |change| &mut change.self_time);
    tell(&mut found, |change| &mut change.total);
    tell(&mut found, |change| &mut change.calls);
    for change in &mut found {
        change.calls.is_change &= change.calls.difference().abs() > lost;
    }
    let size = |change: &Change| change.self_time.difference().abs();
    let time = |change: &Change| change.self_time.before + change.self_time.after;
    found.sort_by(|a, b| {
        let by_size = size(b).total_cmp(&size(a)).then(time(b).total_cmp(&time(a)));
        by_size.then(a.function.cmp(&b.function))
    });
    found
}

fn of_verdict(verdict: noise::Verdict) -> Figure {
    Figure { margin: verdict.margin, probability: verdict.probability, ..Figure::default() }
}

fn tell(changes: &mut [Change], figure: impl Fn(&mut Change) -> &mut Figure) {
    let (mut places, mut probabilities) = (Vec::new(), Vec::new());
    for (at, change) in changes.iter_mut().enumerate() {
        let figure = figure(change);
        if figure.before > 0.0 || figure.after > 0.0 {
            places.push(at);
            probabilities.push(figure.probability);
        }
    }
    for (at, is_told) in places.into_iter().zip(noise::told(&probabilities)) {
        figure(&mut changes[at]).is_change = is_told;
    }
}
