//! From replayed trees to the profile: names for words, nanoseconds for clock units, threads in
//! order, and everything the recording says about its run.

use std::collections::{BTreeMap, HashMap, HashSet};

use teeperf_symbols::Search;
use teeperf_wire::packet::MAJOR;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::gap;

use crate::contents::{Body, End, Packet, Process, Start};
use crate::lengths::Lengths;
use crate::model::{
    Extremes, FunctionId, Health, Info, Node, Profile, Spent, Stacks, Thread, Time, Tree, Unit,
};
use crate::names::{Names, SymbolTables, file_name};
use crate::no_room;
use crate::packets::Options;
use crate::recording::is_later;
use crate::replay::{CallTree, Counts, Figures, Threads, pseudo};
use crate::samples;
use crate::spent;
use crate::warnings::Warnings;

/// Most processes, and most named threads, whose names are kept.
const MAX_NAMED: usize = 1 << 20;

/// Most filters whose rules are kept, and most patterns of what is timed.
const MAX_FILTERS: usize = 1000;

/// CPU time, as a part of all and in nanoseconds, from which on a profile says that the kernel had
/// it for functions unknown: that of fewer ticks may be missing by chance.
const UNPLACED_PART: f64 = 0.05;
const UNPLACED_NS: f64 = 100e6;

/// How rules begin that are about timing.
const TIMED: &str = "timed ";

/// What packets other than chunks say.
#[derive(Default)]
pub(crate) struct Gathered {
    start: Option<Box<Start>>,
    end: Option<End>,
    processes: HashMap<u32, Process>,
    /// Titles that processes gave themselves while they ran.
    titles: HashMap<u32, String>,
    threads: HashMap<(u32, u32), String>,
    symbols: SymbolTables,
    /// Rules of the filters, in order.
    filters: Vec<Vec<String>>,
    /// Patterns of functions that the counter timed.
    timed: Vec<String>,
    /// Events lost of which no chunk speaks.
    lost: u64,
    /// Processes and libraries that are not in the recording.
    unrecorded: u64,
    unknown_packets: HashMap<u16, (u64, u64)>,
    /// Words of all chunks that were read.
    pub(crate) words: u64,
    /// What is wrong with the recording.
    pub(crate) warnings: Warnings,
}

impl Gathered {
    /// Takes a packet that is no chunk; `offset` is where it stands.
    pub(crate) fn take(&mut self, offset: u64, body: Body<'_>) {
        match body {
            Body::Start(start) => self.start(offset, start),
            Body::Process(process) => {
                if self.processes.len() < MAX_NAMED {
                    let id = process.id;
                    let title = process.arguments.join(" ");
                    let before = self.processes.insert(id, process);
                    if before.is_some_and(|before| before.arguments.join(" ") != title) {
                        self.titles.insert(id, title);
                    }
                }
            }
            Body::Symbols(symbols) => self.symbols.add(&symbols),
            Body::Thread(thread) => {
                if let Some(name) = thread.name
                    && self.threads.len() < MAX_NAMED
                {
                    self.threads.insert((thread.process, thread.serial), name);
                }
            }
            Body::Notice(notice) if notice.level > 0 => {
                self.unrecorded = self.unrecorded.saturating_add(notice.unrecorded);
                self.warnings.add(|| notice.text);
            }
            Body::Notice(_) | Body::ProcessEnd(_) => {}
            Body::Filter(filter) => {
                let of_timing = |rule: &String| rule.starts_with(TIMED);
                let (timed, rules): (Vec<_>, Vec<_>) =
                    filter.rules.into_iter().partition(of_timing);
                let timed = timed.into_iter().map(|rule| rule[TIMED.len()..].to_owned());
                for pattern in timed.take(MAX_FILTERS - self.timed.len()) {
                    if !self.timed.contains(&pattern) {
                        self.timed.push(pattern);
                    }
                }
                // Where only what is timed has changed, no other filter holds.
                let is_other = self.filters.last().map_or(!rules.is_empty(), |last| *last != rules);
                if is_other && self.filters.len() < MAX_FILTERS {
                    self.filters.push(rules);
                }
            }
            Body::Loss(loss) => self.lost = self.lost.saturating_add(loss.events),
            Body::End(end) => {
                if !end.reason.is_empty() {
                    self.warnings
                        .add(|| format!("recording ended before the command: {}", end.reason));
                }
                self.end = Some(end);
            }
            Body::Unknown(kind) => {
                let (times, _) = self.unknown_packets.entry(kind).or_insert((0, offset));
                *times += 1;
            }
            // Chunks, trees, arcs and keyframes go to replay; what is malformed was said.
            Body::Chunk(..)
            | Body::Tree(..)
            | Body::Arcs(..)
            | Body::Keyframe(_)
            | Body::Sampled(_)
            | Body::Samples(..)
            | Body::SharedSamples(..)
            | Body::Map(_)
            | Body::Task(_)
            | Body::File(_)
            | Body::Malformed => {}
        }
    }

    /// Says so when a packet cannot be read to its end.
    pub(crate) fn note_cut(&mut self, packet: &Packet<'_>) {
        if let Some(at) = packet.cut_at {
            let (offset, kind) = (packet.offset, packet.kind);
            self.warnings.add(|| {
                format!("packet at offset {offset}: type {kind} cannot be read from byte {at} of its payload on")
            });
        }
    }

    fn start(&mut self, offset: u64, start: Box<Start>) {
        if self.start.is_some() {
            self.warnings.add(|| format!("offset {offset}: another start packet is not used"));
            return;
        }
        match start.version {
            Some((major, minor)) if is_later(major, minor) => self.warnings.add(|| {
                format!("recording format {major}.{minor} is newer than this reader's: what it does not know is skipped")
            }),
            Some(_) => {}
            None => self.warnings.add(|| {
                format!("the start packet at offset {offset} has no version: it is taken for {MAJOR}.0")
            }),
        }
        self.start = Some(start);
    }

    /// The profile, with what replay found.
    pub(crate) fn finish(
        mut self,
        mut threads: Threads,
        samples: samples::Driver,
        options: &Options<'_>,
        search: Search,
    ) -> Profile {
        let &Options { by_place, without_inlined, .. } = options;
        self.warn_of_what_is_missing(options.goes_on);
        let hz = self.start.as_ref().map_or(0, |start| start.hz);
        let ns_per_unit = if hz > 0 { 1e9 / hz as f64 } else { 1.0 };
        let ns = |units: u64| (units as f64 * ns_per_unit) as u64;
        let open = threads.open_frames();
        let mut counts = std::mem::take(&mut threads.shared.counts);
        counts.lost = counts.lost.saturating_add(self.lost);
        let windows = std::mem::take(&mut threads.shared.windows);
        let far = std::mem::take(&mut threads.shared.far);
        let mut names =
            Names::new(std::mem::take(&mut self.symbols), windows, far, by_place, search);
        let mut trees: Vec<(Thread, usize)> = Vec::new();
        for (key, process, figures, tree) in threads.shown() {
            let thread = self.thread(key, process, figures, &ns);
            trees.push((thread, tree));
        }
        let pools = spent::Pools::of(&self.processes, threads.trees.iter().flatten());
        let is_sampled = threads.trees.iter().flatten().any(|tree| !tree.spent.is_empty());
        let mut out = Vec::with_capacity(trees.len());
        let (mut beyond_limits, mut timer_samples) = (0u64, 0u64);
        let (mut clocked_ns, mut unplaced_ns, mut doubtful_ns) = (0.0, 0.0, 0.0);
        for (mut thread, tree) in trees {
            // The replayed tree is let go as soon as the thread has its own.
            let Some(tree) = threads.trees.get_mut(tree).and_then(Option::take) else { continue };
            beyond_limits = beyond_limits.saturating_add(tree.flat_calls());
            timer_samples += spent::samples(&tree.spent);
            let weights = spent::Weights::of(&tree, &pools);
            unplaced_ns += weights.unplaced_ns;
            doubtful_ns += weights.doubtful_ns;
            let how = spent::How { weights: &weights, with_inlined: !without_inlined, is_sampled };
            clocked_ns += tree.spent.clocked.values().sum::<u64>() as f64 * ns_per_unit;
            thread.tree = convert(&tree, &mut names, ns_per_unit, how);
            thread.lengths = lengths(&tree.lengths, tree.process, &mut names);
            thread.counted = lengths(&tree.counted, tree.process, &mut names);
            out.push(thread);
        }
        if beyond_limits > 0 {
            self.warnings.add(|| {
                format!("there are more call paths than a profile can have: {beyond_limits} calls on later ones are counted in their functions, with their own time, but not below their callers: they stand below `[beyond limits]`. `--most-paths` allows more paths")
            });
        }
        let untimed = threads.shared.room.untimed;
        if untimed > 0 {
            self.warnings.add(|| format!("there are more functions in more threads than calls are timed of: {untimed} calls are not among the lengths"));
        }
        let uncounted = threads.shared.uncounted;
        if uncounted > 0 {
            self.warnings.add(|| format!("the recording does not say how fast the counter goes that timed {uncounted} calls: their lengths are those of the tick"));
        }
        let length_unit_ns = options.lengths.then_some(ns_per_unit);
        let (graph, calls) = std::mem::take(&mut threads.arcs).graph(&mut names, ns_per_unit);
        if calls > 0 {
            self.warnings
                .add(|| format!("there are more arcs than are read: {calls} calls are left out"));
        }
        let waits = std::mem::take(&mut threads.shared.waits).shown(&mut names, ns_per_unit);
        let mended = threads.shared.mended.frames();
        let mended_in = std::mem::take(&mut threads.shared.mended).shown(&mut names);
        let begin = self.start.as_ref().map_or(0, |start| start.clock_start);
        let since = |time: u64| time.saturating_sub(begin) as f64 * ns_per_unit;
        let pid = |process| self.processes.get(&process).map_or(0, |process| process.pid);
        let points = std::mem::take(&mut threads.shared.points);
        let points = points.shown(&mut names, &mut self.warnings, since, pid);
        let (functions, places) = names.into_functions();
        for thread in &mut out {
            thread.tree.sum_up();
            thread.no_room = no_room::of(&thread.tree, &functions);
        }
        self.warn_of_no_room(&threads, &out);
        let total = |thread: &Thread| thread.tree.total_ns();
        out.sort_by(|a, b| total(b).total_cmp(&total(a)).then((a.pid, a.tid).cmp(&(b.pid, b.tid))));
        let mut info = self.info(ns_per_unit, &counts);
        if is_sampled {
            let cpu_ns: f64 = out.iter().map(|thread| thread.sampled().whole_ns).sum();
            let each_ns = (cpu_ns - clocked_ns) / timer_samples as f64;
            info.period_ns = if timer_samples > 0 && each_ns > 0.0 { each_ns } else { PERIOD_NS };
            info.timer_samples = Some(timer_samples);
            self.warn_of_no_place(unplaced_ns, doubtful_ns, cpu_ns);
            out.iter_mut().for_each(|thread| thread.tell_cpu_by_waiting());
        }
        let mut sampled = samples.finish(&info, &mut self.warnings);
        self.warnings.append(&mut threads.shared.warnings);
        let mut health = health(counts, open, self.warnings, &ns);
        health.unrecorded = self.unrecorded;
        (health.mended, health.mended_in) = (mended, mended_in);
        if out.is_empty() && graph.is_none() && !sampled.is_empty() {
            let mut first = sampled.remove(0);
            first.health.warnings.splice(0..0, health.warnings);
            first.health.unrecorded = health.unrecorded;
            return Profile { points, beside: sampled, ..first };
        }
        Profile {
            info,
            functions,
            places,
            threads: out,
            graph,
            waits,
            points,
            health,
            length_unit_ns,
            beside: sampled,
            ..Profile::default()
        }
    }

    fn warn_of_what_is_missing(&mut self, goes_on: bool) {
        if self.start.is_none() {
            self.warnings.add(|| {
                format!("there is no start packet: it is taken for version {MAJOR}.0, and times are in clock units")
            });
        } else if self.start.as_ref().is_some_and(|start| start.hz == 0) {
            self.warnings.add(|| {
                "the clock's rate is not given: times are what it counted, not seconds; shares are right all the same".into()
            });
        }
        match &self.end {
            None if goes_on => self.warnings.add(|| {
                "it is still being recorded: this is what is written so far (teeperf ctl snapshot has all of it written)".into()
            }),
            None => self.warnings.add(|| {
                "the recording has no end: what came after its last packet is missing".into()
            }),
            Some(end) if end.words != 0 && end.words != self.words => {
                let (written, read) = (end.words, self.words);
                self.warnings.add(|| format!("{written} words were recorded, {read} are here"));
            }
            Some(_) => {}
        }
        let mut unknown: Vec<_> = std::mem::take(&mut self.unknown_packets).into_iter().collect();
        unknown.sort_unstable();
        for (kind, (times, offset)) in unknown {
            self.warnings.add(|| {
                format!("{times} packets of type {kind}, which this reader does not know, were skipped; the first at offset {offset}")
            });
        }
        let left_out = self.symbols.left_out;
        if left_out > 0 {
            self.warnings.add(|| {
                format!(
                    "{left_out} symbols were too many to be kept: functions that need one of these \
                     stand under their addresses"
                )
            });
        }
    }

    fn thread(
        &self,
        serial: Option<u32>,
        process: u32,
        figures: Figures,
        ns: &impl Fn(u64) -> u64,
    ) -> Thread {
        let known = self.processes.get(&process);
        let told = serial.and_then(|serial| self.threads.get(&(process, serial)).cloned());
        let is_first = known.is_some_and(|process| process.pid == figures.tid);
        let title = self.titles.get(&process).filter(|_| is_first && figures.threads < 2);
        let name = title
            .cloned()
            .or(told)
            .or(figures.name)
            .filter(|name| !name.is_empty())
            .or_else(|| known.map(|process| file_name(&process.executable)))
            .unwrap_or_default();
        Thread {
            file: 0,
            pid: known.map_or(0, |process| process.pid),
            tid: figures.tid,
            name,
            merged: figures.threads,
            events: figures.events,
            wall_ns: ns(figures.wall),
            cpu_ns: figures.cpu.map(|(cpu_ns, _)| cpu_ns),
            cpu_over_ns: figures.cpu.map_or(0, |(_, units)| ns(units)),
            left_out_ns: ns(figures.left_out),
            waited_ns: ns(figures.waited),
            ..Thread::default()
        }
    }

    /// Of the doubtful time, functions that wait have what is not without a place.
    fn warn_of_no_place(&mut self, unplaced_ns: f64, doubtful_ns: f64, cpu_ns: f64) {
        if unplaced_ns > UNPLACED_NS.max(UNPLACED_PART * cpu_ns) {
            let (time, part) = (written(unplaced_ns), unplaced_ns / cpu_ns * 100.0);
            let of_waits = match written(doubtful_ns - unplaced_ns) {
                _ if doubtful_ns - unplaced_ns < 0.1 * unplaced_ns => String::new(),
                time => {
                    format!(" Functions that wait have up to {time} more, which may be others'.")
                }
            };
            self.warnings.add(|| {
                format!(
                    "no sample tells which function called the kernel for {time}, {part:.1} % of \
                     CPU time: functions may lack up to that, and `[kernel]` has it.{of_waits} The \
                     kernel's tick misses them where a timer wakes the program in step with it, \
                     and in short threads that a busy kernel starts at its ticks"
                )
            });
        }
    }

    fn warn_of_no_room(&mut self, threads: &Threads, shown: &[Thread]) {
        let (calls, nameless) = (threads.shared.no_room, threads.shared.nameless);
        if calls == 0 {
            return;
        }
        let but = match nameless {
            0 => String::new(),
            _ => format!(
                ", but for {nameless} calls of functions for which there was none either: those are its own"
            ),
        };
        let found = || shown.iter().filter_map(|thread| thread.no_room.as_ref());
        let is_ns = self.start.as_ref().is_some_and(|start| start.hz > 0);
        let time = |ns: f64| if is_ns { written(ns) } else { format!("{ns} clock units") };
        let total = time(found().map(|no_room| no_room.total.value).sum());
        let nobodys = time(found().map(|no_room| no_room.nobodys.value).sum());
        self.warnings.add(|| {
            format!("{calls} calls found no room on their paths in their thread's tree, and are counted below `[no room]` by function{but}. The {total} there are in no total of whoever called them: totals may lack up to that. {nobodys} of it are `[no room]`'s own: self times of functions below it may lack up to that. There is room for more with a larger --tree-size, or more memory for trees in the image")
        });
    }

    fn info(&mut self, ns_per_unit: f64, counts: &Counts) -> Info {
        let start = self.start.take().map_or_else(Start::default, |start| *start);
        let end = self.end.take();
        let (first, last) = counts.span.unwrap_or((start.clock_start, start.clock_start));
        let began = if start.clock_start > 0 { start.clock_start } else { first };
        let ended = end.as_ref().map_or(last, |end| end.time.max(last));
        let clock = u32::try_from(start.clock).ok().and_then(ClockKind::from_u32);
        Info {
            command: start.arguments,
            host: start.host,
            system: start.system,
            machine: start.machine,
            processor: start.processor,
            processors: start.processors.try_into().unwrap_or(u32::MAX),
            // All of ours say it, and who else writes such packets has none of them.
            is_foreign: clock.is_none() && !start.clock_reason.is_empty(),
            is_from_within: false,
            clock: match clock {
                Some(ClockKind::Tick) => "tick".into(),
                Some(ClockKind::Cycle) if start.ordered == 1 => "ordered".into(),
                Some(ClockKind::Cycle) => "cycle".into(),
                None => String::new(),
            },
            event: String::new(),
            clock_reason: start.clock_reason,
            unit: if start.hz > 0 { Unit::Nanoseconds } else { Unit::Counts },
            period_ns: start.period as f64 * ns_per_unit,
            asked_ns: 0.0,
            asked_stack: 0,
            started_ns: start.wall_ns,
            duration_ns: (ended.saturating_sub(began) as f64 * ns_per_unit) as u64,
            exit_status: end.as_ref().and_then(|end| end.exit_status),
            signal: end.as_ref().and_then(|end| end.signal),
            summed: counts.summed > counts.events / 2,
            filters: std::mem::take(&mut self.filters),
            timed: std::mem::take(&mut self.timed),
            timer_samples: None,
        }
    }
}

/// CPU time from one sample to the next that threads ask for, nanoseconds.
const PERIOD_NS: f64 = 1e6;

/// A time in the unit that fits.
fn written(ns: f64) -> String {
    let mut units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")].into_iter();
    let (size, unit) = units.find(|&(size, _)| ns >= size).unwrap_or((1.0, "ns"));
    format!("{:.3} {unit}", ns / size)
}

/// A replayed tree with functions and nanoseconds; no totals yet.
fn convert(tree: &CallTree, names: &mut Names, ns_per_unit: f64, how: spent::How<'_>) -> Tree {
    let nodes = tree.tree.nodes();
    let mut words: Vec<u32> = nodes.iter().skip(1).map(|node| node.word).collect();
    words.sort_unstable();
    words.dedup();
    let functions: HashMap<u32, FunctionId> =
        words.iter().map(|&word| (word, names.function(tree.process, word))).collect();
    // Two words may be one function: then their paths are one as well.
    let distinct: HashSet<FunctionId> = functions.values().copied().collect();
    let mut merged: Option<HashMap<(u32, FunctionId), u32>> =
        (distinct.len() < functions.len()).then(HashMap::new);
    let mut numbers: Vec<u32> = Vec::with_capacity(nodes.len());
    let mut out: Vec<Node> = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        let ns = node.time as f64 * ns_per_unit;
        let self_time = Time { value: ns, low: ns, high: ns };
        let calls = tree.calls(at as u32);
        let is_root = node.word == pseudo::ROOT;
        let parent = if is_root { 0 } else { numbers[node.parent as usize] };
        let function = functions.get(&node.word).copied().unwrap_or(FunctionId(0));
        let next = out.len() as u32;
        let number = match &mut merged {
            Some(merged) if !is_root => *merged.entry((parent, function)).or_insert(next),
            _ => next,
        };
        let extremes = tree.extremes(at as u32).map(|(least, most)| Extremes {
            shortest_ns: least as f64 * ns_per_unit,
            longest_ns: most as f64 * ns_per_unit,
        });
        if number == next {
            let total = Time::default();
            let spent = Spent::default();
            out.push(Node { parent, function, calls, self_time, total, extremes, spent });
        } else {
            let there = &mut out[number as usize];
            there.calls += calls;
            there.self_time += self_time;
            there.extremes = Extremes::of_both(there.extremes, extremes);
        }
        numbers.push(number);
    }
    if how.is_sampled {
        spent::put(tree, &numbers, &mut out, names, ns_per_unit, how);
    }
    Tree { nodes: out }
}

/// Lengths of calls by function.
fn lengths(
    of_words: &HashMap<u32, Lengths>,
    process: u32,
    names: &mut Names,
) -> Vec<(FunctionId, Lengths)> {
    let mut by_function: BTreeMap<FunctionId, Lengths> = BTreeMap::new();
    for (&word, lengths) in of_words {
        by_function.entry(names.function(process, word)).or_default().merge(lengths);
    }
    by_function.into_iter().collect()
}

fn health(counts: Counts, open: u64, warnings: Warnings, ns: &impl Fn(u64) -> u64) -> Health {
    let only_sums =
        counts.events > 0 && counts.events == counts.summed.saturating_add(counts.without_paths);
    let mut gaps: Vec<_> = counts.gaps.into_iter().collect();
    gaps.sort_unstable();
    Health {
        events: counts.events,
        lost: counts.lost,
        unrecorded: 0,
        mended: 0,
        mended_in: Vec::new(),
        open,
        only_sums,
        unopened: counts.unopened,
        unopened_in_coroutines: counts.unopened_in_coroutines,
        taken_over: counts.taken_over,
        stacks: Stacks::default(),
        missing: Vec::new(),
        gaps: gaps
            .into_iter()
            .map(|(reason, (times, units))| (gap_name(reason), times, ns(units)))
            .collect(),
        warnings: warnings.into_vec(),
    }
}

/// What a gap's reason ([`gap`]) is called, here and in [`Health::gaps`].
pub fn gap_name(reason: u32) -> String {
    match reason {
        gap::PAUSED => "paused".into(),
        gap::DROPPED => "dropped".into(),
        gap::NESTED => "nested".into(),
        gap::WAITED => "waited".into(),
        gap::STALLED => "stalled".into(),
        gap::FILTERED => "filtered".into(),
        gap::FORKED => "forked".into(),
        gap::STOPPED => "stopped".into(),
        other => format!("reason {other}"),
    }
}
