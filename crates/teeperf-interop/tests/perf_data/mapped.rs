//! Files that are mapped: they say what they say where they are read, and nobody writes to them meanwhile.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use teeperf_interop::perf_data::Reader;
use teeperf_profile::Packets;
use teeperf_profile::contents::Body;

use crate::built::{Attr, File, IP, REGS_USER, STACK_USER, TID, TIME};
use crate::seen::{Seen, real};

fn open(path: &Path) -> Reader<fs::File> {
    Reader::of_file("file", fs::File::open(path).unwrap()).unwrap()
}

/// As replay does.
fn shared(path: &Path) -> Reader<fs::File> {
    let mut reader = open(path);
    reader.share_samples();
    reader
}

/// Packets are as long as the blocks allow that they stand in.
fn all(packets: &mut dyn Packets) -> Seen {
    Seen { packets: 0, ..Seen::of(packets) }
}

/// Some MiB of samples of all sizes; and between them data that is skipped, of so many bytes. In rounds, or all in the wrong order.
fn large(skipped: &[usize], is_in_rounds: bool) -> Vec<u8> {
    let attr = Attr {
        sample_type: IP | TID | TIME | REGS_USER | STACK_USER,
        registers: 0b1_1100_0000,
        stack: 65_000,
        ..Attr::default()
    };
    let mut file = File::of(attr);
    for number in 0..400u64 {
        let size = number * 7919 % 60_000 / 8 * 8;
        let time = if is_in_rounds { number + 1 } else { 1_000_000 - number };
        let out = file.out().all(&[number, 5, time, 2, 1, 2, 3, size]);
        let out = out.text(&number.to_string(), size as usize);
        let out = if size > 0 { out.u64(size) } else { out };
        file.record(9, 2, out);
        if is_in_rounds && number % 20 == 0 {
            let out = file.out();
            file.record(68, 0, out);
        }
        if number % 100 == 50
            && let Some(&length) = skipped.get(number as usize / 100)
        {
            let out = file.out().all(&[length as u64, 0, 0, 0, 0]);
            file.record(71, 0, out);
            file.data.resize(file.data.len() + length, 7);
        }
    }
    file.bytes()
}

fn is_mapped(path: &Path) -> bool {
    fs::read_to_string("/proc/self/maps").unwrap().contains(path.to_str().unwrap())
}

#[test]
fn what_is_mapped_says_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    let files = [large(&[], false), large(&[], true), large(&[9, 3 << 20, 100, 65_536], false)];
    let cut = files.iter().flat_map(|file| {
        let ends = [file.len(), file.len() - 1, 4 << 20, (4 << 20) + 1, (9 << 20) + 4097, 70_000];
        ends.map(|end| (format!("large, {end}"), file[..end].to_vec()))
    });
    for (name, bytes) in real().into_iter().chain(cut) {
        fs::write(&path, &bytes).unwrap();
        let read = Seen { packets: 0, ..Seen::file(&bytes) };
        let mut twice = shared(&path);
        twice.share_samples();
        let mapped = all(&mut twice);
        assert!(mapped == read, "{name}: {:?} {:?}", mapped.warnings, read.warnings);
        assert!(all(&mut open(&path)) == read, "{name}");
    }
    assert!(files.iter().all(|file| Seen::file(file).samples.len() == 400));
}

#[test]
fn what_somebody_writes_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    let bytes = large(&[], true);
    fs::write(&path, &bytes).unwrap();
    let whole = Seen { packets: 0, ..Seen::file(&bytes) };
    let mut reader = shared(&path);
    reader.next_packet().unwrap();
    assert!(is_mapped(&path), "nobody does");
    assert!(all(&mut shared(&path)) == whole);
    drop(reader);
    // Who writes packets may wait for long.
    let mut reader = open(&path);
    reader.next_packet().unwrap();
    assert!(!is_mapped(&path));
    let writes = OpenOptions::new().append(true).open(&path).unwrap();
    let mut reader = shared(&path);
    reader.next_packet().unwrap();
    assert!(!is_mapped(&path));
    drop(writes);
}

#[test]
fn who_wants_to_write_waits_for_a_part_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    fs::write(&path, large(&[], true)).unwrap();
    let mut reader = shared(&path);
    reader.next_packet().unwrap();
    assert!(is_mapped(&path));
    let there = path.clone();
    let cuts = std::thread::spawn(move || {
        OpenOptions::new().write(true).truncate(true).open(there).unwrap()
    });
    let begun = Instant::now();
    let of_file = format!(":{} ", fs::metadata(&path).unwrap().ino());
    let is_waited_for = |lock: &str| lock.contains("BREAKING") && lock.contains(&of_file);
    while !fs::read_to_string("/proc/locks").unwrap().lines().any(is_waited_for) {
        assert!(begun.elapsed() < Duration::from_secs(20), "nobody waits");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!cuts.is_finished());
    let mut samples = 0;
    let mut next = || {
        let packet = reader.next_packet().unwrap()?;
        if let Body::SharedSamples(header, _) = packet.body {
            samples += header.samples;
        }
        Some(())
    };
    while is_mapped(&path) {
        assert_eq!(next(), Some(()), "there is more");
    }
    assert_eq!(cuts.join().unwrap().metadata().unwrap().len(), 0);
    // Of what was not read by then there is nothing.
    while next().is_some() {}
    let warnings = reader.take_warnings();
    assert!(samples > 0 && (samples == 400 || !warnings.is_empty()), "{samples} {warnings:?}");
}
