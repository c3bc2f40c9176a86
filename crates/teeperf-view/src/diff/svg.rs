//! The differential flame graph as a picture (Gregg, "Differential flame graphs", 2014): widths of one side, red where
//! it takes longer than before, blue where it takes less.

use super::lanes::Lanes;
use super::{alike, signed, told};
use crate::palette;
use crate::svg::{self, Tone};
use std::io::{self, Write};
use teeperf_profile::diff::{Diff, Figure, Path, Side};

/// What red, blue and grey mean.
pub(super) const LEGEND: &str =
    "red: more self time than before; blue: less; grey: no more different than noise explains";

/// Draws the call paths as wide as they are on one side.
pub fn write(diff: &Diff, widths: Side, out: &mut impl Write) -> io::Result<()> {
    let lanes = Lanes::of(diff, usize::MAX);
    let difference = |path: &Path| path.sums.after.self_ns - path.sums.before.self_ns;
    let most = lanes.paths.iter().map(|path| difference(path).abs()).fold(0.0, f64::max);
    let tones = lanes.paths.iter().map(|path| {
        let (before, after) = (&path.sums.before, &path.sums.after);
        let is_told = diff.tells_apart(before.self_ns, after.self_ns);
        let part = if is_told && most > 0.0 { difference(path) / most } else { 0.0 };
        let of = |before, after| {
            let figure = Figure { before, after, ..Figure::default() };
            format!(
                "{} ({})",
                signed(diff.unit, figure.difference()),
                super::signed_percent(&figure)
            )
        };
        Tone {
            colour: palette::difference(part).to_hex(),
            said: format!(
                "self {}{}, total {}",
                of(before.self_ns, after.self_ns),
                if is_told { "" } else { ", within noise" },
                of(before.total_ns, after.total_ns)
            ),
        }
    });
    let Some(last) = diff.runs.of(widths).last().or(diff.runs.after.last()) else { return Ok(()) };
    let side = match widths {
        Side::Before => "widths of before",
        Side::After => "widths of after",
    };
    let options = svg::Options {
        title: format!(
            "{}: {} ({})",
            last.info.command.join(" "),
            told(diff.unit, &diff.whole),
            alike::runs(diff)
        ),
        note: format!("{side} · {LEGEND}"),
        tones: tones.collect(),
        ..svg::Options::default()
    };
    svg::write(&lanes.tree(widths), &lanes.functions, &last.info, &options, out)
}
