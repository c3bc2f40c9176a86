//! `teeperf import`, as people use it: files, standard input, what it says of damage, and how it ends.

use crate::support::{Folder, run, teeperf};
use std::io::Write;
use std::process::Stdio;
use teeperf_wire::piece::{Header, LEAST_ROOM, Node, Writer};

/// Two pieces: a function called seven times, which calls another nine times.
fn pieces() -> [Vec<u8>; 2] {
    let node =
        |index, parent, calls| Node { index, parent, place: Some(64), calls, ..Node::default() };
    let piece = |sequence, begins, has_more, nodes: &[Node]| {
        let mut bytes = vec![0; LEAST_ROOM];
        let header = Header { what: 1, begins, sequence, serial: 1, ..Header::default() };
        let mut writer =
            Writer::new(LEAST_ROOM, |at, byte| bytes[at] = byte, &header, b"ta.elf").unwrap();
        nodes.iter().for_each(|node| writer.node(node));
        let length = writer.finish(has_more);
        bytes.truncate(length);
        bytes
    };
    [
        piece(0, true, true, &[node(0, 0, 0), node(2, 0, 7)]),
        piece(1, false, false, &[node(3, 2, 9)]),
    ]
}

#[test]
fn files_in_their_order_make_one_recording() {
    let folder = Folder::new();
    let [first, second] = pieces();
    std::fs::write(folder.path().join("first"), &first).unwrap();
    std::fs::write(folder.path().join("second"), &second).unwrap();
    run(teeperf(&folder).args(["import", "first", "second"]));
    let shown = run(teeperf(&folder).args(["report", "first.teeperf"]));
    assert!(shown.contains("ta.elf+anchor+0x40") && shown.contains("16 calls"), "{shown}");

    let mut child = teeperf(&folder);
    let both = [first, second].concat();
    let mut child = child
        .args(["import", "-", "-o", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&both).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, std::fs::read(folder.path().join("first.teeperf")).unwrap());
}

#[test]
fn damage_is_told_and_the_rest_is_kept() {
    let folder = Folder::new();
    let [first, mut second] = pieces();
    second[20] ^= 4;
    std::fs::write(folder.path().join("taken"), [&first[..], &second].concat()).unwrap();
    let output = teeperf(&folder).args(["import", "taken", "-o", "a.teeperf"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    let place = format!("taken: offset {}: a piece is damaged", first.len());
    assert!(told.contains(&place) && told.contains("7 calls of 1 thread in 1 piece;"), "{told}");
    let shown = run(teeperf(&folder).args(["report", "a.teeperf"]));
    assert!(shown.contains("7 calls") && shown.contains(&place), "{shown}");
}

#[test]
fn nothing_is_written_where_there_is_nothing_to_import_or_something_in_the_way() {
    let folder = Folder::new();
    folder.write("console.log", "teeperf:zz\nnothing here\n");
    let refused = |words: &[&str], why: &str| {
        let output = teeperf(&folder).arg("import").args(words).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && told.contains(why), "{told}");
    };
    refused(&["console.log"], "there are no pieces in console.log");
    refused(&["nowhere"], "nowhere: No such file");
    std::fs::write(folder.path().join("taken"), pieces().concat()).unwrap();
    refused(&["taken", "-o", "console.log"], "console.log is there, and is no recording");
    refused(&["taken", "-o", "taken", "--force"], "taken is read");
    refused(&["taken", "-o", "no/where"], "cannot write no/where: No such file");
    assert!(!folder.path().join("console.log.teeperf").exists());
}
