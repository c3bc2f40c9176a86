//! The differential flame graph as one HTML page that opens offline: widths of either side, colours of what changed.

use super::lanes::Lanes;
use super::{alike, told};
use crate::page::{self, Compared, Page};
use crate::prune::Pruned;
use crate::{names, units};
use std::io::{self, Write};
use teeperf_profile::diff::{Diff, Run, Side};
use teeperf_profile::model::Profile;

/// Writes the page, which opens with the widths of one side.
pub fn write(
    diff: &Diff,
    widths: Side,
    options: &page::Options,
    out: &mut impl Write,
) -> io::Result<()> {
    // Both sides have all paths of either.
    let Lanes { functions, paths, finding } = Lanes::of(diff, options.most_paths / 2);
    let lanes = Lanes { functions: Vec::new(), paths, finding: None };
    let threads = [Side::After, Side::Before].map(|side| lanes.thread(side));
    let info = diff.runs.after.last().map(|run| run.info.clone()).unwrap_or_default();
    let profile = Profile { info, functions, threads: threads.into(), ..Profile::default() };
    let runs = |side| diff.runs.of(side).len();
    let spread = diff.spread.map_or(0.0, |spread| spread.relative);
    let periods = |side| {
        let runs: &Vec<Run> = diff.runs.of(side);
        runs.iter().map(|run| run.info.period_ns).fold(0.0, f64::max)
    };
    let page = Page {
        profile: &profile,
        pruned: &Pruned::default(),
        bottom_up: options.bottom_up,
        findings: finding.into_iter().chain(alike::findings(diff)).collect(),
        about: about(diff),
        compared: Some(Compared {
            whole: told(diff.unit, &diff.whole),
            runs: [runs(Side::After), runs(Side::Before)],
            periods: [periods(Side::After), periods(Side::Before)],
            spread,
            first: usize::from(widths == Side::Before),
        }),
    };
    page.write(out)
}

fn about(diff: &Diff) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Time", told(diff.unit, &diff.whole))];
    for (side, what) in [(Side::Before, "Before"), (Side::After, "After")] {
        facts.extend(diff.runs.of(side).iter().map(|run| {
            let time = units::time_inline(run.info.unit, run.time_ns);
            (
                what,
                names::printable(&format!(
                    "{}: {time}, {}",
                    run.name,
                    crate::command::line(&run.info.command)
                )),
            )
        }));
    }
    facts
}
