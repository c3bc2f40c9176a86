//! Plain programs: the same counts from every compiler, level and way of linking; the same
//! behaviour with hooks as without; terminal, input, output and exit status as if nobody
//! watched.

use crate::support::*;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Guards: hooks named by function and not by place, whatever the optimiser inlines, clones
/// or calls in tail position.
#[test]
fn every_level_of_every_compiler_gives_the_same_counts() {
    let shop = Workshop::new();
    let mut first = None;
    for compiler in Compiler::tried() {
        for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            let program = shop.build("calls.c", compiler, &[level]);
            let recorded = shop.record(&[], &program, &[], 0);
            let told = recorded.outcome.told();
            assert_calls(&told, &recorded.report);
            recorded.report.expect_whole();
            assert_eq!(*first.get_or_insert(told.clone()), told, "{compiler:?} {level}");
        }
    }
}

/// Guards: all clocks count alike.
#[test]
fn every_clock_gives_the_same_counts() {
    let shop = Workshop::new();
    let program = shop.build("calls.c", Compiler::Gcc, &["-O2"]);
    for clock in ["tick", "cycle", "ordered"] {
        let recorded = shop.record(&["--clock", clock], &program, &["3000"], 0);
        assert_calls(&recorded.outcome.told(), &recorded.report);
        recorded.report.expect_whole();
        assert_eq!(recorded.report.clock, clock);
    }
}

/// Guards: under `ordered` the end of a call is read when its work is done. A processor that waits
/// for memory reads its counter meanwhile.
#[test]
fn an_ordered_reading_waits_for_the_work_of_the_call() {
    let shop = Workshop::new();
    let program = shop.build("misses.c", Compiler::Gcc, &["-O2"]);
    let [ordered, early] = ["ordered", "cycle"].map(|clock| {
        let recorded = shop.record(&["--clock", clock], &program, &[], 0);
        assert_calls(&recorded.outcome.told(), &recorded.report);
        median_call(&recorded.file, "miss")
    });
    assert!(ordered > 2 * early, "{ordered} ns, and {early} ns where it does not wait");
}

/// Nanoseconds of the median call of a function that calls nothing.
fn median_call(recording: &Path, name: &str) -> u64 {
    let dump = run(teeperf().arg("dump").arg(recording));
    // The columns are position, kind, process, thread, seconds, depth and name.
    let event = |line: &str| -> Option<(bool, u64)> {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, kind, .., time, _, last] = columns[..] else { return None };
        let nanoseconds = time.replace('.', "").parse().ok()?;
        (last == name).then_some((kind == "call", nanoseconds))
    };
    let events: Vec<(bool, u64)> = dump.stdout.lines().filter_map(event).collect();
    let mut times: Vec<u64> =
        events.as_chunks().0.iter().map(|[a, b]: &[_; 2]| b.1 - a.1).collect();
    assert!(events.iter().step_by(2).all(|event| event.0) && !times.is_empty());
    times.sort_unstable();
    times[times.len() / 2]
}

/// Guards: stub and runtime linked into every kind of program.
#[test]
fn every_way_of_linking() {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        for flags in [
            &["-O2", "-static"][..],
            &["-O2", "-static-pie", "-fPIE"],
            &["-O2", "-no-pie", "-fno-pie"],
            &["-O2", "-pie", "-fPIE", "-Wl,-z,now"],
            &["-O2", "-flto"],
            &["-O2", "-Wl,--gc-sections", "-ffunction-sections"],
            &["-O2", "-g", "-fomit-frame-pointer", "-Wl,--build-id=none"],
            &["-O1", "-fsanitize=address"],
        ] {
            // clang's own linker plug-in is not part of every installation.
            if compiler == Compiler::Clang && flags.contains(&"-flto") {
                continue;
            }
            let program = shop.build("calls.c", compiler, flags);
            let recorded = shop.record(&[], &program, &["100"], 0);
            assert_calls(&recorded.outcome.told(), &recorded.report);
            recorded.report.expect_whole();
        }
    }
}

/// Guards: what has no symbol is named by module and offset, and still counted.
#[test]
fn a_stripped_program_keeps_its_counts() {
    let shop = Workshop::new();
    let program = shop.build("calls.c", Compiler::Gcc, &["-O2", "-s"]);
    let recorded = shop.record(&[], &program, &["100"], 0);
    let told = recorded.outcome.told();
    let mut expected: Vec<u64> = told.calls.values().copied().collect();
    let mut seen: Vec<u64> = recorded.report.calls.values().copied().collect();
    expected.sort_unstable();
    seen.sort_unstable();
    assert_eq!(expected, seen);
    let stem = program.file_name().unwrap().to_string_lossy().into_owned();
    for name in recorded.report.calls.keys() {
        assert!(name.starts_with(&format!("{stem}+0x")), "{name}");
    }
}

/// Guards: hooks that are not recorded do nothing.
#[test]
fn without_the_recorder_a_hooked_program_does_and_prints_the_same() {
    let shop = Workshop::new();
    for (source, arguments) in [
        ("calls.c", &["500"][..]),
        ("longjmps.c", &[]),
        ("exceptions.cc", &[]),
        ("coroutines.c", &["50"]),
        ("lifetimes.cc", &[]),
        ("pauses.c", &["3"]),
        ("ifunc.c", &[]),
        ("threads.c", &["ways"]),
        ("processes.c", &["fork"]),
        ("processes.c", &["vfork-exec"]),
        ("dies.c", &["segv"]),
        ("deep.c", &["100000"]),
    ] {
        for compiler in Compiler::tried() {
            let hooked = shop.build(source, compiler, &["-O2"]);
            let plain = shop.build_unhooked(source, compiler, &["-O2"]);
            let outcomes = [&hooked, &plain].map(|program| {
                run(Command::new(program).args(arguments).env_remove("TEEPERF_SOCKET"))
            });
            assert_eq!(outcomes[0].status, outcomes[1].status, "{source}");
            assert_eq!(outcomes[0].stderr, outcomes[1].stderr, "{source}");
            // Lines of several processes have no order of their own.
            assert_eq!(sorted(&outcomes[0].stdout), sorted(&outcomes[1].stdout), "{source}");
        }
    }
}

/// Guards: a stale address in the environment. Whoever inherited it goes on alone.
#[test]
fn a_recorder_that_is_gone_is_no_recorder() {
    let shop = Workshop::new();
    let program = shop.build("calls.c", Compiler::Gcc, &["-O2"]);
    let alone = run(Command::new(&program).env_remove("TEEPERF_SOCKET"));
    for name in ["teeperf-nobody-listens-here", "", &"x".repeat(300)] {
        let outcome = run(Command::new(&program).env("TEEPERF_SOCKET", name));
        outcome.expect_code(0);
        assert_eq!(outcome.stdout, alone.stdout);
        assert_eq!(outcome.stderr, "");
    }
}

/// Guards: the recorder stands aside: input, output, arguments, status.
#[test]
fn input_output_and_status_pass_through() {
    let shop = Workshop::new();
    let program = shop.build("passes.c", Compiler::Gcc, &["-O1"]);
    for status in [0, 1, 42, 255] {
        let code = status.to_string();
        let mut recording = shop.recording(&[], &program, &[&code, "two words", "", "--", "-o"]);
        let mut running = Running::start(recording.command.stdin(Stdio::piped()));
        let input: Vec<u8> = (0..100_000u32).map(|i| b'a' + (i % 23) as u8).collect();
        running.child.stdin.take().unwrap().write_all(&input).unwrap();
        let outcome = running.wait();
        outcome.expect_code(status);
        assert_eq!(outcome.stdout.as_bytes(), input);
        assert!(outcome.stderr.contains("bytes 100000 <two words> <> <--> <-o>\n"), "{outcome:?}");
        let report = Report::of(&recording.file);
        assert_eq!(report.calls["copies"], 1);
        assert_eq!(report.exit_status, Some(status.into()));
    }
}

/// Guards: a program that a signal ended is told as one.
#[test]
fn a_signal_of_the_program_is_told() {
    let shop = Workshop::new();
    let program = shop.build("passes.c", Compiler::Gcc, &["-O1"]);
    for number in [libc::SIGTERM, libc::SIGKILL, libc::SIGUSR1] {
        let mut recording = shop.recording(&[], &program, &[&format!("-{number}")]);
        let outcome = run(&mut recording.command);
        assert_eq!(signal_of(outcome.status), Some(number), "{outcome:?}");
        let report = Report::of(&recording.file);
        assert_eq!(report.signal, Some(number.into()));
        assert_eq!((report.calls["main"], report.calls["copies"]), (1, 1));
    }
}

/// Guards: a command that cannot be run ends as with `env` and shells: 127 and 126.
#[test]
fn a_command_that_is_not_there() {
    let shop = Workshop::new();
    let missing = shop.path("missing");
    run(&mut shop.recording(&[], &missing, &[]).command).expect_code(127);
    let no_program = shop.path("no-program");
    std::fs::write(&no_program, "no program").unwrap();
    run(&mut shop.recording(&[], &no_program, &[]).command).expect_code(126);
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}
