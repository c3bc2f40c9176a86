//! Files out of an archive.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use teeperf_symbols::{Unpacked, archive};

use super::{Entry, Kind, MANIFEST, MOST_BYTES_BEFORE};

/// Most files that are taken out: each stays open.
const MOST_FILES: usize = 512;
/// Most bytes of all of them.
const MOST_BYTES: u64 = 4 << 30;

#[derive(Deserialize)]
struct Manifest {
    /// Archives of earlier versions do not say so, and have no code of what was sampled.
    #[serde(default)]
    samples: bool,
    #[serde(default)]
    files: Vec<Entry>,
}

/// Which recordings' files are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Those of recordings with samples: their replay needs them for names.
    Samples,
    /// Those of any recording.
    Any,
}

/// Takes files with code and symbols out of the archive at `path`, into files without a name. `progress` is told now and then
/// how many bytes were written.
///
/// # Errors
///
/// When it is no archive, is damaged, or the system has no room; `into` has what came before that.
pub fn unpack(
    path: &Path,
    of: Of,
    into: &mut Unpacked,
    progress: &mut dyn FnMut(u64),
) -> io::Result<()> {
    unpack_from(File::open(path)?, of, MOST_BYTES, into, progress)
}

/// So many bytes at most.
pub(crate) fn unpack_from(
    stream: impl Read,
    of: Of,
    most: u64,
    into: &mut Unpacked,
    progress: &mut dyn FnMut(u64),
) -> io::Result<()> {
    let (mut wanted, mut written) = (None, 0);
    archive::each(stream, |name, size, content| {
        let Some(wanted) = &mut wanted else {
            // The manifest is the first that there is.
            let files = files(name, content, of);
            let is_over = files.is_empty();
            wanted = Some(files);
            return Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
        };
        if into.count() >= MOST_FILES {
            return Ok(ControlFlow::Break(()));
        }
        let Some((path, build_id)) = wanted.remove(name) else {
            return Ok(ControlFlow::Continue(()));
        };
        if size > most - written {
            return Err(io::Error::other(format!("its files have more than {most} bytes")));
        }
        let mut file = tempfile::tempfile()?;
        if io::copy(&mut content.take(size), &mut file)? < size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        written += size;
        match build_id {
            Some(build_id) => into.add_debug_file(build_id, path, file),
            None => into.add(path, file),
        }
        progress(written);
        Ok(ControlFlow::Continue(()))
    })
}

/// Path of a file, and the build-id that it is the debug file of.
type Packed = (PathBuf, Option<Vec<u8>>);

/// The files that are wanted, by their names in the archive.
fn files(name: &str, entry: impl Read, of: Of) -> HashMap<String, Packed> {
    let manifest = (name == MANIFEST).then(|| {
        let text = io::BufReader::new(entry.take(MOST_BYTES_BEFORE));
        serde_json::from_reader::<_, Manifest>(text)
    });
    let Some(Ok(Manifest { samples, files })) = manifest else { return HashMap::new() };
    if of == Of::Samples && !samples {
        return HashMap::new();
    }
    let is_wanted = |entry: &Entry| !matches!(entry.kind, Kind::Source | Kind::Other);
    let build_id = |entry: &Entry| {
        let hex = entry.build_id.as_ref().filter(|_| entry.kind == Kind::Debug)?;
        bytes_of(hex)
    };
    let packed = |entry: Entry| (build_id(&entry), entry);
    let files = files.into_iter().filter(is_wanted).map(packed);
    files.map(|(build_id, entry)| (entry.name, (entry.path.into(), build_id))).collect()
}

/// The bytes that hexadecimal digits stand for; nothing where they are none.
fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        hex.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect();
    let digits = digits?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::bytes_of;

    #[test]
    fn build_ids_are_pairs_of_digits() {
        assert_eq!(bytes_of("0aFf"), Some(vec![0x0a, 0xff]));
        assert_eq!(bytes_of(""), Some(vec![]));
        assert_eq!(bytes_of("0a0"), None);
        assert_eq!(bytes_of("0g"), None);
    }
}
