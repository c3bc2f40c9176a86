//! Whether shares are true where it is known what they are.

use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::{Ran, median, median_bounds, outside};
use crate::bench::report::Report;
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "known-work",
    title: "Known work of 5 ns to 10 µs a call",
    method: "`bench/programs/known_work.c`: functions that do a known amount of work a call, \
             mixed. The truth is each one's time alone in the unhooked program, the least of \
             nine runs, times the calls made. Compared are the functions' shares in the time of \
             all of them, each the median of nine rounds, in points of a hundred. The function of \
             5 ns need only have its true time a call within the bounds that the report prints, in \
             each of nine rounds; reached is what the worst round is outside of them by.",
    measure,
};

const LONG: [(&str, f64); 4] =
    [("work_20ns", 5000.0), ("work_100ns", 1000.0), ("work_1us", 100.0), ("work_10us", 10.0)];
const SHORT: &str = "work_5ns";

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for clock in ["tick", "cycle", "ordered"] {
        let rounds: Vec<Outcome> =
            (0..lab.rounds(9)).map(|_| shares(lab, clock)).collect::<Result<_>>()?;
        let outcome = Outcome::of_all(&rounds);
        let id = format!("long-{clock}");
        rows.push(
            Row::new(&id, &format!("{clock}: 20 ns to 10 µs"), outcome.told())
                .beside(outcome.truth())
                .limit(Limit::AtMost(1.0), Some(outcome.worst()), "points"),
        );
        rows.push(short(lab, clock)?);
    }
    Ok(rows)
}

/// Whether the time of a very short call lies within the bounds that are printed for it.
fn short(lab: &Lab, clock: &str) -> Result<Row> {
    let (mut truth, mut seen) = (f64::MAX, Vec::new());
    for _ in 0..lab.rounds(9) {
        let (alone, report) = run(lab, clock, "short")?;
        truth = truth.min(alone.number(SHORT)?);
        let function = report.function(SHORT)?;
        seen.push(function.own.map(|own| own / function.calls as f64));
    }
    let worst = seen.iter().map(|&own| outside(own, truth)).fold(0.0, f64::max);
    let [low, told, high] = median_bounds(&seen).map(digits);
    let what = format!("{clock}: 5 ns a call, outside of the bounds by");
    Ok(Row::new(&format!("short-{clock}"), &what, format!("{told} ns ({low} to {high})"))
        .beside(format!("truth {} ns", digits(truth)))
        .limit(Limit::AtMost(0.0), Some(worst), "ns"))
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

fn shares(lab: &Lab, clock: &str) -> Result<Outcome> {
    let (alone, report) = run(lab, clock, "long")?;
    let work = LONG.iter().map(|(name, calls)| Ok(alone.number(name)? * calls));
    let work = work.collect::<Result<_>>()?;
    let names: Vec<&str> = LONG.iter().map(|(name, _)| *name).collect();
    let seen = report.shares(&names)?;
    Ok(Outcome { names, work, seen })
}

/// Each function alone in the unhooked program, and the report of a recorded mix.
fn run(lab: &Lab, clock: &str, mix: &str) -> Result<(Ran, Report)> {
    let source = "programs/known_work.c";
    let [plain, ours] = [Hooks::None, Hooks::Late].map(|hooks| lab.program(hooks, source, &[]));
    let alone = lab.run(Command::new(plain?).arg("truth"))?;
    let recording = lab.scratch("known_work.teeperf");
    let mut record = lab.record(&recording, &["--clock", clock]);
    lab.run(record.arg(ours?).args([mix, lab.size("2", "0.5")]))?;
    Ok((alone, Report::of(lab, &recording)?))
}
