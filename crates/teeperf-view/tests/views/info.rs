//! What a recording holds, as text.

use teeperf_profile::contents::Start;
use teeperf_profile::info::{Info, ProcessInfo};
use teeperf_view::info;

fn text(info: &Info) -> String {
    let mut out = Vec::new();
    info::text(info, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The recording's own clock says nothing of samples, which have another.
#[test]
fn the_clock_is_that_of_calls() {
    let start = Start { clock: 1, hz: 1_000_000_000, ..Start::default() };
    let mut info = Info { start: Some(Box::new(start)), ..Info::default() };
    let clock = "Clock      tick, 1,000,000,000 Hz\n";
    assert!(text(&info).contains(clock), "{}", text(&info));
    info.sampled.events.insert(1, "cpu-clock".into());
    assert!(!text(&info).contains("Clock"), "{}", text(&info));
    info.processes.insert(1, ProcessInfo::default());
    assert!(text(&info).contains(clock));
}
