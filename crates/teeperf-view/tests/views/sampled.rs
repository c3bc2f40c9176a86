//! The text report of programs whose CPU time samples tell, or too few of them.

use crate::support::{kitchen, node, thread};
use crate::text::report;
use teeperf_profile::aggregate::table;
use teeperf_profile::groups;
use teeperf_profile::model::{Point, PointKind, Profile, Time};
use teeperf_view::text::{Options, Sort};

#[test]
fn too_little_cpu_time_for_samples_is_said() {
    let mut profile = kitchen();
    profile.info.timer_samples = Some(0);
    let line = |profile: &Profile| {
        let report = report(profile, &Options::default(), 400);
        report.lines().find(|line| line.starts_with("CPU time")).unwrap().to_owned()
    };
    assert!(line(&profile).ends_with(", told by the clock alone: no thread was sampled"));
    profile.threads = vec![teeperf_profile::model::Thread {
        cpu_ns: Some(99_000),
        ..thread(11, "kitchen", vec![node(0, 0, 0, 0.0, 0.0)])
    }];
    assert_eq!(
        line(&profile),
        "CPU time   99.00 µs, which is too short for samples: no function's share is known"
    );
}

/// Guards: a table that is wider than a terminal where hooks have time.
#[test]
fn threads_with_hooks_find_room_at_80_columns() {
    let mut profile = kitchen();
    profile.info.timer_samples = Some(3);
    profile.threads.iter_mut().for_each(|thread| thread.tree.nodes[1].spent.hooks_ns = 5e6);
    let head = |profile: &Profile, width| {
        let report = report(profile, &Options::default(), width);
        let threads = report[report.find("\nThreads").unwrap()..].to_owned();
        let widest = threads.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{threads}");
        let head = threads.lines().find(|line| line.contains("RECORDED")).unwrap();
        ["HOOKS", "PROCESS"].map(|column| head.contains(column))
    };
    assert_eq!(head(&profile, 120), [true, true]);
    assert_eq!(head(&profile, 80), [true, false]);
    profile.threads[0].pid += 1;
    assert_eq!(head(&profile, 120), [true, true]);
    assert_eq!(head(&profile, 80), [false, true]);
}

/// Guards: functions that seem to have no CPU time for sure, because no sample fell into any.
#[test]
fn without_samples_each_function_may_have_all_cpu_time() {
    let mut profile = kitchen();
    profile.info.timer_samples = Some(0);
    profile.info.period_ns = 1e6;
    let node = |parent, function| node(parent, function, 3, 0.0, 0.0);
    profile.threads = vec![teeperf_profile::model::Thread {
        cpu_ns: Some(99_000),
        ..thread(11, "kitchen", vec![node(0, 0), node(0, 0), node(1, 1)])
    }];
    let groups = groups::groups(&profile, groups::By::Thread, Sort::Name);
    let tables = [table(&profile, Sort::Name), groups[0].functions.clone()];
    for row in tables.iter().flatten() {
        let bounds = |time: Time| (time.low, time.value, time.high);
        assert_eq!(bounds(row.self_time), (0.0, 0.0, 99_000.0));
        assert_eq!(bounds(row.total), (0.0, 0.0, 99_000.0));
    }
    let report = report(&profile, &Options::default(), 400);
    let note = "~ no sample fell into a function: each may have had all of the CPU time\n";
    assert_eq!(report.matches(note).count(), 1, "{report}");
    assert!(!report.contains("the bounds:"), "{report}");
}

#[test]
fn a_process_that_is_sampled_no_more_is_said() {
    let mut profile = kitchen();
    let name =
        "the program handles SIGURG itself: its CPU time is not sampled from here on".to_owned();
    let point = |pid| Point { pid, tid: 11, at_ns: 5.0, name: name.clone(), kind: PointKind::Note };
    for (last, told) in
        [(10, "process 10"), (11, "processes 10, 11"), (19, "10 processes (first: 10, ")]
    {
        profile.points = (10..=last).map(point).collect();
        let report = report(&profile, &Options::default(), 400);
        assert_eq!(report.matches("the program handles SIGURG itself: its CPU time").count(), 1);
        assert!(report.contains(&format!("In {told}")), "{report}");
    }
    let of_filter =
        "the program filters its system calls: its CPU time is not sampled from here on";
    let name = of_filter.to_owned();
    profile.points = vec![Point { pid: 10, tid: 11, at_ns: 5.0, name, kind: PointKind::Note }];
    let report = report(&profile, &Options::default(), 400);
    assert!(report.contains(&format!("In process 10 {of_filter}: times are the clock's")));
}
