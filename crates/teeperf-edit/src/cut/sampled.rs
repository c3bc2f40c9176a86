//! Samples of a window: those taken in it, of the processes and threads that are wanted. What stands where in processes,
//! and what became of threads, is told in each window: code that came before it runs in it.

use std::collections::HashMap;
use std::io;

use teeperf_profile::contents;
use teeperf_profile::samples::Decoder;
use teeperf_wire::body::sample::{Header, NO_TIME, Sample, encoding};
use teeperf_wire::body::sampled;

use zstd::bulk::Compressor;

use super::Cut;
use crate::output;

/// Copies of stacks differ little from one sample to the next, which every level sees.
const LEVEL: i32 = 1;

/// What of samples is in a window.
pub(super) struct Sampled {
    decoder: Decoder,
    compressor: Compressor<'static>,
    /// Of the recording's clock: where it begins, and units in a second.
    clock: (u64, u64),
    /// From when to when, units of that clock.
    window: (u64, u64),
    /// The samples' clock where the recording begins, by event.
    zeroes: HashMap<u16, u64>,
    /// Samples that were written.
    pub(super) written: u64,
}

impl Sampled {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            decoder: Decoder::new()?,
            compressor: Compressor::new(LEVEL)?,
            clock: (0, 0),
            window: (0, u64::MAX),
            zeroes: HashMap::new(),
            written: 0,
        })
    }

    /// The recording begins.
    pub(super) fn start(&mut self, clock: (u64, u64), window: (u64, u64)) {
        (self.clock, self.window) = (clock, window);
    }

    /// What an event's packet says in the window, which begins later than the recording does.
    pub(super) fn event(&mut self, event: &contents::Sampled, payload: &[u8]) -> Vec<u8> {
        self.zeroes.insert(event.event, event.zero_ns);
        let zero = ns(self.clock, event.zero_ns, self.window.0).max(event.zero_ns);
        let changed = output::changed(payload, |field| match field.tag {
            sampled::ZERO_NS => Some(zero.to_le_bytes().to_vec()),
            _ => Some(field.value.to_vec()),
        });
        changed.finish()
    }

    /// The samples of a packet that are in the window, as a payload; nothing where none are, or where it cannot be read: then
    /// what is wrong with it is told where it is replayed whole.
    pub(super) fn samples(
        &mut self,
        header: &Header,
        data: &[u8],
        payload: &[u8],
        wanted: &Cut,
    ) -> Option<Vec<u8>> {
        let is_all = self.window == (0, u64::MAX)
            && wanted.threads.is_empty()
            && wanted.processes.is_empty();
        if is_all {
            self.written += u64::from(header.samples);
            return Some(payload.to_vec());
        }
        let zeroes = &self.zeroes;
        let bounds = |event| {
            let zero = zeroes.get(&event).copied().unwrap_or(0);
            (ns(self.clock, zero, self.window.0), ns(self.clock, zero, self.window.1))
        };
        let (mut kept, mut count) = (Vec::new(), 0u32);
        let mut samples = self.decoder.samples(header, data).ok()?;
        let mut left = samples.rest;
        while let Some(sample) = samples.next() {
            let bytes = &left[..left.len() - samples.rest.len()];
            left = samples.rest;
            let (since, until) = bounds(sample.event);
            let is_in = sample.time_ns == NO_TIME || (since..until).contains(&sample.time_ns);
            if is_in && is_wanted(&sample, wanted) {
                kept.extend_from_slice(bytes);
                count += 1;
            }
        }
        // When samples were lost is known no better than by the samples of the packet that tells of it.
        if count == 0 {
            return None;
        }
        self.written += u64::from(count);
        let header = Header { samples: count, bytes: kept.len() as u32, ..*header };
        let compressed = self.compressor.compress(&kept).ok();
        let (data, encoding) = match compressed.filter(|data| data.len() < kept.len()) {
            Some(data) => (data, encoding::ZSTD),
            None => (kept, encoding::PLAIN),
        };
        Some([&Header { encoding, ..header }.encode()[..], &data].concat())
    }
}

fn is_wanted(sample: &Sample<'_>, wanted: &Cut) -> bool {
    (wanted.threads.is_empty() || wanted.threads.contains(&sample.tid))
        && (wanted.processes.is_empty() || wanted.processes.contains(&sample.pid))
}

/// The samples' clock at a time of the recording's, which is in `clock` where it begins and how fast it goes; `zero` is theirs
/// there.
fn ns(clock: (u64, u64), zero: u64, units: u64) -> u64 {
    let later = units.saturating_sub(clock.0);
    if later == 0 {
        // Samples may have been taken before the recording's clock was looked at.
        return if units == u64::MAX { u64::MAX } else { 0 };
    }
    let ns = u128::from(later) * 1_000_000_000 / u128::from(clock.1.max(1));
    zero.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
}
