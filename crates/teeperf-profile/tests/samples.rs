//! Samples become profiles: by call chains, here, of the test's own code.

mod support;

use proptest::prelude::*;
use std::collections::BTreeMap;
use support::Builder;
use support::samples::{Chain, encoded};
use teeperf_profile::aggregate::Sort;
use teeperf_profile::contents::{Map, Task};
use teeperf_profile::groups::{By, groups};
use teeperf_profile::info::Info;
use teeperf_profile::model::{Profile, Stacks};
use teeperf_profile::samples::Chains;
use teeperf_profile::{Options, Recording};
use teeperf_symbols::Search;
use teeperf_wire::body::sample::{CONTEXT_KERNEL, CONTEXT_USER, Numbers, Outer, Sample, abi, mode};
use teeperf_wire::body::start;
use teeperf_wire::body::task::what;

/// Where this program's file is loaded: address, length, offset, of each part with code.
fn own_code() -> (String, Vec<(u64, u64, u64)>) {
    let path = std::env::current_exe().unwrap().display().to_string();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let parts = maps.lines().filter(|line| line.ends_with(&path)).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (begin, end) = words[0].split_once('-')?;
        let (begin, end) = (number(begin), number(end));
        words[1].contains('x').then(|| (begin, end - begin, number(words[2])))
    });
    let parts = parts.collect();
    (path, parts)
}

#[inline(never)]
extern "C" fn red() -> u32 {
    1
}

#[inline(never)]
extern "C" fn green() -> u32 {
    2
}

#[inline(never)]
extern "C" fn blue() -> u32 {
    tint(std::hint::black_box(3))
}

#[inline(always)]
fn tint(shade: u32) -> u32 {
    std::hint::black_box(shade * 5) + 1
}

/// Behind the first instruction of a function: what a call in it returns to.
fn within(function: extern "C" fn() -> u32) -> u64 {
    function as usize as u64 + 2
}

fn replay(bytes: &[u8], jobs: usize) -> Profile {
    let mut options = Options { jobs, by_place: true, ..Options::default() };
    Recording::from_read(bytes, "test").replay(&mut options).unwrap()
}

/// Paths with samples, by thread: names joined, samples, time.
fn paths(profile: &Profile) -> BTreeMap<(u32, u32, String), (u64, f64)> {
    let mut out = BTreeMap::new();
    for thread in &profile.threads {
        let mut names: Vec<String> = Vec::new();
        for (at, node) in thread.tree.nodes.iter().enumerate() {
            let name = match at {
                0 => String::new(),
                _ => {
                    let function = &profile.functions[node.function.0 as usize];
                    let short = function.name.rsplit("::").next().unwrap();
                    format!("{};{short}", names[node.parent as usize])
                }
            };
            if node.calls > 0 {
                let known = (thread.pid, thread.tid, name.clone());
                assert_eq!(out.insert(known, (node.calls, node.self_time.value)), None);
            }
            names.push(name);
        }
    }
    out
}

fn with_own_code() -> Builder {
    let mut builder = Builder::new();
    builder.sampled(1, "cpu-clock", 62);
    let (path, parts) = own_code();
    for part in parts {
        builder.map(7, part, &path);
    }
    builder
}

#[test]
fn a_chain_is_a_call_path() {
    let mut builder = with_own_code();
    builder.task(what::NAME, (7, 7), (0, 0), "painter");
    let chain = [CONTEXT_USER, within(red), within(green), 0x10];
    let one = Chain { event: 1, task: (7, 7), time_ns: 1000, period: 500, chain: &chain };
    let two = Chain { time_ns: 3000, period: 700, ..one };
    builder.samples(&[one.encoded()], 0, false);
    builder.samples(&[two.encoded()], 3, true);
    let profile = replay(&builder.bytes, 1);
    let expected = [((7, 7, ";[unknown];green;red".to_owned()), (2, 1200.0))];
    assert_eq!(paths(&profile), BTreeMap::from(expected));
    assert!(profile.info.is_sampled());
    // What samples stand for, and what was asked for.
    assert_eq!((&*profile.info.event, profile.info.period_ns), ("cpu-clock", 600.0));
    assert_eq!(profile.info.asked_ns, 1e6);
    assert_eq!((profile.health.events, profile.health.lost), (2, 3));
    let thread = &profile.threads[0];
    assert_eq!((&*thread.name, thread.wall_ns, thread.events), ("painter", 2000, 2));
    assert_eq!(thread.tree.nodes[1].total.value, 1200.0);
    let red = profile.functions.iter().find(|f| f.name.ends_with("red")).unwrap();
    assert!(red.file.as_ref().unwrap().ends_with("samples.rs") && red.line.is_some());
}

/// What was inlined is of the file that it is written in.
#[test]
fn inlined_functions_have_files() {
    let mut builder = with_own_code();
    let samples: Vec<Vec<u8>> = (blue as *const () as u64 + 1..)
        .take(60)
        .map(|at| {
            let chain = [CONTEXT_USER, at];
            Chain { event: 1, task: (7, 7), time_ns: at, period: 1, chain: &chain }.encoded()
        })
        .collect();
    builder.samples(&samples, 0, true);
    let profile = replay(&builder.bytes, 2);
    let tint = profile.functions.iter().find(|function| function.name.ends_with("tint")).unwrap();
    assert!(tint.file.as_ref().is_some_and(|file| file.ends_with("tests/samples.rs")), "{tint:?}");
    let files = groups(&profile, By::File, Sort::SelfTime);
    let own = files.iter().find(|group| group.name.ends_with("tests/samples.rs")).unwrap();
    let has = |name: &str| {
        own.functions
            .iter()
            .any(|row| profile.functions[row.function.0 as usize].name.ends_with(name))
    };
    assert!(has("blue") && has("tint"), "{files:?}");
}

/// What an instruction behind a call pushes, at the top of a stack at 0x1000.
fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn an_outer_stack_is_behind_what_it_entered() {
    // The host's part is followed by frame pointers: these are no files, and have no tables.
    let host = words(&[0, 0x1020, 0x9208, 0, 0x1030, 0x9308, 0, 0]);
    let registers = words(&[0x1008, 0x1000, 0x9004]);
    let outer = |stack| Outer { mask: 0x1c0, registers: Numbers::of(&registers), stack };
    let chain = words(&[CONTEXT_USER, within(red)]);
    let inside = Sample {
        event: 1,
        mode: mode::USER,
        abi: abi::BITS_64,
        pid: 7,
        tid: 7,
        time_ns: 1,
        period: 5,
        outer: outer(&host),
        ..Sample::default()
    };
    let with_chain = Sample { chain: Numbers::of(&chain), ..inside };
    let unreadable = Sample { ip: 0x9100, period: 7, ..inside };
    let cut = Sample { outer: outer(&host[..24]), period: 9, ..with_chain };
    let mut builder = with_own_code();
    for (address, name) in
        [(0x9000, "[urts]"), (0x9100, "[enclave]"), (0x9200, "[app]"), (0x9300, "[main]")]
    {
        builder.map(7, (address, 0x100, 0), name);
    }
    let all = [with_chain, unreadable, cut].map(|sample| encoded(&sample));
    builder.samples(&all, 0, true);
    let profile = replay(&builder.bytes, 1);
    let path = |path: &str| (7, 7, path.to_owned());
    let expected = [
        (path(";[main];[app];[urts];[enclave]"), (1, 7.0)),
        (path(";[main];[app];[urts];red"), (1, 5.0)),
        (path(";[app];[urts];red"), (1, 9.0)),
    ];
    assert_eq!(paths(&profile), BTreeMap::from(expected));
    let Stacks { followed, cut, chains, alone, .. } = profile.health.stacks;
    // Of the chain it is not known whether it is whole.
    assert_eq!((followed, cut, chains, alone), (2, 1, 1, 1));
}

#[test]
fn damage_of_an_outer_stack_is_said_or_costs_callers_alone() {
    let (chain, stack) = (words(&[CONTEXT_USER, 0x9004]), words(&[0, 0x1020, 0x9108, 0]));
    let registers = words(&[0x1008, 0x1000, 0x9004]);
    let sample = Sample {
        event: 1,
        mode: mode::USER,
        abi: abi::BITS_64,
        pid: 7,
        tid: 7,
        period: 5,
        chain: Numbers::of(&chain),
        outer: Outer { mask: 0x1c0, registers: Numbers::of(&registers), stack: &stack },
        ..Sample::default()
    };
    let whole = encoded(&sample);
    let begin = whole.len() - 16 - registers.len() - stack.len();
    // How many samples are read, what they weigh, and whether something is said.
    let read = |bytes: Vec<u8>| {
        let mut builder = Builder::new();
        builder.sampled(1, "sgx", 62);
        builder.map(7, (0x9000, 0x200, 0), "[code]");
        builder.samples(&[bytes], 0, false);
        let profile = replay(&builder.bytes, 1);
        let paths = paths(&profile);
        assert!(paths.keys().all(|(pid, _, path)| *pid == 7 && path.ends_with(";[code]")));
        let weight: f64 = paths.values().map(|(_, weight)| weight).sum();
        (paths.len(), weight, profile.health.warnings.iter().any(|text| text.contains("0 of 1")))
    };
    assert_eq!(read(whole.clone()), (1, 5.0, false));
    for at in begin..whole.len() {
        for bit in [1, 0x80] {
            let mut flipped = whole.clone();
            flipped[at] ^= bit;
            let found = read(flipped);
            assert!([(1, 5.0, false), (0, 0.0, true)].contains(&found), "{at}: {found:?}");
        }
        // Cut off, whatever the head says of it: less than a head of an outer stack is none.
        for lies in [false, true] {
            let mut cut = whole[..at].to_vec();
            if lies {
                cut[..4].copy_from_slice(&(at as u32).to_le_bytes());
            }
            let is_read = lies && at.is_multiple_of(8) && at < begin + 16;
            let expected = if is_read { (1, 5.0, false) } else { (0, 0.0, true) };
            assert_eq!(read(cut), expected, "{at} {lies}");
        }
    }
}

#[test]
fn a_copied_stack_is_made_a_chain_where_it_leads_to_its_first_function() {
    let mut chains = Chains::new(Search::default(), "x86_64");
    let of = |(pid, address): (u32, u64), path: &'static [u8]| Map {
        pid,
        address,
        length: 0x100,
        path,
        protection: 5,
        mode: mode::USER,
        ..Map::default()
    };
    chains.map(&of((7, 0x9000), b"[inner]"));
    chains.map(&of((7, 0x9100), b"[outer]"));
    let fork = Task { what: what::FORK, pid: 8, tid: 8, parent_pid: 7, ..Task::default() };
    let stack = words(&[0, 0x1020, 0x9108, 0, 0, 0, 0, 0]);
    let registers = words(&[0x1008, 0x1000, 0x9004]);
    let sample = |pid, stack| Sample {
        pid,
        abi: abi::BITS_64,
        mask: 0x1c0,
        registers: Numbers::of(&registers),
        stack,
        ..Sample::default()
    };
    let chain = [CONTEXT_USER, 0x9004, 0x9108].map(u64::to_le_bytes).to_vec();
    assert_eq!(chains.of(62, &sample(7, &stack)), Some(chain.clone()));
    // What a process has is its own, and its children's.
    assert_eq!(chains.of(62, &sample(8, &stack)), None);
    chains.task(&fork);
    assert_eq!(chains.of(62, &sample(8, &stack)), Some(chain));
    // What is cut is no chain.
    assert_eq!(chains.of(62, &sample(7, &stack[..32])), None);
    assert_eq!(chains.of(62, &Sample { mask: 0, ..sample(7, &stack) }), None);
}

/// Guards: a file that a process saw in a container is the recording's, not that of the same path
/// here.
#[test]
fn files_of_containers_are_those_of_the_recording() {
    let (path, parts) = own_code();
    let chain = [CONTEXT_USER, within(red)];
    let sample = Chain { event: 1, task: (7, 7), time_ns: 1, period: 1, chain: &chain }.encoded();
    for is_told in [false, true] {
        let mut builder = Builder::new();
        builder.sampled(1, "cpu-clock", 62);
        let elsewhere = "/there/is/no/such/file";
        if is_told {
            builder.file(3, &std::fs::read(&path).unwrap());
        }
        let path = if is_told { elsewhere } else { &*path };
        parts.iter().for_each(|&part| builder.map_inside(7, part, path, 3));
        builder.samples(std::slice::from_ref(&sample), 0, false);
        let profile = replay(&builder.bytes, 1);
        let names: Vec<_> = paths(&profile).into_keys().map(|(_, _, names)| names).collect();
        let said = profile.health.warnings.join(" ");
        match is_told {
            true => {
                assert_eq!(names, [";red"]);
                assert!(!said.contains("--symfs"), "{said}");
            }
            false => {
                assert!(names[0].starts_with(";["), "{names:?}");
                assert!(said.contains("--symfs") && said.contains(path), "{said}");
            }
        }
    }
}

/// Guards: a file here is not taken for one of another machine that has no build-id.
#[test]
fn files_of_another_machine_are_not_those_of_here() {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let (path, parts) = own_code();
    let chain = [CONTEXT_USER, within(red)];
    let sample = Chain { event: 1, task: (7, 7), time_ns: 1, period: 1, chain: &chain }.encoded();
    let read = |host: &str, machine: &str| {
        let mut builder = Builder::empty();
        let fields = [(start::HOST, host.as_bytes()), (start::MACHINE, machine.as_bytes())];
        builder.start(&fields);
        builder.sampled(1, "cpu-clock", 62);
        parts.iter().for_each(|&part| builder.map(7, part, &path));
        builder.samples(std::slice::from_ref(&sample), 0, false);
        let profile = replay(&builder.bytes, 1);
        let names = paths(&profile).into_keys().map(|(_, _, names)| names).next().unwrap();
        (names, profile.health.warnings.join(" "))
    };
    for (host, machine) in [(host.trim(), std::env::consts::ARCH), (host.trim(), ""), ("", "")] {
        let (names, said) = read(host, machine);
        assert_eq!(names, ";red", "{host} {machine}");
        assert!(!said.contains("another machine"), "{said}");
    }
    for (host, machine) in [("elsewhere", std::env::consts::ARCH), (host.trim(), "s390x")] {
        let (names, said) = read(host, machine);
        assert!(names.starts_with(";["), "{names}");
        assert!(said.contains("of another machine") && said.contains(&path), "{said}");
    }
}

#[test]
fn processes_have_their_own_code_and_names() {
    let mut builder = with_own_code();
    builder.task(what::NAME, (7, 7), (0, 0), "parent");
    builder.task(what::FORK, (8, 8), (7, 7), "");
    builder.task(what::FORK, (7, 9), (7, 7), "");
    builder.task(what::NAME, (7, 9), (0, 0), "thread");
    let chain = [CONTEXT_USER, within(red)];
    let sample =
        |task, time_ns| Chain { event: 1, task, time_ns, period: 1, chain: &chain }.encoded();
    builder.samples(&[sample((7, 7), 1), sample((8, 8), 2), sample((7, 9), 3)], 0, true);
    // Another program in its place has none of that code.
    builder.task(what::EXEC, (8, 8), (0, 0), "other");
    builder.samples(&[sample((8, 8), 4)], 0, true);
    let profile = replay(&builder.bytes, 2);
    let expected = [
        ((7, 7, ";red"), (1, 1.0)),
        ((7, 9, ";red"), (1, 1.0)),
        ((8, 8, ";[unknown]"), (1, 1.0)),
        ((8, 8, ";red"), (1, 1.0)),
    ];
    let expected = expected.map(|((pid, tid, path), sums)| ((pid, tid, path.to_owned()), sums));
    assert_eq!(paths(&profile), BTreeMap::from(expected));
    let mut names: Vec<&str> = profile.threads.iter().map(|thread| &*thread.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["other", "parent", "thread"]);
}

#[test]
fn each_event_has_a_profile() {
    let mut builder = with_own_code();
    builder.sampled(2, "page-faults", 62);
    let chain = [CONTEXT_USER, within(red)];
    let sample =
        |event| Chain { event, task: (7, 7), time_ns: 1, period: 5, chain: &chain }.encoded();
    builder.samples(&[sample(1), sample(2), sample(2), sample(9)], 0, false);
    let profile = replay(&builder.bytes, 2);
    assert_eq!((&*profile.info.event, profile.health.events), ("cpu-clock", 1));
    let beside: Vec<_> = profile.beside.iter().map(|p| (&*p.info.event, p.health.events)).collect();
    assert_eq!(beside, [("page-faults", 2), ("samples", 1)]);
    let warnings = profile.health.warnings.join("\n");
    assert!(
        warnings.contains("1 samples are of events that the recording does not tell of"),
        "{warnings}"
    );
}

#[test]
fn it_is_known_without_replay_what_was_sampled() {
    let mut builder = with_own_code();
    builder.sampled(2, "page-faults", 62);
    builder.task(what::NAME, (7, 7), (0, 0), "painter");
    builder.task(what::NAME, (7, 9), (0, 0), "thread");
    builder.task(what::EXEC, (7, 7), (0, 0), "other");
    let chain = [CONTEXT_USER, within(red)];
    let sample = Chain { event: 1, task: (7, 7), time_ns: 1, period: 5, chain: &chain }.encoded();
    builder.samples(&[sample.clone(), sample.clone()], 3, true);
    builder.samples(&[sample], 0, false);
    let recording = Recording::from_read(&builder.bytes[..], "test");
    let sampled = Info::check(recording, &mut |_| {}).unwrap().sampled;
    assert_eq!(sampled.events.into_values().collect::<Vec<_>>(), ["cpu-clock", "page-faults"]);
    assert_eq!(sampled.processes, BTreeMap::from([(7, "other".to_owned())]));
    assert_eq!((sampled.samples, sampled.lost), (3, 3));
}

#[test]
fn what_cannot_be_read_is_said() {
    let mut builder = with_own_code();
    let chain = [CONTEXT_USER, within(red)];
    let sample = Chain { event: 1, task: (7, 7), time_ns: 1, period: 5, chain: &chain }.encoded();
    let mut cut = sample.clone();
    cut[28] = 200;
    builder.samples(&[sample.clone(), cut], 0, true);
    builder.samples(&[sample], 0, true);
    let profile = replay(&builder.bytes, 1);
    assert_eq!(profile.health.events, 2);
    let warnings = profile.health.warnings.join("\n");
    assert!(warnings.contains("1 of 2 could be read"), "{warnings}");
}

#[test]
fn the_kernel_is_above_its_program() {
    let mut builder = with_own_code();
    let chain = [CONTEXT_KERNEL, 0xffff_ffff_8100_0000, CONTEXT_USER, within(red)];
    let sample = Chain { event: 1, task: (7, 7), time_ns: 1, period: 5, chain: &chain };
    builder.samples(&[sample.encoded()], 0, false);
    let found = paths(&replay(&builder.bytes, 1));
    let (_, _, path) = found.keys().next().unwrap();
    assert!(path.starts_with(";red;"), "{path}");
}

#[test]
fn the_last_name_counts_whoever_took_the_samples() {
    let mut builder = with_own_code();
    let chain = [CONTEXT_USER, within(red)];
    let sample = Chain { event: 1, task: (7, 7), time_ns: 1, period: 1, chain: &chain }.encoded();
    for name in ["first", "second", "third", "last"] {
        builder.task(what::NAME, (7, 7), (0, 0), name);
        builder.samples(std::slice::from_ref(&sample), 0, true);
    }
    for _ in 0..20 {
        assert_eq!(replay(&builder.bytes, 4).threads[0].name, "last");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn workers_make_no_difference(list in proptest::collection::vec((0u32..3, proptest::collection::vec(any::<bool>(), 0..5), 1u64..9), 1..30)) {
        let mut builder = with_own_code();
        for (at, (tid, path, period)) in list.iter().enumerate() {
            let mut chain = vec![CONTEXT_USER];
            chain.extend(path.iter().map(|&is_red| within(if is_red { red } else { green })));
            let sample = Chain { event: 1, task: (7, *tid), time_ns: at as u64, period: *period, chain: &chain };
            builder.samples(&[sample.encoded()], 0, at % 2 == 0);
        }
        let one = replay(&builder.bytes, 1);
        for jobs in 2..4 {
            let other = replay(&builder.bytes, jobs);
            prop_assert_eq!(&one.functions, &other.functions);
            let trees = |p: &Profile| p.threads.iter().map(|t| t.tree.clone()).collect::<Vec<_>>();
            prop_assert_eq!(trees(&one), trees(&other));
        }
        let sum: u64 = list.iter().map(|(_, _, period)| period).sum();
        let total: f64 = one.threads.iter().map(|t| t.tree.nodes[0].total.value).sum();
        prop_assert_eq!(total, sum as f64);
    }
}
