//! What is taken in pieces, beside the same sums in memory that nobody takes from: whatever is in it, whenever somebody
//! takes and however little room there is for each piece.

use super::host::Host;
use super::{IMAGE, STEPS, Thread, attach};
use crate::arcs::Counted;
use crate::sums::Sums;
use proptest::prelude::*;
use std::collections::HashMap;
use teeperf_tally::arcs::{Arcs, Kind, NOBODY};
use teeperf_tally::tree::{Beginning, Tree};
use teeperf_wire::piece::{LEAST_ROOM, Piece, what};
use teeperf_wire::shared::OnFull;
use teeperf_wire::tree::{OVERFLOW, ROOT, node};

static STANDS: u32 = 0;

pub(super) fn tree(bytes: usize) -> Tree {
    let memory = vec![0u64; bytes / 8].leak();
    let beginning = Beginning { clock: 1, ..Beginning::default() };
    // SAFETY: memory that nobody else has.
    unsafe { Tree::begin(memory.as_mut_ptr().cast(), bytes, &beginning) }.unwrap()
}

pub(super) fn arcs(bytes: usize) -> &'static Arcs {
    let memory = vec![0u64; bytes / 8].leak();
    let arcs: &'static Arcs = Box::leak(Box::new(Arcs::new()));
    // SAFETY: memory that nobody else has, and a word that stays.
    assert!(unsafe { arcs.begin(memory.as_mut_ptr().cast(), bytes, &raw const STANDS) });
    arcs
}

/// Calls, time in itself, shortest call and one more, longest.
type Sums4 = (u64, u64, u64, u64);
/// Whether it is a span; its places.
type Key = (bool, Option<i64>, Option<i64>);

/// What all pieces together say, as an importer reads them.
#[derive(Default)]
struct Taken {
    paths: HashMap<Vec<i64>, Sums4>,
    items: HashMap<Key, u64>,
    lost: u64,
    mended: u64,
    /// Paths of the present round, by index.
    known: HashMap<u32, Vec<i64>>,
    pieces: u32,
    goes_on: bool,
    until: u64,
}

impl Taken {
    /// Takes once; whether something was left.
    fn take(&mut self, thread: &Thread, room: usize) -> bool {
        let mut bytes = vec![0; room];
        let length = thread.take(room, |at, byte| bytes[at] = byte, &IMAGE);
        if length == 0 {
            assert!(!self.goes_on, "more was promised");
            return false;
        }
        self.read(&Piece::decode(&bytes[..length]).unwrap());
        true
    }

    fn read(&mut self, piece: &Piece<'_>) {
        let header = piece.header;
        assert_eq!((header.sequence, piece.name), (self.pieces, IMAGE.name));
        assert!(header.serial > 0 && header.begin <= header.end);
        self.pieces += 1;
        self.goes_on = piece.has_more;
        self.lost += header.lost;
        self.mended += header.mended;
        if header.what == what::ARCS {
            for item in piece.items().map(Result::unwrap) {
                let [from, to] = item.places;
                *self.items.entry((item.is_span, from, to)).or_default() += item.count;
            }
            return;
        }
        if header.begins {
            assert!(header.begin >= self.until);
            self.known.clear();
        }
        self.until = header.end;
        assert!(piece.nodes().next().is_some());
        for node in piece.nodes().map(Result::unwrap) {
            let path = match node.index {
                ROOT => vec![],
                index => {
                    let mut path = self.known[&node.parent].clone();
                    path.push(if index == OVERFLOW { -1 } else { node.place.unwrap() });
                    path
                }
            };
            assert!(self.known.insert(node.index, path.clone()).is_none());
            let there = self.paths.entry(path).or_default();
            there.0 += node.calls;
            there.1 += node.own;
            there.2 =
                [there.2, node.least].into_iter().filter(|&least| least > 0).min().unwrap_or(0);
            there.3 = there.3.max(node.most);
        }
    }

    /// Two rounds: what there is, and that nothing is left then.
    fn take_all(&mut self, thread: &Thread, room: usize) {
        while self.take(thread, room) {}
        while self.take(thread, room) {}
        assert!(!self.take(thread, room));
    }
}

fn distance(address: u64) -> i64 {
    address as i64 - IMAGE.anchor as i64
}

/// All that was ever summed in a tree.
fn all(tree: &Tree) -> HashMap<Vec<i64>, Sums4> {
    let mut paths: Vec<Vec<i64>> = Vec::new();
    let mut sums = HashMap::new();
    for index in 0..tree.used() {
        let wides = tree.take(index);
        let parent = (wides[node::PARENT / 8] >> 32) as usize;
        let mut path = paths.get(parent).cloned().unwrap_or_default();
        match index {
            ROOT => {}
            OVERFLOW => path.push(-1),
            _ => path.push(distance(wides[node::ADDRESS / 8])),
        }
        let least = wides[node::LEAST / 8];
        let least = if least == 0 { 0 } else { !least + 1 };
        let own = wides[node::SELF / 8];
        sums.insert(path.clone(), (wides[node::CALLS / 8], own, least, wides[node::MOST / 8]));
        paths.push(path);
    }
    sums.retain(|_, sums| *sums != (0, 0, 0, 0));
    sums
}

proptest! {
    #[test]
    fn nodes_are_those_of_a_tree_that_was_not_taken(
        steps in prop::collection::vec((0u8..6, 0u64..40, 0u64..3, LEAST_ROOM..700), 0..STEPS),
        bytes in prop_oneof![Just(2112usize), Just(8192), Just(1 << 18)],
        room in LEAST_ROOM..3000,
    ) {
        let yardstick = tree(bytes);
        let mut thread = Thread::new();
        thread.sums = Sums::of(tree(bytes));
        let (mut taken, mut open, mut now) = (Taken::default(), Vec::new(), 0);
        for (what, function, later, room) in steps {
            if what == 5 {
                taken.take(&thread, room);
                continue;
            }
            now += later;
            yardstick.moved(now);
            thread.sums.tree().unwrap().moved(now);
            let address = IMAGE.anchor as u64 - 200 + 16 * function;
            if what < 3 {
                open.push(address);
                yardstick.call_anew(address, 0, 0);
                thread.event(address as usize, 0);
            } else {
                // Now and then not the one that is open.
                let address = if what == 3 { open.pop().unwrap_or(address) } else { address };
                yardstick.ret(address);
                thread.event(address as usize, 1);
            }
        }
        taken.take_all(&thread, room);
        taken.paths.retain(|_, sums| *sums != (0, 0, 0, 0));
        let untold = thread.sums.tree().unwrap().take_mended();
        prop_assert_eq!(taken.mended + untold, yardstick.take_mended());
        prop_assert_eq!(taken.paths, all(&yardstick));
        prop_assert_eq!(taken.lost, 0);
    }

    #[test]
    fn items_are_those_of_arcs_that_were_not_taken(
        steps in prop::collection::vec((2usize..60, 2usize..60, 0u64..3, 0u8..8, LEAST_ROOM..700), 0..STEPS),
        places in 16usize..400,
        room in LEAST_ROOM..3000,
    ) {
        let (yardstick, counted) = (arcs(24 * places), arcs(24 * places));
        let mut thread = Thread::new();
        thread.counted = Counted::of(counted);
        let (mut taken, mut now) = (Taken::default(), 0);
        for (from, to, later, what, room) in steps {
            now += later;
            let moved = (later > 0).then_some(now);
            yardstick.call(from, to, moved);
            counted.call(from, to, moved);
            if what == 0 {
                taken.take(&thread, room);
            }
        }
        taken.take_all(&thread, room);
        let mut expected = HashMap::new();
        let place = |address: usize| Some(distance(address as u64));
        let mut next = 0;
        while let Some(growth) = yardstick.take(&mut next) {
            let (from, to) = (growth.from, growth.to);
            let key = match growth.kind {
                Kind::Arc => (false, place(from - 1).filter(|_| from != NOBODY), place(to)),
                Kind::Span => (true, place(from).filter(|_| from != 0), place(to - 1)),
            };
            *expected.entry(key).or_insert(0) += growth.count;
        }
        // What was lost is told with what has grown.
        let (lost, lost_time) = yardstick.take_lost();
        let (untold, untold_time) = counted.take_lost();
        prop_assert_eq!(taken.lost + untold, lost);
        let told_time = taken.items.remove(&(true, None, None)).unwrap_or(0);
        prop_assert_eq!(told_time + untold_time, lost_time);
        for (key, count) in &expected {
            prop_assert_eq!(taken.items.remove(key), Some(*count), "{:?}", key);
        }
        prop_assert_eq!(taken.items, HashMap::new());
    }
}

fn both() -> (Thread, &'static Arcs) {
    let (mut thread, arcs) = (Thread::new(), arcs(4096));
    thread.sums = Sums::of(tree(4096));
    thread.counted = Counted::of(arcs);
    (thread, arcs)
}

/// A call of one function, by hooks of both kinds.
fn called(thread: &Thread, arcs: &'static Arcs) {
    thread.event(IMAGE.anchor + 16, 0);
    let places = (IMAGE.anchor + 9, IMAGE.anchor + 16);
    thread.counted.call(arcs, None, places, |_| 0);
    thread.event(IMAGE.anchor + 16, 1);
}

#[test]
fn with_too_little_room_nothing_is_taken_or_lost() {
    let (thread, arcs) = both();
    called(&thread, arcs);
    let mut taken = Taken::default();
    for room in [0, 8, LEAST_ROOM - 1] {
        assert!(!taken.take(&thread, room));
    }
    taken.take_all(&thread, LEAST_ROOM);
    assert_eq!((taken.pieces, taken.paths[&vec![16]].0), (2, 1));
    assert_eq!(taken.items, HashMap::from([((false, Some(8), Some(16)), 1)]));
}

#[test]
fn what_was_handed_over_in_one_way_is_not_handed_over_in_the_other() {
    let host = Host::new(1 << 20, OnFull::Drop);
    let (thread, arcs) = both();
    let mut taken = Taken::default();
    called(&thread, arcs);
    taken.take_all(&thread, 300);
    assert_eq!((taken.pieces, taken.paths[&vec![16]].0), (2, 1));
    attach(&thread, &host).unwrap();
    thread.detach();
    // The one that tells of the image.
    assert_eq!(host.chunks_used(), 1);
    called(&thread, arcs);
    attach(&thread, &host).unwrap();
    thread.detach();
    assert_eq!(host.chunks_used(), 3);
    taken.take_all(&thread, 300);
    assert_eq!(taken.pieces, 2);
}
