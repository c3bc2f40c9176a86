//! Files that a recording brings with it: processes saw them in another mount namespace, or below
//! another root, so none of this machine's stands for them.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use teeperf_symbols::{Search, Unpacked};
use teeperf_wire::body::file::{MAX_BYTES, MAX_FILES, MAX_PART};

use crate::contents::Part;

/// Why such a file is not taken from its path.
pub(super) const NOT_HERE: &str = "the process saw it in a container or below another root, the recording does not have it, and no \
     build-id tells whether a file here is the same";

/// Why a file of another machine is not.
pub(super) const FOREIGN: &str =
    "the recording is of another machine, and no build-id tells whether a file here is the same";

/// Files by number, as far as their parts have come.
#[derive(Default)]
pub(super) struct Inside {
    files: FxHashMap<u64, Growing>,
    /// Of all files.
    bytes: u64,
}

/// A file without a name, so that nothing is left of it.
struct Growing {
    file: File,
    written: u64,
    size: u64,
}

impl Inside {
    /// Takes a part; what does not go on where the file ends is left out, and so the file is not
    /// whole.
    pub(super) fn take(&mut self, part: &Part<'_>) {
        if part.offset == 0 && self.files.len() < MAX_FILES && !self.files.contains_key(&part.file)
        {
            let Ok(file) = tempfile::tempfile() else { return };
            self.files.insert(part.file, Growing { file, written: 0, size: part.size });
        }
        let Some(growing) = self.files.get_mut(&part.file) else { return };
        if growing.written != part.offset || part.size != growing.size {
            return;
        }
        let Ok(bytes) = zstd::bulk::decompress(part.data, MAX_PART) else { return };
        let length = bytes.len() as u64;
        if self.bytes + length > MAX_BYTES || growing.written + length > growing.size {
            return;
        }
        if growing.file.write_all(&bytes).is_ok() {
            growing.written += length;
            self.bytes += length;
        }
    }

    /// How to look for the file at a path, so that this one is found; nothing where it is not
    /// whole.
    pub(super) fn search(&self, number: u64, path: &Path, search: &Search) -> Option<Search> {
        let whole = self.files.get(&number).filter(|file| file.written == file.size)?;
        let mut unpacked = Unpacked::default();
        unpacked.add(path.to_owned(), whole.file.try_clone().ok()?);
        Some(Search { root: None, unpacked: Some(Arc::new(unpacked)), ..search.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(file: u64, offset: u64, size: u64, data: &[u8]) -> Part<'_> {
        Part { file, size, offset, data }
    }

    /// Guards: a file is found when all of it has come, in its order, and no other one is.
    #[test]
    fn a_file_is_taken_when_it_is_whole() {
        let packed = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).unwrap();
        let (first, second) = (packed(b"abc"), packed(b"de"));
        let mut inside = Inside::default();
        let has = |inside: &Inside, number| {
            inside.search(number, Path::new("/a"), &Search::nowhere_else()).is_some()
        };
        inside.take(&part(1, 3, 5, &second));
        assert!(!has(&inside, 1));
        inside.take(&part(1, 0, 5, &first));
        inside.take(&part(1, 0, 5, &first));
        assert!(!has(&inside, 1));
        inside.take(&part(1, 3, 5, b"no frame"));
        inside.take(&part(1, 3, 9, &second));
        assert!(!has(&inside, 1));
        inside.take(&part(1, 3, 5, &second));
        assert!(has(&inside, 1) && !has(&inside, 2));
        // Neither does one grow beyond its size.
        inside.take(&part(1, 5, 5, &second));
        assert_eq!((inside.bytes, has(&inside, 1)), (5, true));
    }

    /// Guards: parts of a hostile recording take no more memory and disk than is allowed.
    #[test]
    fn a_part_has_a_greatest_length() {
        let large = zstd::bulk::compress(&vec![0; MAX_PART + 1], 1).unwrap();
        let mut inside = Inside::default();
        inside.take(&part(1, 0, MAX_PART as u64 + 1, &large));
        assert_eq!(inside.bytes, 0);
    }
}
