//! Waits of async functions. They are no time of any thread: a function that waits is on no stack, and many wait at once.

use std::collections::HashMap;

use super::summary::Summary;
use crate::model::{self, FunctionId};
use crate::names::Names;
use crate::warnings::Warnings;

/// Most functions whose waits are told apart.
const MAX_FUNCTIONS: usize = 1 << 20;

/// Those of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    times: u64,
    /// Clock units of all, and of the longest.
    units: u64,
    longest: u64,
}

impl Waits {
    /// One more.
    pub(super) fn add(&mut self, units: u64) {
        self.join(Self { times: 1, units, longest: units });
    }

    fn join(&mut self, other: Self) {
        self.times = self.times.saturating_add(other.times);
        self.units = self.units.saturating_add(other.units);
        self.longest = self.longest.max(other.longest);
    }
}

/// Those of all, by process and word.
#[derive(Debug, Default)]
pub(crate) struct AllWaits(HashMap<(u32, u32), Waits>);

impl AllWaits {
    /// Adds those of a summary.
    pub(super) fn take(&mut self, process: u32, summary: &mut Summary, warnings: &mut Warnings) {
        for (word, waits) in summary.waits.drain() {
            let is_known = self.0.contains_key(&(process, word));
            if is_known || self.0.len() < MAX_FUNCTIONS {
                self.0.entry((process, word)).or_default().join(waits);
            } else {
                warnings.add(|| {
                    format!(
                        "waits of more than {MAX_FUNCTIONS} functions: those of others are left out"
                    )
                });
            }
        }
    }

    /// By function, the one that waited longest in all first.
    pub(crate) fn shown(self, names: &mut Names, ns_per_unit: f64) -> Vec<model::Waits> {
        let mut by_function: HashMap<FunctionId, Waits> = HashMap::new();
        for ((process, word), waits) in self.0 {
            by_function.entry(names.function(process, word)).or_default().join(waits);
        }
        let shown = by_function.into_iter().map(|(function, waits)| model::Waits {
            function,
            times: waits.times,
            total_ns: waits.units as f64 * ns_per_unit,
            longest_ns: waits.longest as f64 * ns_per_unit,
        });
        let mut shown: Vec<_> = shown.collect();
        shown.sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns).then(a.function.cmp(&b.function)));
        shown
    }
}
