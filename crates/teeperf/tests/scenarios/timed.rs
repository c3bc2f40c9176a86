//! Calls of chosen functions are timed by the processor's counter beside the tick: each has its own length, whatever
//! comes in between, and all else is as it was.

use crate::support::*;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

const MS: f64 = 1e6;

/// What a report says of the lengths of a function's calls, and how many of them there are.
fn lengths(recording: &Path, name: &str) -> (Value, u64) {
    let report = run(teeperf().args(["report", "--json", "--lengths"]).arg(recording));
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let all = report["functions"].as_array().expect("functions");
    let function = all.iter().find(|function| function["name"] == name).expect(name);
    (function["lengths"].clone(), function["calls"].as_u64().expect("calls"))
}

fn ns(lengths: &Value, what: &str) -> f64 {
    lengths[what].as_f64().unwrap_or_else(|| panic!("{what} of {lengths}"))
}

/// As many calls have a length by the counter, none of which is shorter than they spin.
#[track_caller]
fn expect_timed(recording: &Path, name: &str, timed: u64, least_ns: f64) -> Value {
    let (lengths, _) = lengths(recording, name);
    assert_eq!(
        (&lengths["by"], lengths["timed"].as_u64()),
        (&"counter".into(), Some(timed)),
        "{name}"
    );
    // The counter's rate is measured, and the system's clock is slewed.
    assert!(ns(&lengths, "shortest") > least_ns * 0.98, "{name}: {lengths}");
    assert!(ns(&lengths, "longest") >= ns(&lengths, "mean"), "{name}: {lengths}");
    lengths
}

/// Guards: the bits of what is timed in hooks and runtime, the counter's words, their way through replay: recursion, calls
/// that jumps leave, signal handlers.
#[test]
fn calls_of_chosen_functions_have_their_own_lengths() {
    for compiler in Compiler::tried() {
        let shop = Workshop::new();
        let program = shop.build("timed.c", compiler, &["-O1", "-g"]);
        // A tick that knows nothing of so short calls.
        let words =
            ["--period", "20ms", "--timed", "spins", "--timed", "/^(rec|lea)/", "--timed", "is_*"];
        let recorded = shop.record(&words, &program, &[], 0);
        recorded.report.expect_whole();
        assert_calls(&recorded.outcome.told(), &recorded.report);
        let spins = expect_timed(&recorded.file, "spins", 200, 20e3);
        assert!(ns(&spins, "p50") < 60e3, "{spins}");
        let recurs = expect_timed(&recorded.file, "recurs", 100, 10e3);
        assert!(ns(&recurs, "longest") > 49e3, "{recurs}");
        assert!(ns(&recurs, "p50") >= 28e3, "the third of five levels: {recurs}");
        expect_timed(&recorded.file, "leaves", 150, 5e3);
        expect_timed(&recorded.file, "is_interrupted", 3, 50.0 * MS);
        for name in ["plain", "main", "handles"] {
            let (lengths, calls) = lengths(&recorded.file, name);
            assert_eq!(
                (&lengths["by"], lengths["timed"].as_u64()),
                (&"clock".into(), Some(calls)),
                "{name}"
            );
        }
        let report =
            |words: &[&str]| run(teeperf().arg("report").args(words).arg(&recorded.file)).stdout;
        let table = report(&["--lengths", "--sort", "calls"]);
        let row = table.lines().find(|line| line.ends_with("  spins")).expect(&table);
        assert!(row.contains("  200  counter  ") && !row.contains('<'), "{table}");
        let row = table.lines().find(|line| line.ends_with("  plain")).expect(&table);
        assert!(row.contains("  tick  ") && row.contains('<'), "{table}");
        let csv = report(&["--lengths", "--csv"]);
        assert!(csv.lines().any(|line| line.contains(",200,counter,spins,")), "{csv}");
        let histogram = report(&["--histogram", "spins"]);
        assert!(histogram.contains("200 calls, timed by the counter, "), "{histogram}");
        // What is timed is no filter.
        assert!(!report(&[]).contains("Not everything was recorded"), "{}", report(&[]));
    }
}

/// Guards: what is timed changes as filters do, and beside them. What a filter leaves out is not timed, and calls that were
/// open at a change have no length.
#[test]
fn while_the_program_runs() {
    let shop = Workshop::new();
    let program = shop.build("timed.c", Compiler::Gcc, &["-O1"]);
    let mut phases = Phases::of(shop, &program, &["--timed", "main"]);
    phases.does(&["spins 10"]);
    phases.asks(&["timed", "spins"]);
    phases.does(&["spins 20", "recurs 5"]);
    phases.asks(&["timed", "rec*@timed*"]);
    phases.does(&["spins 40", "recurs 10"]);
    phases.asks(&["filter", "--exclude", "recurs"]);
    let status = phases.asks(&["status"]);
    for rule in ["rule: exclude recurs\n", "rule: timed rec*@timed*\n"] {
        assert!(status.contains(rule), "{status}");
    }
    phases.does(&["recurs 3", "spins 2"]);
    phases.asks(&["filter", "--all"]);
    phases.does(&["recurs 1"]);
    phases.asks(&["timed", "--none"]);
    phases.does(&["spins 7", "recurs 1"]);
    let file = phases.file.clone();
    let (_, report, _shop) = phases.end_by("end 7", 7);
    for figure in ["lost", "mended", "open", "unopened"] {
        assert_eq!(report.health(figure), 0, "{figure}");
    }
    assert_eq!((report.calls["spins"], report.calls["recurs"]), (79, 51));
    expect_timed(&file, "spins", 20, 20e3);
    expect_timed(&file, "recurs", 33, 10e3);
    assert!(lengths(&file, "main").0.is_null());
}

/// Guards: what a pause leaves out is left out of lengths that the counter tells.
#[test]
fn a_pause_is_no_part_of_a_call() {
    let mut phases = Phases::start(&["--timed", "deep"]);
    let begin = Instant::now();
    phases.does(&["deep 1", "red 1"]);
    phases.asks(&["pause"]);
    phases.does(&["red 1"]);
    std::thread::sleep(Duration::from_millis(300));
    phases.asks(&["resume"]);
    phases.does(&["red 1"]);
    std::thread::sleep(Duration::from_millis(50));
    phases.does(&["up 0"]);
    let elapsed = begin.elapsed().as_nanos() as f64;
    let file = phases.file.clone();
    let (_, _, _shop) = phases.end();
    let deep = expect_timed(&file, "deep", 1, 50.0 * MS);
    assert!(ns(&deep, "longest") < elapsed - 290.0 * MS, "{deep} of {elapsed}");
}

/// Guards: the counter's words and its rate in what is made of recordings.
#[test]
fn in_parts_and_several_recordings() {
    let shop = Workshop::new();
    let program = shop.build("timed.c", Compiler::Gcc, &["-O1"]);
    let words = ["--timed", "spins"];
    let first = shop.path("first.teeperf");
    std::fs::rename(shop.record(&words, &program, &[], 0).file, &first).unwrap();
    let second = shop.record(&words, &program, &[], 0).file;
    let both = shop.path("both.teeperf");
    run(teeperf().arg("merge").args([&first, &second]).arg("-o").arg(&both)).expect_code(0);
    expect_timed(&both, "spins", 400, 20e3);
    let part = shop.path("part.teeperf");
    run(teeperf().arg("cut").arg(&first).args(["--until", "60ms", "-o"]).arg(&part)).expect_code(0);
    let (in_part, calls) = lengths(&part, "spins");
    assert_eq!((&in_part["by"], in_part["timed"].as_u64()), (&"counter".into(), Some(calls)));
    let folder = shop.path("kept");
    let mut command = teeperf();
    command.args(["record", "-q", "--timed", "spins", "--rotate", "64M", "-o"]).arg(&folder);
    command.arg("--").arg(&program).stdin(std::process::Stdio::null());
    run(&mut command).expect_code(0);
    expect_timed(&folder, "spins", 200, 20e3);
}

/// Guards: where nothing can be timed so, nobody is told that it is.
#[test]
fn where_it_cannot_be_that_is_said() {
    let refused = |words: &[&str], why: &str| {
        let outcome = run(teeperf().args(words));
        outcome.expect_code(1);
        assert!(outcome.stderr.contains(why), "{words:?}: {}", outcome.stderr);
    };
    for (words, why) in [
        (&["--probe", "tree"][..], "--probe tree sums calls"),
        (&["--clock", "cycle"], "--clock cycle and ordered time every call"),
        (&["--clock", "ordered"], "--clock cycle and ordered time every call"),
        (&["--optee"], "trusted applications do not ask"),
    ] {
        refused(&[&["record", "--timed", "f"], words, &["--", "true"]].concat(), why);
    }
    refused(&["record", "--timed", "/(/", "--", "true"], "\"/(/\" is no pattern");
    refused(
        &["record", "--timed", "file:a.c", "--", "true"],
        "files are chosen when a program is built",
    );
    for (options, why) in [
        (&["--clock", "cycle"][..], "its clock is the counter"),
        (&["--probe", "tree"], "calls are summed"),
    ] {
        let mut phases = Phases::start(options);
        phases.does(&["red 1"]);
        let pid = phases.running.pid().to_string();
        refused(&["ctl", &pid, "timed", "red"], why);
        phases.asks(&["timed", "--none"]);
        phases.end();
    }
    let mut phases = Phases::start(&[]);
    phases.does(&["red 1"]);
    // Its modules are known.
    phases.asks(&["snapshot"]);
    let pid = phases.running.pid().to_string();
    let outcome = run(teeperf().args(["ctl", &pid, "timed", "nobody"]));
    outcome.expect_code(0);
    assert!(outcome.stderr.contains("\"timed nobody\" fits no function"), "{}", outcome.stderr);
    phases.end();
}
