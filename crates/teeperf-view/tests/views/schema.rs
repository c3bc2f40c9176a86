//! Reports are as `docs/report.schema.json` has them, whatever was asked for, and it has nothing else.

use crate::schema_check::Schema;
use crate::support::{kitchen, summed_kitchen};
use serde_json::{Value, json};
use teeperf_profile::aggregate::{self, Sort};
use teeperf_profile::around::around;
use teeperf_profile::crossings::{Crossing, Evidence, Kind};
use teeperf_profile::groups::{By, groups};
use teeperf_profile::lengths::Lengths;
use teeperf_profile::model::{
    CallGraph, FunctionId, Mended, Point, PointKind, Profile, Stacks, Unit, Waits,
};
use teeperf_profile::pattern::Pattern;
use teeperf_view::json::{self, Options};

fn report(profile: &Profile, options: &Options) -> Value {
    let mut out = Vec::new();
    json::write(profile, options, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// A profile of all that there can be.
fn everything() -> Profile {
    let mut profile = summed_kitchen();
    let mut lengths = Lengths::default();
    (1..100).for_each(|length| lengths.add(length));
    profile.threads[0].lengths.push((FunctionId(1), lengths));
    profile.length_unit_ns = Some(2.0);
    profile.part_of_ns = Some(3e9);
    profile.info.filters = vec![vec!["only parse".into()]];
    profile.health.gaps = vec![("dropped".into(), 3, 9_000)];
    profile.health.lost = 7;
    profile.health.mended = 9;
    profile.health.mended_in = vec![Mended { function: FunctionId(1), frames: 9 }];
    profile.health.taken_over = 3;
    profile.health.unrecorded = 2;
    let function = FunctionId(0);
    profile.waits = vec![Waits { function, times: 3, total_ns: 30.0, longest_ns: 20.0 }];
    let kinds = [
        PointKind::Mark,
        PointKind::Note,
        PointKind::Integer(i64::MIN),
        PointKind::Real(0.5),
        PointKind::Real(f64::NAN),
    ];
    let point = |kind| Point { pid: 1, tid: 2, at_ns: 3.5, name: "it".into(), kind };
    profile.points = kinds.map(point).into();
    let [a, b] = [0, 1].map(FunctionId);
    let calls = [(None, a, 1), (Some(a), b, 2), (Some(b), a, 3)];
    profile.graph = Some(CallGraph::new([(a, 10.0), (b, 20.0)], calls));
    profile
}

/// Of every kind, and known in every way.
fn crossings(profile: &Profile) -> Vec<Crossing> {
    let row = aggregate::table(profile, Sort::Total)[0];
    let kinds = [
        Some(Kind::Constant),
        Some(Kind::Time),
        Some(Kind::Random),
        Some(Kind::Data),
        Some(Kind::System),
        Some(Kind::Exit),
        None,
    ];
    let evidence =
        [Evidence::Pattern, Evidence::Name, Evidence::Code(vec!["read".into()]), Evidence::Cost];
    let of = |kind| {
        let with = move |evidence: &Evidence| (kind, evidence.clone());
        evidence.iter().map(with).collect::<Vec<_>>()
    };
    let all = kinds.into_iter().flat_map(of);
    all.map(|(kind, evidence)| Crossing { row, share: 0.5, evidence, kind }).collect()
}

#[test]
fn all_reports_fit_and_have_all_that_is_described() {
    let mut schema = Schema::of_reports();
    let profile = everything();
    for by in [By::Thread, By::Process, By::Module, By::File] {
        let options = Options {
            call_tree: true,
            selection: "paths with \"parse\"".into(),
            around: Some(
                around(&profile, &Pattern::new("*").unwrap().among(&profile.functions), 100).0,
            ),
            by: Some((by, groups(&profile, by, Sort::SelfTime))),
            histogram: Some(Pattern::new("parse").unwrap().among(&profile.functions)),
            crossings: crossings(&profile),
            beside: Vec::new(),
        };
        assert_eq!(schema.errors(&report(&profile, &options)), Vec::<String>::new());
    }
    // Of a counter that goes on in steps.
    let mut stepped = kitchen();
    stepped.info.period_ns = 0.0;
    stepped.length_unit_ns = Some(0.5);
    let mut lengths = Lengths::default();
    (0..3000).for_each(|at| lengths.add(at % 9 * 25));
    stepped.threads[0].lengths = vec![(FunctionId(1), lengths)];
    assert_eq!(schema.errors(&report(&stepped, &Options::default())), Vec::<String>::new());
    let mut sampled = kitchen();
    sampled.info.clock = "samples".into();
    sampled.info.event = "cpu-clock".into();
    sampled.health.stacks =
        Stacks { followed: 9, cut: 1, chains: 30, alone: 29, ..Stacks::default() };
    sampled.beside = vec![sampled.clone(), kitchen()];
    assert_eq!(schema.errors(&report(&sampled, &Options::default())), Vec::<String>::new());
    // With CPU times that are made of samples among the calls.
    let mut interrupted = kitchen();
    interrupted.info.timer_samples = Some(9);
    let options = Options { call_tree: true, ..Options::default() };
    assert_eq!(schema.errors(&report(&interrupted, &options)), Vec::<String>::new());
    let missing: Vec<_> = schema.properties().difference(&schema.seen).cloned().collect();
    assert!(missing.is_empty(), "described, but never written: {missing:?}");
    let counts = {
        let mut profile = kitchen();
        profile.info.unit = Unit::Counts;
        profile
    };
    for profile in [kitchen(), counts, Profile::default()] {
        assert_eq!(schema.errors(&report(&profile, &Options::default())), Vec::<String>::new());
    }
}

#[test]
fn what_is_not_described_does_not_fit() {
    let mut schema = Schema::of_reports();
    let right = report(&everything(), &Options::default());
    let mut wrong = |change: fn(&mut Value)| {
        let mut report = right.clone();
        change(&mut report);
        schema.errors(&report)
    };
    assert_eq!(wrong(|_| {}), Vec::<String>::new());
    let changes: [fn(&mut Value); 6] = [
        |report| report["functions"][0]["new"] = json!(1),
        |report| report["version"] = json!(2),
        |report| report["units"]["time"] = json!("s"),
        |report| report["threads"][0]["events"] = json!(1.5),
        |report| drop(report["info"].as_object_mut().unwrap().remove("host")),
        |report| report["functions"][1]["lengths"]["p50"] = json!(-1),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert!(!wrong(change).is_empty(), "change {number}");
    }
}
