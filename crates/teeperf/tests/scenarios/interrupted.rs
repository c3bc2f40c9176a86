//! Threads that timers of their CPU time interrupt, which write where they are among their calls.

use crate::support::*;
use std::path::Path;

/// What a report says of functions, by name.
fn figure(report: &Report, name: &str, figure: &str) -> f64 {
    report.time(name, figure)
}

/// All events of a recording, as text.
fn dumped(file: &Path) -> String {
    String::from_utf8(teeperf().arg("dump").arg(file).output().unwrap().stdout).unwrap()
}

/// Nanoseconds that a program printed.
fn numbers(outcome: &Outcome) -> Vec<f64> {
    let words = outcome.stdout.split_whitespace();
    words.map(|ns| ns.parse().expect("nanoseconds")).collect()
}

/// The program printed how long other programs kept its thread from a processor.
fn assert_spent(report: &Report, outcome: &Outcome) {
    let whole = figure(report, "main", "total");
    let share = |name, what| 100.0 * figure(report, name, what) / whole;
    // Code without hooks stands below the function that called it, and the kernel below that.
    assert!(report.calls_directly_below("copies", "main") == 0);
    for (name, least) in [("loops", 2.0), ("copies", 2.0), ("writes", 10.0)] {
        assert!(share(name, "total") > least, "{name}: {:.1} %", share(name, "total"));
    }
    // All of it but the loop's own is the C library's.
    assert!(share("copies", "self") < 0.4 * share("copies", "total"));
    assert!(share("[kernel]", "self") > 5.0);
    // Sleep is no CPU time.
    assert!(share("sleeps", "total") < 5.0, "{:.1} %", share("sleeps", "total"));
    let waiting = figure(report, "sleeps", "total_waiting");
    assert!(waiting > 300.0 * 2e6 * 0.8, "{waiting}");
    let [delayed] = numbers(outcome)[..] else { panic!("{outcome:#?}") };
    let elsewhere = figure(report, "main", "total_waiting") - waiting;
    assert!(elsewhere < 0.3 * waiting + delayed, "{elsewhere} beside {waiting}, {delayed}");
    // Calls of next to nothing are hooks for the most part.
    let hooks = figure(report, "tiny", "hooks") + figure(report, "calls", "hooks");
    assert!(hooks > figure(report, "tiny", "self"), "{hooks}");
    assert!(figure(report, "loops", "hooks") < 0.1 * figure(report, "loops", "self"));
}

#[test]
fn cpu_time_waiting_and_hooks_are_told_apart() {
    let shop = Workshop::new();
    let program = shop.build("spent.c", Compiler::Gcc, &["-O1", "-g"]);
    let recorded = shop.record(&[], &program, &[], 0);
    recorded.report.expect_whole();
    assert_spent(&recorded.report, &recorded.outcome);
    let suggestion = teeperf().arg("suggest").arg(recorded.file).output();
    let text = String::from_utf8(suggestion.unwrap().stdout).unwrap();
    assert!(text.contains("hooks took "), "{text}");
}

/// Guards: the signal that samples interrupts a handler before its first instruction, where both
/// signals come at once.
#[test]
fn a_handler_is_not_what_it_interrupts() {
    let shop = Workshop::new();
    let program = shop.build("alarmed.c", Compiler::Gcc, &["-O1"]);
    let report = shop.record(&[], &program, &[], 0).report;
    let [work, handler] = ["work", "alarmed"].map(|name| figure(&report, name, "self"));
    assert!(work > 0.1e9, "{work}");
    assert!(handler < 0.1 * work, "{handler} of {work}");
}

/// Guards: time of threads that park taken for CPU time, because they have no sample.
#[test]
fn threads_that_park_wait() {
    let shop = Workshop::new();
    let program = shop.build("parked.c", Compiler::Gcc, &["-O1", "-pthread"]);
    let report = shop.record(&[], &program, &[], 0).report;
    let work = figure(&report, "work", "self");
    assert!(work > 10e6, "{work}");
    assert!(figure(&report, "park", "total") < 0.1 * work);
    assert!(figure(&report, "park", "total_waiting") > 3.0 * work);
}

/// Guards: a thread's CPU time, told by chunks alone, which no chunk tells at the thread's end.
#[test]
fn a_thread_that_waits_at_its_end() {
    let shop = Workshop::new();
    let program = shop.build("idle_tail.c", Compiler::Gcc, &["-O1"]);
    let file = shop.record(&[], &program, &[], 0).file;
    let text = teeperf().args(["report", "--threads"]).arg(file).output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap();
    // RECORDED, WALL and CPU, each with its unit.
    let row = text.lines().last().unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    let cpu: f64 = words[4].parse().unwrap_or_else(|_| panic!("{text}"));
    assert!(words[5] == "ms" && cpu > 5.0 && cpu < 450.0, "{text}");
}

/// Guards: the first milliseconds of a thread, of which some are told and others not.
#[test]
fn threads_that_live_less_than_a_period() {
    let shop = Workshop::new();
    let program = shop.build("brief.c", Compiler::Gcc, &["-O1", "-pthread"]);
    let recorded = shop.record(&[], &program, &[], 0);
    let told = numbers(&recorded.outcome);
    let share = |of: f64, other: f64| 100.0 * of / (of + other);
    let shown = ["first", "second", "reads"].map(|name| figure(&recorded.report, name, "total"));
    // Some 500 samples in user mode, and 60 in the kernel.
    for (of, other, most) in [(0, 1, 12.0), (2, 0, 16.0)] {
        let (truth, shown) = (share(told[of], told[other]), share(shown[of], shown[other]));
        assert!((truth - shown).abs() < most, "{truth:.1} % is {shown:.1} %");
    }
}

/// Guards: time of the kernel that is told as the program's own, where each process has a sample or
/// two.
#[test]
fn processes_that_live_for_little_more_than_a_period() {
    let shop = Workshop::new();
    let program = shop.build("children.c", Compiler::Gcc, &["-O1"]);
    let recorded = shop.record(&[], &program, &[], 0);
    let told = numbers(&recorded.outcome);
    let all = |of: &[f64]| of.iter().sum::<f64>();
    let shown = ["works", "touches", "reads"].map(|name| figure(&recorded.report, name, "total"));
    // Some 500 samples, a third of them in the kernel.
    for (truth, of) in told.iter().zip(shown) {
        let (truth, of) = (100.0 * truth / all(&told), 100.0 * of / all(&shown));
        assert!((truth - of).abs() < 12.0, "{truth:.1} % is {of:.1} %");
    }
    // Each process tells its CPU time, whatever the clock has seen of it.
    let json = json(&recorded.file, &[]);
    let cpu_ns = |thread: &serde_json::Value| thread["cpu"].as_f64().unwrap_or(0.0);
    let threads = json["threads"].as_array().unwrap();
    assert!(threads.iter().all(|thread| cpu_ns(thread) > 0.0), "{threads:?}");
    let sum: f64 = threads.iter().map(cpu_ns).sum();
    assert!(sum > 0.9 * all(&told), "{told:?} ns are {sum}");
}

/// Guards: samples that fall at the same ages of threads, which all do the same at one age.
#[test]
fn threads_that_live_for_little_more_than_a_period() {
    let shop = Workshop::new();
    let program = shop.build("ages.c", Compiler::Gcc, &["-O1", "-pthread"]);
    let recorded = shop.record(&[], &program, &[], 0);
    let told = numbers(&recorded.outcome);
    let share = |[of, other]: [f64; 2]| 100.0 * of / (of + other);
    let shown = ["first", "second"].map(|name| figure(&recorded.report, name, "total"));
    let (truth, shown) = (share([told[0], told[1]]), share(shown));
    // Some 1,100 samples.
    assert!((truth - shown).abs() < 7.0, "{truth:.1} % is {shown:.1} %");
}

/// Guards: a wait that is shared out among the functions around it; and CPU time in no column.
#[test]
fn a_short_wait_is_of_the_function_that_waits() {
    let shop = Workshop::new();
    let program = shop.build("naps.c", Compiler::Gcc, &["-O1"]);
    let Recorded { report, outcome, file } = shop.record(&[], &program, &[], 0);
    let told = numbers(&outcome);
    let all: f64 = told.iter().sum();
    for (name, told_ns) in ["before", "naps", "after"].into_iter().zip(told) {
        let shown = figure(&report, name, "total_waiting");
        assert!((shown - told_ns).abs() < 0.05 * all, "{name}: {told_ns} is {shown}");
    }
    let json = json(&file, &[]);
    let thread = &json["threads"][0];
    let ns = |name: &str| thread[name].as_f64().unwrap();
    assert!(ns("waiting") > 0.95 * all && ns("waiting") < 1.05 * all, "{thread}");
    let apart = ns("wall") - ns("cpu") - ns("waiting");
    assert!(apart.abs() < 0.03 * ns("wall"), "{thread}");
    let functions = json["functions"].as_array().unwrap();
    let hooks: f64 = functions.iter().filter_map(|function| function["hooks"].as_f64()).sum();
    let in_columns = ns("recorded") + hooks;
    assert!(in_columns > 0.9 * ns("cpu") && in_columns < 1.15 * ns("cpu"), "{thread}");
}

/// Guards: a call with many waits that counts as one, whose kernel time is in no function then.
#[test]
fn a_call_that_waits_often_has_the_time_around_its_waits() {
    let shop = Workshop::new();
    let program = shop.build("waits.c", Compiler::Gcc, &["-O1"]);
    let recorded = shop.record(&[], &program, &[], 0);
    let told = numbers(&recorded.outcome);
    for (name, truth) in ["naps", "works"].into_iter().zip(&told) {
        let shown = figure(&recorded.report, name, "total");
        let all = told[0] + told[1];
        assert!((shown - truth).abs() < 0.2 * all, "{name}: {truth} is {shown}");
    }
}

/// Guards: threads that wait all the time, whose events would cost more than their work. Their
/// timers tell of them alone.
#[test]
fn threads_that_wait_all_the_time() {
    let shop = Workshop::new();
    let program = shop.build("pingpong.c", Compiler::Gcc, &["-O1", "-pthread"]);
    let loses_events = |_| {
        let recorded = shop.record(&[], &program, &[], 0);
        let told = numbers(&recorded.outcome);
        let shown = ["works", "main"].map(|name| figure(&recorded.report, name, "total"));
        let (truth, shown) = (100.0 * told[0] / (told[0] + told[1]), 100.0 * shown[0] / shown[1]);
        assert!((truth - shown).abs() < 30.0, "{truth:.1} % is {shown:.1} %");
        let dump = dumped(&recorded.file);
        let samples = |kind: &str| dump.lines().filter(|line| line.contains(kind)).count();
        samples(" alone ") > samples(" user ")
    };
    // The runtime looks at the kernel's ticks, which seldom meet its threads beside other programs.
    assert!((0..15).any(loses_events));
}

/// CPU times of the samples of events in a dump, nanoseconds.
fn events_at(dump: &str) -> Vec<f64> {
    let of_events = dump.lines().filter(|line| line.contains(" user ") && !line.contains(" end"));
    let cpu_ns = |line: &str| line.split("cpu_ns=").nth(1)?.split(' ').next()?.parse().ok();
    of_events.map(|line| cpu_ns(line).expect("a sample's CPU time")).collect()
}

/// Guards: a thread that is sampled at the kernel's tick for good, since it waited all the time
/// once.
#[test]
fn threads_that_wait_no_more() {
    let shop = Workshop::new();
    let program = shop.build("changes.c", Compiler::Gcc, &["-O1"]);
    let recorded = shop.record(&[], &program, &["0", "60"], 0);
    let dump = dumped(&recorded.file);
    assert!(dump.contains(" alone "), "the thread kept its events");
    // At the end of its 400 ms of work.
    let at = events_at(&dump);
    let last = at.last().copied().unwrap_or(0.0);
    let late = at.iter().filter(|&&ns| ns > last - 200e6).count();
    assert!(late > 100, "{late} samples in 200 ms");
}

/// Guards: a thread with one period of samples for good, which a loop may be in step with.
#[test]
fn periods_of_samples_change() {
    let shop = Workshop::new();
    let program = shop.build("changes.c", Compiler::Gcc, &["-O1"]);
    // One of each 128 ms.
    let recorded = shop.record(&[], &program, &["0", "0", "500"], 0);
    let at = events_at(&dumped(&recorded.file));
    let mut apart: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    apart.sort_unstable_by(f64::total_cmp);
    let quarter = |of: usize| apart[apart.len() * of / 4];
    assert!(quarter(3) > 1.02 * quarter(1), "{} to {} ns apart", quarter(1), quarter(3));
}

/// Guards: CPU time of pauses, which is told as that of the functions around them otherwise.
#[test]
fn cpu_time_of_pauses_is_left_out() {
    let shop = Workshop::new();
    let program = shop.build("changes.c", Compiler::Gcc, &["-O1"]);
    let recorded = shop.record(&[], &program, &["600", "0"], 0);
    let told = numbers(&recorded.outcome);
    let (truth, told_ns) = (told[0] + told[2], figure(&recorded.report, "work", "total"));
    assert!(told[1] > 0.9 * truth, "{told:?}");
    assert!((told_ns - truth).abs() < 0.1 * truth, "{truth} is {told_ns}");
    let thread = &json(&recorded.file, &[])["threads"][0];
    let cpu_ns = thread["cpu"].as_f64().unwrap();
    assert!((cpu_ns - truth).abs() < 0.1 * truth, "{truth} is {cpu_ns} of CPU time");
}

/// Guards: CPU time of pauses in which a thread calls nothing, which the clock tells of otherwise.
#[test]
fn a_thread_knows_its_own_pauses() {
    let shop = Workshop::new();
    let program = shop.build("paused_itself.c", Compiler::Gcc, &["-O1"]);
    let recorded = shop.record(&[], &program, &[], 0);
    let truth = numbers(&recorded.outcome)[0];
    let cpu_ns = json(&recorded.file, &[])["threads"][0]["cpu"].as_f64().unwrap();
    assert!((cpu_ns - truth).abs() < 0.1 * truth, "{truth} is {cpu_ns}");
}

/// Guards: a thread that meets a pause where its timer interrupts it, and is not sampled until its
/// next call.
#[test]
fn a_thread_without_calls_is_sampled_behind_pauses() {
    let shop = Workshop::new();
    let program = shop.build("paused_often.c", Compiler::Gcc, &["-O1", "-pthread"]);
    let recorded = shop.record(&[], &program, &[], 0);
    let truth = numbers(&recorded.outcome)[0];
    let told = figure(&recorded.report, "work", "total");
    // The program's figure begins some milliseconds behind the thread's work.
    assert!((told - truth).abs() < 0.15 * truth, "{truth} is {told}");
}

/// Guards: hooks that look for waits again and again where a tracer stops the thread in each look.
#[test]
fn a_tracer_of_system_calls_makes_no_more_of_them() {
    let shop = Workshop::new();
    let program = shop.build("steps.c", Compiler::Gcc, &["-O1"]);
    let recorded = shop.record(&[], &program, &[], 0);
    let told = numbers(&recorded.outcome);
    assert_eq!(recorded.report.calls["called"] as f64, told[1]);
    assert!(told[0] < told[1] / 4.0, "{} stops for {} calls", told[0], told[1]);
}

/// Guards: time of inlined code told as that of the function around it, where debug information has
/// its name.
#[test]
fn inlined_code_has_its_own_time() {
    let shop = Workshop::new();
    let program = shop.build("inlined.c", Compiler::Gcc, &["-O2", "-g"]);
    let recorded = shop.record(&[], &program, &[], 0);
    let share = |report: &serde_json::Value, name: &str| {
        let functions = report["functions"].as_array().unwrap();
        let own = |function: &serde_json::Value| function["self"].as_f64().unwrap();
        let named = functions.iter().filter(|function| function["name"] == name);
        named.map(own).sum::<f64>() / functions.iter().map(own).sum::<f64>()
    };
    let report = json(recorded.report.recording(), &[]);
    assert!(share(&report, "step") > 0.8, "{report}");
    if are_late() {
        let report = json(recorded.report.recording(), &["--no-inline"]);
        assert!(share(&report, "step") == 0.0 && share(&report, "outer") > 0.8, "{report}");
    }
}

/// The timer alone tells it, at the kernel's tick.
#[test]
fn where_events_are_not_allowed() {
    let shop = Workshop::new();
    let program = shop.build("spent.c", Compiler::Gcc, &["-O1", "-g"]);
    let recording = shop.path("recording.teeperf");
    let mut command = teeperf();
    command.args(["record", "-o"]).arg(&recording).arg(&program);
    let outcome = run(without_perf_event_open(&mut command));
    assert!(outcome.success(), "{outcome:#?}");
    assert_spent(&Report::of(&recording), &outcome);
}

/// Guards: processes that take SIGURG for themselves, as PostgreSQL's do. They are sampled by
/// SIGWINCH, and only if they take that too by nothing.
#[test]
fn programs_that_take_the_signal() {
    let shop = Workshop::new();
    let program = shop.build("latches.c", Compiler::Gcc, &["-O1"]);
    for way in ["blocks SIGURG", "handles SIGURG", "blocks SIGWINCH", "handles SIGWINCH"] {
        let recorded = shop.record(&[], &program, &[way], 0);
        let wakes = if way == "blocks SIGURG" { 100 } else { 0 };
        assert_eq!(recorded.outcome.stdout, format!("{way}: {wakes}\n"));
        let report = &recorded.report;
        assert_eq!(report.warnings, [""; 0], "{way}");
        let (works, waits) = (figure(report, "works", "total"), figure(report, "waits", "total"));
        assert!((0.8e9..1.3e9).contains(&works), "{way}: {works}");
        assert!(waits < 0.1 * works, "{way}: {waits}");
    }
    let both = "blocks SIGURG SIGWINCH";
    let recorded = shop.record(&[], &program, &[both], 0);
    assert_eq!(recorded.outcome.stdout, format!("{both}: 100\n"));
    let [.., warning] = &recorded.report.warnings[..] else { panic!("no warning") };
    assert!(warning.contains("the program blocks SIGURG and SIGWINCH itself"), "{warning}");
    // The process tells its CPU time at its end. The clock cannot tell work from waiting that
    // takes as long.
    let all = figure(&recorded.report, "child", "total");
    assert!((0.8e9..1.3e9).contains(&all), "{all}");
}

/// Guards: a call of the kernel that ends with EINTR, also where a signal for the process goes to
/// another thread; a handler of SIGURG that is lost, and threads that block all signals and are not
/// sampled; a handler of the signal that debuggers take.
#[test]
fn the_program_does_not_notice() {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        let program = shop.build("interrupted.c", compiler, &["-O1", "-g", "-pthread"]);
        let expected = "urgent 64, traps 128, alarms some, sleeps that ended next to none\n";
        assert_eq!(run(&mut std::process::Command::new(&program)).stdout, expected);
        let recorded = shop.record(&[], &program, &[], 0);
        assert_eq!(recorded.outcome.stdout, expected);
        assert!(figure(&recorded.report, "blocks_all", "total") > 0.0);
    }
}

/// Guards: a call of the kernel that another signal is to end, and that goes on since a sample's
/// signal came at the same time; one that ends and should go on, or that never waits.
#[test]
fn other_signals_end_calls_as_ever() {
    let shop = Workshop::new();
    let program = shop.build("cut_short.c", Compiler::Gcc, &["-O1", "-pthread"]);
    for (handler, ended) in [
        ("alarm", 1000),
        ("end", 1000),
        ("once", 1000),
        ("info", 1000),
        ("realtime", 1000),
        ("restart", 0),
        ("none", 0),
    ] {
        let recorded = shop.record(&[], &program, &[handler, "1000"], 0);
        assert_eq!(recorded.outcome.stdout, format!("{ended}\n"), "{handler}");
        let worked = figure(&recorded.report, "main", "total");
        assert!(worked > 0.2e9, "{handler}: {worked}");
    }
}

/// Guards: what interrupts a thread stays when that is gone.
#[test]
fn thousands_of_short_threads() {
    let shop = Workshop::new();
    let program = shop.build("short_threads.c", Compiler::Gcc, &["-O1", "-g", "-pthread"]);
    let recorded = shop.record(&[], &program, &[], 0);
    assert_eq!(recorded.outcome.stdout, "1 0\n");
    assert!(figure(&recorded.report, "work", "self") > 0.0);
}
