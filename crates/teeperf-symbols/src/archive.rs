//! Archives of `teeperf pack`: `tar` compressed by zstd.

mod bounded;

pub use bounded::Decompressed;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};

/// Longest name: no system opens files by longer ones.
const MAX_NAME: u64 = 4096;
/// Bytes behind the last file, at most: tar fills its last block up, which has 10 KiB. Behind them stands the checksum.
const MAX_BEHIND: u64 = 1 << 16;

/// The `tar` within, which cannot have its reader keep more history than it should, nor become more than its size warrants.
///
/// # Errors
///
/// When the system has no memory for it.
pub fn decompressed<R: Read>(stream: R) -> io::Result<Decompressed<R>> {
    Decompressed::of(stream)
}

/// The name in an archive of the file that has this path: below `files/`, and nowhere else.
pub fn name_of(path: &Path) -> String {
    let mut below = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => below.push(name),
            Component::ParentDir => _ = below.pop(),
            _ => {}
        }
    }
    format!("files/{}", below.display())
}

/// Gives each file by its name in the archive, its size and its bytes, until told to stop.
///
/// # Errors
///
/// When it is no such archive, or damaged, or `take` says so. Where the archive has a checksum, that tells of each bit, behind the last file.
pub fn each(
    stream: impl Read,
    mut take: impl FnMut(&str, u64, &mut dyn Read) -> io::Result<ControlFlow<()>>,
) -> io::Result<()> {
    let mut long = None;
    // As they stand: names that have an entry of their own, ahead of that which they are of, would be read whatever their length.
    let mut archive = tar::Archive::new(decompressed(stream)?);
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        if entry.header().entry_type().is_gnu_longname() {
            let mut name = Vec::new();
            entry.take(MAX_NAME).read_to_end(&mut name)?;
            name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
            long = Some(name);
            continue;
        }
        let name = long.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let size = entry.size();
        if take(&String::from_utf8_lossy(&name), size, &mut entry)?.is_break() {
            return Ok(());
        }
    }
    io::copy(&mut archive.into_inner().take(MAX_BEHIND), &mut io::sink()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, name, *bytes).unwrap();
        }
        zstd::bulk::compress(&tar.into_inner().unwrap(), 1).unwrap()
    }

    #[test]
    fn no_name_leads_out_of_an_archive() {
        for (path, name) in [
            ("/src/a.c", "files/src/a.c"),
            ("/src/build/../a.c", "files/src/a.c"),
            ("/../../etc/./passwd", "files/etc/passwd"),
            ("../a.c", "files/a.c"),
        ] {
            assert_eq!(name_of(Path::new(path)), name, "{path}");
        }
    }

    #[test]
    fn files_have_their_names_however_long() {
        let long = "files/".to_owned() + &"folder/".repeat(40) + "x";
        let bytes = archive(&[("a", b"1"), (&long, b"22"), ("b", b""), ("c", b"never")]);
        let mut found = Vec::new();
        each(&bytes[..], |name, size, content| {
            let mut text = String::new();
            content.read_to_string(&mut text)?;
            found.push((name.to_owned(), size, text));
            Ok(if name == "b" { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
        .unwrap();
        let expected = [("a", 1, "1"), (&*long, 2, "22"), ("b", 0, "")];
        let expected = expected.map(|(name, size, text)| (name.to_owned(), size, text.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_bit_that_changed_is_told() {
        // What cannot be compressed stands as it is: nothing but the checksum tells.
        let noise: Vec<u8> =
            (0u32..4096).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 23) as u8).collect();
        let plain = zstd::decode_all(&archive(&[("a", &noise), ("b", b"2")])[..]).unwrap();
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        io::Write::write_all(&mut encoder, &plain).unwrap();
        let bytes = encoder.finish().unwrap();
        let read = |bytes: &[u8]| each(bytes, |_, _, _| Ok(ControlFlow::Continue(())));
        read(&bytes).unwrap();
        for at in (0..bytes.len()).step_by(97) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            assert!(read(&bytes).is_err(), "{at}");
        }
    }

    #[test]
    fn a_name_of_megabytes_is_cut_short() {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::GNULongName);
        header.set_size(48 << 20);
        header.set_cksum();
        let mut file = tar::Header::new_gnu();
        file.set_size(0);
        file.set_cksum();
        let zeros = io::repeat(b'a').take(48 << 20);
        let stream = header.as_bytes().chain(zeros).chain(&file.as_bytes()[..]);
        let bytes = zstd::stream::encode_all(stream, 1).unwrap();
        let mut names = Vec::new();
        each(&bytes[..], |name, _, _| {
            names.push(name.len());
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
        assert_eq!(names, [MAX_NAME as usize]);
    }
}
