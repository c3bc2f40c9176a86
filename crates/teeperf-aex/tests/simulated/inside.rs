//! Simulated enclaves, sampled from within their host's process: each host checks its enclaves' results itself.

use crate::support::{self, assert_shares, run};
use teeperf_aex::sampler::{PRODUCTION, event};
use teeperf_aex::state::HOST_STACK;

/// As often as is asked for, not as the kernel's ticks allow, so that few seconds have many samples.
const EVENT: (&str, &str) = ("AEX_CLOCK", "event");
const FAST: (&str, &str) = ("AEX_PERIOD_NS", "200000");
/// With the host's stack.
const HOST: (&str, &str) = ("AEX_HOST", "1");

fn has_events() -> bool {
    let has_events = teeperf_aex::sampler::has_events();
    if !has_events {
        eprintln!("skipped: perf_event_open is not permitted");
    }
    has_events
}

#[test]
fn functions_have_the_share_of_their_work() {
    if !has_events() {
        return;
    }
    let run = run("rounds=80000", &[EVENT]);
    assert!(run.of(event::INSIDE).count() > 1000, "{}", run.samples.len());
    assert_eq!(run.lost, 0);
    assert_eq!(run.of(event::UNREADABLE).count(), 0);
    let difference = assert_shares(&run);
    assert!(difference < 3.0, "{difference}");
    // A function's first and last instructions have no frame of their own.
    let is_whole = |sample: &support::Taken| {
        let chain: Vec<_> = sample.chain.iter().map(String::as_str).collect();
        matches!(
            chain[..],
            ["half" | "three_tenths", "main_loop", "ecall", "enclave_entry"]
                | ["fifth", "nested_once", "main_loop", "ecall", "enclave_entry"]
        )
    };
    let whole = run.percent(event::INSIDE, is_whole);
    assert!(whole > 97.0, "{whole}");
}

#[test]
fn beside_what_is_inside_there_is_the_hosts_stack() {
    if !has_events() {
        return;
    }
    for options in ["rounds=2000", "rounds=2000 debug=0", "rounds=2000 apart=1"] {
        let run = run(options, &[EVENT, FAST, HOST]);
        let inside = run.samples.iter().filter(|sample| sample.event != event::OUTSIDE);
        let hosts: Vec<_> = inside.map(|sample| sample.host.as_ref().unwrap()).collect();
        assert!(hosts.len() > 100, "{options}: {}", hosts.len());
        // It goes on where enclaves are resumed.
        let (place, stack) = hosts[0];
        assert!(hosts.iter().all(|(at, _)| at == place), "{options}");
        assert!((256..=HOST_STACK).contains(&stack.len()), "{}", stack.len());
        assert!(run.of(event::OUTSIDE).all(|sample| sample.host.is_none()));
    }
    let short = run("rounds=2000", &[EVENT, FAST, HOST, ("AEX_STACK", "64")]);
    let hosts = short.of(event::INSIDE).map(|sample| sample.host.as_ref().unwrap());
    assert!(hosts.into_iter().all(|(_, stack)| stack.len() == 64));
}

#[test]
fn by_processor_time_there_are_samples_and_they_stand_for_all_of_it() {
    let run = run("rounds=15000", &[]);
    let (mut inside, mut all) = (0, 0);
    for sample in &run.samples {
        all += sample.period;
        inside += if sample.event == event::INSIDE { sample.period } else { 0 };
    }
    // Of a host that is inside all the time, but for a timer's period at the end.
    assert!(inside * 100 > all * 95, "{inside} of {all}");
    assert!(
        run.percent(event::INSIDE, |sample| sample.chain.contains(&"main_loop".to_owned())) > 95.0
    );
}

#[test]
fn by_the_kernels_events_there_are_as_many_as_asked_for() {
    if !has_events() {
        return;
    }
    let run = run("call=1 rounds=20000", &[EVENT, ("AEX_PERIOD_NS", "300000")]);
    let (mut count, mut all) = (0, 0);
    for sample in &run.samples {
        count += 1;
        all += sample.period;
    }
    // The kernel's ticks are four milliseconds apart, or one at least.
    assert!(all / count < 900_000, "{}", all / count);
    // To the end.
    assert!(count > 1000, "{count}");
    assert_shares(&run);
}

#[test]
fn a_host_gets_on_where_a_sample_takes_longer_than_a_period() {
    if !has_events() {
        return;
    }
    let slow = [EVENT, ("AEX_PERIOD_NS", "300000"), ("AEX_DELAY_NS", "20000")];
    let run = run("rounds=1000", &slow);
    // Those that an event left which went on while the first was taken.
    let soon = run.samples.iter().filter(|sample| sample.period < 100_000).count();
    assert!(soon < 10 && run.samples.len() > 50, "{soon} of {}", run.samples.len());
}

#[test]
fn time_outside_is_not_the_enclaves() {
    if !has_events() {
        return;
    }
    let run = run("call=1 rounds=20000", &[EVENT, ("AEX_PERIOD_NS", "500000")]);
    let time = |event| run.of(event).map(|sample| sample.period).sum::<u64>() as f64;
    let inside = 100.0 * time(event::INSIDE) / (time(event::INSIDE) + time(event::OUTSIDE));
    // Half of the work is the OCALLs', and some of the simulated processor's, which is outside as well.
    assert!((42.0..53.0).contains(&inside), "{inside}");
    assert_shares(&run);
}

#[test]
fn ecalls_in_ocalls_are_sampled_too() {
    if !has_events() {
        return;
    }
    let run = run("call=1 nested=1 rounds=4000", &[EVENT, FAST]);
    assert_shares(&run);
    assert_eq!((run.lost, run.of(event::UNREADABLE).count()), (0, 0));
}

#[test]
fn an_exceptions_handler_has_what_it_interrupted_below() {
    if !has_events() {
        return;
    }
    let run = run("call=2 rounds=10000 apart=1", &[EVENT, FAST]);
    let chain = |sample: &support::Taken| sample.chain.join(" ");
    let all = "in_exception handle_exception enclave_entry fault ecall enclave_entry";
    let handled = run.percent(event::INSIDE, |sample| chain(sample).starts_with("in_exception"));
    let whole = run.percent(event::INSIDE, |sample| chain(sample) == all);
    assert!(handled > 60.0 && whole > handled * 0.97, "{whole} of {handled}");
}

#[test]
fn threads_share_tcss_and_each_is_sampled() {
    if !has_events() {
        return;
    }
    let run = run("threads=4 tcs=2 rounds=2000 times=6", &[EVENT, ("AEX_PERIOD_NS", "500000")]);
    assert_shares(&run);
    let mut threads: Vec<_> = run.of(event::INSIDE).map(|sample| sample.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads.len(), 4);
    assert_eq!(run.lost, 0);
}

#[test]
fn a_production_enclave_is_said_once_and_its_samples_are_counted() {
    if !has_events() {
        return;
    }
    let run = run("debug=0 rounds=2000 threads=2", &[EVENT, FAST]);
    let said = String::from_utf8_lossy(&run.output.stderr).into_owned();
    assert_eq!(said, format!("teeperf: the enclave at {:#x} {PRODUCTION}\n", run.bases[0]));
    assert_eq!((run.of(event::INSIDE).count(), run.reads), (0, 0));
    let unreadable: Vec<_> = run.of(event::UNREADABLE).collect();
    assert!(unreadable.len() > 100, "{}", unreadable.len());
    assert!(
        unreadable
            .iter()
            .all(|sample| sample.ip - run.bases[0] < 4 << 20 && sample.chain.is_empty())
    );
}

#[test]
fn enclaves_come_and_go() {
    if !has_events() {
        return;
    }
    let run = run("lives=100 rounds=40 threads=2", &[EVENT, FAST]);
    assert_eq!(run.bases.len(), 100);
    assert!(run.of(event::INSIDE).count() > 200);
    assert!(run.of(event::INSIDE).all(|sample| !run.name(sample.ip).starts_with("0x")));
    assert_eq!(run.of(event::UNREADABLE).count(), 0);
}

#[test]
fn a_child_process_is_not_sampled_and_its_parent_goes_on() {
    if !has_events() {
        return;
    }
    let run = run("fork=1 lives=5 rounds=1000", &[EVENT, FAST]);
    assert_shares(&run);
}

#[test]
fn floating_point_numbers_survive_thousands_of_exits_a_second() {
    if !has_events() {
        return;
    }
    let run = run("call=3 rounds=200000 frame=4", &[EVENT, ("AEX_PERIOD_NS", "100000")]);
    assert!(run.of(event::INSIDE).count() > 500);
}

#[test]
fn a_stack_is_copied_and_what_is_read_is_counted() {
    if !has_events() {
        return;
    }
    let run = run("rounds=4000", &[EVENT, ("AEX_STACK", "2048"), ("AEX_DELAY_NS", "100")]);
    let mut words = 0;
    for sample in run.of(event::INSIDE) {
        words += 2 + 18 + sample.stack.len() as u64 / 8;
        assert!(sample.stack.len() <= 2048);
        if run.name(sample.ip) == "fifth" && sample.stack.len() >= 64 {
            let returns =
                sample.stack.as_chunks().0.iter().map(|&word| run.name(u64::from_le_bytes(word)));
            assert!(returns.into_iter().any(|name| name == "main_loop"), "{sample:x?}");
        }
    }
    assert!(words > 20_000, "{words}");
    assert_eq!(run.words, words);
}

#[test]
fn a_library_that_knows_nothing_of_it_runs_right_and_its_stack_leads_to_who_called_it() {
    if !has_events() {
        return;
    }
    // It has no frame pointers; the enclave itself compares what it unpacked with what it packed.
    // Nothing drains its ring, which has room for four times the samples of a fast processor.
    let run = support::run_with(
        "zstd.so",
        "rounds=400",
        &[EVENT, ("AEX_PERIOD_NS", "3000000"), ("AEX_STACK", "8192")],
    );
    assert_eq!((run.lost, run.of(event::UNREADABLE).count()), (0, 0));
    let is_zstd =
        |name: &str| ["ZSTD_", "HUF_", "FSE_", "HIST_"].iter().any(|part| name.starts_with(part));
    let share = run.percent(event::INSIDE, |sample| is_zstd(&run.name(sample.ip)));
    assert!(share > 60.0, "{share}");
    let is_led = |sample: &support::Taken| {
        let mut words =
            sample.stack.as_chunks().0.iter().map(|&word| run.name(u64::from_le_bytes(word)));
        words.any(|name| name == "one_round")
    };
    let led = run.percent(event::INSIDE, |sample| is_zstd(&run.name(sample.ip)) && is_led(sample));
    assert!(led > share * 0.97, "{led} of {share}");
}
