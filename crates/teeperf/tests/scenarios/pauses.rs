//! Recording goes off and on while a program runs: from outside, from inside, and both. What was
//! called in between is left out, all else is there, and the stacks are right across it.

use crate::support::*;
use std::time::{Duration, Instant};

/// Of what the program told, so many calls were made while recording was on.
#[track_caller]
fn expect_seen(
    outcome: &Outcome,
    report: &Report,
    made: &[(&str, u64)],
    seen: &[(&str, u64)],
    warnings: &[&str],
) {
    let of = |calls: &[(&str, u64)]| {
        let mut told = Told::default();
        calls.iter().for_each(|(name, calls)| told.add(name, *calls));
        told
    };
    assert_eq!(outcome.told().calls, of(made).calls);
    assert_calls(&of(seen), report);
    for figure in ["lost", "mended", "open", "unopened"] {
        assert_eq!(report.health(figure), 0, "{figure}: {report:?}");
    }
    assert_eq!(report.warnings, warnings);
}

/// Ways to record: what is paused and what is not is the same in all.
const WAYS: [&[&str]; 3] = [&["--clock", "tick"], &["--clock", "cycle"], &["--probe", "tree"]];

/// The same from outside and from inside: frames left while it is off, and frames entered.
fn off_and_on(way: &[&str], mut turn: impl FnMut(&mut Phases, &str)) {
    let mut phases = Phases::start(way);
    phases.does(&["red 1000"]);
    turn(&mut phases, "pause");
    phases.does(&["red 500", "green 200"]);
    turn(&mut phases, "resume");
    phases.does(&["blue 300", "deep 20", "blue 11"]);
    turn(&mut phases, "pause");
    // From twenty frames down to five others.
    phases.does(&["red 40", "up 0", "deep 5", "green 60"]);
    turn(&mut phases, "resume");
    phases.does(&["green 7", "up 0", "red 9"]);
    turn(&mut phases, "pause");
    // Some ticks: a pause without time and events leaves nothing to tell.
    std::thread::sleep(Duration::from_millis(5));
    turn(&mut phases, "resume");
    phases.does(&["blue 2"]);
    let (outcome, report, _shop) = phases.end();
    let made = [("main", 1), ("red", 1549), ("green", 267), ("blue", 313), ("deep", 25)];
    let seen = [("main", 1), ("red", 1009), ("green", 7), ("blue", 313), ("deep", 20)];
    expect_seen(&outcome, &report, &made, &seen, &[]);
    assert_eq!(report.gap("paused").0, 3, "of a pause without events its time is told");
    let deepest = format!("main{};blue", ";deep".repeat(20));
    let paths = report.paths();
    assert_eq!(paths.get(&deepest), Some(&11));
    assert_eq!((paths.get("main;red"), paths.get("main;blue")), (Some(&1009), Some(&302)));
    assert_eq!(paths.get("main;[...];green"), Some(&7), "{paths:?}");
}

/// Guards: the recorder's word in the clock page, which every thread sees at its next event.
#[test]
fn from_outside() {
    for way in WAYS {
        off_and_on(way, |phases, word| _ = phases.asks(&[word]));
    }
}

/// Guards: the gate, which sends every hook the long way round while the program itself pauses.
#[test]
fn from_inside() {
    for way in WAYS {
        off_and_on(way, |phases, word| phases.does(&[&format!("{word} 0")]));
    }
}

/// A pause of this length, before and behind which as much goes by, while a thread sleeps in one function, and main in
/// another; `calls` are made in it.
fn a_pause_of_time(way: &[&str], mut turn: impl FnMut(&mut Phases, &str), calls: &[&str]) {
    const LONG: Duration = Duration::from_millis(400);
    let mut phases = Phases::start(way);
    let before = Instant::now();
    phases.does(&["thread 0", "red 1"]);
    let begun = Instant::now();
    std::thread::sleep(LONG);
    let pausing = Instant::now();
    turn(&mut phases, "pause");
    let paused = Instant::now();
    std::thread::sleep(LONG / 2);
    phases.does(calls);
    std::thread::sleep(LONG / 2);
    let resuming = Instant::now();
    turn(&mut phases, "resume");
    let resumed = Instant::now();
    std::thread::sleep(LONG);
    phases.does(&["red 1", "wake 0"]);
    let woken = Instant::now();
    phases.does(&["go 1"]);
    let (_, report, _shop) = phases.end();
    let least = (pausing - begun) + (woken - resumed);
    // Who is woken may run only later, where the machine is busy.
    let most = (paused - before) + resuming.elapsed();
    // A tick may come late.
    let range = least.as_secs_f64() - 0.02..most.as_secs_f64() + 0.02;
    let (sleeps, _) = report.total_and_duration("sleeps");
    assert!(range.contains(&(sleeps / 1e9)), "{way:?} {calls:?}: {sleeps} ns, not in {range:?}");
    let (main, _) = report.total_and_duration("main");
    assert!(main / 1e9 > range.start && main / 1e9 < range.end + 0.3, "{way:?}: {main} ns");
}

/// Guards: time in pauses, which recorder and program keep in one word each, and which threads tell of that have called
/// nothing in one.
#[test]
fn time_is_left_out_as_long_as_it_lasts() {
    for way in WAYS {
        for calls in [&[][..], &["green 9"]] {
            a_pause_of_time(way, |phases, word| _ = phases.asks(&[word]), calls);
            a_pause_of_time(way, |phases, word| phases.does(&[&format!("{word} 0")]), calls);
        }
    }
}

/// Guards: of a call that never returns the recorder leaves pauses out itself, from either side, also if it is asked
/// for what is there so far.
#[test]
fn time_is_left_out_of_calls_that_never_return() {
    for (way, is_inside) in WAYS[..2].iter().flat_map(|way| [(way, false), (way, true)]) {
        let mut phases = Phases::start(way);
        let turn = |phases: &mut Phases, word: &str| match is_inside {
            false => _ = phases.asks(&[word]),
            true => phases.does(&[&format!("{word} 0")]),
        };
        let before = Instant::now();
        phases.does(&["thread 0"]);
        std::thread::sleep(Duration::from_millis(200));
        turn(&mut phases, "pause");
        let paused = Instant::now();
        std::thread::sleep(Duration::from_millis(700));
        let file = phases.file.clone();
        let expect = |least: Duration, most: Duration| {
            let (sleeps, _) = Report::of(&file).total_and_duration("sleeps");
            let range = least.as_secs_f64() - 0.02..most.as_secs_f64() + 0.3;
            assert!(range.contains(&(sleeps / 1e9)), "{way:?} {is_inside}: {sleeps}, {range:?}");
        };
        phases.asks(&["snapshot"]);
        expect(Duration::from_millis(200), paused - before);
        let resuming = Instant::now();
        turn(&mut phases, "resume");
        std::thread::sleep(Duration::from_millis(200));
        phases.asks(&["snapshot"]);
        let counts = || (paused - before) + resuming.elapsed();
        expect(Duration::from_millis(400), counts());
        // SAFETY: kill only takes numbers.
        unsafe { libc::kill(child_of(phases.running.pid()), libc::SIGKILL) };
        wait_until("the recording's end", || Report::of(&file).signal.is_some());
        expect(Duration::from_millis(400), counts());
    }
}

/// Guards: hooks of other threads look at the gate too, at each call, and not only when the tick moves.
#[test]
fn from_another_thread_while_the_tick_stands() {
    let shop = Workshop::new();
    let program = shop.build("others_pause.c", Compiler::Gcc, &["-O1", "-pthread"]);
    for probe in ["trace", "tree"] {
        let options = ["--probe", probe, "--clock", "tick", "--period", "100ms"];
        let Recorded { outcome, report, .. } = shop.record(&options, &program, &["50"], 0);
        let (made, seen) = ([("main", 1), ("work", 1500)], [("main", 1), ("work", 1000)]);
        expect_seen(&outcome, &report, &made, &seen, &[]);
    }
}

/// Guards: two words, one of the recorder's and one of the program's: what one of them pauses the
/// other does not resume.
#[test]
fn from_both_sides() {
    for way in WAYS {
        let mut phases = Phases::start(way);
        phases.does(&["red 10"]);
        let program = child_of(phases.running.pid());
        let asks =
            |word: &str, pid: i32| _ = run(teeperf().arg(word).arg(pid.to_string())).expect_code(0);
        asks("pause", program);
        phases.does(&["green 1", "pause 0", "green 2"]);
        asks("resume", program);
        phases.does(&["green 4", "resume 0", "red 20", "pause 0", "green 8"]);
        asks("pause", program);
        phases.does(&["green 16", "resume 0", "green 32"]);
        asks("resume", program);
        phases.does(&["red 40"]);
        let (outcome, report, _shop) = phases.end();
        let made = [("main", 1), ("red", 70), ("green", 63)];
        expect_seen(&outcome, &report, &made, &[("main", 1), ("red", 70)], &[]);
        assert_eq!(report.gap("paused").0, 2);
    }
}

/// Guards: a thread that has made calls before it has a chunk left them out because it was told
/// to: they are no loss, and its frames are known to be there.
#[test]
fn from_the_start_until_it_is_resumed() {
    for way in WAYS {
        let mut phases = Phases::start(&[way, &["--paused"]].concat());
        phases.does(&["red 100", "deep 3"]);
        phases.asks(&["resume"]);
        phases.does(&["green 5", "up 0", "blue 6"]);
        let (outcome, report, _shop) = phases.end();
        let made = [("main", 1), ("red", 100), ("green", 5), ("blue", 6), ("deep", 3)];
        expect_seen(&outcome, &report, &made, &[("green", 5), ("blue", 6)], &[]);
        assert_eq!(report.gap("paused").0, 1);
        let paths = report.paths();
        assert_eq!(paths.get("[...];green"), Some(&5), "{paths:?}");
        assert_eq!(paths.get("[...];blue"), Some(&6), "{paths:?}");
    }
}

/// Guards: a program that is never resumed leaves a recording of nothing, and no loss.
#[test]
fn from_the_start_to_the_end() {
    let mut phases = Phases::start(&["--paused"]);
    phases.does(&["red 100"]);
    let (outcome, report, _shop) = phases.end();
    let warnings = [
        "No call was recorded: recording was paused.",
        "recording was paused from its start to its end",
    ];
    expect_seen(&outcome, &report, &[("main", 1), ("red", 100)], &[], &warnings);
    assert!(outcome.stderr.contains("record again, and `teeperf resume`"), "{outcome:?}");
}

/// Guards: of a pause that never ends no thread says anything, so the recorder does.
#[test]
fn from_the_middle_to_the_end() {
    let mut phases = Phases::start(&["--paused"]);
    phases.does(&["red 100"]);
    phases.asks(&["resume"]);
    phases.does(&["green 5"]);
    phases.asks(&["pause"]);
    phases.does(&["blue 6"]);
    let file = phases.file.clone();
    let (outcome, report, _shop) = phases.end();
    let [warning] = &report.warnings[..] else { panic!("{report:?}") };
    assert_eq!(
        report.calls.iter().map(|(name, n)| (&name[..], *n)).collect::<Vec<_>>(),
        [("green", 5)]
    );
    assert_eq!(report.health("lost"), 0);
    let has = |said: &str, parts: &[&str]| {
        let missing = parts.iter().find(|part| !said.contains(**part));
        assert_eq!(missing, None, "{said}");
    };
    has(
        warning,
        &["recording was paused after ", " s and not resumed: its last ", " s are left out"],
    );
    has(&outcome.stderr, &[warning, ", paused for ", "; next: teeperf report"]);
    let dump = run(teeperf().arg("dump").arg(&file));
    has(&dump.stdout, &["recording was resumed after ", "recording was paused after "]);
}

/// Guards: who asks for a recording that is not there is told so.
#[test]
fn of_nobody() {
    let outcome = run(teeperf().args(["pause", "4000000000"]));
    outcome.expect_code(1);
    assert!(outcome.stderr.contains("neither records nor is recorded"), "{outcome:?}");
}

/// Guards: signals to the recorder, for those who have no other way to it. They are not the program's.
#[test]
fn by_signals() {
    let mut phases = Phases::start(&[]);
    let turns = |phases: &Phases, state: &str| {
        phases.running.signal(libc::SIGUSR1);
        wait_until(state, || phases.asks(&["status"]).contains(&format!("state: {state}\n")));
        // Threads see it with the next tick.
        std::thread::sleep(Duration::from_millis(50));
    };
    phases.does(&["red 10"]);
    turns(&phases, "paused");
    phases.does(&["red 100"]);
    turns(&phases, "recording");
    phases.does(&["red 5"]);
    phases.running.signal(libc::SIGUSR2);
    let seen = || run(teeperf().args(["report", "--json"]).arg(&phases.file)).stdout;
    wait_until("a snapshot", || seen().contains("\"calls\":15,"));
    let (outcome, report, _shop) = phases.end();
    let made = [("main", 1), ("red", 115)];
    expect_seen(&outcome, &report, &made, &[("main", 1), ("red", 15)], &[]);
}
