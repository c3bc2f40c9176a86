//! Packets: of other versions, cut off, missing, lost; and those of arcs, which have no words.

use crate::support::Builder;
use crate::{function, header, module, replay};
use teeperf_profile::{Error, Options, Recording};
use teeperf_wire::body::{self, chunk};
use teeperf_wire::packet::{MINOR, kind};
use teeperf_wire::word::{call, code, escape, ret};

#[test]
fn a_later_major_version_is_refused_a_later_minor_one_read() {
    let start = |major: u16, minor: u16| {
        let mut builder = Builder::empty();
        let version = (u32::from(major) | u32::from(minor) << 16).to_le_bytes();
        builder.fields(kind::START, &[(body::start::VERSION, &version), (999, b"what is this")]);
        builder.packet(77, b"nor this");
        builder
    };
    let error =
        Recording::from_read(&start(2, 0).end()[..], "f.teeperf").replay(&mut Options::default());
    assert!(
        matches!(error, Err(Error::Version { offset: 0, major: 2, minor: 0, .. })),
        "{error:?}"
    );
    let profile = replay(&start(1, MINOR + 1).end());
    let warnings = profile.health.warnings.join("\n");
    assert!(warnings.contains(&format!("format 1.{} is newer", MINOR + 1)), "{warnings}");
    assert!(warnings.contains("1 packets of type 77, which this reader does not know, were skipped; the first at offset 52"), "{warnings}");
}

#[test]
fn a_recording_without_a_version_is_taken_for_the_first_and_that_is_said() {
    let with = |fields: &[(u16, &[u8])]| {
        let mut builder = Builder::empty();
        builder.fields(kind::START, fields);
        builder.chunk(header(1, 1, 0), &[call(0x1000), ret(0x1000)], false);
        replay(&builder.end())
    };
    let hz = 1000u64.to_le_bytes();
    let version = body::start::VERSION;
    let said = "the start packet at offset 0 has no version: it is taken for 1.0";
    // Five bytes are no version, though their first four would be one that is refused.
    for fields in [&[(body::start::HZ, &hz[..])][..], &[(version, &[9, 0, 0, 0, 0])]] {
        let profile = with(fields);
        assert!(profile.health.warnings.iter().any(|w| w == said), "{:?}", profile.health);
        assert_eq!(profile.health.events, 2);
    }
    let warnings = with(&[(version, &[1, 0, 0, 0])]).health.warnings.join("\n");
    assert!(!warnings.contains("version"), "{warnings}");
}

#[test]
fn fields_before_one_that_is_cut_off_count() {
    let number = |tag: u16, value: u64| {
        [&tag.to_le_bytes()[..], &[0, 0, 8, 0, 0, 0], &value.to_le_bytes()].concat()
    };
    // Claims nine bytes, and has one.
    let cut = [99, 0, 0, 0, 9, 0, 0, 0, 1];
    let mut symbol = [0x1000u32.to_le_bytes(), 16u32.to_le_bytes(), 0u32.to_le_bytes()].concat();
    symbol.extend([4, 0, b'w', b'o', b'r', b'k']);
    let mut symbols = [number(body::symbols::PROCESS, 1), number(2, 0x1000)].concat();
    symbols.extend([3, 0, 0, 0, symbol.len() as u8, 0, 0, 0]);
    symbols.extend(symbol);
    let fields = [
        (kind::START, number(body::start::HZ, 1000)),
        (kind::PROCESS, [number(body::process::ID, 1), number(body::process::PID, 77)].concat()),
        (kind::SYMBOLS, symbols),
        (kind::LOSS, number(body::loss::EVENTS, 7)),
    ];
    let mut builder = Builder::empty();
    let mut said = vec![];
    for (packet, fields) in fields {
        said.push(format!(
            "packet at offset {}: type {packet} cannot be read from byte {} of its payload on",
            builder.bytes.len(),
            fields.len()
        ));
        builder.packet(packet, &[&fields[..], &cut].concat());
    }
    let words = [
        module(0x1000, 0x1000, 0, "/bin/one"),
        vec![call(0x1000), escape(code::TICK, 5), ret(0x1000)],
    ];
    builder.chunk(header(1, 1, 0), &words.concat(), false);
    let profile = replay(&builder.end());
    for text in said {
        assert!(profile.health.warnings.contains(&text), "{text}: {:?}", profile.health.warnings);
    }
    assert_eq!(profile.health.lost, 7);
    assert_eq!(profile.threads[0].pid, 77);
    // Five units of a thousandth of a second.
    assert_eq!(profile.threads[0].tree.nodes[1].self_time.value, 5e6);
    assert_eq!(function(&profile, "work").module, "one");
}

#[test]
fn a_recording_cut_anywhere_is_a_shorter_one() {
    let mut builder = Builder::new();
    builder.process(1, 1, "/bin/p");
    for sequence in 1..=4 {
        let words = [call(0x1000), escape(code::TICK, 10), ret(0x1000)];
        builder.chunk(
            chunk::Header { sequence, time: 10 * u64::from(sequence), ..header(1, 1, 0) },
            &words,
            true,
        );
    }
    let whole = builder.end();
    let mut seen = std::collections::BTreeSet::new();
    for length in 0..=whole.len() {
        let result = Recording::from_read(&whole[..length], "cut")
            .replay(&mut Options { jobs: 1, ..Options::default() });
        let Ok(profile) = result else {
            assert!(length < 52, "{length} bytes are enough for a packet");
            continue;
        };
        assert_eq!(profile.health.mended + profile.health.open + profile.health.lost, 0);
        let said = profile.health.warnings.iter().any(|w| w.contains("has no end"));
        assert_eq!(said, length < whole.len());
        seen.insert(profile.health.events);
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 2, 4, 6, 8]);
}

#[test]
fn what_is_missing_is_said() {
    let mut builder = Builder::new();
    for sequence in [1, 3] {
        builder.chunk(
            chunk::Header { sequence, ..header(1, 1, 0) },
            &[call(0x1000), ret(0x1000)],
            false,
        );
    }
    let mut bytes = builder.end();
    let end = bytes.len();
    bytes[end - 8] = 9;
    // The end packet's checksum does not fit now: it is damaged.
    let warnings = replay(&bytes).health.warnings.join("\n");
    assert!(
        warnings
            .contains("(process 1, thread 1): chunk 3 from word 0 follows chunk 1 up to word 2"),
        "{warnings}"
    );
    assert!(warnings.contains("has no end"), "{warnings}");
    assert!(warnings.contains("cut off inside a packet"), "{warnings}");
}

#[test]
fn a_missing_beginning_of_a_thread_is_said() {
    let warnings = |place: chunk::Header| {
        let mut builder = Builder::new();
        builder.chunk(place, &[call(0x1000), ret(0x1000)], false);
        replay(&builder.end()).health.warnings.join("\n")
    };
    let said = "(process 1, thread 4): the thread begins with chunk";
    let whole = warnings(header(1, 4, 0));
    assert!(!whole.contains("begins with"), "{whole}");
    let second = warnings(chunk::Header { sequence: 2, ..header(1, 4, 0) });
    assert!(second.contains(&format!("{said} 2 from word 0")), "{second}");
    let piece = warnings(chunk::Header { first: 3, ..header(1, 4, 0) });
    assert!(piece.contains(&format!("{said} 1 from word 3")), "{piece}");
}

#[test]
fn losses_that_no_chunk_speaks_of_count() {
    let mut builder = Builder::new();
    builder.chunk(header(1, 1, 0), &[call(0x1008)], false);
    for events in [7u64, 5] {
        builder.fields(kind::LOSS, &[(body::loss::EVENTS, &events.to_le_bytes())]);
    }
    assert_eq!(replay(&builder.bytes).health.lost, 12);
    // A number that nobody can have counted.
    builder.fields(kind::LOSS, &[(body::loss::EVENTS, &u64::MAX.to_le_bytes())]);
    assert_eq!(replay(&builder.end()).health.lost, u64::MAX);
}

/// `main` (0x1000) calls `work` (0x1010), in two packets; somebody at address 9 calls `main`.
#[test]
fn calls_without_paths_become_a_graph() {
    let arcs = |arcs: u32, spans: u32, lost: u64, data: &[u8]| {
        let header = body::arcs::Header {
            process: 1,
            thread: 1,
            tid: 7,
            arcs,
            spans,
            lost,
            begin: 100,
            end: 200,
            ..body::arcs::Header::default()
        };
        [&header.encode()[..], data].concat()
    };
    // Words of calls at 0x1008, 0x1000, 0x1012 and 0x1010.
    let (in_main, main) = ([0x90, 0x40], [0x80, 0x40]);
    let (in_work, work) = ([0xA4, 0x40], [0xA0, 0x40]);
    let mut builder = Builder::new();
    builder.process(1, 70, "/bin/program");
    builder.symbols(1, 0x1000, &[(0x1000, 16, 0, "main", ""), (0x1010, 16, 0, "work", "")]);
    let first = [&in_main[..], &work, &[5], &[0, 9], &main, &[1], &work, &in_main, &[40]].concat();
    builder.packet(kind::ARCS, &arcs(2, 1, 0, &first));
    // A call by itself, time in itself, and time of nobody.
    let second = [
        &in_main[..],
        &work,
        &[2],
        &in_work,
        &work,
        &[3],
        &work,
        &in_work,
        &[7],
        &[0, 0, 0, 0, 50],
    ];
    builder.packet(kind::ARCS, &arcs(2, 2, 4, &second.concat()));
    let profile = replay(&builder.end());
    let graph = profile.graph.as_ref().unwrap();
    let name =
        |id: teeperf_profile::model::FunctionId| profile.functions[id.0 as usize].name.as_str();
    let mut found: Vec<_> = graph
        .functions
        .iter()
        .map(|v| (name(v.function), v.calls, v.self_time.low, v.self_time.value, v.self_time.high))
        .collect();
    found.sort_by_key(|row| row.0);
    // Of 40 each of the two has half, or nothing, or all.
    let far = "[unknown module]+0x9";
    let expected =
        [(far, 0, 0.0, 0.0, 0.0), ("main", 1, 0.0, 20.0, 40.0), ("work", 10, 7.0, 27.0, 47.0)];
    assert_eq!(found, expected);
    let mut calls: Vec<_> =
        graph.arcs.iter().map(|arc| (arc.caller.map(name), name(arc.callee), arc.calls)).collect();
    calls.sort_unstable();
    let expected = [(Some(far), "main", 1), (Some("main"), "work", 7), (Some("work"), "work", 3)];
    assert_eq!(calls, expected);
    assert_eq!((profile.health.events, profile.health.lost), (11, 4));

    let mut cut = Builder::new();
    cut.packet(kind::ARCS, &arcs(2, 0, 0, &first[..6]));
    let profile = replay(&cut.end());
    assert_eq!(profile.graph.unwrap().arcs.len(), 1);
    let said = profile.health.warnings.join("\n");
    assert!(said.contains("arcs at offset") && said.contains("item 1 of 2"), "{said}");
}
