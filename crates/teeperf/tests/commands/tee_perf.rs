//! Logs of the original TEE-Perf, as people have them: programs built with gcc's hooks write them as it did, and every
//! command that reads recordings reads them. Calls have to be those that the programs counted themselves, and those
//! of our own recordings.

use crate::support::{Folder, prepared, run, teeperf};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

type Calls = BTreeMap<String, u64>;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// A folder with a program, `program`, that writes logs.
fn built(name: &str, flags: &[&str]) -> Folder {
    let folder = Folder::new();
    let mut library = prepared(Command::new("gcc"), &folder);
    library.args(["-O2", "-c"]).arg(source("tee_perf_log.c"));
    run(library.args(flags).args(["-o", "log.o"]));
    let mut program = prepared(Command::new("gcc"), &folder);
    program.args(["-g", "-O1", "-finstrument-functions"]).args(flags).arg(source(name));
    run(program.args(["log.o", "-pthread", "-lm", "-o", "program"]));
    folder
}

/// Runs it with a log of so many bytes, with entries of 24 bytes or 16. The calls that it counted.
fn log(folder: &Folder, words: &[&str], bytes: u64, has_threads: bool) -> Calls {
    let mut program = prepared(Command::new("./program"), folder);
    program.args(words).env("TEE_PERF_LOG", "log").env("TEE_PERF_SIZE", bytes.to_string());
    if has_threads {
        program.env("TEE_PERF_THREADS", "1");
    }
    told(&run(&mut program))
}

/// The lines `calls NAME N`.
fn told(text: &str) -> Calls {
    let lines = text.lines().filter_map(|line| line.strip_prefix("calls "));
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, n)| (name.into(), n.parse().unwrap()))
        .collect()
}

fn report(folder: &Folder, words: &[&str]) -> Value {
    let text = run(teeperf(folder).args(["report", "--json"]).args(words));
    serde_json::from_str(&text).unwrap()
}

fn calls(report: &Value) -> Calls {
    let functions = report["functions"].as_array().unwrap().iter();
    let counted =
        functions.map(|f| (f["name"].as_str().unwrap().into(), f["calls"].as_u64().unwrap()));
    // Others were not called, but sampled, or stand for time that no sample tells.
    counted.filter(|(_, calls)| *calls > 0).collect()
}

fn refused(folder: &Folder, words: &[&str]) -> String {
    let output = teeperf(folder).args(words).output().unwrap();
    assert!(!output.status.success(), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn counts_are_the_programs_own_and_those_of_our_recordings() {
    let folder = built("calls.c", &[]);
    let mut record = teeperf(&folder);
    run(record.args(["cc", "-g", "-O1"]).arg(source("calls.c")).args(["-o", "hooked", "-lm"]));
    run(teeperf(&folder).args(["record", "-q", "--", "./hooked"]));
    let recorded = calls(&report(&folder, &["hooked.teeperf"]));
    for has_threads in [false, true] {
        let counted = log(&folder, &[], 64 << 20, has_threads);
        assert!(counted.len() > 10 && counted["fibonacci"] > 100, "{counted:?}");
        let report = report(&folder, &["log", "--elf", "program"]);
        assert_eq!(report["health"]["lost"], 0);
        assert_eq!(report["health"]["mended"], 0);
        let found = calls(&report);
        for (name, n) in &counted {
            assert_eq!(found.get(name), Some(n), "{name}");
        }
        assert_eq!(found, recorded);
        let here = |f: &&Value| f["name"] == "fibonacci";
        let function = report["functions"].as_array().unwrap().iter().find(here).unwrap();
        assert!(function["file"].as_str().unwrap().ends_with("programs/calls.c"), "{function}");
        assert!(function["line"].as_u64().unwrap() > 1 && function["module"] == "program");
    }
}

#[test]
fn where_the_program_was_loaded_is_told_from_its_symbols() {
    for flags in [&["-no-pie", "-fno-pie"][..], &["-static"], &["-pie", "-fPIE"]] {
        let folder = built("tee_perf_calls.c", flags);
        let counted = log(&folder, &[], 1 << 20, false);
        let named = calls(&report(&folder, &["log", "--elf", "program"]));
        assert!(counted.iter().all(|(name, n)| named.get(name) == Some(n)), "{flags:?}");
        // Without symbols where it was loaded is not known, but of a program with a place of its own.
        run(prepared(Command::new("strip"), &folder).args(["program", "-o", "stripped"]));
        let text = report(&folder, &["log", "--elf", "stripped"]).to_string();
        let is_told = text.contains("has no symbol __profiler_map_info");
        assert_eq!(is_told, flags[0] == "-pie", "{flags:?}\n{text}");
        // The file of another program is noticed.
        let other = built("threads.c", flags);
        let path = other.path().join("program");
        let text = report(&folder, &["log", "--elf", path.to_str().unwrap()]).to_string();
        assert!(text.contains("the program that was run"), "{flags:?}\n{text}");
    }
}

#[test]
fn threads_are_told_apart_and_chosen() {
    let folder = built("tee_perf_calls.c", &[]);
    let counted = log(&folder, &["threads"], 1 << 20, true);
    let whole = report(&folder, &["log", "--elf", "program"]);
    assert_eq!(whole["health"]["lost"], 0);
    assert_eq!(whole["health"]["mended"], 0);
    let found = calls(&whole);
    assert!(counted.iter().all(|(name, n)| found.get(name) == Some(n)), "{counted:?} {found:?}");
    let threads = whole["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 9);
    let one = threads.iter().find(|thread| thread["events"] != 2).unwrap();
    let name = one["name"].as_str().unwrap();
    assert!(name.starts_with("0x7f"), "{name}");
    let number = one["id"].to_string();
    for wanted in [name, &number] {
        let part = report(&folder, &["log", "--elf", "program", "--thread", wanted]);
        let expected = [("fibonacci", 177), ("leaf", 100), ("works", 1)];
        assert_eq!(calls(&part), expected.map(|(name, n)| (name.to_owned(), n)).into());
    }
    // In the form without threads all of it is one stack.
    log(&folder, &["threads"], 1 << 20, false);
    let whole = report(&folder, &["log", "--elf", "program"]);
    assert_eq!(whole["threads"].as_array().unwrap().len(), 1);
    assert_eq!(calls(&whole), found);
}

#[test]
fn every_command_reads_a_log_and_none_has_to_be_told_what_it_is() {
    let folder = built("tee_perf_calls.c", &[]);
    let counted = log(&folder, &[], 1 << 20, false);
    let elf = ["log", "--elf", "program"];
    let text = run(teeperf(&folder).arg("report").args(elf));
    assert!(text.contains(" counts in themselves") && !text.contains(" ms "), "{text}");
    assert!(text.contains("software counter of TEE-Perf"), "{text}");
    let text = run(teeperf(&folder).arg("report").args(elf).args(["--counter-hz", "1GHz"]));
    assert!(!text.contains("counts") && text.contains("a second"), "{text}");
    let tree = run(teeperf(&folder).arg("report").args(elf).args(["--tree", "--focus", "fib*"]));
    assert!(tree.contains("fibonacci") && !tree.contains("leaf"), "{tree}");

    let folded = run(teeperf(&folder).args(["flame", "--folded", "-o", "-"]).args(elf));
    assert!(
        folded.lines().any(|line| line.contains(";main;works;fibonacci;fibonacci ")),
        "{folded}"
    );
    run(teeperf(&folder).args(["flame", "-o", "flame.html"]).args(elf));
    let page = std::fs::read_to_string(folder.path().join("flame.html")).unwrap();
    assert!(page.contains("\"unit\":\"counts\""));
    let svg = run(teeperf(&folder).args(["flame", "--svg", "-o", "-"]).args(elf));
    assert!(svg.contains(" counts in recorded functions"));

    let dump = run(teeperf(&folder).arg("dump").args(elf));
    let events = |kind: &'static str| {
        dump.lines().filter(move |line| line.split_whitespace().nth(1) == Some(kind))
    };
    let of = |name: &str| events("call").filter(|line| line.ends_with(&format!(" {name}"))).count();
    assert_eq!(of("fibonacci") as u64, counted["fibonacci"]);
    assert_eq!(events("call").count(), events("return").count());
    assert!(dump.lines().any(|line| line.starts_with("56 ") && line.contains(" chunk ")), "{dump}");

    assert!(refused(&folder, &["export", "--to", "gmon", "log"]).contains("name it with --elf"));
    assert!(refused(&folder, &["report", "log", "--bias", "0x1000"]).contains("with --elf"));
    let words = ["export", "--to", "gmon", "log", "--elf", "program"];
    assert!(refused(&folder, &words).contains("--counter-hz"));
    run(teeperf(&folder).args(words).args(["--counter-hz", "400MHz", "-o", "gmon.out"]));
    let exported = calls(&report(&folder, &["gmon.out", "--elf", "program"]));
    assert!(counted.iter().all(|(name, n)| exported.get(name) == Some(n)), "{exported:?}");
    assert!(
        refused(&folder, &["report", "gmon.out", "--counter-hz", "1MHz"]).contains("gmon file")
    );

    let piped = std::fs::File::open(folder.path().join("log")).unwrap();
    let text = run(teeperf(&folder).args(["report", "-", "--elf", "program"]).stdin(piped));
    assert!(text.contains("fibonacci"), "{text}");
}

#[test]
fn a_log_that_was_full_or_switched_off_says_so() {
    let folder = built("tee_perf_calls.c", &[]);
    let counted = log(&folder, &["pauses"], 1 << 20, true);
    let whole = report(&folder, &["log", "--elf", "program"]);
    assert_eq!(calls(&whole), counted);
    assert_eq!(whole["health"]["gaps"][0]["reason"], "paused");
    assert_eq!(whole["health"]["gaps"][0]["times"], 10);
    let own = |name: &str| {
        let functions = whole["functions"].as_array().unwrap();
        functions.iter().find(|f| f["name"] == name).unwrap()["self"].as_f64().unwrap()
    };
    let paused = whole["health"]["gaps"][0]["time"].as_f64().unwrap();
    assert!(own("pauses") < paused / 2.0, "{} of {paused}", own("pauses"));

    // Of 40 entries there is room for 20.
    let counted = log(&folder, &["pauses"], 56 + 24 * 20, true);
    let cut = report(&folder, &["log", "--elf", "program"]);
    let events = whole["health"]["events"].as_u64().unwrap() + 20;
    assert_eq!(counted["pauses"], 10);
    assert_eq!(cut["health"]["lost"], events - 20);
    assert!(cut["health"]["findings"].to_string().contains("the log was full"), "{cut}");
}

#[test]
fn options_that_are_for_others_are_refused() {
    let folder = Folder::new();
    folder.write("empty.teeperf", "TPRF");
    for option in [["--bias", "0x1000"], ["--counter-hz", "1MHz"]] {
        for command in ["report", "flame", "dump"] {
            let said = refused(&folder, &[&[command, "empty.teeperf"], &option[..]].concat());
            assert!(said.contains("--bias and --counter-hz are for these"), "{said}");
        }
    }
}
