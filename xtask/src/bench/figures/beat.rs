//! A program in step with the tick: the case in which a strictly periodic clock lies.

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::median;
use crate::bench::report::Report;
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "beat",
    title: "A program that beats at the tick's period",
    method: "`bench/programs/beat.c` repeats three phases of 21, 21 and 58 % of a period, each in \
             a function of its own, for periods around that of the tick, 100 µs; the truth is what the \
             program saw of its own clock. The tick alone tells, without samples. Reached is the largest error of the three, in \
             points, the median of three rounds; the shares told are those of the last.",
    measure,
};

const NAMES: [&str; 3] = ["first", "second", "third"];

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for period in ["50", "100", "200"] {
        let mut worst = Vec::new();
        let mut told = String::new();
        for _ in 0..lab.rounds(3) {
            let (error, shares) = error(lab, period)?;
            worst.push(error);
            told = shares;
        }
        rows.push(
            Row::new(&format!("beat-{period}"), &format!("beats every {period} µs"), told).limit(
                Limit::AtMost(2.0),
                Some(median(&worst)),
                "points",
            ),
        );
    }
    Ok(rows)
}

fn error(lab: &Lab, period: &str) -> Result<(f64, String)> {
    let program = lab.program(Hooks::Late, "programs/beat.c", &[])?;
    let recording = lab.scratch("beat.teeperf");
    let mut record = lab.record(&recording, &["--no-cpu-samples", "--period", "100us"]);
    let ran = lab.run(record.arg(program).args([period, lab.size("3", "0.5")]))?;
    let shares = Report::of(lab, &recording)?.shares(&NAMES)?;
    let mut worst = 0f64;
    let mut told = Vec::new();
    for (name, share) in NAMES.iter().zip(shares) {
        let truth = ran.number(name)?;
        worst = worst.max((share - truth).abs());
        told.push(format!("{name} {} % (truth {} %)", digits(share), digits(truth)));
    }
    Ok((worst, told.join(", ")))
}
