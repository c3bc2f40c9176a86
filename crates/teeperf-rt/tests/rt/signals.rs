//! Signal handlers in the midst of hooks: nothing is lost silently, nothing comes apart.

use crate::support::Build;
use crate::support::host::{self, Host, Options, expect_success};
use crate::support::words::{Gap, Item, Recording, gap};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use teeperf_wire::hello::flag;
use teeperf_wire::shared::{ClockKind, OnFull, control};
use teeperf_wire::word::code;

/// The numbers that a program printed.
fn numbers(output: Output) -> Vec<u64> {
    expect_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().map(|n| n.parse().unwrap()).collect()
}

/// What was recorded, and how many losses the program had no place to tell.
fn finish(host: Host) -> (Recording, u64) {
    let unsaid = host.unsaid();
    (Recording::new(&host.finish()), unsaid)
}

fn expect_all(options: Options, name: &str, arguments: &[&str]) {
    let program = Build::default().program("signals.c", name, &[]);
    let host = Host::new(options);
    let [handled, worked] = numbers(host.run(&program, arguments))[..] else { panic!() };
    let (recording, unsaid) = finish(host);
    assert!(handled >= 3000);
    let all = 4 * handled + 2 * worked + 2;
    expect_whole(&recording, unsaid, all);
    // Handlers that meet a change of chunks, or a wait for one, come behind it, or wait as well.
    assert_eq!((recording.lost(), recording.calls("inner")), (0, handled));
}

fn expect_whole(recording: &Recording, unsaid: u64, events: u64) {
    assert_eq!(recording.events() + recording.lost() + unsaid, events);
    assert_eq!(recording.holes(), 0);
    assert_eq!(recording.expect_nested(), 0);
}

#[test]
fn every_50_us_with_the_tick() {
    // The clock moves as often as can be: most events take the slow path.
    for (tick, flags) in [(1, 0), (100, 0), (1, flag::RESTARTABLE), (100, flag::RESTARTABLE)] {
        let tick = std::time::Duration::from_micros(tick);
        let options = Options { tick, flags, large: 0, small: 256, ..Options::default() };
        expect_all(options, &format!("signals-{tick:?}-{flags}"), &["3000"]);
    }
}

#[test]
fn where_the_c_library_has_no_restartable_sequences() {
    let program = Build::default().program("signals.c", "signals-without", &[]);
    let recorder = Host::new(Options { flags: flag::RESTARTABLE, ..Options::default() });
    let mut command = recorder.command(&program);
    command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0").arg("300").stdout(Stdio::piped());
    let [handled, worked] = numbers(host::finish(&mut command))[..] else { panic!() };
    let (recording, unsaid) = finish(recorder);
    expect_whole(&recording, unsaid, 4 * handled + 2 * worked + 2);
}

#[test]
fn every_50_us_with_the_cycle_clock() {
    let options = Options { clock: ClockKind::Cycle, large: 0, small: 256, ..Options::default() };
    expect_all(options, "signals-cycle", &["3000"]);
}

#[test]
fn on_a_stack_of_their_own() {
    let options = Options { large: 0, small: 256, ..Options::default() };
    expect_all(options, "signals-stack", &["3000", "stack"]);
}

/// Then some of them meet a thread in the midst of a change of chunks.
#[test]
fn that_cannot_be_kept_back() {
    let program = Build::default().program("signals.c", "signals-refused", &[]);
    for stack in [&[][..], &["stack"]] {
        let host = Host::new(Options { large: 0, small: 256, ..Options::default() });
        let arguments = [&["1500", "refused"], stack].concat();
        let [handled, worked] = numbers(host.run(&program, &arguments))[..] else { panic!() };
        let (recording, unsaid) = finish(host);
        let all = 4 * handled + 2 * worked + 2;
        expect_whole(&recording, unsaid, all);
        assert!(recording.lost() * 10 <= all, "{} of {all} lost", recording.lost());
    }
}

#[test]
fn in_a_child_that_has_its_parents_memory() {
    let options = Options { flags: flag::RESTARTABLE, large: 0, small: 256, ..Options::default() };
    expect_all(options, "signals-vfork", &["3000", "vfork"]);
}

#[test]
fn that_jump_out_of_whatever_they_interrupted() {
    for masks in [&[][..], &["refused"]] {
        let options = Options { large: 0, small: 256, ..Options::default() };
        expect_at_most_one_lost_each(jumps_out(options, "jumps-out", masks, false));
    }
}

fn expect_at_most_one_lost_each((handled, worked, told): (u64, u64, Told)) {
    // A jump between a hook's reservation and its store leaves a hole. A jump before the reservation, or
    // out of counting a loss, hides one event.
    let Told { recording, unsaid } = told;
    let said = recording.events() + recording.lost() + recording.holes() as u64;
    // A jump between the two counts of a loss may leave the one in memory below zero.
    let written = said.wrapping_add(unsaid);
    let made = handled + 2 * worked + 1;
    assert!(written + 2 * handled >= made && written <= made + 2 * handled, "{written} of {made}");
}

#[test]
fn that_jump_out_while_events_are_dropped_or_recording_is_paused() {
    let options = Options { large: 0, small: 256, ..Options::default() };
    jumps_out(options, "jumps-out-paused", &[], true);
    let options = Options { large: 0, small: 2, grows: false, ..options };
    for masks in [&[][..], &["refused"]] {
        let options = Options { on_full: OnFull::Drop, ..options };
        jumps_out(options, "jumps-out-dropped", masks, false);
    }
}

/// What a run told of its events. A jump out of asking for memory, where signals cannot be kept back, leaves
/// the process without more of it: then losses stay unsaid in chunks, and stand in shared memory alone.
struct Told {
    recording: Recording,
    unsaid: u64,
}

/// Runs `jumps_out.c`: how often it jumped, how often it worked, what was told.
fn jumps_out(options: Options, name: &str, masks: &[&str], pauses: bool) -> (u64, u64, Told) {
    let program = Build::default().program("jumps_out.c", name, &[]);
    let host = Host::new(options);
    let output = run_with(&host, &program, &[&["3000"], masks].concat(), pauses);
    let [handled, worked] = numbers(output)[..] else { panic!() };
    let (recording, unsaid) = finish(host);
    assert!(handled >= 3000, "{handled}");
    // Calls that were jumped out of are left, whatever the jump interrupted.
    for items in recording.threads.values() {
        let is_work = |item: &Item| matches!(item, Item::Call(name) if name == "work");
        let at_work = depths(items).into_iter().zip(items).filter(|(_, item)| is_work(item));
        let (all, deep) =
            at_work.fold((0, 0), |(all, deep), (at, _)| (all + 1, deep + u64::from(at > 3)));
        assert!(100 * deep <= all, "{deep} of {all} calls lie too deep");
    }
    // A place that was given up is one event or escape; more empty places on end would be a chunk that
    // was ended in the wrong place.
    for items in recording.threads.values() {
        let longest = items.split(|item| *item != Item::Hole).map(<[Item]>::len).max().unwrap_or(0);
        assert!(longest < 16, "{longest} places on end are empty");
    }
    (handled, worked, Told { recording, unsaid })
}

/// Runs a program, and has its recording paused and resumed all the time, or not.
fn run_with(host: &Host, program: &Path, arguments: &[&str], pauses: bool) -> Output {
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let turns = || {
            while !has_ended.load(Relaxed) {
                for bits in [control::PAUSED, 0] {
                    host.control(bits);
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
        };
        pauses.then(|| scope.spawn(turns));
        let output = host.run(program, arguments);
        has_ended.store(true, Relaxed);
        output
    })
}

/// How many calls were open behind each item, where one mark is jumped to.
fn depths(items: &[Item]) -> Vec<u32> {
    let (mut depth, mut marked) = (0_u32, 0);
    let after = |item: &Item| {
        match item {
            Item::Call(_) => depth += 1,
            Item::Return(_) => depth = depth.saturating_sub(1),
            Item::Escape(code::MARK, ..) => marked = depth,
            Item::Escape(code::JUMP, ..) => depth = marked,
            _ => {
                let gap = gap(item).unwrap_or_default();
                depth = depth.saturating_sub(gap.popped) + gap.pushed;
            }
        }
        depth
    };
    items.iter().map(after).collect()
}

#[test]
fn that_jump_out_of_attaching() {
    let program = Build::default().program("jumps_attaching.c", "jumps-attaching", &[]);
    for flags in [0, flag::RESTARTABLE] {
        let host = Host::new(Options { small: 256, flags, ..Options::default() });
        let [children, steps] = numbers(host.run(&program, &["23"]))[..] else { panic!() };
        assert!(steps > 1000 && children > 50, "{children} children, {steps} steps");
        let (recording, _) = finish(host);
        assert_eq!(recording.calls("after"), 100 * children);
        // Nobody attached twice, and no thread began twice.
        let processes: BTreeSet<_> = recording.threads.keys().map(|(process, _)| process).collect();
        assert_eq!(recording.threads.len(), processes.len());
        assert_eq!(processes.len() as u64, 1 + children);
    }
}

/// Most events take the slow path, and many change the chunk.
#[test]
fn that_fork() {
    let program = Build::default().program("forks_in_handlers.c", "forks-in-handlers", &[]);
    for calls in [&["calls"][..], &[]] {
        let tick = Duration::from_micros(1);
        let host = Host::new(Options { tick, large: 0, small: 256, ..Options::default() });
        let [children] = numbers(host.run(&program, calls))[..] else { panic!() };
        let (recording, unsaid) = finish(host);
        // Each child is one thread, which has all of its calls.
        assert_eq!(recording.threads.len() as u64, 1 + children);
        for (thread, items) in &recording.threads {
            let is_work = |item: &&Item| matches!(item, Item::Call(name) if name == "work");
            let work = items.iter().filter(is_work).count();
            assert!(work >= 40_000 || thread.0 == 0, "{work} calls of {thread:?}");
        }
        assert_eq!(recording.calls("in_handler"), children * calls.len() as u64);
        assert_eq!((recording.lost(), unsaid), (0, 0));
    }
}

/// The child goes on in a hook that has a place in a chunk of its parent's. Chunks are large, so
/// that the recorder has not cleared that one by then.
#[test]
fn that_fork_after_single_instructions() {
    let program = Build::default().program("forks_at_steps.c", "forks-at-steps", &[]);
    let tick = Duration::from_micros(1);
    let host = Host::new(Options { tick, ..Options::default() });
    let [children, worked] = numbers(host.run(&program, &["200"]))[..] else { panic!() };
    let (recording, _) = finish(host);
    assert_eq!(recording.threads.len() as u64, 1 + children);
    let parent = recording.events_of((0, 1));
    let count = |event| parent.iter().filter(|&known| known == event).count() as u64;
    assert_eq!([count("+work"), count("-work")], [worked; 2]);
}

#[test]
fn that_interrupt_each_other_while_their_thread_waits() {
    let program = Build::default().program("nested.c", "nested", &[]);
    let options = Options { large: 0, small: 4, grows: false, drains: false, ..Options::default() };
    let host = Host::new(options);
    let [deepest] = numbers(host.run(&program, &[]))[..] else { panic!() };
    let (recording, _) = finish(host);
    assert!((2..=6).contains(&deepest), "{deepest} handlers at once");
    // The wait has ended, or nothing would be lost.
    assert!(recording.events() > 1000);
}

#[test]
fn that_jump_out_where_the_stack_ends() {
    let program = Build::default().program("overflows.c", "overflows", &["-lpthread"]);
    let host = Host::new(Options { large: 0, small: 256, ..Options::default() });
    assert_eq!(numbers(host.run(&program, &["3000"])), [0], "signals are kept back for good");
}

/// What `steps.c` did: every place of a hook, and of the long way round, is interrupted, not by chance.
struct Steps {
    handled: u64,
    worked: u64,
    recording: Recording,
    unsaid: u64,
}

impl Steps {
    /// Handlers' four events each, and the two of each call that they interrupt.
    fn events(&self) -> u64 {
        4 * self.handled + 2 * self.worked
    }
}

fn steps(options: Options, name: &str, threads: &str, pauses: bool) -> Steps {
    let program = Build::default().program("steps.c", &format!("{name}-{:?}", options.clock), &[]);
    let host = Host::new(options);
    let output = run_with(&host, &program, &[threads, "20"], pauses);
    let [handled, worked, steps] = numbers(output)[..] else { panic!() };
    assert!(steps > 10 * 20 * 50, "{steps} steps");
    let (recording, unsaid) = finish(host);
    Steps { handled, worked, recording, unsaid }
}

#[test]
fn after_each_single_instruction() {
    const TICK: ClockKind = ClockKind::Tick;
    // No restartable sequence ever comes to its end here.
    let all =
        [(TICK, 1, 0), (TICK, 100, 0), (TICK, 100, flag::RESTARTABLE), (ClockKind::Cycle, 100, 0)];
    for (clock, tick, flags) in all {
        let tick = Duration::from_micros(tick);
        let options = Options { clock, tick, flags, large: 0, small: 256, ..Options::default() };
        let steps = steps(options, &format!("steps-{tick:?}-{flags}"), "10", false);
        let Steps { handled, worked, ref recording, unsaid } = steps;
        expect_whole(recording, unsaid, steps.events());
        assert_eq!(recording.calls("work"), worked, "only what handlers call is lost");
        // What interrupts a change of chunks, or a thread's beginning.
        let lost = recording.lost() + unsaid;
        assert!(20 * lost <= 4 * handled, "{lost} of {handled} handlers' events");
    }
}

#[test]
fn after_each_single_instruction_while_events_are_dropped() {
    for clock in [ClockKind::Tick, ClockKind::Cycle] {
        let options = Options { clock, large: 0, small: 2, grows: false, ..Options::default() };
        let steps =
            steps(Options { on_full: OnFull::Drop, ..options }, "steps-dropped", "10", false);
        let Steps { recording, unsaid, .. } = &steps;
        assert_eq!(recording.events() + recording.lost() + unsaid, steps.events());
        assert_eq!(recording.holes(), 0);
        // What a thread drops at its end stands in no gap.
        recording.expect_nested();
    }
}

#[test]
fn after_each_single_instruction_while_recording_is_paused_and_resumed() {
    for clock in [ClockKind::Tick, ClockKind::Cycle] {
        let options = Options { clock, large: 0, small: 256, ..Options::default() };
        let steps = steps(options, "steps-paused", "10", true);
        let Steps { recording, worked, handled, .. } = &steps;
        assert_eq!(recording.holes(), 0, "a thread wrote where it no longer may");
        for (name, calls) in [("work", *worked), ("handler", *handled), ("inner", *handled)] {
            assert!(recording.calls(name) <= calls && recording.returns(name) <= calls, "{name}");
            assert!(recording.calls(name) > 0);
        }
        let stack = |gap: &Gap| gap.pushed.max(gap.popped);
        assert!(recording.gaps().iter().map(stack).max() < Some(100), "a count fell below zero");
    }
}
