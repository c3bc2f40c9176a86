//! Calls and times of hooks in the format of perf: what is written has every path, with the figures of the recording.

use crate::support::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Weights of call paths, of an event.
fn weights(file: &Path, words: &[&str]) -> BTreeMap<String, u64> {
    let mut flame = teeperf();
    flame.args(["flame", "--folded", "-o", "-"]).args(words).arg(file);
    let outcome = run(&mut flame);
    outcome.expect_code(0);
    let mut all = BTreeMap::new();
    for line in outcome.stdout.lines() {
        let (path, weight) = line.rsplit_once(' ').unwrap();
        // Functions of one name in two modules have a line each.
        *all.entry(path.to_owned()).or_default() += weight.parse::<u64>().unwrap();
    }
    all
}

/// Whether two have the same paths, and weights to the nanosecond that rounding takes.
fn assert_alike(ours: &BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>) {
    let of = |all: &BTreeMap<String, u64>, path: &str| all.get(path).copied().unwrap_or(0);
    for path in ours.keys().chain(theirs.keys()) {
        let (our, their) = (of(ours, path), of(theirs, path));
        // Of each of two.
        assert!(our.abs_diff(their) <= 2, "{path}: {our} and {their}");
    }
}

fn export(recording: &Path, data: &Path, words: &[&str]) -> Outcome {
    let mut export = teeperf();
    export.args(["export", "--to", "perf", "-o"]).arg(data).args(words).arg(recording);
    run(&mut export)
}

/// Processes, and modules that come and go where others were.
fn plugins(shop: &Workshop) -> Recorded {
    let host = shop.build("plugin_host.c", Compiler::Gcc, &["-O2"]);
    let shared = ["-O2", "-shared", "-fPIC", "-Wl,--no-undefined"];
    let [red, blue] = ["-DNAME=red", "-DNAME=blue"].map(|name| {
        let flags: Vec<&str> = shared.iter().chain(&[name]).copied().collect();
        shop.build("plugin.c", Compiler::Gcc, &flags)
    });
    let arguments = ["500", red.to_str().unwrap(), blue.to_str().unwrap()];
    shop.record(&["--clock", "cycle"], &host, &arguments, 0)
}

/// Guards: paths, their times and their calls, of several modules; perf has the same, with names.
#[test]
fn paths_have_the_weight_that_they_had() {
    let shop = Workshop::new();
    let recorded = plugins(&shop);
    let data = shop.path("perf.data");
    let outcome = export(&recorded.file, &data, &[]);
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("perf report --no-children"), "{}", outcome.stdout);
    assert_eq!(outcome.stderr, "");
    let times = weights(&recorded.file, &[]);
    assert!(times.len() > 5);
    assert_alike(&weights(&data, &["--event", "self-time"]), &times);
    let mut calls = BTreeMap::new();
    for (path, count) in weights(&data, &["--event", "calls"]) {
        // The thread stands before its paths.
        *calls.entry(path.split_once(';').unwrap().1.to_owned()).or_default() += count;
    }
    assert_eq!(calls, recorded.report.paths());

    let mut script = Command::new("perf");
    script.args(["script", "-F", "comm,tid,period,event,ip,sym", "-i"]).arg(&data);
    let Ok(output) = script.output() else {
        eprintln!("skipped: perf is not installed");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let mut theirs: BTreeMap<String, u64> = BTreeMap::new();
    for sample in String::from_utf8(output.stdout).unwrap().split("\n\n") {
        let mut lines = sample.trim().lines();
        let Some(head) = lines.next().filter(|head| head.contains(" calls:")) else { continue };
        let period: u64 = head.split_whitespace().nth_back(1).unwrap().parse().unwrap();
        let mut names: Vec<&str> =
            lines.map(|line| line.trim().split_once(' ').unwrap().1).collect();
        names.reverse();
        *theirs.entry(names.join(";")).or_default() += period;
    }
    assert_eq!(theirs, calls);
}

/// Guards: the part that was asked for, and nothing else; files that are gone are told.
#[test]
fn a_part_of_the_paths() {
    let shop = Workshop::new();
    let recorded = plugins(&shop);
    let data = shop.path("perf.data");
    export(&recorded.file, &data, &["--focus", "red_inner"]).expect_code(0);
    let calls = weights(&data, &["--event", "calls"]);
    let has = |name: &str| calls.keys().any(|path| path.contains(name));
    assert!(has("red_inner") && !has("blue_"));
    assert!(export(&recorded.file, &data, &["--focus", "nobody"]).stderr.contains("nothing in"));
    assert!(export(&recorded.file, &data, &["--event", "cycles"]).stderr.contains("all events"));
    assert!(export(&recorded.file, &data, &["--module", "x"]).stderr.contains("for gmon files"));
    for file in std::fs::read_dir(shop.path("")).unwrap().map(|entry| entry.unwrap().path()) {
        if file.file_name().unwrap().to_string_lossy().starts_with("plugin-") {
            std::fs::remove_file(file).unwrap();
        }
    }
    let outcome = export(&recorded.file, &data, &[]);
    outcome.expect_code(0);
    assert!(outcome.stderr.contains("is not there"), "{}", outcome.stderr);
}

/// Guards: what perf or somebody else wrote where no name is given is kept, as perf keeps it.
#[test]
fn what_stands_at_perfs_name_is_kept() {
    let shop = Workshop::new();
    let recorded = plugins(&shop);
    let export = || {
        let mut command = teeperf();
        command.current_dir(shop.path("")).args(["export", "--to", "perf"]);
        run(command.arg(&recorded.file)).expect_code(0);
        std::fs::read(shop.path("perf.data")).unwrap()
    };
    let old = || std::fs::read(shop.path("perf.data.old")).ok();
    let first = export();
    assert_eq!(old(), None);
    let other = [&first[..], b"behind"].concat();
    std::fs::write(shop.path("perf.data"), &other).unwrap();
    assert!(export() == first && old() == Some(other.clone()));
    assert!(export() == first && old() == Some(first.clone()));
    // What the name leads to is written over.
    std::fs::rename(shop.path("perf.data"), shop.path("elsewhere.data")).unwrap();
    std::fs::write(shop.path("elsewhere.data"), &other).unwrap();
    std::os::unix::fs::symlink("elsewhere.data", shop.path("perf.data")).unwrap();
    assert!(export() == first && old() == Some(other));
}

/// Guards: what is told of a recording that has nothing, which is not that options do not fit.
#[test]
fn nothing_is_said_to_be_nothing() {
    let shop = Workshop::new();
    let options = ["--probe", "sample", "--paused"];
    let mut recording = shop.recording(&options, std::path::Path::new("/bin/true"), &[]);
    run(&mut recording.command).expect_code(0);
    let refused = export(&recording.file, &shop.path("perf.data"), &[]);
    assert!(!refused.success(), "{refused:?}");
    assert!(
        refused.stderr.contains("no samples and no calls in it: nothing to export"),
        "{refused:?}"
    );
    assert!(!refused.stderr.contains("--focus"), "{refused:?}");
}

/// Guards: beside samples, which are written unless calls are asked for.
#[test]
fn calls_beside_samples() {
    let shop = Workshop::new();
    let program = shop.build("samples.c", Compiler::Gcc, &["-O1", "-pthread"]);
    let mut recording =
        shop.recording(&["--sample", "--no-cpu-samples"], &program, &["shares", "200"]);
    run(&mut recording.command).expect_code(0);
    let data = shop.path("perf.data");
    export(&recording.file, &data, &["--event", "calls"]).expect_code(0);
    let times = weights(&recording.file, &["--event", "calls"]);
    assert!(!times.is_empty());
    assert_alike(&weights(&data, &["--event", "self-time"]), &times);
    let outcome = export(&recording.file, &data, &[]);
    outcome.expect_code(0);
    let mut report = teeperf();
    let told = run(report.args(["report", "--event", "self-time"]).arg(&data)).stderr;
    assert!(told.contains("has no \"self-time\""), "{told}");
    // Of samples alone there are no calls.
    let alone = shop.path("alone.data");
    std::fs::rename(&data, &alone).unwrap();
    let refused = export(&alone, &data, &["--event", "calls"]);
    assert!(
        !refused.success() && refused.stderr.contains("has no \"calls\""),
        "{}",
        refused.stderr
    );
}
