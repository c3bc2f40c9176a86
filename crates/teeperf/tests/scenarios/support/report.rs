//! What `teeperf report --json` says of a recording, and the comparison with what the
//! program told.

use super::run::{run, teeperf};
use super::told::Told;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A report, as far as tests look at it.
#[derive(Debug)]
pub(crate) struct Report {
    /// Calls by function; functions of one name in several modules together.
    pub(crate) calls: BTreeMap<String, u64>,
    /// Name of the clock.
    pub(crate) clock: String,
    /// Exit status of the command, as recorded.
    pub(crate) exit_status: Option<i64>,
    /// Signal that ended it, as recorded.
    pub(crate) signal: Option<i64>,
    /// What the reader had to say.
    pub(crate) warnings: Vec<String>,
    threads: Vec<Thread>,
    health: Value,
    recording: PathBuf,
}

#[derive(Debug)]
struct Thread {
    process: u64,
    merged: u64,
}

impl Report {
    /// Reads a recording as a user does.
    #[track_caller]
    pub(crate) fn of(recording: &Path) -> Self {
        let json = json(recording, &[]);
        let mut report = Self {
            calls: BTreeMap::new(),
            clock: json["info"]["clock"].as_str().unwrap_or_default().to_owned(),
            exit_status: json["info"]["exit_status"].as_i64(),
            signal: json["info"]["signal"].as_i64(),
            warnings: Vec::new(),
            threads: Vec::new(),
            health: json["health"].clone(),
            recording: recording.to_owned(),
        };
        for finding in list(&json["health"]["findings"]) {
            if finding["warning"] == true {
                report.warnings.push(finding["what"].as_str().expect("text").to_owned());
            }
        }
        for function in list(&json["functions"]) {
            let name = plain(function["name"].as_str().expect("a name"));
            if !of_the_compiler(&name) && !run_of_unknown(&name) {
                *report.calls.entry(name).or_default() += number(&function["calls"]);
            }
        }
        report.calls.retain(|_, &mut calls| calls > 0);
        for thread in list(&json["threads"]) {
            report.threads.push(Thread {
                process: number(&thread["process"]),
                merged: number(&thread["merged"]),
            });
        }
        report
    }

    /// Calls by call path, `a;b;c`, threads and processes together, without frames that are
    /// the compiler's own. A path's length makes this dear where stacks are very deep.
    #[track_caller]
    pub(crate) fn paths(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for thread in list(&json(&self.recording, &["--tree"])["threads"]) {
            let mut paths: Vec<String> = Vec::new();
            for node in list(&thread["tree"]) {
                let name = plain(node["name"].as_str().expect("a name"));
                let calls = number(&node["calls"]);
                let above = node["caller"].as_u64().map_or("", |caller| &paths[caller as usize]);
                let hidden = of_the_compiler(&name);
                let again = run_of_unknown(&name) && above.ends_with(']');
                let path = match (hidden || again, above) {
                    (true, above) => above.to_owned(),
                    (false, "") => name.clone(),
                    (false, above) => format!("{above};{name}"),
                };
                if !hidden && !run_of_unknown(&name) && calls > 0 {
                    *all.entry(path.clone()).or_default() += calls;
                }
                paths.push(path);
            }
        }
        all
    }

    /// What was read.
    pub(crate) fn recording(&self) -> &Path {
        &self.recording
    }

    /// A figure of the recording's health; nothing where it is not known.
    #[track_caller]
    pub(crate) fn health(&self, name: &str) -> u64 {
        match self.health.get(name).expect(name) {
            Value::Null => 0,
            figure => number(figure),
        }
    }

    /// Processes and libraries with hooks that are not in the recording.
    pub(crate) fn unrecorded(&self) -> u64 {
        self.health.get("unrecorded").map_or(0, number)
    }

    /// Nanoseconds of wall time in the functions of this name, and in what they called; and of the
    /// whole recording.
    pub(crate) fn total_and_duration(&self, name: &str) -> (f64, f64) {
        let json = json(&self.recording, &[]);
        let named = list(&json["functions"]).filter(|function| function["name"] == name);
        // Of samples, the total is CPU time alone.
        let wall = |function: &Value| {
            let waiting = function["total_waiting"].as_f64().unwrap_or_default();
            function["total"].as_f64().map(|total| total + waiting)
        };
        let total = named.filter_map(wall).sum();
        (total, json["info"]["duration"].as_f64().expect("a duration"))
    }

    /// Nanoseconds of a function's shortest and longest call.
    #[track_caller]
    pub(crate) fn shortest_and_longest(&self, name: &str) -> (f64, f64) {
        let json = json(&self.recording, &[]);
        let mut named = list(&json["functions"]).filter(|function| function["name"] == name);
        let function = named.next().expect(name);
        let time = |figure: &str| function[figure].as_f64().expect(figure);
        (time("shortest"), time("longest"))
    }

    /// A time of a function.
    #[track_caller]
    pub(crate) fn time(&self, name: &str, figure: &str) -> f64 {
        let json = json(&self.recording, &[]);
        let mut named = list(&json["functions"]).filter(|function| function["name"] == name);
        named.next().expect(name)[figure].as_f64().expect(figure)
    }

    /// Times and nanoseconds of the gaps of one reason.
    pub(crate) fn gap(&self, reason: &str) -> (u64, u64) {
        let mut sum = (0, 0);
        for gap in list(&self.health["gaps"]) {
            if gap["reason"] == reason {
                sum.0 += number(&gap["times"]);
                sum.1 += number(&gap["time"]);
            }
        }
        sum
    }

    /// Threads, those merged under one name counted one by one.
    pub(crate) fn threads(&self) -> u64 {
        self.threads.iter().map(|thread| thread.merged).sum()
    }

    /// Processes that have threads.
    pub(crate) fn processes(&self) -> usize {
        self.threads.iter().map(|thread| thread.process).collect::<BTreeSet<_>>().len()
    }

    /// Nothing lost, mended, left open or warned of.
    #[track_caller]
    pub(crate) fn expect_whole(&self) {
        self.expect_whole_but_told(&[]);
    }

    /// Nothing lost, mended or left open, and a warning with each of these words, in their order.
    #[track_caller]
    pub(crate) fn expect_whole_but_told(&self, told: &[&str]) {
        for figure in ["lost", "mended", "open", "unopened"] {
            assert_eq!(self.health(figure), 0, "{figure}: {:#}", self.health);
        }
        let are_told =
            self.warnings.iter().zip(told).all(|(warning, words)| warning.contains(words));
        assert!(self.warnings.len() == told.len() && are_told, "{:#?}", self.warnings);
    }

    /// Nothing lost, mended or warned of.
    #[track_caller]
    pub(crate) fn expect_whole_but_open(&self) {
        for figure in ["lost", "mended", "unopened"] {
            assert_eq!(self.health(figure), 0, "{figure}: {:#}", self.health);
        }
        assert_eq!(self.warnings, Vec::<String>::new());
    }

    /// Calls of `callee` on paths on which `caller` lies somewhere above it.
    pub(crate) fn calls_below(&self, caller: &str, callee: &str) -> u64 {
        self.calls_where(callee, |above| above.contains(&caller))
    }

    /// Calls of `callee` by `caller` itself.
    pub(crate) fn calls_directly_below(&self, caller: &str, callee: &str) -> u64 {
        self.calls_where(callee, |above| above.last() == Some(&caller))
    }

    fn calls_where(&self, callee: &str, fits: impl Fn(&[&str]) -> bool) -> u64 {
        let calls = self.paths().into_iter().filter_map(|(path, calls)| {
            let frames: Vec<&str> = path.split(';').collect();
            let (last, above) = frames.split_last()?;
            (*last == callee && fits(above)).then_some(calls)
        });
        calls.sum()
    }
}

#[track_caller]
pub(crate) fn json(recording: &Path, options: &[&str]) -> Value {
    let outcome = run(teeperf().args(["report", "--json"]).args(options).arg(recording));
    assert!(outcome.success(), "report: {}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).expect("JSON")
}

/// The program's own word and the report's, function by function.
#[track_caller]
pub(crate) fn assert_calls(told: &Told, report: &Report) {
    assert_alike(&told.calls, &report.calls, report);
}

/// These calls and no others, nothing lost or mended, and these warnings.
#[track_caller]
pub(crate) fn assert_seen(report: &Report, seen: &[(&str, u64)], warnings: &[&str]) {
    let mut told = Told::default();
    seen.iter().for_each(|(name, calls)| told.add(name, *calls));
    assert_calls(&told, report);
    for figure in ["lost", "mended", "unopened"] {
        assert_eq!(report.health(figure), 0, "{figure}: {report:?}");
    }
    assert_eq!(report.warnings, warnings);
}

/// The same as [`assert_calls`], call path by call path.
#[track_caller]
pub(crate) fn assert_paths(told: &Told, report: &Report) {
    let mut told = told.paths.clone();
    told.retain(|path, _| !path.ends_with(']'));
    assert_alike(&told, &report.paths(), report);
}

#[track_caller]
fn assert_alike(told: &BTreeMap<String, u64>, seen: &BTreeMap<String, u64>, report: &Report) {
    let names: BTreeSet<&String> = told.keys().chain(seen.keys()).collect();
    let mut differences: Vec<String> = names
        .into_iter()
        .filter(|name| told.get(*name) != seen.get(*name))
        .map(|name| format!("{name}: told {:?}, seen {:?}", told.get(name), seen.get(name)))
        .collect();
    differences.sort_by_key(String::len);
    assert!(
        differences.is_empty(),
        "{} differences, of which the shortest:\n{}\n{:#}",
        differences.len(),
        differences[..differences.len().min(12)].join("\n"),
        report.health
    );
}

/// Frames nobody recorded, however many there were in a row, are one step of a path.
fn run_of_unknown(name: &str) -> bool {
    name.starts_with('[')
}

/// A C++ name without its parameters: whether `extern "C"` gives a static function a plain
/// name is the compiler's choice.
fn plain(name: &str) -> String {
    if run_of_unknown(name) {
        return "[...]".to_owned();
    }
    name.split('(').next().unwrap_or(name).to_owned()
}

/// What no source line declares: a compiler's own functions around static and thread-local
/// objects, and clang's defaulted members of library classes.
fn of_the_compiler(name: &str) -> bool {
    ["_GLOBAL__", "__static_init", "__tls_init", "__cxx_global", "TLS ", "std::", "void std::"]
        .iter()
        .any(|start| name.starts_with(start))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[track_caller]
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}
