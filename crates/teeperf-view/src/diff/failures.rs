//! Why a condition is met, or cannot be answered, in words.

use super::{signed_percent, told};
use crate::names::printable;
use crate::units;
use teeperf_profile::diff::condition::{Condition, Kind, Met};
use teeperf_profile::diff::outcome::Unsure;
use teeperf_profile::diff::{Diff, Figure};

/// Most functions named for one condition.
const MOST: usize = 10;

/// A line for each function that meets it.
pub fn of(condition: &Condition, met: &[Met], diff: &Diff) -> Vec<String> {
    let mut lines: Vec<String> = met
        .iter()
        .take(MOST)
        .map(|met| {
            let name = met.function.as_deref().map_or("all functions".into(), printable);
            let mut figures: Vec<String> = met
                .figures
                .iter()
                .map(|(kind, figure)| figure_in_words(*kind, figure, diff))
                .collect();
            // Two clauses may be of one figure.
            figures.dedup();
            format!("failed: {}: {name}: {}", condition.text, figures.join("; "))
        })
        .collect();
    if met.len() > MOST {
        lines.push(format!("failed: {}: and {} more", condition.text, met.len() - MOST));
    }
    lines
}

/// Why it cannot be told whether it is met.
pub fn unsure(condition: &Condition, found: &[Unsure], diff: &Diff) -> String {
    let runs = diff.runs.before.len().min(diff.runs.after.len());
    let amount = |unsure: &Unsure, amount: f64| match (unsure.is_percent, unsure.kind) {
        (true, _) => units::percent_inline(amount.abs()),
        (false, Kind::Calls) => units::count(amount.abs().round() as u64),
        (false, _) => units::time_inline(diff.unit, amount.abs()),
    };
    let reasons: Vec<String> = found
        .iter()
        .map(|unsure| {
            let whose = unsure.function.as_deref().map_or(String::new(), |name| {
                format!("of {} ", printable(name))
            });
            let seen = amount(unsure, unsure.margin);
            let asked = amount(unsure, unsure.asked);
            match runs {
                1 => format!("{whose}with one run a side no change below {seen} is seen, and it asks for {asked}"),
                _ => format!("{whose}these runs differ among themselves by so much that no change below {seen} is seen, and it asks for {asked}"),
            }
        })
        .collect();
    format!(
        "cannot tell: {}: {}; next: more runs a side, a machine that does less beside them, a larger amount, or --unsure pass",
        condition.text,
        reasons.join("; ")
    )
}

fn figure_in_words(kind: Kind, figure: &Figure, diff: &Diff) -> String {
    match kind {
        Kind::SelfTime => format!("self {}", told(diff.unit, figure)),
        Kind::Total => format!("total {}", told(diff.unit, figure)),
        Kind::Calls => {
            let count = |calls: f64| units::count(calls.round() as u64);
            format!(
                "calls {} → {}, {}",
                count(figure.before),
                count(figure.after),
                signed_percent(figure)
            )
        }
    }
}
