//! docs/format.md says what this crate does: its examples are read with the decoders here, and
//! the numbers in its tables are the constants here.

use teeperf_wire::body::{
    arcs, chunk, end, file, filter, keyframe, loss, map, notice, process, process_end, sample,
    sampled, start, symbols, task, thread, tree,
};
use teeperf_wire::packet::{HEADER_SIZE, Header, MAJOR, MAX_PAYLOAD, MINOR, kind};
use teeperf_wire::piece::{self, Piece, Writer};
use teeperf_wire::word::{self, Word, code, gap, module};
use teeperf_wire::{fields, shared};

const DOCUMENT: &str = include_str!("../../../docs/format.md");

/// Bytes of the blocks of this name, one behind the other.
fn example(name: &str) -> Vec<u8> {
    let fence = format!("```hex {name}\n");
    let blocks = DOCUMENT.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap());
    let digits: String = blocks.collect();
    assert!(!digits.is_empty(), "no example {name}");
    digits.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect()
}

/// Type and payload of each packet; every header and checksum must be right.
fn packets(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut packets = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<HEADER_SIZE>() {
        let header = Header::decode(head).unwrap();
        let (payload, rest) = rest.split_at(header.length as usize);
        assert!(header.fits(payload), "checksum of packet {}", packets.len());
        assert_eq!((header.sequence as usize, header.flags), (packets.len(), 0));
        packets.push((header.kind, payload));
        bytes = rest;
    }
    assert!(bytes.is_empty());
    packets
}

fn number(payload: &[u8], tag: u16) -> Option<u64> {
    fields::read(payload).map(Result::unwrap).find(|field| field.tag == tag)?.number()
}

#[test]
fn the_whole_recording() {
    let bytes = example("recording");
    let packets = packets(&bytes);
    let kinds: Vec<u16> = packets.iter().map(|&(kind, _)| kind).collect();
    assert_eq!(kinds, [kind::START, kind::PROCESS, kind::CHUNK, kind::SYMBOLS, kind::END]);
    let [begin, attached, piece, names, last] = [0, 1, 2, 3, 4].map(|n: usize| packets[n].1);
    assert_eq!(number(begin, start::VERSION), Some(u64::from(MAJOR) | u64::from(MINOR) << 16));
    assert_eq!(number(begin, start::CLOCK), Some(shared::ClockKind::Tick as u64));
    assert_eq!(number(begin, start::HZ), Some(1_000_000));
    assert_eq!(number(begin, start::CLOCK_START), Some(5000));
    assert_eq!(number(attached, process::ID), Some(1));
    assert_eq!(number(attached, process::PID), Some(77));
    assert_eq!(number(names, symbols::FIRST_SITE), Some(0x1000));
    assert_eq!(number(last, end::TIME), Some(5200));
    assert_eq!(number(last, end::WORDS), Some(23));

    let (header, data) = chunk::Header::decode(piece).unwrap();
    assert_eq!((header.process, header.thread, header.tid, header.sequence), (1, 1, 78, 1));
    assert_eq!((header.first, header.count, header.time), (0, 23, 5100));
    assert_eq!((header.cpu_ns, header.stack, header.flags), (u64::MAX, 0, chunk::WHOLE));
    let words = words(data);
    assert_eq!(words.len(), 23);
    assert_eq!(word::decode(words[0]), Word::Escape { code: code::MODULE, arg: 0 });
    assert_eq!(word::payload_value(words[1]), Some(13));
    assert_eq!(
        words[2..5].iter().map(|&w| word::payload_value(w).unwrap()).collect::<Vec<_>>(),
        [1, 0x1000, 0x3000]
    );
    assert_eq!(word::join(&words[5..8]), Some(0x5555_5555_4000));
    assert_eq!(word::join(&words[8..11]), Some(0x5555_5555_4000));
    assert_eq!(word::payload_value(words[11]), Some(2));
    assert_eq!(words[12..15], [&b"\xAB\xCD"[..], b"/bi", b"n/a"].map(word::pack_bytes));
    let tick = |units| word::escape(code::TICK, units);
    let (outer, inner) = (0x2200, 0x2240);
    let pad = word::escape(code::PAD, 0);
    let events = [
        word::call(outer),
        tick(5),
        word::call(inner),
        tick(7),
        word::ret(inner),
        tick(3),
        word::ret(outer),
        pad,
    ];
    assert_eq!(words[15..], events);
}

#[test]
fn headers_of_encoded_chunks() {
    let bytes = example("chunk-zstd");
    let (header, _) = chunk::Header::decode(&bytes).unwrap();
    assert_eq!((header.sequence, header.count, header.time), (2, 4, 6000));
    assert_eq!((header.clock, header.encoding), (1, chunk::encoding::ZSTD));
    let bytes = example("chunk-cycle");
    let (header, _) = chunk::Header::decode(&bytes).unwrap();
    assert_eq!((header.thread, header.count, header.time), (2, 12, 0x1_FFFF_FF01));
    assert_eq!((header.cpu_ns, header.words_bytes), (123_456, 32));
    assert_eq!((header.clock, header.encoding), (2, chunk::encoding::CYCLE_ZSTD));
    assert_eq!(words(&example("chunk-cycle-words")).len(), 12);
}

#[test]
fn the_header_of_arcs() {
    let bytes = example("arcs");
    let (header, data) = arcs::Header::decode(&bytes).unwrap();
    assert_eq!((header.process, header.thread, header.tid), (1, 1, 78));
    assert_eq!((header.arcs, header.spans, header.lost), (2, 1, 0));
    assert_eq!((header.begin, header.end, header.encoding), (5000, 5017, arcs::encoding::PLAIN));
    // Sites are hexadecimal, and words twice as much.
    let (site, function) = ([0x88, 0x88, 1], [0x80, 0x89, 1]);
    let arcs = [&site[..], &function, &[3], &[arcs::FAR as u8, 9], &function, &[0xC8, 1]].concat();
    assert_eq!(data, [&arcs[..], &function, &site, &[17]].concat());
}

#[test]
fn the_header_of_a_tree() {
    let bytes = example("tree");
    let (header, data) = tree::Header::decode(&bytes).unwrap();
    assert_eq!((header.process, header.thread, header.tid, header.nodes), (1, 1, 78, 3));
    assert_eq!((header.begin, header.end, header.mended), (5000, 5017, 0));
    assert_eq!((header.encoding, header.flags), (tree::encoding::PLAIN, 0));
    let outer = [1, 0x80, 0x88, 1, 1, 8, 16, 15];
    let inner = [1, 0x80, 0x89, 1, 3, 7, 2, 4];
    let thread = [0, tree::word::FAR as u8, 0, 0, 2, 0, 0];
    assert_eq!(data, [&thread[..], &outer, &inner].concat());
    let header = [
        ("process", 0),
        ("thread", 4),
        ("tid", 8),
        ("nodes", 12),
        ("begin", 16),
        ("end", 24),
        ("mended", 32),
        ("encoding", 40),
        ("flags", 41),
    ];
    assert_rows("\n### Trees\n", &header);
}

/// There is a row for each name at its offset, in the tables behind a text and before the next heading.
#[track_caller]
fn assert_rows(before: &str, places: &[(&str, usize)]) {
    let table = DOCUMENT.split_once(before).expect(before).1;
    let table = table.split("\n#").next().unwrap();
    for (name, offset) in places {
        let is_row = |line: &str| {
            line.starts_with(&format!("| {offset} | ")) && line.contains(&format!(" | {name} | "))
        };
        assert!(table.lines().any(is_row), "{name} at {offset}");
    }
}

#[test]
fn samples() {
    let bytes = example("samples");
    let (header, data) = sample::Header::decode(&bytes).unwrap();
    let expected = sample::Header {
        samples: 2,
        bytes: 208,
        lost: 3,
        event: 1,
        encoding: sample::encoding::PLAIN,
    };
    assert_eq!((header, data.len()), (expected, 208));
    assert_eq!(expected.encode(), bytes[..sample::HEADER]);
    let mut samples = sample::Samples { rest: data };
    let [first, second] = [samples.next().unwrap(), samples.next().unwrap()];
    assert_eq!((samples.next(), samples.rest), (None, &[][..]));
    let chain = [
        sample::CONTEXT_KERNEL,
        0xFFFF_FFFF_8100_0010,
        sample::CONTEXT_USER,
        0x5555_5555_5210,
        0x5555_5555_5110,
    ];
    assert!(first.chain.iter().eq(chain));
    let alone = sample::Sample {
        event: 1,
        mode: sample::mode::KERNEL,
        time_ns: 2_000_000,
        pid: 77,
        tid: 78,
        ip: chain[1],
        period: 1_000_000,
        ..sample::Sample::default()
    };
    assert_eq!(sample::Sample { chain: first.chain, ..alone }, first);
    let alone = sample::Sample {
        mode: sample::mode::USER,
        abi: sample::abi::BITS_64,
        time_ns: 3_500_000,
        cpu: sample::NO_CPU,
        ip: 0x5555_5555_5200,
        period: 500_000,
        mask: 1 << 6 | 1 << 7 | 1 << 8,
        stack: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
        ..alone
    };
    assert_eq!(sample::Sample { registers: second.registers, ..alone }, second);
    let registers = [(6, 0x7FFF_FFFF_E010), (7, 0x7FFF_FFFF_E000), (8, second.ip)];
    assert!(registers.iter().all(|&(number, value)| second.register(number) == Some(value)));
}

#[test]
fn outer_stacks() {
    let bytes = example("sample-outer");
    let (inside, rest) = sample::Sample::decode(&bytes).unwrap();
    assert_eq!((rest, inside.parts(&inside.heads()).concat()), (&[][..], bytes.clone()));
    assert_eq!((inside.event, inside.ip, inside.mask), (2, 0x7F00_0000_1210, 0));
    assert!(inside.chain.iter().eq([sample::CONTEXT_USER, inside.ip]));
    assert_eq!(inside.outer.mask, 1 << 6 | 1 << 7 | 1 << 8);
    let registers = [0x7FFF_FFFF_E010, 0x7FFF_FFFF_E000, 0x5555_5555_5300];
    assert!(inside.outer.registers.iter().eq(registers));
    assert_eq!(inside.outer.stack, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
}

#[test]
fn heads_of_samples() {
    let header = [("samples", 0), ("bytes", 4), ("lost", 8), ("event", 16), ("encoding", 20)];
    assert_rows("\n### Samples\n", &header);
    let head = [
        ("size", 0),
        ("event", 4),
        ("mode", 6),
        ("abi", 7),
        ("time_ns", 8),
        ("pid", 16),
        ("tid", 20),
        ("cpu", 24),
        ("chain", 28),
        ("ip", 32),
        ("period", 40),
        ("registers", 48),
        ("stack", 56),
        ("branches", 60),
    ];
    assert_rows(&format!("A sample is a head of {} bytes", sample::SAMPLE_HEADER), &head);
    for text in [
        format!("| {} | | data | |", sample::HEADER),
        format!("Entries from `{:X}` on are no addresses", sample::CONTEXT_MAX),
        format!("| `{:X}` | the kernel |", sample::CONTEXT_KERNEL),
        format!("| `{:X}` | the user |", sample::CONTEXT_USER),
        format!("| cpu | number of the processor; `{:X}`: not known |", sample::NO_CPU),
        format!("| time_ns | when, on the samples' clock; `{:X}`: not known |", sample::NO_TIME),
        format!("| {} | the kernel |", sample::mode::KERNEL),
        format!("| {} | a program (user) |", sample::mode::USER),
        format!("| {} | a program of a guest |", sample::mode::GUEST_USER),
        format!("process id; {:X}: code of the kernel", map::KERNEL),
        format!("| {} | the kernel (`perf_event_open`) |", sampled::source::PERF_EVENT),
        format!("| {} | another profiler, whose file", sampled::source::FOREIGN),
    ] {
        assert!(DOCUMENT.contains(&text), "{text}");
    }
}

#[test]
fn what_is_sampled() {
    let event = example("sampled");
    let numbers = [(sampled::EVENT, 1), (sampled::UNIT, 1), (sampled::ZERO_NS, 1_000_000)];
    assert!(numbers.iter().all(|&(tag, value)| number(&event, tag) == Some(value)));
    let is_name = |field: &fields::Field<'_>| field.tag == sampled::NAME;
    let name = fields::read(&event).map(Result::unwrap).find(is_name).unwrap();
    assert_eq!(name.value, b"cpu-clock");
    let code = example("map");
    let numbers = [
        (map::PID, 77),
        (map::ADDRESS, 0x5555_5555_5000),
        (map::LENGTH, 0x3000),
        (map::OFFSET, 0x1000),
    ];
    assert!(numbers.iter().all(|&(tag, value)| number(&code, tag) == Some(value)));
    let is_path = |field: &fields::Field<'_>| field.tag == map::PATH;
    let path = fields::read(&code).map(Result::unwrap).find(is_path).unwrap();
    assert_eq!(path.value, b"/bin/a");
}

#[test]
fn a_part_of_a_file() {
    let part = example("file");
    let numbers = [(file::FILE, 3), (file::SIZE, 5), (file::OFFSET, 0)];
    assert!(numbers.iter().all(|&(tag, value)| number(&part, tag) == Some(value)));
    let is_data = |field: &fields::Field<'_>| field.tag == file::DATA;
    let data = fields::read(&part).map(Result::unwrap).find(is_data).unwrap();
    assert!(data.value.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]) && data.value.ends_with(b"abcde"));
}

#[test]
fn a_piece() {
    let bytes = example("piece");
    let piece = Piece::decode(&bytes).unwrap();
    let header = piece::Header {
        what: piece::what::TREE,
        begins: true,
        serial: 1,
        tid: 78,
        clock: 2,
        hz: 1_000_000,
        begin: 5000,
        end: 5017,
        ..piece::Header::default()
    };
    assert_eq!((piece.header, piece.name, piece.length), (header, &b"ta.elf"[..], bytes.len()));
    let node = |index, parent, place, [calls, own, least, most]: [u64; 4]| {
        Ok(piece::Node { index, parent, place, calls, own, least, most })
    };
    let nodes = [
        node(0, 0, None, [0, 2, 0, 0]),
        node(2, 0, Some(0x1200), [1, 8, 16, 15]),
        node(3, 2, Some(-0x40), [3, 7, 2, 4]),
    ];
    assert!(piece.nodes().eq(nodes));
    let mut written = vec![0; bytes.len()];
    let put = |at: usize, byte| written[at] = byte;
    let mut writer = Writer::new(piece::LEAST_ROOM, put, &header, piece.name).unwrap();
    nodes.iter().flatten().for_each(|node| writer.node(node));
    assert_eq!(writer.finish(false), bytes.len());
    assert_eq!(written, bytes);
    let told = format!("each behind `{}`", piece::MARK);
    assert!(DOCUMENT.contains(&told), "{told}");
}

#[test]
fn windows_open_and_end_as_the_code_says() {
    for (number, what) in [
        (module::OPENED, "the window opens"),
        (module::RETIRED, "it is retired"),
        (module::ANCHORED, "it opens, and is told"),
    ] {
        assert!(DOCUMENT.contains(&format!("{number}: {what}")), "{what}");
    }
    assert!(DOCUMENT.contains(&format!("`{}`", module::ANCHOR)));
}

#[test]
fn a_filter() {
    let payload = example("filter");
    let fields: Vec<_> = fields::read(&payload).map(|field| field.unwrap()).collect();
    let number = |tag| number(&payload, tag);
    assert_eq!((number(filter::NUMBER), number(filter::PROCESS)), (Some(2), Some(1)));
    assert_eq!((number(filter::FIRST_SITE), number(filter::SITES)), (Some(0x1000), Some(0x3000)));
    assert_eq!(number(filter::OTHERS_PASS), None);
    let list = fields.iter().find(|field| field.tag == filter::LIST).unwrap();
    assert_eq!(list.value, [0x2200_u32.to_le_bytes(), 0x2240_u32.to_le_bytes()].concat());
}

#[test]
fn a_keyframe() {
    let bytes = example("keyframe");
    let numbers = [
        (keyframe::PROCESS, 1),
        (keyframe::THREAD, 1),
        (keyframe::TID, 78),
        (keyframe::TIME, 5100),
        (keyframe::SEQUENCE, 2),
        (keyframe::FIRST, 0),
    ];
    for (tag, value) in numbers {
        assert_eq!(number(&bytes, tag), Some(value), "tag {tag}");
    }
    let mut fields = fields::read(&bytes).map(Result::unwrap);
    let frames = fields.find(|field| field.tag == keyframe::FRAMES).unwrap().value;
    let outer = [0x80, 0x88, 1, 1];
    let inner = [0x80, 0x89, 1, 0x90, 0x4E];
    let far = [keyframe::frame::FAR as u8, 9, 1];
    assert_eq!(frames, [&outer[..], &inner, &[keyframe::frame::UNKNOWN as u8, 2], &far].concat());
}

#[test]
fn escapes_and_fields() {
    let payload = |words: &[u32]| words.iter().map(|&word| word::payload(word)).collect::<Vec<_>>();
    let [low, high] = word::split62(10);
    let [units, units_high] = word::split62(1000);
    let popped = [word::payload(1), word::payload(2)];
    let expected = [
        vec![word::escape(code::GAP, gap::PAUSED), word::payload(6), low, high],
        popped.to_vec(),
        vec![units, units_high],
    ];
    assert_eq!(words(&example("words-gap")), expected.concat());
    let far = [
        &[word::escape(code::FAR, 0), word::payload(3)][..],
        &word::split64(0xFFFF_8000_1234_5678),
    ];
    assert_eq!(words(&example("words-far")), far.concat());
    let name = [
        word::escape(code::NAME, 0),
        word::payload(2),
        word::pack_bytes(b"mai"),
        word::pack_bytes(b"n"),
    ];
    assert_eq!(words(&example("words-name")), name);
    let switch = [
        vec![word::escape(code::SWITCH, 0)],
        payload(&[4, 0, 0]),
        word::split62(0x7F00_0000_1000).to_vec(),
    ];
    assert_eq!(words(&example("words-switch")), switch.concat());
    let wait =
        [vec![word::escape(code::WAIT, 0)], payload(&[3, 0x2200]), word::split62(1000).to_vec()];
    assert_eq!(words(&example("words-wait")), wait.concat());
    let timed = [&teeperf_wire::compose::timed(1_000_000)[..], &[word::call(0x2200)]].concat();
    assert_eq!(words(&example("words-timed")), timed);
    let bytes = example("fields");
    let read: Vec<_> = fields::read(&bytes).map(Result::unwrap).collect();
    assert_eq!((read[0].tag, read[0].value), (2, &b"a"[..]));
    assert_eq!((read[1].tag, read[1].number()), (1, Some(300)));
}

/// The rows `| number | `NAME` |…` below the heading of a section, up to the next heading.
fn rows(heading: &str) -> Vec<(u32, String)> {
    let section = DOCUMENT.split_once(&format!("\n{heading}\n")).expect(heading).1;
    let section = section.split("\n#").next().unwrap();
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let number = cells.next()?.parse().ok()?;
        Some((number, cells.next()?.trim_matches('`').to_owned()))
    };
    section.lines().filter_map(row).collect()
}

/// Rows of other tables in the section have text there.
fn is_tag(name: &str) -> bool {
    name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
}

macro_rules! named {
    ($module:ident: $($name:ident)*) => {
        vec![$(($module::$name as u32, stringify!($name).to_owned())),*]
    };
}

#[test]
fn tables_have_the_numbers_of_the_code() {
    let types = rows("## 4. Types of packets");
    assert_eq!(
        types,
        named!(kind: START PROCESS CHUNK SYMBOLS THREAD PROCESS_END NOTICE END LOSS TREE ARCS
            KEYFRAME FILTER SAMPLED SAMPLES MAP TASK FILE)
    );
    let tags = named!(start: VERSION WRITER CLOCK HZ PERIOD CLOCK_REASON CLOCK_START WALL_NS
        ARGUMENT HOST SYSTEM MACHINE PROCESSOR PROCESSORS ON_FULL DIRECTORY HOOK_COST_PS
        LEAST_COST_PS ORDERED COUNTER_HZ COUNTER_START);
    assert_eq!(rows("### START"), tags);
    let tags = named!(process: ID PID PARENT_PID EXECUTABLE ARGUMENT TIME EXEC_OF);
    assert_eq!(rows("### PROCESS"), tags);
    assert_eq!(rows("### PROCESS_END"), named!(process_end: ID TIME EXIT_STATUS SIGNAL));
    assert_eq!(rows("### THREAD"), named!(thread: PROCESS SERIAL TID NAME));
    assert_eq!(rows("### SYMBOLS"), named!(symbols: PROCESS FIRST_SITE SYMBOL ANCHOR));
    assert_eq!(rows("### NOTICE"), named!(notice: LEVEL TEXT PROCESS UNRECORDED));
    assert_eq!(rows("### LOSS"), named!(loss: PROCESS EVENTS));
    let tags = named!(end: TIME WORDS EXIT_STATUS SIGNAL REASON RECORDER_CPU_NS);
    assert_eq!(rows("### END"), tags);
    let tags = named!(keyframe: PROCESS THREAD TID TIME STACK RECENT DEBT BELOW FRAMES FRAMES_ZSTD
        MARK MODULE SEQUENCE FIRST LEFT FILTER FLOOR);
    assert_eq!(rows("### KEYFRAME"), tags);
    let tags = named!(filter: NUMBER RULE PROCESS FIRST_SITE SITES OTHERS_PASS LIST);
    assert_eq!(rows("### FILTER"), tags);
    let tags = named!(sampled: EVENT NAME UNIT PERIOD FREQUENCY RANDOM ZERO_NS SOURCE MACHINE
        REGISTERS STACK CHAIN PERF_TYPE PERF_CONFIG OUTER_REGISTERS OUTER_STACK PRECISE
        BRANCHES);
    let found: Vec<_> = rows("### SAMPLED").into_iter().filter(|(_, name)| is_tag(name)).collect();
    assert_eq!(found, tags);
    let tags = named!(map: PID TID TIME_NS ADDRESS LENGTH OFFSET PROTECTION FLAGS PATH BUILD_ID
        MODE FILE);
    assert_eq!(rows("### MAP"), tags);
    assert_eq!(rows("### FILE"), named!(file: FILE SIZE OFFSET DATA));
    use task::what;
    let mut tags = named!(task: WHAT PID TID PARENT_PID PARENT_TID TIME_NS NAME);
    let happened = named!(what: FORK NAME EXEC EXIT);
    tags.extend(happened.into_iter().map(|(number, name)| (number, name.to_lowercase())));
    assert_eq!(rows("### TASK"), tags);
    let mut escapes = named!(code: TICK HOLE MARK JUMP VFORK_BEGIN VFORK_END PAD FILTER STAMP GAP
        SWITCH STACK_NEW CATCH FAR MODULE NAME NOTE WAIT POINT TIMED STACK SAMPLE
        OFF_CPU);
    let reasons = named!(gap: PAUSED DROPPED NESTED WAITED STALLED FILTERED FORKED STOPPED);
    escapes.extend(reasons.into_iter().map(|(number, name)| (number, name.to_lowercase())));
    assert_eq!(rows("## 7. Escapes"), escapes);
}

#[test]
fn limits_are_those_of_the_code() {
    for (limit, value) in [
        ("payload of a packet", MAX_PAYLOAD),
        ("words in a chunk packet", chunk::MAX_WORDS),
        ("bytes that a chunk's data decompresses to", chunk::MAX_BYTES),
        ("nodes in a tree packet", tree::MAX_NODES),
        ("bytes that a tree's data decompresses to", tree::MAX_BYTES),
        ("bytes that a keyframe's frames decompress to", keyframe::MAX_BYTES),
        ("bytes that the samples of a packet take, decompressed", sample::MAX_BYTES),
        ("entries in a call chain", sample::MAX_CHAIN),
        ("stack in a sample that a writer makes", sample::MAX_STACK),
        ("bytes of a part of a file, decompressed", file::MAX_PART),
        ("bytes of all files that a recording has", file::MAX_BYTES as usize),
        ("files that a recording has", file::MAX_FILES),
        ("arcs and spans in a packet", arcs::MAX_ITEMS),
        ("bytes that their data decompresses to", arcs::MAX_BYTES),
        ("payload words of an escape that a writer makes", word::MAX_PAYLOAD as usize),
        ("build-id", word::module::MAX_BUILD_ID),
        ("path of a module", word::module::MAX_PATH),
        ("length of a [piece](#13-pieces)", piece::MAX_LENGTH),
        ("name of an image in a piece", piece::MAX_NAME),
    ] {
        let row = format!("| {limit} | ");
        let cell = DOCUMENT.split_once(&row).expect(limit).1.split(" |").next().unwrap();
        let digits: String = cell.chars().filter(char::is_ascii_digit).collect();
        assert_eq!(digits.parse(), Ok(value), "{limit}");
    }
    assert!(DOCUMENT.contains(&format!("| site | {:X} |", word::MAX_SITE)));
    assert!(DOCUMENT.contains(&format!("{:X}", word::ABANDONED)));
}
