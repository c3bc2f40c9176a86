//! The events of a process and of all that it starts, and their turns.
//!
//! On each processor there are three: one that takes no samples and tells of code and threads, and two that take samples
//! in turn. All are inherited by threads and children from their first instruction on, and leave their
//! records in one ring.
//!
//! # Why turns
//!
//! Samples at equal distances see one and the same part of a program that beats in step with them. Distances at
//! random do not. But of an event that is inherited, a new period (`PERF_EVENT_IOC_PERIOD`) reaches the thread that it was
//! opened for and those that are yet to begin, and none that runs: Linux 6.18 showed 1000 samples of a second of such a thread,
//! 1 ms apart, whatever was set meanwhile. Besides, of `cpu-clock` the thread that it does reach begins its
//! period anew, so that the time since the last sample is in none, and its samples go on to have the first
//! period for their own (`last_period` of its timer is never set again).
//!
//! To switch an event on and off, however, reaches all that have inherited it; and one that is off keeps what is left of its
//! period. So each of the two has a period of its own, drawn when it is opened, which all its samples stand for; and
//! every 20 to 60 ms, at random, the other one goes on. Where in the program's beat samples fall is new with each turn, and
//! moves from sample to sample within it. The sum of periods stays the time that was spent: of a second of two threads
//! 998.8 and 998.2 ms were seen.
//!
//! Frequencies of the two are drawn in pairs, so that their mean is the one asked for.

use super::attr::{Attr, DUMMY, FORMAT_LOST, Request, ask, flag};
use super::offer::Chosen;
use super::options::{Rate, Sampling};
use super::ring::Ring;
use crate::machine;
use crate::server::random;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// All events of a process.
pub(super) struct Events {
    processors: Vec<Processor>,
    /// Whose turn it is.
    turn: usize,
    is_on: bool,
    counts_lost: bool,
}

struct Processor {
    ring: Ring,
    tells: File,
    /// Two; one where the period is to be constant.
    samples: Vec<File>,
}

impl Events {
    /// Opens those of a process that is about to execute its program, and with that to be sampled, unless that is paused.
    pub(super) fn open(
        wish: &Sampling,
        chosen: &Chosen,
        pid: libc::pid_t,
        is_on: bool,
    ) -> io::Result<Self> {
        let mut ring = wish.ring.max(Ring::LEAST);
        let mut processors = Vec::new();
        for number in online() {
            match Processor::open(wish, chosen, pid, number, is_on, &mut ring) {
                Ok(processor) => processors.push(processor),
                // It has gone to sleep meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { processors, turn: 0, is_on, counts_lost: chosen.counts_lost })
    }

    /// The smallest ring.
    pub(super) fn ring(&self) -> usize {
        self.processors.iter().map(|one| one.ring.size()).min().unwrap_or(0)
    }

    /// Descriptors that can be polled, for a ring that is half full.
    pub(super) fn files(&self) -> impl Iterator<Item = RawFd> {
        self.processors.iter().map(|one| one.tells.as_raw_fd())
    }

    /// The next ones take samples.
    pub(super) fn take_turns(&mut self) {
        if self.is_on {
            self.switch(self.turn + 1, true);
        }
    }

    /// Samples are taken, or not.
    pub(super) fn set(&mut self, is_on: bool) {
        if is_on != self.is_on {
            self.switch(self.turn, is_on);
        }
    }

    fn switch(&mut self, next: usize, is_on: bool) {
        for Processor { samples, .. } in &self.processors {
            let (before, next) = (self.turn % samples.len(), next % samples.len());
            if self.is_on && (before != next || !is_on) {
                // Neither can fail of an event that is open.
                let _ = ask(&samples[before], Request::Disable);
            }
            if is_on && (before != next || !self.is_on) {
                let _ = ask(&samples[next], Request::Enable);
            }
        }
        (self.turn, self.is_on) = (next, is_on);
    }

    /// Takes what each ring has.
    pub(super) fn take(&self, each: &mut dyn FnMut(Vec<u8>)) {
        for Processor { ring, .. } in &self.processors {
            let mut bytes = Vec::new();
            ring.take(&mut bytes);
            if !bytes.is_empty() {
                each(bytes);
            }
        }
    }

    /// Samples that found no room, and other records; nothing where the kernel does not count them.
    pub(super) fn lost(&self) -> Option<(u64, u64)> {
        let sum = |files: &mut dyn Iterator<Item = &File>| files.map(lost).sum();
        self.counts_lost.then(|| {
            let samples = sum(&mut self.processors.iter().flat_map(|one| &one.samples));
            (samples, sum(&mut self.processors.iter().map(|one| &one.tells)))
        })
    }
}

/// What found no room of an event's records: the second number that is read of it.
fn lost(mut event: &File) -> u64 {
    let mut numbers = [0; 16];
    match event.read_exact(&mut numbers) {
        Ok(()) => u64::from_ne_bytes(*numbers.last_chunk().unwrap_or(&[0; 8])),
        Err(_) => 0,
    }
}

impl Processor {
    /// `ring`: bytes of the ring, less where the system does not grant them.
    fn open(
        wish: &Sampling,
        chosen: &Chosen,
        pid: libc::pid_t,
        number: libc::c_int,
        is_on: bool,
        ring: &mut usize,
    ) -> io::Result<Self> {
        let format = if chosen.counts_lost { FORMAT_LOST } else { 0 };
        let basic = |attr: Attr| Attr {
            read_format: format,
            flags: attr.flags | flag::WATERMARK,
            watermark: (*ring / 2) as u32,
            ..attr
        };
        let mut tells = basic(Attr::new(DUMMY).telling());
        tells.flags |= flag::ENABLE_ON_EXEC | flag::EXCLUDE_KERNEL;
        if !chosen.build_ids {
            tells.flags &= !flag::BUILD_ID;
        }
        let mut samples = basic(Attr::new(chosen.kind).sampling(wish.stacks, chosen.with_kernel));
        let tells = tells.open(pid, number)?;
        let mapped = loop {
            match Ring::map(&tells, *ring) {
                // perf_event_mlock_kb, or RLIMIT_MEMLOCK.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) && *ring > Ring::LEAST => {
                    *ring /= 2;
                }
                mapped => break mapped?,
            }
        };
        let mut all = Vec::new();
        for (at, period) in periods(wish, chosen)?.into_iter().enumerate() {
            samples.period = period;
            if !chosen.kind.is_time {
                samples.flags |= flag::FREQUENCY;
            }
            if is_on && at == 0 {
                samples.flags |= flag::ENABLE_ON_EXEC;
            } else {
                samples.flags &= !flag::ENABLE_ON_EXEC;
            }
            let event = samples.open(pid, number)?;
            ask(&event, Request::Output(&tells))?;
            all.push(event);
        }
        Ok(Self { ring: mapped, tells, samples: all })
    }
}

/// What the events of a processor have for a period: nanoseconds, or, of a counter, samples a second, which the kernel makes a
/// period of as it sees how fast it counts.
fn periods(wish: &Sampling, chosen: &Chosen) -> io::Result<Vec<u64>> {
    let mean = match (chosen.kind.is_time, wish.rate) {
        (false, Rate::Frequency(hz)) => u64::from(hz),
        (_, rate) => rate.period_ns(),
    };
    if wish.is_constant {
        return Ok(vec![mean]);
    }
    // Of a thousand parts.
    let aside = 100 + random()? % 400;
    let parts = [1000 + aside, 1000 - aside];
    Ok(parts
        .map(|part| if chosen.kind.is_time { mean * 1000 / part } else { mean * part / 1000 })
        .map(|period| period.max(1))
        .to_vec())
}

/// How long a turn takes.
pub(super) fn turn() -> Duration {
    // Without random numbers turns are even, and samples still are in order.
    Duration::from_micros(20_000 + random().unwrap_or(0) % 40_000)
}

/// Processors that are on: all of them, since a program may go wherever it likes.
fn online() -> Vec<libc::c_int> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    match ranges(text.trim()) {
        Some(numbers) if !numbers.is_empty() => numbers,
        _ => machine::processors().into_iter().map(|number| number as libc::c_int).collect(),
    }
}

/// Numbers of a list such as `0-3,5`.
fn ranges(text: &str) -> Option<Vec<libc::c_int>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<libc::c_int>().ok()?..=last.parse().ok()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::super::attr::{CPU_CLOCK, CYCLES};
    use super::*;

    #[test]
    fn processors_are_listed_in_ranges() {
        assert_eq!(ranges("0-3,5"), Some(vec![0, 1, 2, 3, 5]));
        assert_eq!(ranges("0"), Some(vec![0]));
        assert_eq!(ranges(""), None);
        assert!(!online().is_empty());
    }

    #[test]
    fn periods_lie_around_the_mean_and_make_the_frequency_asked_for() {
        let chosen = |kind| Chosen {
            kind,
            with_kernel: true,
            build_ids: true,
            counts_lost: true,
            reason: None,
        };
        let wish = Sampling::default();
        for _ in 0..100 {
            let periods = super::periods(&wish, &chosen(CPU_CLOCK)).unwrap();
            let hz: f64 = periods.iter().map(|&ns| 1e9 / ns as f64).sum::<f64>() / 2.0;
            assert!((hz - 999.0).abs() < 0.1, "{periods:?}");
            assert!(periods[0] * 11 < periods[1] * 10);
            let counts = super::periods(&wish, &chosen(CYCLES)).unwrap();
            assert!((counts[0] + counts[1]).abs_diff(2 * 999) <= 2, "{counts:?}");
        }
        let constant = Sampling { is_constant: true, ..wish };
        assert_eq!(super::periods(&constant, &chosen(CPU_CLOCK)).unwrap(), [1_001_001]);
    }
}
