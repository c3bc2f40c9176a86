//! Nothing is recorded until a function is called; then that call is there, and all that comes behind it.

use crate::support::*;

/// Ways to record: what is recorded is the same in all.
const WAYS: [&[&str]; 3] = [&["--clock", "tick"], &["--clock", "cycle"], &["--probe", "tree"]];

/// Guards: the first call of the function, which asks the recorder, waits until it goes on, and is then recorded itself.
#[test]
fn the_call_that_begins_it_is_recorded() {
    for way in WAYS {
        let mut phases = Phases::start(&[way, &["--trigger", "gr*n"]].concat());
        phases.does(&["red 100", "deep 3", "blue 7"]);
        let status = phases.asks(&["status"]);
        assert!(
            status.contains("state: waiting\n") && status.contains("trigger: gr*n\n"),
            "{status}"
        );
        phases.does(&["green 5", "blue 3", "up 0", "red 9", "deep 2", "red 1", "up 0"]);
        assert!(phases.asks(&["status"]).contains("state: recording\n"));
        let (_, report, _shop) = phases.end();
        let seen = [("green", 5), ("blue", 3), ("red", 10), ("deep", 2)];
        assert_seen(&report, &seen, &[]);
        assert_eq!(report.paths().get("deep;deep;red"), Some(&1), "{way:?}");
    }
}

/// Guards: what was asked for by a filter holds from that call on, and may be changed before.
#[test]
fn a_filter_holds_from_there_on() {
    for way in WAYS {
        let options = ["--trigger", "green", "--exclude", "blue"];
        let mut phases = Phases::start(&[way, &options].concat());
        phases.does(&["red 1", "blue 2", "green 3", "blue 4", "red 5"]);
        let (_, report, _shop) = phases.end();
        assert_seen(&report, &[("green", 3), ("red", 5)], &[]);

        let mut phases = Phases::start(&[way, &["--trigger", "green"]].concat());
        phases.does(&["red 1"]);
        phases.asks(&["filter", "--only", "red"]);
        phases.does(&["green 3", "red 5", "blue 6"]);
        let (_, report, _shop) = phases.end();
        assert_seen(&report, &[("red", 5)], &[]);
    }
}

/// Guards: what is timed holds from that call on.
#[test]
fn what_is_timed_is_so_from_there_on() {
    let mut phases = Phases::start(&["--trigger", "green", "--timed", "re*", "--exclude", "blue"]);
    phases.does(&["red 2", "blue 3", "green 5", "red 7", "blue 4"]);
    let (_, report, _shop) = phases.end();
    assert_seen(&report, &[("green", 5), ("red", 7)], &[]);
    let table = run(teeperf().args(["report", "--lengths", "--csv"]).arg(report.recording()));
    for row in [",7,counter,red,", ",5,tick,green,"] {
        assert!(table.stdout.contains(row), "{row}: {table:?}");
    }
}

/// Guards: calls of the function are seen though no calls are wanted, and from there on what was asked for alone is recorded.
#[test]
fn kinds_of_events_are_those_wanted_from_there_on() {
    let shop = Workshop::new();
    let program = shop.build("points.cc", Compiler::Gcc, &["-O1"]);
    let recorded = |kinds| {
        let words = ["--trigger", "loads", "--events", kinds];
        let report = shop.record(&words, &program, &[], 0).report;
        let points =
            run(teeperf().args(["report", "--time-line", "--csv"]).arg(report.recording()));
        (report, points.stdout)
    };
    let (report, points) = recorded("marks");
    let scopes =
        [("behind", 1), ("left by an exception", 1), ("load a part", 5), ("load: all of it", 1)];
    assert_seen(&report, &scopes, &[]);
    let times = |end: &str| points.lines().filter(|line| line.ends_with(end)).count();
    assert_eq!((times(",loaded"), times(",caught"), times(",begin")), (5, 1, 0), "{points}");
    let (report, points) = recorded("calls");
    assert_seen(&report, &[("loads", 1), ("throws", 1), ("work", 7)], &[]);
    assert_eq!(points.lines().count(), 1, "{points}");
}

/// Guards: all threads go on, also those that had begun before.
#[test]
fn in_another_thread() {
    let mut phases = Phases::start(&["--trigger", "sleeps"]);
    phases.does(&["red 10", "thread 0", "red 20", "wake 0", "go 5"]);
    let (_, report, _shop) = phases.end();
    assert_seen(&report, &[("sleeps", 1), ("red", 25)], &[]);
}

/// Guards: a process that is started later waits likewise, and has all others go on.
#[test]
fn in_a_child() {
    let shop = Workshop::new();
    let program = shop.build("processes.c", Compiler::Gcc, &["-O1", "-pthread"]);
    let all = shop.record(&[], &program, &["fork"], 0);
    let Recorded { report, .. } = shop.record(&["--trigger", "child"], &program, &["fork"], 0);
    assert_eq!(report.calls.get("child"), all.report.calls.get("child"), "{report:?}");
    assert_eq!(report.health("lost") + report.health("mended"), 0);
}

/// Guards: who waits for a call that does not come may be told to begin; a signal does so as well.
#[test]
fn it_begins_when_it_is_asked_to() {
    for (trigger, is_signal) in [("green", false), ("green", true), ("signal", true)] {
        let mut phases = Phases::start(&["--trigger", trigger]);
        phases.does(&["red 10"]);
        if is_signal {
            phases.running.signal(libc::SIGUSR1);
        } else {
            phases.asks(&["resume"]);
        }
        wait_until("recording", || phases.asks(&["status"]).contains("state: recording\n"));
        phases.does(&["red 5", "green 2"]);
        let (_, report, _shop) = phases.end();
        assert_seen(&report, &[("red", 5), ("green", 2)], &[]);
    }
}

/// Guards: that it was in vain is said, and what fits nothing as well.
#[test]
fn it_never_begins() {
    let mut phases = Phases::start(&["--trigger", "green", "--trigger", "gren"]);
    phases.does(&["red 10"]);
    let (outcome, report, _shop) = phases.end();
    assert!(report.calls.is_empty(), "{report:?}");
    for said in ["green, gren was not called", "--trigger gren has fitted no function"] {
        assert!(outcome.stderr.contains(said), "{outcome:?}");
    }
}
