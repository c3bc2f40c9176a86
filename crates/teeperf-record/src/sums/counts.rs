//! Calls between places of code, and times, of a thread ([`teeperf_wire::arena::items`]).

use super::widened;
use crate::arcs::{self, Item};
use crate::trees::{Growth, narrow, wide};
use std::collections::BTreeMap;
use teeperf_wire::arena::{item, items};
use teeperf_wire::body::arcs::{FAR, Header, MAX_ITEMS};
use teeperf_wire::packet::kind;
use teeperf_wire::shared::chunk;

/// Those that were not written yet.
#[derive(Default)]
pub(super) struct Counts {
    arcs: BTreeMap<Places, u64>,
    spans: BTreeMap<Places, u64>,
    tid: u32,
    /// From when to when they are.
    span: Option<(u64, u64)>,
    /// Calls that are in no arc.
    lost: u64,
}

/// Word and address of both.
type Places = [(u32, u64); 2];

impl Counts {
    /// How many pairs of places.
    pub(super) fn size(&self) -> usize {
        self.arcs.len() + self.spans.len()
    }

    /// Adds what a chunk says.
    pub(super) fn add(&mut self, head: &[u64], items: &[u64]) {
        self.tid = narrow(head, chunk::TID);
        self.span = widened(self.span, wide(head, items::BEGIN), wide(head, items::END));
        self.lost = self.lost.saturating_add(wide(head, items::LOST));
        let arcs = narrow(head, items::ARCS) as usize;
        for (at, item) in items.chunks_exact(item::SIZE / 8).enumerate() {
            let counts = if at < arcs { &mut self.arcs } else { &mut self.spans };
            let Item { places, count } = arcs::read(item);
            let sum = counts.entry(places).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// All of it, if there is anything.
    pub(super) fn take(&mut self, process: u32, serial: u32) -> Option<Growth> {
        let Self { arcs, spans, tid, span, lost } = std::mem::take(self);
        let (begin, end) = span?;
        if arcs.is_empty() && spans.is_empty() && lost == 0 {
            return None;
        }
        let items = |counts: BTreeMap<Places, u64>| {
            counts.into_iter().map(|(places, count)| Item { places, count })
        };
        let calls = arcs.values().fold(0, |sum: u64, &count| sum.saturating_add(count));
        let of_arcs = arcs.len();
        let all: Vec<Item> = items(arcs).chain(items(spans)).collect();
        let words = all.iter().flat_map(|item| item.places.map(|(word, _)| word));
        let words = words.filter(|&word| word != FAR).collect();
        let mut payloads = Vec::new();
        for from in (0..all.len().max(1)).step_by(MAX_ITEMS) {
            let here = &all[from..all.len().min(from + MAX_ITEMS)];
            let arcs = of_arcs.saturating_sub(from).min(here.len());
            let header = Header {
                process,
                thread: serial,
                tid,
                arcs: arcs as u32,
                spans: (here.len() - arcs) as u32,
                begin,
                end,
                lost: if from == 0 { lost } else { 0 },
                ..Header::default()
            };
            payloads.push(arcs::payload(header, here));
        }
        Some(Growth {
            kind: kind::ARCS,
            payloads,
            words,
            calls,
            returns: 0,
            lost,
            serial,
            is_first: false,
        })
    }
}
