//! Tables of a report, of a real program: they agree with the events that `dump` shows, with each other, and with the
//! schema of the JSON report.

use crate::schema_check::Schema;
use crate::support::{Folder, run, teeperf};
use serde_json::Value;
use std::collections::BTreeMap;

/// Two threads, a recursion, jumps out of functions, and a child.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <unistd.h>
static _Thread_local jmp_buf env;
static volatile long sink;
static void spin(int n) { for (int i = 0; i < n; i++) sink += i; }
static void leave(int n) { spin(20); if (n % 10 == 0) longjmp(env, 1); spin(100); }
static int down(int n) { spin(10); return n ? down(n - 1) + 1 : 0; }
static void *work(void *p) { for (int i = 1; i < 2000; i++) spin(i * 10); down(50); return p; }
int main(void) {
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 100; i++) if (!setjmp(env)) leave(i);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    if (!fork()) { down(30); _exit(0); }
    wait(0);
    return 0;
}
"#;

fn recorded(clock: &str) -> Folder {
    let folder = Folder::new();
    folder.write("program.c", PROGRAM);
    run(teeperf(&folder).args([
        "cc",
        "--teeperf-hooks=source",
        "-O1",
        "-g",
        "-pthread",
        "program.c",
        "-o",
        "program",
    ]));
    run(teeperf(&folder).args([
        "record",
        "-q",
        "--clock",
        clock,
        "-o",
        "it.teeperf",
        "--",
        "./program",
    ]));
    folder
}

fn report(folder: &Folder, words: &[&str]) -> String {
    run(teeperf(folder).args(["report", "it.teeperf"]).args(words))
}

fn json(folder: &Folder, words: &[&str]) -> Value {
    let report = serde_json::from_str(&report(folder, &[words, &["--json"]].concat())).unwrap();
    assert_eq!(Schema::of_reports().errors(&report), Vec::<String>::new(), "{words:?}");
    report
}

fn function<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["functions"].as_array().unwrap().iter().find(|f| f["name"] == name).unwrap()
}

/// A table by its header: each row's cells by their column. None of these has a quoted comma.
fn csv(folder: &Folder, words: &[&str]) -> Vec<BTreeMap<String, String>> {
    let text = report(folder, &[words, &["--csv"]].concat());
    let mut lines = text.split_terminator("\r\n").map(|line| line.split(',').map(str::to_owned));
    let header: Vec<String> = lines.next().unwrap().collect();
    lines.map(|row| header.iter().cloned().zip(row).collect()).collect()
}

/// How long each call took by the times that dump prints, nanoseconds, by function. Of calls that returned by themselves.
fn lengths_of_dump(folder: &Folder) -> BTreeMap<String, Vec<f64>> {
    let text = run(teeperf(folder).args(["dump", "it.teeperf"]));
    let mut open: BTreeMap<(String, String), Vec<(String, f64)>> = BTreeMap::new();
    let mut out: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, kind @ ("call" | "return"), process, thread, seconds, _, name @ ..] = &words[..]
        else {
            continue;
        };
        let stack = open.entry(((*process).into(), (*thread).into())).or_default();
        let (name, ns) = (name.join(" "), seconds.parse::<f64>().unwrap() * 1e9);
        if *kind == "call" {
            stack.push((name, ns));
            continue;
        }
        // What was left by a jump stands above.
        if let Some(at) = stack.iter().rposition(|frame| frame.0 == name) {
            out.entry(name).or_default().push(ns - stack[at].1);
            stack.truncate(at);
        }
    }
    out
}

#[test]
fn lengths_are_those_of_the_events() {
    let folder = recorded("cycle");
    let told = json(&folder, &["--histogram", "spin"]);
    assert_eq!(told["lengths"]["resolution"], 0.0);
    let expected = lengths_of_dump(&folder);
    for (name, mut lengths) in expected {
        lengths.sort_by(f64::total_cmp);
        let told = &function(&told, &name)["lengths"];
        assert_eq!(told["timed"], lengths.len(), "{name}");
        let number = |field: &str| told[field].as_f64().unwrap();
        let near = |field: &str, exact: f64| {
            let told = number(field);
            // The times of dump are whole nanoseconds.
            assert!((told - exact).abs() <= 0.03 * exact + 2.0, "{name} {field}: {told} {exact}");
        };
        near("shortest", lengths[0]);
        near("longest", lengths[lengths.len() - 1]);
        near("mean", lengths.iter().sum::<f64>() / lengths.len() as f64);
        for (field, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)] {
            near(field, lengths[(part * lengths.len() as f64).ceil() as usize - 1]);
        }
    }
    // Ten calls of `leave` were left by a jump.
    let leave = function(&told, "leave");
    assert_eq!((&leave["calls"], &leave["lengths"]["timed"]), (&100.into(), &90.into()));
    let spin = &function(&told, "spin")["lengths"];
    let buckets = spin["histogram"].as_array().unwrap();
    assert_eq!(
        buckets.iter().map(|bucket| bucket[2].as_u64().unwrap()).sum::<u64>(),
        spin["timed"]
    );
    assert!(function(&told, "down")["lengths"].get("histogram").is_none());
    // The newest may be another than one thinks of: what does not fit says in which file.
    let refused = teeperf(&folder).args(["report", "--thread", "nosuch"]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success()
            && said.contains("nothing in it.teeperf fits: thread \"nosuch\"; next: "),
        "{said}"
    );
    let text = report(&folder, &["--lengths"]);
    assert!(text.contains("LONGEST") && text.contains("10 calls have no length"), "{text}");
    let rows = csv(&folder, &["--lengths"]);
    let row = rows.iter().find(|row| row["function"] == "spin").unwrap();
    assert!((row["mean_ns"].parse::<f64>().unwrap() - spin["mean"].as_f64().unwrap()).abs() < 0.01);
    let bars = report(&folder, &["--histogram", "spin"]);
    assert!(bars.contains('█') && bars.contains("SO FAR"), "{bars}");
    let calls: u64 = csv(&folder, &["--histogram", "spin"])
        .iter()
        .map(|row| row["calls"].parse::<u64>().unwrap())
        .sum();
    assert_eq!(calls, spin["timed"].as_u64().unwrap());
    // Of paths no lengths are known.
    let refused = teeperf(&folder)
        .args(["report", "it.teeperf", "--lengths", "--focus", "down"])
        .output()
        .unwrap();
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && told.contains("and not by call path"), "{told}");
}

#[test]
fn tables_agree_with_the_functions() {
    let folder = recorded("tick");
    let whole = json(&folder, &["--tree"]);
    let functions = csv(&folder, &[]);
    assert_eq!(functions.len(), whole["functions"].as_array().unwrap().len());
    let calls = |name: &str| function(&whole, name)["calls"].as_u64().unwrap();
    assert_eq!((calls("main"), calls("work"), calls("down")), (1, 2, 2 * 51 + 31));

    let around = json(&folder, &["--around", "down"]);
    let [down] = &around["around"].as_array().unwrap()[..] else { panic!("{around}") };
    let named = |side: &str| -> BTreeMap<String, u64> {
        let name = |at: &Value| match at.as_u64() {
            Some(at) => around["functions"][at as usize]["name"].as_str().unwrap().to_owned(),
            None => "nobody".into(),
        };
        let list = down[side].as_array().unwrap();
        list.iter().map(|n| (name(&n["function"]), n["calls"].as_u64().unwrap())).collect()
    };
    // The child of a fork begins with an empty stack.
    let callers = BTreeMap::from([("down".into(), 130), ("work".into(), 2), ("nobody".into(), 1)]);
    assert_eq!(named("callers"), callers);
    assert_eq!(named("callees"), BTreeMap::from([("down".into(), 130), ("spin".into(), 133)]));
    let rows = csv(&folder, &["--callers", "down"]);
    assert_eq!((rows.len(), rows.iter().all(|row| row["relation"] == "caller")), (3, true));
    let text = report(&folder, &["--callees", "down"]);
    assert!(text.contains("CALLEE") && !text.contains("CALLER"), "{text}");

    for (by, groups) in [("thread", 4), ("process", 2), ("module", 1), ("file", 1)] {
        let told = json(&folder, &["--by", by]);
        let list = told["by"]["groups"].as_array().unwrap();
        // Placeholders are of no file, and were not called.
        let known = list.iter().filter(|group| group["calls"] != 0).count();
        assert_eq!((known, &told["by"]["kind"]), (groups, &by.into()));
        let sum: u64 = list.iter().map(|group| group["calls"].as_u64().unwrap()).sum();
        let all: u64 = functions.iter().map(|row| row["calls"].parse::<u64>().unwrap()).sum();
        assert_eq!(sum, all, "{by}");
        let rows = csv(&folder, &["--by", by]);
        let is_called =
            |row: &&BTreeMap<String, String>| row["function"].is_empty() && row["calls"] != "0";
        assert_eq!(rows.iter().filter(is_called).count(), groups);
    }
    assert_eq!(csv(&folder, &["--threads"]).len(), 4);
    let inlined = csv(&folder, &["--inlined"]);
    assert!(inlined.iter().any(|row| row["function"] == "work"), "{inlined:?}");
    let text = report(&folder, &["--lines"]);
    assert!(text.contains("program.c:8"), "{text}");
    let lengths = report(&folder, &["--lengths"]);
    assert!(lengths.contains("The clock was a tick") && lengths.contains("< "), "{lengths}");
    let refused =
        teeperf(&folder).args(["report", "it.teeperf", "--around", "nothing"]).output().unwrap();
    assert!(
        String::from_utf8(refused.stderr).unwrap().contains("no function that was called fits")
    );
}

/// A server that waits, some work, and two libraries that have a function of one name.
const WAITING: &str = r#"
#include <unistd.h>
#include <poll.h>
static volatile long sink;
__attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void serve(int ms) { poll(0, 0, ms); sink++; }
void step(void);
int main(void) {
    for (int i = 0; i < 3000; i++) work(10);
    for (int i = 0; i < 8; i++) { serve(50); for (int k = 0; k < 3000; k++) work(100); }
    step();
    return 0;
}
"#;
const LIBRARY: &str = "static volatile int sink; __attribute__((visibility(\"hidden\"))) void same(int n) { while (n--) sink += n; }\n";

#[test]
fn waiting_is_no_cpu_time_and_names_are_told_apart() {
    let folder = Folder::new();
    folder.write("program.c", WAITING);
    folder.write(
        "a.c",
        &format!("{LIBRARY}void other(void); void step(void) {{ same(20000); other(); }}"),
    );
    folder.write("b.c", &format!("{LIBRARY}void other(void) {{ same(20000); }}"));
    for (name, with) in [("b", &[][..]), ("a", &["libb.so", "-Wl,-rpath,$ORIGIN"][..])] {
        let (source, library) = (format!("{name}.c"), format!("lib{name}.so"));
        let words = ["cc", "-O1", "-g", "-fPIC", "-shared", &source, "-o", &library];
        run(teeperf(&folder).args(words).args(with));
    }
    let words = [
        "cc",
        "-O1",
        "-g",
        "program.c",
        "liba.so",
        "libb.so",
        "-Wl,-rpath,$ORIGIN",
        "-o",
        "program",
    ];
    run(teeperf(&folder).args(words));
    run(teeperf(&folder).args(["record", "-q", "-o", "it.teeperf", "--", "./program"]));

    // 400 ms of waiting are no CPU time.
    let whole = json(&folder, &[]);
    let time = |name: &str, what: &str| function(&whole, name)[what].as_f64().unwrap();
    assert!(time("serve", "waiting") >= 390e6, "{whole}");
    assert!(time("serve", "self") < 0.1 * time("serve", "waiting"), "{whole}");

    // Both functions of one name stand with their modules, at any width.
    let text = report(&folder, &["--limit", "50"]);
    assert!(text.contains("same (liba.so)") && text.contains("same (libb.so)"), "{text}");
    let text = report(&folder, &["--around", "same@libb.so"]);
    assert!(
        text.contains("same (libb.so): ") && text.contains("other") && !text.contains("step"),
        "{text}"
    );
    let rows = csv(&folder, &["--around", "same"]);
    assert!(rows.iter().all(|row| row["function"] == "same"), "{rows:?}");

    // From a function on, and functions as one.
    let rooted = json(&folder, &["--root", "step"]);
    let names = |report: &Value| -> Vec<String> {
        // Code without hooks may have a sample, even in a run as short as this one.
        let is_called = |function: &&Value| function["calls"].as_u64() > Some(0);
        let called = report["functions"].as_array().unwrap().iter().filter(is_called);
        let mut names: Vec<String> =
            called.map(|function| function["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&rooted), ["other", "same", "same", "step"]);
    let grouped = json(&folder, &["--group", "all=same,other,step,work", "--tree"]);
    assert_eq!(names(&grouped), ["[all]", "main", "serve"]);
    // 27,000 calls of `work` and the one of `step`, all from main.
    assert_eq!(function(&grouped, "[all]")["calls"], 3000 + 8 * 3000 + 1);

    let complaint = |words: &[&str]| {
        let output = teeperf(&folder).args(["report", "it.teeperf"]).args(words).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    assert!(complaint(&["--focus", "erv"]).1.contains("taken for a part of names, '*erv*'"));
    assert!(!complaint(&["--focus", "serve"]).1.contains("taken"));
    let (is_done, said) = complaint(&["--sort", "p99"]);
    assert!(!is_done && said.contains("for --lengths"), "{said}");
    let (is_done, said) = complaint(&["--focus", "/a(/"]);
    assert!(!is_done && said.contains("is no pattern"), "{said}");
}

#[test]
fn lengths_are_sorted_as_asked() {
    let folder = recorded("cycle");
    for (sort, column) in
        [("p99", "p99_ns"), ("max", "longest_ns"), ("mean", "mean_ns"), ("calls", "calls")]
    {
        let rows = csv(&folder, &["--lengths", "--sort", sort]);
        let numbers: Vec<f64> = rows.iter().filter_map(|row| row[column].parse().ok()).collect();
        assert!(
            numbers.len() > 3 && numbers.windows(2).all(|two| two[0] >= two[1]),
            "{sort} {numbers:?}"
        );
    }
}
