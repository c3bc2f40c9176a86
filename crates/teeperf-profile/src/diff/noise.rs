//! What noise explains: whether two sides of runs differ by more than runs of one program differ.
//! docs/diff.md tells the same with its sources.

use super::Sides;
use crate::model::Time;
use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

/// Of changes that are told, the part that may be none.
const FALSE_DISCOVERIES: f64 = 0.05;
/// Degrees of freedom that what is usual among functions counts for beside a function's own spread.
const USUAL_FREEDOM: f64 = 6.0;
/// Functions that it takes to know what is usual.
const LEAST_FUNCTIONS: usize = 5;
/// Ticks that a function must have in each run to tell of the runs' spread rather than of its own ticks.
const MANY_TICKS: f64 = 100.0;
/// Standard deviations on both sides of a figure that an interval of 95 % has.
const SURE: f64 = 1.96;
/// The part of all time that a function must have for that where nothing ticks.
const LEAST_PART: f64 = 1e-3;

/// A time in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    /// Nanoseconds.
    pub(super) ns: f64,
    /// How much less and more it may be beside what ticks explain, nanoseconds.
    pub(super) less: f64,
    pub(super) more: f64,
    /// Nanoseconds between two ticks, 0 where none ticks.
    pub(super) period: f64,
    /// Its variance by the bounds of its samples, where there are samples.
    pub(super) variance: Option<f64>,
}

impl Measured {
    /// A time by samples, within bounds that are made of their number and of all else.
    pub(super) fn by_samples(time: &Time, period: f64) -> Self {
        let deviation = (time.high - time.low).max(0.0) / (2.0 * SURE);
        Self { ns: time.value, period, variance: Some(deviation * deviation), ..Self::default() }
    }

    /// The number of ticks has a variance of itself; where none fell, one may have been due.
    /// Samples of the kernel are fewer, and their bounds wider.
    fn tick_variance(&self) -> f64 {
        let of_number = self.period * (self.ns.max(0.0) + self.period);
        self.variance.map_or(of_number, |variance| variance.max(of_number))
    }
}

/// The same figure in the runs of both sides.
pub(super) type Pair = Sides<Vec<Measured>>;

/// How much runs of one program differ, as a part of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Standard deviation of a run.
    pub relative: f64,
    /// Whether it was seen between runs of functions enough; otherwise it is what was allowed for, or more where the
    /// longest functions differ by more.
    pub is_measured: bool,
}

/// What came of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    /// Half of the interval in which the difference lies with 95 %.
    pub(super) margin: f64,
    /// How probable such a difference, or a larger one, is without a change.
    pub(super) probability: f64,
}

impl Spread {
    /// What is usual among these functions; `allowed` where runs do not tell.
    pub(super) fn of<'a>(pairs: impl Iterator<Item = &'a Pair> + Clone, allowed: f64) -> Self {
        let whole: f64 = pairs.clone().map(Pair::mean).sum();
        let seen: Vec<(f64, f64)> = pairs
            .clone()
            .filter_map(|pair| {
                let own = pair.own()?;
                let (part, mean) = (pair.tick_part(), pair.mean());
                // A counter times every call, and those of few calls differ by what a cache or an interrupt does.
                let is_large = match pair.ticks() {
                    true => part <= 1.0 / MANY_TICKS,
                    false => mean >= LEAST_PART * whole,
                };
                let weight = if pair.ticks() { 1.0 } else { mean };
                is_large.then(|| ((own.of_many() - part).max(0.0), weight))
            })
            .collect();
        if seen.len() >= LEAST_FUNCTIONS {
            return Self { relative: weighted_median(seen).sqrt(), is_measured: true };
        }
        // Single paths are held against what the longest functions differ by, ticks and all.
        let mut longest: Vec<&Pair> = pairs.collect();
        let time = |pair: &Pair| pair.means().0 + pair.means().1;
        longest.sort_by(|a, b| time(b).total_cmp(&time(a)));
        let own = longest.iter().take(LEAST_FUNCTIONS).filter_map(|pair| pair.own());
        let own = median(own.map(|own| own.of_many()).collect());
        Self { relative: own.sqrt().max(allowed), is_measured: false }
    }
}

/// That below and above which the weights are alike, 0 of none.
fn weighted_median(mut list: Vec<(f64, f64)>) -> f64 {
    list.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = list.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut so_far = 0.0;
    let middle = list.iter().find(|(_, weight)| {
        so_far += weight;
        so_far > half
    });
    middle.or(list.last()).map_or(0.0, |(value, _)| *value)
}

/// The one in the middle, 0 of none.
fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list.get(list.len() / 2).copied().unwrap_or_default()
}

/// A function's own spread.
struct Own {
    /// Variance as a part of the square.
    relative: f64,
    freedom: f64,
}

impl Own {
    /// As it counts in a median: that of a sample's variance is below the variance (Wilson and Hilferty, 1931).
    fn of_many(&self) -> f64 {
        self.relative / (1.0 - 2.0 / (9.0 * self.freedom)).powi(3)
    }

    /// Whether it is so many times the usual variance that chance does not explain it: who differs so much from run to
    /// run is judged by itself alone.
    fn is_beyond(&self, times: f64) -> bool {
        let chance = ChiSquared::new(self.freedom).map(|chance| chance.sf(times * self.freedom));
        chance.is_ok_and(|chance| chance < 0.02)
    }
}

impl Pair {
    pub(super) fn means(&self) -> (f64, f64) {
        (mean(&self.before, |m| m.ns), mean(&self.after, |m| m.ns))
    }

    fn mean(&self) -> f64 {
        let (before, after) = self.means();
        (before + after) / 2.0
    }

    /// Whether a clock that ticks tells it in any run.
    fn ticks(&self) -> bool {
        self.before.iter().chain(&self.after).any(|m| m.period > 0.0)
    }

    /// The spread of the runs of both sides, as a part of their means.
    fn own(&self) -> Option<Own> {
        let (mut sum, mut freedom) = (0.0, 0.0);
        for side in [&self.before, &self.after] {
            let mean = mean(side, |m| m.ns);
            if mean > 0.0 {
                sum += side.iter().map(|m| (m.ns / mean - 1.0).powi(2)).sum::<f64>();
                freedom += side.len() as f64 - 1.0;
            }
        }
        (freedom > 0.0).then(|| Own { relative: sum / freedom, freedom })
    }

    /// The variance that ticks make, as a part of the square.
    fn tick_part(&self) -> f64 {
        let part = |m: &Measured| m.tick_variance() / (m.ns * m.ns).max(f64::MIN_POSITIVE);
        self.before.iter().chain(&self.after).map(part).fold(0.0, f64::max)
    }

    /// Whether the sides differ by more than noise explains.
    pub(super) fn judge(&self, spread: Spread) -> Verdict {
        let own = self.own();
        let (slack, mut variance) = match own {
            Some(_) => (0.0, self.bounds_variance()),
            None => (self.slack(), 0.0),
        };
        let mut freedom = f64::INFINITY;
        for side in [&self.before, &self.after] {
            let mean_ns = mean(side, |m| m.ns);
            let ticks = mean(side, Measured::tick_variance);
            let usual = (spread.relative * mean_ns).powi(2) + ticks;
            let (of_a_run, its_freedom) = match &own {
                None => (usual, f64::INFINITY),
                Some(own) => {
                    let seen = own.relative * mean_ns * mean_ns;
                    if !spread.is_measured || own.is_beyond(seen / usual) {
                        (seen.max(ticks), own.freedom)
                    } else {
                        let all = USUAL_FREEDOM + own.freedom;
                        let shrunk = (USUAL_FREEDOM * usual + own.freedom * seen) / all;
                        (shrunk.max(ticks), all)
                    }
                }
            };
            variance += of_a_run / side.len().max(1) as f64;
            freedom = freedom.min(its_freedom);
        }
        let (before, after) = self.means();
        let beyond = ((after - before).abs() - slack).max(0.0);
        let Verdict { margin, probability } = verdict(beyond, variance.sqrt(), freedom);
        Verdict { margin: margin + slack, probability }
    }

    /// How far the difference may be off beside ticks: with one run a side as far as
    /// the bounds of both.
    fn slack(&self) -> f64 {
        let [before, after] = [&self.before, &self.after];
        let (was, is) = self.means();
        match is > was {
            true => mean(before, |m| m.more) + mean(after, |m| m.less),
            false => mean(before, |m| m.less) + mean(after, |m| m.more),
        }
    }

    /// Where runs show how much that differs between them, what is left is what all have in common:
    /// it goes away in the difference, but for bounds that have become wider or narrower. Between
    /// these any time is as likely as another (JCGM 100:2008, 4.3.7).
    fn bounds_variance(&self) -> f64 {
        let [before, after] =
            [&self.before, &self.after].map(|side| mean(side, |m| m.less + m.more));
        (after - before).powi(2) / 12.0
    }
}

fn mean<T>(side: &[T], of: impl Fn(&T) -> f64) -> f64 {
    side.iter().map(of).sum::<f64>() / side.len().max(1) as f64
}

pub(super) fn verdict(difference: f64, deviation: f64, freedom: f64) -> Verdict {
    if deviation <= 0.0 || !deviation.is_finite() {
        let probability = if difference == 0.0 { 1.0 } else { 0.0 };
        return Verdict { margin: 0.0, probability };
    }
    let t = (difference / deviation).abs();
    let (above, bound) = match StudentsT::new(0.0, 1.0, freedom) {
        Ok(student) if freedom.is_finite() => (student.sf(t), student.inverse_cdf(0.975)),
        _ => {
            let normal = Normal::standard();
            (normal.sf(t), normal.inverse_cdf(0.975))
        }
    };
    Verdict { margin: bound * deviation, probability: 2.0 * above }
}

/// Half of the interval in which 95 % of what has this deviation lie.
pub(super) fn margin(deviation: f64) -> f64 {
    verdict(0.0, deviation, f64::INFINITY).margin
}

/// Variance of the mean of so many runs, of which no more is known than what is usual.
pub(super) fn usual_variance(ns: f64, period: f64, runs: usize, spread: Spread) -> f64 {
    let ticks = Measured { ns, period, ..Measured::default() }.tick_variance();
    ((spread.relative * ns).powi(2) + ticks) / runs.max(1) as f64
}

/// Whether numbers of calls differ: they are exact, so that any difference is one where all runs of a side agree.
pub(super) fn calls(before: &[f64], after: &[f64]) -> Verdict {
    let sides = [before, after];
    let means = sides.map(|side| mean(side, |&calls| calls));
    let squares = sides
        .iter()
        .zip(means)
        .map(|(side, mean)| side.iter().map(|calls| (calls - mean).powi(2)).sum::<f64>());
    let freedom = (before.len() + after.len()) as f64 - 2.0;
    let of_a_run = squares.sum::<f64>() / freedom.max(1.0);
    let runs = |side: &[f64]| side.len().max(1) as f64;
    let variance = of_a_run / runs(before) + of_a_run / runs(after);
    verdict(means[1] - means[0], variance.sqrt(), freedom)
}

/// Which of these are told, so that of all that are no more than [`FALSE_DISCOVERIES`] are none in the mean: Benjamini
/// and Hochberg, "Controlling the false discovery rate", 1995.
pub(super) fn told(probabilities: &[f64]) -> Vec<bool> {
    let mut sorted = probabilities.to_vec();
    sorted.sort_by(f64::total_cmp);
    let all = sorted.len() as f64;
    let holds = |&(at, p): &(usize, &f64)| *p <= (at + 1) as f64 / all * FALSE_DISCOVERIES;
    let limit = sorted.iter().enumerate().rev().find(holds).map(|(_, &p)| p);
    probabilities.iter().map(|&p| limit.is_some_and(|limit| p <= limit)).collect()
}

/// The same of one figure alone.
pub(super) fn is_told(verdict: &Verdict) -> bool {
    verdict.probability <= FALSE_DISCOVERIES
}

#[cfg(test)]
#[path = "noise_tests.rs"]
mod tests;
