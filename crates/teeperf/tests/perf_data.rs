//! Files of perf as people have them: named, through a pipe, and written again.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use support::{Folder, run, teeperf};

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
    std::fs::create_dir(folder.path().join("threads")).unwrap();
    std::fs::copy(file("fp.data"), folder.path().join("threads/data")).unwrap();
    let output = teeperf(&folder).args(["dump", "threads"]).output().unwrap();
    assert!(refused(&output).contains("of perf record --threads"));
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

/// Guards: a file that perf keeps in a folder with the kernel (`--kcore`) is read; one of `--threads` is refused with the reason.
#[test]
fn folders_of_perf() {
    let folder = Folder::new();
    let place = folder.path().join("kcore");
    std::fs::create_dir_all(place.join("kcore_dir")).unwrap();
    std::fs::copy(file("fp.data"), place.join("data")).unwrap();
    let events = |path: &Path| {
        let json = run(teeperf(&folder).args(["report", "--json"]).arg(path));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        json["health"]["events"].as_u64().unwrap()
    };
    assert_eq!(events(&place), events(&file("fp.data")));
    std::fs::remove_dir(place.join("kcore_dir")).unwrap();
    let said = refused(&teeperf(&folder).arg("report").arg(&place).output().unwrap());
    assert!(said.contains("--threads"), "{said}");
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
