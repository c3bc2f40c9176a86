//! What is kept of a recording that loses its oldest part reads whole at any moment, and is no more than was granted.

#[path = "../../teeperf-profile/tests/support/mod.rs"]
mod by_hand;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::time::Instant;
use support::replay;
use teeperf_edit::rotate::{self, Keep, LEAST_BYTES, LEAST_TIME};
use teeperf_record::writing::{Encoder, PacketWriter, Payload};
use teeperf_wire::body::chunk::{self, Header};
use teeperf_wire::body::{process, start};
use teeperf_wire::packet::kind;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{call, code, escape, ret};

/// Chunks of one thread, as many words as they hold, all different enough that they take their size.
struct Source {
    encoder: Encoder,
    sequence: u32,
    time: u64,
    noise: u32,
}

impl Source {
    fn packet(&mut self, writer: &mut PacketWriter) {
        let mut words = Vec::new();
        if self.sequence == 0 {
            words.extend([call(0x1000), call(0x1001)]);
        }
        self.sequence += 1;
        let time = self.time;
        while words.len() < 16_000 {
            self.noise = self.noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let site = 0x2000 + (self.noise >> 4) % 0x1000;
            words.extend([call(site), escape(code::TICK, 3), ret(site)]);
            self.time += 3;
        }
        let header = Header {
            process: 1,
            thread: 1,
            tid: 99,
            sequence: self.sequence,
            time,
            cpu_ns: u64::MAX,
            clock: ClockKind::Tick as u8,
            flags: chunk::WHOLE,
            ..Header::default()
        };
        self.encoder.chunk(header, &words);
        writer.packet(kind::CHUNK, self.encoder.payload()).unwrap();
    }
}

fn bytes_in(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|file| file.unwrap().metadata().map_or(0, |about| about.len())).sum()
}

fn kept(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    rotate::open(folder).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn what_is_kept_reads_whole_and_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let output = rotate::output(folder.path(), Keep::Bytes(LEAST_BYTES)).unwrap();
    let mut writer = PacketWriter::open(output).unwrap();
    let hz = 1_000_000u64.to_le_bytes();
    let first = Payload::default()
        .bytes(start::VERSION, &[1, 0, 2, 0])
        .bytes(start::HZ, &hz)
        .number(start::CLOCK_START, 1000)
        .number(start::WALL_NS, 5_000_000_000);
    writer.packet(kind::START, &first.finish()).unwrap();
    let attached = Payload::default().number(process::ID, 1).number(process::PID, 77);
    writer.packet(kind::PROCESS, &attached.finish()).unwrap();
    let encoder = Encoder::new().unwrap();
    let mut source = Source { encoder, sequence: 0, time: 1000, noise: 1 };
    let mut is_full = false;
    for round in 0..300 {
        source.packet(&mut writer);
        let bytes = bytes_in(folder.path());
        assert!(bytes <= LEAST_BYTES, "round {round}: {bytes}");
        is_full |= bytes > LEAST_BYTES * 8 / 10;
        assert!(!is_full || bytes > LEAST_BYTES * 7 / 10, "round {round}: {bytes}");
        if round % 75 == 74 {
            writer.flush().unwrap();
            let profile = replay(&kept(folder.path()));
            let told = &profile.health.warnings;
            assert!(told.iter().all(|text| text.contains("has no end")), "round {round}: {told:?}");
            let health = &profile.health;
            assert_eq!((health.open, health.unopened, health.mended), (2, 0, 0), "round {round}");
        }
    }
    assert!(is_full, "as much as may be is never there");
    let (bytes, began) = rotate::kept(folder.path()).unwrap();
    assert!(
        began.unwrap() > 5_000_000_000 && (3_000_000..=LEAST_BYTES).contains(&bytes),
        "{bytes}"
    );
    let profile = replay(&kept(folder.path()));
    let tree = &profile.threads[0].tree;
    assert_eq!(profile.threads[0].pid, 77);
    // All stands below the two that were called long ago.
    assert_eq!(tree.nodes[1..3].iter().map(|node| node.calls).collect::<Vec<_>>(), [0, 0]);
    let calls: u64 = tree.nodes.iter().map(|node| node.calls).sum();
    assert_eq!(2 * calls, profile.health.events);
    assert!(profile.health.events < 300 * 10_000 && calls > 10_000, "{calls}");
    // Times are those of what is kept: three units for each call.
    let own: f64 = tree.nodes.iter().map(|node| node.self_time.value).sum();
    assert!((own - (calls * 3000) as f64).abs() < 3_001.0, "{own} ns of {calls} calls");
    assert!(profile.info.started_ns > 5_000_000_000);
}

/// What was recorded since the time that was granted is there, whenever one looks, and what is far older is not.
#[test]
fn what_is_kept_is_no_less_than_the_time_that_was_granted() {
    let folder = tempfile::tempdir().unwrap();
    let output = rotate::output(folder.path(), Keep::Time(LEAST_TIME)).unwrap();
    let mut writer = PacketWriter::open(output).unwrap();
    let first =
        Payload::default().bytes(start::VERSION, &[1, 0, 2, 0]).number(start::HZ, 1_000_000);
    writer.packet(kind::START, &first.finish()).unwrap();
    let attached = Payload::default().number(process::ID, 1).number(process::PID, 77);
    writer.packet(kind::PROCESS, &attached.finish()).unwrap();
    let mut source = Source { encoder: Encoder::new().unwrap(), sequence: 0, time: 1000, noise: 1 };
    let began = Instant::now();
    let mut seen: BTreeMap<OsString, Instant> = BTreeMap::new();
    // As long as the first is there, and as long again.
    let mut turns = 0;
    while turns < 20 {
        source.packet(&mut writer);
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        let there: BTreeSet<OsString> =
            names.filter(|name| Path::new(name).extension() == Some("segment".as_ref())).collect();
        let now = Instant::now();
        for name in &there {
            seen.entry(name.clone()).or_insert(now);
        }
        let oldest = there.first().unwrap();
        turns = seen.keys().filter(|name| *name < oldest).count();
        // Noticed a moment after it began.
        let is_enough = now - seen[oldest] > LEAST_TIME * 9 / 10;
        assert!(is_enough || turns == 0, "{oldest:?} began {:?} ago", now - seen[oldest]);
        assert!(there.len() < 20, "{there:?}");
        assert!(began.elapsed() < LEAST_TIME * 60, "nothing goes: {there:?}");
        std::thread::sleep(LEAST_TIME / 100);
    }
    writer.flush().unwrap();
    assert_eq!(replay(&kept(folder.path())).health.unopened, 0);
}

#[test]
fn a_folder_is_one_recorders_and_nobody_elses_files_go() {
    let folder = tempfile::tempdir().unwrap();
    let keep = Keep::Bytes(LEAST_BYTES);
    let first = rotate::output(folder.path(), keep).unwrap();
    let error = rotate::output(folder.path(), keep).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    drop(first);
    rotate::output(folder.path(), keep).unwrap();
    std::fs::write(folder.path().join("thesis.txt"), "precious").unwrap();
    let error = rotate::output(folder.path(), keep).unwrap_err();
    assert!(error.to_string().contains("thesis.txt"), "{error}");
    assert!(rotate::is_recording(folder.path()));
}
