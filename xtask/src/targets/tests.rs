//! What holds on every processor: each test builds one program of `conformance`, runs it beside a host, and looks at
//! what was recorded.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::build::{Kind, Workshop};
use super::host::{Host, Recorded};
use crate::checks::{Checks, has_arcs, same};
use crate::commands::run_quietly;
use crate::packages::Unavailable;

type Test = (&'static str, fn(&Workshop) -> Result<()>);

const TESTS: [Test; 20] = [
    ("calls, paths and far functions", calls),
    ("refusals", refusals),
    ("a build with NDEBUG", without_permit),
    ("memory that comes and goes", comings),
    ("sums in units of each recording's clock", sums),
    ("sums of code that stays", stays),
    ("pauses from outside", pauses),
    ("full memory, dropping", |shop| full(shop, "drop").map(drop)),
    ("full memory, waiting", waiting),
    ("full memory, stopping", |shop| full(shop, "stop").map(drop)),
    ("a host that is killed", killed),
    ("signal handlers within hooks", |shop| signals(shop, Kind::Nested)),
    ("signal handlers within hooks, with threads' storage", |shop| {
        signals(shop, Kind::NestedThreads)
    }),
    ("threads", threads),
    ("a hostile host", hostile),
    ("calls of code compiled with -pg", counted),
    ("what threads have counted that nobody takes", left),
    ("the same calls, counted by the C library", yardstick),
    ("sums that are taken in pieces", taken),
    ("calls of code compiled with -pg, taken in pieces", taken_arcs),
];

/// All of them.
pub(super) fn run(shop: &Workshop, checks: &mut Checks) {
    for (name, test) in TESTS {
        checks.add(name, test(shop));
    }
}

/// Runs a program beside a host; what it prints, and what was recorded.
fn record(
    shop: &Workshop,
    program: &Path,
    size: &str,
    options: &[&str],
) -> Result<(String, Recorded)> {
    let host = Host::start(shop, program, size, options)?;
    let printed = shop.output(program, &[host.memory.as_os_str()])?;
    Ok((printed, host.end()?))
}

fn calls(shop: &Workshop) -> Result<()> {
    const FAR: &str = "[unknown module]+0x4000000";
    let far = ["-Wl,--section-start=.far_away=0x4000000"];
    for kind in Kind::ALL {
        let program = shop.program("calls", kind, &far)?;
        let (_, recorded) = record(shop, &program, "1MiB", &[])?;
        let rest = [("outer", 10_000), ("middle", 30_000), ("leaf", 160_000), ("deep", 200_000)];
        // Of a function in Thumb state the lowest bit of its address is set.
        recorded.is_whole(&[&rest[..], &[(FAR, 10_000)]].concat()).context(kind.name())?;
        let mut paths = recorded.paths();
        let deepest = format!("outer{}", ";deep".repeat(20));
        for (path, calls) in [
            ("outer", 10_000),
            ("outer;middle", 30_000),
            ("outer;middle;leaf", 150_000),
            (&format!("outer;{FAR}"), 10_000),
            (&format!("outer;{FAR};leaf"), 10_000),
            (&deepest, 10_000),
        ] {
            ensure!(
                paths.remove(path) == Some(calls),
                "{}: not {calls} calls of {path}",
                kind.name()
            );
        }
        // Those between.
        ensure!(paths.len() == 19, "other paths: {paths:?}");
    }
    Ok(())
}

const REFUSALS: &str = "null -2\nmisaligned -2\nsmall -3\nendless -3\ninside -4\npartly -4\nunknown -5\n\
                        clock -6\nnone 0\nright 0\nagain -7\nrecording 1\n";

fn refusals(shop: &Workshop) -> Result<()> {
    for kind in [Kind::Usual, Kind::Threads] {
        for options in [&[][..], &["-DNDEBUG", "-DTEEPERF_PERMIT"]] {
            let program = shop.program("refusals", kind, options)?;
            same(&record(shop, &program, "1MiB", &[])?.0, REFUSALS)?;
        }
    }
    Ok(())
}

fn without_permit(shop: &Workshop) -> Result<()> {
    let program = shop.program("refusals", Kind::Usual, &["-DNDEBUG"])?;
    let refused = |line: &str| match line.split_once(' ') {
        Some((name @ ("none" | "recording"), _)) => format!("{name} 0\n"),
        Some((name, _)) => format!("{name} -1\n"),
        None => String::new(),
    };
    let expected: String = REFUSALS.lines().map(refused).collect();
    same(&record(shop, &program, "1MiB", &[])?.0, &expected)
}

fn comings(shop: &Workshop) -> Result<()> {
    for kind in [Kind::Usual, Kind::Threads] {
        let program = shop.program("comings", kind, &[])?;
        let (_, recorded) = record(shop, &program, "256KiB", &[])?;
        // The outermost call began while nothing was attached.
        ensure!(recorded.health("unopened") == 1, "unopened: {}", recorded.health("unopened"));
        let within = recorded.calls().get("within").copied();
        ensure!(within == Some(4002), "calls of within: {within:?}");
        ensure!(!recorded.calls().contains_key("without"), "calls while nothing was attached");
        ensure!(recorded.threads() == 1, "{} threads", recorded.threads());
    }
    Ok(())
}

/// One recording after another: sums are in its clock's units, and what was summed between two has times where
/// both have the counter.
fn sums(shop: &Workshop) -> Result<()> {
    const COUNTER: &[&str] = &["--clock", "cycle", "--counter-hz", "10MHz"];
    let program = shop.program("sums", Kind::Usual, &[])?;
    let host = Host::start(shop, &program, "64KiB", &[])?;
    let mut talk = Talk::start(shop, &program, &host)?;
    talk.expect("begun")?;
    let mut first = Some(host);
    let rounds: [(&[&str], f64); 5] =
        [(&[], 0.0), (&[], 0.0), (COUNTER, 0.0), (COUNTER, 50.0), (&[], 0.0)];
    for (round, (options, between)) in rounds.into_iter().enumerate() {
        let host = match first.take() {
            Some(host) => host,
            None => Host::start(shop, &program, "64KiB", options)?,
        };
        talk.go_on()?;
        talk.expect("detached")?;
        let recorded = host.end()?;
        let told = |name: &str| (recorded.calls().get(name).copied(), recorded.self_ns(name) / 1e6);
        let ((within, within_ms), (apart, apart_ms)) = (told("within"), told("apart"));
        let text = format!("round {round}: {within_ms} ms within, {apart_ms} ms between");
        let (calls, ms) = if round > 0 { (10, 300.0) } else { (30, 900.0) };
        ensure!(within == Some(calls) && apart == (round > 0).then_some(1), "{text}: wrong calls");
        // Other programs may hold up this one, or the tick, which is late then; units differ by more.
        ensure!((ms * 0.4..ms * 5.0).contains(&within_ms), "{text}, and not {ms}");
        ensure!(
            apart_ms >= between * 0.9 && apart_ms <= between * 5.0,
            "{text}, and not {between}"
        );
    }
    talk.go_on()?;
    talk.end()
}

/// Who stays attached hands its sums over when it is asked, and has done so when it ends without a word; bit by bit, where
/// memory is small.
fn stays(shop: &Workshop) -> Result<()> {
    let program = shop.program("stays", Kind::Usual, &[])?;
    for size in ["12KiB", "64KiB"] {
        let host = Host::start(shop, &program, size, &[])?;
        let mut talk = Talk::start(shop, &program, &host)?;
        talk.expect("called")?;
        talk.go_on()?;
        let has_all = |recorded: &Recorded, when: &str| {
            let calls = recorded.calls();
            ensure!(calls.get("deep") == Some(&500), "{size}, {when}: {calls:?}");
            ensure!(recorded.health("lost") == 0, "{size}, {when}: {}", recorded.health("lost"));
            Ok(calls.get("after").copied().unwrap_or(0))
        };
        let first = has_all(&host.snapshot()?, "at first")?;
        sleep(Duration::from_millis(100));
        let then = has_all(&host.snapshot()?, "then")?;
        ensure!(then > first, "{size}: {then} calls after {first}");
        // It is asked once a second.
        sleep(Duration::from_millis(1500));
        talk.go_on()?;
        talk.child.wait()?;
        let recorded = host.end()?;
        let last = has_all(&recorded, "at the end")?;
        ensure!(last > then, "{size}: {last} calls after {then}");
        let is_told = |warning: &String| warning.contains("still attached at the end");
        ensure!(recorded.warnings().iter().any(is_told), "{size}: {:?}", recorded.warnings());
    }
    Ok(())
}

/// A program that says how far it has come, and waits for an answer.
struct Talk {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Talk {
    fn start(shop: &Workshop, program: &Path, host: &Host) -> Result<Self> {
        let mut command = shop.command(program);
        command.arg(&host.memory).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (to, from) = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
        Ok(Self { child, to, from: BufReader::new(from) })
    }

    fn expect(&mut self, line: &str) -> Result<()> {
        let mut found = String::new();
        self.from.read_line(&mut found)?;
        ensure!(found.trim_end() == line, "it says {found:?}, and not {line:?}");
        Ok(())
    }

    fn go_on(&mut self) -> Result<()> {
        Ok(self.to.write_all(b"\n")?)
    }

    fn end(mut self) -> Result<()> {
        let status = self.child.wait()?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }
}

fn pauses(shop: &Workshop) -> Result<()> {
    let program = shop.program("pauses", Kind::Usual, &[])?;
    let host = Host::start(shop, &program, "1MiB", &[])?;
    let mut talk = Talk::start(shop, &program, &host)?;
    talk.expect("begun")?;
    host.ask("pause")?;
    talk.go_on()?;
    talk.expect("in the middle")?;
    host.ask("resume")?;
    talk.go_on()?;
    talk.end()?;
    let recorded = host.end()?;
    let calls = [("open_at_the_beginning", 1), ("before", 1), ("after", 2)];
    // What was entered meanwhile has no name, and is known to be there.
    let found: Vec<_> =
        recorded.calls().into_iter().filter(|(name, _)| !name.starts_with('[')).collect();
    let mut expected = calls.map(|(name, calls)| (name.to_owned(), calls)).to_vec();
    expected.sort();
    ensure!(found == expected, "calls: {found:?}");
    for figure in ["lost", "mended", "open", "unopened"] {
        ensure!(recorded.health(figure) == 0, "{figure}: {}", recorded.health(figure));
    }
    ensure!(recorded.gaps("paused") == 1, "gaps: {}", recorded.gaps("paused"));
    Ok(())
}

/// Nothing is lost, and the time of a wait is told, unless the host frees memory before it moves the tick.
fn waiting(shop: &Workshop) -> Result<()> {
    for _ in 0..3 {
        if full(shop, "wait")?.gaps("waited") > 0 {
            return Ok(());
        }
    }
    bail!("no gap")
}

fn full(shop: &Workshop, on_full: &str) -> Result<Recorded> {
    const EVENTS: u64 = 200_004;
    let program = shop.program("full", Kind::Usual, &[])?;
    let mut host = Host::start(shop, &program, "64KiB", &["--on-full", on_full])?;
    let mut talk = Talk::start(shop, &program, &host)?;
    talk.expect("begun")?;
    host.stop()?;
    talk.go_on()?;
    if on_full == "wait" {
        // It waits from then on, and not so long that it gives up.
        host.is_wanted()?;
        host.signal(libc::SIGCONT)?;
        talk.expect("done")?;
    } else {
        talk.expect("done")?;
        host.signal(libc::SIGCONT)?;
        // For the host to drain, and its clock to move.
        sleep(Duration::from_millis(300));
    }
    talk.go_on()?;
    talk.expect(if on_full == "stop" { "recording 0" } else { "recording 1" })?;
    talk.end()?;
    let recorded = host.end()?;
    let (events, lost) = (recorded.health("events"), recorded.health("lost"));
    let told = format!("{events} events, {lost} lost");
    match on_full {
        "drop" => {
            ensure!(events + lost == EVENTS && lost > 100_000, "{told}");
            ensure!(recorded.gaps("dropped") > 0, "no gap");
            ensure!(
                recorded.health("mended") == 0 && recorded.health("open") == 0,
                "the stack is wrong"
            );
            ensure!(recorded.calls().get("last") == Some(&1), "it does not go on");
        }
        "wait" => {
            recorded.is_whole(&[("around", 1), ("called", 100_000), ("last", 1)])?;
        }
        _ => {
            ensure!(lost == 0 && events > 10_000 && events < EVENTS / 2, "{told}");
            ensure!(!recorded.calls().contains_key("last"), "it goes on");
        }
    }
    Ok(recorded)
}

fn killed(shop: &Workshop) -> Result<()> {
    let program = shop.program("full", Kind::Usual, &[])?;
    let host = Host::start(shop, &program, "64KiB", &["--on-full", "wait"])?;
    let mut talk = Talk::start(shop, &program, &host)?;
    talk.expect("begun")?;
    let recorded = host.kill()?;
    talk.go_on()?;
    talk.expect("done")?;
    talk.go_on()?;
    talk.expect("recording 1")?;
    talk.end()?;
    ensure!(recorded.health("mended") == 0, "the recording is not whole up to its end");
    Ok(())
}

fn signals(shop: &Workshop, kind: Kind) -> Result<()> {
    let program = shop.program("signals", kind, &[])?;
    let (printed, recorded) = record(shop, &program, "4MiB", &[])?;
    let number = |word: &str| -> Result<u64> {
        let rest = printed.split(word).nth(1).with_context(|| format!("it printed {printed:?}"))?;
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        Ok(digits.parse()?)
    };
    let (events, handled) = (number("events")?, number("in handlers")?);
    ensure!(handled > 1000, "{handled} events in handlers");
    let (found, lost) = (recorded.health("events"), recorded.health("lost"));
    ensure!(found + lost == events, "{found} events and {lost} lost are not {events}");
    // Of some handlers, and not of all.
    ensure!(lost > 0 && lost <= handled, "{lost} of {handled} lost");
    for figure in ["mended", "open", "unopened"] {
        ensure!(recorded.health(figure) == 0, "{figure}: {}", recorded.health(figure));
    }
    Ok(())
}

fn threads(shop: &Workshop) -> Result<()> {
    for kind in [Kind::Threads, Kind::NestedThreads] {
        let program = shop.program("threads", kind, &[])?;
        let (_, recorded) = record(shop, &program, "4MiB", &[])?;
        let middle = 4 * 30 * 300 + 30 + 30;
        recorded.is_whole(&[("middle", middle), ("leaf", 2 * middle)]).context(kind.name())?;
        // Main, those that live on, and those of each round.
        ensure!(recorded.threads() == 1 + 4 + 30, "{} threads", recorded.threads());
        let paths = recorded.paths();
        ensure!(paths.len() == 2 && paths.contains_key("middle;leaf"), "paths: {paths:?}");
    }
    Ok(())
}

fn hostile(shop: &Workshop) -> Result<()> {
    for kind in Kind::ALL {
        let program = shop.program("hostile", kind, &[])?;
        same(&shop.output(&program, &[])?, &"attached often\n".repeat(4)).context(kind.name())?;
    }
    fs::remove_file(shop.path("hostile"))?;
    Ok(())
}

/// Every argument comes through, and every call is counted.
fn counted(shop: &Workshop) -> Result<()> {
    for kind in [Kind::Usual, Kind::Threads] {
        for flags in shop.machine.counting {
            let printed = shop.output(&shop.count("counted", Some(kind), flags)?, &[])?;
            let is_right = |line: &str| {
                let words: Vec<&str> = line.split(' ').collect();
                words.len() == 3 && words[1] == words[2]
            };
            let is_whole = printed.lines().count() == 14 && printed.lines().all(is_right);
            ensure!(is_whole, "{} with {flags}: it prints\n{printed}", kind.name());
        }
    }
    Ok(())
}

fn left(shop: &Workshop) -> Result<()> {
    for kind in [Kind::Threads, Kind::NestedThreads] {
        let printed = shop.output(&shop.count("left", Some(kind), "-O2")?, &[])?;
        same(&printed, "all is told\n").context(kind.name())?;
    }
    Ok(())
}

/// The same program under the C library's own counting: what `gprof` shows of it is what the program says.
fn yardstick(shop: &Workshop) -> Result<()> {
    if !shop.machine.is_here() {
        return Err(Unavailable("the C library writes gmon.out on this machine".into()).into());
    }
    let program = shop.count("counted", None, "-O2 -no-pie -fno-pie")?;
    let told = run_quietly(Command::new(&program).current_dir(shop.path("")))?;
    let mut gprof = Command::new("gprof");
    let shown = run_quietly(gprof.args(["-b", "-q"]).arg(program).arg(shop.path("gmon.out")))?;
    for line in told.lines() {
        let (name, calls) = line.split_once(' ').context("no name and number")?;
        let calls: u64 = calls.parse()?;
        let is_row = |row: &&str| row.starts_with('[') && row.contains(&format!(" {name} ["));
        let row = shown.lines().find(is_row).with_context(|| format!("no {name} in\n{shown}"))?;
        // Of a recursion gprof shows calls by others, and behind a + those by itself.
        let found = row.split_whitespace().nth(4).context("no calls")?;
        let found: Result<Vec<u64>, _> = found.split('+').map(str::parse).collect();
        // A nested function stands behind `apply`, and has its own row.
        let inner = if name == "apply" { calls / 4 * 3 } else { 0 };
        ensure!(found?.iter().sum::<u64>() == calls - inner, "{name}: not {calls} in\n{shown}");
    }
    Ok(())
}

/// Sizes of buffers that pieces are taken in; 0: they are lines of text.
const BUFFERS: [&str; 4] = ["256", "300", "4096", "0"];

/// What a program hands over in pieces of a size, imported.
fn take(shop: &Workshop, program: &Path, size: &str) -> Result<Recorded> {
    let (pieces, recording) = (shop.path("pieces"), shop.path("taken.teeperf"));
    run_quietly(shop.command(program).arg(&pieces).arg(size))?;
    let mut import = Command::new(&shop.teeperf);
    import.arg("import").arg(&pieces).arg("--elf").arg(program).arg("--force").arg("-o");
    run_quietly(import.arg(&recording))?;
    Recorded::read(&shop.teeperf, &recording)
}

fn taken(shop: &Workshop) -> Result<()> {
    for kind in [Kind::Usual, Kind::Nested] {
        let program = shop.program("take", kind, &["-Wl,--gc-sections"])?;
        for size in BUFFERS {
            let recorded = take(shop, &program, size)?;
            let calls = [("outer", 500), ("middle", 1500), ("leaf", 7500), ("deep", 10_000)];
            recorded.is_whole(&calls).with_context(|| format!("{} {size}", kind.name()))?;
            let mut paths = recorded.paths();
            let deepest = format!("outer{}", ";deep".repeat(20));
            for (path, calls) in [("outer;middle;leaf", 7500), (&deepest, 500)] {
                ensure!(paths.remove(path) == Some(calls), "{size}: not {calls} calls of {path}");
            }
            // Those between.
            ensure!(paths.len() == 21, "{size}: other paths: {paths:?}");
            let (time, all) = (recorded.time("leaf"), recorded.duration());
            ensure!(0.0 < time && time < all, "{size}: {time} ns of {all} in leaf");
            ensure!(recorded.threads() == 1, "{size}: {} threads", recorded.threads());
        }
    }
    let program = shop.program("take", Kind::Usual, &["-DNDEBUG"])?;
    run_quietly(shop.command(&program).arg(shop.path("pieces")).arg("4096"))?;
    ensure!(fs::read(shop.path("pieces"))?.is_empty(), "a build with NDEBUG hands something over");
    Ok(())
}

fn taken_arcs(shop: &Workshop) -> Result<()> {
    for (kind, threads) in [(Kind::Usual, 1), (Kind::Threads, 3)] {
        let flags = format!("{} -DTHREADS={threads}", shop.machine.counting[0]);
        let program = shop.count("take", Some(kind), &flags)?;
        for size in BUFFERS {
            let recorded = take(shop, &program, size)?;
            let calls = [("outer", 500), ("middle", 1500), ("leaf", 7500), ("deep", 10_000)];
            let calls = calls.map(|(name, calls)| (name, threads * calls));
            recorded.is_whole(&calls).with_context(|| format!("{} {size}", kind.name()))?;
        }
        exported(shop, &program, threads)?;
    }
    Ok(())
}

/// The processor's own gprof shows who called whom of what was taken last.
fn exported(shop: &Workshop, program: &Path, threads: u64) -> Result<()> {
    let file = shop.path("taken.gmon");
    let mut export = Command::new(&shop.teeperf);
    export.args(["export", "--to", "gmon"]).arg(shop.path("taken.teeperf"));
    run_quietly(export.arg("--elf").arg(program).arg("-o").arg(&file))?;
    let mut gprof = Command::new(format!("{}gprof", shop.machine.prefix));
    let shown = run_quietly(gprof.args(["-b", "-q"]).arg(program).arg(&file))?;
    let expected = [
        ("outer", "middle", 1500),
        ("middle", "leaf", 7500),
        ("outer", "deep", 500),
        ("deep", "deep", 9500),
    ];
    has_arcs(&shown, &expected.map(|(caller, callee, calls)| (caller, callee, threads * calls)))
}
