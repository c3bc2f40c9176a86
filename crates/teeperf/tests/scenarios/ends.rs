//! Calls that do not return: a thread sleeps in one when its process is killed or exits, when the recording ends, or when
//! somebody looks. Their time counts up to then, and that of threads that had ended before does not.

use crate::support::*;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a thread is left to sleep.
const SLEEP: Duration = Duration::from_millis(700);
/// How much longer a call may seem than it was: what a test waits for takes so long on a machine that has much else to do.
const SLACK: f64 = 0.4;

/// Under both clocks, whose times are asked for to the millisecond.
const CLOCKS: [&[&str]; 2] = [&["--clock", "tick", "--no-cpu-samples"], &["--clock", "cycle"]];

/// `phases.c` with a thread in `sleeps`, and one that ended in `leaves`.
struct Sleeping {
    phases: Phases,
    /// Before the call of `sleeps`, and behind it.
    called: (Instant, Instant),
}

impl Sleeping {
    fn start(options: &[&str]) -> Self {
        let mut phases = Phases::start(options);
        phases.does(&["leaver 0", "red 3"]);
        let before = Instant::now();
        phases.does(&["thread 0"]);
        let called = (before, Instant::now());
        std::thread::sleep(SLEEP);
        Self { phases, called }
    }

    /// The time in `sleeps` was up to a moment between these.
    #[track_caller]
    fn expect_time(&self, recording: &Path, ended: (Instant, Instant)) {
        let report = Report::of(recording);
        let (sleeps, _) = report.total_and_duration("sleeps");
        let (least, most) = (ended.0 - self.called.1, ended.1 - self.called.0);
        let range = least.as_secs_f64() - 0.001..most.as_secs_f64() + SLACK;
        assert!(range.contains(&(sleeps / 1e9)), "{} s, not in {range:?}", sleeps / 1e9);
        let (leaves, _) = report.total_and_duration("leaves");
        assert!(leaves < 0.3e9, "it has ended long ago: {leaves} ns");
        let (main, _) = report.total_and_duration("main");
        assert!(main >= sleeps - 1e6, "main waits as long: {main} ns");
    }

    fn kill(&self) {
        // SAFETY: kill only takes numbers.
        assert_eq!(unsafe { libc::kill(child_of(self.phases.running.pid()), libc::SIGKILL) }, 0);
    }
}

/// Guards: the last piece of each thread that lived, which tells the time at which the process was seen to end.
#[test]
fn the_process_is_killed() {
    for clock in CLOCKS {
        let sleeping = Sleeping::start(clock);
        let killed = Instant::now();
        sleeping.kill();
        let file = sleeping.phases.file.clone();
        wait_until("the recording's end", || Report::of(&file).signal.is_some());
        sleeping.expect_time(&file, (killed, Instant::now()));
    }
}

/// Guards: threads that exit ends with the process.
#[test]
fn the_process_exits() {
    let sleeping = Sleeping::start(CLOCKS[0]);
    let (file, called) = (sleeping.phases.file.clone(), sleeping.called);
    let exits = Instant::now();
    let (_, report, _shop) = sleeping.phases.end();
    let (sleeps, _) = report.total_and_duration("sleeps");
    let range = (exits - called.1).as_secs_f64()..called.0.elapsed().as_secs_f64() + SLACK;
    assert!(range.contains(&(sleeps / 1e9)), "{sleeps} ns, not in {range:?}");
    assert_eq!(report.warnings, Vec::<String>::new());
    drop(file);
}

/// Guards: the same where the recording ends and the program goes on.
#[test]
fn the_recording_is_ended() {
    for clock in CLOCKS {
        let sleeping = Sleeping::start(clock);
        let asked = Instant::now();
        sleeping.phases.asks(&["stop"]);
        wait_until("its end", || Report::of(&sleeping.phases.file).warnings.len() == 1);
        let ended = Instant::now();
        std::thread::sleep(SLEEP);
        sleeping.expect_time(&sleeping.phases.file, (asked, ended));
        sleeping.kill();
    }
}

/// Guards: what a snapshot tells of time is not told again when the thread goes on, whichever the clock.
#[test]
fn somebody_looks() {
    for clock in CLOCKS {
        let mut sleeping = Sleeping::start(clock);
        for _ in 0..3 {
            let asked = Instant::now();
            sleeping.phases.asks(&["snapshot"]);
            sleeping.expect_time(&sleeping.phases.file, (asked, Instant::now()));
            let [warning] = &Report::of(&sleeping.phases.file).warnings[..] else { panic!("one") };
            assert!(warning.starts_with("it is still being recorded"), "{warning}");
            std::thread::sleep(SLEEP / 4);
        }
        let woken = Instant::now();
        sleeping.phases.does(&["wake 0"]);
        let awake = Instant::now();
        sleeping.phases.asks(&["snapshot"]);
        sleeping.phases.does(&["go 5", "red 1000"]);
        let (file, called) = (sleeping.phases.file.clone(), sleeping.called);
        let (outcome, report, _shop) = sleeping.phases.end();
        assert_calls(&outcome.told(), &report);
        let (sleeps, _) = report.total_and_duration("sleeps");
        let range =
            (woken - called.1).as_secs_f64() - 0.001..(awake - called.0).as_secs_f64() + 0.001;
        assert!(range.contains(&(sleeps / 1e9)), "{sleeps} ns, not in {range:?}");
        assert!(report.health("open") == 1, "leaves alone: {report:?}");
        drop(file);
    }
}

/// Guards: main's thread may end before others; the system keeps it until they do.
#[test]
fn the_first_thread_has_ended() {
    let mut phases = Phases::start(CLOCKS[0]);
    phases.does(&["thread 0", "first 0"]);
    std::thread::sleep(SLEEP);
    // SAFETY: kill only takes numbers.
    assert_eq!(unsafe { libc::kill(child_of(phases.running.pid()), libc::SIGKILL) }, 0);
    let file = phases.file.clone();
    wait_until("the recording's end", || Report::of(&file).signal.is_some());
    let report = Report::of(&file);
    let (sleeps, leaves) =
        (report.total_and_duration("sleeps").0, report.total_and_duration("leaves").0);
    assert!(sleeps >= SLEEP.as_secs_f64() * 1e9, "{sleeps} ns");
    assert!(leaves < 0.3e9, "it ended at once: {leaves} ns");
}

/// Guards: windows of a recording add up to it where they end in a call that never does.
#[test]
fn windows_add_up() {
    for clock in CLOCKS {
        let sleeping = Sleeping::start(clock);
        sleeping.kill();
        let file = sleeping.phases.file.clone();
        wait_until("the recording's end", || Report::of(&file).signal.is_some());
        let whole = Report::of(&file).total_and_duration("sleeps").0;
        let borders = ["0s", "200ms", "500ms", "1000s"];
        let mut sum = 0.0;
        for (number, border) in borders.windows(2).enumerate() {
            let part = file.with_file_name(format!("part{number}.teeperf"));
            let mut cut = teeperf();
            cut.args(["cut", "--since", border[0], "--until", border[1], "-o"]).arg(&part);
            run(cut.arg(&file)).expect_code(0);
            let time = Report::of(&part).total_and_duration("sleeps").0;
            assert!(time > 0.1e9, "{border:?} has a part of it: {time} ns");
            sum += time;
        }
        assert!((sum - whole).abs() < 2e3, "{sum} ns, not {whole}");
    }
}

/// Guards: a folder that keeps the latest part has the time as well.
#[test]
fn the_latest_part_is_kept() {
    let sleeping = Sleeping::start(&["--rotate", "10s", "--no-cpu-samples"]);
    let status = sleeping.phases.asks(&["status"]);
    assert!(status.contains(&format!("output: {}\n", sleeping.phases.file.display())), "{status}");
    let killed = Instant::now();
    sleeping.kill();
    let file = sleeping.phases.file.clone();
    wait_until("the recording's end", || Report::of(&file).signal.is_some());
    sleeping.expect_time(&file, (killed, Instant::now()));
    let said = || sleeping.phases.running.stderr_so_far();
    wait_until("the last line", || said().contains("; next: teeperf report"));
    let (_, kept) = said()
        .split_once(", of which the last ")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .expect("it is said");
    let (seconds, kept) = kept.split_once(" s, ").expect("seconds");
    assert!(seconds.parse::<f64>().unwrap() >= SLEEP.as_secs_f64(), "{seconds}");
    assert!(kept.contains("kB are kept"), "{kept}");
}
