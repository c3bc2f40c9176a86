//! A recording as lines for `grep`, `awk` and `diff`: one for each packet, and one for each
//! event. Seven columns, apart by spaces; the last is free text and goes to the line's end:
//!
//! ```text
//! OFFSET       KIND       PROCESS  THREAD  TIME            DEPTH  TEXT
//! 0            start      -        -       -               -      clock=tick hz=1000000000 …
//! 180          chunk      1        4100    0.000000500     -      serial=1 sequence=1 words=3 …
//! 180+0        call       1        4100    0.000000500     +1     main
//! 180+2        return     1        4100    0.000001500     -1     main
//! ```
//!
//! An offset is that of the packet in the recording, for an event with the place of its first
//! word in the chunk. A thread is its id, a time seconds since the recording's start, a depth
//! that of the frame that begins (`+`) or ends (`-`). What does not apply is `-`.
//!
//! A packet of a thread's tree is one line, `tree`: nodes, the times between which its sums are (clock units), its
//! calls and units of time in all, frames mended, `folded` where recursive calls stand in the open ones.
//!
//! Likewise one of calls without paths, `arcs`: arcs, spans of time, calls and time in them, and calls that are
//! in none.
//!
//! So is what a keyframe says of a thread, `keyframe`: where it goes on, its frames, those that were told before,
//! marks and modules.
//!
//! What was sampled is `sampled`, `map`, `task` and `samples`, and each sample a line `sample`, whose process is a
//! process id and whose time is that of the samples' clock, in seconds.
//!
//! This shows what is recorded and mends nothing: a depth counts calls less returns, and
//! follows gaps, stack switches, `vfork` and `longjmp`; where an exception was caught the
//! frames that it ended still count.

mod keyframes;
mod samples;

use std::collections::HashMap;
use std::io::{self, Write};

use teeperf_profile::arcs::{self as packets, items};
use teeperf_profile::chunks::Decoder;
use teeperf_profile::contents::{Body, Packet, Start};
use teeperf_profile::escape::Escape;
use teeperf_profile::events::{Event, Item, events};
use teeperf_profile::{SiteNames, far_name, gap_name, short_name, trees};
use teeperf_wire::body::chunk::{self, Header};
use teeperf_wire::body::{arcs, tree};
use teeperf_wire::word::point;

use crate::names::printable;

/// Writes packets, in the recording's order, as lines.
pub struct Dump {
    names: SiteNames,
    with_events: bool,
    decoder: Decoder,
    samples: samples::Lines,
    clock: Clock,
    /// By number of the process and serial of the thread.
    depths: HashMap<(u32, u32), Depths>,
}

impl Dump {
    /// With names from a first pass over the recording, or none where there can be no such
    /// pass: then functions are named by module and offset. With events, or packets alone.
    /// Fails when there is no memory to decompress in.
    pub fn new(names: SiteNames, with_events: bool) -> io::Result<Self> {
        Ok(Self {
            names,
            with_events,
            decoder: Decoder::new()?,
            samples: samples::Lines::new()?,
            clock: Clock { hz: 0, start: 0 },
            depths: HashMap::new(),
        })
    }

    /// Writes the next packet.
    pub fn packet(&mut self, packet: &Packet<'_>, out: &mut impl Write) -> io::Result<()> {
        if let Body::Start(start) = &packet.body {
            self.clock = Clock { hz: start.hz, start: start.clock_start };
        }
        let mut line = Line { offset: packet.offset.to_string(), ..Line::default() };
        if !matches!(packet.body, Body::Malformed) {
            self.describe(packet, &mut line);
            line.write(out)?;
        }
        if let Some(at) = packet.cut_at {
            let text = format!("type={} bytes={} at={at}", packet.kind, packet.length);
            Line { offset: line.offset, kind: "malformed", text, ..Line::default() }.write(out)?;
        }
        match &packet.body {
            Body::Keyframe(keyframe) if keyframe.thread != 0 => {
                let key = (keyframe.process, keyframe.thread);
                self.depths.entry(key).or_default().begin_at(keyframe);
                Ok(())
            }
            Body::Chunk(header, data) if self.with_events => {
                self.events(packet.offset, header, data, out)
            }
            Body::Samples(header, data) if self.with_events => {
                self.samples.lines(packet.offset, header, data, out)
            }
            _ => Ok(()),
        }
    }

    fn describe(&self, packet: &Packet<'_>, line: &mut Line) {
        match &packet.body {
            Body::Start(start) => {
                line.kind = "start";
                line.text = start_text(start);
            }
            Body::Process(process) => {
                line.kind = "process";
                line.process = Some(process.id);
                line.time = self.clock.seconds(process.time);
                line.text = format!(
                    "pid={} parent={} exec_of={} executable={} arguments={}",
                    process.pid,
                    process.parent_pid,
                    process.exec_of,
                    quoted(&process.executable),
                    quoted(&process.arguments.join(" ")),
                );
            }
            Body::Chunk(header, data) => {
                line.kind = "chunk";
                line.of_thread(header);
                line.time = self.clock.seconds(header.time);
                line.text = chunk_text(header, data.len());
            }
            Body::Tree(header, data) => {
                line.kind = "tree";
                line.process = Some(header.process);
                line.thread = Some(header.tid);
                line.time = self.clock.seconds(header.end);
                line.text = tree_text(header, data);
            }
            Body::Arcs(header, data) => {
                line.kind = "arcs";
                line.process = Some(header.process);
                line.thread = Some(header.tid);
                line.time = self.clock.seconds(header.end);
                line.text = arcs_text(header, data);
            }
            Body::Symbols(symbols) => {
                line.kind = "symbols";
                line.process = Some(symbols.process);
                let count = symbols.iter().count();
                line.text = format!("first_site={:#x} symbols={count}", symbols.first_site);
            }
            Body::Thread(thread) => {
                line.kind = "thread";
                line.process = Some(thread.process);
                line.thread = Some(thread.tid);
                let name = quoted(thread.name.as_deref().unwrap_or_default());
                line.text = format!("serial={} name={name}", thread.serial);
            }
            Body::ProcessEnd(end) => {
                line.kind = "exit";
                line.process = Some(end.id);
                line.time = self.clock.seconds(end.time);
                line.text = ended(end.exit_status, end.signal);
            }
            Body::Notice(notice) => {
                line.kind = if notice.level == 0 { "note" } else { "warning" };
                line.process = Some(notice.process).filter(|process| *process != 0);
                line.text = printable(&notice.text);
            }
            Body::Loss(loss) => {
                line.kind = "loss";
                line.process = Some(loss.process);
                line.text = format!("events={}", loss.events);
            }
            Body::Filter(filter) if filter.process == 0 => {
                line.kind = "filter";
                line.text =
                    format!("number={} rules={}", filter.number, quoted(&filter.rules.join(", ")));
            }
            Body::Filter(filter) => {
                line.kind = "filter";
                line.process = Some(filter.process);
                line.text = format!(
                    "number={} first_site={:#x} sites={} {}={}",
                    filter.number,
                    filter.first_site,
                    filter.sites,
                    if filter.others_pass { "all_but" } else { "only" },
                    filter.listed().count(),
                );
            }
            Body::Sampled(_)
            | Body::Samples(..)
            | Body::SharedSamples(..)
            | Body::Map(_)
            | Body::Task(_)
            | Body::File(_) => {
                samples::describe(&packet.body, line);
            }
            Body::End(end) => {
                line.kind = "end";
                line.time = self.clock.seconds(end.time);
                line.text = format!(
                    "words={} {} recorder_cpu_ns={} reason={}",
                    end.words,
                    ended(end.exit_status, end.signal),
                    end.recorder_cpu_ns,
                    quoted(&end.reason),
                );
            }
            Body::Keyframe(keyframe) => {
                line.kind = "keyframe";
                line.process = Some(keyframe.process);
                line.thread = Some(keyframe.tid).filter(|_| keyframe.thread != 0);
                line.time = self.clock.seconds(keyframe.time);
                line.text = keyframes::text(keyframe);
            }
            Body::Unknown(kind) => {
                line.kind = "unknown";
                line.text = format!("type={kind} bytes={}", packet.length);
            }
            Body::Malformed => {}
        }
    }

    fn events(
        &mut self,
        offset: u64,
        header: &Header,
        data: &[u8],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut line = Line::default();
        line.of_thread(header);
        let events = match events(&mut self.decoder, header, data) {
            Ok(events) => events,
            Err(error) => {
                line.offset = offset.to_string();
                line.kind = "unreadable";
                line.text = format!("chunk not decoded: {error}");
                return line.write(out);
            }
        };
        let depths = self.depths.entry((header.process, header.thread)).or_default();
        // A later piece of a chunk repeats what held where the chunk began.
        if header.first == 0 {
            depths.stack = header.stack;
        }
        for event in events {
            line.offset = format!("{offset}+{}", event.word);
            line.time = self.clock.seconds(event.time);
            line.depth.clear();
            line.text.clear();
            describe_event(&event, header.process, depths, &mut self.names, &mut line);
            line.write(out)?;
        }
        Ok(())
    }
}

fn start_text(start: &Start) -> String {
    let clock = match start.clock {
        1 => "tick".into(),
        2 if start.ordered == 1 => "ordered".into(),
        2 => "cycle".into(),
        other => other.to_string(),
    };
    let version = start.version.map_or("-".into(), |(major, minor)| format!("{major}.{minor}"));
    let counter = match start.counter_hz {
        0 => String::new(),
        hz => format!("counter_hz={hz} counter_start={} ", start.counter_start),
    };
    format!(
        "version={version} clock={clock} hz={} {counter}period={} start={} wall_ns={} on_full={} \
         processors={} writer={} why={} host={} system={} machine={} \
         processor={} directory={} command={}",
        start.hz,
        start.period,
        start.clock_start,
        start.wall_ns,
        start.on_full,
        start.processors,
        quoted(&start.writer),
        quoted(&start.clock_reason),
        quoted(&start.host),
        quoted(&start.system),
        quoted(&start.machine),
        quoted(&start.processor),
        quoted(&start.directory),
        quoted(&start.arguments.join(" ")),
    )
}

fn chunk_text(header: &Header, bytes: usize) -> String {
    let flag = |bit, name| if header.flags & bit != 0 { name } else { "" };
    let cpu = if header.cpu_ns == u64::MAX { "-".into() } else { header.cpu_ns.to_string() };
    format!(
        "serial={} sequence={} first={} words={} bytes={bytes} encoding={} clock={} stack={:#x} \
         cpu_ns={cpu}{}{}",
        header.thread,
        header.sequence,
        header.first,
        header.count,
        header.encoding,
        header.clock,
        header.stack,
        flag(chunk::WHOLE, " whole"),
        flag(chunk::CUT, " cut"),
    )
}

fn tree_text(header: &tree::Header, data: &[u8]) -> String {
    let (nodes, error) = trees::nodes(header, data);
    let calls = nodes.iter().fold(0, |sum: u64, node| sum.saturating_add(node.calls));
    let own = nodes.iter().fold(0, |sum: u64, node| sum.saturating_add(node.own));
    let mut text = format!(
        "serial={} nodes={} bytes={} encoding={} begin={} end={} calls={calls} time={own} mended={}",
        header.thread,
        header.nodes,
        data.len(),
        header.encoding,
        header.begin,
        header.end,
        header.mended,
    );
    if header.flags & tree::FOLDS != 0 {
        text += " folded";
    }
    if let Some(error) = error {
        text += &format!(" error={}", quoted(&error.to_string()));
    }
    text
}

fn arcs_text(header: &arcs::Header, data: &[u8]) -> String {
    let (found, spans, error) = items(header, data);
    let sum = |items: &[packets::Item]| {
        items.iter().fold(0, |sum: u64, item| sum.saturating_add(item.count))
    };
    let mut text = format!(
        "serial={} arcs={} spans={} bytes={} encoding={} begin={} end={} calls={} time={} lost={}",
        header.thread,
        header.arcs,
        header.spans,
        data.len(),
        header.encoding,
        header.begin,
        header.end,
        sum(&found),
        sum(&spans),
        header.lost,
    );
    if let Some(error) = error {
        text += &format!(" error={}", quoted(&error.to_string()));
    }
    text
}

fn ended(exit_status: Option<i64>, signal: Option<i64>) -> String {
    let number = |n: Option<i64>| n.map_or("-".into(), |n| n.to_string());
    format!("status={} signal={}", number(exit_status), number(signal))
}

fn describe_event(
    event: &Event<'_>,
    process: u32,
    depths: &mut Depths,
    names: &mut SiteNames,
    line: &mut Line,
) {
    let mut name = |site| printable(&short_name(names.name(process, site)));
    let escape = match event.item {
        Item::Call { site } => {
            line.kind = "call";
            line.depth = depths.enter();
            line.text = name(site);
            return;
        }
        Item::Return { site } => {
            line.kind = "return";
            line.depth = depths.leave();
            line.text = name(site);
            return;
        }
        Item::Unreadable(words) => {
            line.kind = "unreadable";
            line.text = format!("words={words}");
            return;
        }
        Item::Escape(escape) => escape,
    };
    (line.kind, line.text) = match escape {
        Escape::Far { is_return, address, .. } => {
            line.depth = if is_return { depths.leave() } else { depths.enter() };
            (if is_return { "return" } else { "call" }, far_name(address))
        }
        Escape::Tick(units) => ("tick", format!("units={units}")),
        Escape::Stamp(time) => ("stamp", format!("units={time}")),
        Escape::Hole => ("hole", String::new()),
        Escape::Pad => ("pad", String::new()),
        Escape::Sample(sample) => {
            let place = match sample.site {
                _ if sample.is_clocked => "clocked".to_owned(),
                _ if sample.is_end => "end".to_owned(),
                0 => format!("address={:#x}", sample.address),
                site => name(site),
            };
            let of = |is_so: bool, text| if is_so { text } else { "" };
            let text = format!(
                "cpu_ns={} stands_for_ns={}{}{}{}{}{} {place}",
                sample.cpu_ns,
                sample.period_ns,
                of(sample.is_in_hook, " hook"),
                match (sample.is_in_kernel, sample.is_of_user_mode) {
                    (true, true) => " user late",
                    (true, false) => " kernel",
                    (false, true) => " user",
                    (false, false) => "",
                },
                of(sample.has_faults, " faults"),
                of(sample.is_alone, " alone"),
                match sample.missed {
                    0 => String::new(),
                    missed => format!(" missed={missed}"),
                },
            );
            ("sample", text)
        }
        Escape::Filter(number) => ("filter", format!("number={number}")),
        Escape::OffCpu { units, waits } => {
            let waits = waits.map_or(String::new(), |waits| format!(" waits={waits}"));
            ("off-cpu", format!("units={units}{waits}"))
        }
        Escape::Mark(key) => {
            depths.marks.insert(key, depths.now());
            ("mark", format!("key={key} depth={}", depths.now()))
        }
        Escape::Jump(key) => {
            depths.fall_to(depths.marks.get(&key).copied());
            ("jump", format!("key={key} depth={}", depths.now()))
        }
        Escape::VforkBegin => {
            depths.vforked = Some(depths.now());
            ("vfork", format!("begin depth={}", depths.now()))
        }
        Escape::VforkEnd => {
            depths.fall_to(depths.vforked);
            ("vfork", format!("end depth={}", depths.now()))
        }
        Escape::Gap(gap) => {
            let depth = depths.now().saturating_sub(gap.popped.into());
            *depths.slot() = depth + u64::from(gap.pushed);
            let reason = gap_name(gap.reason).replace(' ', "-");
            let text = format!(
                "reason={reason} lost={} popped={} pushed={} units={} depth={}",
                gap.lost,
                gap.popped,
                gap.pushed,
                gap.units,
                depths.now(),
            );
            ("gap", text)
        }
        Escape::Stack(stack) => {
            depths.stack = stack;
            ("stack", format!("entered={stack:#x} depth={}", depths.now()))
        }
        Escape::Switch { left, entered } => {
            depths.stack = entered;
            ("switch", format!("left={left:#x} entered={entered:#x} depth={}", depths.now()))
        }
        Escape::StackNew(stack) => {
            depths.by_stack.remove(&stack);
            ("stack", format!("new={stack:#x}"))
        }
        Escape::Catch(site) => ("catch", name(site)),
        Escape::Module(module) => {
            names.module(process, &module);
            let hex: String =
                module.build_id.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            let text = format!(
                "{} first_site={:#x} sites={:#x} address={:#x} bias={:#x} build_id={hex} path={}",
                if module.opens { "open" } else { "retired" },
                module.first_site,
                module.sites,
                module.address,
                module.bias,
                quoted(&module.path.to_string()),
            );
            ("module", text)
        }
        Escape::Name(text) => ("name", quoted(&text.to_string())),
        Escape::Note(text) => ("mention", quoted(&text.to_string())),
        Escape::Wait { site, units } => ("wait", format!("units={units} {}", name(site))),
        Escape::Point { kind, site, time, value } => {
            let value = match kind {
                point::MARK => String::new(),
                point::INTEGER => format!(" value={}", value.cast_signed()),
                point::REAL => format!(" value={}", f64::from_bits(value)),
                other => format!(" kind={other} value={value:#x}"),
            };
            ("point", format!("time={time}{value} {}", name(site)))
        }
        Escape::Timed(counter) => ("timed", format!("counter={counter}")),
        Escape::Unknown(code) => ("unknown", format!("code={code}")),
        Escape::Malformed(code) => ("malformed", format!("code={code}")),
    };
}

/// Frames open on the stacks of one thread.
#[derive(Default)]
struct Depths {
    stack: u64,
    by_stack: HashMap<u64, u64>,
    marks: HashMap<u32, u64>,
    vforked: Option<u64>,
}

impl Depths {
    fn slot(&mut self) -> &mut u64 {
        self.by_stack.entry(self.stack).or_default()
    }

    fn now(&self) -> u64 {
        self.by_stack.get(&self.stack).copied().unwrap_or_default()
    }

    fn enter(&mut self) -> String {
        *self.slot() += 1;
        format!("+{}", self.now())
    }

    fn leave(&mut self) -> String {
        let text = format!("-{}", self.now());
        let slot = self.slot();
        *slot = slot.saturating_sub(1);
        text
    }

    /// Down to a depth, if it is known; never up.
    fn fall_to(&mut self, depth: Option<u64>) {
        if let Some(depth) = depth {
            let slot = self.slot();
            *slot = depth.min(*slot);
        }
    }
}

struct Clock {
    hz: u64,
    start: u64,
}

impl Clock {
    /// Seconds since the recording's start, nine digits behind the point.
    fn seconds(&self, time: u64) -> String {
        if self.hz == 0 {
            return "-".into();
        }
        let units = i128::from(time) - i128::from(self.start);
        let ns = units * 1_000_000_000 / i128::from(self.hz);
        let sign = if ns < 0 { "-" } else { "" };
        let ns = ns.unsigned_abs();
        format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    }
}

#[derive(Default)]
struct Line {
    offset: String,
    kind: &'static str,
    process: Option<u32>,
    thread: Option<u32>,
    time: String,
    depth: String,
    text: String,
}

impl Line {
    fn of_thread(&mut self, header: &Header) {
        self.process = Some(header.process);
        self.thread = Some(header.tid);
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let number = |n: Option<u32>| n.map_or("-".into(), |n| n.to_string());
        let or_dash =
            |text: &'_ str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        writeln!(
            out,
            "{:<16} {:<10} {:>3} {:>7} {:>15} {:>6} {}",
            self.offset,
            self.kind,
            number(self.process),
            number(self.thread),
            or_dash(&self.time),
            or_dash(&self.depth),
            or_dash(&self.text),
        )
    }
}

/// In quotation marks, in which quotation marks and backslashes have a backslash before
/// them, and what could steer a terminal is spelt out.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", printable(&text))
}
