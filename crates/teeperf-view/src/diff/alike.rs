//! Whether two sides of runs can be compared at all: what was recorded otherwise on one of them.

use crate::findings::Finding;
use crate::names::printable;
use crate::units::{self, count, counted};
use std::collections::BTreeSet;
use teeperf_profile::diff::{Diff, Run, Side};
use teeperf_profile::model::{Info, Unit};

/// What a reader must know before believing a difference; warnings first.
pub fn findings(diff: &Diff) -> Vec<Finding> {
    let mut found = Found { diff, list: Vec::new() };
    found.recorded_otherwise();
    found.not_whole();
    found.other_machine();
    found.how_sure();
    found.list.sort_by_key(|finding| !finding.warning);
    found.list
}

struct Found<'a> {
    diff: &'a Diff,
    list: Vec<Finding>,
}

impl Found<'_> {
    fn push(&mut self, warning: bool, what: impl Into<String>, next: &str) {
        self.list.push(Finding { warning, what: what.into(), next: next.into() });
    }

    /// What runs of each side have, where that differs between any two: `tick; cycle`.
    fn differing(&self, of: impl Fn(&Run) -> String) -> Option<(String, String)> {
        let values =
            |side| -> BTreeSet<String> { self.diff.runs.of(side).iter().map(&of).collect() };
        let (before, after) = (values(Side::Before), values(Side::After));
        let text = |values: BTreeSet<String>| {
            let shown: Vec<String> = values.iter().map(|value| printable(value)).collect();
            shown.join("; ")
        };
        (before != after || before.len() > 1).then(|| (text(before), text(after)))
    }

    fn recorded_otherwise(&mut self) {
        let same = "Record both sides in the same way.";
        let all = "everything".to_owned();
        let filter = |run: &Run| match run.info.filters.iter().rfind(|rules| !rules.is_empty()) {
            Some(rules) => rules.join(", "),
            None => all.clone(),
        };
        if let Some((before, after)) = self.differing(filter) {
            let what = format!(
                "Not the same functions were recorded: {before} before, {after} after. Time of what is left out is its \
                 callers', and calls of it are none."
            );
            self.push(true, what, same);
        }
        for (what, of) in [
            ("the clock", &(|run: &Run| run.info.clock.clone()) as &dyn Fn(&Run) -> String),
            ("what was recorded", &|run| {
                match (run.has_graph, run.info.summed) {
                    (true, _) => "calls without paths",
                    (_, true) => "sums (--probe tree)",
                    _ => "single calls",
                }
                .to_owned()
            }),
            ("what times are in", &|run| units::name(run.info.unit).to_owned()),
        ] {
            if let Some((before, after)) = self.differing(of) {
                let what = format!(
                    "Runs differ in {what}: {before} before, {after} after. Times may differ for that alone."
                );
                self.push(true, what, same);
            }
        }
        if let Some((before, after)) = self.differing(|run| arguments(&run.info)) {
            let what = format!("Commands had other arguments: `{before}` before, `{after}` after.");
            self.push(false, what, "");
        }
        if let Some((before, after)) = &self.diff.paired {
            let what = format!(
                "Functions of {} are taken for those of {}, the only modules that are on one side alone.",
                printable(before),
                printable(after)
            );
            self.push(false, what, "");
        }
    }

    fn not_whole(&mut self) {
        let diff = self.diff;
        for (side, when) in [(Side::Before, "before"), (Side::After, "after")] {
            let runs = diff.runs.of(side);
            let sum = |of: fn(&Run) -> u64| runs.iter().map(of).sum::<u64>();
            let lost = sum(|run| run.health.lost);
            if lost > 0 {
                let what = format!(
                    "{} lost {when}: differences of calls up to as many are none.",
                    match lost {
                        1 => "1 call or return was".to_owned(),
                        lost => format!("{} calls or returns were", count(lost)),
                    }
                );
                self.push(true, what, "Record with --on-full wait.");
            }
            if sum(|run| run.health.unopened) > 0 {
                let what = format!(
                    "Recordings {when} begin in the midst of calls: they are parts of runs, or began late."
                );
                self.push(true, what, "Compare parts that did the same work.");
            }
            let is_paused =
                |run: &Run| run.health.gaps.iter().any(|gap| gap.0 == "paused" && gap.1 > 0);
            if runs.iter().any(is_paused) {
                let what =
                    format!("Recording was paused {when}: calls and times meanwhile are missing.");
                self.push(true, what, "");
            }
            let noted: Vec<String> = runs
                .iter()
                .filter(|run| !run.health.warnings.is_empty())
                .map(|run| printable(&run.name))
                .collect();
            if !noted.is_empty() {
                let what = format!("There is more to know of {}.", noted.join(", "));
                self.push(false, what, "`teeperf report` tells it.");
            }
        }
        let ended = |run: &Run| match (run.info.signal, run.info.exit_status) {
            (Some(signal), _) => format!("signal {signal}"),
            (_, Some(status)) => format!("exit status {status}"),
            _ => "not known".into(),
        };
        if let Some((before, after)) = self.differing(ended) {
            let what = format!("Programs did not end alike: {before} before, {after} after.");
            self.push(true, what, "");
        }
    }

    fn other_machine(&mut self) {
        let of = |run: &Run| format!("{}, {}", run.info.processor, run.info.machine);
        if let Some((before, after)) = self.differing(of) {
            let what = format!("Processors differ: {before} before, {after} after.");
            self.push(
                true,
                what,
                "Only counts of calls can be compared, or shares, with --normalize.",
            );
        }
    }

    fn how_sure(&mut self) {
        let diff = self.diff;
        let Some(spread) = diff.spread else { return };
        let part = spread.relative * 100.0;
        let runs = diff.runs.before.len() + diff.runs.after.len();
        if spread.is_measured {
            let what = format!(
                "Runs of a side usually differ by {part:.1} % in a function's time, beside what ticks make."
            );
            self.push(false, what, "");
        } else {
            let (what, next) = match runs {
                2 => (
                    format!("One run a side does not tell how much runs differ: {part:.1} % is allowed for (--noise)."),
                    "Three runs or more a side tell it.",
                ),
                _ => (
                    "Too few functions have time enough to tell how much runs usually differ: each is judged by its own \
                     runs alone."
                        .into(),
                    "",
                ),
            };
            self.push(false, what, next);
        }
        if diff.is_normalized {
            self.push(
                false,
                "Times are as if all runs had taken as long (--normalize): shares are compared.",
                "",
            );
        }
        if diff.unit == Unit::Counts {
            self.push(
                false,
                "How fast the clock went is not known: times are what it counted.",
                "",
            );
        }
    }
}

/// Words of the command but for the program.
fn arguments(info: &Info) -> String {
    info.command.get(1..).unwrap_or_default().join(" ")
}

/// `1 run → 5 runs`.
pub(super) fn runs(diff: &Diff) -> String {
    let of = |side| counted(diff.runs.of(side).len() as u64, "run");
    format!("{} → {}", of(Side::Before), of(Side::After))
}
