//! Shares that a report tells beside the true ones: errors, and whether intervals hold the truth
//! and are as narrow as the number of samples allows.

use std::collections::BTreeMap;

/// A function is judged where it has this share of the time.
const MINOR: f64 = 0.01;
/// Standard deviations on either side of a figure that hold the truth in 95 % of cases.
const SIGMAS: f64 = 1.96;

/// A function in one recorded run. Shares go from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FunctionRun {
    pub(super) name: String,
    pub(super) truth: f64,
    /// What the report says: least, shown, most.
    pub(super) told: [f64; 3],
    /// Milliseconds of CPU time of the whole run: samples, at one each.
    pub(super) n: f64,
}

impl FunctionRun {
    /// How far the share is off, points of a hundred.
    pub(super) fn error(&self) -> f64 {
        100.0 * (self.told[1] - self.truth).abs()
    }

    /// Whether the truth is within the interval.
    pub(super) fn holds(&self) -> bool {
        (self.told[0]..=self.told[2]).contains(&self.truth)
    }

    /// Width of the interval, in units of what the samples allow.
    fn width(&self) -> f64 {
        let deviation = (self.truth * (1.0 - self.truth) / self.n).sqrt();
        (self.told[2] - self.told[0]) / (2.0 * SIGMAS * deviation)
    }

    fn has_error(&self) -> bool {
        self.truth.max(self.told[1]) >= MINOR
    }

    /// Chosen by the truth alone, for else the choice would favour intervals that miss it.
    fn has_interval(&self) -> bool {
        (MINOR..=1.0 - MINOR).contains(&self.truth)
    }
}

/// A share of samples with the bounds of its 95 % interval, by Wilson's formula.
pub(super) fn wilson(share: f64, samples: f64) -> [f64; 3] {
    let z = SIGMAS * SIGMAS / samples;
    let middle = (share + z / 2.0) / (1.0 + z);
    let half = (share * (1.0 - share) * z + z * z / 4.0).sqrt() / (1.0 + z);
    [middle - half, share, middle + half]
}

/// Compares true times of functions with those told. Both become shares of their sums. A name
/// with a `+` is of functions that are told together.
pub(super) fn compare(
    truth: &BTreeMap<String, f64>,
    told: &BTreeMap<String, [f64; 3]>,
    n: f64,
) -> Vec<FunctionRun> {
    let told_of = |name: &str| {
        let parts = name.split('+').filter_map(|part| told.get(part));
        parts.fold([0.0; 3], |sum, own| [0, 1, 2].map(|bound| sum[bound] + own[bound]))
    };
    let all_true: f64 = truth.values().sum();
    let all_told: f64 = truth.keys().map(|name| told_of(name)[1]).sum();
    let share = |own: f64| if all_told > 0.0 { own / all_told } else { 0.0 };
    let function = |(name, own): (&String, &f64)| FunctionRun {
        name: name.clone(),
        truth: own / all_true,
        told: told_of(name).map(share),
        n,
    };
    truth.iter().map(function).collect()
}

/// Figures of many function runs.
#[derive(Default)]
pub(super) struct Figures {
    /// In rising order.
    errors: Vec<f64>,
    held: usize,
    widths: Vec<f64>,
}

impl Figures {
    pub(super) fn of<'a>(runs: impl Iterator<Item = &'a FunctionRun>) -> Self {
        let mut figures = Self::default();
        for run in runs {
            if run.has_error() {
                figures.errors.push(run.error());
            }
            if run.has_interval() {
                figures.held += usize::from(run.holds());
                figures.widths.push(run.width());
            }
        }
        figures.errors.sort_by(f64::total_cmp);
        figures
    }

    /// Function runs whose error counts.
    pub(super) fn errors(&self) -> usize {
        self.errors.len()
    }

    /// Function runs whose interval counts.
    pub(super) fn intervals(&self) -> usize {
        self.widths.len()
    }

    /// The error that so many percent of function runs do not exceed.
    pub(super) fn error(&self, percent: f64) -> Option<f64> {
        percentile(&self.errors, percent)
    }

    /// Percent of intervals that hold the truth.
    pub(super) fn coverage(&self) -> Option<f64> {
        (self.intervals() > 0).then(|| 100.0 * self.held as f64 / self.intervals() as f64)
    }

    /// Mean width of intervals.
    pub(super) fn width(&self) -> Option<f64> {
        (self.intervals() > 0).then(|| self.widths.iter().sum::<f64>() / self.intervals() as f64)
    }
}

/// The least value of a sorted list that so many percent do not exceed.
fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(truth: f64, told: [f64; 3]) -> FunctionRun {
        FunctionRun { name: "f".into(), truth, told, n: 2500.0 }
    }

    #[test]
    fn percentiles_are_values_of_the_list() {
        let list = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(percentile(&list, 50.0), Some(2.0));
        assert_eq!(percentile(&list, 90.0), Some(4.0));
        assert_eq!(percentile(&list, 100.0), Some(4.0));
        assert_eq!(percentile(&list, 0.0), Some(1.0));
        assert_eq!(percentile(&[], 50.0), None);
    }

    #[test]
    fn shares_are_of_what_both_sides_know() {
        let truth = [("a+b".to_owned(), 30.0), ("c".to_owned(), 70.0)].into();
        let told = [
            ("a".to_owned(), [10.0, 20.0, 30.0]),
            ("b".to_owned(), [10.0, 20.0, 30.0]),
            ("c".to_owned(), [50.0, 60.0, 70.0]),
            ("main".to_owned(), [1000.0; 3]),
        ]
        .into();
        let runs = compare(&truth, &told, 1.0);
        assert_eq!(runs[0].told, [0.2, 0.4, 0.6]);
        assert_eq!(runs[1].told, [0.5, 0.6, 0.7]);
        assert!((runs[0].error() - 10.0).abs() < 1e-9);
        let missing = compare(&truth, &BTreeMap::new(), 1.0);
        assert_eq!(missing[0].told, [0.0; 3]);
    }

    #[test]
    fn coverage_counts_intervals_that_hold() {
        let runs = [
            run(0.5, [0.4, 0.5, 0.6]),
            run(0.5, [0.51, 0.55, 0.6]),
            run(0.5, [0.5, 0.5, 0.5]),
            run(0.0001, [0.5, 0.5, 0.5]),
        ];
        let figures = Figures::of(runs.iter());
        assert_eq!((figures.errors(), figures.intervals()), (4, 3));
        assert!((figures.coverage().unwrap() - 66.67).abs() < 0.01);
        assert_eq!(Figures::of([].iter()).coverage(), None);
    }

    #[test]
    fn wilson_has_bounds_where_nothing_was_seen() {
        let [low, share, high] = wilson(0.0, 100.0);
        assert_eq!(share, 0.0);
        assert!(low.abs() < 1e-9 && (high - 0.037).abs() < 1e-3, "{low} {high}");
        let [low, _, high] = wilson(0.5, 2500.0);
        assert!((low - 0.4804).abs() < 1e-4 && (high - 0.5196).abs() < 1e-4);
    }

    #[test]
    fn width_is_of_what_samples_allow() {
        // The deviation of 2,500 samples of one half is 1 point.
        let figures = Figures::of([run(0.5, [0.5 - 0.0196, 0.5, 0.5 + 0.0196])].iter());
        assert!((figures.width().unwrap() - 1.0).abs() < 1e-9);
    }
}
