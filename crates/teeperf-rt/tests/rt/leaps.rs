//! Ways out of a function that no hook sees leave a word.

use crate::support::Build;
use crate::support::host::{Host, Options, expect_success};
use crate::support::words::{Item, Recording, gap};
use std::collections::HashMap;
use teeperf_wire::word::{ABANDONED, code};

fn record(build: &Build, source: &str, name: &str) -> Recording {
    let program = build.program(source, name, &[]);
    let host = Host::new(Options::default());
    expect_success(&host.run(&program, &[]));
    Recording::new(&host.finish())
}

/// A frame that was entered in a gap.
const UNKNOWN: &str = "?";

/// Replays the stacks of the only thread the way a reader has to; every return must belong to the
/// innermost open call. Gives the most stacks seen at once.
fn replay(recording: &Recording) -> usize {
    let mut stacks: HashMap<u64, Vec<String>> = HashMap::from([(0, Vec::new())]);
    let mut marks: HashMap<u32, usize> = HashMap::new();
    let mut now = 0;
    let mut most = 1;
    let wide =
        |payload: &[u32], at: usize| u64::from(payload[at]) | u64::from(payload[at + 1]) << 31;
    let items = recording.threads.values().next().unwrap();
    for item in items {
        let stack = stacks.get_mut(&now).unwrap();
        match item {
            Item::Call(name) => stack.push(name.clone()),
            Item::Return(name) => {
                let top = stack.pop().filter(|top| top != UNKNOWN);
                assert_eq!(top.as_ref().unwrap_or(name), name, "{items:?}");
            }
            Item::Escape(code::MARK, arg, _) => drop(marks.insert(*arg, stack.len())),
            Item::Escape(code::JUMP, arg, _) => stack.truncate(marks[arg]),
            Item::Escape(code::CATCH, ..) => {
                while stack.last().is_some_and(|name| name != "catcher") {
                    stack.pop();
                }
            }
            Item::Escape(code::STACK_NEW, _, payload) => {
                stacks.insert(wide(payload, 0), Vec::new());
                most = most.max(stacks.len());
            }
            Item::Escape(code::STACK, _, payload) => now = wide(payload, 0),
            Item::Escape(code::SWITCH, _, payload) => {
                if wide(payload, 0) == ABANDONED {
                    stacks.remove(&now);
                } else {
                    assert_eq!(wide(payload, 0), now);
                }
                now = wide(payload, 2);
            }
            _ => {
                let gap = gap(item).unwrap_or_default();
                stack.truncate(stack.len() - gap.popped as usize);
                stack.extend((0..gap.pushed).map(|_| UNKNOWN.into()));
            }
        }
    }
    assert!(stacks[&0].is_empty(), "{stacks:?}");
    most
}

#[test]
fn longjmp_out_of_a_pause_past_another_mark() {
    let recording = record(&Build::with(&["-O1"]), "paused_jumps.c", "paused-jumps");
    replay(&recording);
    assert_eq!((recording.calls("top"), recording.calls("after")), (100, 100));
}

#[test]
fn longjmp() {
    for (name, flags) in [
        ("longjmps", &["-O2"][..]),
        ("longjmps-static", &["-O2", "-static"]),
        ("longjmps-lto", &["-O2", "-flto"]),
        ("longjmps-fortified", &["-O2", "-D_FORTIFY_SOURCE=2"]),
    ] {
        let recording = record(&Build::with(flags), "longjmps.c", name);
        assert_eq!(recording.calls("down"), 3 * 6);
        assert_eq!(recording.returns("down"), 0);
        assert_eq!(recording.calls("after"), 3, "setjmp returns twice, `after` is called once");
        replay(&recording);
    }
}

#[test]
fn coroutines() {
    for (name, flags) in [("contexts", &["-O2"][..]), ("contexts-static", &["-O2", "-static"])] {
        let recording = record(&Build::with(flags), "contexts.c", name);
        assert_eq!(recording.calls("generator"), 2);
        assert_eq!(recording.returns("generator"), 2);
        assert_eq!(recording.calls("yield"), 6);
        assert_eq!(recording.returns("yield"), 6);
        assert_eq!(replay(&recording), 2);
    }
}

#[test]
fn exceptions() {
    for (compiler, flags) in [
        ("g++", &["-O2"][..]),
        ("g++", &["-O0"]),
        ("clang++", &["-O2"]),
        ("clang++", &["-O0"]),
        ("g++", &["-O2", "-static"]),
    ] {
        let name = format!("exceptions-{compiler}-{}", flags.concat());
        let recording = record(&Build::compiler(compiler, flags), "exceptions.cc", &name);
        assert_eq!(recording.calls("thrower"), 1 + 2 + 3 + 4, "{name}");
        assert_eq!(recording.returns("catcher"), 4, "{name}");
        assert_eq!(recording.calls("after"), 4, "{name}");
        replay(&recording);
    }
}
