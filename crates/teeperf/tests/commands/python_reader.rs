//! Recordings read by the reader in tests/reader, which was written from docs/format.md alone:
//! it has to come to the same as the report, and both to what the program did.

use crate::support::{Folder, prepared, run, teeperf};
use object::{Object, ObjectSection};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// Two threads, recursion, `longjmp` out of six frames, and a function that takes time.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <setjmp.h>
#include <time.h>
static __thread jmp_buf place;
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void deeper(int n) { if (n == 0) longjmp(place, 1); deeper(n - 1); }
static void leaping(void) { if (setjmp(place) == 0) deeper(5); }
static void waiting(void) {
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < 20000000L);
}
static void *work(void *given) { leaping(); fib(*(int *)given); return 0; }
int main(void) {
    pthread_t thread;
    int n = 10;
    pthread_create(&thread, 0, work, &n);
    for (int i = 0; i < 10; i++) leaping();
    waiting();
    fib(15);
    pthread_join(thread, 0);
    return 3;
}
"#;

/// What it does: calls by function. `fib(n)` makes 2 F(n + 1) - 1 of itself.
const CALLS: [(&str, u64); 6] = [
    ("deeper", 11 * 6),
    ("fib", 2 * 987 - 1 + 2 * 89 - 1),
    ("leaping", 11),
    ("main", 1),
    ("waiting", 1),
    ("work", 1),
];

/// Begins to record into `it.teeperf`, with times of the clock, which both readers tell.
fn record(folder: &Folder, clock: &str) -> Command {
    let mut command = teeperf(folder);
    command.args(["record", "-q", "--no-cpu-samples", "--clock", clock, "-o", "it.teeperf"]);
    command
}

struct Recording {
    folder: Folder,
}

impl Recording {
    fn new(clock: &str, probe: &str) -> Self {
        let folder = Folder::new();
        folder.write("program.c", PROGRAM);
        let build = ["cc", "-O0", "-g", "-pthread", "program.c", "-o", "program"];
        run(teeperf(&folder).args(build));
        let how = ["--probe", probe, "--", "./program"];
        let status = record(&folder, clock).args(how).status().unwrap();
        assert_eq!(status.code(), Some(3), "the program's own status");
        Self { folder }
    }

    fn by_python(&self, file: &str) -> Value {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = script.join("../../tests/reader/read_recording.py");
        let mut python = Command::new("python3");
        python.arg("-B").arg(script).arg(file).current_dir(self.folder.path());
        serde_json::from_str(&run(&mut python)).unwrap()
    }

    fn by_report(&self, file: &str) -> Value {
        serde_json::from_str(&run(teeperf(&self.folder).args(["report", "--json", file]))).unwrap()
    }
}

/// The sum of a figure over all threads, by function.
fn sums(python: &Value, figure: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for thread in python["threads"].as_array().unwrap() {
        for function in thread["functions"].as_array().unwrap() {
            let name = function["name"].as_str().unwrap().to_owned();
            *sums.entry(name).or_default() += function[figure].as_f64().unwrap();
        }
    }
    sums
}

fn figures(report: &Value, figure: &str) -> BTreeMap<String, f64> {
    let functions = report["functions"].as_array().unwrap().iter();
    let pair = |f: &Value| (f["name"].as_str().unwrap().to_owned(), f[figure].as_f64().unwrap());
    functions.map(pair).collect()
}

/// The same of functions that have it.
fn figures_of(report: &Value, figure: &str) -> BTreeMap<String, f64> {
    let functions = report["functions"].as_array().unwrap().iter();
    let pair = |f: &Value| Some((f["name"].as_str().unwrap().to_owned(), f[figure].as_f64()?));
    functions.filter_map(pair).collect()
}

fn expected() -> BTreeMap<String, f64> {
    CALLS.iter().map(|&(name, calls)| (name.to_owned(), calls as f64)).collect()
}

fn whole(clock: &str, probe: &str) {
    let recording = Recording::new(clock, probe);
    let python = recording.by_python("it.teeperf");
    let report = recording.by_report("it.teeperf");
    assert_eq!(python["warnings"], serde_json::json!([]));
    assert_eq!(python["version"], "1.6");
    assert_eq!(python["end"]["exit_status"], 3);
    assert_eq!(python["start"]["clock"], if clock == "tick" { 1 } else { 2 });
    assert_eq!(python["start"]["arguments"], serde_json::json!(["./program"]));
    let module = &python["modules"][0];
    assert!(module["path"].as_str().unwrap().ends_with("/program"));
    assert_eq!(sums(&python, "calls"), expected());
    assert_eq!(figures(&report, "calls"), expected());
    for thread in python["threads"].as_array().unwrap() {
        for count in ["lost_events", "lost_words", "mended", "unopened", "open"] {
            assert_eq!(thread[count], 0, "{count} of {thread}");
        }
    }
    for figure in ["shortest", "longest"] {
        let unit = 1e9 / python["start"]["hz"].as_f64().unwrap();
        let lengths = figures_of(&report, figure);
        assert_eq!(lengths.len(), if probe == "tree" { CALLS.len() } else { 0 }, "{figure}");
        for (name, ns) in lengths {
            let threads = python["threads"].as_array().unwrap().iter();
            let functions = threads.flat_map(|thread| thread["functions"].as_array().unwrap());
            let mut units =
                functions.filter(|f| f["name"] == *name).map(|f| f[figure].as_f64().unwrap());
            let first = units.next().unwrap();
            let of_all = units.fold(first, if figure == "longest" { f64::max } else { f64::min });
            assert!((ns - of_all * unit).abs() < 0.01, "{figure} of {name}: {ns}, {of_all} units");
        }
    }
    same_times(&python, &report);
    // A tick comes late where other programs keep the ticker from running.
    if clock == "cycle" {
        let waited = sums(&python, "self")["waiting"] / python["start"]["hz"].as_f64().unwrap();
        assert!(waited > 0.019, "20 ms passed in `waiting`, not {waited} s");
    }
}

/// Both tell the same times; with a tick, to what its number of ticks is uncertain by.
fn same_times(python: &Value, report: &Value) {
    let unit = 1e9 / python["start"]["hz"].as_f64().unwrap();
    // The upper bound has some nanoseconds for each call, which the processor may look ahead.
    let ahead = 10.0 * expected().values().sum::<f64>();
    let period = report["info"]["period"].as_f64().unwrap();
    for (raw, low, high) in
        [("self", "self_low", "self_high"), ("total", "total_low", "total_high")]
    {
        let (raw, low, high) = (sums(python, raw), figures(report, low), figures(report, high));
        for (name, units) in raw {
            let raw = units * unit;
            let most = 2.0 * (raw * period).sqrt() + 3.0 * period + ahead;
            assert!(high[&name] <= raw + most + 1.0, "{name}: {} of {raw} ns", high[&name]);
            assert!(low[&name] >= raw - most - 1.0, "{name}: {} of {raw} ns", low[&name]);
        }
    }
}

/// Parts of a recording, with keyframes: both readers have the same of each, and all of it together.
#[test]
fn windows() {
    for clock in ["tick", "cycle"] {
        let recording = Recording::new(clock, "trace");
        let mut calls: BTreeMap<String, f64> = BTreeMap::new();
        for (number, (since, until)) in
            [("0", "30%"), ("30%", "90%"), ("90%", "")].iter().enumerate()
        {
            let name = format!("{number}.teeperf");
            let mut words = vec!["cut", "it.teeperf", "--since", since, "-o", &name];
            if !until.is_empty() {
                words.extend(["--until", until]);
            }
            run(teeperf(&recording.folder).args(words));
            let python = recording.by_python(&name);
            assert_eq!(python["warnings"], serde_json::json!([]));
            let words = ["report", "--json", &name];
            let report = run(teeperf(&recording.folder).args(words));
            let report: Value = serde_json::from_str(&report).unwrap();
            let unit = 1e9 / python["start"]["hz"].as_f64().unwrap();
            let times = sums(&python, "self");
            for (name, ns) in figures(&report, "self") {
                assert!((times[&name] * unit - ns).abs() < 1.0, "{name} of {number}");
            }
            let these = sums(&python, "calls");
            for (name, count) in figures(&report, "calls") {
                assert_eq!(these[&name], count, "{name} of {number}");
            }
            for (name, count) in these {
                *calls.entry(name).or_default() += count;
            }
        }
        assert_eq!(calls, expected());
    }
}

/// Programs with every way out of a function, and how both readers count what they did.
#[test]
fn programs_that_are_hard_to_follow() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let hard = [
        ("coroutines.c", &[][..]),
        ("longjmps.c", &[]),
        ("exceptions.cc", &[]),
        ("processes.c", &["vfork-exec"]),
        ("processes.c", &["fork"]),
        ("pauses.c", &[]),
    ];
    for (at, (name, how)) in hard.into_iter().enumerate() {
        let folder = Folder::new();
        let compiler = if name.ends_with(".cc") { "c++" } else { "cc" };
        let source = programs.join(name);
        let mut build = teeperf(&folder);
        build.args([compiler, "-O1", "-g", "-pthread", "-o", "program", "-I"]);
        run(build.arg(&programs).arg(source));
        let clock = ["tick", "cycle"][at % 2];
        record(&folder, clock).args(["--", "./program"]).args(how).output().unwrap();
        let recording = Recording { folder };
        let (python, report) =
            (recording.by_python("it.teeperf"), recording.by_report("it.teeperf"));
        assert_eq!(python["warnings"], serde_json::json!([]), "{name}");
        // One shows names as the linker has them, the other as they are in the source.
        let sorted = |calls: BTreeMap<String, f64>| {
            let mut calls: Vec<u64> = calls.into_values().map(|n| n as u64).collect();
            calls.retain(|&n| n > 0);
            calls.sort_unstable();
            calls
        };
        let calls = sorted(sums(&python, "calls"));
        assert!(calls.len() > 3, "{name}: {calls:?}");
        assert_eq!(calls, sorted(figures(&report, "calls")), "{name}");
        for (figure, of_threads, besides) in [
            ("events", "events", 0),
            ("lost", "lost_events", 0),
            ("mended", "mended", 0),
            ("unopened", "unopened", 0),
            ("open", "open", python["open_on_stacks_left"].as_u64().unwrap()),
        ] {
            let threads = python["threads"].as_array().unwrap().iter();
            let sum: u64 = threads.map(|thread| thread[of_threads].as_u64().unwrap()).sum();
            assert_eq!(report["health"][figure], sum + besides, "{figure} of {name}");
        }
    }
}

/// A program that kills itself while a thread of it sleeps.
const KILLED: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static void *sleeps(void *unused) { for (;;) pause(); return unused; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, sleeps, 0);
    usleep(300000);
    kill(getpid(), SIGKILL);
}
"#;

/// Both readers charge what is open up to the last piece, which has no words.
#[test]
fn calls_that_never_return() {
    for clock in ["tick", "cycle"] {
        let folder = Folder::new();
        folder.write("program.c", KILLED);
        run(teeperf(&folder).args(["cc", "-g", "-pthread", "program.c", "-o", "program"]));
        record(&folder, clock).args(["--", "./program"]).status().unwrap();
        let recording = Recording { folder };
        let python = recording.by_python("it.teeperf");
        assert_eq!(python["warnings"], serde_json::json!([]));
        let words = ["report", "--json", "it.teeperf"];
        let report = run(teeperf(&recording.folder).args(words));
        let times = figures(&serde_json::from_str(&report).unwrap(), "self");
        let unit = 1e9 / python["start"]["hz"].as_f64().unwrap();
        for (name, units) in sums(&python, "self") {
            assert!((times[&name] - units * unit).abs() < 1.0, "{name}: {} ns", times[&name]);
            assert!(units * unit > 0.28e9, "{name}: {} ns", times[&name]);
        }
        assert_eq!(times.len(), 2);
    }
}

/// Samples of work of known shares; none where the kernel lets nothing be sampled.
fn sampled(
    build: &mut Command,
    folder: Folder,
    how: &[&str],
    program: &[&str],
) -> Option<Recording> {
    let mut probe = teeperf(&folder);
    let probe = probe.args(["record", "--sample", "-o", "-", "--", "true"]).output().unwrap();
    if !probe.status.success() {
        eprintln!("skipped: {}", String::from_utf8_lossy(&probe.stderr));
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/samples.c");
    run(build.args(["-O1", "-pthread", "-fno-omit-frame-pointer", "-o", "program"]).arg(source));
    let mut record = teeperf(&folder);
    record.args(["record", "-q", "--sample", "-o", "it.teeperf"]).args(how);
    run(record.args(["--", "./program"]).args(program));
    Some(Recording { folder })
}

/// Of an event: process, thread and name of each thread, with its samples and their weight.
type Lanes = BTreeMap<(u64, u64, String), (u64, u64)>;

fn lanes_of_python(event: &Value) -> Lanes {
    let lane = |thread: &Value| {
        let number = |name: &str| thread[name].as_u64().unwrap();
        let name = thread["name"].as_str().unwrap_or_default().to_owned();
        ((number("pid"), number("tid"), name), (number("samples"), number("weight")))
    };
    event["threads"].as_array().unwrap().iter().map(lane).collect()
}

fn lanes_of_report(report: &Value) -> Lanes {
    let lane = |thread: &Value| {
        let number = |name: &str| thread[name].as_u64().unwrap();
        let name = thread["name"].as_str().unwrap().to_owned();
        let weight = thread["recorded"].as_f64().unwrap() as u64;
        ((number("process"), number("id"), name), (number("events"), weight))
    };
    report["threads"].as_array().unwrap().iter().map(lane).collect()
}

/// Self weight by what is said of each place, a path and an offset.
fn places(event: &Value, name: impl Fn(&str, u64) -> Option<String>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for thread in event["threads"].as_array().unwrap() {
        for (place, weight) in thread["self"].as_object().unwrap() {
            let (path, offset) = place.rsplit_once("+0x").unwrap_or((place, "0"));
            let offset = u64::from_str_radix(offset, 16).unwrap();
            if let Some(name) = name(path, offset) {
                *sums.entry(name).or_default() += weight.as_u64().unwrap();
            }
        }
    }
    sums
}

/// Both readers have the same samples of the same threads, at the same places.
fn same_samples(recording: &Recording) -> Value {
    let python = recording.by_python("it.teeperf");
    assert_eq!(python["warnings"], serde_json::json!([]));
    let [event] = &python["samples"].as_array().unwrap()[..] else { panic!("{python}") };
    let words = ["report", "--json", "--event", event["name"].as_str().unwrap(), "it.teeperf"];
    let report = run(teeperf(&recording.folder).args(words));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["info"]["event"], event["name"]);
    assert_eq!(report["health"]["events"], event["samples"]);
    assert_eq!(report["health"]["lost"], event["lost"]);
    let lanes = lanes_of_python(event);
    assert!(lanes.len() >= 2, "{lanes:?}");
    assert_eq!(lanes, lanes_of_report(&report));

    let by_module = places(event, |path, _| {
        let name = if path.starts_with('[') { path } else { path.rsplit('/').next().unwrap() };
        Some(if name == "[unknown]" { String::new() } else { name.to_owned() })
    });
    let mut reported = BTreeMap::new();
    for function in report["functions"].as_array().unwrap() {
        let module = function["module"].as_str().unwrap().to_owned();
        *reported.entry(module).or_default() += function["self"].as_f64().unwrap() as u64;
    }
    reported.retain(|_, weight| *weight > 0);
    assert_eq!(by_module, reported);

    let file = std::fs::read(recording.folder.path().join("program")).unwrap();
    let file = object::File::parse(&*file).unwrap();
    let code = |name: &str| {
        let (begin, size) = file.section_by_name(&format!("{name}_code"))?.file_range()?;
        Some((name.to_owned(), begin..begin + size))
    };
    let code = ["large", "small"].map(|name| code(name).unwrap());
    let by_function = places(event, |path, offset| {
        let is_there = |(_, range): &&(String, Range<u64>)| range.contains(&offset);
        let (name, _) = code.iter().find(is_there)?;
        path.ends_with("/program").then(|| name.clone())
    });
    let reported = figures(&report, "self");
    for (name, weight) in &by_function {
        assert_eq!(reported[name] as u64, *weight, "{name}");
    }
    assert_eq!(by_function.len(), 2);
    python
}

/// Children, of which one executes: both readers know whose code ran where.
#[test]
fn samples() {
    for how in ["dwarf", "fp", "none"] {
        let folder = Folder::new();
        let mut build = prepared(Command::new("cc"), &folder);
        let options = ["--call-graph", how];
        let Some(recording) = sampled(&mut build, folder, &options, &["children", "300"]) else {
            return;
        };
        same_samples(&recording);
    }
}

/// Of two threads, beside the calls of the same program.
#[test]
fn samples_beside_calls() {
    let folder = Folder::new();
    let mut build = teeperf(&folder);
    build.arg("cc");
    let Some(recording) = sampled(&mut build, folder, &[], &["threads", "300"]) else { return };
    let python = same_samples(&recording);
    let words = ["report", "--json", "--event", "calls", "it.teeperf"];
    let report: Value = serde_json::from_str(&run(teeperf(&recording.folder).args(words))).unwrap();
    let calls = sums(&python, "calls");
    assert_eq!(calls["shares"], 2.0);
    let all = |told: &Value, name: &str| -> f64 {
        told["threads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|thread| thread[name].as_f64().unwrap())
            .sum()
    };
    // The clock's unit is a microsecond. Waits that no return ends are told by the recorder.
    let (told, waiting) = (1000.0 * all(&python, "off_cpu"), all(&report, "waiting"));
    assert!(told > 0.0 && told <= waiting + 1.0, "{told} {waiting}");
    // Code without hooks has samples and no calls.
    let mut told = figures(&report, "calls");
    told.retain(|_, calls| *calls > 0.0);
    assert_eq!(calls, told);
}

/// Of a dump by thread: samples with those that found no place, clock units off the processor, and
/// waits.
fn dumped(dump: &str) -> BTreeMap<u64, [u64; 3]> {
    let mut threads: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
    for line in dump.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let figure = |name: &str| {
            let told = words.iter().find_map(|word| word.strip_prefix(name));
            told.map_or(0, |number| number.parse::<u64>().unwrap())
        };
        let more = match words[1] {
            "sample" => [u64::from(!line.ends_with(" end")) + figure("missed="), 0, 0],
            "off-cpu" => [0, figure("units="), figure("waits=")],
            _ => continue,
        };
        let thread = threads.entry(words[3].parse().unwrap()).or_default();
        thread.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    threads
}

/// Samples and waits of threads that work and wait, some of which have no events any more.
#[test]
fn samples_and_waits_among_events() {
    for name in ["waits.c", "pingpong.c"] {
        let folder = Folder::new();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
        let mut build = teeperf(&folder);
        run(build.args(["cc", "-O1", "-pthread", "-o", "program"]).arg(source));
        run(teeperf(&folder).args(["record", "-q", "-o", "it.teeperf", "--", "./program"]));
        let recording = Recording { folder };
        let python = recording.by_python("it.teeperf");
        assert_eq!(python["warnings"], serde_json::json!([]), "{name}");
        let mut told = BTreeMap::new();
        for thread in python["threads"].as_array().unwrap() {
            let figures = ["samples", "off_cpu", "waits"].map(|f| thread[f].as_u64().unwrap());
            told.insert(thread["tid"].as_u64().unwrap(), figures);
        }
        let dump = run(teeperf(&recording.folder).args(["dump", "it.teeperf"]));
        let mut expected = dumped(&dump);
        for tid in told.keys() {
            expected.entry(*tid).or_default();
        }
        assert_eq!(told, expected, "{name}");
        let all = told.values().fold([0; 3], |all, one| [0, 1, 2].map(|at| all[at] + one[at]));
        assert!(all.iter().all(|&sum| sum > 0), "{name}: {told:?}");
    }
}

#[test]
fn a_recording_of_ticks() {
    whole("tick", "trace");
}

#[test]
fn a_recording_of_cycles() {
    whole("cycle", "trace");
}

#[test]
fn recordings_of_trees() {
    whole("tick", "tree");
    whole("cycle", "tree");
}

#[test]
fn a_recording_cut_off_anywhere() {
    let recording = Recording::new("tick", "trace");
    let bytes = std::fs::read(recording.folder.path().join("it.teeperf")).unwrap();
    for part in 1..8 {
        let cut = &bytes[..bytes.len() * part / 8];
        std::fs::write(recording.folder.path().join("cut.teeperf"), cut).unwrap();
        let python = recording.by_python("cut.teeperf");
        let warnings = python["warnings"].to_string();
        assert!(warnings.contains("cut off"), "{warnings}");
        let mut calls = sums(&python, "calls");
        if calls.is_empty() {
            continue;
        }
        let mut reported = figures(&recording.by_report("cut.teeperf"), "calls");
        // Functions whose symbols were cut off are named by each in its own way: the report has names of the file.
        calls.retain(|name, _| !name.contains('+') && !name.starts_with("site "));
        reported.retain(|name, _| calls.contains_key(name));
        assert_eq!(calls, reported, "{part} eighths");
    }
}
