//! Signal handlers that interrupt hooks, and ends by force.

use crate::support::*;

/// Guards: reserve, then write; signals wait for a change of chunks. Two timers of 50 microseconds run hooked
/// handlers between any two instructions of a hook, handlers inside handlers too: each call is seen.
#[test]
fn handlers_during_hooks_lose_nothing() {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        for (clock, stack) in [("tick", None), ("cycle", None), ("tick", Some("own stack"))] {
            let program = shop.build("signals.c", compiler, &["-O2"]);
            let arguments: Vec<&str> = ["1500"].into_iter().chain(stack).collect();
            let recorded = shop.record(&["--clock", clock], &program, &arguments, 0);
            let (told, report) = (recorded.outcome.told(), &recorded.report);
            assert!(told.calls["handler"] > 1000, "hardly any signal came: {told:?}");
            assert_calls(&told, report);
            assert_eq!(report.health("lost"), 0, "{compiler:?} {clock}");
        }
    }
}

/// Guards: time does not go back. A hook that a handler interrupted, between its look at the counter and
/// the reserving of its place, stands behind the handler's events with an earlier time.
#[test]
fn the_time_of_a_long_handler_is_counted_once() {
    let shop = Workshop::new();
    let program = shop.build("late.c", Compiler::Gcc, &["-O2"]);
    for (clock, rounds) in [("tick", "40000000"), ("cycle", "8000000"), ("ordered", "8000000")] {
        let recorded = shop.record(&["--clock", clock], &program, &[rounds], 0);
        let report = &recorded.report;
        let (main, duration) = report.total_and_duration("main");
        assert!(main <= 1.01 * duration, "{clock}: {main} ns in main, {duration} ns in all");
        let (handlers, _) = report.total_and_duration("handler");
        let slept = 10e6 * report.calls["handler"] as f64;
        assert!(slept > 20e6, "{clock}: hardly any signal came");
        assert!(
            handlers > 0.95 * slept,
            "{clock}: {handlers} ns in handlers that slept {slept} ns"
        );
    }
}

/// Guards: chunks are read up to the first zero, whoever wrote them is gone. Every end leaves
/// all calls, and ten open frames of `ends` and main.
#[test]
fn every_sudden_end_leaves_every_call() {
    let shop = Workshop::new();
    let program = shop.build("dies.c", Compiler::Gcc, &["-O1"]);
    for (how, code, signal) in [
        ("kill", None, Some(libc::SIGKILL)),
        ("segv", None, Some(libc::SIGSEGV)),
        ("abort", None, Some(libc::SIGABRT)),
        ("trap", None, Some(libc::SIGILL)),
        ("exit", Some(7), None),
        ("quick", Some(7), None),
        ("syscall", Some(7), None),
    ] {
        // A few words in a chunk, and many chunks with the last one begun.
        for rounds in ["3", "200000"] {
            let mut recording = shop.recording(&[], &program, &[how, rounds]);
            let outcome = run(&mut recording.command);
            match signal {
                Some(number) => assert_eq!(signal_of(outcome.status), Some(number), "{how}"),
                None => assert_eq!(outcome.status.code(), code, "{how}"),
            }
            let report = Report::of(&recording.file);
            assert_calls(&outcome.told(), &report);
            assert_eq!(report.health("lost"), 0, "{how}");
            assert_eq!(report.health("open"), 11, "{how}");
        }
    }
}

/// Guards: as above, with SIGKILL from outside at any moment, also between two instructions
/// of a hook: one event of each thread may be missing.
#[test]
fn killed_from_outside_in_the_middle_of_a_chunk() {
    let shop = Workshop::new();
    let program = shop.build("steady.c", Compiler::Gcc, &["-O1"]);
    for (round, threads) in [0, 0, 0, 0, 3, 3, 3, 3].into_iter().enumerate() {
        let progress = Progress::new(&shop, &format!("progress-{round}"));
        let more = threads.to_string();
        let mut recording =
            shop.recording(&[], &program, &[progress.name(), "1000000000", "1000", &more]);
        let running = Running::start(&mut recording.command);
        wait_until("calls", || progress.calls() > 1000 * (1 + round as u64));
        let victim = child_of(running.pid());
        // SAFETY: kill only takes numbers.
        assert_eq!(unsafe { libc::kill(victim, libc::SIGKILL) }, 0);
        let outcome = running.wait();
        assert_eq!(signal_of(outcome.status), Some(libc::SIGKILL), "{outcome:?}");
        let report = Report::of(&recording.file);
        about_as_many(&report, &progress, threads + 1);
        assert_eq!(report.signal, Some(libc::SIGKILL.into()));
    }
}

/// Guards: main returns while other threads are in the middle of their hooks.
#[test]
fn the_program_ends_while_threads_call() {
    let shop = Workshop::new();
    let program = shop.build("steady.c", Compiler::Gcc, &["-O1"]);
    for round in 0..5 {
        let progress = Progress::new(&shop, &format!("progress-{round}"));
        let recorded = shop.record(&[], &program, &[progress.name(), "5000", "100", "6"], 5);
        about_as_many(&recorded.report, &progress, 7);
        assert_eq!(recorded.report.calls["endless"], 6);
    }
}

/// Guards: chunks with words that nobody will write are given up before those behind them are out of order,
/// and made up for.
#[test]
fn handlers_that_jump_out_of_hooks_again_and_again() {
    let shop = Workshop::new();
    let program = shop.build("jumps_out.c", Compiler::Gcc, &["-O2"]);
    let recorded = shop.record(&[], &program, &[], 0);
    let numbers = recorded.outcome.stdout.split_whitespace().map(|n| n.parse::<u64>().unwrap());
    let [jumps, worked] = numbers.collect::<Vec<_>>()[..] else { panic!() };
    let report = &recorded.report;
    let (seen, lost) = (report.calls["work"], report.health("lost"));
    assert!(jumps > 500, "{jumps} jumps");
    // Each cuts short one event at the most, or one call.
    assert!(lost <= 2 * jumps && worked.abs_diff(seen) <= 2 * jumps, "{lost}, {seen} of {worked}");
    // On a busy machine the kernel takes its time for thousands of signals, of no function's calls.
    // A jump may cut short what the thread tells of time off its processor.
    let meant = ["no sample tells", "an escape of code 30 was skipped"];
    let is_meant = |text: &&String| meant.iter().any(|meant| text.starts_with(meant));
    assert_eq!(report.warnings.iter().find(|text| !is_meant(text)), None);
    let at_its_place = report.calls_directly_below("main", "work");
    assert!(1000 * (seen - at_its_place) <= seen, "{at_its_place} of {seen} are where they belong");
}

/// Guards: a child that a handler forks begins anew, also where the handler interrupts a wait for room.
#[test]
fn forks_in_handlers_that_interrupt_a_wait() {
    let shop = Workshop::new();
    let program = shop.build("forks_in_handlers.c", Compiler::Gcc, &["-O1"]);
    let recorded = shop.record(&[], &program, &[], 0);
    let children: u64 = recorded.outcome.stdout.trim().parse().unwrap();
    let report = &recorded.report;
    assert!(children > 5, "{children} children");
    assert_eq!(report.calls["in_handler"], children);
    // One thread each: nobody goes on where the parent was.
    assert_eq!((report.processes() as u64, report.threads()), (1 + children, 1 + children));
    assert!(report.calls["work"] > 1000 * children);
}

/// Guards: a process that waits for the recorder can be ended.
#[test]
fn told_to_end_in_the_first_hook() {
    let shop = Workshop::new();
    let program = shop.build("first_hook.c", Compiler::Gcc, &["-O1"]);
    let recorded = shop.record(&[], &program, &[], 0);
    let took = recorded.outcome.stdout.lines().map(|line| line.parse::<u64>().unwrap());
    let took: Vec<_> = took.collect();
    // The recorder is waited for for two seconds.
    assert!(took.len() == 2 && took.iter().all(|&ms| ms < 1000), "{took:?}");
}

/// A thread may have been stopped between the hook and the counter, or while it wrote a word.
fn about_as_many(report: &Report, progress: &Progress, threads: u64) {
    let (seen, calls) = (report.calls["leaf"], progress.calls());
    assert!(seen.abs_diff(calls) <= threads, "{seen} of {calls}");
    assert!(report.health("lost") <= threads);
}
