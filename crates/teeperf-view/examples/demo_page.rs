//! Draws profiles built in memory in every form: to look at them, and for the browser's
//! tests.
//!
//! ```text
//! demo_page KIND FILE.html|svg|folded|txt|json
//! ```
//!
//! Kinds: `demo` looks like a database under load; `compared` is two runs that differ, and
//! `compared-samples` the same by samples; `small` is three functions in two threads with round
//! figures, and `waiting` the same by samples, with waiting and hooks; `full` has calls that found
//! no room on their paths, and `nameless` some that have no function either; `points` has a time
//! line, and `crowded` one of half a million points; `short` has calls much shorter than a tick;
//! `hostile` has names that try to break out; `deep` has 2,000 frames on one stack; `single` one
//! frame; `empty` none; `million` a million call paths; `huge` more than a page carries.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use teeperf_profile::diff::{Comparison, Diff, Side};
use teeperf_profile::model::{
    Function, FunctionId, Health, Info, NoRoom, Node, Point, PointKind, Profile, Spent, Thread,
    Time, Tree,
};
use teeperf_view::style::Style;
use teeperf_view::{diff as compare, folded, json, page, svg, text};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, file] = &arguments[..] else { return usage() };
    match kind.as_str() {
        "compared" => return told(write_compared(&compared(info), file), file),
        "compared-samples" => return told(write_compared(&compared(by_samples), file), file),
        _ => {}
    }
    let profile = match kind.as_str() {
        "demo" => demo(),
        "small" => small(),
        "full" => full(0),
        "nameless" => full(3),
        "waiting" => waiting(),
        "points" => points(4),
        "crowded" => points(500_000),
        "short" => short(),
        "hostile" => hostile(),
        "deep" => deep(),
        "single" => single(),
        "empty" => Profile { info: info(&["./quiet"]), ..Profile::default() },
        "million" => many(1_000_000),
        "huge" => many(1_200_000),
        _ => return usage(),
    };
    told(write(&profile, file), file)
}

fn told(outcome: std::io::Result<()>, file: &str) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{file}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: demo_page KIND FILE.html|svg|folded|txt|json");
    ExitCode::FAILURE
}

fn write(profile: &Profile, file: &str) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    if file.ends_with(".svg") {
        let options = svg::Options::default();
        let tree = profile.threads.first().map(|thread| &thread.tree).cloned().unwrap_or_default();
        svg::write(&tree, &profile.functions, &profile.info, &options, &mut out)?;
    } else if file.ends_with(".folded") {
        folded::write(profile, folded::Unit::Nanoseconds, &mut out)?;
    } else if file.ends_with(".json") {
        json::write(
            profile,
            &json::Options { call_tree: true, ..json::Options::default() },
            &mut out,
        )?;
    } else if file.ends_with(".txt") {
        let options = text::Options { call_tree: true, ..text::Options::default() };
        text::write(profile, &options, &Style { colour: true, width: 130 }, &mut out)?;
    } else {
        page::write(profile, &page::Options::default(), &mut out)?;
    }
    out.flush()
}

fn write_compared(diff: &Diff, file: &str) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    if file.ends_with(".svg") {
        compare::svg::write(diff, Side::After, &mut out)?;
    } else if file.ends_with(".folded") {
        compare::folded::write(diff, &mut out)?;
    } else if file.ends_with(".json") {
        compare::json::write(diff, &mut out)?;
    } else if file.ends_with(".txt") {
        let style = Style { colour: true, width: 130 };
        compare::text::write(diff, &compare::text::Options::default(), &style, &mut out)?;
    } else {
        compare::page::write(diff, Side::After, &page::Options::default(), &mut out)?;
    }
    out.flush()
}

/// Builds a tree by entering and leaving functions, as a program would.
#[derive(Default)]
struct Builder {
    functions: Vec<Function>,
    tree: Tree,
    open: Vec<usize>,
}

impl Builder {
    fn function(&mut self, module: &str, name: &str) -> FunctionId {
        let known = self.functions.iter().position(|f| f.name == name && f.module == module);
        let at = known.unwrap_or_else(|| {
            let file = name.chars().next().filter(char::is_ascii_alphabetic);
            self.functions.push(Function {
                name: name.into(),
                module: module.into(),
                file: file.map(|c| format!("src/{}.c", c.to_ascii_lowercase())),
                line: file.map(|_| 10 + 7 * self.functions.len() as u32),
                place: None,
            });
            self.functions.len() - 1
        });
        FunctionId(at as u32)
    }

    fn enter(&mut self, function: FunctionId, calls: u64, self_ns: f64) {
        if self.tree.nodes.is_empty() {
            self.tree.nodes.push(node(0, FunctionId(0), 0, 0.0));
            self.open.push(0);
        }
        let parent = *self.open.last().expect("the root is open");
        self.open.push(self.tree.nodes.len());
        self.tree.nodes.push(node(parent as u32, function, calls, self_ns));
    }

    fn leave(&mut self) {
        self.open.pop();
    }

    fn call(&mut self, function: FunctionId, calls: u64, self_ns: f64) {
        self.enter(function, calls, self_ns);
        self.leave();
    }

    fn finish(&mut self) -> Tree {
        self.open.clear();
        let mut tree = std::mem::take(&mut self.tree);
        for at in (1..tree.nodes.len()).rev() {
            let total = tree.nodes[at].total;
            let parent = tree.nodes[at].parent as usize;
            tree.nodes[parent].total += total;
        }
        tree
    }
}

/// A call path whose time is known to half a nanosecond for each call, so that views have bounds.
fn node(parent: u32, function: FunctionId, calls: u64, ns: f64) -> Node {
    let slack = 0.5 * calls as f64;
    let time = Time { value: ns, low: (ns - slack).max(0.0), high: ns + slack };
    Node {
        parent,
        function,
        calls,
        self_time: time,
        total: time,
        extremes: None,
        spent: Default::default(),
    }
}

fn info(command: &[&str]) -> Info {
    Info {
        command: command.iter().map(|word| (*word).into()).collect(),
        host: "bench".into(),
        system: "Linux 6.12".into(),
        machine: "x86_64".into(),
        processor: "Example CPU at 3.0 GHz".into(),
        processors: 8,
        clock: "tick".into(),
        clock_reason: "reading the cycle counter takes 9 ns here".into(),
        period_ns: 98_400.0,
        started_ns: 1_795_250_559_000_000_000,
        duration_ns: 3_070_000_000,
        exit_status: Some(0),
        summed: false,
        ..Info::default()
    }
}

fn thread(tid: u32, name: &str, tree: Tree) -> Thread {
    let events = tree.nodes.iter().map(|node| 2 * node.calls).sum();
    let wall_ns = tree.nodes.first().map_or(0, |root| root.total.value as u64);
    Thread {
        pid: 4100,
        tid,
        name: name.into(),
        merged: 1,
        events,
        wall_ns,
        cpu_ns: Some(wall_ns / 10 * 9),
        cpu_over_ns: wall_ns,
        waited_ns: 0,
        tree,
        no_room: None,
        ..Thread::default()
    }
}

fn small() -> Profile {
    let mut b = Builder::default();
    let main = b.function("small", "main");
    let read = b.function("libread.so", "read_all");
    let sum = b.function("small", "sum(int const*, int)");
    b.enter(main, 1, 100e6);
    b.call(read, 10, 500e6);
    b.enter(sum, 4, 300e6);
    b.call(sum, 2, 100e6);
    b.leave();
    let first = b.finish();
    b.enter(main, 1, 0.0);
    b.call(read, 5, 250e6);
    let second = b.finish();
    Profile {
        info: info(&["./small", "input.txt"]),
        functions: b.functions,
        threads: vec![thread(71, "small", first), thread(72, "reader", second)],
        graph: None,
        waits: Vec::new(),
        health: Health { events: 46, ..Health::default() },
        ..Profile::default()
    }
}

/// `small` with waits outside of all functions, in `read_all`, and in both calls of `sum`, of which
/// one is within the other; and with hooks.
fn waiting() -> Profile {
    let Profile { functions, threads, health, .. } = small();
    let [mut first, mut second]: [Thread; 2] = threads.try_into().expect("small has two threads");
    let outside = (500e6, 0.0);
    spend(&mut first, &[outside, (0.0, 0.0), (2e9, 0.0), (10e6, 40e6), (20e6, 20e6)]);
    spend(&mut second, &[(0.0, 0.0), (0.0, 1e6), (4e9, 0.0)]);
    first.waited_ns = 3_000_000;
    let info = Info { duration_ns: 4_300_000_000, ..by_samples(&["./small", "input.txt"]) };
    Profile { info, functions, threads: vec![first, second], health, ..Profile::default() }
}

/// A run whose CPU times 1,250 samples tell.
fn by_samples(command: &[&str]) -> Info {
    Info { period_ns: 1e6, timer_samples: Some(1_250), ..info(command) }
}

/// Gives each call path of a thread its waiting and its hooks, and the thread the time of all.
fn spend(thread: &mut Thread, beside: &[(f64, f64)]) {
    let nodes = &mut thread.tree.nodes;
    for (node, &(waiting_ns, hooks_ns)) in nodes.iter_mut().zip(beside) {
        let total_waiting_ns = waiting_ns;
        node.spent = Spent { waiting_ns, total_waiting_ns, hooks_ns, ..Spent::default() };
    }
    for at in (1..nodes.len()).rev() {
        let Node { parent, spent, .. } = nodes[at];
        nodes[parent as usize].spent.total_waiting_ns += spent.total_waiting_ns;
    }
    let hooks_ns: f64 = beside.iter().map(|&(_, hooks_ns)| hooks_ns).sum();
    let cpu_ns = (thread.tree.framed_ns() + hooks_ns) as u64;
    thread.cpu_ns = Some(cpu_ns);
    thread.wall_ns = cpu_ns + thread.waiting_ns() as u64;
    thread.cpu_over_ns = thread.wall_ns;
}

/// Before: main 100 ms ── read_all 500 ms, sum 300 ms ── old 100 ms. After: sum takes 500 ms, read_all 505 ms, which is
/// noise, and there is new in the place of old.
fn compared(info: fn(&[&str]) -> Info) -> Diff {
    let run = |read_ns, sum_ns, last| {
        let mut b = Builder::default();
        let main = b.function("small", "main");
        let read = b.function("libread.so", "read_all");
        let sum = b.function("small", "sum(int const*, int)");
        let last = b.function("small", last);
        b.enter(main, 1, 100e6);
        b.call(read, 10, read_ns);
        b.enter(sum, 4, sum_ns);
        b.call(last, 2, 100e6);
        let tree = b.finish();
        Profile {
            info: info(&["./small", "input.txt"]),
            functions: b.functions,
            threads: vec![thread(71, "small", tree)],
            health: Health { events: 46, ..Health::default() },
            ..Profile::default()
        }
    };
    let mut comparison = Comparison::default();
    comparison.add(Side::Before, "before.teeperf", run(500e6, 300e6, "old"));
    comparison.add(Side::After, "after.teeperf", run(505e6, 500e6, "new"));
    comparison.finish(&teeperf_profile::diff::Options::default())
}

/// A thread of which nothing but main and fill found room, with so many calls that have no function; and another one
/// with room for all. Times are exact.
fn full(nameless: u64) -> Profile {
    let mut b = Builder::default();
    let [main, fill, serve, wait, idle] =
        ["main", "fill", "serve", "wait", "idle"].map(|name| b.function("full", name));
    let no_room = b.function("", "[no room]");
    b.enter(no_room, nameless, 500.0);
    b.call(serve, 1, 0.0);
    b.call(wait, 40, 800.0);
    b.leave();
    b.enter(main, 1, 10.0);
    b.call(fill, 5, 20.0);
    let first = exact(b.finish());
    b.enter(idle, 1, 7.0);
    b.call(wait, 1, 2.0);
    let second = exact(b.finish());
    let known = NoRoom {
        function: no_room,
        total: 1300.0.into(),
        nobodys: 500.0.into(),
        functions: vec![
            (main, None),
            (fill, None),
            (serve, Some(0.0)),
            (wait, Some(800.0)),
            (no_room, None),
        ],
        is_nameless: nameless > 0,
    };
    let first = Thread { no_room: Some(known), ..thread(1, "full", first) };
    Profile {
        info: Info { clock: "cycle".into(), period_ns: 0.0, ..info(&["./full"]) },
        functions: b.functions,
        threads: vec![first, thread(2, "room", second)],
        graph: None,
        waits: Vec::new(),
        health: Health { events: 98, only_sums: true, ..Health::default() },
        ..Profile::default()
    }
}

/// The tree with times that are known.
fn exact(mut tree: Tree) -> Tree {
    for node in &mut tree.nodes {
        (node.self_time, node.total) = (node.self_time.value.into(), node.total.value.into());
    }
    tree
}

/// `small`, with a time line of 1.25 s: the first thread has marks, a note and a counter whose values go up and down `times`
/// times, the second a counter of its own and a name that tries to break out.
fn points(times: usize) -> Profile {
    let small = small();
    let end = 1.25e9;
    let [first, second] = [71, 72].map(|tid| {
        let thread = small.threads.iter().find(|thread| thread.tid == tid);
        thread.map_or((1, tid), |thread| (thread.pid, thread.tid))
    });
    let point = |(pid, tid): (u32, u32), at_ns: f64, name: &str, kind| Point {
        pid,
        tid,
        at_ns,
        name: name.into(),
        kind,
    };
    let mut points: Vec<Point> = (0..times)
        .map(|time| {
            let at = end * time as f64 / times as f64;
            point(first, at, "queue length", PointKind::Integer((time % 2 * 10) as i64))
        })
        .collect();
    points.extend([
        point(first, 0.1e9, "frame", PointKind::Mark),
        point(first, 0.5e9, "half of it\nis </script> done", PointKind::Note),
        point(first, 1.0e9, "frame", PointKind::Mark),
        point(second, 0.2e9, "<b>load</b>", PointKind::Real(0.25)),
        point(second, 0.8e9, "<b>load</b>", PointKind::Real(-1.5)),
    ]);
    points.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
    let info = Info { duration_ns: end as u64, ..small.info.clone() };
    Profile { points, info, ..small }
}

/// Calls far below a tick: into those of one function only 9 fell, into those of the other 900.
fn short() -> Profile {
    let mut b = Builder::default();
    let main = b.function("short", "main");
    let few = b.function("short", "few");
    let many = b.function("short", "many");
    let period = info(&[]).period_ns;
    b.enter(main, 1, 1e9);
    b.call(few, 6_000, 9.0 * period);
    b.call(many, 60_000, 900.0 * period);
    let tree = b.finish();
    Profile {
        info: info(&["./short"]),
        functions: b.functions,
        threads: vec![thread(1, "short", tree)],
        graph: None,
        waits: Vec::new(),
        health: Health { events: 132_002, ..Health::default() },
        ..Profile::default()
    }
}

fn single() -> Profile {
    let mut b = Builder::default();
    let main = b.function("one", "main");
    b.call(main, 1, 1e6);
    let tree = b.finish();
    Profile {
        info: info(&["./one"]),
        functions: b.functions,
        threads: vec![thread(1, "one", tree)],
        graph: None,
        waits: Vec::new(),
        health: Health { events: 2, ..Health::default() },
        ..Profile::default()
    }
}

fn deep() -> Profile {
    let mut b = Builder::default();
    let main = b.function("deep", "main");
    b.enter(main, 1, 1e6);
    for level in 0..2000 {
        let function = b.function("deep", &format!("level_{level}"));
        // The innermost has half of the time.
        b.enter(function, 1, if level == 1999 { 2e8 } else { 1e5 });
    }
    let tree = b.finish();
    Profile {
        info: info(&["./deep", "2000"]),
        functions: b.functions,
        threads: vec![thread(1, "deep", tree)],
        graph: None,
        waits: Vec::new(),
        health: Health { events: 4002, ..Health::default() },
        ..Profile::default()
    }
}

fn hostile() -> Profile {
    let names = [
        "</script><script>window.broken=1</script>",
        "<img src=x onerror=window.broken=2>",
        "<!--<script>",
        "{{data}}{{script}}",
        "\"'`${window.broken=3}\\u003c",
        "line\u{2028}separator\u{2029}and\nbreak\r\0\u{1b}[31m",
        "javascript:window.broken=4",
        "\u{202e}gnitirw fo noitcerid\u{202c}",
        "]]><script>window.broken=5</script>",
        "__proto__",
        "constructor",
        "",
    ];
    let mut b = Builder::default();
    let main = b.function("<b>module</b>", "main");
    b.enter(main, 1, 1e5);
    for name in names {
        let function = b.function(name, name);
        b.call(function, 3, 1e6);
    }
    let tree = b.finish();
    Profile {
        info: info(&["./<script>window.broken=6</script>", "</title>"]),
        functions: b.functions,
        threads: vec![
            thread(1, "</option><script>window.broken=7</script>", tree.clone()),
            thread(2, "</select>", tree),
        ],
        graph: None,
        waits: Vec::new(),
        health: Health {
            events: 37,
            warnings: vec!["</p><script>window.broken=8</script>".into()],
            ..Health::default()
        },
        ..Profile::default()
    }
}

/// Steps of a linear congruential generator: the same profile on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// `paths` call paths over 8,000 functions, of very different weight.
fn many(paths: usize) -> Profile {
    let mut b = Builder::default();
    let functions: Vec<FunctionId> = (0..8_000)
        .map(|i| {
            let name = format!("ns::stage_{}::worker<{}>::step(long)", i % 97, i);
            let file = format!("lib{}.so", i % 7);
            b.functions.push(Function { name, module: file, ..Function::default() });
            FunctionId(i)
        })
        .collect();
    let mut dice = Dice(1);
    b.enter(functions[0], 1, 1e6);
    for _ in 1..paths {
        while b.open.len() > 2 && (b.open.len() > 40 || dice.below(100) < 48) {
            b.leave();
        }
        let calls = 1 + dice.below(1000);
        let ns = 10f64.powf(dice.below(5000) as f64 / 1000.0);
        // The smallest of several dice: a few functions are called far more than the others.
        let function = (0..4).map(|_| dice.below(8_000)).min().unwrap_or_default();
        b.enter(functions[function as usize], calls, ns * calls as f64);
    }
    let tree = b.finish();
    let thread = thread(1, "many", tree);
    Profile {
        info: info(&["./many"]),
        functions: b.functions,
        graph: None,
        waits: Vec::new(),
        health: Health { events: thread.events, ..Health::default() },
        threads: vec![thread],
        ..Profile::default()
    }
}

/// What a storage engine might look like: a main thread that serves requests, workers,
/// and a compaction thread, over several modules.
fn demo() -> Profile {
    let mut b = Builder::default();
    let mut dice = Dice(7);
    let mut threads = Vec::new();
    main_thread(&mut b, &mut dice);
    let tree = b.finish();
    threads.push(thread(4100, "kvbench", tree));
    for worker in 0..3 {
        worker_thread(&mut b, &mut dice);
        let tree = b.finish();
        threads.push(thread(4101 + worker, &format!("worker-{worker}"), tree));
    }
    compaction(&mut b, &mut dice, 8e8);
    let tree = b.finish();
    threads.push(thread(4104, "compaction", tree));
    let events = threads.iter().map(|thread| thread.events).sum();
    Profile {
        info: info(&[
            "./kvbench",
            "--benchmarks=readrandom,overwrite",
            "--threads=4",
            "--reads=200000",
        ]),
        functions: b.functions,
        threads,
        graph: None,
        waits: Vec::new(),
        health: Health {
            events,
            open: 3,
            gaps: vec![("waited".into(), 12, 4_300_000)],
            ..Health::default()
        },
        ..Profile::default()
    }
}

fn main_thread(b: &mut Builder, dice: &mut Dice) {
    let enter = |b: &mut Builder, module: &str, name: &str, calls, ns| {
        let function = b.function(module, name);
        b.enter(function, calls, ns);
    };
    enter(b, "kvbench", "main", 1, 2e5);
    enter(b, "kvbench", "kv::Benchmark::Run()", 1, 9e5);
    enter(b, "kvbench", "kv::Benchmark::Open(kv::Options const&)", 1, 4e5);
    enter(
        b,
        "libkv.so.1",
        "kv::DB::Open(kv::Options const&, std::string const&, kv::DB**)",
        1,
        3e5,
    );
    enter(b, "libkv.so.1", "kv::VersionSet::Recover(bool*)", 1, 6.1e7);
    b.leave();
    enter(b, "libkv.so.1", "kv::DBImpl::RecoverLogFile(unsigned long, bool, bool*)", 3, 2.2e7);
    inserts(b, dice, 4e7);
    b.leave();
    b.leave();
    b.leave();
    enter(b, "kvbench", "kv::Benchmark::ReadRandom(kv::ThreadState*)", 1, 7e7);
    reads(b, dice, 1.1e9);
    b.leave();
    enter(b, "kvbench", "kv::Benchmark::Overwrite(kv::ThreadState*)", 1, 4e7);
    enter(
        b,
        "libkv.so.1",
        "kv::DBImpl::Write(kv::WriteOptions const&, kv::WriteBatch*)",
        200_000,
        8e7,
    );
    enter(b, "libkv.so.1", "kv::log::Writer::AddRecord(kv::Slice const&)", 200_000, 6e7);
    enter(
        b,
        "libkv.so.1",
        "kv::crc32c::Extend(unsigned int, char const*, unsigned long)",
        400_000,
        9e7,
    );
    b.leave();
    enter(b, "libkv.so.1", "kv::PosixWritableFile::Append(kv::Slice const&)", 400_000, 2.4e7);
    b.leave();
    b.leave();
    inserts(b, dice, 2.6e8);
    b.leave();
    b.leave();
}

fn worker_thread(b: &mut Builder, dice: &mut Dice) {
    let start = b.function("kvbench", "kv::Benchmark::ThreadBody(void*)");
    b.enter(start, 1, 1e6);
    let read = b.function("kvbench", "kv::Benchmark::ReadRandom(kv::ThreadState*)");
    b.enter(read, 1, 5e7);
    let ns = 7e8 + dice.below(300_000_000) as f64;
    reads(b, dice, ns);
}

fn reads(b: &mut Builder, dice: &mut Dice, ns: f64) {
    let calls = 200_000;
    let get = b.function(
        "libkv.so.1",
        "kv::DBImpl::Get(kv::ReadOptions const&, kv::Slice const&, std::__cxx11::basic_string<char, \
         std::char_traits<char>, std::allocator<char> >*)",
    );
    b.enter(get, calls, 0.05 * ns);
    let memory = b.function(
        "libkv.so.1",
        "kv::MemTable::Get(kv::LookupKey const&, std::string*, kv::Status*)",
    );
    b.enter(memory, calls, 0.02 * ns);
    let seek = b.function(
        "libkv.so.1",
        "kv::SkipList<char const*, kv::MemTable::KeyComparator>::FindGreaterOrEqual(char const* const&)",
    );
    b.enter(seek, calls, 0.11 * ns);
    let compare = b.function(
        "libkv.so.1",
        "kv::InternalKeyComparator::Compare(kv::Slice const&, kv::Slice const&)",
    );
    b.call(compare, 21 * calls, 0.09 * ns);
    b.leave();
    b.leave();
    let version =
        b.function("libkv.so.1", "kv::Version::Get(kv::ReadOptions const&, kv::LookupKey const&)");
    b.enter(version, calls, 0.04 * ns);
    let table =
        b.function("libkv.so.1", "kv::TableCache::Get(kv::ReadOptions const&, unsigned long)");
    b.enter(table, calls, 0.03 * ns);
    let block = b.function(
        "libkv.so.1",
        "kv::Table::BlockReader(void*, kv::ReadOptions const&, kv::Slice const&)",
    );
    b.enter(block, calls, 0.04 * ns);
    let unzip =
        b.function("libsnappy.so.1", "snappy::RawUncompress(char const*, unsigned long, char*)");
    b.enter(unzip, calls / 4, 0.02 * ns);
    let tags = b.function("libsnappy.so.1", "void snappy::SnappyDecompressor::DecompressAllTags<snappy::SnappyArrayWriter>(snappy::SnappyArrayWriter*)");
    b.call(tags, calls / 4, 0.19 * ns);
    b.leave();
    let pread = b.function(
        "libkv.so.1",
        "kv::PosixRandomAccessFile::Read(unsigned long, unsigned long, kv::Slice*, char*) const",
    );
    b.call(pread, calls / 4, 0.13 * ns);
    let crc =
        b.function("libkv.so.1", "kv::crc32c::Extend(unsigned int, char const*, unsigned long)");
    b.call(crc, calls / 4, 0.06 * ns);
    b.leave();
    let iterate = b.function("libkv.so.1", "kv::Block::Iter::Seek(kv::Slice const&)");
    b.enter(iterate, calls, 0.08 * ns);
    b.call(compare, 9 * calls, 0.05 * ns);
    b.leave();
    b.leave();
    b.leave();
    small_things(b, dice, calls, 0.09 * ns);
    b.leave();
}

fn inserts(b: &mut Builder, dice: &mut Dice, ns: f64) {
    let insert = b.function(
        "libkv.so.1",
        "kv::WriteBatchInternal::InsertInto(kv::WriteBatch const*, kv::MemTable*)",
    );
    b.enter(insert, 200_000, 0.1 * ns);
    let add = b.function(
        "libkv.so.1",
        "kv::MemTable::Add(unsigned long, kv::ValueType, kv::Slice const&, kv::Slice const&)",
    );
    b.enter(add, 200_000, 0.2 * ns);
    let seek = b.function(
        "libkv.so.1",
        "kv::SkipList<char const*, kv::MemTable::KeyComparator>::FindGreaterOrEqual(char const* const&)",
    );
    b.call(seek, 200_000, 0.5 * ns);
    b.leave();
    small_things(b, dice, 200_000, 0.2 * ns);
    b.leave();
}

fn compaction(b: &mut Builder, dice: &mut Dice, ns: f64) {
    for (name, part) in [
        ("kv::PosixEnv::BackgroundThreadMain()", 0.01),
        ("kv::DBImpl::BackgroundCall()", 0.01),
        ("kv::DBImpl::BackgroundCompaction()", 0.02),
        ("kv::DBImpl::DoCompactionWork(kv::DBImpl::CompactionState*)", 0.16),
    ] {
        let function = b.function("libkv.so.1", name);
        b.enter(function, 12, part * ns);
    }
    let merge = b.function("libkv.so.1", "kv::(anonymous namespace)::MergingIterator::Next()");
    b.enter(merge, 900_000, 0.2 * ns);
    let compare = b.function(
        "libkv.so.1",
        "kv::InternalKeyComparator::Compare(kv::Slice const&, kv::Slice const&)",
    );
    b.call(compare, 1_800_000, 0.12 * ns);
    b.leave();
    let add = b.function("libkv.so.1", "kv::TableBuilder::Add(kv::Slice const&, kv::Slice const&)");
    b.enter(add, 900_000, 0.11 * ns);
    let zip = b.function("libsnappy.so.1", "snappy::internal::CompressFragment(char const*, unsigned long, char*, unsigned short*, int)");
    b.call(zip, 40_000, 0.23 * ns);
    b.leave();
    small_things(b, dice, 900_000, 0.14 * ns);
}

/// Sixty functions too small to matter, as every program has them.
fn small_things(b: &mut Builder, dice: &mut Dice, calls: u64, ns: f64) {
    for i in 0..60 {
        let module = ["libkv.so.1", "libc.so.6", "libstdc++.so.6"][i % 3];
        let name = ["kv::Arena::Allocate", "memory_step", "std::string::_M_assign"][i % 3];
        let function = b.function(module, &format!("{name}_{i}(unsigned long)"));
        b.enter(
            function,
            calls / (1 + i as u64),
            ns / 130.0 * (1.0 + dice.below(100) as f64 / 60.0),
        );
        if i % 4 == 0 {
            let inner = b.function("libc.so.6", &format!("inner_{i}"));
            b.call(inner, calls / (2 + i as u64), ns / 400.0);
        }
        b.leave();
    }
}
