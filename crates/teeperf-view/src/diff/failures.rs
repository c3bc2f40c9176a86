//! Why a condition is met, in words.

use super::{signed_percent, told};
use crate::names::printable;
use crate::units;
use teeperf_profile::diff::condition::{Condition, Kind};
use teeperf_profile::diff::{Diff, Figure};

/// Most functions named for one condition.
const MOST: usize = 10;

/// A line for each function that meets it; none where it is not met.
pub fn of(condition: &Condition, diff: &Diff) -> Vec<String> {
    let met = condition.met(diff);
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
