//! `cargo xtask compare-perf`: reads files of perf with perf itself and with the command, and compares both sample by sample.
//! The files are named by the person who asks; none is kept.

mod ours;
mod perfs;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use crate::commands;

/// See the module.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Files of perf, and folders that perf wrote
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Differences that are printed for each file
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    shown: usize,
    /// The command to compare with perf [default: a fresh build]
    #[arg(long, value_name = "FILE")]
    teeperf: Option<PathBuf>,
}

/// A sample, as either side tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Sample {
    /// Nanoseconds; 0 where the file has no times.
    time: u64,
    pid: u32,
    tid: u32,
    ip: u64,
    event: String,
    period: u64,
    comm: String,
    chain: Vec<u64>,
}

/// Samples of a file by event, process and thread: how many, and their periods.
type Sums = BTreeMap<(String, u32, u32), (u64, u128)>;

/// What became of a file.
enum Outcome {
    /// Both sides have as many samples, and the same.
    Same(usize),
    Different {
        perfs: usize,
        ours: usize,
        differences: Vec<String>,
    },
    /// perf does not read it; the command may.
    NotRead(String, usize),
    /// The command does not read it.
    Refused(String),
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let teeperf = match &arguments.teeperf {
        Some(path) => path.clone(),
        None => {
            commands::run(commands::cargo().args(["build", "--quiet", "--package", "teeperf"]))?;
            commands::target()?.join("debug/teeperf")
        }
    };
    let (mut same, mut different, mut not_read, mut samples) = (0, 0, 0, 0);
    for file in &arguments.files {
        let compared = compare(&teeperf, file, arguments.shown);
        let outcome = compared.unwrap_or_else(|error| Outcome::Refused(error.to_string()));
        match outcome {
            Outcome::Same(count) => {
                same += 1;
                samples += count;
            }
            Outcome::Different { .. } | Outcome::Refused(_) => different += 1,
            Outcome::NotRead(..) => not_read += 1,
        }
        println!("{}: {outcome}", file.display());
    }
    println!(
        "{same} files have the same samples in both, {samples} in all; {different} differ, {not_read} perf does not read"
    );
    if different > 0 {
        bail!("{different} files are read otherwise than by perf");
    }
    Ok(())
}

fn compare(teeperf: &Path, file: &Path, shown: usize) -> Result<Outcome> {
    let ours = ours::samples(teeperf, file)?;
    let perfs = match perfs::samples(file)? {
        Ok(perfs) => perfs,
        Err(said) => return Ok(Outcome::NotRead(said, ours.len())),
    };
    let mut differences = differences(&perfs, &ours, shown);
    let reported = ours::reported(teeperf, file)?;
    differences.extend(different_sums(&sums(&perfs), &reported, shown));
    if differences.is_empty() && perfs.len() == ours.len() {
        return Ok(Outcome::Same(ours.len()));
    }
    Ok(Outcome::Different { perfs: perfs.len(), ours: ours.len(), differences })
}

/// The first of the samples that one side has and the other has not, or has otherwise.
fn differences(perfs: &[Sample], ours: &[Sample], shown: usize) -> Vec<String> {
    let sorted = |samples: &[Sample]| {
        let mut samples = samples.to_vec();
        samples.sort();
        samples
    };
    let (perfs, ours) = (sorted(perfs), sorted(ours));
    let (mut a, mut b) = (perfs.iter().peekable(), ours.iter().peekable());
    let mut found = Vec::new();
    let mut count = 0;
    let mut add = |text: String| {
        count += 1;
        if found.len() < shown {
            found.push(text);
        }
    };
    loop {
        let place = |sample: &Sample| (sample.time, sample.pid, sample.tid, sample.ip);
        match (a.peek(), b.peek()) {
            (None, None) => break,
            (Some(perf), Some(own)) if place(perf) == place(own) => {
                if perf != own {
                    add(format!("perf {perf}\n    ours {own}"));
                }
                a.next();
                b.next();
            }
            (Some(perf), own) if own.is_none_or(|own| place(perf) < place(own)) => {
                add(format!("perf alone: {perf}"));
                a.next();
            }
            (_, Some(own)) => {
                add(format!("ours alone: {own}"));
                b.next();
            }
            (Some(_), None) => unreachable!("the arm before takes what is left of perf's"),
        }
    }
    if count > shown {
        found.push(format!("and {} more", count - shown));
    }
    found
}

fn sums(samples: &[Sample]) -> Sums {
    let mut sums = Sums::new();
    for sample in samples {
        let key = (sample.event.clone(), sample.pid, sample.tid);
        let (count, period) = sums.entry(key).or_default();
        *count += 1;
        *period += u128::from(sample.period);
    }
    sums
}

/// What the report counts otherwise than perf's samples add up to.
fn different_sums(perfs: &Sums, reported: &Sums, shown: usize) -> Vec<String> {
    let keys: std::collections::BTreeSet<_> = perfs.keys().chain(reported.keys()).collect();
    let different = keys.into_iter().filter(|key| {
        let (perf, own) = (perfs.get(key), reported.get(key));
        // The report adds floating-point numbers up.
        let is_near = |a: u128, b: u128| a.abs_diff(b) as f64 <= 1e-9 * a as f64 + 1.0;
        !matches!((perf, own), (Some(a), Some(b)) if a.0 == b.0 && is_near(a.1, b.1))
    });
    let line = |key: &(String, u32, u32)| {
        let (perf, own) = (perfs.get(key), reported.get(key));
        format!("report of {} {}/{}: perf {perf:?}, ours {own:?}", key.0, key.1, key.2)
    };
    different.take(shown).map(line).collect()
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, pid, tid, ip, event, period, comm, chain } = self;
        write!(f, "{time} {pid}/{tid} {comm:?} {event} {period} {ip:#x} [")?;
        chain.iter().try_for_each(|address| write!(f, " {address:x}"))?;
        write!(f, " ]")
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same(count) => write!(f, "the same {count} samples"),
            Self::Refused(said) => write!(f, "DIFFERENT: ours does not read it: {said}"),
            Self::NotRead(said, ours) => {
                write!(f, "perf does not read it ({said}); ours has {ours} samples")
            }
            Self::Different { perfs, ours, differences } => {
                write!(f, "DIFFERENT: perf has {perfs} samples, ours {ours}")?;
                differences.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_found() {
        let sample = |time, period| Sample { time, period, ..Sample::default() };
        let (a, b) = ([sample(1, 5), sample(2, 5)], [sample(2, 5), sample(1, 5)]);
        assert!(differences(&a, &b, 3).is_empty(), "in whatever order");
        let other = differences(&a, &[sample(1, 5), sample(2, 6)], 3);
        assert_eq!(other.len(), 1);
        let missing = differences(&a, &a[..1], 3);
        assert!(missing[0].starts_with("perf alone: 2 "), "{missing:?}");
        assert!(differences(&a[..1], &a, 3)[0].starts_with("ours alone: 2 "));
        assert_eq!(different_sums(&sums(&a), &sums(&b), 3), Vec::<String>::new());
        assert_eq!(different_sums(&sums(&a), &sums(&a[1..]), 3).len(), 1);
    }
}
