//! What the JSON report has beside the usual: callers and callees, groups and lengths of calls where they were asked for; advice.

use serde::Serialize;
use teeperf_profile::crossings::{Crossing, Evidence};
use teeperf_profile::model::{self, FunctionId, PointKind, Profile};
use teeperf_profile::pattern::Found;
use teeperf_profile::{around, groups, lengths};

use super::{Places, Times, number, times};
use crate::advice;
use crate::tables::{Percentiles, lengths_by_function, points, resolution, step};

/// How well lengths of calls are known.
#[derive(Serialize)]
pub(super) struct Precision {
    /// Lengths below this are not known, and others to this; 0 where each is.
    resolution: f64,
    /// What percentiles may be off by, as a part of them.
    error: f64,
    /// Steps of the counter, where these are seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<f64>,
}

/// A function with its callers and callees, by their places in the list of functions.
#[derive(Serialize)]
pub(super) struct Around {
    function: Option<usize>,
    callers: Vec<Neighbour>,
    callees: Vec<Neighbour>,
}

#[derive(Serialize)]
struct Neighbour {
    function: Option<usize>,
    calls: u64,
    total: f64,
    #[serde(rename = "self")]
    self_time: Option<f64>,
}

/// Groups of functions.
#[derive(Serialize)]
pub(super) struct By<'a> {
    kind: &'static str,
    groups: Vec<Group<'a>>,
}

#[derive(Serialize)]
struct Group<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    calls: u64,
    #[serde(flatten)]
    times: Times,
    functions: Vec<Member>,
}

#[derive(Serialize)]
struct Member {
    function: Option<usize>,
    calls: u64,
    #[serde(flatten)]
    times: Times,
}

/// How long the calls of a function took.
#[derive(Serialize)]
pub(super) struct CallLengths {
    timed: u64,
    /// What timed them: `counter`, or the clock.
    by: &'static str,
    shortest: f64,
    mean: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    p99_9: f64,
    longest: f64,
    /// First and last length of each bucket, and calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<Vec<(f64, f64, u64)>>,
}

pub(super) fn precision(profile: &Profile) -> Precision {
    Precision { resolution: number(resolution(profile)), error: 1.0 / 64.0, step: step(profile) }
}

pub(super) fn around(list: &[around::Around], places: &Places) -> Vec<Around> {
    let place = |function: FunctionId| places.get(&function).copied();
    let neighbour = |known: &around::Neighbour| Neighbour {
        function: known.function.and_then(place),
        calls: known.calls,
        total: number(known.total.value),
        self_time: known.self_time.map(|time| number(time.value)),
    };
    let each = |around: &around::Around| Around {
        function: place(around.row.function),
        callers: around.callers.iter().map(neighbour).collect(),
        callees: around.callees.iter().map(neighbour).collect(),
    };
    list.iter().map(each).collect()
}

pub(super) fn by<'a>(by: groups::By, groups: &'a [groups::Group], places: &Places) -> By<'a> {
    let group = |group: &'a groups::Group| Group {
        name: &group.name,
        process: group.process,
        id: group.thread,
        calls: group.calls,
        times: times(&group.total, &group.self_time),
        functions: group
            .functions
            .iter()
            .map(|row| Member {
                function: places.get(&row.function).copied(),
                calls: row.calls,
                times: times(&row.total, &row.self_time),
            })
            .collect(),
    };
    let kind = match by {
        groups::By::Thread => "thread",
        groups::By::Process => "process",
        groups::By::Module => "module",
        groups::By::File => "file",
    };
    By { kind, groups: groups.iter().map(group).collect() }
}

/// Gives the lengths of a function's calls, where they were timed; the histogram of those that were found.
pub(super) fn lengths<'a>(
    profile: &'a Profile,
    histogram: Option<&'a Found>,
) -> impl Fn(FunctionId) -> Option<CallLengths> + use<'a> {
    let all = lengths_by_function(profile);
    move |function| {
        profile.length_unit_ns?;
        let known = all.get(&function)?;
        let (lengths, unit_ns) = (&known.lengths, known.unit_ns(profile));
        let told = Percentiles::of(known, profile)?;
        let [p50, p90, p99, p99_9] = told.percentiles.map(number);
        let is_wanted = histogram.is_some_and(|found| found.has(function));
        let bucket = |bucket: lengths::Bucket| {
            let ns = |units: u64| number(units as f64 * unit_ns);
            (ns(bucket.first), ns(bucket.last), bucket.calls)
        };
        Some(CallLengths {
            timed: told.timed,
            by: if known.by_counter { "counter" } else { "clock" },
            shortest: number(told.shortest),
            mean: number(told.mean),
            p50,
            p90,
            p99,
            p99_9,
            longest: number(told.longest),
            histogram: is_wanted.then(|| lengths.buckets().map(bucket).collect()),
        })
    }
}

/// A mark, a note, or the value of a counter.
#[derive(Serialize)]
pub(super) struct Point<'a> {
    at: f64,
    process: u32,
    thread: u32,
    what: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
}

/// One that is not finite is null.
#[derive(Serialize)]
#[serde(untagged)]
enum Value {
    Integer(i64),
    Real(f64),
}

pub(super) fn point(point: &model::Point) -> Point<'_> {
    let value = match point.kind {
        PointKind::Mark | PointKind::Note => None,
        PointKind::Integer(value) => Some(Value::Integer(value)),
        PointKind::Real(value) => Some(Value::Real(value)),
    };
    Point {
        at: number(point.at_ns),
        process: point.pid,
        thread: point.tid,
        what: points::what(point.kind),
        name: &point.name,
        value,
    }
}

/// What to do about a function whose time is that of crossings.
#[derive(Serialize)]
pub(super) struct Advice<'a> {
    function: Option<usize>,
    share: f64,
    per_call: f64,
    evidence: &'static str,
    calls: &'a [String],
    kind: Option<&'static str>,
    what: String,
    next: &'static str,
}

pub(super) fn advice<'a>(
    profile: &Profile,
    crossings: &'a [Crossing],
    places: &Places,
) -> Vec<Advice<'a>> {
    let each = |crossing: &'a Crossing| {
        let row = &crossing.row;
        let advice::Advice { what, next } = advice::of(profile, crossing);
        Advice {
            function: places.get(&row.function).copied(),
            share: crossing.share,
            per_call: number(row.total.value / row.calls.max(1) as f64),
            evidence: advice::evidence_name(&crossing.evidence),
            calls: match &crossing.evidence {
                Evidence::Code(names) => names,
                _ => &[],
            },
            kind: crossing.kind.map(advice::kind_name),
            what,
            next,
        }
    };
    crossings.iter().map(each).collect()
}
