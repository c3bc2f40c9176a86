//! Chunks: their encodings, and what their words are replayed to.

use crate::support::Builder;
use crate::support::item::{Chunk, Item};
use crate::{header, module, replay};
use teeperf_profile::Recording;
use teeperf_profile::contents::Body;
use teeperf_profile::model::Profile;
use teeperf_wire::body::chunk;
use teeperf_wire::packet::kind;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{call, code, escape, pack_bytes, payload, ret, split62};

#[test]
fn time_goes_to_whoever_was_on_top_and_totals_add_up() {
    let mut builder = Builder::new();
    let tick = |units| escape(code::TICK, units);
    // main 100, in it f 30 and again f 5 with g 7 below; 11 before main.
    let words = [
        tick(11),
        call(0x1000),
        tick(60),
        call(0x2000),
        tick(30),
        ret(0x2000),
        tick(40),
        call(0x2000),
        tick(2),
        call(0x3000),
        tick(7),
        ret(0x3000),
        tick(3),
        ret(0x2000),
        ret(0x1000),
    ];
    builder.chunk(header(1, 1, 1000), &words, false);
    let profile = replay(&builder.end());
    let told: Vec<_> = profile.threads[0]
        .tree
        .nodes
        .iter()
        .map(|n| (n.calls, n.self_time.value, n.total.value))
        .collect();
    assert_eq!(told, [(0, 11.0, 153.0), (1, 100.0, 142.0), (2, 35.0, 42.0), (1, 7.0, 7.0)]);
    assert_eq!((profile.threads[0].wall_ns, profile.threads[0].events), (153, 8));
}

#[test]
fn chunks_that_do_not_decode_are_left_out() {
    let mut builder = Builder::new();
    let good = [call(0x1000), ret(0x1000)];
    builder.chunk(header(1, 1, 0), &good, true);
    // Says it is compressed, and is not; claims a clock nobody has; claims more words.
    for (encoding, clock, count) in [(1u8, 1u8, 2u32), (0, 9, 2), (0, 1, 3), (7, 1, 2)] {
        let bad = chunk::Header { encoding, clock, count, sequence: 2, ..header(1, 1, 0) };
        builder.packet(kind::CHUNK, &[&bad.encode()[..], &[1, 2, 3, 4, 5, 6, 7, 8]].concat());
    }
    let profile = replay(&builder.end());
    assert_eq!((profile.health.events, profile.health.lost), (2, 9));
    let warnings = profile.health.warnings.join("\n");
    for reason in ["does not decompress", "clock 9", "says 3 words, the data has 2", "encoding 7"] {
        assert!(warnings.contains(reason), "{reason}: {warnings}");
    }
}

#[test]
fn data_that_ends_within_a_word_is_left_out() {
    let bytes = [&call(0x1000).to_le_bytes()[..], &[7]].concat();
    let compressed = zstd::bulk::compress(&bytes, 1).unwrap();
    let planes = zstd::bulk::compress(&[&bytes[..], &[3]].concat(), 1).unwrap();
    for (encoding, clock, count, data) in
        [(0, 1, 1, bytes), (1, 1, 1, compressed), (2, 2, 2, planes)]
    {
        let header = chunk::Header { encoding, clock, count, words_bytes: 5, ..header(1, 1, 0) };
        let mut builder = Builder::new();
        builder.packet(kind::CHUNK, &[&header.encode()[..], &data].concat());
        let health = replay(&builder.end()).health;
        assert_eq!((health.events, health.lost), (0, u64::from(count)), "encoding {encoding}");
        let warnings = health.warnings.join("\n");
        assert!(warnings.contains("its data is not whole words"), "{warnings}");
    }
}

#[test]
fn two_planes_are_for_the_cycle_clock_alone() {
    let plane = [call(0x1000).to_le_bytes(), ret(0x1000).to_le_bytes()].concat();
    let data = zstd::bulk::compress(&[&plane[..], &[5, 5]].concat(), 1).unwrap();
    let planes = |clock| {
        let words_bytes = plane.len() as u32;
        let header = chunk::Header { count: 4, clock, encoding: 2, words_bytes, ..header(1, 1, 0) };
        let mut builder = Builder::new();
        builder.packet(kind::CHUNK, &[&header.encode()[..], &data].concat());
        replay(&builder.end()).health
    };
    let cycle = planes(2);
    assert_eq!((cycle.events, cycle.lost), (2, 0), "{:?}", cycle.warnings);
    let tick = planes(1);
    assert_eq!((tick.events, tick.lost), (0, 4));
    let warnings = tick.warnings.join("\n");
    assert!(
        warnings.contains("encoding 2 is not for the tick clock; 4 words are lost"),
        "{warnings}"
    );
}

#[test]
fn an_escape_with_a_payload_word_that_was_not_written_is_skipped() {
    let gap = |lost: u32| {
        let [low, high] = split62(5);
        vec![escape(code::GAP, 2), payload(6), lost, payload(0), payload(0), payload(0), low, high]
    };
    let name = |second: u32| vec![escape(code::NAME, 0), payload(2), pack_bytes(b"abc"), second];
    // As the recorder has it for a word that its thread never wrote.
    let missing = 1;
    let told = |gap, name, mut module: Vec<u32>| {
        module.extend([gap, name, vec![call(0x1000), ret(0x1000)]].concat());
        let mut builder = Builder::new();
        builder.chunk(header(1, 1, 0), &module, false);
        let profile = replay(&builder.end());
        let skipped: Vec<u32> = [code::GAP, code::MODULE, code::NAME]
            .into_iter()
            .filter(|code| {
                let text = format!("an escape of code {code} was skipped");
                profile.health.warnings.contains(&text)
            })
            .collect();
        let function = profile.functions[0].name.clone();
        let health = &profile.health;
        (health.events, health.lost, profile.threads[0].name.clone(), function, skipped)
    };
    let whole = module(0x1000, 0x1000, 0, "/bin/one");
    assert_eq!(
        told(gap(payload(9)), name(pack_bytes(b"d")), whole.clone()),
        (2, 9, "abcd".into(), "one+0x1000".into(), vec![])
    );
    let mut cut = whole;
    *cut.last_mut().unwrap() = missing;
    let codes = vec![code::GAP, code::MODULE, code::NAME];
    assert_eq!(
        told(gap(missing), name(missing), cut),
        (2, 0, "".into(), "[unknown module]+0x1000".into(), codes)
    );
}

#[test]
fn a_frame_that_decompresses_to_gigabytes_is_refused() {
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 19).unwrap();
    let mut builder = Builder::new();
    let bad = chunk::Header { encoding: 1, count: 16384, ..header(1, 1, 0) };
    builder.packet(kind::CHUNK, &[&bad.encode()[..], &bomb].concat());
    assert_eq!(replay(&builder.end()).health.lost, 16384);
}

#[test]
fn cycle_planes_are_put_together() {
    // Two events 5 and 300 units after the chunk's start, a note between them.
    let note = [escape(code::NOTE, 0), payload(1), pack_bytes(b"x")];
    let plane: Vec<u8> = [&[call(0x1000)][..], &note, &[ret(0x1000)]]
        .concat()
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .collect();
    let times = [5, 0x80 | (295 & 0x7F) as u8, (295 >> 7) as u8];
    let data = zstd::bulk::compress(&[&plane[..], &times].concat(), 1).unwrap();
    let header = chunk::Header {
        count: 7,
        clock: 2,
        encoding: 2,
        words_bytes: plane.len() as u32,
        ..header(1, 1, 0xFFFF_FFF0_0000_1000)
    };
    let mut builder = Builder::new();
    builder.packet(kind::CHUNK, &[&header.encode()[..], &data].concat());
    let bytes = builder.end();
    let profile = replay(&bytes);
    let told: Vec<_> =
        profile.threads[0].tree.nodes.iter().map(|n| (n.calls, n.self_time.value)).collect();
    assert_eq!(told, [(0, 5.0), (1, 295.0)]);

    let mut recording = Recording::from_read(&bytes[..], "test");
    let mut decoder = teeperf_profile::chunks::Decoder::new().unwrap();
    let mut times = vec![];
    while let Some(packet) = recording.next_packet().unwrap() {
        if let Body::Chunk(header, data) = packet.body {
            let events = teeperf_profile::events::events(&mut decoder, &header, data).unwrap();
            times.extend(events.map(|event| (event.word, event.time - header.time)));
        }
    }
    assert_eq!(times, [(0, 5), (2, 5), (5, 300)]);
}

#[test]
fn a_stack_that_goes_on_in_another_thread_takes_its_frames_along() {
    let chunk = |thread, sequence, items: Vec<Item>| Chunk {
        thread,
        sequence,
        clock: ClockKind::Tick,
        time: 0,
        stack: 0,
        items,
    };
    let event = |is_call: bool, site| {
        if is_call { Item::Call { site, time: 0 } } else { Item::Return { site, time: 0 } }
    };
    let one = chunk(
        1,
        1,
        vec![
            Item::Switch { left: 0, entered: 9 },
            event(true, 0x1000),
            event(true, 0x2000),
            Item::Switch { left: 9, entered: 0 },
        ],
    );
    let two = chunk(
        2,
        1,
        vec![
            Item::Switch { left: 0, entered: 9 },
            event(true, 0x3000),
            event(false, 0x3000),
            event(false, 0x2000),
            event(false, 0x1000),
            Item::Switch { left: 9, entered: 0 },
        ],
    );
    let mut builder = Builder::new();
    for chunk in [one, two] {
        builder.chunk(chunk.header(), &chunk.words(), false);
    }
    let profile = replay(&builder.end());
    let health = &profile.health;
    assert_eq!((health.events, health.mended, health.unopened, health.open), (6, 0, 0, 0));
    assert_eq!(health.taken_over, 1);
    let second = profile.threads.iter().find(|t| t.tid == 1002).unwrap();
    let calls: Vec<u64> = second.tree.nodes.iter().map(|n| n.calls).collect();
    assert_eq!(calls, [0, 0, 0, 1]);
}

/// The thread that jumps made no such mark; what it makes of its own with that key counts from then on.
#[test]
fn a_mark_on_a_stack_is_known_to_the_thread_that_goes_on_with_it() {
    let stack = |id| [&[escape(code::STACK, 0), payload(2)][..], &split62(id)].concat();
    let (mark, jump) = (vec![escape(code::MARK, 7)], vec![escape(code::JUMP, 7)]);
    let mut builder = Builder::new();
    let one = [
        vec![call(0x1000)],
        stack(9),
        vec![call(0x2000)],
        mark.clone(),
        vec![call(0x2100)],
        stack(0),
        vec![ret(0x1000)],
    ];
    builder.chunk(header(1, 1, 0), &one.concat(), false);
    let two = [
        vec![call(0x3000)],
        mark,
        stack(5),
        stack(0),
        vec![call(0x3100)],
        jump.clone(),
        vec![call(0x3200), ret(0x3200), ret(0x3000)],
    ];
    builder.chunk(header(1, 3, 0), &two.concat(), false);
    let three = [vec![call(0x4000)], jump, vec![call(0x2200), ret(0x2200), ret(0x2000)]].concat();
    builder.chunk(header(1, 2, 0), &three, false);
    let profile = replay(&builder.end());
    let health = &profile.health;
    // What the first thread left open above its mark is gone; thread 2's first frame rests.
    assert_eq!((health.mended, health.unopened), (0, 0));
    let named = |thread: u32, function: &str| {
        let thread = profile.threads.iter().find(|t| t.tid == thread).unwrap();
        let nodes = &thread.tree.nodes;
        let name = |node: &teeperf_profile::model::Node| {
            profile.functions[node.function.0 as usize].name.clone()
        };
        let node = nodes.iter().find(|node| name(node).ends_with(function)).unwrap();
        name(&nodes[node.parent as usize])
    };
    assert!(named(502, "0x2200").ends_with("0x2000"), "{}", named(502, "0x2200"));
    assert!(named(503, "0x3200").ends_with("0x3000"), "{}", named(503, "0x3200"));
}

#[test]
fn a_thread_whose_first_chunk_is_on_a_stack_that_was_left_has_its_frames() {
    let mut builder = Builder::new();
    let switch = |left, entered| {
        [&[escape(code::SWITCH, 0), payload(4)][..], &split62(left), &split62(entered)].concat()
    };
    let one = [switch(0, 9), vec![call(0x1000), call(0x2000)], switch(9, 0)].concat();
    builder.chunk(header(1, 1, 0), &one, false);
    let two = [ret(0x2000), call(0x3000), ret(0x3000), ret(0x1000)];
    builder.chunk(chunk::Header { stack: 9, ..header(1, 2, 0) }, &two, false);
    let profile = replay(&builder.end());
    let health = &profile.health;
    assert_eq!((health.events, health.mended, health.unopened, health.open), (6, 0, 0, 0));
    // The inner call of the second thread hangs below the frame that it took over.
    let second = profile.threads.iter().find(|t| t.tid == 502).unwrap();
    let inner = second.tree.nodes.iter().find(|node| node.calls == 1).unwrap();
    let below = &second.tree.nodes[inner.parent as usize];
    let name = |node: &teeperf_profile::model::Node| {
        profile.functions[node.function.0 as usize].name.clone()
    };
    assert_eq!(name(inner), "[unknown module]+0x3000");
    assert_eq!((name(below), below.calls), ("[unknown module]+0x1000".into(), 0));
}

#[test]
fn a_stamp_sets_the_time_and_a_step_back_charges_nothing() {
    let mut words = vec![escape(code::STAMP, 0), payload(2)];
    words.extend(split62(5000));
    words.push(call(0x1000));
    words.extend([escape(code::STAMP, 0), payload(2)]);
    words.extend(split62(4000));
    words.extend([escape(code::TICK, 10), ret(0x1000)]);
    let mut builder = Builder::new();
    builder.chunk(header(1, 1, 1000), &words, false);
    let profile = replay(&builder.end());
    let selves: Vec<f64> =
        profile.threads[0].tree.nodes.iter().map(|n| n.self_time.value).collect();
    assert_eq!(selves, [4000.0, 10.0]);
}

/// Frames above a return's own, and a return of no frame; in chunks of two threads, and of two recordings as one.
#[test]
fn mended_frames_are_told_by_function() {
    let mut builder = Builder::new();
    builder.process(1, 4242, "/opt/bin/program");
    builder.symbols(1, 0x1000, &[(0x1100, 32, 0, "one", ""), (0x1200, 32, 0, "two", "")]);
    let module = module(0x1000, 0x40_0000, 0, "/opt/bin/program");
    let above = [call(0x1100), call(0x1200), call(0x1200), call(0x1100), call(0x1200)];
    let left = [call(0x1100), ret(0x1200), ret(0x1100)];
    builder.chunk(header(1, 1, 10), &[&module[..], &above[..], &[ret(0x1100); 2]].concat(), true);
    builder.chunk(header(1, 2, 10), &left, true);
    let profile = replay(&builder.end());
    let shown = |profile: &Profile| -> Vec<(String, u64)> {
        let name = |at: u32| profile.functions[at as usize].name.clone();
        profile.health.mended_in.iter().map(|m| (name(m.function.0), m.frames)).collect()
    };
    // The first return closes one frame above its own, the second the two that are left above the lowest.
    assert_eq!((profile.health.mended, shown(&profile)), (4, vec![("two".into(), 4)]));
    let both = teeperf_profile::combine::combine(profile.clone(), profile);
    assert_eq!((both.health.mended, shown(&both)), (8, vec![("two".into(), 8)]));
}

/// Waits of two functions, in chunks of two threads, and of two recordings as one.
#[test]
fn waits_are_no_time_of_a_thread_and_add_up() {
    let wait = |site: u32, units: u64| {
        let words = [escape(code::WAIT, 0), payload(3), payload(site)];
        [&words[..], &split62(units)].concat()
    };
    let mut builder = Builder::new();
    builder.process(1, 4242, "/opt/bin/program");
    builder.symbols(1, 0x1000, &[(0x1100, 32, 0, "one", ""), (0x1200, 32, 0, "two", "")]);
    let first = [
        module(0x1000, 0x40_0000, 0, "/opt/bin/program"),
        vec![call(0x1100), escape(code::TICK, 5), ret(0x1100)],
        wait(0x1100, 1_000),
        vec![escape(code::TICK, 7)],
        wait(0x1200, 1 << 40),
        // Too short to be one.
        vec![escape(code::WAIT, 0), payload(1), payload(0x1100)],
    ];
    builder.chunk(header(1, 1, 10), &first.concat(), true);
    builder.chunk(header(1, 2, 10), &[wait(0x1104, 500), wait(0x1100, 0)].concat(), true);
    let profile = replay(&builder.end());
    let shown = |profile: &Profile| -> Vec<(String, u64, f64, f64)> {
        let name = |at: u32| profile.functions[at as usize].name.clone();
        let waits = profile.waits.iter();
        waits.map(|w| (name(w.function.0), w.times, w.total_ns, w.longest_ns)).collect()
    };
    let long = (1u64 << 40) as f64;
    assert_eq!(
        shown(&profile),
        [("two".into(), 1, long, long), ("one".into(), 3, 1_500.0, 1_000.0)]
    );
    let recorded: f64 = profile.threads.iter().map(|t| t.tree.nodes[0].total.value).sum();
    assert_eq!((recorded, profile.health.events), (12.0, 2));
    let warnings = &profile.health.warnings;
    assert!(warnings.iter().any(|text| text == "an escape of code 25 was skipped"), "{warnings:?}");
    let both = teeperf_profile::combine::combine(profile.clone(), profile);
    assert_eq!(
        shown(&both),
        [("two".into(), 2, 2.0 * long, long), ("one".into(), 6, 3_000.0, 1_000.0)]
    );
}
