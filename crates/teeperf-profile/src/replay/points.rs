//! Points on the time line: moments that programs mark, values of their counters, their notes.

use super::summary::Summary;
use crate::model::{self, PointKind};
use crate::names::Names;
use crate::warnings::Warnings;
use teeperf_wire::word::point;

/// Most points of a recording, and most bytes of its notes.
const MOST_POINTS: usize = 1 << 20;
const MOST_TEXT: usize = 16 << 20;

/// What stands at a time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    time: u64,
    what: What,
}

/// What it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// Of the name at a site, by the word of a call.
    Named(u32, PointKind),
    Note(String),
}

impl Point {
    /// Of an escape; nothing where it is of a kind that is not known.
    pub(super) fn named(word: u32, kind: u32, time: u64, value: u64) -> Option<Self> {
        let kind = match kind {
            point::MARK => PointKind::Mark,
            point::INTEGER => PointKind::Integer(value.cast_signed()),
            point::REAL => PointKind::Real(f64::from_bits(value)),
            _ => return None,
        };
        Some(Self { time, what: What::Named(word, kind) })
    }

    pub(super) fn time(&self) -> u64 {
        self.time
    }

    pub(super) fn note(time: u64, text: String) -> Self {
        Self { time, what: What::Note(text) }
    }
}

/// Those of all threads, each with process and thread id.
#[derive(Debug, Default)]
pub(crate) struct AllPoints {
    points: Vec<(u32, u32, Point)>,
    text: usize,
    left_out: u64,
}

impl AllPoints {
    /// Adds those of a summary.
    pub(super) fn take(&mut self, process: u32, tid: u32, summary: &mut Summary) {
        for point in summary.points.drain(..) {
            let text = match &point.what {
                What::Note(text) => text.len(),
                What::Named(..) => 0,
            };
            if self.points.len() >= MOST_POINTS || self.text + text > MOST_TEXT {
                self.left_out += 1;
                continue;
            }
            self.text += text;
            self.points.push((process, tid, point));
        }
    }

    /// In order of time, which is counted from `start` on. Processes are told apart by the ids that `pid` knows.
    pub(crate) fn shown(
        mut self,
        names: &mut Names,
        warnings: &mut Warnings,
        ns: impl Fn(u64) -> f64,
        pid: impl Fn(u32) -> u32,
    ) -> Vec<model::Point> {
        if self.left_out > 0 {
            let left_out = self.left_out;
            warnings.add(|| format!("there are more marks, counters and notes than are read: {left_out} are left out"));
        }
        self.points.sort_by_key(|(_, _, point)| point.time);
        let shown = self.points.into_iter().map(|(process, tid, point)| {
            let (name, kind) = match point.what {
                What::Note(text) => (text, PointKind::Note),
                What::Named(word, kind) => (names.name(process, word), kind),
            };
            model::Point { pid: pid(process), tid, at_ns: ns(point.time), name, kind }
        });
        shown.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_values() {
        let kind = |kind, value| match Point::named(2, kind, 1, value).map(|point| point.what) {
            Some(What::Named(2, kind)) => Some(kind),
            None => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(kind(point::MARK, 7), Some(PointKind::Mark));
        assert_eq!(kind(point::INTEGER, u64::MAX), Some(PointKind::Integer(-1)));
        assert_eq!(kind(point::REAL, 0.5_f64.to_bits()), Some(PointKind::Real(0.5)));
        assert_eq!(kind(99, 0), None);
    }

    #[test]
    fn those_beyond_the_most_are_counted() {
        let mut all = AllPoints::default();
        for _ in 0..3 {
            let points = (0..MOST_POINTS as u64 / 2).map(|time| Point::note(time, String::new()));
            all.take(1, 1, &mut Summary { points: points.collect(), ..Summary::default() });
        }
        assert_eq!((all.points.len(), all.left_out), (MOST_POINTS, MOST_POINTS as u64 / 2));
    }
}
