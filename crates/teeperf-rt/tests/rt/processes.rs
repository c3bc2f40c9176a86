//! Children of every kind are processes of their own in the recording.

use crate::support::Build;
use crate::support::host::{Host, Options, expect_success};
use crate::support::words::{Item, Recording, gap};
use std::collections::BTreeMap;
use std::fs::{DirEntry, read_dir, read_link};
use std::path::Path;
use std::time::{Duration, Instant};
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{code, gap as reason};

fn record(kind: &str, flags: &[&'static str]) -> Recording {
    record_with(Options::default(), kind, flags)
}

fn record_with(options: Options, kind: &str, flags: &[&'static str]) -> Recording {
    let name = format!("children-{kind}-{}-{:?}", flags.len(), options.clock);
    let program = Build::with(flags).program("children.c", &name, &["-lpthread"]);
    let host = Host::new(options);
    expect_success(&host.run(&program, &[kind]));
    if kind == "daemon" {
        wait_for_daemon(&host, &program);
    }
    Recording::new(&host.finish())
}

/// The daemon has no parent that waits for it. One that is not recorded is not waited for long.
fn wait_for_daemon(host: &Host, program: &Path) {
    let is_ours = |entry: std::io::Result<DirEntry>| {
        entry.is_ok_and(|entry| read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program))
    };
    let start = Instant::now();
    while start.elapsed().as_secs() < 30
        && (host.attached() < 3 || read_dir("/proc").unwrap().any(is_ours))
    {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Calls by process and function.
fn calls(recording: &Recording) -> BTreeMap<usize, BTreeMap<&str, u64>> {
    let mut all: BTreeMap<usize, BTreeMap<&str, u64>> = BTreeMap::new();
    for (&(process, _), items) in &recording.threads {
        for item in items {
            if let Item::Call(name) = item {
                *all.entry(process).or_default().entry(name).or_default() += 1;
            }
        }
    }
    all
}

fn expect_begins_with_fork(recording: &Recording, process: usize) {
    expect_fork(recording, process, 1);
}

/// The thread's first word says that frames of the parent lie below.
fn expect_fork(recording: &Recording, process: usize, serial: u32) {
    let first = recording.threads[&(process, serial)].first().unwrap();
    assert_eq!(gap(first).map(|gap| gap.reason), Some(reason::FORKED));
}

#[test]
fn of_fork() {
    let recording = record("fork", &["-O2"]);
    let calls = calls(&recording);
    assert_eq!(calls.len(), 7);
    assert_eq!(calls[&0]["in_parent"], 4000);
    assert!(!calls[&0].contains_key("in_child"));
    let of_children = |name: &str| {
        calls.values().filter_map(|process| process.get(name)).copied().collect::<Vec<_>>()
    };
    assert_eq!(of_children("in_child"), [5000; 3]);
    assert_eq!(of_children("in_grandchild"), [11; 3]);
    for process in 1..7 {
        expect_begins_with_fork(&recording, process);
    }
    assert_eq!((recording.lost(), recording.holes()), (0, 0));
}

#[test]
fn of_a_raw_clone_and_in_a_static_program() {
    for flags in [&["-O2"][..], &["-O2", "-static"]] {
        let recording = record("clone", flags);
        let calls = calls(&recording);
        assert_eq!(calls[&0]["in_parent"], 4000);
        assert_eq!(calls[&1]["in_child"], 5000);
        assert!(!calls[&0].contains_key("in_child") && !calls[&1].contains_key("in_parent"));
        expect_begins_with_fork(&recording, 1);
    }
}

#[test]
fn whose_first_hook_is_not_in_the_thread_that_forked() {
    // With the cycle clock nothing but the thread's second block tells it that it is in a child.
    for clock in [ClockKind::Tick, ClockKind::Cycle] {
        let recording =
            record_with(Options { clock, ..Options::default() }, "fork-thread", &["-O2"]);
        let calls = calls(&recording);
        assert_eq!(calls[&0]["in_parent"], 4000);
        assert_eq!(calls[&1]["in_thread"], 100);
        assert_eq!(calls[&1]["in_child"], 5000);
        assert!(!calls[&0].contains_key("in_child"));
        expect_fork(&recording, 1, 2);
    }
}

/// The child ends well if one segment is all that it can write to: its own.
#[test]
fn that_no_longer_share_the_memory_of_their_parent() {
    let recording = record("maps", &["-O2"]);
    let calls = calls(&recording);
    assert_eq!(calls[&0]["in_parent"], 1000);
    assert_eq!(calls[&1]["in_child"], 1);
}

/// What a signal handler calls while the child attaches has no place to go, and is counted. Later, when
/// the child asks for more memory, it is written.
#[test]
fn that_signals_meet_while_they_wait_for_the_recorder() {
    let program = Build::with(&["-O2"]).program("children.c", "children-signalled", &["-lpthread"]);
    let host = Host::new(Options { signals_heirs: true, ..Options::default() });
    expect_success(&host.run(&program, &["signalled"]));
    let unsaid = host.unsaid();
    let recording = Recording::new(&host.finish());
    let calls = calls(&recording);
    assert_eq!((calls[&1]["in_child"], calls[&1]["in_handler"]), (5000, 2));
    assert_eq!(recording.lost() + unsaid, 0);
}

#[test]
fn whose_second_thread_calls_before_the_first_has_attached_them() {
    let program = Build::with(&["-O2"]).program("children.c", "children-early", &["-lpthread"]);
    let host = Host::new(Options { signals_heirs: true, ..Options::default() });
    expect_success(&host.run(&program, &["early"]));
    let unsaid = host.unsaid();
    let recording = Recording::new(&host.finish());
    let of_child = |(thread, items): (&(usize, u32), &Vec<Item>)| {
        let is_event = |item: &&Item| matches!(item, Item::Call(_) | Item::Return(_));
        if thread.0 == 1 { items.iter().filter(is_event).count() as u64 } else { 0 }
    };
    let written: u64 = recording.threads.iter().map(of_child).sum();
    // Two runs of `repeat`, and what they called.
    assert_eq!((written, recording.lost() + unsaid), (2 * (1 + 1 + 100 + 1 + 10), 0));
}

/// Until then, it is by this memory that a recorder knows of them.
#[test]
fn that_share_the_memory_of_their_parent_until_they_attach() {
    let program = Build::with(&["-O2"]).program("children.c", "children-heirs", &["-lpthread"]);
    let host = Host::new(Options::default());
    expect_success(&host.run(&program, &["maps"]));
    assert_eq!(host.heirs(), [false, true]);
}

#[test]
fn of_vfork_and_exec() {
    let recording = record("vfork", &["-O2"]);
    let calls = calls(&recording);
    assert_eq!(calls.len(), 4);
    assert_eq!(calls[&0]["in_parent"], 4000);
    assert_eq!(calls[&0]["in_child"], 3, "the child of vfork runs in its parent's thread");
    for process in 1..4 {
        assert_eq!(calls[&process]["executed"], 7);
    }
    let marks: Vec<u32> = recording.threads[&(0, 1)]
        .iter()
        .filter_map(|item| match item {
            Item::Escape(code @ (code::VFORK_BEGIN | code::VFORK_END), ..) => Some(*code),
            _ => None,
        })
        .collect();
    assert_eq!(marks, [code::VFORK_BEGIN, code::VFORK_END].repeat(3));
}

#[test]
fn of_exec() {
    let recording = record("exec", &["-O2"]);
    let calls = calls(&recording);
    assert_eq!(calls[&0]["in_parent"], 1000);
    assert_eq!(calls[&1]["executed"], 7);
}

#[test]
fn that_are_daemons_without_descriptors_or_environment() {
    let recording = record("daemon", &["-O2"]);
    let calls = calls(&recording);
    assert_eq!(calls[&0]["in_parent"], 1000);
    assert_eq!(calls[&1]["in_child"], 100_000);
    assert_eq!(calls[&2]["in_grandchild"], 100_000);
}
