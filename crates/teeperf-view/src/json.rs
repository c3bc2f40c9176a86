//! The report as JSON, for programs: `docs/json.md` describes it. Times are nanoseconds.
//! Fields may be added within a version; a field that changes its meaning changes the
//! version.

pub mod harmless;
mod parts;

use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;
use teeperf_profile::aggregate::{self, Row, Sort};
use teeperf_profile::around::Around;
use teeperf_profile::crossings::Crossing;
use teeperf_profile::groups::{By, Group};
use teeperf_profile::model::{
    CallGraph, Extremes, Function, FunctionId, Node, Profile, Spent, Stacks, Thread, Time, Waits,
};
use teeperf_profile::pattern::Found;

use crate::findings::{self, Finding};
use crate::units;

/// What the report carries.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether each thread comes with its call paths.
    pub call_tree: bool,
    /// What of the recording is shown, such as `focus on "parse"`; empty when it is all.
    pub selection: String,
    /// Functions with their callers and callees, where that was asked for.
    pub around: Option<Vec<Around>>,
    /// Functions by what they belong to, where that was asked for.
    pub by: Option<(By, Vec<Group>)>,
    /// Functions whose lengths come as a histogram too.
    pub histogram: Option<Found>,
    /// Functions whose time is that of crossings.
    pub crossings: Vec<Crossing>,
    /// What the reports of the profiles beside the first carry, in their order; without, what this one does, but for lists of functions.
    pub beside: Vec<Options>,
}

/// Writes the report as one line.
pub fn write(profile: &Profile, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let Options { call_tree, ref selection, .. } = *options;
    let usual = Options { call_tree, selection: selection.clone(), ..Options::default() };
    let beside = profile.beside.iter().enumerate();
    let beside = beside.map(|(at, profile)| (profile, options.beside.get(at).unwrap_or(&usual)));
    let beside: Vec<_> = beside.map(|(profile, options)| report(profile, options)).collect();
    crate::json::harmless::write(&Report { beside, ..report(profile, options) }, out)
}

/// That of one profile.
fn report<'a>(profile: &'a Profile, options: &'a Options) -> Report<'a> {
    let rows = aggregate::table(profile, Sort::SelfTime);
    let places: Places = rows.iter().zip(0..).map(|(row, place)| (row.function, place)).collect();
    let (arcs, cycles) = profile.graph.as_ref().map(|known| graph(known, &places)).unzip();
    Report {
        format: "teeperf-report",
        version: 1,
        units: Units {
            time: units::name(profile.info.unit),
            duration: units::name(profile.info.unit_of_durations()),
        },
        info: info(profile),
        health: health(profile),
        selection: selection(profile, options),
        lengths: profile.length_unit_ns.map(|_| parts::precision(profile)),
        functions: functions(profile, &rows, options),
        threads: profile.threads.iter().map(|thread| lane(thread, profile, options)).collect(),
        waits: waits(profile),
        points: profile.points.iter().map(parts::point).collect(),
        advice: parts::advice(profile, &options.crossings, &places),
        arcs,
        cycles,
        around: options.around.as_ref().map(|list| parts::around(list, &places)),
        by: options.by.as_ref().map(|(by, groups)| parts::by(*by, groups, &places)),
        beside: Vec::new(),
    }
}

#[derive(Serialize)]
struct Report<'a> {
    format: &'static str,
    version: u32,
    units: Units,
    info: Run<'a>,
    health: Whole<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selection: Option<Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lengths: Option<parts::Precision>,
    functions: Vec<Called<'a>>,
    threads: Vec<Lane<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits: Vec<Waited<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    points: Vec<parts::Point<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    advice: Vec<parts::Advice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arcs: Option<Vec<Call>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<Vec<Round>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    around: Option<Vec<parts::Around>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<parts::By<'a>>,
    /// Of other events, and of samples beside calls: each a report by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside: Vec<Report<'a>>,
}

/// What of the recording this is: its time, and that of all.
#[derive(Serialize)]
struct Part<'a> {
    what: &'a str,
    recorded: f64,
    of: Option<f64>,
}

/// Places of functions in the list.
type Places = HashMap<FunctionId, usize>;

#[derive(Serialize)]
struct Units {
    time: &'static str,
    duration: &'static str,
}

#[derive(Serialize)]
struct Run<'a> {
    command: &'a [String],
    host: &'a str,
    system: &'a str,
    machine: &'a str,
    processor: &'a str,
    processors: u32,
    clock: &'a str,
    clock_reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a String>,
    period: f64,
    started: u64,
    duration: u64,
    exit_status: Option<i64>,
    signal: Option<i64>,
    filters: &'a [Vec<String>],
    timed: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    timer_samples: Option<u64>,
}

#[derive(Serialize)]
struct Whole<'a> {
    events: u64,
    lost: u64,
    #[serde(skip_serializing_if = "is_zero")]
    unrecorded: u64,
    mended: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mended_in: Vec<Mended<'a>>,
    open: Option<u64>,
    unopened: u64,
    #[serde(skip_serializing_if = "is_zero")]
    taken_over: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    stacks: Option<Followed>,
    gaps: Vec<Gap<'a>>,
    findings: Vec<Said>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Serialize)]
struct Followed {
    followed: u64,
    cut: u64,
    beyond: u64,
    holed: u64,
    chains: u64,
    alone: u64,
}

/// Frames of a function that were mended.
#[derive(Serialize)]
struct Mended<'a> {
    name: &'a str,
    module: &'a str,
    frames: u64,
}

#[derive(Serialize)]
struct Gap<'a> {
    reason: &'a str,
    times: u64,
    time: u64,
}

#[derive(Serialize)]
struct Said {
    warning: bool,
    what: String,
    next: String,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    module: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    calls: u64,
    #[serde(flatten)]
    times: Times,
    #[serde(flatten)]
    extremes: Option<Lengths>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lengths: Option<parts::CallLengths>,
    #[serde(flatten)]
    sampled: Option<Sampled>,
}

/// What samples say of a function beside its CPU time: how many there are, and nanoseconds.
#[derive(Serialize)]
struct Sampled {
    samples: u64,
    waiting: f64,
    total_waiting: f64,
    hooks: f64,
}

impl Sampled {
    /// Nothing where CPU times are not made of samples.
    fn of(profile: &Profile, spent: &Spent) -> Option<Self> {
        profile.info.timer_samples.is_some().then(|| Self {
            samples: spent.samples,
            waiting: number(spent.waiting_ns),
            total_waiting: number(spent.total_waiting_ns),
            hooks: number(spent.hooks_ns),
        })
    }
}

#[derive(Serialize)]
struct Times {
    total: f64,
    #[serde(rename = "self")]
    self_time: f64,
    total_low: f64,
    total_high: f64,
    self_low: f64,
    self_high: f64,
}

/// Of the shortest and the longest call.
#[derive(Serialize)]
struct Lengths {
    shortest: f64,
    longest: f64,
}

#[derive(Serialize)]
struct Lane<'a> {
    name: &'a str,
    process: u32,
    id: u32,
    merged: u32,
    events: u64,
    recorded: f64,
    wall: u64,
    cpu: Option<u64>,
    waited: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hooks: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Vec<Path<'a>>>,
}

/// A call path; `caller` is the place of another in the same list, null for none.
#[derive(Serialize)]
struct Path<'a> {
    caller: Option<u32>,
    name: &'a str,
    module: &'a str,
    calls: u64,
    #[serde(flatten)]
    times: Times,
    #[serde(flatten)]
    extremes: Option<Lengths>,
    #[serde(flatten)]
    sampled: Option<Sampled>,
}

/// An async function between polls.
#[derive(Serialize)]
struct Waited<'a> {
    name: &'a str,
    module: &'a str,
    times: u64,
    total: f64,
    longest: f64,
}

/// Calls of a function by another, where there are no call paths; both by their places in the list of
/// functions.
#[derive(Serialize)]
struct Call {
    caller: Option<usize>,
    callee: Option<usize>,
    calls: u64,
    total: f64,
}

/// Functions that call each other in circles.
#[derive(Serialize)]
struct Round {
    members: Vec<usize>,
    calls: u64,
    inner_calls: u64,
    total: f64,
    #[serde(rename = "self")]
    self_time: f64,
}

fn info(profile: &Profile) -> Run<'_> {
    let info = &profile.info;
    Run {
        command: &info.command,
        host: &info.host,
        system: &info.system,
        machine: &info.machine,
        processor: &info.processor,
        processors: info.processors,
        clock: &info.clock,
        clock_reason: &info.clock_reason,
        event: info.is_sampled().then_some(&info.event),
        period: number(info.period_ns),
        started: info.started_ns,
        duration: info.duration_ns,
        exit_status: info.exit_status,
        signal: info.signal,
        filters: &info.filters,
        timed: &info.timed,
        timer_samples: info.timer_samples,
    }
}

fn health(profile: &Profile) -> Whole<'_> {
    let health = &profile.health;
    let said = |Finding { warning, what, next }| Said { warning, what, next };
    Whole {
        events: health.events,
        lost: health.lost,
        unrecorded: health.unrecorded,
        mended: health.mended,
        mended_in: mended(profile),
        open: (!health.only_sums).then_some(health.open),
        unopened: health.unopened,
        taken_over: health.taken_over,
        stacks: profile.info.is_sampled().then_some({
            let Stacks { followed, cut, beyond, holed, chains, alone } = health.stacks;
            Followed { followed, cut, beyond, holed, chains, alone }
        }),
        gaps: health
            .gaps
            .iter()
            .map(|(reason, times, time)| Gap { reason, times: *times, time: *time })
            .collect(),
        findings: findings::of(profile).into_iter().map(said).collect(),
    }
}

fn mended(profile: &Profile) -> Vec<Mended<'_>> {
    let of = |mended: &teeperf_profile::model::Mended| {
        let function = profile.functions.get(mended.function.0 as usize)?;
        Some(Mended { name: &function.name, module: &function.module, frames: mended.frames })
    };
    profile.health.mended_in.iter().filter_map(of).collect()
}

/// Functions, in the order of these rows.
fn functions<'a>(profile: &'a Profile, rows: &[Row], options: &Options) -> Vec<Called<'a>> {
    let lengths_of = parts::lengths(profile, options.histogram.as_ref());
    rows.iter()
        .map(|row| {
            let function = profile.functions.get(row.function.0 as usize);
            Called {
                name: name(function),
                module: function.map_or("", |function| &function.module),
                file: function.and_then(|function| function.file.as_deref()),
                line: function.and_then(|function| function.line),
                calls: row.calls,
                times: times(&row.total, &row.self_time),
                extremes: row.extremes.map(lengths),
                lengths: lengths_of(row.function),
                sampled: Sampled::of(profile, &row.spent),
            }
        })
        .collect()
}

fn selection<'a>(profile: &Profile, options: &'a Options) -> Option<Part<'a>> {
    (!options.selection.is_empty()).then(|| Part {
        what: &options.selection,
        recorded: number(profile.framed_ns()),
        of: profile.part_of_ns.map(number),
    })
}

fn waits(profile: &Profile) -> Vec<Waited<'_>> {
    let waited = |waits: &Waits| {
        let function = profile.functions.get(waits.function.0 as usize);
        Waited {
            name: name(function),
            module: function.map_or("", |function| &function.module),
            times: waits.times,
            total: number(waits.total_ns),
            longest: number(waits.longest_ns),
        }
    };
    profile.waits.iter().map(waited).collect()
}

/// Calls and cycles of a graph, by the places that functions have in the list.
fn graph(graph: &CallGraph, places: &Places) -> (Vec<Call>, Vec<Round>) {
    let place = |function: FunctionId| places.get(&function).copied();
    let calls = graph.arcs.iter().map(|arc| Call {
        caller: arc.caller.and_then(place),
        callee: place(arc.callee),
        calls: arc.calls,
        total: number(arc.total),
    });
    let cycles = graph.cycles.iter().map(|cycle| Round {
        members: cycle.members.iter().filter_map(|&member| place(member)).collect(),
        calls: cycle.calls,
        inner_calls: cycle.inner_calls,
        total: number(cycle.total.value),
        self_time: number(cycle.self_time.value),
    });
    (calls.collect(), cycles.collect())
}

fn lane<'a>(thread: &'a Thread, profile: &'a Profile, options: &Options) -> Lane<'a> {
    let path = |(at, node): (usize, &Node)| {
        let (self_time, total) = thread.times(at);
        let function = profile.functions.get(node.function.0 as usize);
        Path {
            caller: node.parent.checked_sub(1),
            name: name(function),
            module: function.map_or("", |function| &function.module),
            calls: node.calls,
            times: times(&total, &self_time),
            extremes: node.extremes.map(lengths),
            sampled: Sampled::of(profile, &node.spent),
        }
    };
    Lane {
        name: &thread.name,
        process: thread.pid,
        id: thread.tid,
        merged: thread.merged,
        events: thread.events,
        recorded: number(thread.tree.framed_ns()),
        wall: thread.wall_ns,
        cpu: thread.cpu_ns,
        waited: thread.waited_ns,
        waiting: profile.info.timer_samples.map(|_| number(thread.waiting_ns())),
        hooks: profile.info.timer_samples.map(|_| number(thread.hooks_ns())),
        tree: options
            .call_tree
            .then(|| thread.tree.nodes.iter().enumerate().skip(1).map(path).collect()),
    }
}

fn name(function: Option<&Function>) -> &str {
    function.map_or("[unknown]", |function| &function.name)
}

fn times(total: &Time, self_time: &Time) -> Times {
    Times {
        total: number(total.value),
        self_time: number(self_time.value),
        total_low: number(total.low),
        total_high: number(total.high),
        self_low: number(self_time.low),
        self_high: number(self_time.high),
    }
}

fn lengths(extremes: Extremes) -> Lengths {
    Lengths { shortest: number(extremes.shortest_ns), longest: number(extremes.longest_ns) }
}

/// A thousandth of a nanosecond is finer than any clock here; JSON has no infinity.
fn number(ns: f64) -> f64 {
    if ns.is_finite() { (ns * 1000.0).round() / 1000.0 } else { 0.0 }
}
