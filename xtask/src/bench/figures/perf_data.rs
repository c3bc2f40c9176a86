//! How fast large files of perf are read, and in how much memory, beside perf.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Figure;
use crate::bench::copies::copies;
use crate::bench::lab::Lab;
use crate::bench::measure::{median, ratio};
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "perf-data",
    title: "Large files of perf",
    method: "sqlite3's `speedtest1 --memdb`, sampled by perf as often as the kernel lets it. Ten million samples with call chains (of a \
             build with frame pointers; a shorter file's samples again and again, each time later, until there are enough): `teeperf report` \
             and `perf report --stdio`, wall time and the most memory resident. Samples with 8 KiB of the stack, of a run of half a minute: \
             `teeperf report` and `perf script`, with what was inlined and without; and of a shorter one, again and again, where each sees \
             little that it has not seen before. The system has the files in memory where that is large enough. And a recording as people \
             make it, 999 samples a second of some seconds: most of that is reading debug information. How far apart the two are depends on \
             the program, and on how much of its stacks is alike: of 257,000 stacks of a C++ program, each of them once, perf took three times as long.",
    measure,
};

const MIB: f64 = (1 << 20) as f64;

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    ensure!(crate::commands::works("perf", &["--version"]), "perf is not installed");
    let all = chains(lab)?.into_iter().chain(stacks(lab)?).chain([recording(lab)?]);
    Ok(all.collect())
}

fn recording(lab: &Lab) -> Result<Row> {
    let data = lab.scratch("recording.perf.data");
    let how = ("dwarf,8192", "999", lab.size("500", "20"));
    let count = file(lab, &lab.speedtest_with_debug()?, how, 1, &data)?;
    let (mut ours, mut theirs) = (vec![], vec![]);
    for _ in 0..lab.rounds(7) {
        let mut script = Command::new("perf");
        script.args(["script", "--inline", "-i"]).arg(&data);
        theirs.push(lab.run_unheard(&mut script)?.seconds);
        ours.push(lab.run(Command::new(&lab.teeperf).arg("report").arg(&data))?.seconds);
    }
    std::fs::remove_file(&data)?;
    let what = format!("{count} samples, 999 a second, with what was inlined");
    Ok(Row::new("recording", &what, format!("{} s", digits(median(&ours))))
        .beside(format!("perf script {} s", digits(median(&theirs)))))
}

/// A file with so many samples of a program, and how many there are.
fn file(lab: &Lab, program: &Path, how: How<'_>, wanted: u64, to: &Path) -> Result<u64> {
    let once = lab.scratch("once.perf.data");
    record(lab, program, how, &once)?;
    let count = copies(&once, wanted, to)?;
    std::fs::remove_file(&once)?;
    Ok(count)
}

/// How stacks are taken, how often, and how large the run is.
type How<'a> = (&'a str, &'a str, &'a str);

fn record(lab: &Lab, program: &Path, (graph, hz, size): How<'_>, to: &Path) -> Result<()> {
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-F", hz, "-e", "cpu-clock", "--call-graph", graph, "-o"]);
    record.arg(to).arg("--").arg(program);
    lab.run(record.args(["--size", size, "--memdb"])).map(drop)
}

/// How many samples a report says there are.
fn samples(report: &str) -> Option<u64> {
    let told = report.lines().find_map(|line| line.strip_prefix("Samples "))?;
    told.split_whitespace().next()?.replace(',', "").parse().ok()
}

fn chains(lab: &Lab) -> Result<[Row; 2]> {
    let data = lab.scratch("chains.perf.data");
    let program = lab.speedtest_with_frame_pointers()?;
    let wanted = lab.size(10_000_000, 200_000);
    let how = ("fp", "9999", lab.size("40", "5"));
    let count = file(lab, &program, how, wanted, &data)?;
    let (mut ours, mut theirs, mut mib, mut their_mib) = (vec![], vec![], vec![], vec![]);
    for _ in 0..lab.rounds(3) {
        let ran = lab.run(Command::new(&lab.teeperf).arg("report").arg(&data))?;
        ours.push(ran.seconds);
        mib.push(ran.peak_mib);
        let mut report = Command::new("perf");
        let ran = lab.run(report.args(["report", "--stdio", "-i"]).arg(&data))?;
        theirs.push(ran.seconds);
        their_mib.push(ran.peak_mib);
    }
    let size = std::fs::metadata(&data)?.len() as f64 / MIB;
    std::fs::remove_file(&data)?;
    let told = format!("{} M samples, {} MiB", digits(count as f64 / 1e6), digits(size));
    Ok([
        Row::new("chains", "call chains, to the printed report", told)
            .beside(format!("perf report {} s", digits(median(&theirs))))
            .limit(Limit::AtMost(10.0), Some(median(&ours)), "s"),
        Row::new("chains-memory", "call chains: memory", String::new())
            .beside(format!("perf report {} MiB", digits(median(&their_mib))))
            .limit(Limit::AtMost(300.0), Some(median(&mib)), "MiB"),
    ])
}

fn stacks(lab: &Lab) -> Result<[Row; 4]> {
    let whole = Stacks::measure(lab, lab.size("900", "5"), None)?;
    let again = Stacks::measure(lab, lab.size("40", "5"), Some(lab.size(500_000, 5_000)))?;
    let mib = digits(median(&[&whole.mib[..], &again.mib[..]].concat()));
    let what = "stacks followed and named, with what was inlined";
    let count = |stacks: &Stacks| format!("{} k samples", digits(stacks.count as f64 / 1e3));
    Ok([
        whole.row(0, "stacks-inlined", &format!("{what}: {}", count(&whole)), Some(20.0)),
        whole.row(1, "stacks", "likewise without", Some(5.0)),
        again.row(
            0,
            "stacks-again",
            &format!("{what}: few, again and again, {}", count(&again)),
            None,
        ),
        Row::new("stacks-memory", "stacks: memory", format!("{mib} MiB")),
    ])
}

/// How long a file with stacks takes, with what was inlined and without.
struct Stacks {
    count: u64,
    ours: [Vec<f64>; 2],
    theirs: [Vec<f64>; 2],
    mib: Vec<f64>,
}

impl Stacks {
    /// Of a run of this size; where so many samples are wanted, they are repeated until there are.
    fn measure(lab: &Lab, size: &str, wanted: Option<u64>) -> Result<Self> {
        let data = lab.scratch("stacks.perf.data");
        let (program, how) = (lab.speedtest_with_debug()?, ("dwarf,8192", "9999", size));
        match wanted {
            Some(wanted) => _ = file(lab, &program, how, wanted, &data)?,
            None => record(lab, &program, how, &data)?,
        }
        let mut stacks =
            Self { count: 0, ours: [vec![], vec![]], theirs: [vec![], vec![]], mib: vec![] };
        for _ in 0..lab.rounds(5) {
            for (at, inline) in [(0, "--inline"), (1, "--no-inline")] {
                let mut script = Command::new("perf");
                // What it prints goes nowhere: only to write it takes perf longer than us to read.
                script.args(["script", inline, "-i"]).arg(&data);
                stacks.theirs[at].push(lab.run_unheard(&mut script)?.seconds);
                let mut report = Command::new(&lab.teeperf);
                report.arg("report").arg(&data).args((at == 1).then_some("--no-inline"));
                let ran = lab.run(&mut report)?;
                stacks.count = samples(&ran.out).context("a report without its samples")?;
                stacks.ours[at].push(ran.seconds);
                stacks.mib.push(ran.peak_mib);
            }
        }
        std::fs::remove_file(&data)?;
        Ok(stacks)
    }

    fn row(&self, at: usize, id: &str, what: &str, least: Option<f64>) -> Row {
        let rate = |seconds: &[f64]| digits(self.count as f64 / median(seconds));
        let (ours, theirs) = (&self.ours[at], &self.theirs[at]);
        let row = Row::new(id, what, format!("{} samples/s", rate(ours)));
        let reached = ratio(theirs, ours);
        match least {
            Some(least) => row.beside(format!("perf script {} samples/s", rate(theirs))).limit(
                Limit::AtLeast(least),
                Some(reached),
                "×",
            ),
            None => row.beside(format!(
                "perf script {} samples/s, {} × as long",
                rate(theirs),
                digits(reached)
            )),
        }
    }
}
