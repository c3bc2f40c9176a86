//! Calls and times between places of code, of all processes and threads, put together: packets add up, in whatever
//! order.

use std::collections::BTreeMap;

use teeperf_wire::body::arcs::Header;
use teeperf_wire::word::ESCAPE_BASE;

use super::apply::{Shared, warn_of_counts};
use super::tree::pseudo;
use crate::arcs::{Item, Place, items};
use crate::model::{CallGraph, FunctionId, Time};
use crate::names::Names;

/// Most different arcs, and most different spans; later ones are left out and said.
const MOST: usize = 1 << 22;

/// Two places of a process, the word of a function each, as trees have it.
type Key = (u32, Option<u32>, Option<u32>);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Arcs {
    /// In an order of their own, so that functions are numbered alike each time.
    calls: BTreeMap<Key, u64>,
    times: BTreeMap<Key, u64>,
    /// Calls and clock units that are in none of them.
    left_out: (u64, u64),
    any: bool,
}

impl Arcs {
    /// Adds a packet, which begins at `offset`.
    pub(super) fn add(&mut self, offset: u64, header: &Header, data: &[u8], shared: &mut Shared) {
        let (mut arcs, mut spans, error) = items(header, data);
        if let Some(error) = error {
            shared.warnings.add(|| format!("arcs at offset {offset}: {error}"));
        }
        let credit = &mut shared.credit;
        let mut beyond = 0;
        for arc in &mut arcs {
            beyond += usize::from(credit.take_calls(&mut arc.count));
        }
        for span in &mut spans {
            beyond += usize::from(credit.take_units(&mut span.count));
        }
        warn_of_counts(&mut shared.warnings, "arcs", offset, beyond);
        self.any = true;
        let (first, last) = shared.counts.span.unwrap_or((header.begin, header.end));
        shared.counts.span = Some((first.min(header.begin), last.max(header.end)));
        shared.counts.lost = shared.counts.lost.saturating_add(header.lost);
        for arc in &arcs {
            let counts = &mut shared.counts;
            counts.events = counts.events.saturating_add(arc.count);
            counts.without_paths = counts.without_paths.saturating_add(arc.count);
        }
        let process = header.process;
        put(&mut self.calls, process, &arcs, &mut self.left_out.0, shared);
        put(&mut self.times, process, &spans, &mut self.left_out.1, shared);
    }

    /// Calls between functions, if there were such packets. Of time between the entry of a function and the next
    /// call, by another, each of the two is given half, since it is not known when the first was left; the bounds
    /// say so.
    pub(crate) fn graph(self, names: &mut Names, ns_per_unit: f64) -> (Option<CallGraph>, u64) {
        if !self.any {
            return (None, 0);
        }
        let mut function = |process, word: Option<u32>| -> Option<FunctionId> {
            word.map(|word| names.function(process, word))
        };
        let mut times: Vec<(FunctionId, Time)> = Vec::new();
        for (&(process, entered, left), &units) in &self.times {
            let ns = units as f64 * ns_per_unit;
            match (function(process, entered), function(process, left)) {
                (Some(a), Some(b)) if a != b => {
                    let half = Time { value: ns / 2.0, low: 0.0, high: ns };
                    times.extend([(a, half), (b, half)]);
                }
                (Some(one), _) | (None, Some(one)) => times.push((one, ns.into())),
                (None, None) => {}
            }
        }
        // In the order of functions.
        times.sort_by(|a, b| {
            (a.0, a.1.value).partial_cmp(&(b.0, b.1.value)).unwrap_or(std::cmp::Ordering::Equal)
        });
        let calls: Vec<_> = self
            .calls
            .iter()
            .filter_map(|(&(process, from, to), &calls)| {
                Some((function(process, from), function(process, to)?, calls))
            })
            .collect();
        (Some(CallGraph::new(times, calls)), self.left_out.0)
    }
}

fn put(
    sums: &mut BTreeMap<Key, u64>,
    process: u32,
    items: &[Item],
    left_out: &mut u64,
    shared: &mut Shared,
) {
    for item in items {
        let mut word = |place| match place {
            Place::Nobody => None,
            Place::Word(word) if word < ESCAPE_BASE => Some(word & !1),
            // No function's: an escape.
            Place::Word(_) => None,
            Place::Far(address) => Some(pseudo::FAR + 2 * shared.far_number(address)),
        };
        let key = (process, word(item.from), word(item.to));
        if sums.len() >= MOST && !sums.contains_key(&key) {
            *left_out = left_out.saturating_add(item.count);
            continue;
        }
        let sum = sums.entry(key).or_default();
        *sum = sum.saturating_add(item.count);
    }
}
