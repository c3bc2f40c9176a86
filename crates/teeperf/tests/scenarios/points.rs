//! What programs say of themselves by teeperf.h: scopes, which are calls, and marks, counters and notes on the time line.

use crate::support::*;
use serde_json::Value;

fn points(recorded: &Recorded) -> Vec<Value> {
    let report = run(teeperf().args(["report", "--json"]).arg(&recorded.file));
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    report["points"].as_array().cloned().unwrap_or_default()
}

/// Guards: sites and their notes, with each compiler, in files of each kind; the words of points and of scopes' calls.
#[test]
fn scopes_marks_and_counters() {
    for compiler in Compiler::tried() {
        for (flags, clock) in [
            (&["-O0"][..], "tick"),
            (&["-O2", "-g"], "cycle"),
            (&["-O2", "-static", "-s"], "ordered"),
            (&["-O2", "-flto", "-Wl,--gc-sections", "-ffunction-sections"], "tick"),
        ] {
            if !is_hooked(compiler, flags) {
                continue;
            }
            let shop = Workshop::new();
            let program = shop.build("points.cc", compiler, flags);
            let recorded = shop.record(&["--clock", clock], &program, &[], 0);
            let how = format!("{compiler:?} {flags:?}");
            let calls = |name: &str| recorded.report.calls.get(name).copied().unwrap_or(0);
            let scopes = ["load: all of it", "load a part", "left by an exception", "behind"];
            assert_eq!(scopes.map(calls), [1, 5, 1, 1], "{how}: {:?}", recorded.report.calls);
            if !flags.contains(&"-s") {
                let paths = recorded.report.paths();
                let path = "main;loads;load: all of it;load a part;work";
                assert_eq!(paths.get(path), Some(&5), "{how}: {paths:?}");
                assert_eq!(paths.get("main;behind;work"), Some(&1), "{how}: {paths:?}");
            }
            assert_eq!(recorded.report.health("open"), 0, "{how}");

            let points = points(&recorded);
            let said: Vec<_> = points
                .iter()
                .map(|point| {
                    let text = |name: &str| point[name].as_str().unwrap_or_default();
                    format!("{} {} {}", text("what"), text("name"), point["value"])
                })
                .collect();
            let expected = [
                "mark begin null",
                "counter loaded -2",
                "counter loaded -1",
                "counter loaded 0",
                "counter loaded 1",
                "counter loaded 2",
                "counter share 0.25",
                "mark caught null",
                "note by hand null",
            ];
            assert_eq!(said, expected, "{how}");
            let times: Vec<f64> =
                points.iter().map(|point| point["at"].as_f64().unwrap()).collect();
            assert!(times.is_sorted() && times[0] > 0.0, "{how}: {times:?}");
            let whole = run(teeperf().args(["info", "--json"]).arg(&recorded.file)).stdout;
            let whole: Value = serde_json::from_str(&whole).expect("JSON");
            let duration = whole["duration"].as_f64().unwrap_or(f64::MAX);
            assert!(times.iter().all(|&time| time <= duration), "{how}: {times:?} of {whole}");
        }
    }
}

/// Guards: the time line and the table by name, for people and as CSV; a window has its own.
#[test]
fn the_time_line_is_shown() {
    let shop = Workshop::new();
    let program = shop.build("points.cc", Compiler::Gcc, &["-O1"]);
    let recorded = shop.record(&[], &program, &[], 0);
    let report =
        |words: &[&str]| run(teeperf().arg("report").args(words).arg(&recorded.file)).stdout;
    let usual = report(&[]);
    let row = usual.lines().find(|line| line.ends_with("  loaded")).expect(&usual);
    let cells: Vec<_> = row.split_whitespace().collect();
    assert_eq!((cells[0], cells[cells.len() - 2]), ("5", "2"), "{usual}");
    let line = report(&["--time-line"]);
    assert!(line.contains("Time line: 9 of 9 points"), "{line}");
    let csv = report(&["--time-line", "--csv"]);
    assert_eq!(csv.lines().count(), 10, "{csv}");
    assert!(csv.lines().any(|line| line.ends_with("counter,0.25,share")), "{csv}");
    assert!(report(&["--time-line", "--until", "0.1us"]).contains("0 of 0"));
}

/// Guards: without the recorder, and linked without teeperf, what the header has does nothing.
#[test]
fn without_teeperf_nothing_is_done() {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        let hooked = shop.build("points.cc", compiler, &["-O2"]);
        let header = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../teeperf-rt/include");
        let plain = shop.build_unhooked("points.cc", compiler, &["-O2", header]);
        for program in [hooked, plain] {
            run(&mut std::process::Command::new(program)).expect_code(0);
        }
    }
}

/// Guards: kinds of events in maps and runtime: of marks alone no call of a function is there, of calls alone no mark.
#[test]
fn kinds_of_events_are_recorded_alone() {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        let program = shop.build("points.cc", compiler, &["-O1"]);
        for clock in ["tick", "cycle"] {
            let marks = shop.record(&["--clock", clock, "--events", "marks"], &program, &[], 0);
            let calls: Vec<_> =
                marks.report.calls.iter().map(|(name, &calls)| (name.as_str(), calls)).collect();
            let scopes = [
                ("behind", 1),
                ("left by an exception", 1),
                ("load a part", 5),
                ("load: all of it", 1),
            ];
            assert_eq!(calls, scopes, "{compiler:?} {clock}");
            assert_eq!(points(&marks).len(), 9, "{compiler:?} {clock}");
            for figure in ["lost", "open", "unopened"] {
                assert_eq!(marks.report.health(figure), 0, "{figure}, {compiler:?} {clock}");
            }
            let line = run(teeperf().args(["report", "--time-line"]).arg(&marks.file));
            line.expect_code(0);
            assert!(line.stdout.contains("Time line: 9 of 9 points"), "{}", line.stdout);
            let report = run(teeperf().arg("report").arg(&marks.file)).stdout;
            assert!(report.contains("Not everything was recorded: events marks"), "{report}");

            let calls = shop.record(&["--clock", clock, "--events", "calls"], &program, &[], 0);
            assert_calls(&calls.outcome.told(), &calls.report);
            assert!(points(&calls).is_empty());
        }
        let both = shop.record(&["--events", "calls,marks"], &program, &[], 0);
        assert_eq!((both.report.calls["work"], points(&both).len()), (7, 9));
        // A filter by name holds for scopes as well.
        let few = shop.record(&["--events", "marks", "--exclude", "load*"], &program, &[], 0);
        assert_eq!(few.report.calls.keys().collect::<Vec<_>>(), ["behind", "left by an exception"]);
    }
}

/// Guards: the same from another terminal, beside a filter, which stays.
#[test]
fn kinds_of_events_change_while_the_program_runs() {
    let mut phases = Phases::start(&["--exclude", "blue"]);
    phases.does(&["red 10"]);
    phases.asks(&["events", "marks"]);
    assert!(phases.asks(&["status"]).contains("rule: events marks,crossings\n"));
    phases.does(&["red 100", "green 100", "blue 100"]);
    phases.asks(&["events", "all"]);
    phases.does(&["red 1000", "blue 1000"]);
    let (_, report, _shop) = phases.end();
    assert_eq!(
        (report.calls.get("red"), report.calls.get("green"), report.calls.get("blue")),
        (Some(&1010), None, None)
    );
    for figure in ["lost", "mended", "unopened"] {
        assert_eq!(report.health(figure), 0, "{figure}");
    }
}

/// Guards: errors that say which kinds there are, and where they are not.
#[test]
fn what_is_no_kind_of_events_is_said() {
    for (words, why) in [
        (&["record", "--events", "colours", "--", "true"][..], "calls, marks, crossings, or all"),
        (&["record", "--events", "crossings", "--", "true"], "with --optee"),
        (
            &["record", "--events", "marks", "--probe", "tree", "--", "true"],
            "--probe tree sums calls",
        ),
        (&["record", "--optee", "--events", "marks", "--", "true"], "--events crossings"),
        (&["ctl", "1", "events", "crossings"], "record --optee --events crossings"),
    ] {
        let outcome = run(teeperf().args(words));
        assert!(
            !outcome.success() && outcome.stderr.contains(why),
            "{words:?}: {}",
            outcome.stderr
        );
    }
}
