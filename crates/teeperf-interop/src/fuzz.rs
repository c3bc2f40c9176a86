//! One door for fuzzers: any bytes as a file of another profiler.

use std::io::{Cursor, Read};

use teeperf_profile::chunks::Decoder;
use teeperf_profile::contents::Body;
use teeperf_profile::events::{Item, events};
use teeperf_profile::model::Profile;
use teeperf_profile::{Options, Packets, packets};
use teeperf_symbols::Search;

use crate::gmon::{self, Gmon, Layout, Names};
use crate::perf_data::{self, Reader};
use crate::tee_perf::{self, Log};

/// Most parts of histograms that are written again: a file may claim four thousand million of them.
const MOST_PARTS: u64 = 1 << 16;

/// Reads a gmon file as any program's and as that of each layout, makes profiles of it, and reads
/// what is written of it, which must be the same. Never panics, and takes time and memory in
/// proportion to the bytes.
pub fn any_gmon(bytes: &[u8]) {
    for wide in [None, Some(false), Some(true)] {
        for little_endian in [false, true] {
            let program = wide.map(|wide| ("program", Layout { little_endian, wide }));
            if let Ok(gmon) = gmon::read("bytes", bytes, program) {
                assert!(program.is_none_or(|(_, layout)| layout == gmon.layout));
                check(&gmon);
            }
        }
    }
}

/// Reads a log of TEE-Perf: whatever its packets, each event is that of an entry, and replay with one worker and with
/// two, with room for many call paths and for few, counts each once. Never panics, and takes time and memory in
/// proportion to the bytes.
pub fn any_log(bytes: &[u8]) {
    let open = || Log::new("bytes", bytes, tee_perf::Options::default());
    let (Ok(mut log), Ok(mut decoder)) = (open(), Decoder::new()) else { return };
    let (mut calls, mut returns) = (0u64, 0u64);
    while let Ok(Some(packet)) = log.next_packet() {
        let Body::Chunk(header, data) = packet.body else { continue };
        assert!(packet.offset as usize <= bytes.len());
        let Ok(events) = events(&mut decoder, &header, data) else { panic!("a chunk can be read") };
        for event in events {
            match event.item {
                Item::Call { .. } => calls += 1,
                Item::Return { .. } => returns += 1,
                Item::Escape(teeperf_profile::escape::Escape::Far { is_return, .. }) => {
                    *if is_return { &mut returns } else { &mut calls } += 1;
                }
                Item::Escape(_) => {}
                Item::Unreadable(_) => panic!("each word can be read"),
            }
        }
    }
    assert!((calls + returns) as usize * 16 <= bytes.len(), "none is made up");
    for most_paths in [0, 3] {
        let replay = |jobs| {
            let Ok(mut log) = open() else { panic!("it was one") };
            let mut options = Options { jobs, most_paths, ..Options::default() };
            packets::replay(&mut log, &mut options).ok()
        };
        let (Some(one), Some(two)) = (replay(1), replay(2)) else { continue };
        assert_eq!(one.health, two.health);
        assert_eq!(one.health.events, calls + returns);
        let counted = |profile: &Profile| {
            let nodes = profile.threads.iter().flat_map(|thread| &thread.tree.nodes);
            nodes.map(|node| node.calls).sum::<u64>()
        };
        assert_eq!((counted(&one), counted(&two)), (calls, calls));
    }
}

fn check(gmon: &Gmon) {
    let calls = |gmon: &Gmon| gmon.arcs.iter().map(|arc| arc.calls).sum::<u64>();
    let mut seconds = 0.0;
    for (before, histogram) in gmon.histograms.iter().zip(gmon.histograms.iter().skip(1)) {
        assert!(before.high <= histogram.low, "they do not overlap");
    }
    for histogram in &gmon.histograms {
        assert!(histogram.low < histogram.high && histogram.bins.len() <= histogram.parts as usize);
        let samples: f64 = histogram.bins.iter().map(|&bin| f64::from(bin)).sum();
        seconds += samples / f64::from(if histogram.hz == 0 { 100 } else { histogram.hz });
    }
    for bias in [0, 0x1000, u64::MAX] {
        let profile = gmon::profile(gmon, &Names::of_calls(gmon, bias), bias);
        let Some(graph) = &profile.graph else { panic!("a graph") };
        assert_eq!(profile.health.events, calls(gmon), "every call leads somewhere");
        let spent = graph.time() / 1e9;
        assert!(spent <= seconds * (1.0 + 1e-9), "{spent} of {seconds} s");
        for vertex in &graph.functions {
            let (own, total) = (vertex.self_time.value, vertex.total.value);
            assert!(own >= 0.0 && own <= total * (1.0 + 1e-9) && total.is_finite());
        }
    }
    if gmon.histograms.iter().map(|histogram| u64::from(histogram.parts)).sum::<u64>() > MOST_PARTS
    {
        return;
    }
    let mut written = Vec::new();
    let Ok(()) = gmon.write(&mut written) else { panic!("memory takes it") };
    let again = gmon::read("written", written.as_slice(), Some(("program", gmon.layout)));
    // Where nothing stands that only one width makes sense of, the program's counts.
    let Ok(mut again) = again else { return };
    assert_eq!(calls(&again), calls(gmon));
    for (again, histogram) in again.histograms.iter_mut().zip(&gmon.histograms) {
        again.bins.truncate(histogram.bins.len());
    }
    assert_eq!(again.histograms, gmon.histograms);
}

/// Reads a `perf.data`, as a file and as what comes out of a pipe: every packet can be taken apart. What is written of it has as
/// many samples. Never panics, and takes time and memory in proportion to the bytes.
pub fn any_perf_data(bytes: &[u8]) {
    let Ok(file) = Reader::open("bytes", Cursor::new(bytes)) else { return };
    let read = samples(file, bytes);
    let Ok(mut sharing) = Reader::open("bytes", Cursor::new(bytes)) else { panic!("it was one") };
    sharing.share_samples();
    assert_eq!(samples(sharing, bytes), read);
    if let Ok(piped) = Reader::from_read("bytes", bytes) {
        samples(piped, bytes);
    }
    let Ok(mut file) = Reader::open("bytes", Cursor::new(bytes)) else { panic!("it was one") };
    let mut copy = Cursor::new(Vec::new());
    let Ok(written) = perf_data::write(&mut file, "", Search::default(), &mut copy) else { return };
    assert_eq!(written.samples + written.of_no_event, read);
    let copy = copy.into_inner();
    let Ok(again) = Reader::open("copy", Cursor::new(&copy)) else { panic!("it was written") };
    assert_eq!(samples(again, &copy), written.samples);
}

fn samples<R: Read>(mut reader: Reader<R>, bytes: &[u8]) -> u64 {
    let Ok(mut decoder) = teeperf_profile::samples::Decoder::new() else { return 0 };
    let mut count = 0;
    while let Ok(Some(packet)) = reader.next_packet() {
        assert!(packet.cut_at.is_none() && packet.offset <= bytes.len() as u64);
        match packet.body {
            Body::Samples(header, data) => {
                let read = decoder.samples(&header, data);
                let Ok(mut samples) = read else { panic!("they can be read") };
                let whole = samples.by_ref().count() as u64;
                assert!(whole == u64::from(header.samples) && samples.rest.is_empty());
                count += whole;
            }
            Body::SharedSamples(header, shared) => {
                let mut whole = 0;
                shared.each(&mut |_| whole += 1);
                assert_eq!(whole, header.samples);
                count += u64::from(whole);
            }
            _ => {}
        }
    }
    assert!(reader.take_warnings().len() < 100 + bytes.len() / 64);
    count
}
