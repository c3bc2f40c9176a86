//! What is different between two sides of runs, and what of it is more than noise: of two builds of a program, each
//! run once or several times.
//!
//! Functions are matched by name and module, and times judged, as docs/diff.md says; call paths of both sides stand in
//! one tree, [`Diff::paths`]. [`condition`] is what makes a difference too large for somebody,
//! [`outcome`] what comes of it.

mod comparison;
pub mod condition;
pub(crate) mod identity;
mod noise;
pub mod outcome;
mod paths;

pub use comparison::Comparison;
pub use noise::Spread;
pub use paths::{Path, Sum};

use crate::model::{Function, FunctionId, Health, Info, Unit};
use teeperf_select::Wanted;

/// How to compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How much a run of the same program may differ, as a part of a time (standard deviation), where there are not
    /// several runs to tell.
    pub noise: f64,
    /// Whether all runs are taken to have had the same time as those of the second side in the mean, so that shares
    /// are compared.
    pub normalize: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { noise: 0.03, normalize: false }
    }
}

/// One thing for each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sides<T> {
    /// Of what was there first.
    pub before: T,
    /// Of what it is held against.
    pub after: T,
}

/// Which side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What was there first.
    Before,
    /// What it is held against.
    After,
}

impl<T> Sides<T> {
    /// That of one side.
    pub fn of(&self, side: Side) -> &T {
        match side {
            Side::Before => &self.before,
            Side::After => &self.after,
        }
    }

    fn of_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Before => &mut self.before,
            Side::After => &mut self.after,
        }
    }
}

/// Two means over runs, and what is known of their difference.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figure {
    /// Of a run of the first side.
    pub before: f64,
    /// Of a run of the second.
    pub after: f64,
    /// The difference lies within so much of what it is, with 95 %.
    pub margin: f64,
    /// How probable a difference of this size is where nothing changed.
    pub probability: f64,
    /// Whether it is more than noise explains, all figures of its kind considered.
    pub is_change: bool,
}

impl Figure {
    /// How much more it is.
    pub fn difference(&self) -> f64 {
        self.after - self.before
    }

    /// The same as a part of what it was; nothing where it was nothing.
    pub fn relative(&self) -> Option<f64> {
        (self.before > 0.0).then(|| self.difference() / self.before)
    }
}

/// Whether a function was called on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// On both.
    Both,
    /// On the second alone.
    New,
    /// On the first alone.
    Gone,
}

/// A function of both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Which, of [`Diff::functions`].
    pub function: FunctionId,
    /// On which sides it was called.
    pub presence: Presence,
    /// Calls of a run.
    pub calls: Figure,
    /// Time in itself of a run, nanoseconds.
    pub self_time: Figure,
    /// Time in it and all it called of a run, nanoseconds.
    pub total: Figure,
}

/// What is known of a run that was compared.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// What its recording is called.
    pub name: String,
    /// Of the run.
    pub info: Info,
    /// Of how whole it is.
    pub health: Health,
    /// Time in recorded functions, nanoseconds, as it was measured.
    pub time_ns: f64,
    /// Whether of some of it no call paths are known.
    pub has_graph: bool,
}

/// The result.
#[derive(Clone, Debug, Default)]
pub struct Diff {
    /// Functions of either side; as the second has them, where it does.
    pub functions: Vec<Function>,
    /// One for each function that was called or has time, by the size of the change of its self time.
    pub changes: Vec<Change>,
    /// Time in all recorded functions.
    pub whole: Figure,
    /// Call paths of both sides, callers first; the first is the root.
    pub paths: Vec<Path>,
    /// The runs.
    pub runs: Sides<Vec<Run>>,
    /// How much runs of a side differ.
    pub spread: Option<Spread>,
    /// What times are in.
    pub unit: Unit,
    /// Times are as if all runs had taken as long.
    pub is_normalized: bool,
    /// Modules of other names that were taken for one another, before and after.
    pub paired: Option<(String, String)>,
}

impl Diff {
    /// Name of a change's function.
    pub fn name_of(&self, change: &Change) -> &str {
        &self.functions[change.function.0 as usize].name
    }

    /// Whether a change is of a function that fits.
    fn is_of(&self, change: &Change, wanted: &Wanted) -> bool {
        let function = &self.functions[change.function.0 as usize];
        wanted.fits(&function.name, function.file.as_deref(), &function.module)
    }

    /// Whether the time of a call path differs by more than ticks, and what runs of a side usually differ by, explain.
    pub fn tells_apart(&self, before: f64, after: f64) -> bool {
        let Some(spread) = self.spread else { return false };
        let side = |side, ns| {
            let runs: &Vec<Run> = self.runs.of(side);
            let period = runs.iter().map(|run| run.info.period_ns).fold(0.0, f64::max);
            noise::usual_variance(ns, period, runs.len(), spread)
        };
        let variance = side(Side::Before, before) + side(Side::After, after);
        noise::is_told(&noise::verdict(after - before, variance.sqrt(), f64::INFINITY))
    }
}

#[cfg(test)]
mod tests;
