//! What is written comes out, whole and in order.

use crate::harness::{record, record_command, shell};
use crate::reading::{events, holes};
use crate::roles::words_of;
use std::ffi::OsString;
use std::sync::Arc;
use teeperf_record::{Choice, Period};
use teeperf_wire::body::{chunk, end, process, process_end, start, thread};
use teeperf_wire::packet::kind;
use teeperf_wire::word::{call, code, escape, ret};

#[test]
fn every_word_of_every_thread_with_either_clock() {
    for (choice, clock) in [(Choice::Tick, 1), (Choice::Cycle, 2)] {
        let mut stats = None;
        let (outcome, recording) = record("threads 3 200000", |options| {
            options.clock = choice;
            stats = Some(Arc::clone(&options.stats));
        });
        assert_eq!(outcome.exit_code(), 7);
        assert!(outcome.error.is_none() && outcome.reason.is_none(), "{outcome:?}");
        assert!(recording.is_closed());
        assert_eq!(recording.number(kind::START, start::CLOCK), Some(clock));
        assert_eq!(recording.number(kind::END, end::EXIT_STATUS), Some(7));
        assert_eq!(recording.number(kind::PROCESS_END, process_end::EXIT_STATUS), Some(7));
        assert_eq!(recording.processes(), (vec![1], vec![1]));
        let threads = recording.threads();
        assert_eq!(threads.len(), 3);
        for (&(process, thread), words) in &threads {
            assert_eq!(process, 1);
            let mut events = events(words);
            if choice == Choice::Cycle {
                // A chunk's last word is even, and no time is.
                let pad = escape(code::PAD, 0);
                let pairs: Vec<u32> = words.iter().copied().filter(|&word| word != pad).collect();
                events = pairs.iter().step_by(2).copied().collect();
                let times = pairs.iter().skip(1).step_by(2);
                assert!(times.enumerate().all(|(at, &time)| time == (at as u32 * 900) | 1));
            }
            assert_eq!(events, words_of(thread, 200_000));
        }
        let words: usize = threads.values().map(Vec::len).sum();
        assert_eq!(recording.words_in_all(), Some(words as u64));
        let counted = stats.unwrap().snapshot();
        assert_eq!((counted.words, counted.threads, counted.lost), (words as u64, 3, 0));
        assert_eq!(outcome.recorded, counted);
    }
}

#[test]
fn short_threads_leave_room_for_the_next() {
    const COUNT: u32 = 100_000;
    let (outcome, recording) = record(&format!("short {COUNT}"), |_| {});
    assert_eq!(outcome.exit_code(), 0);
    let threads = recording.threads();
    assert_eq!(threads.len(), COUNT as usize);
    assert!(threads.iter().all(|(&(_, thread), words)| *words == words_of(thread, 3)));
    assert_eq!(outcome.recorded.threads, COUNT as u64);
}

#[test]
fn blocked_threads_get_a_chunk_each() {
    let (outcome, recording) = record("blocked 1000", |_| {});
    assert_eq!(outcome.exit_code(), 0);
    let threads = recording.threads();
    assert_eq!(threads.len(), 1000);
    assert!(threads.iter().all(|(&(_, thread), words)| *words == words_of(thread, 3)));
}

#[test]
fn a_word_that_comes_late_is_waited_for_and_nothing_overtakes_it() {
    let (outcome, recording) = record("late", |_| {});
    assert_eq!(outcome.exit_code(), 0);
    let events = events(&recording.threads()[&(1, 1)]);
    assert_eq!(events.len(), 50_003);
    assert_eq!(events[..2], [call(0x2000), ret(0x2000)]);
    assert!((0..50_000).all(|n| events[2 + n as usize] == call(0x3000 + n % 0x100)));
    assert_eq!(outcome.recorded.lost, 0);
}

#[test]
fn a_word_that_never_comes_is_a_hole_and_its_chunk_is_retired() {
    let (outcome, recording) = record("never", |_| {});
    assert_eq!(outcome.exit_code(), 0);
    let words = &recording.threads()[&(1, 1)];
    assert_eq!(holes(words), 1);
    let events = events(words);
    assert_eq!(events.len(), 60_003);
    assert_eq!(events[..2], [call(0x2000), call(0x2010)]);
    assert_eq!(outcome.recorded.lost, 1);
}

/// Twice as many chunks go out of use as a process with a slow drain may have.
#[test]
fn chunks_that_are_retired_are_made_up_for() {
    let (outcome, recording) = record("leaves 512", |options| {
        options.limit_time = Some(std::time::Duration::from_secs(30));
    });
    assert_eq!((outcome.exit_code(), outcome.reason), (0, None));
    let words = &recording.threads()[&(1, 1)];
    assert_eq!((holes(words), events(words).len()), (512, 1024));
    assert_eq!(outcome.recorded.lost, 512);
}

#[test]
fn a_process_that_becomes_another_program_is_two() {
    let (outcome, recording) = record("exec", |_| {});
    assert_eq!(outcome.exit_code(), 7);
    assert_eq!(recording.processes(), (vec![1, 2], vec![1, 2]));
    assert_eq!(recording.numbers(kind::PROCESS, process::EXEC_OF), [0, 1]);
    let pids = recording.numbers(kind::PROCESS, process::PID);
    assert_eq!(pids[0], pids[1]);
    let threads = recording.threads();
    assert_eq!(threads[&(1, 1)], words_of(1, 10));
    assert_eq!(events(&threads[&(2, 1)]), words_of(1, 20));
}

#[test]
fn processes_of_a_shell_are_recorded_side_by_side_and_after_its_end() {
    let one = shell("threads 1 3000");
    let script = format!("{one} & {one}; wait; (sleep 0.01; {one}; {one}) > /dev/null & exit 3");
    let command = ["sh", "-c", &script].map(OsString::from);
    let (outcome, recording) = record_command(&command, |_| {});
    assert_eq!(outcome.exit_code(), 3);
    assert_eq!(recording.number(kind::END, end::EXIT_STATUS), Some(3));
    let (attached, mut ended) = recording.processes();
    ended.sort_unstable();
    assert_eq!(attached, ended);
    // The last two run behind the shell's back, and need not be seen.
    assert!((2..=4).contains(&attached.len()), "{attached:?}");
    for words in recording.threads().values() {
        assert_eq!(events(words), words_of(1, 3000));
    }
}

#[test]
fn live_threads_are_written_out_piece_by_piece() {
    let (outcome, recording) = record("idle", |options| {
        options.limit_time = Some(std::time::Duration::from_millis(1_500));
    });
    assert_eq!(outcome.exit_code(), 0);
    assert_eq!(outcome.reason.as_deref(), Some("the time limit was reached"));
    let chunks = recording.chunks();
    assert_eq!(chunks.len(), 2, "{chunks:?}");
    assert_eq!((chunks[0].header.flags, chunks[0].header.first), (0, 0));
    assert_eq!((chunks[1].header.flags, chunks[1].header.first), (chunk::CUT, 11));
    // It told five units, and lived for as long as it was recorded.
    let lived = chunks[1].header.time - chunks[0].header.time;
    let hz = recording.number(kind::START, start::HZ).unwrap();
    assert!((hz..hz * 30).contains(&lived), "{lived}");
    assert_eq!(chunks[1].header.count, 0);
    assert_eq!(events(&recording.threads()[&(1, 1)]), words_of(1, 10));
    // The harness names the threads of tests.
    assert_eq!(recording.text(kind::THREAD, thread::NAME).as_deref(), Some("roles::program"));
}

#[test]
fn a_ticker_without_a_period_spins() {
    let (outcome, recording) = record("threads 1 1000", |options| {
        options.clock = Choice::Tick;
        options.period = Some(Period::Spinning);
    });
    assert_eq!(outcome.exit_code(), 7);
    assert_eq!(recording.number(kind::START, start::PERIOD), Some(1));
}
