//! What is different between two sides of runs: as text, JSON, CSV, folded stacks with two counts, a picture and a
//! page. docs/diff.md tells what is a change and what is noise, docs/json.md what is in the JSON.

mod alike;
pub mod csv;
pub mod failures;
pub mod folded;
pub mod json;
mod lanes;
pub mod page;
pub mod svg;
pub mod text;

pub use alike::findings;

use crate::units;
use teeperf_profile::diff::{Change, Diff, Figure, Presence};
use teeperf_profile::model::{Function, Unit};

/// What functions are sorted by: the size of the difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Of self time.
    #[default]
    SelfTime,
    /// Of the total.
    Total,
    /// Of the number of calls.
    Calls,
    /// Not so, but by name.
    Name,
}

/// Changes in the order that is asked for.
pub fn sorted(diff: &Diff, sort: Sort) -> Vec<&Change> {
    let mut changes: Vec<&Change> = diff.changes.iter().collect();
    let size = |of: fn(&Change) -> &Figure| {
        move |a: &&Change, b: &&Change| {
            of(b).difference().abs().total_cmp(&of(a).difference().abs())
        }
    };
    match sort {
        // As they are.
        Sort::SelfTime => {}
        Sort::Total => changes.sort_by(size(|change| &change.total)),
        Sort::Calls => changes.sort_by(size(|change| &change.calls)),
        Sort::Name => changes.sort_by_key(|change| {
            let function = function(diff, change);
            (&function.name, &function.module)
        }),
    }
    changes
}

fn function<'a>(diff: &'a Diff, change: &Change) -> &'a Function {
    &diff.functions[change.function.0 as usize]
}

fn presence(presence: Presence) -> &'static str {
    match presence {
        Presence::Both => "both",
        Presence::New => "new",
        Presence::Gone => "gone",
    }
}

/// A difference with its sign: `+12.34 ms`.
fn signed(unit: Unit, difference: f64) -> String {
    let sign = if difference < 0.0 { '-' } else { '+' };
    format!("{sign}{}", units::time_inline(unit, difference.abs()))
}

/// A part with its sign, in percent: `+12.3 %`; what was nothing is new.
fn signed_percent(figure: &Figure) -> String {
    match figure.relative() {
        Some(part) if part.abs() < 10.0 => format!("{:+.1} %", part * 100.0),
        Some(part) => format!("{:+.0} %", part * 100.0),
        None if figure.after > 0.0 => "new".into(),
        None => "=".into(),
    }
}

/// A figure in running text: `1.234 s → 1.100 s, -10.9 % ± 2.1 %`, or that it is within noise.
fn told(unit: Unit, figure: &Figure) -> String {
    let times = format!(
        "{} → {}",
        units::time_inline(unit, figure.before),
        units::time_inline(unit, figure.after)
    );
    let margin = match figure.before {
        before if before > 0.0 => format!(" ± {:.1} %", figure.margin / before * 100.0),
        _ => String::new(),
    };
    let words = if figure.is_change { "" } else { ": within noise" };
    format!("{times}, {}{margin}{words}", signed_percent(figure))
}
