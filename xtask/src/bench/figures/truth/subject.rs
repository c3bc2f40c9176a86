//! A program that is judged: run without hooks for the truth and recorded with them, in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::compare::{FunctionRun, compare, wilson};
use super::kind::Kind;
use super::perf::{Stacks, TRUE_HZ, USUAL_HZ, plain};
use super::task::Task;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::median;
use crate::bench::report::Report;

/// Who tells the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The program's own clock, in a run without hooks.
    Clock,
    /// The same in the very run that is recorded: of calls so long that hooks are nothing.
    SameRun,
    /// perf, of a run without hooks.
    Perf,
}

/// A program with all that is to be known for running it.
pub(super) struct Subject<'a> {
    pub(super) id: String,
    pub(super) what: String,
    pub(super) told: Told,
    /// Whether the sum of its functions must be its CPU time.
    pub(super) judges_cpu: bool,
    pub(super) rounds: usize,
    /// Recorded runs in each round.
    pub(super) repeats: usize,
    /// Name of the program's file.
    pub(super) file: String,
    pub(super) kinds: Vec<Kind>,
    /// How to run a build with these hooks.
    pub(super) task: Box<dyn Fn(Hooks) -> Result<Task> + 'a>,
}

/// What came of a subject with one kind of hooks.
pub(super) struct Outcome {
    pub(super) id: String,
    pub(super) what: String,
    pub(super) kind: Kind,
    /// Functions of each recorded run.
    pub(super) runs: Vec<Vec<FunctionRun>>,
    /// Where it is judged: how far CPU time told is off in each run, percent.
    pub(super) cpu: Vec<f64>,
}

/// What a run told.
struct Recorded {
    profile: Profile,
    /// By the program's clock meanwhile.
    clock: BTreeMap<String, f64>,
}

enum Profile {
    /// Own time by function, nanoseconds: least, shown, most.
    Times(BTreeMap<String, [f64; 3]>),
    /// Of no hooks, and so of no functions yet.
    Samples(Stacks),
}

/// The truth for one kind of hooks.
struct Truth {
    /// Time by function, nanoseconds.
    own: BTreeMap<String, f64>,
    /// Whether names are those of [`plain`].
    is_plain: bool,
}

/// Runs it without and with hooks, by turns.
pub(super) fn outcomes(lab: &Lab, subject: &Subject<'_>) -> Result<Vec<Outcome>> {
    let mut clocks = Vec::new();
    let mut stacks = Stacks::default();
    let mut recorded: Vec<(Kind, Vec<Recorded>)> =
        subject.kinds.iter().map(|kind| (*kind, Vec::new())).collect();
    let rounds = lab.rounds(subject.rounds);
    let plain = (subject.task)(Hooks::None)?;
    for round in 0..rounds {
        match subject.told {
            Told::Clock => clocks.push(clock(&plain.run(lab)?)?),
            Told::Perf => {
                let hz = TRUE_HZ[round % TRUE_HZ.len()];
                stacks.sample(lab, hz, &plain, &subject.file)?;
            }
            Told::SameRun => {}
        }
        for (kind, runs) in &mut recorded {
            if round >= kind.rounds() {
                continue;
            }
            let task = (subject.task)(kind.hooks())?;
            for _ in 0..subject.repeats {
                runs.push(record(lab, subject, *kind, &task)?);
            }
        }
    }
    let functions = functions(&recorded);
    let outcome = |(kind, runs): (Kind, Vec<Recorded>)| {
        let truth = match subject.told {
            Told::Clock => Some(Truth { own: medians(&clocks), is_plain: false }),
            Told::Perf => {
                let own = &functions[usize::from(kind == Kind::Late)];
                Some(by_perf(&stacks, own, rounds))
            }
            Told::SameRun => None,
        };
        judge(subject, kind, truth, runs)
    };
    recorded.into_iter().map(outcome).collect()
}

/// Names of all functions that hooks of the source, and late ones, were seen in.
fn functions(recorded: &[(Kind, Vec<Recorded>)]) -> [BTreeSet<String>; 2] {
    [Kind::Source, Kind::Late].map(|wanted| {
        let runs = recorded.iter().filter(|(kind, _)| *kind == wanted).flat_map(|(_, runs)| runs);
        let names = runs.filter_map(|run| match &run.profile {
            Profile::Times(own) => Some(own.keys()),
            Profile::Samples(_) => None,
        });
        names.flatten().map(|name| plain(name)).collect()
    })
}

fn record(lab: &Lab, subject: &Subject<'_>, kind: Kind, task: &Task) -> Result<Recorded> {
    if kind == Kind::Perf {
        let mut stacks = Stacks::default();
        let out = stacks.sample(lab, USUAL_HZ, task, &subject.file)?;
        return Ok(Recorded { profile: Profile::Samples(stacks), clock: clock(&out)? });
    }
    let recording = lab.scratch("truth.teeperf");
    let out = task.record(lab, lab.record(&recording, &["--force"]))?;
    let report = Report::with(lab, &recording, &["--fold-unhooked"])?;
    std::fs::remove_file(&recording)?;
    ensure!(report.lost == 0, "{}: {} events lost", subject.id, report.lost);
    let mut own: BTreeMap<String, [f64; 3]> = BTreeMap::new();
    for function in report.functions {
        add(&mut own, function.name, function.own);
    }
    Ok(Recorded { profile: Profile::Times(own), clock: clock(&out)? })
}

fn add(sums: &mut BTreeMap<String, [f64; 3]>, name: String, own: [f64; 3]) {
    let sum = sums.entry(name).or_default();
    *sum = [0, 1, 2].map(|bound| sum[bound] + own[bound]);
}

/// `truth NAME NANOSECONDS` of what a program printed.
fn clock(out: &str) -> Result<BTreeMap<String, f64>> {
    let lines = out.lines().filter_map(|line| line.strip_prefix("truth "));
    let entry = |line: &str| {
        let (name, ns) = line.rsplit_once(' ').with_context(|| format!("truth {line}"))?;
        Ok((name.to_owned(), ns.parse().with_context(|| format!("truth {line}"))?))
    };
    lines.map(entry).collect()
}

/// `cpu NANOSECONDS` of what a program printed.
pub(in crate::bench::figures) fn cpu(out: &str) -> Result<f64> {
    let told = out.lines().find_map(|line| line.strip_prefix("cpu "));
    told.and_then(|ns| ns.parse().ok()).with_context(|| format!("no cpu time in: {out}"))
}

/// CPU time of a run without hooks, nanoseconds.
pub(super) fn cpu_of(lab: &Lab, task: &Task) -> Result<f64> {
    cpu(&task.run(lab)?)
}

/// The median of each function.
fn medians(rounds: &[BTreeMap<String, f64>]) -> BTreeMap<String, f64> {
    let names = rounds.iter().flat_map(BTreeMap::keys);
    let of = |name: &String| {
        median(&rounds.iter().filter_map(|round| round.get(name).copied()).collect::<Vec<_>>())
    };
    names.map(|name| (name.clone(), of(name))).collect()
}

/// Time by the innermost function that was recorded, of one run on average.
fn by_perf(stacks: &Stacks, hooked: &BTreeSet<String>, rounds: usize) -> Truth {
    let mut own = stacks.by_function(hooked);
    for samples in own.values_mut() {
        *samples *= 1e9 / f64::from(TRUE_HZ[0]) / rounds as f64;
    }
    // Functions that perf never saw have no time.
    for name in hooked {
        own.entry(name.clone()).or_default();
    }
    Truth { own, is_plain: true }
}

/// Samples as times of these functions, whose names are as the truth has them.
fn times(stacks: &Stacks, truth: &BTreeMap<String, f64>) -> BTreeMap<String, [f64; 3]> {
    let parts = truth.keys().flat_map(|name| name.split('+'));
    let names: BTreeMap<String, &str> = parts.map(|part| (plain(part), part)).collect();
    let samples = stacks.by_function(&names.keys().cloned().collect());
    let all: f64 = samples.values().sum();
    let time = |count: f64| wilson(count / all, all).map(|s| s * all * 1e9 / f64::from(USUAL_HZ));
    let of = |(plain, name): (String, &str)| {
        (name.to_owned(), time(samples.get(&plain).copied().unwrap_or_default()))
    };
    names.into_iter().map(of).collect()
}

fn judge(
    subject: &Subject<'_>,
    kind: Kind,
    truth: Option<Truth>,
    recorded: Vec<Recorded>,
) -> Result<Outcome> {
    let mut outcome = Outcome {
        id: subject.id.clone(),
        what: subject.what.clone(),
        kind,
        runs: Vec::new(),
        cpu: Vec::new(),
    };
    for run in recorded {
        let (truth, is_plain) = match &truth {
            Some(truth) => (&truth.own, truth.is_plain),
            None => (&run.clock, false),
        };
        let told = match run.profile {
            Profile::Samples(stacks) => times(&stacks, truth),
            Profile::Times(own) => {
                let mut told = BTreeMap::new();
                for (name, own) in own {
                    add(&mut told, if is_plain { plain(&name) } else { name }, own);
                }
                told
            }
        };
        let all: f64 = truth.values().sum();
        ensure!(all > 0.0, "{}: nothing is true of it", subject.id);
        let functions = compare(truth, &told, all / 1e6);
        if subject.judges_cpu {
            let parts = truth.keys().flat_map(|name| name.split('+'));
            let sum: f64 = parts.filter_map(|part| told.get(part)).map(|own| own[1]).sum();
            outcome.cpu.push(100.0 * (sum / all - 1.0).abs());
        }
        outcome.runs.push(functions);
    }
    Ok(outcome)
}

/// Where a program of ours lies, below `bench/`.
pub(super) fn source(lab: &Lab, file: &str) -> PathBuf {
    lab.bench_file("truth").join(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_tell_the_truth_line_by_line() {
        let out = "truth a 10\ntruth <A as B>::c 20\nother\ncpu 35\n";
        let truth = clock(out).unwrap();
        assert_eq!(truth["a"], 10.0);
        assert_eq!(truth["<A as B>::c"], 20.0);
        assert_eq!(truth.len(), 2);
        assert_eq!(cpu(out).unwrap(), 35.0);
        assert!(clock("truth a b").is_err());
        assert!(cpu("nothing").is_err());
    }

    #[test]
    fn truth_is_the_median_of_rounds() {
        let round = |a| BTreeMap::from([("a".to_owned(), a)]);
        assert_eq!(medians(&[round(1.0), round(9.0), round(2.0)])["a"], 2.0);
    }
}
