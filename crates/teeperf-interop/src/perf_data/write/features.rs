//! Features of a file: the machine and the run, as the recording has them.

use teeperf_profile::contents::Start;

use super::super::features::number;
use super::super::record::MOST_BUILD_ID;
use super::events::Events;
use super::records::Known;

/// Texts are as long as a multiple of this.
const ALIGN: usize = 64;
/// Bit of `misc`: the build-id's length is known.
const MISC_BUILD_ID_SIZE: u16 = 1 << 15;
/// `HEADER_SAMPLE_TIME`.
const SAMPLE_TIME: u32 = 21;
/// `CLOCK_MONOTONIC`, of which a time of day is known.
const CLOCK_MONOTONIC: u32 = 1;
/// Version of the clock's data.
const CLOCK_VERSION: u32 = 1;
/// Longest text that is written.
const MOST_TEXT: usize = 1 << 16;

/// Those that are known, in the order of their numbers.
pub(super) fn all(
    start: &Start,
    writer: &str,
    events: &Events,
    known: &Known,
    times: (u64, u64),
) -> Vec<(u32, Vec<u8>)> {
    let mut all = Vec::new();
    let build_ids = build_ids(known);
    if !build_ids.is_empty() {
        all.push((number::BUILD_ID, build_ids));
    }
    let machine = match start.machine.as_str() {
        "" => events.all.first().map_or("", |event| name_of(event.machine)),
        known => known,
    };
    let release = start.system.strip_prefix("Linux ").unwrap_or(&start.system);
    let by = if start.writer.is_empty() { writer } else { &start.writer };
    for (number, value) in [
        (number::HOSTNAME, &*start.host),
        (number::OSRELEASE, release),
        (number::VERSION, by.strip_prefix("perf").map_or(by, str::trim)),
        (number::ARCH, machine),
    ] {
        all.extend((!value.is_empty()).then(|| (number, text_alone(value))));
    }
    let processors = u32::try_from(start.processors).unwrap_or(0);
    if processors > 0 {
        let both = [processors, processors].map(u32::to_le_bytes);
        all.push((number::NRCPUS, both.as_flattened().to_vec()));
    }
    if !start.processor.is_empty() {
        all.push((number::CPUDESC, text_alone(&start.processor)));
    }
    if !start.arguments.is_empty() {
        let mut out = (start.arguments.len() as u32).to_le_bytes().to_vec();
        start.arguments.iter().for_each(|word| text(word, &mut out));
        all.push((number::CMDLINE, out));
    }
    all.push((number::EVENT_DESC, events.descriptions()));
    if times.0 > 0 {
        let both = [times.0, times.1].map(u64::to_le_bytes);
        all.push((SAMPLE_TIME, both.as_flattened().to_vec()));
    }
    if start.wall_ns > 0 {
        let zero = events.zero;
        let mut out =
            [CLOCK_VERSION, CLOCK_MONOTONIC].map(u32::to_le_bytes).as_flattened().to_vec();
        out.extend([start.wall_ns, zero].map(u64::to_le_bytes).as_flattened());
        all.push((number::CLOCK_DATA, out));
    }
    all
}

fn text_alone(value: &str) -> Vec<u8> {
    let mut out = Vec::new();
    text(value, &mut out);
    out
}

/// Its length, then it, and zeroes.
pub(super) fn text(value: &str, out: &mut Vec<u8>) {
    let value = &value.as_bytes()[..value.len().min(MOST_TEXT)];
    let length = (value.len() + 1).next_multiple_of(ALIGN);
    out.extend((length as u32).to_le_bytes());
    out.extend_from_slice(value);
    out.resize(out.len() + length - value.len(), 0);
}

fn build_ids(known: &Known) -> Vec<u8> {
    let mut out = Vec::new();
    for (path, (id, mode)) in &known.build_ids {
        // Of the kernel's map the path has a symbol behind it.
        let path = match path.strip_suffix(b"_text").or(path.strip_suffix(b"_stext")) {
            Some(kernel) if path.starts_with(b"[kernel") => kernel,
            _ => path,
        };
        let path = &path[..path.len().min(4096)];
        let length = (path.len() + 1).next_multiple_of(8);
        // type, misc, size; the host's process; the build-id, its length, three to fill; the path.
        out.extend([0; 4]);
        out.extend((u16::from(*mode) | MISC_BUILD_ID_SIZE).to_le_bytes());
        out.extend(((8 + 4 + MOST_BUILD_ID + 4 + length) as u16).to_le_bytes());
        out.extend(u32::MAX.to_le_bytes());
        let mut bytes = [0; MOST_BUILD_ID + 4];
        bytes[..id.len()].copy_from_slice(id);
        bytes[MOST_BUILD_ID] = id.len() as u8;
        out.extend(bytes);
        out.extend_from_slice(path);
        out.resize(out.len() + length - path.len(), 0);
    }
    out
}

/// What `uname -m` calls the machine of this code.
fn name_of(machine: u16) -> &'static str {
    match machine {
        3 => "i686",
        21 => "ppc64le",
        22 => "s390x",
        40 => "armv7l",
        62 => "x86_64",
        183 => "aarch64",
        243 => "riscv64",
        258 => "loongarch64",
        _ => "",
    }
}
