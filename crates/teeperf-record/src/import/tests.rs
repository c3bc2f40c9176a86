//! Pieces as a runtime writes them, and what becomes of them in the recording, packet by packet.

use super::*;
use crate::fuzz::any_pieces;
use crate::trees::tests::read;
use proptest::prelude::*;
use std::collections::BTreeMap;
use teeperf_wire::body::{arcs, notice, tree};
use teeperf_wire::fields;
use teeperf_wire::packet::{HEADER_SIZE, Header as PacketHeader};
use teeperf_wire::piece::{Header, Item, MARK, Node, Writer};
use teeperf_wire::word::{self, FIRST_SITE};

const NAME: &[u8] = b"image.elf";
/// Of the window, where no place is far from the anchor.
const REACH: u32 = 1 << 20;

fn piece(header: &Header, has_more: bool, write: impl FnOnce(&mut dyn FnMut(What))) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let mut writer = Writer::new(bytes.len(), |at, byte| bytes[at] = byte, header, NAME).unwrap();
    write(&mut |what| match what {
        What::Node(node) => writer.node(&node),
        What::Item(item) => writer.item(&item),
    });
    let length = writer.finish(has_more);
    bytes.truncate(length);
    bytes
}

enum What {
    Node(Node),
    Item(Item),
}

fn nodes(sequence: u32, begins: bool, has_more: bool, nodes: &[Node]) -> Vec<u8> {
    let header = Header {
        what: 1,
        begins,
        sequence,
        serial: 1,
        hz: 1000,
        begin: 50,
        end: 90,
        ..Header::default()
    };
    piece(&header, has_more, |put| nodes.iter().for_each(|&node| put(What::Node(node))))
}

/// A node called as often as its index says.
fn node(index: u32, parent: u32) -> Node {
    let calls = index.into();
    Node { index, parent, place: Some(16 * i64::from(index)), calls, own: 5, least: 2, most: 4 }
}

/// Kinds and payloads.
type Packets = Vec<(u16, Vec<u8>)>;

fn imported(files: &[&[u8]], hz: Option<u64>) -> Result<(Imported, Packets), ImportError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let file =
        |(at, bytes): (usize, &&[u8])| File { name: format!("file{at}"), bytes: bytes.to_vec() };
    let (mut reached, all) = (0, files.iter().map(|bytes| bytes.len() as u64).sum());
    let mut progress = |bytes| {
        assert!((reached..=all).contains(&bytes), "{bytes} behind {reached}, of {all}");
        reached = bytes;
    };
    let import_of = Import {
        files: files.iter().enumerate().map(file).collect(),
        hz,
        search: Search::default(),
        writer: "test".into(),
        output: Output::File(path.clone()),
    };
    let told = import(import_of, &mut progress)?;
    assert_eq!(reached, all);
    let bytes = std::fs::read(path).unwrap();
    Ok((told, packets(&bytes)))
}

fn packets(mut bytes: &[u8]) -> Packets {
    let mut packets = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<HEADER_SIZE>() {
        let header = PacketHeader::decode(head).unwrap();
        let (payload, rest) = rest.split_at(header.length as usize);
        assert!(header.fits(payload));
        packets.push((header.kind, payload.to_vec()));
        bytes = rest;
    }
    packets
}

/// Calls by thread and path, as sites less the anchor's; unknown frames are 0.
fn paths(packets: &[(u16, Vec<u8>)]) -> BTreeMap<(u32, Vec<i64>), u64> {
    let mut sums = BTreeMap::new();
    for (_, payload) in packets.iter().filter(|(kind, _)| *kind == kind::TREE) {
        let (header, nodes) = read(payload);
        let mut all: Vec<Vec<i64>> = vec![vec![]];
        for node in &nodes[1..] {
            let site = (node.word >> 1).checked_sub(FIRST_SITE + REACH);
            let place = if node.word == tree::word::FAR {
                node.address as i64
            } else {
                site.unwrap().into()
            };
            let path = [&all[node.parent as usize][..], &[place]].concat();
            *sums.entry((header.thread, path.clone())).or_default() += node.calls;
            all.push(path);
        }
    }
    sums
}

fn lines(bytes: &[u8], of: usize) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let lines = digits
        .chunks(of)
        .map(|line| format!("[  1.5] {MARK}{}\r\nteeperf: hello\n", line.concat()));
    format!("boot\n{}\nbye", lines.collect::<String>())
}

#[test]
fn rounds_add_up_and_each_run_is_a_thread() {
    let first = [
        nodes(0, true, true, &[node(0, 0), node(2, 0), node(3, 2)]),
        nodes(1, false, false, &[node(4, 3)]),
    ]
    .concat();
    let second = nodes(2, true, false, &[node(0, 0), node(2, 0), node(4, 2)]);
    let again = nodes(0, true, false, &[node(0, 0), node(3, 0)]);
    let (told, packets) = imported(&[&first, &[second, again].concat()], None).unwrap();
    assert_eq!((told.pieces, told.threads, told.calls), (4, 2, 18));
    assert_eq!((told.damage, told.notices), (vec![], vec![]));
    let expected = [
        ((1, vec![32]), 4),
        ((1, vec![32, 48]), 3),
        ((1, vec![32, 48, 64]), 4),
        ((1, vec![32, 64]), 4),
        ((2, vec![48]), 3),
    ];
    assert_eq!(paths(&packets), BTreeMap::from(expected));
    let kinds: Vec<u16> = packets.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [1, 2, 3, 10, 10, 10, 6, 8]);
}

#[test]
fn lines_of_a_console_are_the_same_as_bytes() {
    let bytes =
        [nodes(0, true, true, &[node(0, 0), node(2, 0)]), nodes(1, false, false, &[node(5, 2)])]
            .concat();
    let (_, expected) = imported(&[&bytes], None).unwrap();
    for of in [7, 64, bytes.len()] {
        let (told, found) = imported(&[lines(&bytes, of).as_bytes()], None).unwrap();
        assert_eq!((told.damage, &found), (vec![], &expected));
    }
}

#[test]
fn what_is_damaged_is_told_with_its_offset_and_all_else_is_kept() {
    let [one, two, three] = [
        nodes(0, true, true, &[node(0, 0), node(2, 0)]),
        nodes(1, false, true, &[node(3, 2)]),
        nodes(2, false, false, &[node(4, 3), node(5, 2)]),
    ];
    let mut bytes = [&b"xyz"[..], &one, &two, &three].concat();
    let at = 3 + one.len();
    bytes[at + 20] ^= 1;
    let (told, packets) = imported(&[&bytes], None).unwrap();
    let skipped = two.len();
    assert_eq!(
        told.damage,
        [
            "file0: offset 0: no piece begins here; 3 bytes left out".to_owned(),
            format!(
                "file0: offset {at}: a piece is damaged: its checksum is wrong; {skipped} bytes left out"
            ),
            format!("file0: offset {}: 1 piece is missing before it, of image.elf", at + skipped),
        ]
    );
    // The path to the one is not known, that to the other is.
    let expected =
        [((1, vec![32]), 2), ((1, vec![0]), 0), ((1, vec![0, 64]), 4), ((1, vec![32, 80]), 5)];
    assert_eq!(paths(&packets), BTreeMap::from(expected));
    let notices = packets.iter().filter(|(kind, _)| *kind == kind::NOTICE).map(|(_, payload)| {
        let level = fields::read(payload).next().unwrap().unwrap();
        assert_eq!((level.tag, level.number()), (notice::LEVEL, Some(1)));
    });
    assert_eq!(notices.count(), 3);
    // In a line the offset is that of its digits.
    let text = lines(&bytes, 16);
    let (told, _) = imported(&[text.as_bytes()], None).unwrap();
    let offset: usize = told.damage[1].split([' ', ':']).nth(3).unwrap().parse().unwrap();
    assert_eq!(text[offset..offset + 8], *"54505043");
}

#[test]
fn what_is_cut_off_is_told() {
    let bytes =
        [nodes(7, true, true, &[node(0, 0), node(2, 0)]), nodes(8, false, false, &[node(3, 2)])]
            .concat();
    let (told, _) = imported(&[&bytes[..bytes.len() - 1]], None).unwrap();
    assert_eq!(told.damage.len(), 2, "{:?}", told.damage);
    assert!(told.damage[0].contains("is cut off") && told.damage[1].contains("the last pieces"));
    assert_eq!(told.notices, ["file0: offset 0: 7 pieces are missing before it, of image.elf"]);
    let nothing = imported(&[b"nothing", b""], None).unwrap_err().to_string();
    assert_eq!(
        nothing,
        "there are no pieces in file0, file1; file0: offset 0: no piece begins here; 7 bytes left out"
    );
}

/// A board that is reset while it writes, at any byte or half of one, and then begins anew: what was whole before is there,
/// and all of the second run.
#[test]
fn a_run_that_ends_in_the_midst_of_a_line_and_another_behind_it() {
    let first =
        [nodes(0, true, true, &[node(0, 0), node(2, 0)]), nodes(1, false, false, &[node(3, 2)])];
    let again =
        [nodes(0, true, true, &[node(0, 0), node(5, 0)]), nodes(1, false, false, &[node(6, 5)])]
            .concat();
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let whole = digits(&first.concat());
    for cut in 2 * first[0].len()..whole.len() {
        let log = format!("{MARK}{}\r\n\0boot\n{}", &whole[..cut], lines(&again, 40));
        let (told, packets) = imported(&[log.as_bytes()], None).unwrap();
        let expected = [((1, vec![32]), 2), ((2, vec![80]), 5), ((2, vec![80, 96]), 6)];
        assert_eq!(paths(&packets), BTreeMap::from(expected), "cut at {cut}: {:?}", told.damage);
        assert!(!told.damage.is_empty(), "cut at {cut}");
    }
}

/// Pieces that come in another order than they were taken in: none is counted twice, and that some came too late is told.
#[test]
fn pieces_out_of_order() {
    let all = [
        nodes(0, true, true, &[node(0, 0), node(2, 0)]),
        nodes(1, false, true, &[node(3, 2)]),
        nodes(2, false, false, &[node(4, 3)]),
    ];
    for order in [[0, 2, 1], [1, 0, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
        let bytes = order.map(|at| all[at].clone()).concat();
        let (told, packets) = imported(&[&bytes], None).unwrap();
        assert_eq!((told.pieces, told.calls), (3, 9), "{order:?}");
        assert_eq!(paths(&packets).values().sum::<u64>(), 9, "{order:?}");
        assert!(!told.damage.is_empty() || !told.notices.is_empty(), "{order:?}: nothing is told");
    }
}

/// Guards: what is imported twice is counted once, and that is told.
#[test]
fn pieces_that_come_twice() {
    let first = nodes(0, true, true, &[node(0, 0), node(2, 0)]);
    let second = nodes(1, false, false, &[node(3, 2)]);
    let file = [first.clone(), second.clone()].concat();
    let (once, expected) = imported(&[&file], None).unwrap();
    let (told, packets) = imported(&[&file, &file], None).unwrap();
    assert_eq!((told.pieces, told.calls, told.damage), (2, once.calls, vec![]));
    assert_eq!(paths(&packets), paths(&expected));
    let why = "since they came before: the same bytes are counted once";
    assert_eq!(told.notices, [format!("file1: 2 pieces are left out, {why}")]);
    // A line that was sent once more.
    let again = [first.clone(), first, second].concat();
    let (told, packets) = imported(&[&again], None).unwrap();
    assert_eq!((told.pieces, told.calls, told.damage), (2, once.calls, vec![]));
    assert_eq!(paths(&packets), paths(&expected));
    assert!(told.notices[0].starts_with("file0: 1 piece is left out"), "{:?}", told.notices);
}

/// Guards: runs of an image without a clock that do the same are as many runs, unless they are in files of which one
/// has what the other has.
#[test]
fn runs_that_cannot_be_told_apart() {
    let header = Header { what: 1, begins: true, serial: 1, ..Header::default() };
    let run = piece(&header, false, |put| {
        [node(0, 0), node(2, 0)].into_iter().for_each(|node| put(What::Node(node)));
    });
    let (told, _) = imported(&[&[run.clone(), run.clone()].concat()], None).unwrap();
    assert_eq!((told.pieces, told.threads, told.calls), (2, 2, 4));
    let (told, _) = imported(&[&run, &run], None).unwrap();
    assert_eq!((told.pieces, told.threads, told.calls), (1, 1, 2));
    assert_eq!(told.notices.len(), 1, "{:?}", told.notices);
}

/// Guards: work is in proportion to the file, whatever beginnings of pieces are in it, and a right piece is found
/// behind any of them.
#[test]
fn beginnings_of_pieces_without_end() {
    let right = nodes(0, true, false, &[node(0, 0), node(2, 0)]);
    let behind = nodes(1, true, false, &[node(0, 0), node(3, 0)]);
    let claim = [&b"TPPC"[..], &65_536u32.to_le_bytes()].concat();
    // With numbers that make sense, too.
    let header = right[8..30].to_vec();
    for beginning in [claim.clone(), [claim, header].concat()] {
        let garbage = beginning.repeat((1 << 17) / beginning.len());
        let began = std::time::Instant::now();
        let bytes = [&garbage[..], &right, &garbage, &right[..9], &behind].concat();
        let (told, _) = imported(&[&bytes], None).unwrap();
        assert_eq!((told.pieces, told.calls), (2, 5), "{:?}", told.damage);
        assert!(began.elapsed() < std::time::Duration::from_secs(4), "{:?}", began.elapsed());
    }
}

#[test]
fn times_are_of_one_clock_or_none() {
    let round = |hz| {
        let header = Header {
            what: 1,
            begins: true,
            serial: 1,
            hz,
            begin: 10,
            end: 90,
            ..Header::default()
        };
        piece(&header, false, |put| {
            [node(0, 0), node(2, 0)].into_iter().for_each(|node| put(What::Node(node)))
        })
    };
    let times = |files: &[&[u8]], hz| -> Vec<_> {
        let (_, packets) = imported(files, hz).unwrap();
        let trees = packets
            .iter()
            .filter(|(kind, _)| *kind == kind::TREE)
            .map(|(_, payload)| read(payload));
        trees
            .map(|(header, nodes)| (header.end, nodes[1].own, nodes[1].least, nodes[1].most))
            .collect()
    };
    let (unknown, slow, fast) = (round(0), round(1000), round(4000));
    assert_eq!(times(&[&fast, &slow], None), [(90, 5, 2, 4), (360, 20, 5, 16)]);
    assert_eq!(times(&[&unknown, &slow], Some(100)), [(900, 50, 11, 40), (90, 5, 2, 4)]);
    assert_eq!(times(&[&unknown], None), [(0, 0, 0, 0)]);
    assert!(imported(&[&unknown], None).unwrap().0.notices[0].contains("--hz"));
}

#[test]
fn arcs_come_before_spans() {
    let item = |is_span, from, count| Item { is_span, places: [from, Some(32)], count };
    let header =
        Header { what: 2, begins: true, serial: 3, tid: 9, lost: 4, hz: 1000, ..Header::default() };
    let bytes = piece(&header, false, |put| {
        [item(true, None, 7), item(false, Some(1 << 40), 8)]
            .into_iter()
            .for_each(|item| put(What::Item(item)));
    });
    let (told, packets) = imported(&[&bytes], None).unwrap();
    assert_eq!(told.calls, 8);
    let (_, payload) = packets.iter().find(|(kind, _)| *kind == kind::ARCS).unwrap();
    let (header, data) = arcs::Header::decode(payload).unwrap();
    assert_eq!(
        (header.thread, header.tid, header.arcs, header.spans, header.lost),
        (1, 9, 1, 1, 4)
    );
    let data = zstd::bulk::decompress(data, arcs::MAX_BYTES).unwrap();
    let mut expected = vec![0];
    crate::trees::packets::leb128(&mut expected, 1 << 40);
    let to = word::call(FIRST_SITE + REACH + 32).into();
    crate::trees::packets::leb128(&mut expected, to);
    expected.extend([8, 0, 0]);
    crate::trees::packets::leb128(&mut expected, to);
    expected.push(7);
    assert_eq!(data, expected);
}

proptest! {
    /// Whatever stands in pieces, or between.
    #[test]
    fn any_pieces_make_a_recording(
        parts in prop::collection::vec((prop::collection::vec(prop_oneof![any::<u8>(), 0u8..4], 0..90), 0u8..4), 0..8),
    ) {
        let mut bytes = Vec::new();
        for (body, how) in parts {
            match how {
                0 => bytes.extend(body),
                how => {
                    let mut numbers = vec![1, 1 + how / 3, body.len() as u8 & 1, bytes.len() as u8 & 15, 1, 0, 2, 100, 0, 9, 0, 0, 0];
                    numbers.extend(body);
                    let mut whole = b"TPPC".to_vec();
                    whole.extend((numbers.len() as u32 + 12).to_le_bytes());
                    whole.extend(&numbers);
                    whole.extend(crc32fast::hash(&numbers).to_le_bytes());
                    bytes.extend(whole);
                }
            }
        }
        if let Some(recording) = any_pieces(&bytes) {
            let packets = packets(&recording);
            prop_assert_eq!((packets[0].0, packets[packets.len() - 1].0), (kind::START, kind::END));
            for (_, payload) in packets.iter().filter(|(kind, _)| *kind == kind::TREE) {
                prop_assert!(read(payload).0.nodes > 0);
            }
        }
    }
}
