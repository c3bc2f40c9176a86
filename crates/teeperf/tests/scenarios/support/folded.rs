//! What `teeperf flame --folded` and `teeperf report` say of samples.

use super::run::{run, teeperf};
use std::path::Path;

/// Call paths of an event with their weight, of all processes and threads.
pub(crate) fn folded(file: &Path, event: &str) -> Vec<(String, u64)> {
    let mut flame = teeperf();
    flame.args(["flame", "--folded", "--event", event, "-o", "-"]).arg(file);
    let outcome = run(&mut flame);
    outcome.expect_code(0);
    let lines = outcome.stdout.lines().filter_map(|line| {
        let (path, weight) = line.rsplit_once(' ')?;
        let functions = path.split_once(';')?.1;
        Some((functions.to_owned(), weight.parse().unwrap()))
    });
    lines.collect()
}

/// Percent of the weight in paths that fit.
pub(crate) fn percent(paths: &[(String, u64)], fits: impl Fn(&str) -> bool) -> f64 {
    let all: u64 = paths.iter().map(|(_, weight)| weight).sum();
    let fitting = paths.iter().filter(|(path, _)| fits(path));
    100.0 * fitting.map(|(_, weight)| weight).sum::<u64>() as f64 / all.max(1) as f64
}

/// The report as people read it.
pub(crate) fn report(file: &Path) -> String {
    let mut report = teeperf();
    report.arg("report").arg(file);
    run(&mut report).expect_code(0).stdout.clone()
}
