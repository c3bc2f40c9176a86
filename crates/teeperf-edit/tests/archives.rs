//! Archives of recordings: read as they are, and refused in a moment where they are none or mean harm.

use std::io::{Cursor, Read};
use teeperf_edit::pack::open;

fn block(name: &str, bytes: u64) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_cksum();
    header.as_bytes().to_vec()
}

fn packed(blocks: &[Vec<u8>]) -> Cursor<Vec<u8>> {
    Cursor::new(zstd::bulk::compress(&blocks.concat(), 1).unwrap())
}

#[test]
fn the_recording_is_read_wherever_names_lead() {
    let content = [vec![7; 700], vec![0; 324]].concat();
    let archive = packed(&[
        block("../../etc/passwd", 3),
        vec![1; 512],
        block("recording.teeperf", 700),
        content,
        block("files/x", 1 << 60),
    ]);
    let mut read = Vec::new();
    open(archive).unwrap().read_to_end(&mut read).unwrap();
    assert_eq!(read, vec![7; 700]);
}

#[test]
fn what_is_no_archive_or_never_comes_to_a_recording_is_refused() {
    let many: Vec<Vec<u8>> = (0..1000).map(|_| block("x", 0)).collect();
    let huge = vec![block("x", 1 << 62), vec![0; 4096]];
    // Zeros by the gigabyte are a few kilobytes.
    let bomb = vec![block("x", 1 << 40), vec![0; 256 << 20]];
    for archive in [packed(&many), packed(&huge), packed(&bomb), packed(&[vec![9; 2000]])] {
        assert!(open(archive).is_err());
    }
    assert!(open(Cursor::new(b"\x28\xB5\x2F\xFDnothing".to_vec())).is_err());
}
