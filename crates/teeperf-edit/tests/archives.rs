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

/// Guards: the disk of whoever reads an archive. One of some kilobytes stood for gigabytes of files.
#[test]
fn an_archive_is_unpacked_to_no_more_than_its_size_warrants() {
    const SIZE: u64 = 2 << 30;
    let manifest = format!(
        "{{\"samples\":true,\"files\":[{{\"path\":\"/x\",\"name\":\"files/x\",\"kind\":\"binary\",\"bytes\":{SIZE}}}]}}"
    );
    let padding = vec![0; manifest.len().next_multiple_of(512) - manifest.len()];
    let head = [
        block("manifest.json", manifest.len() as u64),
        manifest.into_bytes(),
        padding,
        block("files/x", SIZE),
    ]
    .concat();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.tar.zst");
    let stream = Cursor::new(head).chain(std::io::repeat(0).take(SIZE));
    zstd::stream::copy_encode(stream, std::fs::File::create(&path).unwrap(), 1).unwrap();
    let length = path.metadata().unwrap().len();
    assert!(length < 1 << 20, "{length}");
    let mut into = teeperf_symbols::Unpacked::default();
    let mut written = 0;
    let done = teeperf_edit::pack::unpack(
        &path,
        teeperf_edit::pack::Of::Samples,
        &mut into,
        &mut |bytes| written = bytes,
    );
    let why = done.unwrap_err().to_string();
    assert!(why.contains("more than an archive's do"), "{why}");
    assert_eq!((written, into.count()), (0, 0));
}
