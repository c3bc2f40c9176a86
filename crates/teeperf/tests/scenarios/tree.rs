//! Calls summed by call path while the program runs (`record --probe tree`): the same programs, the same
//! counts and paths as with events.

use crate::support::*;
use std::collections::BTreeMap;

const TREE: &[&str] = &["--probe", "tree"];

/// Records a program that ends with `code` under these options too, and compares the calls.
#[track_caller]
fn summed(
    shop: &Workshop,
    options: &[&str],
    program: &std::path::Path,
    arguments: &[&str],
    code: i32,
) -> (Told, Report) {
    let recorded = shop.record(&[TREE, options].concat(), program, arguments, code);
    let told = recorded.outcome.told();
    assert_calls(&told, &recorded.report);
    assert_eq!(recorded.report.health("lost"), 0, "{:?}", recorded.report);
    (told, recorded.report)
}

/// Guards: a call goes to the node of its path, a return to the one above, by every clock.
#[test]
fn every_clock_and_way_of_linking() {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        for (flags, clock) in [
            (&["-O0"][..], "tick"),
            (&["-O2"], "cycle"),
            (&["-O2"], "ordered"),
            (&["-O2", "-static"], "tick"),
            (&["-O2", "-static-pie", "-fPIE"], "cycle"),
            (&["-O2", "-no-pie", "-fno-pie"], "tick"),
        ] {
            let program = shop.build("calls.c", compiler, flags);
            let (_, report) = summed(&shop, &["--clock", clock], &program, &["3000"], 0);
            report.expect_whole();
            assert_eq!(report.clock, clock);
        }
    }
}

/// Call path by call path; returns what is mended.
#[track_caller]
fn paths_agree(source: &str, arguments: &[&str], flags: &[&str]) -> Vec<u64> {
    let options = [TREE, &["--tree-size", "16MiB"]].concat();
    let reports = assert_paths_agree(&options, source, arguments, flags);
    reports.iter().map(|report| report.health("mended")).collect()
}

/// Guards: a mark keeps the node, and a jump goes back to it.
#[test]
fn longjmp_over_many_frames_nested_and_out_of_handlers() {
    paths_agree("longjmps.c", &[], &[]);
    paths_agree("longjmps.c", &["20"], &["-static"]);
}

/// Guards: a catch closes what is above the function that catches.
#[test]
fn exceptions_through_many_frames() {
    paths_agree("exceptions.cc", &[], &[]);
    paths_agree("unwinding.cc", &[], &[]);
}

/// Guards: each stack has a node of its own where it is.
#[test]
fn coroutines_have_stacks_of_their_own() {
    paths_agree("coroutines.c", &[], &[]);
}

/// Guards: frames entered while it is off are unknown ones, and any return is taken for theirs.
#[test]
fn random_off_and_on_against_a_slow_model() {
    for (seed, toggles) in [("1", "10"), ("2", "100"), ("3", "500"), ("4", "2"), ("5", "1000")] {
        paths_agree("pauses.c", &[seed, toggles, "20000"], &[]);
    }
}

/// Guards: all of these together, in random order: jumps past catches, coroutines inside handlers, exceptions
/// below jumps; with recursion folded too, where counts are those of functions.
#[test]
fn random_walks_through_everything() {
    let (shop, steps) = (Workshop::new(), repeats(20_000).to_string());
    let (large, folded) = (["--tree-size", "64MiB"], ["--fold-recursion", "--tree-size", "64MiB"]);
    for compiler in Compiler::tried() {
        let program = shop.build("wanders.cc", compiler, &["-O2"]);
        for (seed, allowed) in [
            ("1", "j"),
            ("2", "x"),
            ("3", "s"),
            ("4", "c"),
            ("5", "jxs"),
            ("6", "jxsc"),
            ("7", "jxscp"),
        ] {
            let arguments = [seed, &steps, allowed];
            let recorded = shop.record(&[TREE, &large].concat(), &program, &arguments, 0);
            let told = recorded.outcome.told();
            assert_calls(&told, &recorded.report);
            assert_eq!(recorded.report.health("lost"), 0, "{compiler:?} {allowed}");
            // As with events: a catch alone does not tell two frames of one function apart, and what happens
            // while recording is off is not followed.
            let is_followed = compiler == Compiler::Gcc || !allowed.contains('x');
            if is_followed && !allowed.contains('p') {
                assert_paths(&told, &recorded.report);
            }
            summed(&shop, &folded, &program, &arguments, 0);
        }
    }
}

/// Guards: each node counts in one instruction, and a handler that interrupts a hook leaves the tree where it was.
#[test]
fn handlers_during_hooks_lose_nothing() {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        let program = shop.build("signals.c", compiler, &["-O2"]);
        for (options, stack) in [
            (&["--clock", "tick"][..], None),
            // It moves while a handler is between a hook's looks at it.
            (&["--clock", "tick", "--period", "10us"], None),
            (&["--clock", "cycle"], None),
            (&["--clock", "tick"], Some("own stack")),
            (&["--fold-recursion", "--clock", "tick"], None),
        ] {
            let arguments: Vec<&str> = ["1500"].into_iter().chain(stack).collect();
            let (told, report) = summed(&shop, options, &program, &arguments, 0);
            assert!(told.calls["handler"] > 1000, "hardly any signal came: {told:?}");
            assert_eq!(report.health("mended"), 0, "{compiler:?} {options:?}");
        }
    }
}

/// Guards: a hook leaves the tree right after each of its instructions, those of the way round as well.
#[test]
fn after_each_single_instruction() {
    let shop = Workshop::new();
    let source = shop.path("steps.c");
    std::fs::copy(
        concat!(env!("CARGO_MANIFEST_DIR"), "/../teeperf-rt/tests/programs/steps.c"),
        &source,
    )
    .expect("the program");
    let program = shop.build_own(&source, Compiler::Gcc, &["-O2", "-pthread"]);
    for clock in ["tick", "cycle"] {
        let options = [TREE, &["--clock", clock]].concat();
        let Recorded { outcome, report, .. } = shop.record(&options, &program, &["10", "30"], 0);
        let numbers: Vec<u64> =
            outcome.stdout.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let [handled, worked, _] = numbers[..] else { panic!("{outcome:?}") };
        assert_eq!(report.calls["work"], worked, "only what handlers call is lost");
        // What interrupts a path's making, or a thread's beginning: calls and returns alike.
        let (seen, lost) = (report.calls["handler"] + report.calls["inner"], report.health("lost"));
        assert_eq!(2 * seen + lost, 4 * handled, "{report:?}");
        assert!(5 * lost <= 4 * handled, "{lost} of {handled} handlers' events");
        assert_eq!((report.health("open"), report.health("mended")), (0, 0), "{report:?}");
        let paths = report.paths();
        let is_known = |path: &String| match path.rsplit(';').collect::<Vec<_>>()[..] {
            ["inner", from, ..] => from == "handler",
            ["handler", from, ..] => ["work", "step"].contains(&from),
            _ => !path.contains("[unknown]"),
        };
        assert!(paths.keys().all(is_known), "{paths:?}");
    }
}

/// Guards: what folding takes and gives back it does in one instruction each, so that a handler that recurses takes no
/// way that the hook is about to take.
#[test]
fn handlers_that_recurse_while_calls_are_folded() {
    let shop = Workshop::new();
    let program = shop.build("folded_steps.c", Compiler::Gcc, &["-O2", "-pthread"]);
    let options = ["--fold-recursion", "--clock", "tick", "--period", "100ms"];
    for one_in in ["64", "200"] {
        let (_, report) = summed(&shop, &options, &program, &["8", one_in], 0);
        assert_eq!((report.health("mended"), report.health("open")), (0, 0), "{report:?}");
    }
}

/// Guards: a return that changes its path's shortest or longest call takes the long way.
#[test]
fn shortest_and_longest_calls() {
    let shop = Workshop::new();
    let program = shop.build("unlike_times.c", Compiler::Gcc, &["-O2"]);
    for clock in ["tick", "cycle"] {
        let (_, report) = summed(&shop, &["--clock", clock], &program, &[], 0);
        for name in ["long_first", "long_last"] {
            let (shortest, longest) = report.shortest_and_longest(name);
            assert!(shortest < 5e6 && longest > 25e6, "{clock} {name}: {shortest} {longest}");
        }
    }
}

/// Guards: a handler that comes where there is no room for a path leaves the tree where it was, so that what has
/// room stays on its path.
#[test]
fn handlers_where_there_is_no_room() {
    let shop = Workshop::new();
    let program = shop.build("crowded.c", Compiler::Gcc, &["-O2"]);
    for (options, arguments) in [
        (&["--clock", "tick"][..], ["10000", "8", "50"]),
        (&["--clock", "cycle"], ["3000", "8", "50"]),
        (&["--clock", "tick"], ["4", "6", "0"]),
        (&["--clock", "cycle"], ["2", "6", "0"]),
    ] {
        let options = [TREE, &["--tree-size", "16KiB"], options].concat();
        let Recorded { outcome, report, .. } = shop.record(&options, &program, &arguments, 0);
        let told = outcome.told();
        let paths = report.paths();
        assert_eq!(report.health("mended"), 0, "{options:?} {arguments:?}: {report:?}");
        let rounds = told.calls["goes_round"];
        assert_eq!(paths["main;goes_round;left"], rounds, "{options:?} {arguments:?}");
        // The first went no further.
        for (path, &calls) in &paths {
            if path.starts_with("main;goes_round;left;") && !path.contains("handler") {
                assert_eq!(calls, rounds - 1, "{options:?} {arguments:?}: {path}");
            }
        }
        assert!(paths.contains_key("[...];late_a"), "there was room");
        let seen = report.calls["handler"] + report.calls["inner"];
        assert_eq!(2 * seen + report.health("lost"), 4 * told.calls["handler"], "{report:?}");
    }
}

/// Guards: time that a handler has charged is not charged again by the hook that it interrupted.
#[test]
fn the_time_of_a_long_handler_is_counted_once() {
    let shop = Workshop::new();
    let program = shop.build("late.c", Compiler::Gcc, &["-O2"]);
    for (clock, rounds) in [("tick", "40000000"), ("cycle", "8000000")] {
        let recorded = shop.record(&[TREE, &["--clock", clock]].concat(), &program, &[rounds], 0);
        let (main, duration) = recorded.report.total_and_duration("main");
        assert!(main <= 1.01 * duration, "{clock}: {main} ns in main, {duration} ns in all");
        let (handlers, _) = recorded.report.total_and_duration("handler");
        let slept = 10e6 * recorded.report.calls["handler"] as f64;
        assert!(slept > 20e6, "{clock}: hardly any signal came");
        assert!(
            handlers > 0.95 * slept,
            "{clock}: {handlers} ns in handlers that slept {slept} ns"
        );
    }
}

/// Guards: memory of threads that have ended is read, and given to others.
#[test]
fn many_short_threads_and_many_that_wait() {
    let shop = Workshop::new();
    let program = shop.build("threads.c", Compiler::Gcc, &["-O2"]);
    for (how, number, threads) in [("short", "20000", 20_001), ("blocked", "300", 301)] {
        let (_, report) = summed(&shop, &["--tree-size", "16KiB"], &program, &[how, number], 0);
        report.expect_whole();
        assert_eq!(report.threads(), threads);
    }
    // What is not used of the largest trees takes no memory.
    let (_, report) = summed(&shop, &["--tree-size", "1GiB"], &program, &["blocked", "14"], 0);
    report.expect_whole();
    for arguments in [&["ways"][..], &["outlive", "30"]] {
        summed(&shop, &[], &program, arguments, 0);
    }
}

/// Guards: threads that begin faster than memory is made wait for it.
#[test]
fn a_thousand_threads_at_once() {
    let shop = Workshop::new();
    let program = shop.build("threads.c", Compiler::Gcc, &["-O2"]);
    let (_, report) = summed(&shop, &[], &program, &["blocked", "1000"], 0);
    report.expect_whole();
    assert_eq!(report.threads(), 1001);
}

/// Guards: who finds memory waiting only to be mapped does not wait for it.
#[test]
fn the_first_memory_is_not_waited_for() {
    let shop = Workshop::new();
    let program = shop.build("calls.c", Compiler::Gcc, &["-O2"]);
    let (_, report) = summed(&shop, &[], &program, &["3000"], 0);
    assert_eq!(report.gap("waited"), (0, 0), "{report:?}");
}

/// Guards: a child has trees of its own, whatever way it came about.
#[test]
fn processes_of_every_kind() {
    let shop = Workshop::new();
    // A child's first calls come before the tick has moved, too.
    let standing = ["--clock", "tick", "--period", "100ms"];
    for (flags, options) in
        [(&["-O2"][..], &[][..]), (&["-O2"], &standing), (&["-O0", "-static"], &[])]
    {
        let program = shop.build("processes.c", Compiler::Gcc, flags);
        for (how, processes) in [
            ("fork", Some(10)),
            ("threads", Some(31)),
            ("vfork-exec", None),
            ("vfork-exit", Some(1)),
            ("spawn", None),
            ("clone", Some(7)),
            ("exec", None),
            ("unhooked", None),
        ] {
            let (_, report) = summed(&shop, options, &program, &[how], 0);
            assert!(processes.is_none_or(|processes| report.processes() == processes), "{how}");
            // None of the twenty calls behind a vfork lies below the child's frames.
            if how.starts_with("vfork") {
                assert_eq!(report.calls_directly_below("vforks", "work"), 20, "{how}");
            }
        }
    }
}

/// Guards: hooks before main and after it, and in code that is loaded and unloaded.
#[test]
fn early_late_and_unloaded_code() {
    let shop = Workshop::new();
    for flags in [&["-O2"][..], &["-O2", "-static"]] {
        let program = shop.build("lifetimes.cc", Compiler::Gcc, flags);
        summed(&shop, &[], &program, &[], 6).1.expect_whole();
    }
    let shared = ["-O2", "-shared", "-fPIC", "-DNAME=red"];
    let plugin = shop.build("plugin.c", Compiler::Gcc, &shared);
    let host = shop.build("plugin_host.c", Compiler::Gcc, &["-O2"]);
    let recorded = shop.record(TREE, &host, &["2000", plugin.to_str().unwrap()], 0);
    let calls = |name: &str| recorded.report.calls.get(name).copied();
    assert_eq!((calls("plugin_run"), calls("red_inner")), (Some(2000), Some(8000)));
    assert_eq!(calls("one_round"), recorded.outcome.told().calls.get("one_round").copied());
    recorded.report.expect_whole();
}

/// Guards: what was summed is in memory that outlives the program.
#[test]
fn every_sudden_end_leaves_every_call() {
    let shop = Workshop::new();
    let program = shop.build("dies.c", Compiler::Gcc, &["-O1"]);
    for (how, signal) in [
        ("kill", Some(libc::SIGKILL)),
        ("segv", Some(libc::SIGSEGV)),
        ("exit", None),
        ("syscall", None),
    ] {
        let mut recording = shop.recording(TREE, &program, &[how, "200000"]);
        let outcome = run(&mut recording.command);
        assert_eq!(signal_of(outcome.status), signal, "{how}: {outcome:?}");
        let report = Report::of(&recording.file);
        assert_calls(&outcome.told(), &report);
        assert_eq!((report.health("lost"), report.health("mended")), (0, 0), "{how}");
    }
}

/// `steady.c`, summed, making calls without end; the shop that it came from goes last.
struct Steady {
    progress: Progress,
    running: Running,
    file: std::path::PathBuf,
    _shop: Workshop,
}

impl Steady {
    fn start(options: &[&str]) -> Self {
        let shop = Workshop::new();
        let program = shop.build("steady.c", Compiler::Gcc, &["-O1"]);
        let progress = Progress::new(&shop, "progress");
        let arguments = [progress.name(), "1000000000", "1000"];
        let mut recording = shop.recording(&[TREE, options].concat(), &program, &arguments);
        let running = Running::start(&mut recording.command);
        wait_until("calls", || progress.calls() > 100_000);
        Self { progress, running, file: recording.file, _shop: shop }
    }

    /// Ends the program, and reads the whole recording.
    fn end(self) -> (Told, Report) {
        let (told, report, _) = self.end_and_dump();
        (told, report)
    }

    /// As above, with what a dump has.
    fn end_and_dump(self) -> (Told, Report, String) {
        self.progress.stop();
        let outcome = self.running.wait();
        outcome.expect_code(5);
        let dump = run(teeperf().arg("dump").arg(&self.file)).stdout;
        (outcome.told(), Report::of(&self.file), dump)
    }

    fn ctl(&self, what: &str) {
        run(teeperf().args(["ctl", &self.running.pid().to_string(), what])).expect_code(0);
    }

    /// Calls of `leaf` in the recording as it is now.
    fn read(&self) -> u64 {
        let has_packets = std::fs::metadata(&self.file).is_ok_and(|file| file.len() > 0);
        if has_packets { Report::of(&self.file).calls.get("leaf").copied().unwrap_or(0) } else { 0 }
    }
}

/// Guards: a program that is killed in the midst of a hook leaves all but that one call.
#[test]
fn killed_from_outside() {
    let steady = Steady::start(&[]);
    let victim = child_of(steady.running.pid());
    // SAFETY: kill only takes numbers.
    assert_eq!(unsafe { libc::kill(victim, libc::SIGKILL) }, 0);
    let outcome = steady.running.wait();
    assert_eq!(signal_of(outcome.status), Some(libc::SIGKILL));
    let report = Report::of(&steady.file);
    assert!(report.calls["leaf"].abs_diff(steady.progress.calls()) <= 1, "{report:?}");
}

/// Guards: what a snapshot wrote can be read, with names, as soon as `ctl` ends, and what comes later is added to it.
#[test]
fn snapshots() {
    let steady = Steady::start(&[]);
    assert_eq!(steady.read(), 0, "nothing is written before it is asked for");
    for _ in 0..3 {
        let before = steady.progress.calls();
        steady.ctl("snapshot");
        let read = steady.read();
        assert!(read >= before, "{read} of {before}");
        assert!(read <= steady.progress.calls());
    }
    // By signal, nobody says when it is there.
    let before = steady.progress.calls();
    steady.running.signal(libc::SIGUSR2);
    wait_until("a snapshot by signal", || steady.read() >= before);
    let (told, report) = steady.end();
    assert_calls(&told, &report);
    report.expect_whole();
}

/// Guards: who asks at once is answered by the recording, and not by what is measured before it.
#[test]
fn a_snapshot_that_is_asked_for_at_once() {
    let shop = Workshop::new();
    let program = shop.build("steady.c", Compiler::Gcc, &["-O1"]);
    let progress = Progress::new(&shop, "progress");
    let mut recording = shop.recording(TREE, &program, &[progress.name(), "1000000000", "1000"]);
    let running = Running::start(&mut recording.command);
    let pid = running.pid().to_string();
    wait_until("an answer", || run(teeperf().args(["ctl", &pid, "snapshot"])).status.success());
    assert!(std::fs::metadata(&recording.file).is_ok_and(|file| file.len() > 0));
    progress.stop();
    running.wait().expect_code(5);
}

/// Guards: pausing from outside takes the calls out, and resuming goes on where the thread is.
#[test]
fn paused_and_resumed_by_ctl() {
    let steady = Steady::start(&[]);
    steady.ctl("pause");
    let paused_at = steady.progress.calls();
    wait_until("calls while it is paused", || steady.progress.calls() > paused_at + 200_000);
    steady.ctl("resume");
    let resumed_at = steady.progress.calls();
    wait_until("calls behind it", || steady.progress.calls() > resumed_at + 100_000);
    let (told, report) = steady.end();
    let left_out = told.calls["leaf"] - report.calls["leaf"];
    assert!((200_000..=resumed_at).contains(&left_out), "{left_out} of {told:?}");
    for figure in ["lost", "mended"] {
        assert_eq!(report.health(figure), 0, "{figure}");
    }
    assert_eq!(report.gap("paused").0, 1, "{report:?}");
}

/// Guards: each packet has what the tree grew by since the one before it, and together they are the whole.
#[test]
fn written_at_intervals() {
    let steady = Steady::start(&["--interval", "30ms"]);
    wait_until("several intervals", || steady.progress.calls() > 1_000_000);
    let read = steady.read();
    assert!(read > 0 && read <= steady.progress.calls());
    let (told, report, dump) = steady.end_and_dump();
    assert_calls(&told, &report);
    report.expect_whole();
    let number = |line: &str, name: &str| -> u64 {
        let text = line.split(' ').find_map(|word| word.strip_prefix(name)).expect(name);
        text.parse().expect("a number")
    };
    let trees: Vec<&str> = dump.lines().filter(|line| line.contains(" tree ")).collect();
    assert!(trees.len() > 5, "{dump}");
    for pair in trees.windows(2) {
        assert_eq!(number(pair[0], "end="), number(pair[1], "begin="));
    }
    let calls: u64 = trees.iter().map(|line| number(line, "calls=")).sum();
    assert_eq!(calls, told.total());
}

/// Guards: what was summed so far is in a recording whose recorder was killed, or ends before the program.
#[test]
fn a_recorder_that_ends_first() {
    let steady = Steady::start(&["--interval", "30ms"]);
    wait_until("something written", || steady.read() > 0);
    steady.running.signal(libc::SIGKILL);
    let now = steady.progress.calls();
    wait_until("the program goes on", || steady.progress.calls() > now + 200_000);
    let read = steady.read();
    assert!(read > 0 && read < steady.progress.calls());
    steady.progress.stop();
    wait_until("the program's end", || steady.progress.done());

    let steady = Steady::start(&["--limit-time", "1s"]);
    wait_until("the end of the recording", || steady.read() > 100_000);
    let (told, report) = steady.end();
    assert!(report.calls["leaf"] < told.calls["leaf"]);
    assert_eq!(report.health("mended"), 0);
}

/// Guards: where there is no room for a path, its calls are counted by function; and it is said.
#[test]
fn a_tree_that_is_too_small() {
    let shop = Workshop::new();
    let program = shop.build("pauses.c", Compiler::Gcc, &["-O2"]);
    for options in [&["--tree-size", "16KiB"][..], &["--tree-size", "16KiB", "--clock", "cycle"]] {
        let (_, report) = summed(&shop, options, &program, &["5", "0", "20000"], 0);
        assert_eq!(report.health("mended"), 0);
        let says_so =
            |warning: &String| warning.contains("[no room]") && warning.contains("--tree-size");
        assert!(report.warnings.iter().any(says_so), "{report:?}");
    }
    // Not even for all functions.
    let program = shop.build("crowded.c", Compiler::Gcc, &["-O2"]);
    let Recorded { outcome, report, .. } =
        shop.record(&[TREE, &["--tree-size", "4KiB"]].concat(), &program, &["5", "8", "1000"], 0);
    let calls = |calls: &BTreeMap<String, u64>| calls.values().sum::<u64>();
    let nameless = calls(&outcome.told().calls) - calls(&report.calls);
    assert!(nameless > 0, "{report:?}");
    let says_so = |warning: &String| warning.contains(&format!("but for {nameless} calls"));
    assert!(report.warnings.iter().any(says_so), "{nameless}: {report:?}");
    // And with jumps, catches and stacks, which leave such frames too.
    for (source, arguments) in [
        ("longjmps.c", &[][..]),
        ("exceptions.cc", &[]),
        ("coroutines.c", &[]),
        ("wanders.cc", &["6", "20000", "jxsc"]),
    ] {
        let program = shop.build(source, Compiler::Gcc, &["-O2"]);
        summed(&shop, &["--tree-size", "16KiB"], &program, arguments, 0);
    }
}

/// Guards: functions without room go on after what they called; what is missing of times is in their bounds.
#[test]
fn times_where_there_is_no_room() {
    let shop = Workshop::new();
    let program = shop.build("sleeps_late.c", Compiler::Gcc, &["-O1"]);
    let (_, report) = summed(&shop, &["--tree-size", "16KiB"], &program, &[], 0);
    let ms = |name: &str, figure: &str| report.time(name, figure) / 1e6;
    assert!(ms("serve", "self") > 40.0 && ms("inner", "self") > 90.0, "{report:?}");
    assert!(ms("[no room]", "self") < 100.0, "{report:?}");
    for name in ["main", "serve", "inner"] {
        assert!(ms(name, "total_high") > 250.0, "{name}: {report:?}");
    }
}

/// Guards: of a recursion, through however many functions, each function has a node and a way back.
#[test]
fn recursion_is_folded_however_deep() {
    let shop = Workshop::new();
    let program = shop.build("rounds.c", Compiler::Gcc, &["-O1"]);
    let (_, report) = summed(&shop, &["--fold-recursion"], &program, &["100000"], 0);
    report.expect_whole();
    let paths = report.paths();
    assert!(paths.len() < 20, "{paths:?}");
    assert_eq!(paths["main;deals;clubs;spades;hearts"], 5 * 33_333);
    let program = shop.build("deep.c", Compiler::Gcc, &["-O1"]);
    let (told, report) = summed(&shop, &["--fold-recursion"], &program, &["100000"], 0);
    report.expect_whole();
    assert_eq!(report.paths()["runs;descends"], told.calls["descends"]);
}
