//! Logs of the original TEE-Perf, written here number by number: what is read of whole, damaged and hostile ones.

use std::collections::BTreeMap;
use std::io::Read;

use proptest::prelude::*;
use teeperf_interop::tee_perf::{self, Log};
use teeperf_profile::model::{Profile, Thread, Unit};
use teeperf_profile::{Options, Packets, packets};

const ACTIVE: u64 = 1 << 31;
const THREADS: u64 = 1 << 16;
const RETURN: u64 = 1 << 63;
const HEADER: usize = 56;

/// A log under way.
struct Writer {
    header: [u64; 7],
    has_threads: bool,
    entries: Vec<u8>,
}

impl Writer {
    fn new(has_threads: bool) -> Self {
        let flags = 1 | ACTIVE | if has_threads { THREADS } else { 0 };
        let header = [0, flags, 0x7f00_0000_0000, 4711, 1 << 20, 0, 0x40_1000];
        Self { header, has_threads, entries: Vec::new() }
    }

    fn entry(&mut self, first: u64, address: u64, thread: u64) -> &mut Self {
        self.entries.extend(first.to_le_bytes());
        self.entries.extend(address.to_le_bytes());
        if self.has_threads {
            self.entries.extend(thread.to_le_bytes());
        }
        self.header[0] = self.header[0].max(first & !RETURN);
        self.header[5] += 1;
        self
    }

    fn call(&mut self, time: u64, address: u64) -> &mut Self {
        self.entry(time, address, 0x7f00_1234_5678)
    }

    fn ret(&mut self, time: u64, address: u64) -> &mut Self {
        self.entry(time | RETURN, address, 0x7f00_1234_5678)
    }

    /// The file: as long as its header says, and a byte.
    fn file(&self) -> Vec<u8> {
        let mut file: Vec<u8> = self.header.iter().flat_map(|n| n.to_le_bytes()).collect();
        file.extend(&self.entries);
        file.resize(self.header[4] as usize + 1, 0);
        file
    }
}

fn log(bytes: &[u8], options: tee_perf::Options) -> Log<&[u8]> {
    assert!(tee_perf::is_log(bytes));
    Log::new("log", bytes, options).unwrap()
}

fn profile_with(bytes: &[u8], options: tee_perf::Options) -> Profile {
    packets::replay(&mut log(bytes, options), &mut Options::default()).unwrap()
}

fn profile(bytes: &[u8]) -> Profile {
    profile_with(bytes, tee_perf::Options::default())
}

/// Call paths of a thread, each with its calls and its own time.
fn paths(profile: &Profile, thread: &Thread) -> BTreeMap<String, (u64, f64)> {
    let nodes = &thread.tree.nodes;
    let path = |mut at: usize| {
        let mut names = Vec::new();
        while at != 0 {
            let name = &profile.functions[nodes[at].function.0 as usize].name;
            names.push(name.trim_start_matches("[unknown module]+").to_owned());
            at = nodes[at].parent as usize;
        }
        names.reverse();
        names.join(" ")
    };
    let figures = |at: usize| (nodes[at].calls, nodes[at].self_time.value);
    (1..nodes.len()).map(|at| (path(at), figures(at))).collect()
}

fn only(profile: &Profile) -> BTreeMap<String, (u64, f64)> {
    let [thread] = &profile.threads[..] else { panic!("{} threads", profile.threads.len()) };
    paths(profile, thread)
}

fn is_warned(profile: &Profile, text: &str) -> bool {
    profile.health.warnings.iter().any(|warning| warning.contains(text))
}

fn expected(paths: &[(&str, u64, f64)]) -> BTreeMap<String, (u64, f64)> {
    paths.iter().map(|&(path, calls, own)| (path.to_owned(), (calls, own))).collect()
}

#[test]
fn calls_paths_and_counts_of_time_in_both_forms() {
    for has_threads in [false, true] {
        let mut log = Writer::new(has_threads);
        log.call(100, 0x40_1100).call(110, 0x40_1200).call(115, 0x40_1300);
        log.ret(117, 0x40_1300).ret(120, 0x40_1200).call(121, 0x40_1200).ret(131, 0x40_1200);
        log.ret(200, 0x40_1100);
        let profile = profile(&log.file());
        let paths = [
            ("0x401100", 1, 80.0),
            ("0x401100 0x401200", 2, 18.0),
            ("0x401100 0x401200 0x401300", 1, 2.0),
        ];
        assert_eq!(only(&profile), expected(&paths));
        assert_eq!(profile.health.events, 8);
        assert_eq!((profile.health.lost, profile.health.mended, profile.health.open), (0, 0, 0));
        assert_eq!((profile.info.unit, profile.info.duration_ns), (Unit::Counts, 100));
        let thread = &profile.threads[0];
        let name = if has_threads { "0x7f0012345678" } else { "" };
        assert_eq!((thread.pid, thread.name.as_str()), (4711, name));
        assert_eq!(thread.tid, if has_threads { 1 } else { 4711 });
        assert!(is_warned(&profile, "rate is not given") && is_warned(&profile, "--elf"));
    }
}

#[test]
fn with_a_rate_times_are_nanoseconds() {
    let mut log = Writer::new(false);
    log.call(1_000, 0x40_1100).ret(3_000, 0x40_1100);
    let options =
        || tee_perf::Options { counter_hz: Some(500_000_000), ..tee_perf::Options::default() };
    let profile = profile_with(&log.file(), options());
    assert_eq!(only(&profile), expected(&[("0x401100", 1, 4_000.0)]));
    assert_eq!(profile.info.unit, Unit::Nanoseconds);
    assert!(!is_warned(&profile, "rate"));
}

#[test]
fn every_form_of_the_flags_is_a_log_and_a_recording_is_none() {
    let mut log = Writer::new(true);
    for active in [0, 1 << 63, 1 << 31, !0 << 31] {
        log.header[1] = 1 | THREADS | active;
        assert!(tee_perf::is_log(&log.file()), "{active:#x}");
        assert!(!tee_perf::is_log(&log.file()[..HEADER - 1]));
    }
    for flags in [0, 1 | 1 << 17, 1 | 1 << 40, 1 << 16, 1 | 3 << 62, u64::MAX] {
        log.header[1] = flags;
        assert!(!tee_perf::is_log(&log.file()), "{flags:#x}");
    }
    let recording = b"TPRF\x01\x00\x00\x00\x10\x00\x00\x00".repeat(10);
    assert!(!tee_perf::is_log(&recording));
    assert!(!tee_perf::is_log(&b"gmon\x01\x00\x00\x00".repeat(10)));
    log.header[1] = 2 | ACTIVE;
    let file = log.file();
    assert!(tee_perf::is_log(&file));
    let error = Log::new("old.log", &file[..], tee_perf::Options::default()).err().unwrap();
    let said = "old.log: offset 8: a log of TEE-Perf of version 2, which is not known; 1 is the only one there is";
    assert_eq!(error.to_string(), said);
    let error = Log::new("cut", &file[..20], tee_perf::Options::default()).err().unwrap();
    assert!(
        error.to_string().starts_with("cut: offset 20: the file ends in the header"),
        "{error}"
    );
}

#[test]
fn threads_have_stacks_and_clocks_of_their_own() {
    let mut log = Writer::new(true);
    let threads = [0x7f00_0000_1000, 0x7f00_0000_2000, 17];
    for round in 0..50_000u64 {
        for (number, thread) in threads.into_iter().enumerate() {
            // Each is a little behind the one before.
            let time = 1_000 + 10 * round - number as u64;
            let address = 0x40_0000 + 0x100 * (number as u64 + 1);
            let kind = if round % 2 == 0 { 0 } else { RETURN };
            log.entry(time | kind, address, thread);
        }
    }
    log.header[4] = (HEADER + log.entries.len()) as u64;
    let profile = profile(&log.file());
    assert_eq!(profile.threads.len(), 3);
    for thread in &profile.threads {
        let (name, address) = match thread.tid {
            1 => ("0x7f0000001000", "0x400100"),
            2 => ("0x7f0000002000", "0x400200"),
            17 => ("", "0x400300"),
            other => panic!("thread {other}"),
        };
        assert_eq!(thread.name, name);
        assert_eq!(paths(&profile, thread), expected(&[(address, 25_000, 250_000.0)]));
    }
    assert_eq!(profile.health.mended, 0);
    assert!(!is_warned(&profile, "earlier"), "{:?}", profile.health.warnings);
}

#[test]
fn what_never_returned_or_was_called_before_counts_as_in_recordings() {
    let mut log = Writer::new(false);
    log.ret(5, 0x40_1900).call(10, 0x40_1100).call(20, 0x40_1200).ret(50, 0x40_1100);
    log.call(60, 0x40_1300).call(65, 0x40_1400);
    let profile = profile(&log.file());
    let health = &profile.health;
    assert_eq!((health.unopened, health.mended, health.open), (1, 1, 2));
    let paths = [
        ("0x401100", 1, 10.0),
        ("0x401100 0x401200", 1, 30.0),
        ("0x401300", 1, 5.0),
        ("0x401300 0x401400", 1, 0.0),
    ];
    assert_eq!(only(&profile), expected(&paths));
}

#[test]
fn time_while_measurement_was_off_is_nobodys() {
    for has_threads in [false, true] {
        let mut log = Writer::new(has_threads);
        log.call(100, 0x40_1100).entry(110, 0, 0).entry(1_110 | RETURN, 0, 0);
        log.ret(1_120, 0x40_1100);
        let profile = profile(&log.file());
        assert_eq!(only(&profile), expected(&[("0x401100", 1, 20.0)]));
        assert_eq!(profile.health.gaps, [("paused".to_owned(), 1, 1_000)]);
        assert_eq!((profile.health.lost, profile.health.events), (0, 2));
    }
}

#[test]
fn entries_without_room_and_entries_never_written_are_lost() {
    let mut log = Writer::new(false);
    log.call(1, 0x40_1100).entry(0, 0, 0).ret(9, 0x40_1100).entry(0, 0, 0);
    log.header[4] = (HEADER + log.entries.len()) as u64;
    log.header[5] += 1_000;
    let profile = profile(&log.file());
    assert_eq!((profile.health.events, profile.health.lost), (2, 1_002));
    assert!(is_warned(
        &profile,
        "the log was full: 1004 entries were begun, and there was room for 4"
    ));
}

#[test]
fn a_file_that_was_cut_off_gives_what_is_there() {
    let mut log = Writer::new(true);
    for time in 0..10 {
        log.call(2 * time + 1, 0x40_1100).ret(2 * time + 2, 0x40_1100);
    }
    let file = log.file();
    for length in [HEADER, HEADER + 7, HEADER + 24, HEADER + 24 * 5 + 23, file.len()] {
        let profile = profile(&file[..length]);
        let whole = ((length - HEADER) / 24).min(20) as u64;
        assert_eq!(profile.health.events, whole, "{length}");
        assert_eq!(profile.health.lost, 20 - whole, "{length}");
        let ends = format!("the file ends at {length}, {} entries before", 20 - whole);
        assert_eq!(is_warned(&profile, &ends), whole < 20, "{:?}", profile.health.warnings);
    }
}

/// Gives a few bytes at a time, and then an error.
struct Broken<'a>(&'a [u8]);

impl Read for Broken<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self.0.split_at_checked(13) {
            Some((bytes, rest)) if into.len() >= 13 => {
                into[..13].copy_from_slice(bytes);
                self.0 = rest;
                Ok(13)
            }
            _ if into.len() < 13 => {
                (&self.0[..into.len()]).read(into).inspect(|&n| self.0 = &self.0[n..])
            }
            _ => Err(std::io::Error::other("the disk is gone")),
        }
    }
}

#[test]
fn what_was_read_before_an_error_counts() {
    let mut log = Writer::new(false);
    log.call(1, 0x40_1100).ret(2, 0x40_1100).call(3, 0x40_1100);
    let file = log.file();
    let broken = Broken(&file[..HEADER + 16 * 2 + 10]);
    let mut log = Log::new("log", broken, tee_perf::Options::default()).unwrap();
    let profile = packets::replay(&mut log, &mut Options::default()).unwrap();
    assert_eq!((profile.health.events, profile.health.lost), (2, 1));
    assert!(is_warned(&profile, "cannot be read on: the disk is gone"));
}

#[test]
fn times_that_go_back_or_leap_break_nothing() {
    let mut log = Writer::new(false);
    log.call(100, 0x40_1100).call(90, 0x40_1200).ret(95, 0x40_1200).ret(u64::MAX, 0x40_1100);
    log.call(5, 0x40_1100).ret(6, 0x40_1100);
    let profile = profile(&log.file());
    assert_eq!(profile.health.events, 6);
    assert!(is_warned(&profile, "4 events are earlier than the one before them"));
    let own = only(&profile)["0x401100"];
    assert_eq!(own, (2, ((1u64 << 62) - 1 - 100) as f64));
    // Upper halves of times change within a chunk.
    let mut log = Writer::new(false);
    for round in 0..100u64 {
        log.call(round << 32, 0x40_1100).ret(round << 32 | 7, 0x40_1100);
    }
    assert_eq!(only(&self::profile(&log.file())), expected(&[("0x401100", 100, 700.0)]));
}

#[test]
fn code_anywhere_in_the_address_space_is_told_apart() {
    let mut log = Writer::new(false);
    let addresses = (0..300u64).map(|number| (number << 54) | (0x1000 + number));
    for (time, address) in (0..).zip(addresses.clone()) {
        log.call(2 * time, address).ret(2 * time + 1, address);
    }
    let profile = profile(&log.file());
    assert_eq!((profile.health.mended, profile.functions.len()), (0, 300));
    let all = addresses.map(|address| (format!("{address:#x}"), (1, 1.0))).collect();
    assert_eq!(only(&profile), all);
}

#[test]
fn a_new_thread_and_a_new_address_in_each_entry_is_counted_to_the_last() {
    let entries = 5_000u64;
    let mut log = Writer::new(true);
    for number in 0..entries {
        log.entry(number, 0x10_0000 + number * 0x100_0001, 0x7000_0000_0000 + number);
    }
    let profile = profile(&log.file());
    assert_eq!((profile.health.events, profile.health.lost), (entries, 0));
    let threads: u64 = profile.threads.iter().map(|thread| u64::from(thread.merged.max(1))).sum();
    assert_eq!(threads, entries);
    let calls = |thread: &Thread| thread.tree.nodes.iter().map(|node| node.calls).sum::<u64>();
    assert_eq!(profile.threads.iter().map(calls).sum::<u64>(), entries);
}

#[test]
fn packets_say_where_in_the_file_they_stand() {
    let mut log = Writer::new(false);
    for time in 0..20_000 {
        log.call(2 * time, 0x40_1100).ret(2 * time + 1, 0x40_1100);
    }
    log.header[4] = (HEADER + log.entries.len()) as u64;
    let file = log.file();
    let mut log = self::log(&file, tee_perf::Options::default());
    let mut chunks = Vec::new();
    while let Some(packet) = log.next_packet().unwrap() {
        if let teeperf_profile::contents::Body::Chunk(header, data) = packet.body {
            assert_eq!(data.len(), header.count as usize * 4);
            chunks.push((packet.offset, header.count));
        }
    }
    assert_eq!(chunks[0].0, HEADER as u64);
    assert!(chunks.len() > 2 && chunks.is_sorted());
    for pair in chunks.windows(2) {
        let bytes = pair[1].0 - pair[0].0;
        // Two words for an event of 16 bytes; the first chunk has a window besides.
        assert!(bytes <= u64::from(pair[0].1) * 8 && bytes + 200 > u64::from(pair[0].1) * 8);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against a replay that holds everything: exact counts by function, threads apart.
    #[test]
    fn counts_are_those_of_the_entries(
        entries in proptest::collection::vec((0u64..5, 0u64..9, any::<bool>(), 0u64..50), 0..3000),
        has_threads: bool,
    ) {
        let mut log = Writer::new(has_threads);
        let mut calls: BTreeMap<String, u64> = BTreeMap::new();
        let mut now = 1;
        for (thread, function, is_return, passed) in entries {
            now += passed;
            let address = 0x40_1000 + 0x10 * function;
            let kind = if is_return { RETURN } else { 0 };
            log.entry(now | kind, address, 0x7f00_0000_0000 + thread);
            log.header[4] = (HEADER + log.entries.len()) as u64;
            if !is_return {
                *calls.entry(format!("[unknown module]+{address:#x}")).or_default() += 1;
            }
        }
        let profile = profile(&log.file());
        prop_assert_eq!(profile.health.events, log.header[5]);
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for node in profile.threads.iter().flat_map(|thread| thread.tree.nodes.iter().skip(1)) {
            *found.entry(profile.functions[node.function.0 as usize].name.clone()).or_default() += node.calls;
        }
        prop_assert_eq!(found, calls);
    }
}
