//! What a recording is told of samples before it has any: a `SAMPLED` packet's fields for each event
//! ([`teeperf_wire::body::sampled`]).

use crate::context::{MACHINE, REGISTERS};
use crate::layout::Registers;
use crate::sampler::{Settings, event};
use crate::state::Wanted;
use crate::timer::Clock;
use teeperf_wire::body::sampled;
use teeperf_wire::fields::{Full, Writer};

/// Periods are processor time, in nanoseconds.
const NANOSECONDS: u64 = 1;

/// Events and their names: what a thread was found in.
pub const EVENTS: [(u16, &str); 3] = [
    (event::INSIDE, "sgx"),
    (event::UNREADABLE, "sgx-unreadable"),
    (event::OUTSIDE, "outside-sgx"),
];

/// Fields of one of [`EVENTS`]. `zero_ns` is CLOCK_MONOTONIC, which samples have, at the recording's start; `source` says who takes
/// them.
pub fn fields<'a>(
    room: &'a mut [u8],
    (event, name): (u16, &str),
    settings: &Settings,
    zero_ns: u64,
    source: u64,
) -> Result<&'a [u8], Full> {
    let has_state = event != event::UNREADABLE;
    let (chain, stack) = match settings.wanted {
        Wanted::Registers => (0, 0),
        Wanted::Chain => (1, 0),
        Wanted::Stack(most) => (0, most as u64),
    };
    let mut out = Writer::new(room);
    out.number(sampled::EVENT, event.into())?;
    out.bytes(sampled::NAME, name.as_bytes())?;
    out.number(sampled::UNIT, NANOSECONDS)?;
    // By processor time the kernel's ticks decide, so what is asked for is no mean.
    let mean = if settings.clock == Clock::Processor { 0 } else { settings.period_ns };
    out.number(sampled::PERIOD, mean)?;
    if settings.clock == Clock::Processor {
        out.number(sampled::FREQUENCY, 1_000_000_000 / settings.period_ns.max(1))?;
    }
    out.number(sampled::RANDOM, (!settings.is_constant).into())?;
    out.number(sampled::ZERO_NS, zero_ns)?;
    out.number(sampled::SOURCE, source)?;
    out.number(sampled::MACHINE, MACHINE)?;
    if has_state {
        out.number(sampled::REGISTERS, REGISTERS)?;
        out.number(sampled::STACK, stack)?;
        out.number(sampled::CHAIN, chain)?;
    }
    if event != event::OUTSIDE && settings.wanted.host() > 0 {
        out.number(sampled::OUTER_REGISTERS, Registers::HOST)?;
        out.number(sampled::OUTER_STACK, settings.wanted.host() as u64)?;
    }
    Ok(out.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;
    use teeperf_wire::body::sampled::source;
    use teeperf_wire::fields;

    fn told(event: usize, wanted: Wanted, clock: Clock) -> Vec<(u16, Vec<u8>)> {
        let settings = Settings {
            clock,
            period_ns: 1_000_000,
            is_constant: false,
            has_enclaves: true,
            wanted,
            signal: 27,
            process: 1,
        };
        let mut room = [0; 512];
        let payload = fields(&mut room, EVENTS[event], &settings, 77, source::AEX).unwrap();
        assert_eq!(fields(&mut [0; 40], EVENTS[event], &settings, 77, source::AEX), Err(Full));
        fields::read(payload)
            .map(|field| field.unwrap())
            .map(|field| (field.tag, field.value.to_vec()))
            .collect()
    }

    fn number(told: &[(u16, Vec<u8>)], tag: u16) -> Option<u64> {
        let (_, value) = told.iter().find(|field| field.0 == tag)?;
        Some(u64::from_le_bytes(value[..].try_into().unwrap()))
    }

    #[test]
    fn each_event_says_what_its_samples_have() {
        let inside = told(0, Wanted::Stack(2048), Clock::Event);
        assert!(inside.contains(&(sampled::NAME, b"sgx".to_vec())));
        let numbers =
            [sampled::EVENT, sampled::PERIOD, sampled::STACK, sampled::CHAIN, sampled::ZERO_NS];
        assert_eq!(numbers.map(|tag| number(&inside, tag)), [1, 1_000_000, 2048, 0, 77].map(Some));
        assert_eq!(number(&inside, sampled::REGISTERS), Some(REGISTERS));
        assert_eq!(number(&inside, sampled::SOURCE), Some(source::AEX));
        let chains = told(0, Wanted::Chain, Clock::Processor);
        assert_eq!(
            [sampled::STACK, sampled::CHAIN].map(|tag| number(&chains, tag)),
            [Some(0), Some(1)]
        );
        assert_eq!(
            [sampled::PERIOD, sampled::FREQUENCY].map(|tag| number(&chains, tag)),
            [Some(0), Some(1000)]
        );
        for (event, registers) in [(1, None), (2, Some(REGISTERS))] {
            let other = told(event, Wanted::Chain, Clock::Event);
            assert_eq!(number(&other, sampled::EVENT), Some(event as u64 + 1));
            assert_eq!(number(&other, sampled::REGISTERS), registers);
            assert_eq!(
                [sampled::PERIOD, sampled::FREQUENCY].map(|tag| number(&other, tag)),
                [Some(1_000_000), None]
            );
        }
        // The host's stack is beside what is inside.
        for (event, wanted, host) in [
            (0, Wanted::Chain, Some(2048)),
            (1, Wanted::Stack(4096), Some(4096)),
            (0, Wanted::Registers, None),
            (2, Wanted::Chain, None),
        ] {
            let told = told(event, wanted, Clock::Event);
            assert_eq!(number(&told, sampled::OUTER_STACK), host);
            let registers = host.map(|_| Registers::HOST);
            assert_eq!(number(&told, sampled::OUTER_REGISTERS), registers);
        }
    }
}
