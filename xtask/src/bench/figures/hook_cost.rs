//! Whether what is left of real programs' time, hooks' cost taken off, is what they take without.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::{median, median_bounds, outside, ratio};
use crate::bench::report::Report;
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "hook-cost",
    title: "What is left of lua and sqlite3 when the hooks' cost is taken off",
    method: "The sum of all functions' own times in the report, bounds in brackets, beside the time \
             that the unhooked program takes, in turn. Nothing but calls of a few nanoseconds is where \
             that is hardest: whether hooks' work is done beside the program's own cannot be seen.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let script = lab.bench_file("programs/work.lua").display().to_string();
    let size = lab.size("20", "5");
    let sqlite: Vec<String> = ["--size", size, "--memdb"].map(String::from).into();
    let mut rows = of(lab, "lua", Lab::lua, &[script, "1".into()])?;
    rows.extend(of(lab, "sqlite3", Lab::speedtest, &sqlite)?);
    Ok(rows)
}

fn of(
    lab: &Lab,
    name: &str,
    build: fn(&Lab, Hooks) -> Result<PathBuf>,
    arguments: &[String],
) -> Result<Vec<Row>> {
    let [plain, ours] = [Hooks::None, Hooks::Teeperf].map(|hooks| build(lab, hooks));
    let (plain, ours) = (plain?, ours?);
    let recording = lab.scratch(&format!("{name}.teeperf"));
    let (mut truth, mut left) = (Vec::new(), Vec::new());
    for _ in 0..lab.rounds(7) {
        truth.push(lab.run(Command::new(&plain).args(arguments))?.seconds);
        lab.run(lab.record(&recording, &[]).arg(&ours).args(arguments))?;
        let report = Report::of(lab, &recording)?;
        let sum =
            |bound: usize| report.functions.iter().map(|function| function.own[bound]).sum::<f64>();
        left.push([0, 1, 2].map(|bound| sum(bound) / 1e9));
    }
    let bounds = median_bounds(&left);
    let told: Vec<f64> = left.iter().map(|bounds| bounds[1]).collect();
    let [low, middle, high] = bounds.map(digits);
    let seconds = median(&truth);
    let ours = format!("{middle} s ({low} to {high})");
    let beside = format!("unhooked {} s", digits(seconds));
    Ok(vec![
        Row::new(&format!("{name}-told"), &format!("{name}, beside unhooked"), ours)
            .beside(beside.clone())
            .limit(Limit::Told, Some(ratio(&told, &truth)), "×"),
        Row::new(
            &format!("{name}-bounds"),
            &format!("{name}, outside of the bounds by"),
            String::new(),
        )
        .beside(beside)
        .limit(Limit::AtMost(0.0), Some(outside(bounds, seconds)), "s"),
    ])
}
