//! What a recording holds ([`teeperf_profile::info`]), as text and as JSON.

use std::io::{self, Write};

use serde::Serialize;
use teeperf_profile::info::{Info, ThreadInfo};
use teeperf_profile::model::Unit;
use teeperf_wire::packet::kind;
use teeperf_wire::shared::ClockKind;

use crate::about::{started, unrecorded};
use crate::findings::signal_name;
use crate::names::printable;
use crate::units::{self, count, counted};

/// Threads, modules and notices that text has lines for.
const SHOWN: usize = 20;

/// Names of packets' types, by number.
pub fn packet_name(packet_kind: u16) -> String {
    let name = match packet_kind {
        kind::START => "start",
        kind::PROCESS => "process",
        kind::CHUNK => "chunk",
        kind::SYMBOLS => "symbols",
        kind::THREAD => "thread",
        kind::PROCESS_END => "process_end",
        kind::NOTICE => "notice",
        kind::END => "end",
        kind::LOSS => "loss",
        kind::TREE => "tree",
        kind::ARCS => "arcs",
        kind::KEYFRAME => "keyframe",
        kind::FILTER => "filter",
        kind::SAMPLED => "sampled",
        kind::SAMPLES => "samples",
        kind::MAP => "map",
        kind::TASK => "task",
        kind::FILE => "file",
        other => return format!("type_{other}"),
    };
    name.into()
}

/// Writes it for people.
pub fn text(info: &Info, out: &mut impl Write) -> io::Result<()> {
    let start = info.start.as_deref().cloned().unwrap_or_default();
    let mut facts = vec![
        ("Command", crate::command::line(&start.arguments)),
        ("Directory", printable(&start.directory)),
        ("Host", printable(&[&start.host[..], &start.system, &start.machine].join(", "))),
        ("Processor", printable(&start.processor)),
        ("Started", started(start.wall_ns)),
        (
            "Duration",
            seconds(info, info.duration())
                .map_or(String::new(), |ns| units::time_inline(Unit::Nanoseconds, ns)),
        ),
        ("Ended", ended(info)),
        ("Clock", clock(info)),
        ("Format", version(info)),
        ("Written by", printable(&start.writer)),
        ("Size", size(info)),
    ];
    if !info.sampled.events.is_empty() {
        facts.push(("Samples", samples(info)));
    }
    if info.lost > 0 {
        facts.push(("Lost", format!("{} of which no chunk speaks", counted(info.lost, "event"))));
    }
    if info.unrecorded > 0 {
        facts.push(("Missing", unrecorded(info.unrecorded)));
    }
    for (name, text) in facts.iter().filter(|(_, text)| !text.is_empty() && text != ", , ") {
        writeln!(out, "{name:<11}{text}")?;
    }
    writeln!(out, "\nPackets:")?;
    for (&packet_kind, &(packets, bytes)) in &info.packets {
        let (name, packets) = (packet_name(packet_kind), count(packets));
        writeln!(out, "  {name:<12}{packets:>12}  {:>15} bytes", count(bytes))?;
    }
    writeln!(out, "\nProcesses: {}", info.processes.len())?;
    for (id, known) in info.processes.iter().take(SHOWN) {
        let of_it = info.threads.range((*id, 0)..=(*id, u32::MAX)).count() as u64;
        let process = &known.process;
        let how = match &known.ended {
            Some(end) => match (end.signal, end.exit_status) {
                (Some(signal), _) => format!(", ended by {}", signal_name(signal)),
                (None, Some(status)) => format!(", exit status {status}"),
                (None, None) => ", ended".into(),
            },
            None => String::new(),
        };
        writeln!(
            out,
            "  {:<8} {}: {}, {} bytes{how}",
            process.pid,
            printable(&process.executable),
            counted(of_it, "thread"),
            count(known.bytes)
        )?;
    }
    more(out, info.processes.len())?;
    if !info.sampled.processes.is_empty() {
        writeln!(out, "\nSampled processes: {}", info.sampled.processes.len())?;
        for (pid, name) in info.sampled.processes.iter().take(SHOWN) {
            writeln!(out, "  {pid:<8} {}", printable(name))?;
        }
        more(out, info.sampled.processes.len())?;
    }
    writeln!(out, "\nThreads: {}", info.threads.len() as u64 + info.more_threads)?;
    for (_, thread) in info.threads.iter().take(SHOWN) {
        writeln!(
            out,
            "  {:<8} {:>12} words {:>15} bytes  {}{}",
            thread.tid,
            count(thread.words),
            count(thread.bytes),
            printable(&thread.name),
            if thread.has_keyframe { " (goes on from before)" } else { "" },
        )?;
    }
    more(out, info.threads.len())?;
    writeln!(out, "\nSymbols: {}; modules that first chunks tell of:", count(info.symbols))?;
    for (_, path) in info.modules.iter().take(SHOWN) {
        writeln!(out, "  {}", printable(path))?;
    }
    more(out, info.modules.len())?;
    let said = info
        .notices
        .iter()
        .map(|(is_warning, text)| (if *is_warning { "WARNING" } else { "Note" }, text));
    for (level, text) in said.take(SHOWN) {
        writeln!(out, "\n{level}: {}", printable(text))?;
    }
    more(out, info.notices.len())?;
    for text in info.damage.iter().take(SHOWN) {
        writeln!(out, "\nDAMAGE: {}", printable(text))?;
    }
    more(out, info.damage.len())?;
    if !info.damage.is_empty() || info.end.is_none() {
        let still = if info.end.is_none() { ", unless it is still being recorded" } else { "" };
        writeln!(out, "\nnext: teeperf repair RECORDING -o NEW keeps what is right in it{still}")?;
    }
    Ok(())
}

fn more(out: &mut impl Write, all: usize) -> io::Result<()> {
    match all.checked_sub(SHOWN) {
        None | Some(0) => Ok(()),
        Some(more) => writeln!(out, "  and {} more: --json has all", count(more as u64)),
    }
}

/// Nanoseconds of clock units.
fn seconds(info: &Info, units: Option<u64>) -> Option<f64> {
    let hz = info.start.as_ref()?.hz;
    (hz > 0).then_some(units? as f64 * 1e9 / hz as f64)
}

fn ended(info: &Info) -> String {
    match &info.end {
        None => "not in order: the recording was cut off, or goes on".into(),
        Some(end) if !end.reason.is_empty() => {
            format!("before the command: {}", printable(&end.reason))
        }
        Some(end) => match (end.signal, end.exit_status) {
            (Some(signal), _) => format!("by {}", signal_name(signal)),
            (None, Some(status)) => format!("with exit status {status}"),
            (None, None) => "in order".into(),
        },
    }
}

fn clock_name(info: &Info) -> &'static str {
    let start = info.start.as_deref();
    match start.and_then(|start| ClockKind::from_u32(u32::try_from(start.clock).ok()?)) {
        Some(ClockKind::Tick) => "tick",
        Some(ClockKind::Cycle) if start.is_some_and(|start| start.ordered == 1) => "ordered",
        Some(ClockKind::Cycle) => "cycle",
        None => "",
    }
}

fn clock(info: &Info) -> String {
    // What is sampled has the samples' own: this one is of calls and returns.
    let is_of_samples_alone = info.processes.is_empty() && !info.sampled.events.is_empty();
    match &info.start {
        _ if is_of_samples_alone => String::new(),
        Some(start) => format!("{}, {} Hz", clock_name(info), count(start.hz)),
        None => String::new(),
    }
}

fn version(info: &Info) -> String {
    match info.start.as_ref().and_then(|start| start.version) {
        Some((major, minor)) => format!("{major}.{minor}"),
        None => "not told".into(),
    }
}

fn size(info: &Info) -> String {
    let packets: u64 = info.packets.values().map(|(packets, _)| packets).sum();
    format!(
        "{} bytes, {}, {}",
        count(info.bytes),
        counted(packets, "packet"),
        counted(info.words, "word")
    )
}

fn samples(info: &Info) -> String {
    let names: Vec<String> = info.sampled.events.values().map(|name| printable(name)).collect();
    let lost = match info.sampled.lost {
        0 => String::new(),
        lost => format!(", {} lost", count(lost)),
    };
    format!("{} of {}{lost}", count(info.sampled.samples), names.join(", "))
}

/// Writes it for programs, on one line. Times are nanoseconds from the recording's start on.
pub fn json(info: &Info, out: &mut impl Write) -> io::Result<()> {
    let start = info.start.as_deref().cloned().unwrap_or_default();
    let began = info.bounds().map(|(first, _)| first).unwrap_or_default();
    let since_start = |time: u64| seconds(info, Some(time.saturating_sub(began)));
    let all = Whole {
        format: "teeperf-info",
        version: 1,
        units: Units { time: "ns" },
        recording: version(info),
        bytes: info.bytes,
        words: info.words,
        duration: seconds(info, info.duration()),
        started: start.wall_ns,
        clock: clock_name(info),
        hz: start.hz,
        command: &start.arguments,
        directory: &start.directory,
        host: &start.host,
        system: &start.system,
        machine: &start.machine,
        processor: &start.processor,
        processors: start.processors,
        writer: &start.writer,
        is_whole: info.end.is_some() && info.damage.is_empty(),
        has_end: info.end.is_some(),
        exit_status: info.end.as_ref().and_then(|end| end.exit_status),
        signal: info.end.as_ref().and_then(|end| end.signal),
        reason: info.end.as_ref().map_or("", |end| &end.reason),
        lost: info.lost,
        unrecorded: info.unrecorded,
        samples: (!info.sampled.events.is_empty()).then(|| Samples {
            events: info.sampled.events.values().map(|name| &**name).collect(),
            taken: info.sampled.samples,
            lost: info.sampled.lost,
            processes: info
                .sampled
                .processes
                .iter()
                .map(|(&pid, name)| SampledProcess { pid, name })
                .collect(),
        }),
        symbols: info.symbols,
        packets: info
            .packets
            .iter()
            .map(|(&number, &(packets, bytes))| Packets {
                kind: packet_name(number),
                packets,
                bytes,
            })
            .collect(),
        processes: info
            .processes
            .iter()
            .map(|(&id, known)| Process {
                id,
                pid: known.process.pid,
                parent_pid: known.process.parent_pid,
                executable: &known.process.executable,
                arguments: &known.process.arguments,
                bytes: known.bytes,
                exit_status: known.ended.as_ref().and_then(|end| end.exit_status),
                signal: known.ended.as_ref().and_then(|end| end.signal),
                modules: info
                    .modules
                    .range((id, String::new())..)
                    .take_while(|(process, _)| *process == id)
                    .map(|(_, path)| &path[..])
                    .collect(),
            })
            .collect(),
        threads: info
            .threads
            .iter()
            .map(|(&(process, serial), thread)| Thread::of(process, serial, thread, &since_start))
            .collect(),
        more_threads: info.more_threads,
        notices: info
            .notices
            .iter()
            .map(|(warning, text)| Notice { warning: *warning, text })
            .collect(),
        damage: &info.damage,
    };
    crate::json::harmless::write(&all, out)
}

#[derive(Serialize)]
struct Whole<'a> {
    format: &'static str,
    version: u32,
    units: Units,
    recording: String,
    bytes: u64,
    words: u64,
    duration: Option<f64>,
    started: u64,
    clock: &'static str,
    hz: u64,
    command: &'a [String],
    directory: &'a str,
    host: &'a str,
    system: &'a str,
    machine: &'a str,
    processor: &'a str,
    processors: u64,
    writer: &'a str,
    is_whole: bool,
    has_end: bool,
    exit_status: Option<i64>,
    signal: Option<i64>,
    reason: &'a str,
    lost: u64,
    unrecorded: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<Samples<'a>>,
    symbols: u64,
    packets: Vec<Packets>,
    processes: Vec<Process<'a>>,
    threads: Vec<Thread<'a>>,
    more_threads: u64,
    notices: Vec<Notice<'a>>,
    damage: &'a [String],
}

#[derive(Serialize)]
struct Samples<'a> {
    events: Vec<&'a str>,
    taken: u64,
    lost: u64,
    processes: Vec<SampledProcess<'a>>,
}

#[derive(Serialize)]
struct SampledProcess<'a> {
    pid: u32,
    name: &'a str,
}

#[derive(Serialize)]
struct Units {
    time: &'static str,
}

#[derive(Serialize)]
struct Packets {
    kind: String,
    packets: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Process<'a> {
    id: u32,
    pid: u32,
    parent_pid: u32,
    executable: &'a str,
    arguments: &'a [String],
    bytes: u64,
    exit_status: Option<i64>,
    signal: Option<i64>,
    modules: Vec<&'a str>,
}

#[derive(Serialize)]
struct Thread<'a> {
    process: u32,
    serial: u32,
    tid: u32,
    name: &'a str,
    chunks: u64,
    trees: u64,
    arcs: u64,
    words: u64,
    bytes: u64,
    first: Option<f64>,
    last: Option<f64>,
    goes_on: bool,
}

impl<'a> Thread<'a> {
    fn of(
        process: u32,
        serial: u32,
        thread: &'a ThreadInfo,
        time: &impl Fn(u64) -> Option<f64>,
    ) -> Self {
        let (chunks, trees, arcs) = thread.packets;
        Self {
            process,
            serial,
            tid: thread.tid,
            name: &thread.name,
            chunks,
            trees,
            arcs,
            words: thread.words,
            bytes: thread.bytes,
            first: thread.span.and_then(|(first, _)| time(first)),
            last: thread.span.and_then(|(_, last)| time(last)),
            goes_on: thread.has_keyframe,
        }
    }
}

#[derive(Serialize)]
struct Notice<'a> {
    warning: bool,
    text: &'a str,
}
