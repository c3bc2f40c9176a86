//! Recordings in practice, as people keep them: cut, looked into, repaired, merged, packed, sent.

use crate::support::{Folder, prepared, run, teeperf};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};

/// Two threads that work, one that sleeps, and a child; some hundred milliseconds.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void rest(void) { struct timespec a = {0, 20000000}; nanosleep(&a, 0); }
static void *work(void *n) { for (int i = 0; i < 6; i++) { fib(*(int *)n); rest(); } return 0; }
static void *sleeper(void *n) { for (int i = 0; i < 7; i++) rest(); return n; }
int main(void) {
    pthread_t threads[3];
    int n = 12;
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, &n);
    pthread_create(&threads[2], 0, sleeper, &n);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    pid_t child = fork();
    if (child == 0) { fib(9); _exit(0); }
    waitpid(child, 0, 0);
    return 0;
}
"#;

/// A folder with the program, and a recording of it for each of these.
fn recorded(recordings: &[(&str, &str)]) -> Folder {
    let folder = Folder::new();
    folder.write("program.c", PROGRAM);
    run(teeperf(&folder).args(["cc", "-O1", "-g", "-pthread", "program.c", "-o", "program"]));
    for (name, clock) in recordings {
        // Times of the clock add up to the nanosecond.
        let how =
            ["record", "-q", "--no-cpu-samples", "--clock", clock, "-o", name, "--", "./program"];
        run(teeperf(&folder).args(how));
    }
    folder
}

fn report(folder: &Folder, recording: &str) -> Value {
    let words = ["report", "--json", recording];
    serde_json::from_str(&run(teeperf(folder).args(words))).unwrap()
}

/// Calls and self time by function.
fn functions(report: &Value) -> BTreeMap<String, (u64, f64)> {
    let functions = report["functions"].as_array().unwrap().iter();
    let figures = |f: &Value| (f["calls"].as_u64().unwrap(), f["self"].as_f64().unwrap());
    functions.map(|f| (f["name"].as_str().unwrap().to_owned(), figures(f))).collect()
}

#[test]
fn parts_of_a_recording_add_up_to_it() {
    let folder = recorded(&[("tick.teeperf", "tick"), ("cycle.teeperf", "cycle")]);
    for whole in ["tick.teeperf", "cycle.teeperf"] {
        let expected = report(&folder, whole);
        let mut sums: BTreeMap<String, (u64, f64)> = BTreeMap::new();
        for (since, until) in [("0", "20%"), ("20%", "45%"), ("45%", "70%"), ("70%", "100%")] {
            let mut words = vec!["cut", whole, "--since", since, "-o", "part.teeperf"];
            // The last word of all stands at the very end.
            if until != "100%" {
                words.extend(["--until", until]);
            }
            run(teeperf(&folder).args(&words));
            let part = report(&folder, "part.teeperf");
            // The window of the whole is read as what was cut out of it.
            let window: Vec<&str> = words[2..]
                .iter()
                .copied()
                .filter(|w| !["-o", "part.teeperf"].contains(w))
                .collect();
            let of = |form: &[&str], words: &[&str]| run(teeperf(&folder).args(form).args(words));
            let folded = ["flame", "--folded", "-o", "-"];
            assert_eq!(
                of(&folded, &[&[whole], &window[..]].concat()),
                of(&folded, &["part.teeperf"])
            );
            let read = |form: &str, words: &[&str]| -> Value {
                let text = of(&["report", "--json", form], words);
                let mut report: Value = serde_json::from_str(&text).unwrap();
                // What was asked for stands in one alone.
                report.as_object_mut().unwrap().remove("selection");
                report
            };
            for form in ["--tree", "--lengths"] {
                let here = read(form, &[&[whole], &window[..]].concat());
                assert!(here == read(form, &["part.teeperf"]), "{window:?} of {whole}: {here}");
            }
            assert_eq!(
                (&part["health"]["unopened"], &part["health"]["mended"]),
                (&0.into(), &0.into())
            );
            for (name, (calls, time)) in functions(&part) {
                let sum = sums.entry(name).or_default();
                *sum = (sum.0 + calls, sum.1 + time);
            }
        }
        for (name, (calls, time)) in functions(&expected) {
            let sum = sums.remove(&name).unwrap_or_default();
            assert_eq!(sum.0, calls, "{name} in {whole}");
            assert!(
                (sum.1 - time).abs() <= 1.0 + time * 1e-9,
                "{name} in {whole}: {} {time}",
                sum.1
            );
        }
        assert!(sums.values().all(|figures| *figures == (0, 0.0)), "{sums:?}");
    }
    let refused = |words: &[&str], why: &str| {
        let output = teeperf(&folder).args(words).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && told.contains(why), "{told}");
    };
    let words = ["report", "cycle.teeperf", "--since", "0", "--path", "^work;(.*;)?fib$"];
    let text = run(teeperf(&folder).args(words));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let told =
        ["from 0ns, paths with", "Shares below are of these", "Functions by self time: 2 of 2"];
    assert!(told.iter().all(|told| text.contains(told)), "{text}");
    refused(&["report", "tick.teeperf", "--path", "a(b"], "unclosed group");
    refused(
        &["cut", "tick.teeperf", "--since", "2s", "--until", "1s", "-o", "x"],
        "ends before it begins",
    );
    refused(
        &["report", "tick.teeperf", "--since", "2s", "--until", "1s"],
        "tick.teeperf: the window ends before",
    );
    refused(&["cut", "tick.teeperf", "-o", "tick.teeperf"], "tick.teeperf is read");
    refused(&["cut", "tick.teeperf", "-o", "program.c"], "is no recording");
}

#[test]
fn what_is_in_a_recording_is_told_without_replay() {
    let folder = recorded(&[("it.teeperf", "tick")]);
    let info = |words: &[&str]| -> Value {
        let words = [&["info", "--json", "it.teeperf"], words].concat();
        serde_json::from_str(&run(teeperf(&folder).args(words))).unwrap()
    };
    let (skimmed, checked) = (info(&[]), info(&["--check"]));
    assert_eq!(skimmed, checked);
    assert_eq!((&skimmed["clock"], &skimmed["is_whole"]), (&"tick".into(), &true.into()));
    assert_eq!(skimmed["processes"].as_array().unwrap().len(), 2);
    assert_eq!(skimmed["threads"].as_array().unwrap().len(), 5);
    let bytes = std::fs::metadata(folder.path().join("it.teeperf")).unwrap().len();
    assert_eq!(skimmed["bytes"], bytes);
    let modules = skimmed["processes"][0]["modules"].to_string();
    assert!(modules.contains("/program"), "{modules}");
    let text = run(teeperf(&folder).args(["info", "it.teeperf"]));
    assert!(text.contains("Processes: 2") && text.contains("./program"), "{text}");
}

#[test]
fn a_recording_that_was_cut_off_is_made_whole() {
    let folder = recorded(&[("it.teeperf", "cycle")]);
    let bytes = std::fs::read(folder.path().join("it.teeperf")).unwrap();
    std::fs::write(folder.path().join("cut.teeperf"), &bytes[..bytes.len() * 2 / 3]).unwrap();
    let checked = teeperf(&folder).args(["info", "--check", "cut.teeperf"]).output().unwrap();
    let told = String::from_utf8(checked.stderr).unwrap();
    assert!(told.contains("cut.teeperf is damaged; teeperf repair"), "{told}");
    assert!(checked.status.code() == Some(1) && !checked.stdout.is_empty(), "{told}");
    let before = report(&folder, "cut.teeperf");
    let output =
        teeperf(&folder).args(["repair", "cut.teeperf", "-o", "whole.teeperf"]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && told.contains("from offset"), "{told}");
    assert_eq!(functions(&report(&folder, "whole.teeperf")), functions(&before));
    let info = run(teeperf(&folder).args(["info", "--check", "--json", "whole.teeperf"]));
    let info: Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["is_whole"], true);
    assert!(info["notices"].to_string().contains("before it was repaired"), "{info}");
    let output = teeperf(&folder).args(["repair", "program.c", "-o", "none"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn runs_are_merged_and_packed() {
    let folder = recorded(&[("one.teeperf", "tick"), ("two.teeperf", "tick")]);
    run(teeperf(&folder).args(["merge", "one.teeperf", "two.teeperf", "-o", "both.teeperf"]));
    let both = functions(&report(&folder, "both.teeperf"));
    let [one, two] = ["one.teeperf", "two.teeperf"].map(|name| functions(&report(&folder, name)));
    for (name, (calls, _)) in &both {
        assert_eq!(*calls, one[name].0 + two[name].0, "{name}");
    }
    run(teeperf(&folder).args(["pack", "--sources", "both.teeperf", "-o", "both.tar.zst"]));
    assert_eq!(functions(&report(&folder, "both.tar.zst")), both);
    let mut tar = Vec::new();
    let file = std::fs::File::open(folder.path().join("both.tar.zst")).unwrap();
    zstd::stream::read::Decoder::new(file).unwrap().read_to_end(&mut tar).unwrap();
    let has = |text: &[u8]| tar.windows(text.len()).any(|window| window == text);
    assert!(has(b"/program.c\"") && has(b"\"kind\": \"binary\"") && has(PROGRAM.as_bytes()));
}

#[test]
fn a_recording_is_sent_to_who_collects() {
    let folder = recorded(&[]);
    let socket = format!("unix:{}", folder.path().join("socket").display());
    let refused =
        teeperf(&folder).args(["record", "--to", &socket, "--", "./program"]).output().unwrap();
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && told.contains("teeperf collect --listen"), "{told}");
    let mut collector = teeperf(&folder)
        .args(["collect", "--listen", &socket, "--count", "2", "-o", "taken"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It says so when it does.
    let mut told = BufReader::new(collector.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    assert!(line.contains(&socket), "{line}");
    let rest = std::thread::spawn(move || told.read_to_string(&mut String::new()).map(drop));
    // Who looks whether somebody listens, says nothing or something else takes nobody's place.
    let path = folder.path().join("socket");
    let _silent = UnixStream::connect(&path).unwrap();
    UnixStream::connect(&path).unwrap().write_all(b"GET / HTTP/1.1\r\n").unwrap();
    for _ in 0..2 {
        let how = ["record", "--clock", "tick", "--to", &socket, "--", "./program"];
        let sent = teeperf(&folder).args(how).output().unwrap();
        let told = String::from_utf8(sent.stderr).unwrap();
        assert!(sent.status.success() && told.contains("all of it kept there as taken/"), "{told}");
    }
    assert!(collector.wait().unwrap().success());
    rest.join().unwrap().unwrap();
    let taken: Vec<_> = std::fs::read_dir(folder.path().join("taken")).unwrap().collect();
    assert_eq!(taken.len(), 2);
    for path in taken {
        let path = path.unwrap().path();
        let functions = functions(&report(&folder, path.to_str().unwrap()));
        // fib(n) makes 2 F(n + 1) - 1 calls of itself.
        assert_eq!(functions["fib"].0, 12 * (2 * 233 - 1) + 2 * 55 - 1);
    }
}

/// Over TCP, at a port that is free.
#[test]
fn a_recording_is_sent_over_tcp() {
    let folder = recorded(&[]);
    let mut collector = teeperf(&folder)
        .args(["collect", "--listen", "tcp:127.0.0.1:0", "--count", "1", "-o", "taken"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(collector.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    // What is typed at the other end.
    let (_, typed) = line.split_once("send with: teeperf record --to ").unwrap();
    let place = typed.split(' ').next().unwrap();
    assert!(place.starts_with("tcp:127.0.0.1:") && !place.ends_with(":0"), "{line}");
    let rest = std::thread::spawn(move || told.read_to_string(&mut String::new()).map(drop));
    let how = ["record", "--clock", "tick", "--to", place, "--", "./program"];
    let sent = teeperf(&folder).args(how).output().unwrap();
    let told = String::from_utf8(sent.stderr).unwrap();
    assert!(sent.status.success() && told.contains("all of it kept there as taken/"), "{told}");
    assert!(collector.wait().unwrap().success());
    rest.join().unwrap().unwrap();
    let taken = std::fs::read_dir(folder.path().join("taken")).unwrap().next().unwrap().unwrap();
    let functions = functions(&report(&folder, taken.path().to_str().unwrap()));
    assert_eq!(functions["fib"].0, 12 * (2 * 233 - 1) + 2 * 55 - 1);
    // Nobody listens there any more.
    let refused = teeperf(&folder).args(how).output().unwrap();
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && told.contains("teeperf collect --listen tcp:"), "{told}");
}

/// A collector that was started in the folder, once it listens.
fn collector(folder: &Folder, socket: &str, more: &[&str]) -> Child {
    let mut collector = teeperf(folder)
        .args(["collect", "--listen", socket, "-o", "taken"])
        .args(more)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 20];
    collector.stderr.as_mut().unwrap().read_exact(&mut line).unwrap();
    collector
}

#[test]
fn what_a_collector_did_not_keep_is_told() {
    let folder = recorded(&[]);
    let path = folder.path().join("socket");
    let socket = format!("unix:{}", path.display());
    let sends = |how: &[&str]| {
        let mut command = teeperf(&folder);
        command.args(["record", "--clock", "tick", "--to", &socket, "--"]).args(how);
        command.stderr(Stdio::piped());
        command
    };
    let mut limited = collector(&folder, &socket, &["--limit-size", "2k", "--count", "1"]);
    let cut = sends(&["./program"]).output().unwrap();
    let told = String::from_utf8(cut.stderr).unwrap();
    assert_eq!(cut.status.code(), Some(1), "{told}");
    assert!(told.contains("not all of the recording: the limit of"), "{told}");
    assert!(limited.wait().unwrap().success());
    // Ctrl-C leaves what can be read, and no socket.
    let ended = collector(&folder, &socket, &["--senders", "1"]);
    let sending =
        sends(&["sh", "-c", "./program; read line"]).stdin(Stdio::piped()).spawn().unwrap();
    let taken = folder.path().join("taken");
    for _ in 0..1000 {
        if std::fs::read_dir(&taken).unwrap().count() > 1 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let refused = sends(&["./program"]).output().unwrap();
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && told.contains("refuses: 1 send already"), "{told}");
    let signal = ["-INT", &ended.id().to_string()];
    assert!(std::process::Command::new("kill").args(signal).status().unwrap().success());
    let ended = ended.wait_with_output().unwrap();
    assert_eq!(ended.status.signal(), Some(libc::SIGINT), "{ended:?}");
    assert!(!path.exists());
    let sending = sending.wait_with_output().unwrap();
    let told = String::from_utf8(sending.stderr).unwrap();
    let is_told = told.contains("did not say what it kept");
    assert!(is_told && sending.status.code() == Some(1), "{:?} {told}", sending.status);
    for entry in std::fs::read_dir(taken).unwrap() {
        run(teeperf(&folder).args(["info", "--check"]).arg(entry.unwrap().path()));
    }
    // Somebody else listens there.
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"HTTP/1.1 400\r\n"));
    let refused = sends(&["./program"]).output().unwrap();
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && told.contains("of this version"), "{told}");
}

#[test]
fn what_is_read_is_not_written_over() {
    let folder = recorded(&[("one.teeperf", "tick"), ("other.teeperf", "cycle")]);
    let how = ["record", "-q", "--rotate", "4M", "-o", "kept", "--", "./program"];
    run(teeperf(&folder).args(how));
    let at = |name: &str| folder.path().join(name);
    std::fs::hard_link(at("one.teeperf"), at("hard.teeperf")).unwrap();
    let whole = std::fs::read(at("one.teeperf")).unwrap();
    let refused = |words: &[&str], why: &str| {
        let output = teeperf(&folder).args(words).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && told.contains(why), "{words:?}: {told}");
        assert_eq!(std::fs::read(at("one.teeperf")).unwrap(), whole, "{words:?}");
    };
    for words in [
        &["repair", "one.teeperf", "-o", "hard.teeperf"][..],
        &["cut", "one.teeperf", "-o", "hard.teeperf"],
        &["merge", "other.teeperf", "one.teeperf", "-o", "hard.teeperf"],
        &["pack", "one.teeperf", "--force", "-o", "hard.teeperf"],
        &["cut", "kept", "-o", "kept/new.teeperf"],
        &["cut", "kept", "-o", "kept/0000000001.segment"],
    ] {
        refused(words, "is read");
    }
    refused(&["merge", "one.teeperf", "hard.teeperf", "-o", "both.teeperf"], "named twice");
    // Refused when it has begun: clocks differ.
    std::fs::copy(at("one.teeperf"), at("former.teeperf")).unwrap();
    refused(&["merge", "one.teeperf", "other.teeperf", "-o", "former.teeperf"], "clock");
    assert_eq!(std::fs::read(at("former.teeperf")).unwrap(), whole);
    let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().ends_with(".part")).collect();
    assert!(left.is_empty(), "{left:?}");
    // The newest is not the one that is made.
    for _ in 0..2 {
        run(teeperf(&folder).args(["cut", "--since", "10%", "-o", "z-end.teeperf"]));
    }
    // A folder is packed, and reads as it did.
    run(teeperf(&folder).args(["pack", "kept", "-o", "kept.tar.zst"]));
    assert_eq!(functions(&report(&folder, "kept.tar.zst")), functions(&report(&folder, "kept")));
    // What others have in a folder stays.
    folder.write("theirs/lock", "4711");
    let how = ["record", "--rotate", "4M", "-o", "theirs", "--", "./program"];
    let told = teeperf(&folder).args(how).output().unwrap();
    assert!(!told.status.success(), "{told:?}");
    assert_eq!(std::fs::read(at("theirs/lock")).unwrap(), b"4711");
}

#[test]
fn a_flight_recorder_writes_a_folder_that_is_read_as_files_are() {
    let folder = recorded(&[]);
    let how = ["record", "-q", "--clock", "tick", "--rotate", "4M", "-o", "kept.teeperf"];
    run(teeperf(&folder).args(how).args(["--", "./program"]));
    let report = report(&folder, "kept.teeperf");
    assert_eq!(functions(&report)["main"].0, 1);
    // The newest here, as a file would be.
    let text = run(teeperf(&folder).arg("report"));
    assert!(text.contains("./program") && !text.contains("WARNING"), "{text}");
    run(teeperf(&folder).args(["cut", "kept.teeperf", "--since", "50%", "-o", "one.teeperf"]));
    assert!(folder.path().join("one.teeperf").is_file());
    // What is kept is the last of it, unless recording ended before.
    for (limit, is_the_last) in [("1000s", true), ("300ms", false)] {
        let how = ["record", "--rotate", "4M", "-o", "ended", "--limit-time", limit];
        let program = ["--", "sh", "-c", "./program; sleep 1; ./program"];
        let told = teeperf(&folder).args(how).args(program).output().unwrap().stderr;
        let told = String::from_utf8(told).unwrap();
        assert!(told.contains(", of which "), "{told}");
        assert_eq!(told.contains(", of which the last "), is_the_last, "{told}");
        assert_eq!(told.contains("recording ended early"), !is_the_last, "{told}");
    }
}

#[test]
fn what_is_repaired_without_its_first_packet_is_read() {
    let folder = recorded(&[("damaged.teeperf", "tick")]);
    let path = folder.path().join("damaged.teeperf");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    run(teeperf(&folder).args(["repair", "damaged.teeperf", "-o", "whole.teeperf"]));
    assert_eq!(functions(&report(&folder, "whole.teeperf"))["main"].0, 1);
    let cut = |name: &str| {
        let words = ["cut", name, "--since", "0%", "-o", "part.teeperf"];
        teeperf(&folder).args(words).output().unwrap()
    };
    let refused = cut("damaged.teeperf");
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && told.contains("teeperf repair"), "{told}");
    assert!(cut("whole.teeperf").status.success());
    assert_eq!(functions(&report(&folder, "part.teeperf"))["main"].0, 1);
}

#[test]
fn windows_say_what_is_in_them_and_are_merged_once() {
    let folder = recorded(&[("it.teeperf", "tick")]);
    let told = |words: &[&str]| {
        let output = teeperf(&folder).args(words).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let info = run(teeperf(&folder).args(["info", "--json", "it.teeperf"]));
    let info: Value = serde_json::from_str(&info).unwrap();
    let process = &info["processes"][0]["pid"].to_string();
    let tid = &info["threads"][1]["tid"].to_string();
    let (_, text) = told(&["cut", "it.teeperf", "--thread", tid, "-o", "x.teeperf"]);
    assert!(text.contains(" words of 1 thread,"), "{text}");
    let (_, text) = told(&["cut", "it.teeperf", "--process", process, "-o", "x.teeperf"]);
    assert!(text.contains(" words of 4 threads,"), "{text}");
    let missing = ["--thread", "999999999", "-o", "y.teeperf"];
    let (is_made, text) = told(&[&["cut", "it.teeperf"], &missing[..]].concat());
    assert!(
        !is_made && text.contains("no thread 999999999") && text.contains("teeperf info"),
        "{text}"
    );
    assert!(!folder.path().join("y.teeperf").exists());
    let (is_made, text) = told(&[&["cut", "it.teeperf", "--thread", tid], &missing[..]].concat());
    assert!(is_made && text.contains("no thread 999999999"), "{text}");
    // Before anything is called.
    let (_, text) = told(&["cut", "it.teeperf", "--until", "1us", "-o", "q.teeperf"]);
    assert!(text.starts_with("teeperf: no thread") && text.contains(" 0 words of "), "{text}");
    let text = run(teeperf(&folder).args(["report", "q.teeperf"]));
    assert!(text.contains("part of a recording") && !text.contains("Build the program"), "{text}");
    for (name, since, until) in [("a", "0%", "50%"), ("b", "50%", "100%"), ("c", "0%", "100%")] {
        let name = format!("{name}.teeperf");
        run(teeperf(&folder).args([
            "cut",
            "it.teeperf",
            "--since",
            since,
            "--until",
            until,
            "-o",
            &name,
        ]));
    }
    assert!(told(&["merge", "a.teeperf", "b.teeperf", "-o", "both.teeperf"]).0);
    assert_eq!(functions(&report(&folder, "both.teeperf"))["main"].0, 1);
    let (is_made, text) = told(&["merge", "it.teeperf", "c.teeperf", "-o", "twice.teeperf"]);
    assert!(
        !is_made && text.contains("it.teeperf and c.teeperf both have a part of thread"),
        "{text}"
    );
    run(teeperf(&folder).args([
        "record",
        "-q",
        "--probe",
        "tree",
        "-o",
        "t.teeperf",
        "--",
        "./program",
    ]));
    std::fs::copy(folder.path().join("t.teeperf"), folder.path().join("copy")).unwrap();
    let (is_made, text) = told(&["merge", "t.teeperf", "copy", "-o", "twice.teeperf"]);
    assert!(!is_made && text.contains("would count twice"), "{text}");
    assert!(!folder.path().join("twice.teeperf").exists());
}

#[test]
fn nothing_is_left_of_what_was_interrupted() {
    let folder = Folder::new();
    folder.write("old.teeperf", "TPRF of before");
    let names = || -> Vec<String> {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    for (signal, number) in [("-INT", libc::SIGINT), ("-TERM", libc::SIGTERM)] {
        // A recording that begins, and does not go on.
        let mut repair = teeperf(&folder)
            .args(["repair", "-", "-o", "old.teeperf"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // Open until the end: to wait closes it otherwise.
        let mut input = repair.stdin.take().unwrap();
        input.write_all(&[7; 4096]).unwrap();
        let is_begun = || names().iter().any(|name| name.ends_with(".part"));
        for _ in 0..1000 {
            if is_begun() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(is_begun());
        let kill = [signal, &repair.id().to_string()];
        assert!(std::process::Command::new("kill").args(kill).status().unwrap().success());
        assert_eq!(repair.wait().unwrap().signal(), Some(number));
        assert_eq!(names(), ["old.teeperf"]);
    }
    assert_eq!(std::fs::read(folder.path().join("old.teeperf")).unwrap(), b"TPRF of before");
}

/// Such as a device, or an archive of before.
#[test]
fn what_could_not_be_written_over_stays() {
    let folder = recorded(&[("one.teeperf", "tick")]);
    folder.write("socket", "no socket");
    let socket = format!("unix:{}", folder.path().join("socket").display());
    let refused =
        teeperf(&folder).args(["collect", "--listen", &socket, "-o", "taken"]).output().unwrap();
    assert!(!refused.status.success());
    assert_eq!(std::fs::read(folder.path().join("socket")).unwrap(), b"no socket");
    run(teeperf(&folder).args(["pack", "one.teeperf", "-o", "old.tar.zst"]));
    let limited = "ulimit -f 4; exec \"$0\" pack one.teeperf -o old.tar.zst";
    let program = env!("CARGO_BIN_EXE_teeperf");
    let mut shell = prepared(std::process::Command::new("sh"), &folder);
    assert!(!shell.args(["-c", limited, program]).output().unwrap().status.success());
    assert!(folder.path().join("old.tar.zst").is_file());
}
