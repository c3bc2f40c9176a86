//! Pausing, resuming and stopping from outside.

use crate::harness::{Place, command, record, wait_until};
use std::sync::Arc;
use teeperf_record::Recorder;
use teeperf_record::control::{Request, request};

/// Process id of the recorded program, once it is attached.
fn program_of(place: &Place) -> u32 {
    use teeperf_wire::{body::process, packet::kind};
    let mut pid = None;
    wait_until("the program is attached", || {
        let bytes = std::fs::read(place.path()).unwrap_or_default();
        if bytes.len() > 20 {
            pid = crate::reading::Recording::new(&bytes).number(kind::PROCESS, process::PID);
        }
        pid.is_some()
    });
    pid.unwrap() as u32
}

#[test]
fn a_program_is_paused_resumed_and_stopped() {
    let place = Place::new();
    let mut options = place.options();
    options.paused = true;
    let stats = Arc::clone(&options.stats);
    let outcome = std::thread::scope(|scope| {
        let recorder = scope.spawn(|| Recorder::new(options).run(&command("watches")).unwrap());
        let pid = program_of(&place);
        assert_eq!(stats.snapshot().processes, 1);
        // Other recorders run in this process, so it is asked for by the program's number.
        request(pid, &Request::Resume).unwrap();
        request(pid, &Request::Pause).unwrap();
        request(pid, &Request::Resume).unwrap();
        request(pid, &Request::Stop).unwrap();
        recorder.join().unwrap()
    });
    assert_eq!(outcome.exit_code(), 0);
    assert_eq!(outcome.reason.as_deref(), Some("it was asked to end"));
    assert!(place.read().is_closed());
}

#[test]
fn it_starts_as_it_is_told() {
    let (outcome, recording) = record("threads 1 10", |options| options.paused = true);
    assert_eq!(outcome.exit_code(), 7);
    assert!(recording.is_closed());
}
