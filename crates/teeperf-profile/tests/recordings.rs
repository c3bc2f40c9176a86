//! Whole recordings, made by hand, and what must be told of them. All expectations here were
//! worked out by hand.

mod support;

use support::Builder;
use support::item::{Chunk, Item};
use teeperf_profile::contents::Body;
use teeperf_profile::model::Profile;
use teeperf_profile::{Error, Options, Recording};
use teeperf_wire::body::{self, chunk};
use teeperf_wire::packet::{MINOR, kind};
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{call, code, escape, pack_bytes, payload, ret, split62, split64};

fn replay(bytes: &[u8]) -> Profile {
    let mut options = Options { jobs: 1, ..Options::default() };
    Recording::from_read(bytes, "test").replay(&mut options).unwrap()
}

fn header(process: u32, thread: u32, time: u64) -> chunk::Header {
    chunk::Header {
        process,
        thread,
        tid: 500 + thread,
        sequence: 1,
        time,
        cpu_ns: u64::MAX,
        clock: ClockKind::Tick as u8,
        flags: chunk::WHOLE,
        ..chunk::Header::default()
    }
}

/// Words that open a window of 0x10000 sites.
fn module(first_site: u32, address: u64, bias: u64, path: &str) -> Vec<u32> {
    let mut words = vec![payload(1), payload(first_site), payload(0x10000)];
    words.extend(split64(address));
    words.extend(split64(bias));
    words.push(payload(2));
    words.push(pack_bytes(&[0xAB, 0xCD]));
    words.extend(path.as_bytes().chunks(3).map(pack_bytes));
    [vec![escape(code::MODULE, 0), payload(words.len() as u32)], words].concat()
}

fn function<'a>(profile: &'a Profile, name: &str) -> &'a teeperf_profile::model::Function {
    let names: Vec<&String> = profile.functions.iter().map(|f| &f.name).collect();
    profile
        .functions
        .iter()
        .find(|f| f.name == name)
        .unwrap_or_else(|| panic!("{name} in {names:?}"))
}

#[test]
fn names_come_from_symbols_modules_and_offsets() {
    let mut builder = Builder::new();
    builder.process(1, 4242, "/opt/bin/program");
    // A program linked at a fixed address, its window from 0x400000 on; a library whose text
    // begins 0x3000 into the file.
    let mut words = module(0x1000, 0x40_0000, 0, "/opt/bin/program");
    words.extend(module(0x20000, 0x7FFF_0000_3000, 0x7FFF_0000_0000, "/usr/lib/libone.so.1"));
    words.extend([call(0x1100), call(0x20040), ret(0x20040), call(0x20080), ret(0x20080)]);
    words.extend([call(0x50000), ret(0x50000), ret(0x1100)]);
    builder.chunk(header(1, 1, 10), &words, true);
    // Symbols come after the chunks that need them, in pieces.
    builder.symbols(1, 0x1000, &[(0x1100, 32, 7, "main", "/src/main.c")]);
    builder.symbols(
        1,
        0x20000,
        &[(0x20000, 0x40, 0, "_Z5otheri", ""), (0x20040, 16, 0, "_ZN3one3twoEv", "")],
    );
    let profile = replay(&builder.end());

    let main = function(&profile, "main");
    assert_eq!(
        (&main.module[..], main.file.as_deref(), main.line),
        ("program", Some("/src/main.c"), Some(7))
    );
    assert_eq!(function(&profile, "one::two()").module, "libone.so.1");
    assert_eq!(function(&profile, "libone.so.1+0x3080").module, "libone.so.1");
    assert_eq!(function(&profile, "[unknown module]+0x50000").module, "");
    assert_eq!(profile.functions.len(), 4);
    assert_eq!(profile.threads[0].name, "program");
    assert_eq!((profile.threads[0].pid, profile.threads[0].tid), (4242, 501));
    assert_eq!(
        profile.health.warnings,
        ["the recording does not say what hooks cost: times include it"]
    );
}

#[test]
fn functions_are_told_apart_by_place_when_asked() {
    // Two functions of one name; another process, elsewhere in memory and with other sites, has the same file.
    let mut words = module(0x1000, 0x5555_0000_1000, 0x5555_0000_0000, "/opt/program");
    words.extend([call(0x1110), call(0x1200), ret(0x1200), call(0x1300), ret(0x1300), ret(0x1110)]);
    let mut builder = Builder::new();
    builder.chunk(header(1, 1, 10), &words, false);
    let step = |site| (site, 32, 7, "step", "");
    builder.symbols(1, 0x1000, &[step(0x1100), step(0x1200)]);
    let mut words = module(0x3000, 0x7777_0000_1000, 0x7777_0000_0000, "/opt/program");
    words.extend([call(0x3100), ret(0x3100), call(0x50000), ret(0x50000)]);
    builder.chunk(header(2, 1, 10), &words, false);
    builder.symbols(2, 0x3000, &[step(0x3100)]);
    let bytes = builder.end();
    let of = |by_place| {
        let mut options = Options { jobs: 1, by_place, ..Options::default() };
        let profile = Recording::from_read(&bytes[..], "test").replay(&mut options).unwrap();
        let place = |f: &teeperf_profile::model::Function| {
            f.place.as_ref().map(|place| {
                assert_eq!((&*place.path, &*place.build_id), ("/opt/program", &[0xAB, 0xCD][..]));
                (place.address, place.size)
            })
        };
        let mut found: Vec<_> =
            profile.functions.iter().map(|f| (f.name.clone(), place(f))).collect();
        found.sort();
        found
    };
    let named = |name: &str, place| (name.to_owned(), place);
    assert_eq!(
        of(true),
        [
            named("[unknown module]+0x50000", None),
            named("program+0x1300", Some((0x1300, 0))),
            named("step", Some((0x1100, 32))),
            named("step", Some((0x1200, 32))),
        ]
    );
    assert_eq!(
        of(false),
        [
            named("[unknown module]+0x50000", None),
            named("program+0x1300", None),
            named("step", None)
        ]
    );
}

#[test]
fn a_function_has_its_name_without_its_window() {
    let mut builder = Builder::new();
    let words = [call(0x1008), ret(0x1008), call(0x1040), ret(0x1040)];
    builder.chunk(header(1, 1, 0), &words, false);
    builder.symbols(1, 0x1000, &[(0x1000, 16, 3, "work", "/a.c")]);
    // Another process's symbols, and one without a name, are of no use.
    builder.symbols(2, 0x1000, &[(0x1040, 16, 0, "other", "")]);
    builder.symbols(1, 0x1000, &[(0x1040, 16, 0, "", "")]);
    let profile = replay(&builder.end());
    let work = function(&profile, "work");
    assert_eq!((&work.module[..], work.file.as_deref(), work.line), ("", Some("/a.c"), Some(3)));
    function(&profile, "[unknown module]+0x1040");
}

#[test]
fn a_name_does_not_depend_on_what_its_packet_says_of_the_window() {
    let mut builder = Builder::new();
    let words = [module(0x1000, 0x1000, 0, "/bin/one"), vec![call(0x1010), call(0x1050)]].concat();
    builder.chunk(header(1, 1, 0), &words, false);
    builder.symbols(1, 0x2000, &[(0x1000, 0x40, 0, "wide", ""), (0x1010, 16, 0, "early", "")]);
    // Of those that begin at a site or before it the last counts, of several there the latest.
    builder.symbols(1, 0, &[(0x1010, 8, 0, "work", ""), (0x1008, 0x100, 0, "far", "")]);
    let profile = replay(&builder.end());
    assert_eq!(function(&profile, "work").module, "one");
    // "work" begins last before it and does not reach as far.
    function(&profile, "one+0x1050");
}

#[test]
fn a_window_is_known_by_the_module_that_retires_it() {
    let mut words = vec![call(0x1010), ret(0x1010)];
    let mut retired = module(0x1000, 0x1000, 0, "/lib/plugin.so");
    retired[2] = payload(0);
    words.extend(retired);
    let mut builder = Builder::new();
    builder.chunk(header(1, 1, 0), &words, false);
    builder.symbols(1, 0x1000, &[(0x1010, 9, 0, "work", "")]);
    assert_eq!(function(&replay(&builder.end()), "work").module, "plugin.so");
}

#[test]
fn the_same_site_is_another_function_in_another_process() {
    let mut builder = Builder::new();
    for (process, path) in [(1, "/bin/one"), (2, "/bin/two")] {
        builder.process(process, 100 + process, path);
        let words = [module(0x1000, 0x1000, 0, path), vec![call(0x1010), ret(0x1010)]].concat();
        builder.chunk(header(process, 1, 0), &words, false);
        builder.symbols(process, 0x1000, &[(0x1010, 9, 0, "work", "")]);
    }
    let profile = replay(&builder.end());
    let mut modules: Vec<_> =
        profile.functions.iter().map(|f| (&f.name[..], &f.module[..])).collect();
    modules.sort_unstable();
    assert_eq!(modules, [("work", "one"), ("work", "two")]);
}

#[test]
fn two_sites_of_one_name_are_one_path() {
    let mut builder = Builder::new();
    let mut words = module(0x1000, 0x1000, 0, "/bin/one");
    words.extend([
        call(0x1010),
        ret(0x1010),
        call(0x1020),
        call(0x1010),
        ret(0x1010),
        ret(0x1020),
        call(0x1030),
        ret(0x1030),
    ]);
    builder.chunk(header(1, 1, 0), &words, false);
    builder.symbols(
        1,
        0x1000,
        &[(0x1010, 9, 0, "work", ""), (0x1020, 9, 0, "work", ""), (0x1030, 9, 0, "rest", "")],
    );
    let profile = replay(&builder.end());
    let nodes = &profile.threads[0].tree.nodes;
    let paths: Vec<(u32, u32, u64)> =
        nodes[1..].iter().map(|n| (n.parent, n.function.0, n.calls)).collect();
    let (work, rest) = if profile.functions[0].name == "work" { (0, 1) } else { (1, 0) };
    assert_eq!(paths, [(0, work, 2), (1, work, 1), (0, rest, 1)]);
}

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
fn hook_cost_is_taken_off_and_kept_on_request() {
    let cost: Vec<u8> = [1000u64, 2000, 3000, 4000, 10_000, 20_000, 30_000, 40_000]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    let mut builder = Builder::empty();
    let clock = 2000u64.to_le_bytes();
    builder.start(&[(body::start::HOOK_COST_PS, &cost), (body::start::LEAST_COST_PS, &clock)]);
    let words = [
        call(0x1000),
        escape(code::TICK, 500),
        call(0x2000),
        escape(code::TICK, 300),
        ret(0x2000),
        ret(0x1000),
    ];
    builder.chunk(header(1, 1, 0), &words, false);
    let bytes = builder.end();
    let profile = replay(&bytes);
    let selves: Vec<_> = profile.threads[0]
        .tree
        .nodes
        .iter()
        .map(|n| [n.self_time.low, n.self_time.value, n.self_time.high].map(f64::round))
        .collect();
    // Outer: its own 5 ns and 5 ns for the call it makes; hot. There is room for all of it but
    // the least, 1 ns for each; 4 ns of the outer's time are the inner's. Ten times that cold.
    assert_eq!(selves, [[0.0, 0.0, 0.0], [398.0, 494.0, 495.0], [249.0, 303.0, 305.0]]);
    assert_eq!(profile.info.hook_cost_ps, Some((10_000, 100_000)));
    let mut keep = Options { keep_hook_cost: true, ..Options::default() };
    let profile = Recording::from_read(&bytes[..], "test").replay(&mut keep).unwrap();
    assert_eq!(profile.threads[0].tree.nodes[0].total.value, 800.0);
}

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
    let second = profile.threads.iter().find(|t| t.tid == 1002).unwrap();
    let calls: Vec<u64> = second.tree.nodes.iter().map(|n| n.calls).collect();
    assert_eq!(calls, [0, 0, 0, 1]);
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
fn windows_that_name_two_files_are_said_to() {
    let mut builder = Builder::new();
    let words = [
        module(0x1000, 0, 0, "/a"),
        module(0x1000, 0, 0, "/a"),
        module(0x1000, 0, 0, "/b"),
        vec![call(0x1008)],
    ]
    .concat();
    builder.chunk(header(1, 1, 0), &words, false);
    let profile = replay(&builder.end());
    assert_eq!(profile.functions[0].name, "a+0x8");
    let warnings = profile.health.warnings.join("\n");
    assert!(warnings.contains("are those of /a and, later, of /b"), "{warnings}");
    assert_eq!(profile.health.open, 1);
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
