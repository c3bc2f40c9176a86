//! Whether calls are counted exactly: function by function against callgrind, which counts
//! by simulating the processor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Figure;
use crate::bench::lab::Lab;
use crate::bench::report::Report;
use crate::bench::table::{Limit, Row};
use crate::commands::works;

pub(crate) const FIGURE: Figure = Figure {
    name: "counts",
    title: "Counts of calls, beside callgrind",
    method: "sqlite3's speed test, the same binary under `valgrind --tool=callgrind` without the \
             recorder and under `teeperf record`. It is built with `-fno-inline -fno-ipa-icf`, \
             so that every function that is entered is called as a function of its own, which \
             is all that callgrind can see; copies that gcc makes of a function (`.constprop`, \
             `.isra`, `.part`) count as that function, as their hooks say. A function that is \
             not hooked, such as one of the C library, is left out. Late hooks, as by default.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    if !works("valgrind", &["--version"]) {
        bail!("valgrind is not installed");
    }
    let program = lab.speedtest_without_inlining()?;
    let arguments = ["--size", lab.size("5", "1"), "--memdb"];
    let counts_file = lab.scratch("callgrind.out");
    let mut callgrind = Command::new("valgrind");
    callgrind.args(["-q", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no"]);
    callgrind.arg(format!("--callgrind-out-file={}", counts_file.display()));
    lab.run(callgrind.arg(&program).args(arguments))?;
    let recording = lab.scratch("counts.teeperf");
    lab.run(lab.record(&recording, &[]).arg(&program).args(arguments))?;

    let text = std::fs::read_to_string(&counts_file)?;
    let mut theirs = callgrind_calls(&text)?;
    let hooked = hooked_functions(&text);
    theirs.retain(|name, _| hooked.contains(name));
    let mut ours = BTreeMap::<String, u64>::new();
    let functions = Report::of(lab, &recording)?.functions;
    for function in functions.into_iter().filter(|function| function.calls > 0) {
        *ours.entry(original(&function.name).to_owned()).or_default() += function.calls;
    }
    let differences = differences(&ours, &theirs);
    write_comparison(&lab.scratch("counts.txt"), &ours, &theirs)?;
    for line in differences.iter().take(20) {
        eprintln!("{line}");
    }
    let calls: u64 = ours.values().sum();
    let told = format!("{} functions, {calls} calls", ours.len());
    Ok(vec![
        Row::new("sqlite3", "functions whose calls differ", told)
            .beside(format!(
                "callgrind {} functions, {} calls",
                theirs.len(),
                theirs.values().sum::<u64>()
            ))
            .limit(Limit::AtMost(0.0), Some(differences.len() as f64), "functions"),
    ])
}

/// Calls of each function: sums of the `calls=` lines behind its `cfn=`
/// (callgrind's output format, "Callgrind Format Specification", Valgrind manual).
fn callgrind_calls(text: &str) -> Result<BTreeMap<String, u64>> {
    let mut calls = BTreeMap::<String, u64>::new();
    let mut callee = None;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("cfn=") {
            callee = Some(original(name));
        } else if let Some(rest) = line.strip_prefix("calls=") {
            let count = rest.split(' ').next().unwrap_or_default();
            let count: u64 = count.parse().with_context(|| format!("calls={rest}"))?;
            let name = callee.take().context("calls= without cfn=")?;
            *calls.entry(name.to_owned()).or_default() += count;
        }
    }
    Ok(calls)
}

/// Functions of the sources that were compiled with hooks.
fn hooked_functions(text: &str) -> BTreeSet<String> {
    let mut hooked = BTreeSet::new();
    let mut is_ours = false;
    for line in text.lines() {
        if let Some(file) = line.strip_prefix("fl=") {
            is_ours = SOURCES.iter().any(|source| file.ends_with(source));
        } else if let Some(name) = line.strip_prefix("fn=").filter(|_| is_ours) {
            hooked.insert(original(name).to_owned());
        }
    }
    hooked
}

/// Ends of the paths of the program's sources.
const SOURCES: [&str; 2] = ["/sqlite3.c", "/speedtest1.c"];

/// A function's name without what gcc adds to copies of it, and callgrind to recursion.
fn original(name: &str) -> &str {
    name.split(['.', '\'']).next().unwrap_or(name)
}

fn differences(ours: &BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>) -> Vec<String> {
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let differing = names.into_iter().filter(|name| ours.get(*name) != theirs.get(*name));
    differing
        .map(|name| format!("{name}: ours {:?}, callgrind {:?}", ours.get(name), theirs.get(name)))
        .collect()
}

fn write_comparison(
    path: &Path,
    ours: &BTreeMap<String, u64>,
    theirs: &BTreeMap<String, u64>,
) -> Result<()> {
    let mut text = String::from("function\tteeperf\tcallgrind\n");
    for (name, calls) in ours {
        let counted = theirs.get(name).copied().unwrap_or_default();
        text += &format!("{name}\t{calls}\t{counted}\n");
    }
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fl=/a/speedtest1.c\nfn=main\n0 3\n\
                        cfn=work.constprop.0\ncalls=5 0\n0 10\ncfn=strlen\ncalls=7 0\n0 1\n\
                        fl=/a/sqlite3.c\nfn=work.constprop.0\ncfn=work'2\ncalls=4 0\n0 10\n\
                        fl=/b/strlen.c\nfn=strlen\n0 7\n";

    #[test]
    fn calls_are_summed_over_copies_and_recursion() {
        let calls = callgrind_calls(TEXT).unwrap();
        assert_eq!(calls["work"], 9);
        assert_eq!(calls["strlen"], 7);
        let hooked = hooked_functions(TEXT);
        assert!(hooked.contains("work") && hooked.contains("main"));
        assert!(!hooked.contains("strlen"));
    }

    #[test]
    fn a_difference_is_told() {
        let ours = BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]);
        let theirs = BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 3)]);
        assert_eq!(differences(&ours, &theirs), ["b: ours Some(2), callgrind Some(3)"]);
    }
}
