//! Signal handlers in the midst of hooks: nothing is lost silently, nothing comes apart.

use crate::support::Build;
use crate::support::host::{Host, Options, expect_success};
use crate::support::words::{Item, Recording};
use teeperf_wire::shared::ClockKind;

/// The numbers that the program prints, what it recorded, and how many losses it had no place to tell.
fn record(
    options: Options,
    name: &str,
    source: &str,
    arguments: &[&str],
) -> (Vec<u64>, Recording, u64) {
    let program = Build::default().program(source, name, &[]);
    let host = Host::new(options);
    let output = host.run(&program, arguments);
    expect_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
    let unsaid = host.unsaid();
    (numbers, Recording::new(&host.finish()), unsaid)
}

fn expect_all(options: Options, name: &str, arguments: &[&str]) {
    let (numbers, recording, unsaid) = record(options, name, "signals.c", arguments);
    let [handled, worked] = numbers[..] else { panic!() };
    assert!(handled >= 3000);
    let all = 4 * handled + 2 * worked + 2;
    expect_whole(&recording, unsaid, all);
    // A few of the handler's runs meet a change of chunks, or a wait for one; the others are written.
    assert!(recording.lost() * 10 <= all, "{} of {all} lost", recording.lost());
    assert!(recording.calls("inner") + recording.lost() >= handled);
}

fn expect_whole(recording: &Recording, unsaid: u64, events: u64) {
    assert_eq!(recording.events() + recording.lost() + unsaid, events);
    assert_eq!(recording.holes(), 0);
    assert_eq!(recording.expect_nested(), 0);
}

#[test]
fn every_50_us_with_the_tick() {
    // The clock moves as often as can be: most events take the slow path.
    for tick in [1, 100] {
        let tick = std::time::Duration::from_micros(tick);
        let options = Options { tick, large: 0, small: 256, ..Options::default() };
        expect_all(options, &format!("signals-{tick:?}"), &["3000"]);
    }
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

#[test]
fn that_jump_out_of_whatever_they_interrupted() {
    let options = Options { large: 0, small: 256, ..Options::default() };
    let (numbers, recording, _) = record(options, "jumps-out", "jumps_out.c", &["3000"]);
    let [handled, worked] = numbers[..] else { panic!() };
    assert!(handled >= 3000, "{handled}");
    // What was cut short between its hook's reservation and store leaves a hole; what was cut short
    // before, or not told, is missing: one event a jump at the most.
    let written = recording.events() + recording.lost() + recording.holes() as u64;
    let made = handled + 2 * worked + 1;
    assert!(written + 2 * handled >= made && written <= made + 2 * handled, "{written} of {made}");
    // A place that was given up is one event or escape; more empty places on end would be a chunk that
    // was ended in the wrong place.
    for items in recording.threads.values() {
        let longest = items.split(|item| *item != Item::Hole).map(<[Item]>::len).max().unwrap_or(0);
        assert!(longest < 16, "{longest} places on end are empty");
    }
}

/// Every place of a hook, and of the long way round, is interrupted, not by chance.
#[test]
fn after_each_single_instruction() {
    for clock in [ClockKind::Tick, ClockKind::Cycle] {
        for tick in [1, 100] {
            let tick = std::time::Duration::from_micros(tick);
            let options = Options { clock, tick, large: 0, small: 256, ..Options::default() };
            let name = format!("steps-{clock:?}-{tick:?}");
            let (numbers, recording, unsaid) = record(options, &name, "steps.c", &["40", "20"]);
            let [handled, worked, steps] = numbers[..] else { panic!() };
            assert!(steps > 40 * 20 * 50, "{steps} steps");
            expect_whole(&recording, unsaid, 4 * handled + 2 * worked);
            assert_eq!(recording.calls("work"), worked, "only what handlers call is lost");
            // What interrupts a change of chunks, or a thread's beginning.
            let lost = recording.lost() + unsaid;
            assert!(20 * lost <= 4 * handled, "{lost} of {handled} handlers' events");
        }
    }
}
