//! What is larger than life: very many threads, very deep stacks, very many paths, and bytes
//! that are no recording at all.

mod support;

use proptest::prelude::*;
use support::Builder;
use teeperf_profile::aggregate::{self, Sort};
use teeperf_profile::model::Profile;
use teeperf_profile::{Options, Recording, fuzz};
use teeperf_wire::body::{chunk, tree};
use teeperf_wire::packet::kind;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{call, code, escape, payload, ret, split62};

fn header(thread: u32, sequence: u32) -> chunk::Header {
    chunk::Header {
        process: 1,
        thread,
        tid: thread,
        sequence,
        cpu_ns: 1000 * u64::from(sequence),
        clock: ClockKind::Tick as u8,
        ..chunk::Header::default()
    }
}

fn replay(bytes: &[u8]) -> Profile {
    replay_to(0, bytes)
}

fn replay_to(most_paths: usize, bytes: &[u8]) -> Profile {
    let mut options = Options { jobs: 2, most_paths, ..Options::default() };
    Recording::from_read(bytes, "test").replay(&mut options).unwrap()
}

fn sums(profile: &Profile) -> (u64, u64, u64, u64) {
    let threads = profile.threads.iter();
    let nodes = || profile.threads.iter().flat_map(|t| &t.tree.nodes);
    (
        threads.map(|t| u64::from(t.merged)).sum(),
        nodes().map(|n| n.calls).sum(),
        nodes().map(|n| n.self_time.value as u64).sum(),
        profile.threads.iter().map(|t| t.events).sum(),
    )
}

#[test]
fn many_threads_are_folded_and_nothing_is_lost() {
    const THREADS: u32 = 10_000;
    let mut builder = Builder::new();
    for thread in 1..=THREADS {
        // One in a hundred does more, and stays a thread of its own; every third ends with a
        // frame open, every seventh says its name.
        let rounds = if thread % 100 == 0 { 20 } else { 1 };
        let mut words = vec![];
        if thread % 7 == 0 {
            let name = teeperf_wire::word::pack_bytes(b"job");
            words.extend([escape(code::NAME, 0), payload(1), name]);
        }
        for _ in 0..rounds {
            words.extend([
                call(0x1000),
                escape(code::TICK, 5),
                call(0x1010),
                escape(code::TICK, 2),
                ret(0x1010),
            ]);
            words.extend([ret(0x1000)]);
        }
        if thread % 3 == 0 {
            words.push(call(0x1020));
        }
        builder.chunk(header(thread, 1), &words, false);
    }
    // Threads that were folded long ago go on: the open frame is still theirs.
    for thread in (3..=300).step_by(3) {
        let words = [escape(code::TICK, 1), ret(0x1020), escape(code::TICK, 2)];
        builder.chunk(header(thread, 2), &words, false);
    }
    let bytes = builder.end();
    let profile = replay(&bytes);
    let rounds = u64::from(THREADS - 100 + 100 * 20);
    let open = u64::from(THREADS / 3);
    let (threads, calls, time, events) = sums(&profile);
    assert_eq!(u32::try_from(threads).unwrap(), THREADS);
    assert_eq!(calls, 2 * rounds + open);
    assert_eq!(events, 4 * rounds + open + 100);
    assert_eq!(profile.health.mended + profile.health.unopened, 0);
    assert_eq!(profile.health.open, open - 100);
    assert!(time >= 7 * rounds);
    assert!(profile.threads.len() < 2500, "{} threads", profile.threads.len());
    let single = profile.threads.iter().filter(|t| t.merged == 1).count();
    assert!(single >= 1000, "{single} threads are shown each");
    assert_eq!(profile.threads.iter().filter(|t| t.merged == 1 && t.events >= 80).count(), 100);
    assert!(profile.threads.iter().any(|t| t.name == "job" && t.merged > 100));

    // Nor is anything where there are more call paths than a profile may have.
    let few_paths = replay_to(2500, &bytes);
    assert!(few_paths.health.warnings.iter().any(|said| said.contains("more call paths")));
    assert_eq!(sums(&few_paths), sums(&profile));
    assert_eq!(few_paths.health.mended + few_paths.health.unopened, 0);
    assert_eq!(few_paths.health.open, open - 100);
    // What a thread does behind its last frame is the thread's, as before.
    let of_roots = |profile: &Profile| -> f64 {
        profile.threads.iter().map(|t| t.tree.nodes[0].self_time.value).sum()
    };
    assert_eq!(of_roots(&few_paths), of_roots(&profile));
}

#[test]
fn a_deep_recursion_comes_down_again() {
    const DEPTH: u32 = 300_000;
    let words: Vec<u32> = (0..DEPTH)
        .map(|i| call(0x1000 + i % 7))
        .chain((0..DEPTH).rev().map(|i| ret(0x1000 + i % 7)))
        .collect();
    let mut builder = Builder::new();
    for (number, words) in words.chunks(chunk::MAX_WORDS).enumerate() {
        builder.chunk(header(1, number as u32 + 1), words, true);
    }
    let profile = replay(&builder.end());
    assert_eq!(profile.threads[0].tree.nodes.len(), DEPTH as usize + 1);
    let health = profile.health;
    assert_eq!((health.mended, health.open, health.unopened), (0, 0, 0));
    assert!(!health.warnings.iter().any(|said| said.contains("[beyond limits]")));
}

#[test]
fn calls_beyond_the_most_paths_are_said() {
    const PATHS: usize = 1 << 22;
    let mut words = vec![call(0x1000); PATHS + 10];
    words.resize(2 * words.len(), ret(0x1000));
    let mut builder = Builder::new();
    for (number, words) in words.chunks(chunk::MAX_WORDS).enumerate() {
        builder.chunk(header(1, number as u32 + 1), words, false);
    }
    let profile = replay(&builder.end());
    assert_eq!(sums(&profile).1, PATHS as u64 + 10);
    assert_eq!(profile.functions.len(), 2, "the function and [beyond limits]");
    let health = profile.health;
    assert_eq!((health.mended, health.open, health.unopened), (0, 0, 0));
    let said = health.warnings.iter().any(|said| said.contains(" 10 calls on later ones"));
    assert!(said, "{:?}", health.warnings);
}

/// Frames that no path tells any more are told apart up to some depth; those above are only counted,
/// and their calls with their functions none the less.
#[test]
fn a_deep_stack_beyond_the_most_paths_comes_down_again() {
    const DEPTH: u32 = 100_000;
    const CYCLE: u32 = 3;
    let down = (0..DEPTH).map(|i| call(0x1000 + i % CYCLE));
    let up = (0..DEPTH).rev().map(|i| ret(0x1000 + i % CYCLE));
    let words: Vec<u32> = down.chain(up).flat_map(|word| [word, escape(code::TICK, 1)]).collect();
    let mut builder = Builder::new();
    for (number, words) in words.chunks(chunk::MAX_WORDS).enumerate() {
        builder.chunk(header(1, number as u32 + 1), words, true);
    }
    let profile = replay_to(10, &builder.end());
    let health = &profile.health;
    assert_eq!((health.mended, health.open, health.unopened), (0, 0, 0));
    let tree = &profile.threads[0].tree;
    let rows = aggregate::rows(tree, &profile.functions, Sort::Calls);
    let called: Vec<u64> = rows.iter().map(|row| row.calls).filter(|&calls| calls > 0).collect();
    let each = u64::from(DEPTH / CYCLE);
    assert_eq!(called, [each + 1, each, each]);
}

/// Stray returns and switches above so many open frames.
fn strays_above(depth: u32) -> Profile {
    let mut builder = Builder::new();
    let deep: Vec<u32> = (0..depth).map(|_| call(0x1000)).collect();
    let mut sequence = 0;
    let mut add = |words: &[u32]| {
        sequence += 1;
        builder.chunk(header(1, sequence), words, true);
    };
    for words in deep.chunks(chunk::MAX_WORDS) {
        add(words);
    }
    let stray: Vec<u32> =
        (0..4000).flat_map(|i| [call(0x2000), ret(0x3000 + i), ret(0x2000)]).collect();
    for _ in 0..10 {
        add(&stray);
    }
    let switches: Vec<u32> = (0..1000)
        .flat_map(|i| {
            let there =
                [&[escape(code::SWITCH, 0), payload(4)][..], &split62(0), &split62(5)].concat();
            let back =
                [&[escape(code::SWITCH, 0), payload(4)][..], &split62(5), &split62(0)].concat();
            [there, vec![ret(0x4000 + i)], back, vec![ret(0x5000 + i)]].concat()
        })
        .collect();
    add(&switches);
    replay(&builder.end())
}

#[test]
fn returns_that_match_nothing_below_a_deep_stack_are_quick() {
    let mut took = Vec::new();
    for depth in [1000, 100_000] {
        let begun = std::time::Instant::now();
        let profile = strays_above(depth);
        took.push(begun.elapsed());
        assert_eq!(profile.health.open, u64::from(depth));
        assert_eq!(profile.health.mended, 40_000 + 1000);
    }
    // Each of them would cost a walk over all frames: a hundred times as long. A second is for
    // making the frames, on the slowest of machines.
    let most = 10 * took[0] + std::time::Duration::from_secs(1);
    assert!(took[1] < most, "{took:?}");
}

/// Of a deep stack that goes from thread to thread the uppermost frames come along: each move would
/// put all of them into another tree.
#[test]
fn a_deep_stack_that_goes_on_in_another_thread_is_taken_along_in_part() {
    const DEPTH: u32 = 3000;
    const ALONG: u32 = 1024;
    let switch = |left: u64, entered: u64| {
        [&[escape(code::SWITCH, 0), payload(4)][..], &split62(left), &split62(entered)].concat()
    };
    let site = |depth: u32| 0x1000 + 16 * depth;
    let down: Vec<u32> = (0..DEPTH).map(|depth| call(site(depth))).collect();
    let up: Vec<u32> = (0..DEPTH).rev().map(|depth| ret(site(depth))).collect();
    let mut builder = Builder::new();
    builder.chunk(header(1, 1), &[switch(0, 9), down, switch(9, 0)].concat(), true);
    builder.chunk(header(2, 1), &[switch(0, 9), up, switch(9, 0)].concat(), true);
    let profile = replay(&builder.end());
    assert_eq!((profile.health.open, profile.health.unopened), (0, 0), "all frames are left");
    let second = profile.threads.iter().find(|thread| thread.tid == 2).unwrap();
    let names: Vec<&str> = second.tree.nodes[1..]
        .iter()
        .map(|node| &profile.functions[node.function.0 as usize].name[..])
        .collect();
    // The rest is one unknown caller, and the uppermost frame is the last.
    assert_eq!(names.len() as u32, 1 + ALONG);
    let uppermost = profile.threads.iter().find(|thread| thread.tid == 1).unwrap();
    let uppermost = uppermost.tree.nodes.last().unwrap().function.0 as usize;
    assert_eq!(names.last(), Some(&&profile.functions[uppermost].name[..]));
}

#[test]
fn gaps_that_claim_billions_of_frames_are_quick() {
    let gap = |popped: u32, pushed: u32| {
        [
            &[escape(code::GAP, 1), payload(6)][..],
            &split62(3),
            &[payload(popped), payload(pushed)],
            &split62(0),
        ]
        .concat()
    };
    let claiming = |frames: u32| {
        let words: Vec<u32> = (0..2000)
            .flat_map(|_| [gap(0, frames), vec![call(0x1000)], gap(1000, 7)].concat())
            .collect();
        let mut builder = Builder::new();
        for sequence in 1..5 {
            builder.chunk(header(1, sequence), &words[..16_000], true);
        }
        builder.chunk(header(1, 5), &gap(frames, 0), true);
        let begun = std::time::Instant::now();
        (replay(&builder.end()), begun.elapsed())
    };
    let (_, few) = claiming(2000);
    let (profile, billions) = claiming(u32::MAX >> 1);
    assert!(profile.health.open > 1 << 40);
    // A million times the frames; one by one they would take longer by more than that second.
    assert!(billions < 10 * few + std::time::Duration::from_secs(1), "{few:?}, {billions:?}");
}

/// Guards: what threads have lost is added up as far as there are numbers.
#[test]
fn losses_beyond_all_numbers() {
    let gap = |lost| {
        let words = [payload(6), split62(lost)[0], split62(lost)[1], payload(0), payload(0)];
        [&[escape(code::GAP, 2)][..], &words, &split62(0)].concat()
    };
    let mut builder = Builder::new();
    builder.chunk(header(1, 1), &vec![gap((1 << 62) - 1); 5].concat(), true);
    builder.chunk(header(2, 1), &[gap(3), vec![escape(code::HOLE, 0)]].concat(), true);
    assert_eq!(replay(&builder.end()).health.lost, u64::MAX);
}

/// Marks of which nothing is known any more change nothing: what is called behind a jump to one hangs
/// where it would without the jump.
#[test]
fn marks_without_end_are_forgotten() {
    let depth_behind_jump = |more: u32| {
        let key = 1;
        let mut builder = Builder::new();
        let begin = [call(0x1000), escape(code::MARK, key), call(0x1010), call(0x1020)];
        builder.chunk(header(1, 1), &begin, true);
        for sequence in 2..2 + more {
            let base = sequence << 14;
            let words: Vec<u32> = (0..8000).map(|i| escape(code::MARK, base + i)).collect();
            builder.chunk(header(1, sequence), &words, true);
        }
        // A return that matches nothing, so that the jump is not settled on the way.
        let end = [ret(0x1090), escape(code::JUMP, key), call(0x1030), call(0x1040)];
        builder.chunk(header(1, 2 + more), &end, true);
        let profile = replay(&builder.end());
        let nodes = &profile.threads[0].tree.nodes;
        let mut depths = vec![0; nodes.len()];
        for at in 1..nodes.len() {
            depths[at] = depths[nodes[at].parent as usize] + 1;
        }
        depths.into_iter().max().unwrap()
    };
    assert_eq!(depth_behind_jump(1), 3, "the first frame and two behind the jump");
    assert_eq!(depth_behind_jump(30), 5, "the first three frames and two behind them");
}

fn valid() -> Vec<u8> {
    let mut builder = Builder::new();
    builder.process(1, 9, "/bin/p");
    for sequence in 1..5 {
        let words = [
            call(0x1000),
            escape(code::MARK, 1),
            call(0x1010),
            escape(code::TICK, 9),
            escape(code::JUMP, 1),
            ret(0x1000),
        ];
        builder.chunk(header(1 + sequence % 2, sequence), &words, sequence % 2 == 0);
    }
    builder.symbols(1, 0x1000, &[(0x1000, 8, 1, "main", "a.c")]);
    builder.end()
}

/// What others have summed may claim any number, and it goes on from there.
#[test]
fn more_frames_are_mended_than_can_be_counted() {
    let mut builder = Builder::new();
    let header_of_tree = tree::Header {
        process: 1,
        thread: 7,
        nodes: 1,
        mended: u64::MAX,
        encoding: tree::encoding::PLAIN,
        ..tree::Header::default()
    };
    let root = [0, 0, 0, 0, 1, 0, 0];
    builder.packet(kind::TREE, &[&header_of_tree.encode()[..], &root].concat());
    builder.chunk(header(1, 1), &[call(0x1000)], false);
    builder.chunk(header(1, 2), &[ret(0x1010)], false);
    assert_eq!(replay(&builder.end()).health.mended, u64::MAX);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn damaged_bytes_give_the_same_with_any_workers(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12)) {
        let mut bytes = valid();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        fuzz::any_recording(&bytes);
    }

    #[test]
    fn any_words_give_the_same_with_any_workers(words in proptest::collection::vec(prop_oneof![
        4 => (0x1000u32..0x1003).prop_map(call),
        4 => (0x1000u32..0x1003).prop_map(ret),
        4 => (0u32..32, 0u32..4).prop_map(|(code, arg)| escape(code, arg)),
        4 => (0u32..9).prop_map(payload),
        1 => any::<u32>(),
    ], 0..400), cycle: bool) {
        let mut builder = Builder::new();
        let clock = if cycle { ClockKind::Cycle } else { ClockKind::Tick };
        for (number, words) in words.chunks(70).enumerate() {
            builder.chunk(chunk::Header { clock: clock as u8, ..header(1, number as u32 + 1) }, words, false);
        }
        fuzz::any_recording(&builder.end());
    }
}
