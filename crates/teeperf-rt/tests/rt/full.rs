//! When no chunk is free: waiting that ends, dropping that is counted, stopping.

use crate::support::Build;
use crate::support::host::{Host, Options, expect_success};
use crate::support::words::{Gap, Recording};
use teeperf_wire::shared::OnFull;
use teeperf_wire::word::gap;

const NO_DRAIN: Options = Options {
    clock: teeperf_wire::shared::ClockKind::Tick,
    flags: 0,
    on_full: OnFull::Wait,
    small: 4,
    large: 2,
    grows: false,
    drains: false,
    tick: std::time::Duration::from_micros(100),
    sealed: true,
    signals_heirs: false,
};

fn record(options: Options, name: &str, arguments: &[&str]) -> Recording {
    let program = Build::default().program("loops.c", name, &["-lpthread"]);
    let host = Host::new(options);
    expect_success(&host.run(&program, arguments));
    Recording::new(&host.finish())
}

fn of_reason(recording: &Recording, reason: u32) -> Vec<Gap> {
    recording.gaps().into_iter().filter(|gap| gap.reason == reason).collect()
}

#[test]
fn waiting_loses_nothing() {
    let options = Options { drains: true, ..NO_DRAIN };
    let recording = record(options, "waits", &["300000", "1"]);
    assert_eq!(recording.calls("step"), 600_000);
    assert_eq!(recording.lost(), 0);
    let waited = of_reason(&recording, gap::WAITED);
    assert!(!waited.is_empty(), "six chunks cannot have been enough");
    assert!(waited.iter().all(|gap| gap.lost == 0));
    assert!(waited.iter().any(|gap| gap.units > 0));
}

#[test]
fn waiting_ends_when_the_recorder_makes_no_progress() {
    let recording = record(NO_DRAIN, "stalls", &["2000000"]);
    assert!(recording.calls("step") > 10_000);
    assert!(recording.calls("step") < 100_000);
}

#[test]
fn what_is_dropped_is_counted() {
    let options =
        Options { on_full: OnFull::Drop, drains: true, tick: NO_DRAIN.tick / 4, ..NO_DRAIN };
    let program = Build::default().program("loops.c", "drops", &["-lpthread"]);
    let host = Host::new(options);
    expect_success(&host.run(&program, &["1000000"]));
    let unsaid = host.unsaid();
    let recording = Recording::new(&host.finish());
    let dropped = of_reason(&recording, gap::DROPPED);
    assert!(!dropped.is_empty(), "six chunks cannot have been enough");
    let mut depth = 0i64;
    for item in &recording.threads[&(0, 1)] {
        match item {
            crate::support::words::Item::Call(_) => depth += 1,
            crate::support::words::Item::Return(_) => depth -= 1,
            other => {
                if let Some(gap) = crate::support::words::gap(other) {
                    depth += i64::from(gap.pushed) - i64::from(gap.popped);
                }
            }
        }
        assert!((0..=4).contains(&depth), "frames go missing: depth {depth}");
    }
    assert_eq!(recording.events() + recording.lost() + unsaid, 2 * (1_000_000 + 2));
}

/// A thread that has no chunk when it ends cannot say in one what it left out.
#[test]
fn what_is_dropped_is_counted_to_the_programs_end() {
    let program = Build::default().program("loops.c", "ends", &["-lpthread"]);
    for (on_full, drains) in [(OnFull::Drop, false), (OnFull::Drop, true), (OnFull::Wait, false)] {
        let host = Host::new(Options { on_full, drains, ..NO_DRAIN });
        expect_success(&host.run(&program, &["300000", "3"]));
        let unsaid = host.unsaid();
        let recording = Recording::new(&host.finish());
        assert_eq!(recording.events() + recording.lost() + unsaid, 2 * (4 * 300_000 + 5));
        assert!(drains || unsaid > 0, "six chunks cannot have been enough");
    }
}

#[test]
fn stopping_says_so() {
    let options = Options { on_full: OnFull::Stop, ..NO_DRAIN };
    let recording = record(options, "stops", &["2000000"]);
    assert!(recording.calls("step") < 100_000);
    assert_eq!(of_reason(&recording, gap::STOPPED).len(), 1);
}
