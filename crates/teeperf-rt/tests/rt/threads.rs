//! Many threads, at once and one after another.

use crate::support::Build;
use crate::support::host::{Host, Options, expect_success};
use crate::support::words::Recording;

fn record(options: Options, arguments: &[&str]) -> Recording {
    let name = format!("many-{}-{}", arguments.join("-"), options.small);
    let program = Build::default().program("many_threads.c", &name, &["-lpthread"]);
    let host = Host::new(options);
    expect_success(&host.run(&program, arguments));
    Recording::new(&host.finish())
}

/// More threads than chunks, and none gives its chunk back: without further segments this hangs.
#[test]
fn a_thousand_that_write_a_little_and_block() {
    let options = Options { small: 8, large: 2, ..Options::default() };
    let recording = record(options, &["block", "1000"]);
    assert_eq!(recording.calls("step"), 11_000);
    assert_eq!(recording.threads.len(), 1001);
    assert_eq!(recording.lost(), 0);
}

#[test]
fn a_hundred_thousand_short_ones() {
    let recording = record(Options::default(), &["short", "100000"]);
    assert_eq!(recording.calls("step"), 100_000);
    assert_eq!(recording.threads.len(), 100_001);
    assert_eq!(recording.lost(), 0);
}
