use super::paths::MOST_TREES;
use super::*;
use crate::trees::tests::read;
use proptest::prelude::*;
use std::collections::BTreeMap;
use teeperf_wire::arena::OF_ARCS;
use teeperf_wire::body::arcs;
use teeperf_wire::body::tree::word;
use teeperf_wire::packet::kind;
use teeperf_wire::tree::node;

/// A field of a chunk.
fn put(wides: &mut [u64], offset: usize, number: u64) {
    wides[offset / 8] |= number << (offset % 8 * 8);
}

/// A chunk with nodes from an index on: of each its caller's index, its word and calls.
fn nodes(serial: u32, began: u64, first: u32, nodes: &[(u32, u32, u64)]) -> Vec<u64> {
    let mut chunk = vec![0; (chunk::WORDS + nodes.len() * NODE) / 8];
    let head = [(chunk::SERIAL, serial), (chunk::TID, 9), (piece::FIRST, first)];
    head.into_iter().for_each(|(at, number)| put(&mut chunk, at, number.into()));
    put(&mut chunk, piece::COUNT, nodes.len() as u64);
    for (at, number) in [(piece::BEGAN, began), (piece::BEGIN, 10), (piece::END, 20)] {
        put(&mut chunk, at, number);
    }
    for (node, &(parent, word, calls)) in chunk[chunk::WORDS / 8..].chunks_mut(NODE / 8).zip(nodes)
    {
        put(node, node::PARENT, parent.into());
        put(node, node::WORD, word.into());
        put(node, node::CALLS, calls);
    }
    chunk
}

/// A chunk with arcs: from where, and how often.
fn calls(serial: u32, arcs: &[(u64, u64)]) -> Vec<u64> {
    let mut chunk = vec![0; (chunk::WORDS + arcs.len() * item::SIZE) / 8];
    put(&mut chunk, chunk::SERIAL, serial.into());
    put(&mut chunk, items::ARCS, arcs.len() as u64);
    put(&mut chunk, items::COUNT, arcs.len() as u64);
    for (item, &(from, count)) in chunk[chunk::WORDS / 8..].chunks_mut(item::SIZE / 8).zip(arcs) {
        put(item, item::FROM, from);
        put(item, item::TO_WORD, 0x2000);
        put(item, item::COUNT, count);
    }
    chunk
}

/// Calls by thread and path in packets of trees, of those paths that have some.
fn paths(growths: &[Growth]) -> BTreeMap<(u32, Vec<u32>), u64> {
    let mut sums = BTreeMap::new();
    for payload in growths.iter().flat_map(|growth| &growth.payloads) {
        let (header, nodes) = read(payload);
        let mut all: Vec<Vec<u32>> = vec![vec![]];
        for node in &nodes[1..] {
            let path = [&all[node.parent as usize][..], &[node.word]].concat();
            if node.calls > 0 {
                *sums.entry((header.thread, path.clone())).or_default() += node.calls;
            }
            all.push(path);
        }
    }
    sums
}

const ROOTS: [(u32, u32, u64); 2] = [(0, 0, 0), (0, 0, 0)];

fn tree(rest: &[(u32, u32, u64)]) -> Vec<(u32, u32, u64)> {
    [&ROOTS[..], rest].concat()
}

/// Guards: many pieces are one packet; two images that a thread calls in turn, and one that is loaded anew, are told
/// apart though none of them knows when its tree began.
#[test]
fn pieces_add_up_by_path() {
    let mut sums = Sums::default();
    let one = tree(&[(0, 0x2000, 1), (2, 0x2002, 4)]);
    let other = tree(&[(0, 0x4000, 2), (0, 0x4002, 3), (2, 0x4002, 5)]);
    let anew = tree(&[(0, 0x2002, 1), (0, 0x2000, 1), (3, 0x2002, 4)]);
    for image in [&one, &other, &anew].iter().cycle().take(300) {
        let added = sums.add(OF_TREE, &nodes(7, 0, 0, image), 1).unwrap();
        assert!(added.growths.is_empty() && added.lost == 0);
    }
    let growths = sums.take(1);
    assert_eq!((growths.len(), growths[0].payloads.len(), growths[0].calls), (1, 1, 2100));
    assert!(growths[0].is_first);
    let expected = [
        ((7, vec![0x2000]), 200),
        ((7, vec![0x2000, 0x2002]), 800),
        ((7, vec![0x2002]), 100),
        ((7, vec![0x4000]), 200),
        ((7, vec![0x4000, 0x4002]), 500),
        ((7, vec![0x4002]), 300),
    ];
    assert_eq!(paths(&growths), BTreeMap::from(expected));
    assert!(sums.take(1).is_empty(), "nothing is written twice");
    sums.add(OF_TREE, &nodes(7, 0, 0, &one), 1).unwrap();
    let growths = sums.take(1);
    assert_eq!((growths[0].calls, growths[0].is_first), (5, false));
}

/// Guards: of trees that a thread has in turn each comes bit by bit, as far as there are chunks.
#[test]
fn pieces_of_several_trees_in_turn() {
    let mut sums = Sums::default();
    let trees = MOST_TREES as u32;
    for turn in 0..3 {
        for at in 0..trees {
            let word = 0x2000 * (1 + at);
            let (first, nodes_of) = match turn {
                0 => (0, tree(&[(0, word, 1)])),
                _ => (turn + 2, vec![(turn + 1, word + 2 * turn, 1)]),
            };
            let chunk = nodes(7, (1 + at).into(), first, &nodes_of);
            assert_eq!(sums.add(OF_TREE, &chunk, 1).unwrap().lost, 0);
        }
    }
    let mut expected = BTreeMap::new();
    for word in (1..=trees).map(|at| 0x2000 * at) {
        let path = [word, word + 2, word + 4];
        expected.extend((1..=3).map(|depth| ((7, path[..depth].to_vec()), 1)));
    }
    assert_eq!(paths(&sums.take(1)), expected);
    // They take room only where it is not needed for paths.
    let mut few = Sums::of_most(60);
    let image = |at: u32| tree(&[(0, 0x2000 + 2 * at, 1), (0, 0x4000 + 2 * at, 1)]);
    for at in 0..27 {
        let added = few.add(OF_TREE, &nodes(7, at.into(), 0, &image(at)), 1).unwrap();
        assert_eq!(added.lost, 0, "{at}");
        assert!(few.entries <= 60);
    }
}

/// Guards: what the tree itself had no room for is known as that, whatever its node says of itself.
#[test]
fn calls_without_room_in_the_tree_stand_apart() {
    let mut sums = Sums::default();
    let of_tree = [(0, 0, 0), (0, 0x2002, 5), (1, 0x2000, 3)];
    sums.add(OF_TREE, &nodes(1, 3, 0, &of_tree), 1).unwrap();
    let expected = [((1, vec![word::OVERFLOW]), 5), ((1, vec![word::OVERFLOW, 0x2000]), 3)];
    assert_eq!(paths(&sums.take(1)), BTreeMap::from(expected));
}

#[test]
fn the_shortest_and_the_longest_are_those_of_all_pieces() {
    let mut sums = Sums::default();
    for (least, most) in [(0, 0), (!7u64, 9), (!0, 3), (!30, 30)] {
        let mut chunk = nodes(1, 5, 0, &tree(&[(0, 0x2000, 1)]));
        let at = chunk.len() - NODE / 8;
        put(&mut chunk[at..], node::LEAST, least);
        put(&mut chunk[at..], node::MOST, most);
        sums.add(OF_TREE, &chunk, 1).unwrap();
    }
    let (header, nodes) = read(&sums.take(1)[0].payloads[0]);
    assert_eq!((nodes[1].calls, nodes[1].least, nodes[1].most), (4, 1, 30));
    assert_eq!((header.begin, header.end, header.tid), (10, 20, 9));
}

/// Guards: trees of more than 65,536 nodes, of more than 16 threads, each in several pieces.
#[test]
fn large_trees_of_many_threads() {
    let mut sums = Sums::default();
    let most = 70_000;
    for serial in 0..20 {
        sums.add(OF_TREE, &nodes(serial, 3, 0, &tree(&[(0, 0x2000, 1)])), 1).unwrap();
    }
    for serial in 0..20 {
        let last = nodes(serial, 3, most, &[(2, 0x2002, 6), (most, 0x2004, 1)]);
        assert_eq!(sums.add(OF_TREE, &last, 1).unwrap().lost, 0);
    }
    let found = paths(&sums.take(1));
    for serial in 0..20 {
        assert_eq!(found[&(serial, vec![0x2000, 0x2002, 0x2004])], 1, "{serial}");
    }
    assert_eq!(found.len(), 60);
}

/// Guards: what finds no room is counted, and what has room counts on.
#[test]
fn paths_beyond_the_limit_are_lost() {
    let mut sums = Sums::of_most(10);
    let wide: Vec<_> = (0..20).map(|at| (0, 0x2000 + 2 * at, 3)).collect();
    for _ in 0..2 {
        let added = sums.add(OF_TREE, &nodes(1, 3, 0, &tree(&wide)), 1).unwrap();
        // Of ten one is the thread itself, and one is for what the tree had no room for.
        assert_eq!(added.lost, 12 * 3 * 2);
    }
    assert_eq!(paths(&sums.take(1)).values().sum::<u64>(), 2 * 8 * 3);
}

/// Guards: before anything is lost, what others have is written and forgotten.
#[test]
fn threads_make_room_for_others() {
    let mut sums = Sums::of_most(15);
    let mut growths = Vec::new();
    for round in 0..9 {
        for serial in 1..=5 {
            let chunk = nodes(serial, 3, 0, &tree(&[(0, 0x2000, 1), (2, 0x2002, 2)]));
            let added = sums.add(OF_TREE, &chunk, 1).unwrap();
            assert_eq!(added.lost, 0, "{round}");
            growths.extend(added.growths);
        }
    }
    growths.extend(sums.take(1));
    let found = paths(&growths);
    for serial in 1..=5 {
        assert_eq!(found[&(serial, vec![0x2000])], 9);
        assert_eq!(found[&(serial, vec![0x2000, 0x2002])], 18);
    }
    assert_eq!(growths.iter().filter(|growth| growth.is_first).count(), 5);
}

#[test]
fn threads_have_a_limit() {
    let mut sums = Sums::default();
    let mut calls = 0;
    for serial in 0..MOST_THREADS as u32 + 9 {
        let added = sums.add(OF_TREE, &nodes(serial, 3, 0, &tree(&[(0, 0x2000, 1)])), 1).unwrap();
        calls += added.growths.iter().map(|growth| growth.calls).sum::<u64>();
        assert!(sums.threads.len() <= MOST_THREADS);
    }
    calls += sums.take(1).iter().map(|growth| growth.calls).sum::<u64>();
    assert_eq!(calls, MOST_THREADS as u64 + 9);
}

/// Calls of arcs in packets, and what they have lost.
fn arcs_of(growths: &[Growth]) -> (u64, u64) {
    let mut arcs = 0;
    for payload in growths.iter().flat_map(|growth| &growth.payloads) {
        arcs += u64::from(arcs::Header::decode(payload).unwrap().0.arcs);
    }
    (arcs, growths.iter().map(|growth| growth.calls).sum())
}

#[test]
fn arcs_add_up() {
    let mut sums = Sums::default();
    for _ in 0..100 {
        let added = sums.add(OF_ARCS, &calls(1, &[(0x100, 2), (0x200, 3)]), 1).unwrap();
        assert!(added.growths.is_empty());
    }
    let growths = sums.take(1);
    assert_eq!((growths.len(), growths[0].kind, arcs_of(&growths)), (1, kind::ARCS, (2, 500)));
    assert!(sums.take(1).is_empty());
}

/// Guards: more than a packet has room for, and more than there is memory for.
#[test]
fn many_arcs_are_several_packets() {
    let many = |from: u64| (from..from + 10_000).map(|at| (at, 1)).collect::<Vec<_>>();
    let mut sums = Sums::default();
    sums.add(OF_ARCS, &calls(1, &many(1)), 1).unwrap();
    sums.add(OF_ARCS, &calls(1, &many(9001)), 1).unwrap();
    let growths = sums.take(1);
    assert_eq!((growths[0].payloads.len(), arcs_of(&growths)), (2, (19_000, 20_000)));
    let mut few = Sums::of_most(10_000);
    let mut growths = Vec::new();
    for from in [1, 9001, 1] {
        growths.extend(few.add(OF_ARCS, &calls(1, &many(from)), 1).unwrap().growths);
        assert!(few.entries <= 10_000);
    }
    growths.extend(few.take(1));
    assert_eq!(arcs_of(&growths), (30_000, 30_000));
}

proptest! {
    /// Any heads and nodes: the memory is bounded, and all calls are written or lost.
    #[test]
    fn chunks_of_any_content(
        chunks in prop::collection::vec((prop::collection::vec(any::<u64>(), 8..80), 0u32..4, 0u32..9, prop_oneof![0u32..99, u32::MAX - 9..=u32::MAX], any::<bool>()), 1..40),
    ) {
        let mut sums = Sums::of_most(30);
        for (mut wides, serial, count, first, is_tree) in chunks {
            for (at, number) in [(chunk::SERIAL, serial), (piece::COUNT, count), (piece::FIRST, first)] {
                wides[at / 8] &= !(0xFFFF_FFFF << (at % 8 * 8));
                put(&mut wides, at, number.into());
            }
            let kind = if is_tree { OF_TREE } else { OF_ARCS };
            let added = sums.add(kind, &wides, 1);
            let entries: usize = sums.threads.values().map(Thread::size).sum();
            prop_assert_eq!(sums.entries, entries);
            // Each thread has its root, and one the arcs of a chunk, beyond it.
            prop_assert!(entries <= 30 + 4 + 9);
            let growths = added.into_iter().flat_map(|added| added.growths);
            for growth in growths.chain(if first < 9 { sums.take(1) } else { Vec::new() }) {
                for payload in growth.payloads.iter().filter(|_| growth.kind == kind::TREE) {
                    prop_assert!(read(payload).0.nodes > 0);
                }
            }
        }
    }
}
