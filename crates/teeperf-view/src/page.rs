//! One HTML page that opens offline: flame graph, functions, threads, what is known of
//! the recording. All in it; it loads nothing and sends nothing, which its own
//! Content-Security-Policy (CSP level 3) enforces. Names reach the document as JSON data
//! and then as text alone.

use std::io::{self, Write};

use serde::Serialize;
use teeperf_profile::model::{Function, NoRoom, Profile, Spent, Thread, Tree};

use crate::columns::{Column, base64};
use crate::findings::{self, Finding};
use crate::json::harmless::Harmless;
use crate::names::printable;
use crate::palette::Hues;
use crate::prune::{self, Pruned};
use crate::timeline::TimeLine;
use crate::{about, palette, timeline, units};

/// How much the page carries.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Most call paths; beyond, the ones with least time are left out and the page says so.
    pub most_paths: usize,
    /// Whether it opens with functions by their own time, their callers below them.
    pub bottom_up: bool,
}

impl Default for Options {
    /// A million call paths: about 15 MB, which a browser opens within seconds.
    fn default() -> Self {
        Self { most_paths: 1_000_000, bottom_up: false }
    }
}

/// Writes the page.
pub fn write(profile: &Profile, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let pruned = prune::to(profile, options.most_paths);
    let findings = pruned.finding.iter().cloned().chain(findings::of(profile)).collect();
    let page = Page {
        profile,
        pruned: &pruned,
        bottom_up: options.bottom_up,
        findings,
        about: about::of(profile),
        compared: None,
    };
    page.write(out)
}

/// What a page is of.
pub(crate) struct Page<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) pruned: &'a Pruned,
    pub(crate) bottom_up: bool,
    pub(crate) findings: Vec<Finding>,
    pub(crate) about: Vec<(&'static str, String)>,
    /// Its two threads are the sides of a comparison, of the same call paths: the later one first.
    pub(crate) compared: Option<Compared>,
}

/// What `page/compare.js` knows of a comparison; of each side, the later one first.
#[derive(Serialize)]
pub(crate) struct Compared {
    /// The whole time of both, in words.
    pub(crate) whole: String,
    pub(crate) runs: [usize; 2],
    pub(crate) periods: [f64; 2],
    /// How much runs differ, as a part.
    pub(crate) spread: f64,
    /// Which side's widths are shown first.
    pub(crate) first: usize,
}

impl Page<'_> {
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut rest = include_str!("../page/page.html");
        while let Some((before, tail)) = rest.split_once("{{") {
            out.write_all(before.as_bytes())?;
            let (slot, tail) = tail.split_once("}}").unwrap_or((tail, ""));
            match slot {
                "title" => out.write_all(escape(&title(self.profile)).as_bytes())?,
                "style" => out.write_all(include_bytes!("../page/page.css"))?,
                "data" => write_data(self, out)?,
                _ => write_script(out)?,
            }
            rest = tail;
        }
        out.write_all(rest.as_bytes())
    }
}

fn title(profile: &Profile) -> String {
    let program = crate::program(&profile.info);
    if program.is_empty() { "teeperf".into() } else { format!("{program} – teeperf") }
}

fn write_script(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"(() => {\n\"use strict\";\n")?;
    for part in [
        include_str!("../page/data.js"),
        include_str!("../page/compare.js"),
        include_str!("../page/graph.js"),
        include_str!("../page/flame.js"),
        include_str!("../page/table.js"),
        include_str!("../page/timeline.js"),
        include_str!("../page/app.js"),
    ] {
        out.write_all(part.as_bytes())?;
    }
    out.write_all(b"})();\n")
}

/// What `page/data.js` reads.
#[derive(Serialize)]
struct Data<'a> {
    view: &'static str,
    info: Run<'a>,
    events: u64,
    /// Which of the calls have returned is not known.
    #[serde(rename = "onlySums", skip_serializing_if = "std::ops::Not::not")]
    only_sums: bool,
    /// What `calls` of threads have are numbers of samples.
    #[serde(rename = "isSampled", skip_serializing_if = "std::ops::Not::not")]
    is_sampled: bool,
    findings: Vec<Said>,
    about: &'a [(&'static str, String)],
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<&'a Compared>,
    modules: Vec<String>,
    files: Vec<String>,
    functions: Vec<Named>,
    colours: Colours,
    threads: Vec<Lane>,
    #[serde(rename = "timeLine", skip_serializing_if = "Option::is_none")]
    time_line: Option<TimeLine>,
}

#[derive(Serialize)]
struct Run<'a> {
    command: Vec<String>,
    clock: &'a str,
    unit: &'static str,
    #[serde(rename = "unitOfDurations")]
    unit_of_durations: &'static str,
    period: f64,
    duration: u64,
    /// Those that CPU time is made of; the period is theirs then, and no clock's.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
}

#[derive(Serialize)]
struct Said {
    warning: bool,
    what: String,
    next: String,
}

/// Name, module, file (or -1), line (or 0).
#[derive(Serialize)]
struct Named(String, usize, i64, u32);

/// Three bytes of red, green and blue for each function.
#[derive(Serialize)]
struct Colours {
    module: String,
    function: String,
}

#[derive(Serialize)]
struct Lane {
    name: String,
    pid: u32,
    tid: u32,
    merged: u32,
    events: u64,
    wall: u64,
    cpu: Option<u64>,
    waited: u64,
    framed: f64,
    nodes: usize,
    up: String,
    function: String,
    calls: String,
    #[serde(rename = "self")]
    self_time: String,
    less: String,
    more: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<Beside>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hooks: Option<Beside>,
    #[serde(rename = "noRoom", skip_serializing_if = "Option::is_none")]
    no_room: Option<Lacking>,
}

/// The waiting of a thread, or its hooks: time beside the CPU time of its functions.
#[derive(Serialize)]
struct Beside {
    /// In the whole thread, nanoseconds.
    all: u64,
    /// On each call path itself; nothing where no path has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<String>,
}

impl Beside {
    fn of(tree: &Tree, part: fn(&Spent) -> f64) -> Self {
        let ns = tree.nodes.iter().map(|node| part(&node.spent));
        let mut column = Column::default();
        ns.clone().for_each(|ns| column.push_ns(ns));
        let has_any = ns.clone().skip(1).any(|ns| ns > 0.0);
        let all = ns.sum::<f64>().round() as u64;
        Self { all, paths: has_any.then(|| column.finish()) }
    }
}

/// How much more times may be, where there was no room for paths: totals, and self times below this function. Where
/// not even all functions had room, those of any.
#[derive(Serialize)]
struct Lacking {
    function: u32,
    total: f64,
    #[serde(rename = "self")]
    self_time: f64,
    nameless: bool,
    /// All of the thread, each with the most that it has itself below this function.
    functions: Vec<(u32, Option<f64>)>,
}

fn write_data(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let (profile, pruned) = (page.profile, page.pruned);
    let mut modules = Numbered::default();
    let mut files = Numbered::default();
    let functions: Vec<&Function> = profile.functions.iter().chain(&pruned.function).collect();
    let named = functions
        .iter()
        .map(|function| {
            let file = function.file.as_deref().map_or(-1, |file| files.of(file) as i64);
            Named(
                printable(&function.name),
                modules.of(&function.module),
                file,
                function.line.unwrap_or(0),
            )
        })
        .collect();
    // Of two sides the page compares CPU times alone.
    let tells_waiting = profile.info.timer_samples.is_some() && page.compared.is_none();
    let said = |Finding { warning, what, next }| Said { warning, what, next };
    let data = Data {
        view: if page.bottom_up { "bottom-up" } else { "paths" },
        info: Run {
            command: profile.info.command.iter().map(|word| printable(word)).collect(),
            clock: &profile.info.clock,
            unit: units::name(profile.info.unit),
            unit_of_durations: units::name(profile.info.unit_of_durations()),
            period: profile.info.period_ns,
            duration: profile.info.duration_ns,
            samples: profile.info.timer_samples,
        },
        events: profile.health.events,
        only_sums: profile.health.only_sums && profile.graph.is_none(),
        is_sampled: profile.info.is_sampled(),
        findings: page.findings.iter().cloned().map(said).collect(),
        about: &page.about,
        compared: page.compared.as_ref(),
        functions: named,
        colours: colours(&functions, crate::program(&profile.info)),
        modules: modules.printable(),
        files: files.printable(),
        threads: pruned
            .threads(profile)
            .map(|(thread, tree)| lane(thread, tree, tells_waiting))
            .collect(),
        time_line: timeline::of(profile),
    };
    let mut json = serde_json::Serializer::with_formatter(out, Harmless { in_script: true });
    data.serialize(&mut json).map_err(io::Error::from)
}

fn lane(thread: &Thread, tree: &Tree, tells_waiting: bool) -> Lane {
    let beside = |part| tells_waiting.then(|| Beside::of(tree, part));
    let mut columns: [Column; 6] = Default::default();
    for (at, node) in tree.nodes.iter().enumerate() {
        let [up, function, calls, self_time, less, more] = &mut columns;
        up.push((at as u64).saturating_sub(u64::from(node.parent)));
        function.push(if at == 0 { 0 } else { u64::from(node.function.0) });
        calls.push(node.calls);
        self_time.push_ns(node.self_time.value);
        less.push_ns(node.self_time.value - node.self_time.low);
        more.push_ns(node.self_time.high - node.self_time.value);
    }
    let [up, function, calls, self_time, less, more] = columns.map(|column| column.finish());
    Lane {
        name: printable(&thread.name),
        pid: thread.pid,
        tid: thread.tid,
        merged: thread.merged,
        events: thread.events,
        wall: thread.wall_ns,
        cpu: thread.cpu_ns,
        waited: thread.waited_ns,
        framed: tree.framed_ns(),
        nodes: tree.nodes.len(),
        up,
        function,
        calls,
        self_time,
        less,
        more,
        waiting: beside(|spent| spent.waiting_ns),
        hooks: beside(|spent| spent.hooks_ns),
        no_room: thread.no_room.as_ref().map(lacking),
    }
}

fn lacking(no_room: &NoRoom) -> Lacking {
    Lacking {
        function: no_room.function.0,
        total: no_room.total.high,
        self_time: no_room.nobodys.high,
        nameless: no_room.is_nameless,
        functions: no_room.functions.iter().map(|&(function, own)| (function.0, own)).collect(),
    }
}

fn colours(functions: &[&Function], program: &str) -> Colours {
    let column = |hue: &dyn Fn(&Function) -> u16| {
        let bytes: Vec<u8> = functions
            .iter()
            .flat_map(|function| {
                palette::frame(hue(function), palette::shade(&function.name)).to_rgb()
            })
            .collect();
        base64(&bytes)
    };
    let hues = Hues::of(functions.iter().map(|function| function.module.as_str()), program);
    Colours {
        module: column(&|function| hues.hue(&function.module)),
        function: column(&|_| palette::PROGRAM_HUE),
    }
}

/// Texts by number, each once.
#[derive(Default)]
struct Numbered<'a> {
    list: Vec<&'a str>,
    known: std::collections::HashMap<&'a str, usize>,
}

impl<'a> Numbered<'a> {
    fn of(&mut self, text: &'a str) -> usize {
        *self.known.entry(text).or_insert_with(|| {
            self.list.push(text);
            self.list.len() - 1
        })
    }

    fn printable(&self) -> Vec<String> {
        self.list.iter().map(|text| printable(text)).collect()
    }
}

/// Text for an element's content (HTML, section 13.3).
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
