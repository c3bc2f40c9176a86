//! The first packet of a recording: clock, machine, command.

use crate::clock::{self, Chosen};
use crate::machine::Machine;
use crate::options::Options;
use crate::packets::Payload;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::time::{SystemTime, UNIX_EPOCH};
use teeperf_wire::body::start;
use teeperf_wire::packet::{MAJOR, MINOR};

/// Payload of the packet; the recording starts now.
pub(crate) fn payload(
    options: &Options,
    chosen: &Chosen,
    clock_start: u64,
    command: &[OsString],
    counter_hz: Option<u64>,
) -> Vec<u8> {
    let machine = Machine::this();
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let directory = std::env::current_dir().unwrap_or_default();
    let payload = Payload::default()
        .bytes(start::VERSION, &[MAJOR.to_le_bytes(), MINOR.to_le_bytes()].concat())
        .bytes(start::WRITER, options.writer.as_bytes())
        .number(start::CLOCK, chosen.kind as u64)
        .number(start::HZ, chosen.hz)
        .number(start::PERIOD, chosen.period_units)
        .bytes(start::CLOCK_REASON, chosen.reason.as_bytes())
        .number(start::CLOCK_START, clock_start)
        .number(start::WALL_NS, wall.as_nanos() as u64)
        .list(start::ARGUMENT, command.iter().map(|word| word.as_bytes()))
        .bytes(start::HOST, &machine.host)
        .bytes(start::SYSTEM, &machine.system)
        .bytes(start::MACHINE, &machine.machine)
        .bytes(start::PROCESSOR, machine.processor.as_bytes())
        .number(start::PROCESSORS, machine.processors)
        .number(start::ON_FULL, options.on_full as u64)
        .bytes(start::DIRECTORY, directory.as_os_str().as_bytes());
    let payload = match counter_hz {
        Some(hz) => {
            payload.number(start::COUNTER_HZ, hz).number(start::COUNTER_START, clock::counter())
        }
        None => payload,
    };
    let payload = if chosen.is_ordered { payload.number(start::ORDERED, 1) } else { payload };
    payload.finish()
}
