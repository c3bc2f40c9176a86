//! The events of a process and of all that it starts, and their turns.
//!
//! On each processor there are two, which take samples in turn and, meanwhile, tell of code and threads. Both are
//! inherited by threads and children from their first instruction on, and leave their records in one ring. (A third that only tells
//! would be simpler, but each costs a child some 10 µs.)
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
//! every 20 to 60 ms, at random, the other one goes on. For some microseconds both are on, so that nothing that the kernel tells is
//! missed; what both tell is written once. Where in the program's beat samples fall is new with each turn, and
//! moves from sample to sample within it. The sum of periods stays the time that was spent: of a second of two threads
//! 998.8 and 998.2 ms were seen.
//!
//! What samples do not see: time that a virtual machine waits for its host. The timer that fires late then has one
//! sample of one period, whatever the thread's clock says.
//!
//! Frequencies of the two are drawn in pairs, so that their mean is the one asked for.

use super::attr::{Attr, FORMAT_LOST, Request, ask, flag};
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
    counts_lost: bool,
}

struct Processor {
    ring: Ring,
    /// Two; one where the period is to be constant. The ring is the first one's.
    events: Vec<File>,
}

impl Events {
    /// Opens those of a process that is about to execute its program, and with that to be sampled.
    pub(super) fn open(wish: &Sampling, chosen: &Chosen, pid: libc::pid_t) -> io::Result<Self> {
        let mut ring = wish.ring.max(Ring::LEAST);
        let mut processors = Vec::new();
        for number in online() {
            match Processor::open(wish, chosen, pid, number, &mut ring) {
                Ok(processor) => processors.push(processor),
                // It has gone to sleep meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { processors, turn: 0, counts_lost: chosen.counts_lost })
    }

    /// The smallest ring.
    pub(super) fn ring(&self) -> usize {
        self.processors.iter().map(|one| one.ring.size()).min().unwrap_or(0)
    }

    /// Descriptors that can be polled, for a ring that is half full.
    pub(super) fn files(&self) -> impl Iterator<Item = RawFd> {
        self.processors.iter().map(|one| one.events[0].as_raw_fd())
    }

    /// The next ones go on.
    pub(super) fn take_turns(&mut self) {
        for Processor { events, .. } in &self.processors {
            let [before, next] = [self.turn, self.turn + 1].map(|turn| turn % events.len());
            if before != next {
                // Neither can fail of an event that is open.
                let _ = ask(&events[next], Request::Enable);
                let _ = ask(&events[before], Request::Disable);
            }
        }
        self.turn += 1;
    }

    /// None goes on.
    pub(super) fn stop(&self) {
        for event in self.processors.iter().flat_map(|one| &one.events) {
            let _ = ask(event, Request::Disable);
        }
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

    /// Records that found no room, samples above all; nothing where the kernel does not count them.
    pub(super) fn lost(&self) -> Option<u64> {
        let events = self.processors.iter().flat_map(|one| &one.events);
        self.counts_lost.then(|| events.map(lost).sum())
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
        ring: &mut usize,
    ) -> io::Result<Self> {
        let mut attr = Attr::new(chosen.kind).sampling(wish.stacks, chosen.with_kernel).telling();
        attr.flags |= flag::WATERMARK;
        attr.watermark = (*ring / 2) as u32;
        if chosen.counts_lost {
            attr.read_format = FORMAT_LOST;
        }
        if !chosen.build_ids {
            attr.flags &= !flag::BUILD_ID;
        }
        if !chosen.kind.is_time {
            attr.flags |= flag::FREQUENCY;
        }
        let [first, others @ ..] = &periods(wish, chosen)?[..] else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let begins = Attr { flags: attr.flags | flag::ENABLE_ON_EXEC, period: *first, ..attr };
        let mut events = vec![begins.open(pid, number)?];
        let ring = loop {
            match Ring::map(&events[0], *ring) {
                // perf_event_mlock_kb, or RLIMIT_MEMLOCK.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) && *ring > Ring::LEAST => {
                    *ring /= 2;
                }
                mapped => break mapped?,
            }
        };
        for &period in others {
            let event = Attr { period, ..attr }.open(pid, number)?;
            ask(&event, Request::Output(&events[0]))?;
            events.push(event);
        }
        Ok(Self { ring, events })
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
pub(crate) fn online() -> Vec<libc::c_int> {
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
