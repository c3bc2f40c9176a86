//! What was summed and counted is handed over, in memory that is too small for all of it at once.

use super::host::Host;
use super::taken::{arcs, tree};
use super::{LOW, Thread, attach};
use crate::arcs::Counted;
use crate::platform::played;
use crate::sums::Sums;
use std::cell::Cell;
use std::rc::Rc;
use teeperf_tally::arcs::{Arcs, layout};
use teeperf_wire::arena::{MIN_LENGTH, OF_TREE, SEGMENT, baton, head, piece, request};
use teeperf_wire::shared::{OnFull, chunk, clock, control, segment};
use teeperf_wire::tree::node;

/// Paths, or pairs of places: more than a chunk has room for.
const MANY: usize = if cfg!(miri) { 130 } else { 300 };
/// Memory with room for all of it.
const LARGE: usize = if cfg!(miri) { 1 << 16 } else { 1 << 20 };
/// So often a test does the same again: once more under Miri, which takes a minute for each.
const AGAIN: u64 = if cfg!(miri) { 1 } else { 3 };

/// What sums.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Hooks,
    Counting,
}

/// A thread that sums all, and its host.
struct Pair {
    by: By,
    thread: Thread,
    arcs: &'static Arcs,
    host: Rc<Host>,
}

impl Pair {
    fn new(by: By, length: usize, on_full: OnFull) -> Self {
        played::SUMS.set(by == By::Hooks);
        let (mut thread, arcs) = (Thread::new(), arcs(1 << 16));
        match by {
            By::Hooks => thread.sums = Sums::of(tree(1 << 16)),
            By::Counting => thread.counted = Counted::of(arcs),
        }
        played::HOST.set(Some(Box::new(|| ())));
        Self { by, thread, arcs, host: Rc::new(Host::new(length, on_full)) }
    }

    fn attach(&self) {
        attach(&self.thread, &self.host).unwrap();
    }

    /// Calls on so many paths; how many events those are that can be lost.
    fn call(&self, paths: usize) -> u64 {
        for at in 1..=paths {
            match self.by {
                By::Hooks => self.thread.event(LOW + 16 * at, 0),
                By::Counting => self.thread.arc(self.arcs, LOW + 16 * at, LOW),
            }
        }
        for at in (1..=paths).rev().filter(|_| self.by == By::Hooks) {
            self.thread.event(LOW + 16 * at, 1);
        }
        paths as u64 * if self.by == By::Hooks { 2 } else { 1 }
    }

    /// The host drains while it is waited for.
    fn drains(&self) {
        let host = Rc::clone(&self.host);
        played::HOST.set(Some(Box::new(move || host.drain())));
    }

    /// The host asks for what there is.
    fn ask(&self) -> u32 {
        let asked = self.host.read(request::ASKED) + 1;
        self.host.write(request::ASKED, asked);
        asked
    }

    fn answered(&self) -> u32 {
        self.host.read(request::ANSWERED)
    }

    fn summed(&self) -> u64 {
        self.host.summed()[0]
    }

    /// How often the host was told that nothing was free: with each look of one who waits.
    fn looks(&self) -> u32 {
        self.host.read(SEGMENT + segment::WANTED)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        played::HOST.set(None);
        played::SUMS.set(false);
    }
}

#[test]
fn sums_wait_until_there_is_room() {
    for by in [By::Hooks, By::Counting] {
        // A single chunk, which the image was announced in, and a few.
        for length in [MIN_LENGTH, MIN_LENGTH + 2 * 4096] {
            let pair = Pair::new(by, length, OnFull::Wait);
            pair.drains();
            for round in 1..=AGAIN {
                pair.attach();
                pair.call(MANY);
                pair.thread.detach();
                assert_eq!(pair.summed(), round * MANY as u64);
                assert_eq!(pair.host.untold(), 0);
            }
        }
    }
}

/// Guards: a thread does not wait for ever, and what is left counts as lost until it is handed over.
#[test]
fn what_finds_no_room_is_lost_until_it_is_handed_over() {
    for by in [By::Hooks, By::Counting] {
        let all = [OnFull::Drop, OnFull::Wait, OnFull::Stop];
        for &on_full in if cfg!(miri) { &all[..1] } else { &all } {
            let pair = Pair::new(by, MIN_LENGTH + 4096, on_full);
            pair.attach();
            let events = pair.call(MANY);
            pair.thread.detach();
            let of_each = events / MANY as u64;
            assert_eq!(of_each * pair.summed() + pair.host.untold(), events);
            assert!(pair.host.untold() > 0);
            // Several times as much: a bit in each round.
            for round in 2..=AGAIN + 1 {
                pair.attach();
                pair.call(MANY);
                pair.thread.detach();
                assert_eq!(of_each * pair.summed() + pair.host.untold(), round * events);
            }
            pair.drains();
            for _ in 0..9 {
                pair.attach();
                pair.thread.detach();
                pair.host.drain();
            }
            assert_eq!((of_each * pair.summed(), pair.host.untold()), ((AGAIN + 1) * events, 0));
        }
    }
}

/// Guards: the only chunk that there is, in which the image was announced, is for sums as well.
#[test]
fn a_single_chunk_is_enough() {
    for by in [By::Hooks, By::Counting] {
        let pair = Pair::new(by, MIN_LENGTH, OnFull::Drop);
        for round in 1..=3 {
            pair.attach();
            pair.call(3);
            pair.thread.detach();
            pair.host.drain();
            assert_eq!(pair.summed() > 0, round > 1, "{round}");
        }
    }
}

/// Guards: of whom the host knows nothing it is told all that is needed, from the root on, though another that it knows has got
/// some of it.
#[test]
fn another_thread_of_the_hosts_gets_whole_paths() {
    let pair = Pair::new(By::Hooks, MIN_LENGTH + 4096, OnFull::Drop);
    pair.host.write(baton::TID, 77);
    for serial in [3, 4] {
        pair.host.write(baton::SERIAL, serial);
        pair.attach();
        pair.call(MANY);
        pair.thread.detach();
        let chunks = (0..2).map(|index| SEGMENT + segment::DATA + index * segment::SMALL_CHUNK);
        let of_trees = chunks.filter(|&at| pair.host.read(at + chunk::CLOCK) == OF_TREE);
        let first = of_trees.map(|at| pair.host.read(at + piece::FIRST)).min();
        assert_eq!(first, Some(0), "{serial}");
        pair.host.drain();
    }
}

/// Guards: code whose recorder was killed goes on at its pace, and waits again for one that is alive.
#[test]
fn who_has_waited_in_vain_does_not_wait_again() {
    for by in [By::Hooks, By::Counting] {
        let pair = Pair::new(by, MIN_LENGTH, OnFull::Wait);
        pair.host.write(baton::TID, 77);
        pair.host.write(baton::SERIAL, 3);
        let round = || {
            pair.attach();
            pair.call(MANY);
            pair.thread.detach();
        };
        round();
        let before = pair.looks();
        (0..AGAIN + 2).for_each(|_| round());
        assert!(pair.looks() - before <= 10, "{} looks", pair.looks() - before);
        pair.drains();
        pair.host.drain();
        round();
        assert_eq!((pair.summed(), pair.host.untold()), ((AGAIN + 4) * MANY as u64, 0));
    }
}

#[test]
fn what_a_recording_has_not_got_the_next_one_gets() {
    for by in [By::Hooks, By::Counting] {
        let mut pair = Pair::new(by, MIN_LENGTH, OnFull::Drop);
        pair.attach();
        let events = pair.call(MANY);
        pair.thread.detach();
        let lost = pair.host.untold();
        assert_eq!(lost, events);
        // It ends in the midst of what comes then, which stays for the next, though there is room by now.
        pair.attach();
        pair.call(1);
        let summed = pair.summed();
        pair.host.write(clock::CONTROL, control::STOPPED);
        pair.thread.detach();
        assert_eq!(pair.summed(), summed);
        pair.host = Rc::new(Host::with_cookie(LARGE, OnFull::Drop, 4712));
        pair.attach();
        pair.thread.detach();
        assert_eq!((summed + pair.summed(), pair.host.untold()), (1 + MANY as u64, 0));
    }
}

/// A tick says nothing of what a counter said before, in memory that had no room then.
#[test]
fn times_of_another_clock_are_not_handed_over() {
    let mut pair = Pair::new(By::Hooks, MIN_LENGTH, OnFull::Drop);
    pair.host.tick(1000);
    pair.attach();
    pair.thread.event(LOW, 0);
    pair.host.tick(1500);
    pair.thread.event(LOW + 4, 0);
    pair.thread.sums.has_times_of_counter();
    pair.thread.detach();
    pair.host = Rc::new(Host::with_cookie(LARGE, OnFull::Drop, 4712));
    pair.host.tick(7000);
    pair.attach();
    pair.host.tick(7011);
    pair.thread.event(LOW + 4, 1);
    pair.thread.event(LOW, 1);
    pair.thread.detach();
    assert_eq!(pair.host.summed(), [2, 11]);
}

#[test]
fn who_stays_hands_over_when_the_host_asks() {
    let all = [(By::Hooks, 1), (By::Counting, 2), (By::Hooks, 2), (By::Counting, 1)];
    for &(by, clock) in if cfg!(miri) { &all[..2] } else { &all } {
        let pair = Pair::new(by, MIN_LENGTH, OnFull::Wait);
        pair.host.write(head::CLOCK, clock);
        pair.drains();
        pair.ask();
        pair.attach();
        pair.call(MANY);
        assert_eq!(pair.summed(), 0);
        for round in 1..=AGAIN {
            let asked = pair.ask();
            assert_ne!(pair.answered(), asked);
            // The first of these comes behind what is handed over, or along with it.
            pair.call(MANY);
            let calls = round * MANY as u64;
            assert!((calls..=calls + 1).contains(&pair.summed()), "{} {calls}", pair.summed());
            assert_eq!((pair.answered(), pair.host.untold()), (asked, 0));
        }
        pair.thread.detach();
        assert_eq!((pair.summed(), pair.answered()), ((AGAIN + 1) * MANY as u64, 0));
    }
}

/// Guards: a hook of code compiled with `-pg` takes the long way round when the host has asked, whatever the clock.
#[test]
fn a_request_is_seen_where_nobody_reads_the_clock() {
    let pair = Pair::new(By::Counting, LARGE, OnFull::Wait);
    pair.host.write(head::CLOCK, 2);
    let has_moved = || {
        let at = |offset| (&raw const *pair.arcs).wrapping_byte_add(offset);
        // SAFETY: fields of these types, as the hooks read them; the word is the arena's, or stands.
        unsafe { *(*at(layout::WATCHED).cast::<*const u32>()) != *at(layout::LAST).cast::<u32>() }
    };
    pair.attach();
    pair.call(3);
    for _ in 0..2 {
        assert!(!has_moved());
        pair.ask();
        assert!(has_moved());
        pair.call(3);
    }
    pair.thread.detach();
    pair.ask();
    assert!(!has_moved());
}

/// Guards: the host knows of one who ended without a word, though another has come since, and has left as it should; also of
/// one whom it had not asked yet.
#[test]
fn who_ends_without_a_word_is_known_of() {
    for by in [By::Hooks, By::Counting] {
        let mut pair = Pair::new(by, LARGE, OnFull::Wait);
        let ended = |host: &Host| host.read(request::ENDED);
        pair.ask();
        pair.attach();
        assert_ne!(pair.answered(), 0);
        pair.call(3);
        pair.thread.detach();
        pair.attach();
        assert_ne!(pair.answered(), 0);
        pair.call(3);
        assert_eq!(ended(&pair.host), 0);
        let next = Pair::new(by, LARGE, OnFull::Wait);
        pair.thread = Thread::new();
        attach(&next.thread, &pair.host).unwrap();
        assert_eq!(ended(&pair.host), 1);
        next.thread.detach();
        assert_eq!((ended(&pair.host), pair.answered()), (1, 0));
    }
}

/// Guards: where no counter says when a tree was begun, the host knows of which one a piece is.
#[test]
fn trees_of_several_images_are_known_apart() {
    let pair = Pair::new(By::Hooks, MIN_LENGTH + 7 * 4096, OnFull::Drop);
    let other = Pair::new(By::Hooks, MIN_LENGTH, OnFull::Drop);
    for thread in [&pair.thread, &other.thread, &pair.thread, &other.thread] {
        attach(thread, &pair.host).unwrap();
        thread.event(LOW, 0);
        thread.event(LOW, 1);
        thread.detach();
    }
    let chunks = (0..8).map(|index| SEGMENT + segment::DATA + index * segment::SMALL_CHUNK);
    let of_trees = chunks.filter(|&at| pair.host.read(at + chunk::CLOCK) == OF_TREE);
    let mut began: Vec<u32> = of_trees.map(|at| pair.host.read(at + piece::BEGAN)).collect();
    began.sort_unstable();
    assert_eq!(began, [1, 1, 2, 2]);
}

/// Guards: who is paused for long has handed over what was before.
#[test]
fn who_is_paused_hands_over_as_well() {
    let pair = Pair::new(By::Hooks, LARGE, OnFull::Wait);
    pair.attach();
    pair.call(5);
    pair.host.write(clock::CONTROL, control::PAUSED);
    let asked = pair.ask();
    pair.call(5);
    assert_eq!((pair.summed(), pair.answered()), (5, asked));
}

/// Guards: the time in which a thread waits is no function's.
#[test]
fn waiting_is_nobodys_time() {
    for by in [By::Hooks, By::Counting] {
        let pair = Pair::new(by, MIN_LENGTH, OnFull::Wait);
        pair.attach();
        let (host, waited) = (Rc::clone(&pair.host), Rc::new(Cell::new(0)));
        let passed = Rc::clone(&waited);
        played::HOST.set(Some(Box::new(move || {
            passed.set(passed.get() + 7);
            host.tick(10 + passed.get());
            host.drain();
        })));
        let event = |tick| {
            pair.host.tick(tick);
            match by {
                By::Hooks => pair.thread.event(LOW, 0),
                By::Counting => pair.thread.arc(pair.arcs, LOW + 16, LOW),
            }
        };
        event(3);
        pair.ask();
        event(10);
        // Since the image was announced in the only chunk.
        let waited = waited.get();
        assert!(waited > 0);
        event(1000);
        pair.thread.detach();
        assert_eq!(pair.host.summed(), [3, 1000 - waited]);
    }
}

#[test]
fn what_has_a_site_is_told_without_its_address() {
    let pair = Pair::new(By::Hooks, LARGE, OnFull::Wait);
    pair.attach();
    pair.call(3);
    pair.thread.detach();
    let nodes = pair.host.nodes();
    assert!(nodes.iter().filter(|node| node[node::WORD / 8] as u32 != 0).count() >= 3);
    for node in nodes {
        let has_word = node[node::WORD / 8] as u32 != 0;
        assert!(!has_word || node[node::ADDRESS / 8] == 0, "{node:x?}");
        assert_eq!([node[node::ENTERED / 8], node[node::OPEN / 8]], [0, 0]);
    }
}
