//! Whether shares are true where it is known what they are.

use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::{Ran, median};
use crate::bench::report::Report;
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "known-work",
    title: "Known work of 20 ns to 10 µs a call",
    method: "`bench/programs/known_work.c`: functions that do a known amount of work a call, \
             mixed. The truth is each one's time alone in the unhooked program, the least of \
             nine runs, times the calls made. With samples, as by default, the functions' shares in \
             the time of all of them are compared, each the median of nine rounds, in points of a \
             hundred. With a counter as clock, which tells how long single calls are, the mean \
             length of a call is told: it has a part of the hooks in it.",
    measure,
};

const WORK: [(&str, f64); 4] =
    [("work_20ns", 5000.0), ("work_100ns", 1000.0), ("work_1us", 100.0), ("work_10us", 10.0)];

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let rounds: Vec<Outcome> = (0..lab.rounds(9)).map(|_| shares(lab)).collect::<Result<_>>()?;
    let outcome = Outcome::of_all(&rounds);
    Ok(vec![
        Row::new("shares", "shares, by samples", outcome.told()).beside(outcome.truth()).limit(
            Limit::AtMost(1.0),
            Some(outcome.worst()),
            "points",
        ),
        lengths(lab, "cycle")?,
        lengths(lab, "ordered")?,
    ])
}

/// How long the counter says that a call of each function is.
fn lengths(lab: &Lab, clock: &str) -> Result<Row> {
    let (mut truth, mut seen) = ([f64::MAX; WORK.len()], [const { Vec::new() }; WORK.len()]);
    for _ in 0..lab.rounds(3) {
        let (alone, report) = run(lab, &["--clock", clock])?;
        for (at, (name, _)) in WORK.iter().enumerate() {
            truth[at] = truth[at].min(alone.number(name)?);
            let function = report.function(name)?;
            seen[at].push(function.own[1] / function.calls as f64);
        }
    }
    let told = |lengths: &[f64]| {
        let told = lengths.iter().map(|length| format!("{} ns", digits(*length)));
        told.collect::<Vec<_>>().join(", ")
    };
    let seen = seen.map(|lengths| median(&lengths));
    Ok(Row::new(clock, &format!("lengths of calls, by {clock}"), told(&seen))
        .beside(format!("truth {}", told(&truth))))
}

struct Outcome {
    names: Vec<&'static str>,
    /// Nanoseconds of each function alone, times its calls.
    work: Vec<f64>,
    /// Shares in points.
    seen: Vec<f64>,
}

impl Outcome {
    /// Of each function the least time alone, which is the least disturbed, and the median share.
    fn of_all(rounds: &[Self]) -> Self {
        let least = |at: usize| rounds.iter().map(|round| round.work[at]).fold(f64::MAX, f64::min);
        let share =
            |at: usize| median(&rounds.iter().map(|round| round.seen[at]).collect::<Vec<_>>());
        let names = rounds[0].names.clone();
        Self {
            work: (0..names.len()).map(least).collect(),
            seen: (0..names.len()).map(share).collect(),
            names,
        }
    }

    fn true_shares(&self) -> Vec<f64> {
        let all: f64 = self.work.iter().sum();
        self.work.iter().map(|own| 100.0 * own / all).collect()
    }

    fn worst(&self) -> f64 {
        let truth = self.true_shares();
        let pairs = self.seen.iter().zip(&truth);
        pairs.map(|(seen, truth)| (seen - truth).abs()).fold(0.0, f64::max)
    }

    fn told(&self) -> String {
        let pairs = self.names.iter().zip(&self.seen);
        let told = pairs.map(|(name, seen)| format!("{name} {} %", digits(*seen)));
        told.collect::<Vec<_>>().join(", ")
    }

    fn truth(&self) -> String {
        let told = self.true_shares();
        let told = told.iter().map(|share| format!("{} %", digits(*share)));
        format!("truth {}", told.collect::<Vec<_>>().join(", "))
    }
}

fn shares(lab: &Lab) -> Result<Outcome> {
    let (alone, report) = run(lab, &[])?;
    let work = WORK.iter().map(|(name, calls)| Ok(alone.number(name)? * calls));
    let work = work.collect::<Result<_>>()?;
    let names: Vec<&str> = WORK.iter().map(|(name, _)| *name).collect();
    let seen = report.shares(&names)?;
    Ok(Outcome { names, work, seen })
}

/// Each function alone in the unhooked program, and the report of a recorded mix.
fn run(lab: &Lab, options: &[&str]) -> Result<(Ran, Report)> {
    let source = "programs/known_work.c";
    let [plain, ours] = [Hooks::None, Hooks::Late].map(|hooks| lab.program(hooks, source, &[]));
    let alone = lab.run(Command::new(plain?).arg("truth"))?;
    let recording = lab.scratch("known_work.teeperf");
    let mut record = lab.record(&recording, options);
    lab.run(record.arg(ours?).args(["mix", lab.size("2", "0.5")]))?;
    Ok((alone, Report::of(lab, &recording)?))
}
