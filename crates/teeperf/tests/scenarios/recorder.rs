//! A recorder that stands still, dies, or has nowhere to write: the program goes on, ends as
//! it would have, and what was written can be read and says what is missing.

use crate::support::*;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// `steady.c` under a recorder, making calls without end.
struct Steady {
    shop: Workshop,
    progress: Progress,
    running: Running,
    file: std::path::PathBuf,
}

impl Steady {
    fn start(options: &[&str]) -> Self {
        Self::start_with(options, &["1000000000"])
    }

    fn start_with(options: &[&str], arguments: &[&str]) -> Self {
        let shop = Workshop::new();
        let program = shop.build("steady.c", Compiler::Gcc, &["-O1"]);
        let progress = Progress::new(&shop, "progress");
        let arguments = [&[progress.name()], arguments].concat();
        let mut recording = shop.recording(options, &program, &arguments);
        let running = Running::start(&mut recording.command);
        wait_until("calls", || progress.calls() > 100_000);
        Self { shop, progress, running, file: recording.file }
    }

    /// Waits for the program to make that many more calls.
    fn goes_on(&self, calls: u64) {
        let now = self.progress.calls();
        wait_until("the program goes on", || self.progress.calls() > now + calls);
    }
}

/// Each event was seen or counted as lost. Three functions, all left again.
fn nothing_lost_silently(told: &Told, report: &Report) {
    assert_eq!(report.health("events") + report.health("lost"), 2 * told.total());
    for (name, &calls) in &told.calls {
        assert!(report.calls.get(name).copied().unwrap_or(0) <= calls, "{name}");
    }
}

/// Guards: waiting ends after a second without progress of the drain, becomes dropping that
/// is counted, and recording goes on when the recorder does.
#[test]
fn stopped_for_three_seconds() {
    let steady = Steady::start(&["--on-full", "wait"]);
    steady.running.signal(libc::SIGSTOP);
    // Longer than the pool lasts and the program waits.
    std::thread::sleep(Duration::from_secs(3));
    steady.goes_on(300_000);
    steady.running.signal(libc::SIGCONT);
    steady.goes_on(300_000);
    steady.progress.stop();
    let outcome = steady.running.wait();
    let report = Report::of(&steady.file);
    outcome.expect_code(5);
    nothing_lost_silently(&outcome.told(), &report);
    assert!(report.health("lost") > 0);
    assert!(report.gap("stalled").0 >= 1, "{report:?}");
    let waited = outcome.stderr.split_once(" for the recorder, ").expect("it is said").1;
    let seconds: f64 = waited.split_once(" s in all").expect("seconds").0.parse().unwrap();
    assert!(
        (seconds - report.gap("stalled").1 as f64 / 1e9 - report.gap("waited").1 as f64 / 1e9)
            .abs()
            < 0.01,
        "{waited}"
    );
}

/// Guards: as above, where nobody ever waits.
#[test]
fn stopped_while_the_program_drops() {
    let steady = Steady::start(&["--on-full", "drop"]);
    steady.running.signal(libc::SIGSTOP);
    steady.goes_on(4_000_000);
    steady.running.signal(libc::SIGCONT);
    // Until it has a chunk again, into which what was lost is written.
    steady.goes_on(2_000_000);
    steady.progress.stop();
    let outcome = steady.running.wait();
    let report = Report::of(&steady.file);
    outcome.expect_code(5);
    nothing_lost_silently(&outcome.told(), &report);
    assert!(report.health("lost") > 0);
    assert!(report.gap("dropped").0 >= 1, "{report:?}");
}

/// Guards: a program that ends before its threads have a chunk again: what they left out is
/// counted all the same.
#[test]
fn stopped_until_the_program_has_ended() {
    for threads in ["0", "3"] {
        let steady = Steady::start_with(&["--on-full", "drop"], &["1000000000", "0", threads]);
        let program = child_of(steady.running.pid());
        steady.running.signal(libc::SIGSTOP);
        steady.goes_on(4_000_000);
        steady.progress.stop();
        wait_until("the program's end", || ended(program));
        steady.running.signal(libc::SIGCONT);
        let outcome = steady.running.wait();
        let report = Report::of(&steady.file);
        outcome.expect_code(5);
        assert!(report.health("lost") > 4_000_000);
        if threads == "0" {
            nothing_lost_silently(&outcome.told(), &report);
        }
    }
}

/// Guards: `--on-full stop` ends recording in the process for good, and says so.
#[test]
fn stopped_while_the_program_stops_recording() {
    let steady = Steady::start(&["--on-full", "stop"]);
    steady.running.signal(libc::SIGSTOP);
    steady.goes_on(4_000_000);
    steady.running.signal(libc::SIGCONT);
    // Long enough to have a chunk again, if it asked for one.
    steady.goes_on(2_000_000);
    steady.progress.stop();
    let outcome = steady.running.wait();
    let report = Report::of(&steady.file);
    outcome.expect_code(5);
    let told = outcome.told();
    assert!(report.calls["leaf"] < told.calls["leaf"]);
    let says_so = |text: &str| text.contains("ended there, as `--on-full stop` asks");
    assert!(report.warnings.iter().any(|warning| says_so(warning)), "{report:?}");
    assert!(says_so(&outcome.stderr), "{}", outcome.stderr);
    assert_eq!((report.gap("stopped").0, report.gap("dropped").0), (1, 0), "{report:?}");
    // What came behind it was not to be recorded.
    assert_eq!(report.health("lost"), 0);
}

/// Guards: a program whose recorder was killed waits a second at most, goes on and ends as it
/// would have; what was written can be read, and the report says that the end is missing.
#[test]
fn killed() {
    for on_full in ["wait", "drop", "stop"] {
        let steady = Steady::start(&["--on-full", on_full]);
        let program = child_of(steady.running.pid());
        wait_until("something written", || {
            steady.file.metadata().is_ok_and(|file| file.len() > 2000)
        });
        steady.running.signal(libc::SIGKILL);
        steady.goes_on(4_000_000);
        steady.progress.stop();
        wait_until("the program's end", || steady.progress.done());
        wait_until("the process's end", || ended(program));
        let outcome = steady.running.wait();
        assert_eq!(signal_of(outcome.status), Some(libc::SIGKILL));
        let report = Report::of(&steady.file);
        // The recorder may not have written names yet; the file is there, and the build that was recorded.
        assert!(report.calls.contains_key("leaf"), "{:?}", report.calls);
        // Two calls of `leaf` for one of `work`.
        let most = 2 * (steady.progress.calls() + steady.progress.calls() / 2 + 2);
        assert!((1..=most).contains(&report.health("events")), "{report:?}");
        assert!(!report.warnings.is_empty(), "nothing is said of the missing end");
        drop(steady.shop);
    }
}

/// Guards: a server outlives its recorder by months. One of its children finds that out, and not each.
#[test]
fn killed_before_children_are_forked() {
    let mut phases = Phases::start(&[]);
    phases.does(&["red 1000"]);
    phases.running.signal(libc::SIGKILL);
    let recorder = phases.running.pid();
    wait_until("the recorder's end", || ended(recorder));
    phases.does(&["children 5"]);
    let told = phases.running.stdout_so_far();
    assert!(told.contains("slept 0\n") || told.contains("slept 1\n"), "{told}");
}

/// Guards: Ctrl-C goes to both. The program dies of it, the recorder finishes its recording.
#[test]
fn interrupted_from_the_keyboard() {
    let steady = Steady::start(&[]);
    // SAFETY: kill only takes numbers; the group is the recorder's own.
    assert_eq!(unsafe { libc::kill(-steady.running.pid(), libc::SIGINT) }, 0);
    let outcome = steady.running.wait();
    // Not only as a status of 130: a shell's loop around it would go on.
    assert_eq!(outcome.status.signal(), Some(libc::SIGINT), "{outcome:?}");
    let report = Report::of(&steady.file);
    assert!(report.calls["leaf"].abs_diff(steady.progress.calls()) <= 1);
    assert_eq!(report.signal, Some(libc::SIGINT.into()));
    assert_eq!(report.warnings, Vec::<String>::new());
}

/// Guards: SIGTERM for the recorder alone ends the recording in order.
#[test]
fn asked_to_end() {
    let steady = Steady::start(&[]);
    steady.running.signal(libc::SIGTERM);
    let program_progress = &steady.progress;
    wait_until("recorder's end", || ended(steady.running.pid()) || program_progress.done());
    steady.progress.stop();
    steady.running.wait();
    let report = Report::of(&steady.file);
    // The signal ends the program too, perhaps between the hook of a call and its counter.
    assert!((1..=steady.progress.calls() + 1).contains(&report.calls["leaf"]));
    assert_eq!(report.warnings, Vec::<String>::new());
}

/// Guards: a device that takes nothing is found out before the program is run in vain.
#[test]
fn nowhere_to_write() {
    let shop = Workshop::new();
    let program = shop.build("calls.c", Compiler::Gcc, &["-O2"]);
    let mut command = teeperf();
    command.args(["record", "-o", "/dev/full", "--"]).arg(&program).stdin(Stdio::null());
    let outcome = run(&mut command);
    outcome.expect_code(1);
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.contains("/dev/full: No space left"), "{outcome:?}");
}

/// Guards: a disk that fills up while the program waits for room: it ends as it would have, the
/// recording up to there can be read, and functions have their names.
#[test]
fn a_disk_that_fills_up() {
    let shop = Workshop::new();
    let program = shop.build("calls.c", Compiler::Gcc, &["-O2"]);
    let alone = run(Command::new(&program).arg("100000"));
    for clock in ["cycle", "tick"] {
        let options = format!("--clock {clock}");
        let Some(outcome) = on_a_small_disk(&shop, &options, &program, "100000") else { return };
        assert_eq!(outcome.stdout, alone.stdout);
        expect_names_and_a_part(&shop.path("copy.teeperf"), &alone.told());
    }
}

/// Guards: trees are written when the program has ended, and the report says that some are missing.
#[test]
fn a_disk_that_fills_up_at_the_end() {
    let shop = Workshop::new();
    let program = shop.build("branches.c", Compiler::Gcc, &["-O2"]);
    let options = "--probe tree --tree-size 64MiB";
    if on_a_small_disk(&shop, options, &program, "20000").is_some() {
        let report = Report::of(&shop.path("copy.teeperf"));
        let says_so = |text: &String| text.contains("the output failed: No space left");
        assert!(report.warnings.iter().any(says_so), "{:?}", report.warnings);
    }
}

/// Records a program on a file system of 256 KiB, and copies the recording to `copy.teeperf`;
/// nothing where none can be made.
fn on_a_small_disk(
    shop: &Workshop,
    options: &str,
    program: &Path,
    argument: &str,
) -> Option<Outcome> {
    let small = shop.path("small");
    std::fs::create_dir_all(&small).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=256k none {small} || exit 77
         {TEEPERF} record {options} -o {small}/recording.teeperf -- {program} {argument}
         code=$?; cp {small}/recording.teeperf {copy}; exit $code",
        small = small.display(),
        program = program.display(),
        copy = shop.path("copy.teeperf").display(),
    );
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .stdin(Stdio::null());
    let outcome = run(&mut command);
    if outcome.stderr.contains("unshare failed") || outcome.status.code() == Some(77) {
        eprintln!("skipped: no file system can be made here: {}", outcome.stderr);
        return None;
    }
    assert!(outcome.stderr.contains("No space left"), "{outcome:?}");
    Some(outcome)
}

/// Guards: as above where a file must not grow beyond a limit.
#[test]
fn a_file_that_must_not_grow() {
    let shop = Workshop::new();
    let program = shop.build("calls.c", Compiler::Gcc, &["-O2"]);
    let alone = run(Command::new(&program).arg("1000000"));
    let file = shop.path("limited.teeperf");
    // Shared memory counts as a file.
    let script = format!(
        "ulimit -f 12000; exec {TEEPERF} record --clock cycle -o {} -- {} 1000000",
        file.display(),
        program.display()
    );
    let outcome = run(Command::new("bash").args(["-c", &script]).stdin(Stdio::null()));
    assert_eq!(outcome.stdout, alone.stdout);
    assert!(outcome.stderr.to_lowercase().contains("file too large"), "{outcome:?}");
    assert!(std::fs::metadata(&file).unwrap().len() <= 12000 << 10);
    expect_names_and_a_part(&file, &alone.told());
}

/// A recording that ended before its program, for want of room.
fn expect_names_and_a_part(file: &Path, told: &Told) {
    let report = Report::of(file);
    assert!(report.health("events") > 10_000);
    assert!(!report.calls.is_empty());
    for (name, &calls) in &report.calls {
        assert!(calls <= told.calls.get(name).copied().unwrap_or(0), "{name}: {calls}");
    }
    assert!(!report.warnings.is_empty(), "nothing is said of what is missing");
}

/// Guards: nothing of a recorder is shared with another one.
#[test]
fn two_at_once() {
    let shops = [Workshop::new(), Workshop::new()];
    let mut both = Vec::new();
    for (shop, rounds) in shops.iter().zip(["20000", "30000"]) {
        let program = shop.build("calls.c", Compiler::Gcc, &["-O2"]);
        let mut recording = shop.recording(&[], &program, &[rounds]);
        both.push((Running::start(&mut recording.command), recording.file));
    }
    for (running, file) in both {
        let outcome = running.wait();
        outcome.expect_code(0);
        let report = Report::of(&file);
        assert_calls(&outcome.told(), &report);
        report.expect_whole();
    }
}

/// Guards: a recorder under a recorder: the inner one has the program.
#[test]
fn one_inside_the_other() {
    let shop = Workshop::new();
    let program = shop.build("calls.c", Compiler::Gcc, &["-O2"]);
    let inner = shop.path("inner.teeperf");
    let arguments =
        ["record", "-o", inner.to_str().unwrap(), "--", program.to_str().unwrap(), "1000"];
    let mut recording = shop.recording(&[], TEEPERF.as_ref(), &arguments);
    let outcome = run(&mut recording.command);
    outcome.expect_code(0);
    let report = Report::of(&inner);
    assert_calls(&outcome.told(), &report);
    report.expect_whole();
}

/// Whether a process is gone, or only waits to be fetched.
fn ended(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .map_or(true, |stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}
