//! What was sampled, as lines.

use std::io::{self, Write};

use teeperf_profile::contents::Body;
use teeperf_profile::samples::Decoder;
use teeperf_wire::body::sample::{self, Header, Sample};
use teeperf_wire::body::{map, task};

use super::{Line, quoted};
use crate::names::printable;

/// Samples, one by one.
pub(super) struct Lines {
    decoder: Decoder,
}

impl Lines {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { decoder: Decoder::new()? })
    }

    /// Writes a line for each sample of a packet, and one for what is wrong with the rest.
    pub(super) fn lines(
        &mut self,
        offset: u64,
        header: &Header,
        data: &[u8],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let malformed = |text: String| Line {
            offset: offset.to_string(),
            kind: "malformed",
            text,
            ..Line::default()
        };
        let mut samples = match self.decoder.samples(header, data) {
            Ok(samples) => samples,
            Err(error) => return malformed(printable(&error.to_string())).write(out),
        };
        let mut count = 0u32;
        for sample in &mut samples {
            line(offset, count, &sample).write(out)?;
            count += 1;
        }
        if count != header.samples || !samples.rest.is_empty() {
            let text = format!(
                "samples={} read={count} bytes_left={}",
                header.samples,
                samples.rest.len()
            );
            malformed(text).write(out)?;
        }
        Ok(())
    }
}

fn line(offset: u64, number: u32, sample: &Sample<'_>) -> Line {
    let cpu = match sample.cpu {
        sample::NO_CPU => "-".to_owned(),
        cpu => cpu.to_string(),
    };
    let mut text = format!(
        "event={} cpu={cpu} mode={} period={} ip={:#x}",
        sample.event,
        mode(sample.mode),
        sample.period,
        sample.ip
    );
    if !sample.chain.is_empty() {
        let chain: Vec<String> =
            sample.chain.iter().map(|address| format!("{address:#x}")).collect();
        text.push_str(&format!(" chain={}", chain.join(",")));
    }
    if sample.mask != 0 {
        text.push_str(&format!(" registers={:#x}", sample.mask));
    }
    if !sample.stack.is_empty() {
        text.push_str(&format!(" stack={}", sample.stack.len()));
    }
    if !sample.branches.is_empty() {
        text.push_str(&format!(" branches={}", sample.branches.len() / 2));
    }
    if sample.outer.is_there() {
        let sample::Outer { mask, stack, .. } = sample.outer;
        text.push_str(&format!(" outer_registers={mask:#x} outer_stack={}", stack.len()));
    }
    Line {
        offset: format!("{offset}+{number}"),
        kind: "sample",
        process: Some(sample.pid),
        thread: Some(sample.tid),
        time: if sample.time_ns == sample::NO_TIME {
            String::new()
        } else {
            seconds(sample.time_ns)
        },
        text,
        ..Line::default()
    }
}

/// Describes a packet of what was sampled; others it leaves alone.
pub(super) fn describe(body: &Body<'_>, line: &mut Line) {
    match body {
        Body::Sampled(sampled) => {
            line.kind = "sampled";
            let unit = if sampled.unit == 1 { "ns" } else { "counts" };
            line.text = format!(
                "event={} name={} period={} unit={unit} random={} source={} machine={} stack={} outer_stack={}",
                sampled.event,
                quoted(&sampled.name),
                sampled.period,
                u8::from(sampled.is_random),
                sampled.source,
                sampled.machine,
                sampled.stack,
                sampled.outer_stack,
            );
        }
        Body::Samples(header, _) | Body::SharedSamples(header, _) => {
            let stored = if let Body::Samples(_, data) = body { data.len() } else { 0 };
            line.kind = "samples";
            line.text = format!(
                "samples={} bytes={} lost={} encoding={} stored={stored}",
                header.samples, header.bytes, header.lost, header.encoding,
            );
        }
        Body::Map(map) => {
            line.kind = "map";
            line.process = Some(map.pid).filter(|&pid| pid != map::KERNEL);
            line.time = map.time_ns.map_or(String::new(), seconds);
            let id: String = map.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            line.text = format!(
                "address={:#x} length={:#x} offset={:#x} protection={} mode={} build_id={}{} path={}",
                map.address,
                map.length,
                map.offset,
                map.protection,
                mode(map.mode),
                if id.is_empty() { "-" } else { &id },
                if map.file == 0 { String::new() } else { format!(" file={}", map.file) },
                quoted(&String::from_utf8_lossy(map.path)),
            );
        }
        Body::File(part) => {
            line.kind = "file";
            line.text = format!(
                "file={} size={} offset={} stored={}",
                part.file,
                part.size,
                part.offset,
                part.data.len(),
            );
        }
        Body::Task(task) => {
            line.kind = "task";
            line.process = Some(task.pid);
            line.thread = Some(task.tid);
            line.time = task.time_ns.map_or(String::new(), seconds);
            line.text = format!(
                "what={} parent={}/{} name={}",
                match task.what {
                    task::what::FORK => "fork",
                    task::what::NAME => "name",
                    task::what::EXEC => "exec",
                    task::what::EXIT => "exit",
                    _ => "unknown",
                },
                task.parent_pid,
                task.parent_tid,
                quoted(&String::from_utf8_lossy(task.name)),
            );
        }
        _ => {}
    }
}

fn mode(number: u8) -> &'static str {
    match number {
        sample::mode::KERNEL => "kernel",
        sample::mode::USER => "user",
        sample::mode::HYPERVISOR => "hypervisor",
        sample::mode::GUEST_KERNEL => "guest_kernel",
        sample::mode::GUEST_USER => "guest_user",
        _ => "unknown",
    }
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}
