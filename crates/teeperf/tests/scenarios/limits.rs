//! Recordings that end by themselves, before the program does: it goes on to its own end, and
//! what was recorded is the beginning of what it did, without a gap.

use crate::support::*;
use teeperf_profile::contents::Body;

/// Records `steady.c` with a limit, has it go on behind it, and looks at both.
fn ends_early(options: &[&str], threads: u64, reason: &str) {
    let shop = Workshop::new();
    let program = shop.build("steady.c", Compiler::Gcc, &["-O1"]);
    let progress = Progress::new(&shop, "progress");
    let more = threads.to_string();
    let arguments = [progress.name(), "100000000000", "0", &more];
    let mut recording = shop.recording(options, &program, &arguments);
    let running = Running::start(&mut recording.command);
    wait_until("calls", || progress.calls() > 0);
    let program = child_of(running.pid());
    wait_until("the recording's end", || is_closed(&recording.file));
    let ended_at = progress.calls();
    wait_until("the program goes on", || progress.calls() > ended_at + 1_000_000);
    assert!(!progress.done());
    assert_eq!(child_of(running.pid()), program);
    progress.stop();
    let outcome = running.wait();
    // The program's own status.
    outcome.expect_code(5);
    assert!(outcome.stderr.contains(&format!("recording ended early: {reason}")), "{outcome:?}");

    let report = Report::of(&recording.file);
    assert_eq!(report.warnings, [format!("recording ended before the command: {reason}")]);
    assert_eq!(report.exit_status, None, "nobody knew it yet");
    for figure in ["lost", "mended", "unopened"] {
        assert_eq!(report.health(figure), 0, "{figure}");
    }
    // A beginning of what it did: each call of `work` but the last one of each thread called
    // `leaf` twice, and what is open at the end is what a thread may have been in.
    let told = outcome.told();
    let calls = |name: &str| report.calls.get(name).copied().unwrap_or(0);
    let (work, leaf) = (calls("work"), calls("leaf"));
    assert_eq!((calls("main"), calls("endless")), (1, threads));
    assert!(work > 1000 && work < told.calls["work"]);
    assert!((2 * (work - threads - 1)..=2 * work).contains(&leaf), "{work} and {leaf}");
    assert!((threads + 1..=3 * (threads + 1)).contains(&report.health("open")));
}

/// Whether the recorder has written its last packet: type 8 behind the four bytes that begin
/// one, with nothing to follow.
fn is_closed(file: &std::path::Path) -> bool {
    let bytes = std::fs::read(file).unwrap_or_default();
    let at = bytes.windows(6).rposition(|six| six == b"TPRF\x08\0");
    at.is_some_and(|at| {
        let length = bytes.get(at + 8..at + 12).map(|four| four.try_into().expect("four bytes"));
        length.is_some_and(|length| at + 20 + u32::from_le_bytes(length) as usize == bytes.len())
    })
}

/// Guards: the limit is looked at while the drain is busy, too.
#[test]
fn at_a_size() {
    // The tick's words are alike, and pack well.
    for (clock, size, threads) in
        [("tick", "40K", 0), ("tick", "40K", 3), ("cycle", "300K", 0), ("cycle", "300K", 3)]
    {
        let options = ["--clock", clock, "--limit-size", size];
        ends_early(&options, threads, "the size limit was reached");
    }
}

/// Guards: and the clock is looked at as often.
#[test]
fn after_a_time() {
    for (clock, threads) in [("tick", 0), ("cycle", 3)] {
        let options = ["--clock", clock, "--limit-time", "300ms"];
        ends_early(&options, threads, "the time limit was reached");
    }
}

/// Guards: the end is when recording ended, and not when all of it was written.
#[test]
fn what_is_left_to_do_is_not_in_it() {
    let phases = Phases::start(&["--limit-time", "300ms"]);
    wait_until("the recording's end", || is_closed(&phases.file));
    let mut recording = teeperf_profile::Recording::open(&phases.file).unwrap();
    let (mut seen, mut ended) = (0, 0);
    while let Some(packet) = recording.next_packet().unwrap() {
        match packet.body {
            Body::Chunk(header, _) => seen = seen.max(header.time),
            Body::End(end) => ended = end.time,
            _ => {}
        }
    }
    // The program waits for a line, and has been seen to.
    assert_eq!(seen, ended);
    phases.end();
}

/// Guards: threads that sleep for room are woken by the end.
#[test]
fn while_threads_wait_for_room() {
    let options = ["--on-full", "wait", "--clock", "cycle", "--limit-size", "1M"];
    ends_early(&options, 8, "the size limit was reached");
}

/// Guards: a limit that is not reached changes nothing.
#[test]
fn not_at_all() {
    let shop = Workshop::new();
    let program = shop.build("calls.c", Compiler::Gcc, &["-O2"]);
    let options = ["--limit-size", "1G", "--limit-time", "1000s"];
    let recorded = shop.record(&options, &program, &["1000"], 0);
    assert_calls(&recorded.outcome.told(), &recorded.report);
    recorded.report.expect_whole();
}

/// Guards: as many paths of code that sums are kept as the recorder has room for, and calls on all
/// others are counted.
#[test]
fn more_paths_than_there_is_room_for() {
    let shop = Workshop::new();
    let program = shop.build("paths.c", Compiler::Gcc, &["-O2"]);
    let (memory, file) = (shop.path("memory"), shop.path("recording.teeperf"));
    let nodes = 1_100_000u64;
    let mut command = teeperf();
    command.args(["serve-memory", "--quiet", "-o"]).arg(&file).arg(&memory).arg("--").arg(&program);
    run(command.arg(&memory).arg(nodes.to_string())).expect_code(0);
    let report = Report::of(&file);
    // Among those kept are the thread itself, and what the tree has no room for.
    let (kept, all) = ((1 << 20) - 2, nodes - 2);
    // And `main`, which has hooks.
    assert_eq!(report.health("events"), 2 * kept + 2, "{report:?}");
    assert_eq!(report.health("lost"), 2 * (all - kept), "{report:?}");
    let told = |warning: &String| warning.contains("has more than 1048576 call paths");
    assert_eq!(report.warnings.iter().filter(|&warning| told(warning)).count(), 1, "{report:?}");
}
