//! A recording put together here byte by byte, and its lines.

use std::collections::HashSet;

use teeperf_profile::chunks::Decoder;
use teeperf_profile::{Options, Recording, SiteNames};
use teeperf_view::dump::Dump;
use teeperf_wire::body::{self, chunk, tree};
use teeperf_wire::fields::Writer;
use teeperf_wire::packet::{Header, MAJOR, kind};
use teeperf_wire::word::{self, code, gap};

#[derive(Default)]
struct Bytes {
    bytes: Vec<u8>,
    packets: u32,
}

impl Bytes {
    fn packet(&mut self, packet: u16, payload: &[u8]) {
        self.bytes.extend(Header::encode(packet, self.packets, payload));
        self.bytes.extend_from_slice(payload);
        self.packets += 1;
    }

    fn fields(&mut self, packet: u16, fields: &[(u16, &[u8])]) {
        let mut room = [0; 1024];
        let mut writer = Writer::new(&mut room);
        for (tag, value) in fields {
            writer.bytes(*tag, value).unwrap();
        }
        let payload = writer.finish().to_vec();
        self.packet(packet, &payload);
    }

    /// A piece of the thread's chunk, from this word on.
    fn piece(&mut self, first: u32, words: &[u32]) {
        let header = chunk::Header {
            process: 1,
            thread: 2,
            tid: 4100,
            sequence: 1,
            first,
            count: words.len() as u32,
            time: 1_500,
            cpu_ns: u64::MAX,
            clock: 1,
            flags: chunk::WHOLE,
            ..Default::default()
        };
        let mut payload = header.encode().to_vec();
        payload.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self.packet(kind::CHUNK, &payload);
    }
}

fn recording(words: &[u32]) -> Vec<u8> {
    recording_of(&[words])
}

/// With the words of one chunk, piece by piece.
fn recording_of(pieces: &[&[u32]]) -> Vec<u8> {
    let mut bytes = Bytes::default();
    bytes.fields(
        kind::START,
        &[
            (body::start::VERSION, &u32::from(MAJOR).to_le_bytes()),
            (body::start::CLOCK, &[1]),
            (body::start::HZ, &1_000_000u32.to_le_bytes()),
            (body::start::CLOCK_START, &1_000u32.to_le_bytes()),
            (body::start::ARGUMENT, b"./kitchen"),
            (body::start::ARGUMENT, b"a \"b\"\x1b"),
        ],
    );
    bytes.fields(
        kind::PROCESS,
        &[
            (body::process::ID, &[1]),
            (body::process::PID, &[77]),
            (body::process::EXECUTABLE, b"/bin/kitchen"),
            (body::process::TIME, &1_250u32.to_le_bytes()),
        ],
    );
    let mut first = 0;
    for words in pieces {
        bytes.piece(first, words);
        first += words.len() as u32;
    }
    let mut symbol = Vec::new();
    for number in [0x1000u32, 16, 7] {
        symbol.extend(number.to_le_bytes());
    }
    symbol.extend(9u16.to_le_bytes());
    symbol.extend(b"_ZN1k1fEv");
    bytes.fields(
        kind::SYMBOLS,
        &[
            (body::symbols::PROCESS, &[1]),
            (body::symbols::FIRST_SITE, &0x1000u32.to_le_bytes()),
            (body::symbols::SYMBOL, &symbol),
        ],
    );
    bytes.fields(kind::END, &[(body::end::WORDS, &[9]), (body::end::EXIT_STATUS, &[3])]);
    bytes.bytes
}

fn dump(bytes: &[u8], with_events: bool) -> Vec<Vec<String>> {
    let mut names = SiteNames::default();
    let mut decoder = Decoder::new().unwrap();
    let mut first = Recording::from_read(bytes, "first");
    while let Some(packet) = first.next_packet().unwrap() {
        names.packet(&packet, &mut decoder);
    }
    dump_with(names, bytes, with_events)
}

fn dump_with(names: SiteNames, bytes: &[u8], with_events: bool) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    let mut dump = Dump::new(names, with_events).unwrap();
    let mut second = Recording::from_read(bytes, "second");
    while let Some(packet) = second.next_packet().unwrap() {
        dump.packet(&packet, &mut out).unwrap();
    }
    let text = String::from_utf8(out).unwrap();
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    let columns = |line: &str| -> Vec<String> {
        let mut words = line.split_whitespace();
        let mut columns: Vec<String> = words.by_ref().take(6).map(str::to_owned).collect();
        columns.push(words.collect::<Vec<_>>().join(" "));
        columns
    };
    text.lines().map(columns).collect()
}

#[test]
fn a_line_for_each_packet() {
    let lines = dump(&recording(&[word::call(0x1000)]), false);
    let heads: Vec<String> = lines.iter().map(|line| line[1..6].join(" ")).collect();
    assert_eq!(
        heads,
        [
            "start - - - -",
            "process 1 - 0.000250000 -",
            "chunk 1 4100 0.000500000 -",
            "symbols 1 - - -",
            "end - - -0.001000000 -",
        ]
    );
    assert_eq!(lines[0][0], "0");
    assert!(lines[0][6].starts_with("version=1.0 clock=tick hz=1000000 period=0 start=1000"));
    assert!(lines[0][6].ends_with("command=\"./kitchen a \\\"b\\\"\\x1b\""), "{}", lines[0][6]);
    assert!(lines[1][6].starts_with("pid=77 parent=0 exec_of=0 executable=\"/bin/kitchen\""));
    assert_eq!(
        lines[2][6],
        "serial=2 sequence=1 first=0 words=1 bytes=4 encoding=0 clock=1 stack=0x0 cpu_ns=- whole"
    );
    assert_eq!(lines[3][6], "first_site=0x1000 symbols=1");
    assert_eq!(lines[4][6], "words=9 status=3 signal=- recorder_cpu_ns=0 reason=\"\"");
}

#[test]
fn events_with_time_depth_and_name() {
    let known = 0x1008;
    let mut words = vec![
        word::call(known),
        word::escape(code::TICK, 100),
        word::escape(code::MARK, 5),
        word::call(0x2000),
        word::call(known),
        word::escape(code::JUMP, 5),
        word::call(0x2000),
        word::ret(0x2000),
        word::escape(code::GAP, gap::DROPPED),
        word::payload(6),
    ];
    words.extend(word::split62(12));
    words.extend([word::payload(1), word::payload(3)]);
    words.extend(word::split62(40));
    words.extend([word::escape(code::CATCH, 0), word::payload(1), word::payload(known)]);
    words.push(word::ret(known));
    let lines = dump(&recording(&words), true);
    let chunk = lines.iter().position(|line| line[1] == "chunk").unwrap();
    let at = &lines[chunk][0];
    let events: Vec<String> = lines[chunk + 1..lines.len() - 2]
        .iter()
        .map(|line| {
            assert_eq!(line[2..4], ["1", "4100"]);
            let place = line[0].strip_prefix(&format!("{at}+")).unwrap();
            format!("{place} {} {} {} {}", line[1], line[4], line[5], line[6])
        })
        .collect();
    assert_eq!(
        events,
        [
            "0 call 0.000500000 +1 k::f()",
            "1 tick 0.000600000 - units=100",
            "2 mark 0.000600000 - key=5 depth=1",
            "3 call 0.000600000 +2 [unknown module]+0x2000",
            "4 call 0.000600000 +3 k::f()",
            "5 jump 0.000600000 - key=5 depth=1",
            "6 call 0.000600000 +2 [unknown module]+0x2000",
            "7 return 0.000600000 -2 [unknown module]+0x2000",
            "8 gap 0.000600000 - reason=dropped lost=12 popped=1 pushed=3 units=40 depth=3",
            "16 catch 0.000600000 - k::f()",
            "19 return 0.000600000 -3 k::f()",
        ]
    );
}

/// Guards: the header of a later piece tells the stack of the chunk's beginning, not of its own.
#[test]
fn a_later_piece_goes_on_on_the_stack_that_was_switched_to() {
    let opening = [word::escape(code::SWITCH, 0), word::payload(4)];
    let switch = [&opening[..], &word::split62(0), &word::split62(7)];
    let calls = [word::call(0x1008), word::call(0x1008)];
    let begins = [&[word::call(0x1008)][..], &switch.concat(), &calls].concat();
    let lines = dump(&recording_of(&[&begins, &[word::ret(0x1008), word::ret(0x1008)]]), true);
    let depths = lines.iter().filter(|line| ["call", "return"].contains(&&*line[1]));
    assert_eq!(depths.map(|line| &*line[5]).collect::<Vec<_>>(), ["+1", "+1", "+2", "-2", "-1"]);
}

/// Words of a module whose window is 0x1000 sites long and begins 0x1000 into its file.
fn module(first_site: u32, path: &str) -> Vec<u32> {
    let mut payload = vec![word::payload(1), word::payload(first_site), word::payload(0x1000)];
    payload.extend(word::split64(0x7FFF_0000_1000));
    payload.extend(word::split64(0x7FFF_0000_0000));
    payload.push(word::payload(0));
    payload.extend(path.as_bytes().chunks(3).map(word::pack_bytes));
    [vec![word::escape(code::MODULE, 0), word::payload(payload.len() as u32)], payload].concat()
}

fn calls(lines: &[Vec<String>]) -> Vec<&str> {
    lines.iter().filter(|line| line[1] == "call").map(|line| &*line[6]).collect()
}

#[test]
fn functions_have_the_names_that_reports_have() {
    // A thread may call into a module before another tells of it.
    let mut words = vec![word::call(0x3230), word::call(0x1008)];
    words.extend(module(0x3000, "/bin/kst"));
    words.extend([word::call(0x3230), word::call(0x9000)]);
    words.extend([word::escape(code::FAR, 0), word::payload(3)]);
    words.extend(word::split64(0x7FFF_1234_5678));
    let bytes = recording(&words);
    let lines = dump(&bytes, true);
    let far = "[unknown module]+0x7fff12345678";
    let names = ["kst+0x1230", "k::f()", "kst+0x1230", "[unknown module]+0x9000", far];
    assert_eq!(calls(&lines), names);
    let profile =
        Recording::from_read(&bytes[..], "bytes").replay(&mut Options::default()).unwrap();
    let of_profile: HashSet<&str> = profile.functions.iter().map(|f| &*f.name).collect();
    assert_eq!(of_profile, HashSet::from(names));

    // Of a stream there is only one pass.
    let lines = dump_with(SiteNames::default(), &bytes, true);
    let unknown = |site| format!("[unknown module]+{site:#x}");
    assert_eq!(
        calls(&lines),
        [&*unknown(0x3230), &unknown(0x1008), "kst+0x1230", &unknown(0x9000), far]
    );
}

#[test]
fn a_tree_is_one_line() {
    let header = tree::Header {
        process: 1,
        thread: 2,
        tid: 4100,
        nodes: 2,
        begin: 1_000,
        end: 3_000,
        mended: 1,
        flags: tree::FOLDS,
        ..Default::default()
    };
    let of = |data: &[u8]| {
        let mut bytes = Bytes { bytes: recording(&[]), packets: 9 };
        bytes.packet(kind::TREE, &[&header.encode()[..], data].concat());
        dump(&bytes.bytes, true).pop().unwrap()[1..].join(" ")
    };
    assert_eq!(
        of(&[0, 0, 0, 0, 2, 0, 0, 1, 0, 7, 3, 8, 2, 5]),
        "tree 1 4100 0.002000000 - serial=2 nodes=2 bytes=14 encoding=0 begin=1000 end=3000 calls=3 time=10 mended=1 folded"
    );
    assert!(of(&[0, 0, 0, 0, 2, 0, 0, 1]).ends_with(" error=\"node 1 of 2 cannot be read\""));
}

#[test]
fn what_cannot_be_read_is_said() {
    // A count word that claims more than there is, and a chunk that is no zstd frame.
    let lines = dump(&recording(&[word::escape(code::NOTE, 0), word::payload(9)]), true);
    assert!(lines.iter().any(|line| line[1] == "unreadable" && line[6] == "words=2"));

    let mut bytes = Bytes::default();
    let header = chunk::Header { count: 1, clock: 1, encoding: 1, ..Default::default() };
    bytes.packet(kind::CHUNK, &[&header.encode()[..], b"nonsense"].concat());
    bytes.packet(99, b"later");
    let events = 7u64.to_le_bytes();
    bytes.fields(kind::LOSS, &[(body::loss::PROCESS, &[1]), (body::loss::EVENTS, &events)]);
    // A process id, and a field that claims more than there is.
    let cut = [&[1, 0, 0, 0, 1, 0, 0, 0, 6][..], &[2, 0, 0, 0, 9, 0, 0, 0, 77]].concat();
    bytes.packet(kind::PROCESS, &cut);
    bytes.packet(kind::CHUNK, &[1, 2, 3]);
    let lines = dump(&bytes.bytes, true);
    assert_eq!(lines[1][1], "unreadable");
    assert_eq!(lines[1][6], "chunk not decoded: its data does not decompress");
    assert_eq!((&*lines[2][1], &*lines[2][6]), ("unknown", "type=99 bytes=5"));
    assert_eq!(lines[3][1..3], ["loss", "1"]);
    assert_eq!(lines[3][6], "events=7");
    assert_eq!(lines[4][1..3], ["process", "6"]);
    assert_eq!((&*lines[5][1], &*lines[5][6]), ("malformed", "type=2 bytes=18 at=9"));
    assert_eq!((&*lines[6][1], &*lines[6][6]), ("malformed", "type=3 bytes=3 at=0"));
    assert_eq!(lines.len(), 7);
}
