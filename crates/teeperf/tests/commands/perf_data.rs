//! Files of perf as people have them: named, through a pipe, and written again.

use crate::support::{Folder, run, teeperf};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../teeperf-interop/tests/data/perf").join(name)
}

/// How many lines of a kind a dump has.
fn count(dump: &str, kind: &str) -> usize {
    dump.lines().filter(|line| line.split_whitespace().nth(1) == Some(kind)).count()
}

fn refused(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn dump_shows_what_perf_recorded() {
    let folder = Folder::new();
    let dump = run(teeperf(&folder).arg("dump").arg(file("events.data")));
    for (kind, wanted) in [("start", 1), ("sampled", 3), ("end", 1)] {
        assert_eq!(count(&dump, kind), wanted, "{kind}: {dump}");
    }
    assert!(count(&dump, "sample") > 10 && count(&dump, "map") > 3 && count(&dump, "task") > 3);
    assert!(dump.contains("name=\"sched:sched_switch\"") && dump.contains("path=\"/demo/calls\""));
    let packets = run(teeperf(&folder).args(["dump", "--packets"]).arg(file("events.data")));
    assert_eq!((count(&packets, "sample"), count(&packets, "map")), (0, count(&dump, "map")));
}

#[test]
fn a_pipe_will_do() {
    let folder = Folder::new();
    for name in ["fp.data", "pipe.data"] {
        let whole = run(teeperf(&folder).arg("dump").arg(file(name)));
        let mut cat = std::process::Command::new("cat");
        let mut cat = cat.arg(file(name)).stdout(Stdio::piped()).spawn().unwrap();
        let mut dump = teeperf(&folder);
        dump.args(["dump", "/dev/stdin"]).stdin(cat.stdout.take().unwrap());
        let output = dump.output().unwrap();
        assert!(output.status.success() && cat.wait().unwrap().success());
        let piped = String::from_utf8(output.stdout).unwrap();
        assert_eq!(count(&piped, "sample"), count(&whole, "sample"), "{name}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.contains("name the file to have them"), name == "fp.data", "{said}");
    }
}

#[test]
fn what_was_exported_is_the_same() {
    let folder = Folder::new();
    let told = run(teeperf(&folder).args(["export", "--to", "perf"]).arg(file("dwarf.data")));
    assert!(
        told.contains("wrote perf.data, ") && told.contains("perf report -i perf.data"),
        "{told}"
    );
    let samples = |name: &Path| {
        let dump = run(teeperf(&folder).arg("dump").arg(name));
        let samples = dump.lines().filter(|line| line.contains(" sample "));
        // All but where they stand.
        samples.map(|line| line[line.find("sample").unwrap()..].to_owned()).collect::<Vec<_>>()
    };
    let written = samples(Path::new("perf.data"));
    assert_eq!(written, samples(&file("dwarf.data")));
    assert!(!written.is_empty());

    let export = |words: &[&str]| {
        let mut export = teeperf(&folder);
        export.args(["export", "--to", "perf"]).args(words).output().unwrap()
    };
    std::fs::write(folder.path().join("text"), "text").unwrap();
    assert!(refused(&export(&["perf.data", "-o", "text"])).contains("is no file of perf"));
    assert!(refused(&export(&["perf.data", "-o", "-"])).contains("name a file with -o"));
    assert!(refused(&export(&["perf.data", "--thread", "x"])).contains("as they are"));
    refused(&export(&["perf.data", "-o", "perf.data"]));
    assert_eq!(samples(Path::new("perf.data")), written);
}

/// Guards: windows of a file add up; what comes through a pipe is unwound as well.
#[test]
fn windows_of_a_file_add_up() {
    let folder = Folder::new();
    let samples = |words: &[&str]| -> u64 {
        let mut report = teeperf(&folder);
        report.args(["report", "--json"]).arg(file("dwarf.data")).args(words);
        let json: serde_json::Value = serde_json::from_str(&run(&mut report)).unwrap();
        json["health"]["events"].as_u64().unwrap()
    };
    let (all, first, second) =
        (samples(&[]), samples(&["--until", "40%"]), samples(&["--since", "40%"]));
    assert!(first > 0 && second > 0 && first + second == all, "{first} + {second}, of {all}");
    assert_eq!(samples(&["--since", "0s"]), all);
    let mut cat = std::process::Command::new("cat");
    let mut cat = cat.arg(file("dwarf.data")).stdout(Stdio::piped()).spawn().unwrap();
    let mut report = teeperf(&folder);
    report.args(["report", "--json", "/dev/stdin"]).stdin(cat.stdout.take().unwrap());
    let json: serde_json::Value = serde_json::from_str(&run(&mut report)).unwrap();
    cat.wait().unwrap();
    assert_eq!(json["health"]["events"].as_u64(), Some(all));
}

/// A file without samples has them missing for perf's reasons, and not the recorder's.
#[test]
fn a_file_without_samples_says_why() {
    let folder = Folder::new();
    // Of the data there are two records, and perf was killed then: the head says nothing of them.
    let killed = std::fs::read(file("killed.data")).unwrap();
    let begin = u64::from_le_bytes(killed[40..48].try_into().unwrap()) as usize;
    let mut end = begin;
    for _ in 0..2 {
        end += usize::from(u16::from_le_bytes([killed[end + 6], killed[end + 7]]));
    }
    std::fs::write(folder.path().join("killed.data"), &killed[..end]).unwrap();
    let report =
        run(teeperf(&folder).args(["report", "killed.data"])).replace("\n           ", " ");
    for part in
        ["no sample and no call in this file. perf keeps them", "perf did not close this file"]
    {
        assert!(report.contains(part), "{report}");
    }
    assert!(!report.contains("hardly any time"), "{report}");
    // perf's pipe, cut before it names an event.
    let pipe = std::fs::read(file("pipe.data")).unwrap();
    std::fs::write(folder.path().join("pipe.data"), &pipe[..20]).unwrap();
    let report = run(teeperf(&folder).args(["report", "pipe.data"]));
    assert!(report.contains("no sample and no call") && !report.contains("teeperf cc"), "{report}");
    assert!(report.contains("the file ends at 20, within a record"), "{report}");
}

#[test]
fn what_is_for_other_files_is_refused() {
    let folder = Folder::new();
    let refuse = |words: &[&str]| {
        let mut dump = teeperf(&folder);
        refused(&dump.arg("dump").arg(file("fp.data")).args(words).output().unwrap())
    };
    assert!(refuse(&["--counter-hz", "1GHz"]).contains("is a file of perf"));
    let refuse = |words: &[&str]| {
        let mut command = teeperf(&folder);
        let name = file("fp.data");
        let words =
            words.iter().map(|&word| if word == "FILE" { name.as_os_str() } else { word.as_ref() });
        refused(&command.args(words).output().unwrap())
    };
    for words in [
        &["cut", "FILE", "--since", "1s", "-o", "x"][..],
        &["merge", "FILE", "-o", "x"],
        &["info", "FILE"],
        &["repair", "FILE", "-o", "x"],
    ] {
        let said = refuse(words);
        assert!(
            said.contains("is a file of perf") && said.contains("next: `teeperf report"),
            "{said}"
        );
    }
    // Of calls there are none.
    for words in [&["report", "FILE", "--lengths"][..], &["report", "FILE", "--histogram", "x"]] {
        assert!(refuse(words).contains("not how long a call took"), "{words:?}");
    }
}

/// Guards: of an event that is no time the run still took time, and so did its threads.
#[test]
fn durations_are_times_whatever_is_counted() {
    let folder = Folder::new();
    let about = |words: &[&str]| {
        let words = [&["report", "--event", "page-faults"], words].concat();
        run(teeperf(&folder).args(words).arg(file("events.data")))
    };
    let text = about(&[]);
    let duration = text.lines().find(|line| line.starts_with("Duration")).unwrap();
    assert!(duration.ends_with("s") && !duration.contains("count"), "{duration}");
    let threads = text.split("\nThreads").nth(1).unwrap();
    assert!(threads.lines().nth(3).unwrap().contains("ms "), "{threads}");
    let json: serde_json::Value = serde_json::from_str(&about(&["--json"])).unwrap();
    assert_eq!(json["units"]["time"], "counts");
    assert_eq!(json["units"]["duration"], "ns");
}

fn json(folder: &Folder, words: &[&std::ffi::OsStr]) -> serde_json::Value {
    serde_json::from_str(&run(teeperf(folder).args(["report", "--json"]).args(words))).unwrap()
}

/// Samples by event.
fn by_event(report: &serde_json::Value) -> Vec<(String, u64)> {
    let beside = report["beside"].as_array().cloned().unwrap_or_default();
    let all = std::iter::once(report).chain(&beside);
    let of = |report: &serde_json::Value| {
        let event = report["info"]["event"].as_str().unwrap().to_owned();
        (event, report["health"]["events"].as_u64().unwrap())
    };
    all.map(of).collect()
}

/// Guards: no event is missing without a word.
#[test]
fn all_events_are_shown_or_named() {
    let folder = Folder::new();
    let events = file("events.data");
    let all = by_event(&json(&folder, &[events.as_os_str()]));
    let names: Vec<&str> = all.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["cpu-clock", "page-faults", "sched:sched_switch"]);
    let dump = run(teeperf(&folder).arg("dump").arg(&events));
    assert_eq!(all.iter().map(|(_, count)| count).sum::<u64>(), count(&dump, "sample") as u64);
    for words in
        [&["report", "--csv"][..], &["flame", "--folded", "-o", "-"], &["report", "--lines"]]
    {
        let output = teeperf(&folder).args(words).arg(&events).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let wanted = "shown is cpu-clock; left out: page-faults, sched:sched_switch";
        assert!(output.status.success() && said.contains(wanted), "{words:?}: {said}");
        let one =
            teeperf(&folder).args(words).args(["--event", "page-faults"]).arg(&events).output();
        let said = String::from_utf8(one.unwrap().stderr).unwrap();
        assert!(!said.contains("left out"), "{words:?}: {said}");
    }
}

/// Guards: a page of one event says which others the file has.
#[test]
fn a_page_names_events_that_are_left_out() {
    let folder = Folder::new();
    run(teeperf(&folder).args(["flame", "-o", "all.html"]).arg(file("events.data")));
    let page = std::fs::read_to_string(folder.path().join("all.html")).unwrap();
    assert!(page.contains("left out: "), "nothing of other events");
    run(teeperf(&folder).args(["flame", "-o", "one.html"]).arg(file("fp.data")));
    let page = std::fs::read_to_string(folder.path().join("one.html")).unwrap();
    assert!(!page.contains("left out: "), "fp.data has one event");
}

/// Guards: several files are their sum.
#[test]
fn several_files_are_summed() {
    let folder = Folder::new();
    let (first, second) = (file("events.data"), file("fp.data"));
    let one = |path: &Path| by_event(&json(&folder, &[path.as_os_str()]));
    let mut wanted = one(&first);
    wanted[0].1 += one(&second)[0].1;
    let sum = json(&folder, &[first.as_os_str(), second.as_os_str()]);
    assert_eq!(by_event(&sum), wanted);
    let threads = |report: &serde_json::Value| report["threads"].as_array().unwrap().len();
    let alone = |path: &Path| threads(&json(&folder, &[path.as_os_str()]));
    assert_eq!(threads(&sum), alone(&first) + alone(&second));
    let report = run(teeperf(&folder).arg("report").args([&first, &second]));
    assert!(report.contains("Samples of page-faults"), "{report}");
    let refused =
        refused(&teeperf(&folder).arg("report").arg(&first).arg("missing").output().unwrap());
    assert!(refused.contains("missing: No such file"), "{refused}");
}

/// Guards: a folder that perf made is read, with the kernel's symbols that it kept there.
#[test]
fn folders_of_perf_are_read() {
    let folder = Folder::new();
    let made = folder.path().join("made");
    std::fs::create_dir_all(made.join("kcore_dir")).unwrap();
    std::fs::copy(file("fp.data"), made.join("data")).unwrap();
    let names = |report: &serde_json::Value| -> Vec<String> {
        let functions = report["functions"].as_array().unwrap();
        functions.iter().map(|function| function["name"].as_str().unwrap().to_owned()).collect()
    };
    let of_kernel = |name: &String| name == "[kernel]";
    let told = |path: &Path| names(&json(&folder, &[path.as_os_str()]));
    // It is of another machine, and nothing says what is in its kernel.
    let (alone, plain) = (told(&made), told(&file("fp.data")));
    assert_eq!(alone, plain);
    let has_kernel = plain.iter().any(of_kernel);
    std::fs::write(made.join("kcore_dir/kallsyms"), "ffffffff81000000 T kept_there\n").unwrap();
    let kept = told(&made);
    assert!(!kept.iter().any(of_kernel), "{kept:?}");
    assert_eq!(kept.iter().any(|name| name == "kept_there"), has_kernel, "{kept:?}");
    // Files beside it are of threads, and have records alone.
    let part = std::fs::read(file("fp.data")).unwrap();
    std::fs::write(made.join("data.0"), &part[..3]).unwrap();
    let output = teeperf(&folder).args(["report", "made"]).output().unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.contains("data.0: the file ends at 3"), "{report}");
}
