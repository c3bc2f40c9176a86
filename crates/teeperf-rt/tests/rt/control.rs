//! Pause, resume and stop, from inside the program and from the recorder.

use crate::support::Build;
use crate::support::host::{Host, Options, expect_success, finish, kill};
use crate::support::words::{Gap, Item, Recording};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use teeperf_wire::shared::{ClockKind, control};
use teeperf_wire::word::{code, gap};

const CLOCKS: [ClockKind; 2] = [ClockKind::Tick, ClockKind::Cycle];

#[test]
fn a_program_pauses_itself() {
    for clock in CLOCKS {
        let program = Build::default().program("pauses.c", &format!("pauses-{clock:?}"), &[]);
        let host = Host::new(Options { clock, ..Options::default() });
        let output = host.run(&program, &[]);
        expect_success(&output);
        assert_eq!(output.stdout, b"1 500 1\n");
        let recording = Recording::new(&host.finish());
        assert_eq!(recording.calls("hidden"), 0);
        assert_eq!(recording.calls("seen"), 200);
        assert_eq!(recording.calls("pauses"), 100);
        assert_eq!(recording.returns("pauses"), 0);
        assert_eq!(recording.calls("resumes"), 0);
        assert_eq!(recording.returns("resumes"), 100);
        let gaps: Vec<Gap> = recording.gaps();
        assert_eq!(gaps.len(), 100);
        for found in gaps {
            assert_eq!(found.reason, gap::PAUSED);
            assert_eq!((found.popped, found.pushed), (1, 1), "left `pauses`, entered `resumes`");
            assert_eq!(found.lost, 2 * 3 + 2);
        }
        let is_note = |item: &&Item| matches!(item, Item::Escape(code::NOTE, ..));
        assert_eq!(recording.items().filter(is_note).count(), 1);
    }
}

#[test]
fn calls_of_the_interface_do_nothing_without_recorder_or_runtime() {
    let linked = Build::default().program("pauses.c", "pauses-alone", &[]);
    let bare = Build { linked: false, ..Build::default() };
    let unlinked = bare.program("pauses.c", "pauses-unlinked", &[]);
    for (program, said) in [(linked, "0 500 1\n"), (unlinked, "0 500 0\n")] {
        let output = finish(Command::new(program).stdout(Stdio::piped()));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), said);
    }
}

#[test]
fn the_recorder_pauses_and_resumes() {
    for clock in CLOCKS {
        let program = Build::default().program("loops.c", &format!("paused-{clock:?}"), &[]);
        let host = Host::new(Options { clock, ..Options::default() });
        let mut child = host.command(&program).arg("0").stdout(Stdio::null()).spawn().unwrap();
        while host.attached() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(50));
            host.control(control::PAUSED);
            std::thread::sleep(Duration::from_millis(50));
            host.control(0);
        }
        std::thread::sleep(Duration::from_millis(50));
        kill(&mut child);
        let recording = Recording::new(&host.finish());
        let paused: Vec<Gap> =
            recording.gaps().into_iter().filter(|found| found.reason == gap::PAUSED).collect();
        assert!(!paused.is_empty() && paused.len() <= 3);
        assert!(paused.iter().all(|found| found.lost > 1000 && found.units > 1_000_000));
    }
}

/// What is left out because of a pause, from its first event to its last, is no loss.
#[test]
fn the_recorder_pauses_again_and_again() {
    let program = Build::default().program("loops.c", "paused-again", &[]);
    let host = Host::new(Options::default());
    let mut child = host.command(&program).arg("0").stdout(Stdio::null()).spawn().unwrap();
    while host.attached() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    for _ in 0..100 {
        for bits in [control::PAUSED, 0] {
            host.control(bits);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    kill(&mut child);
    let unsaid = host.unsaid();
    let gaps = Recording::new(&host.finish()).gaps();
    let (paused, others): (Vec<_>, Vec<_>) =
        gaps.into_iter().partition(|found| found.reason == gap::PAUSED);
    assert!(!paused.is_empty());
    assert_eq!(others.iter().map(|found| found.lost).sum::<u64>() + unsaid, 0);
}

#[test]
fn the_recorder_stops_and_the_program_goes_on() {
    for clock in CLOCKS {
        let program =
            Build::default().program("loops.c", &format!("stopped-{clock:?}"), &["-lpthread"]);
        let host = Host::new(Options { clock, ..Options::default() });
        let mut command = host.command(&program);
        command.args(["20000000", "2"]).stdout(Stdio::piped());
        let child = std::thread::scope(|scope| {
            let run = scope.spawn(|| finish(&mut command));
            while host.attached() == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(50));
            host.control(control::STOPPED);
            run.join().unwrap()
        });
        expect_success(&child);
        assert_eq!(child.stdout, b"end 0\n");
        let recording = Recording::new(&host.finish());
        assert!(recording.calls("step") > 1000);
        assert!(recording.calls("step") < 50_000_000);
    }
}

/// A thread waits for room as long as the recorder gets on, and not longer than it records.
#[test]
fn the_recorder_stops_while_a_thread_waits() {
    let program = Build::default().program("loops.c", "stopped-waiting", &["-lpthread"]);
    let options = Options { drains: false, grows: false, small: 4, large: 2, ..Options::default() };
    let host = Host::new(options);
    let mut child = host.command(&program).arg("300000").stdout(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    let mut ended = None;
    while ended.is_none() && begun.elapsed() < Duration::from_secs(60) {
        host.feign_progress();
        if begun.elapsed() > Duration::from_secs(3) {
            host.control(control::STOPPED);
        }
        std::thread::sleep(Duration::from_millis(10));
        ended = child.try_wait().unwrap();
        assert!(ended.is_none() || begun.elapsed() > Duration::from_secs(3), "it did not wait");
    }
    kill(&mut child);
    assert!(ended.is_some_and(|status| status.success()), "it waits for ever");
}
