//! Every call and return is written, exactly once, in order, in the thread where it happened.

use crate::support::Build;
use crate::support::host::{Host, Options, expect_success};
use crate::support::words::Recording;
use teeperf_wire::hello::flag;
use teeperf_wire::shared::ClockKind;

fn calls_of_fib(n: u64) -> u64 {
    let (mut a, mut b) = (0u64, 1);
    for _ in 0..=n {
        (a, b) = (b, a + b);
    }
    2 * a - 1
}

fn record(options: Options, build: &Build, name: &str, arguments: &[&str]) -> Recording {
    let program = build.program("calls.c", name, &["-lpthread"]);
    let host = Host::new(options);
    expect_success(&host.run(&program, arguments));
    Recording::new(&host.finish())
}

#[test]
fn at_every_level_of_optimisation() {
    for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
        let build = Build::with(&[level]);
        let recording = record(Options::default(), &build, &format!("calls{level}"), &["20"]);
        assert_eq!(recording.calls("fib"), calls_of_fib(20), "{level}");
        assert_eq!(recording.returns("fib"), calls_of_fib(20), "{level}");
        assert_eq!(recording.calls("main"), 1, "{level}");
        assert_eq!((recording.lost(), recording.holes()), (0, 0));
        assert_eq!(recording.expect_nested(), 0);
    }
}

#[test]
fn through_many_chunks_with_the_cycle_clock() {
    for (name, flags) in [("cycle", 0), ("ordered", flag::ORDERED)] {
        let options = Options { clock: ClockKind::Cycle, flags, ..Options::default() };
        let recording = record(options, &Build::default(), name, &["21", "2"]);
        assert_eq!(recording.calls("fib"), 3 * calls_of_fib(21));
        assert_eq!(recording.expect_nested(), 0);
        for times in recording.times.values() {
            assert!(times.is_sorted(), "no signals, so times never fall");
        }
    }
}

#[test]
fn in_eight_threads() {
    let recording = record(Options::default(), &Build::default(), "threads", &["23", "8"]);
    assert_eq!(recording.calls("fib"), 9 * calls_of_fib(23));
    assert_eq!(recording.calls("run"), 8);
    assert_eq!((recording.lost(), recording.holes()), (0, 0));
    assert_eq!(recording.expect_nested(), 0);
    assert_eq!(recording.threads.len(), 9);
}
