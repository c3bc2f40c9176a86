//! A recorder that vanishes, and one that means harm.

use crate::support::Build;
use crate::support::host::{Host, Options, expect_success, finish, kill};
use std::process::Stdio;
use std::time::Duration;
use teeperf_wire::shared::OnFull;

fn random(mut state: u64) -> impl FnMut() -> u32 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    }
}

#[test]
fn one_that_vanishes_while_the_program_waits() {
    let program = Build::default().program("loops.c", "left-alone", &["-lpthread"]);
    let options = Options { drains: false, grows: false, small: 4, large: 2, ..Options::default() };
    let mut host = Host::new(options);
    let mut command = host.command(&program);
    command.args(["5000000", "3"]).stdout(Stdio::piped());
    let output = std::thread::scope(|scope| {
        let run = scope.spawn(|| finish(&mut command));
        while host.attached() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(300));
        host.vanish();
        run.join().unwrap()
    });
    expect_success(&output);
    assert_eq!(output.stdout, b"end 0\n", "hooks are off when nobody answers any more");
}

#[test]
fn one_that_is_not_there() {
    let program = Build::default().program("loops.c", "nobody", &["-lpthread"]);
    let mut host = Host::new(Options::default());
    host.vanish();
    let output = host.run(&program, &["1000", "2"]);
    expect_success(&output);
    assert_eq!(output.stdout, b"end 0\n");
}

/// Memory that could shrink under the program is not mapped at all: hooks stay off.
#[test]
fn one_that_could_truncate() {
    let program = Build::default().program("loops.c", "unsealed", &["-lpthread"]);
    let host = Host::new(Options { sealed: false, ..Options::default() });
    expect_success(&host.run(&program, &["1000", "2"]));
    assert_eq!(host.attached(), 1);
    assert!(host.finish().is_empty());
}

/// A million words, while four threads write, hand over and wait.
#[test]
fn one_that_writes_random_words_over_everything() {
    let program = Build::default().program("loops.c", "scribbled", &["-lpthread"]);
    for (seed, on_full) in [(1, OnFull::Drop), (2, OnFull::Wait)] {
        let host = Host::new(Options { on_full, small: 8, large: 2, ..Options::default() });
        let mut child =
            host.command(&program).args(["0", "3"]).stdout(Stdio::null()).spawn().unwrap();
        let mut random = random(seed);
        let mut words = 0;
        while words < 1_000_000 {
            words += host.scribble(&mut random);
            assert!(child.try_wait().unwrap().is_none(), "ended after {words} words");
        }
        kill(&mut child);
    }
}
