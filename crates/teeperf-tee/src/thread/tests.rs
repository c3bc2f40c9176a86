//! A thread beside a host that is played here, in memory that is its own: what it writes is compared with what
//! a slow model says, and nothing that the host may write leads it out of the memory.

mod handed;
mod host;
mod model;
mod taken;

use super::{Image, Thread};
use crate::arena::Refusal;
use host::{Host, Seen};
use proptest::prelude::*;
use teeperf_wire::arena::{MIN_LENGTH, SEGMENT, baton, head};
use teeperf_wire::shared::{OnFull, clock, control, segment};
use teeperf_wire::word::gap;

/// Addresses below it and from `LOW + LENGTH` on have no sites.
const LOW: usize = 0x1000_0000;
const LENGTH: usize = 0x10_0000;
/// Most steps of a case. Miri is some hundred times slower.
const STEPS: usize = if cfg!(miri) { 12 } else { 500 };
const IMAGE: Image = Image { anchor: LOW + 0x800, low: LOW, length: LENGTH, name: b"image.elf" };

fn attach(thread: &Thread, host: &Host) -> Result<bool, Refusal> {
    // SAFETY: the host's memory stays as long as the test holds it.
    unsafe { thread.attach(host.base(), host.length(), &IMAGE) }
}

/// A host that drops what has no room, and says as which thread to go on.
fn host_of_one(length: usize) -> Host {
    let host = Host::new(length, OnFull::Drop);
    host.write(baton::TID, 77);
    host.write(baton::SERIAL, 3);
    host
}

fn call(function: usize) -> Seen {
    Seen::Event { address: LOW + function, kind: 0 }
}

fn ret(function: usize) -> Seen {
    Seen::Event { address: LOW + function, kind: 1 }
}

#[test]
fn a_new_thread_is_all_zero() {
    let thread = Thread::new();
    let size = size_of::<Thread>();
    // Bytes between fields are left out of it: each field is asked for by itself.
    assert!(thread.watched.get().is_null() && thread.next.get().is_null());
    assert_eq!((thread.sites.get(), thread.window.get(), thread.state.get() as u32), (0, 0, 0));
    assert!(thread.arena().is_none() && thread.chunk().is_none());
    assert!(size <= 512, "{size}");
}

#[test]
fn without_an_arena_events_go_nowhere() {
    let thread = Thread::new();
    thread.event(LOW, 0);
    thread.detach();
    assert!(!thread.is_attached() && !thread.is_recording());
}

#[test]
fn near_and_far_calls_stand_with_their_times() {
    let host = Host::new(1 << 20, OnFull::Drop);
    let thread = Thread::new();
    host.tick(5);
    attach(&thread, &host).unwrap();
    thread.event(LOW + 8, 0);
    host.tick(6);
    thread.event(LOW - 4, 0);
    host.tick(6 + (1 << 24));
    thread.event(LOW - 4, 1);
    // The low half alone went back.
    host.tick((1 << 32) + 7);
    thread.event(LOW + 8, 1);
    thread.detach();
    let far = |kind| Seen::Event { address: LOW - 4, kind };
    let module = Seen::Module { low: -0x800, sites: LENGTH as u32 };
    let times =
        [(5, module), (5, call(8)), (6, far(0)), (6 + (1 << 24), far(1)), ((1 << 32) + 7, ret(8))];
    assert_eq!(host.seen(), times);
}

#[test]
fn every_refusal_has_its_reason() {
    let host = Host::new(1 << 20, OnFull::Drop);
    let thread = Thread::new();
    let come = |base: *mut u8, length| {
        // SAFETY: the host's memory, or refused before it is looked at.
        unsafe { thread.attach(base, length, &IMAGE) }
    };
    assert_eq!(come(std::ptr::null_mut(), MIN_LENGTH), Err(Refusal::Misaligned));
    assert_eq!(come(host.base().wrapping_add(4), MIN_LENGTH), Err(Refusal::Misaligned));
    assert_eq!(come(host.base(), MIN_LENGTH - 1), Err(Refusal::TooSmall));
    let high = host.base().with_addr(usize::MAX & !63);
    assert_eq!(come(high, MIN_LENGTH), Err(Refusal::TooSmall));
    host.write(head::CLOCK, 7);
    assert_eq!(attach(&thread, &host), Err(Refusal::Clock));
    host.write(head::CLOCK, 1);
    host.write(head::MAGIC, 0);
    assert_eq!(attach(&thread, &host), Err(Refusal::Unknown));
    assert!(!thread.is_attached());
    let host = Host::new(1 << 20, OnFull::Drop);
    attach(&thread, &host).unwrap();
    assert_eq!(attach(&thread, &host), Err(Refusal::Attached));
}

#[test]
fn a_pause_is_a_gap_that_knows_what_became_of_the_stack() {
    let host = Host::new(1 << 20, OnFull::Drop);
    let thread = Thread::new();
    attach(&thread, &host).unwrap();
    thread.event(LOW, 0);
    thread.event(LOW + 4, 0);
    host.write(clock::CONTROL, control::PAUSED);
    host.tick(10);
    for kind in [1, 1, 0] {
        thread.event(LOW + 4, kind);
    }
    assert!(!thread.is_recording());
    // Leaving and coming back in the middle of it does not end it.
    thread.detach();
    attach(&thread, &host).unwrap();
    thread.event(LOW + 8, 0);
    host.tick(25);
    host.write(clock::CONTROL, 0);
    thread.event(LOW + 12, 0);
    thread.detach();
    let gap = |events, popped, pushed, units| {
        let reason = gap::PAUSED;
        Seen::Gap { reason, events, popped, pushed, units }
    };
    let seen: Vec<Seen> = host.seen().into_iter().map(|(_, seen)| seen).collect();
    assert_eq!(seen[1..], [call(0), call(4), gap(3, 2, 1, 0), gap(1, 0, 1, 15), call(12),]);
}

#[test]
fn a_host_that_is_to_stop_when_full_is_told_so_and_no_more() {
    let host = Host::new(MIN_LENGTH, OnFull::Stop);
    let thread = Thread::new();
    attach(&thread, &host).unwrap();
    for _ in 0..2000 {
        thread.event(LOW, 0);
        thread.event(LOW, 1);
    }
    assert!(!thread.is_recording());
    let last = Seen::Gap { reason: gap::STOPPED, events: 0, popped: 0, pushed: 0, units: 0 };
    assert_eq!(host.seen().last().unwrap().1, last);
    host.drain();
    thread.detach();
    attach(&thread, &host).unwrap();
    thread.event(LOW, 0);
    assert_eq!(host.untold(), 0);
    assert!(!thread.is_recording());
}

#[test]
fn a_host_that_frees_nothing_is_not_waited_for_for_ever() {
    let host = Host::new(MIN_LENGTH, OnFull::Wait);
    let thread = Thread::new();
    attach(&thread, &host).unwrap();
    for _ in 0..2000 {
        thread.event(LOW, 0);
    }
    host.drain();
    host.tick(9);
    thread.event(LOW, 0);
    thread.detach();
    let seen = host.seen();
    let stalled = |seen: &&(u64, Seen)| matches!(seen.1, Seen::Gap { reason: gap::STALLED, .. });
    let Seen::Gap { events, pushed, .. } = seen.iter().find(stalled).unwrap().1 else { panic!() };
    assert_eq!(events, u64::from(pushed));
    assert_eq!(model::depth(&seen), 2001);
    assert_eq!(host.untold(), 0);
}

/// Guards: a program whose recorder was killed goes on at its pace.
#[test]
fn who_comes_behind_one_that_waited_in_vain_does_not_wait() {
    let host = Host::new(MIN_LENGTH, OnFull::Wait);
    host.write(baton::TID, 77);
    host.write(baton::SERIAL, 3);
    let (one, other) = (Thread::new(), Thread::new());
    attach(&one, &host).unwrap();
    for _ in 0..2000 {
        one.event(LOW, 0);
    }
    one.detach();
    // A thread that waits says so with each look.
    let looks = || host.read(SEGMENT + segment::WANTED);
    let before = looks();
    for thread in [&other, &one, &other] {
        attach(thread, &host).unwrap();
        thread.event(LOW + 4, 0);
        thread.event(LOW + 4, 1);
        thread.detach();
    }
    assert_eq!(looks(), before);
    host.drain();
    attach(&one, &host).unwrap();
    one.event(LOW + 8, 0);
    one.detach();
    let seen = host.seen();
    assert_eq!((model::depth(&seen), host.untold()), (2001, 0));
    assert_eq!(seen.last().unwrap().1, call(8));
}

#[test]
fn whoever_is_named_goes_on_in_the_chunk_that_was_left() {
    let host = host_of_one(1 << 20);
    let (one, other) = (Thread::new(), Thread::new());
    attach(&one, &host).unwrap();
    one.event(LOW, 0);
    one.detach();
    host.write(baton::FIRST_SITE, 0x100_1000);
    host.write(baton::SITES, 0x10_0000);
    attach(&other, &host).unwrap();
    other.event(LOW + 4, 0);
    other.event(LOW + 4, 1);
    other.detach();
    host.write(baton::FIRST_SITE, 0);
    attach(&one, &host).unwrap();
    one.event(LOW, 1);
    one.detach();
    let seen: Vec<Seen> = host.seen().into_iter().map(|(_, seen)| seen).collect();
    assert_eq!([&seen[1..2], &seen[3..]].concat(), [call(0), call(4), ret(4), ret(0)]);
    assert_eq!(host.chunks_used(), 1);
}

proptest! {
    #[test]
    fn what_is_written_is_what_happened(steps in model::steps(), is_small: bool) {
        let length = if is_small { MIN_LENGTH } else { 1 << 20 };
        model::compare(length, &steps)?;
    }

    /// Whatever stands in the memory, and whenever it changes.
    #[test]
    fn nothing_leads_out_of_the_memory(
        rounds in prop::collection::vec((any::<u64>(), 0..STEPS.min(40), any::<bool>()), 1..STEPS.min(40)),
        is_small: bool,
        on_full in prop::sample::select(&[OnFull::Drop, OnFull::Stop][..]),
    ) {
        let length = if is_small { MIN_LENGTH + 4096 } else { (1 << 20) + 4096 };
        let mut host = Host::new(length, on_full);
        let thread = Thread::new();
        for (seed, events, comes) in rounds {
            host.scribble(seed);
            if comes {
                thread.detach();
                host.move_elsewhere();
                let _ = attach(&thread, &host);
            }
            for at in 0..events {
                host.scribble(seed.wrapping_add(at as u64));
                for _ in 0..STEPS.min(60) {
                    thread.event(LOW.wrapping_add(seed as usize % (2 * LENGTH)), at as u32 & 1);
                }
            }
        }
        thread.detach();
        prop_assert!(host.surroundings_are_whole());
    }
}

/// An arena whose first thread has lost some events, and has been drained since.
fn host_of_losses() -> (Host, Thread) {
    let host = host_of_one(MIN_LENGTH);
    let thread = Thread::new();
    attach(&thread, &host).unwrap();
    lose(&host, &thread, LOW, 10);
    (host, thread)
}

/// Calls until so many events count as lost. The host sums losses of many lines, which takes Miri
/// long: it does so where there is no room any more.
fn lose(host: &Host, thread: &Thread, function: usize, least: u64) {
    while host.untold() < least {
        let calls = (thread.room() / 4).max(1);
        for _ in 0..calls {
            thread.event(function, 0);
            thread.event(function, 1);
        }
    }
}

fn told(host: &Host) -> u64 {
    let events = host.seen().into_iter().map(|(_, seen)| match seen {
        Seen::Gap { events, .. } => events,
        _ => 0,
    });
    events.sum()
}

#[test]
fn what_was_lost_before_a_pause_is_told_once() {
    for comes_to_room in [true, false] {
        let (host, thread) = host_of_losses();
        thread.detach();
        if comes_to_room {
            host.drain();
        }
        host.write(clock::CONTROL, control::PAUSED);
        attach(&thread, &host).unwrap();
        host.write(clock::CONTROL, 0);
        thread.event(LOW + 4, 0);
        thread.event(LOW + 4, 1);
        thread.detach();
        let lost = if comes_to_room { (10, 0) } else { (0, 12) };
        assert_eq!((told(&host), host.untold()), lost);
    }
}

#[test]
fn numbers_of_chunks_are_given_once() {
    let host = host_of_one(MIN_LENGTH + 2 * 4096);
    let (client, inside) = (Thread::new(), Thread::new());
    attach(&client, &host).unwrap();
    client.event(LOW, 0);
    client.detach();
    attach(&inside, &host).unwrap();
    lose(&host, &inside, LOW + 4, 4);
    // It ends without a word, and the host frees what it has handed over.
    let given = inside.who.get().sequence;
    host.drain();
    assert_eq!(attach(&client, &host), Ok(true));
    client.event(LOW, 1);
    assert_eq!(client.who.get().sequence, given + 1);
}

#[cfg(feature = "nested")]
#[test]
fn what_interrupted_hooks_counts_as_lost_where_there_is_no_room() {
    let host = Host::new(MIN_LENGTH, OnFull::Drop);
    let thread = Thread::new();
    attach(&thread, &host).unwrap();
    while thread.room() >= 8 {
        thread.event(LOW, 0);
    }
    assert!(thread.nested.begin());
    for kind in [0, 1, 0, 1] {
        thread.event(LOW + 4, kind);
    }
    thread.nested.end();
    thread.detach();
    assert_eq!(told(&host) + host.untold(), 4);
}
