//! Samples of ordinary programs: what they cost, whether they say what perf's say, and how far stacks are followed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Figure;
use crate::bench::lab::Lab;
use crate::bench::measure::{furthest, ratio};
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "sampling",
    title: "Samples of the kernel beside perf's",
    method: "sqlite3's `speedtest1 --memdb` and `zstd -b9` of its own program, built with `-O2 -g`, alone, under \
             `perf record --call-graph dwarf -F 999` and under `teeperf record --sample=999`, each with 8 KiB of the stack, in turn. \
             Shares are of self time in functions as they were compiled, without the kernel's, all rounds together: of functions that have 1 % by \
             either, as perf names them in its file and in ours (`export --to perf`). Stacks that are followed to the end are those with `main` or `_start` in them; of perf's files by perf and by teeperf.",
    measure,
};

/// What both take of a stack, bytes.
const STACK: &str = "8192";

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    ensure!(crate::commands::works("perf", &["--version"]), "perf is not installed");
    let size = lab.size("60", "10");
    let speedtest = lab.speedtest_with_debug()?;
    let mut rows = of(lab, "sqlite3", &speedtest, &["--size", size, "--memdb"])?;
    let zstd = lab.zstd_with_debug()?;
    let file = zstd.display().to_string();
    let seconds = lab.size("-i4", "-i1");
    rows.extend(of(lab, "zstd", &zstd, &["-b9", seconds, &file])?);
    Ok(rows)
}

fn of(lab: &Lab, name: &str, program: &Path, words: &[&str]) -> Result<Vec<Row>> {
    let (mut alone, mut theirs, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    let (mut perf, mut own, mut perf_by_us) = (Seen::default(), Seen::default(), Seen::default());
    let mut own_by_perf = Seen::default();
    for _ in 0..lab.rounds(7) {
        alone.push(lab.run(Command::new(program).args(words))?.seconds);
        let data = lab.scratch(&format!("{name}.perf.data"));
        let graph = format!("dwarf,{STACK}");
        let mut record = Command::new("perf");
        record.args(["record", "-q", "-F", "999", "-e", "cpu-clock", "--call-graph", &graph, "-o"]);
        record.arg(&data).arg("--").arg(program).args(words);
        theirs.push(lab.run(&mut record)?.seconds);
        let recording = lab.scratch(&format!("{name}.teeperf"));
        let mut record = lab.record(&recording, &["--sample=999", "--call-graph", &graph]);
        ours.push(lab.run(record.arg(program).args(words))?.seconds);
        perf.by_perf(&data)?;
        own.by_teeperf(lab, &recording)?;
        // Of functions of one address each tool has a name of its own choice: names are perf's on both sides.
        let exported = lab.scratch(&format!("{name}.exported.data"));
        let mut export = Command::new(&lab.teeperf);
        export.args(["export", "--to", "perf", "--force", "-o"]).arg(&exported).arg(&recording);
        lab.run(&mut export)?;
        own_by_perf.by_perf(&exported)?;
        perf_by_us.by_teeperf(lab, &data)?;
    }
    let added = |runs: &[f64]| format!("{} % more", digits(100.0 * (ratio(runs, &alone) - 1.0)));
    let percent = |seen: &Seen| digits(100.0 * seen.reached());
    let (function, points) =
        furthest(&perf.own, &own_by_perf.own).context("no function has 1 %")?;
    Ok(vec![
        Row::new(
            &format!("{name}-cost"),
            &format!("{name}: wall time while samples are taken"),
            added(&ours),
        )
        .beside(format!("perf record {}", added(&theirs)))
        .limit(Limit::AtMost(1.02), Some(ratio(&ours, &theirs)), "×"),
        Row::new(
            &format!("{name}-shares"),
            &format!("{name}: shares of functions above 1 %"),
            format!("{function} is furthest apart"),
        )
        .beside(format!("{} samples of perf's, {} of ours", perf.samples, own.samples))
        .limit(Limit::AtMost(2.0), Some(points), "points"),
        Row::new(
            &format!("{name}-depth"),
            &format!("{name}: stacks that lead to `main` or `_start`"),
            format!("{} % of perf's samples, {} % of ours", percent(&perf_by_us), percent(&own)),
        )
        .beside(format!("perf script {} % of its own", percent(&perf)))
        .limit(Limit::AtLeast(1.0), Some(perf_by_us.reached() / perf.reached()), "×"),
    ])
}

/// What samples say, of several runs.
#[derive(Default)]
struct Seen {
    samples: u64,
    /// Of these, the ones with `main` or `_start` among their callers.
    whole: u64,
    /// Self time by function, in shares of a run, summed over runs.
    own: BTreeMap<String, f64>,
}

impl Seen {
    fn reached(&self) -> f64 {
        self.whole as f64 / self.samples as f64
    }

    /// By perf's own report and script.
    fn by_perf(&mut self, data: &Path) -> Result<()> {
        let told = |words: &[&str]| -> Result<String> {
            let output = Command::new("perf").args(words).arg("-i").arg(data).output()?;
            ensure!(output.status.success(), "perf {} failed", words.join(" "));
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let words = [
            "report",
            "--stdio",
            "--no-children",
            "--no-inline",
            "-g",
            "none",
            "-t",
            "^",
            "-F",
            "overhead,sym",
        ];
        let mut shares = BTreeMap::new();
        for line in told(&words)?.lines() {
            let Some((share, symbol)) = line.split_once('^') else { continue };
            let (Ok(share), Some(name)) = (
                share.trim().trim_end_matches('%').parse::<f64>(),
                symbol.trim().strip_prefix("[.] "),
            ) else {
                continue;
            };
            *shares.entry(name.trim().to_owned()).or_default() += share;
        }
        self.add(shares);
        let script = told(&["script", "--no-inline", "-F", "ip,sym"])?;
        for stack in script.split("\n\n").filter(|stack| !stack.trim().is_empty()) {
            let mut names = stack.lines().filter_map(|line| line.trim().split_once(' '));
            self.samples += 1;
            self.whole += u64::from(names.any(|(_, name)| ["main", "_start"].contains(&name)));
        }
        Ok(())
    }

    /// By `teeperf report --json`.
    fn by_teeperf(&mut self, lab: &Lab, recording: &Path) -> Result<()> {
        let mut report = Command::new(&lab.teeperf);
        let ran =
            lab.run(report.args(["report", "--json", "--tree", "--no-inline"]).arg(recording))?;
        let report: Value = serde_json::from_str(&ran.out)?;
        let mut shares = BTreeMap::new();
        for function in report["functions"].as_array().context("functions")? {
            if !function["module"].as_str().unwrap_or_default().starts_with("[kernel") {
                let name = function["name"].as_str().context("name")?.to_owned();
                *shares.entry(name).or_default() += function["self"].as_f64().context("self")?;
            }
        }
        self.add(shares);
        self.samples += report["health"]["events"].as_u64().context("events")?;
        for thread in report["threads"].as_array().context("threads")? {
            self.whole += below_main(&thread["tree"])?;
        }
        Ok(())
    }

    fn add(&mut self, shares: BTreeMap<String, f64>) {
        let all: f64 = shares.values().sum();
        for (name, share) in shares {
            *self.own.entry(name).or_default() += share / all;
        }
    }
}

/// Samples of a tree that have `main` or `_start` among their callers. Callers stand before callees.
fn below_main(tree: &Value) -> Result<u64> {
    let (mut is_below, mut samples): (Vec<bool>, u64) = (Vec::new(), 0);
    for node in tree.as_array().context("tree")? {
        let above = node["caller"].as_u64().and_then(|at| is_below.get(at as usize).copied());
        let here =
            above.unwrap_or(false) || ["main", "_start"].map(Some).contains(&node["name"].as_str());
        samples += if here { node["calls"].as_u64().unwrap_or(0) } else { 0 };
        is_below.push(here);
    }
    Ok(samples)
}
