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

/// Takes files with code and symbols out of the archive at `path`, into files without a name; none where the recording has no samples,
/// which alone need them. `progress` is told now and then how many bytes were written.
///
/// # Errors
///
/// When it is no archive, is damaged, or the system has no room; `into` has what came before that.
pub fn unpack(path: &Path, into: &mut Unpacked, progress: &mut dyn FnMut(u64)) -> io::Result<()> {
    unpack_from(File::open(path)?, MOST_BYTES, into, progress)
}

/// So many bytes at most.
pub(crate) fn unpack_from(
    stream: impl Read,
    most: u64,
    into: &mut Unpacked,
    progress: &mut dyn FnMut(u64),
) -> io::Result<()> {
    let (mut wanted, mut written) = (None, 0);
    archive::each(stream, |name, size, content| {
        let Some(wanted) = &mut wanted else {
            // The manifest is the first that there is.
            let files = files(name, content);
            let is_over = files.is_empty();
            wanted = Some(files);
            return Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
        };
        if into.count() >= MOST_FILES {
            return Ok(ControlFlow::Break(()));
        }
        let Some(path) = wanted.remove(name) else { return Ok(ControlFlow::Continue(())) };
        if size > most - written {
            return Err(io::Error::other(format!("its files have more than {most} bytes")));
        }
        let mut file = tempfile::tempfile()?;
        if io::copy(&mut content.take(size), &mut file)? < size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        written += size;
        into.add(path, file);
        progress(written);
        Ok(ControlFlow::Continue(()))
    })
}

/// By their names in the archive, the paths of files that are wanted.
fn files(name: &str, entry: impl Read) -> HashMap<String, PathBuf> {
    let manifest = (name == MANIFEST).then(|| {
        let text = io::BufReader::new(entry.take(MOST_BYTES_BEFORE));
        serde_json::from_reader::<_, Manifest>(text)
    });
    let Some(Ok(Manifest { samples: true, files })) = manifest else { return HashMap::new() };
    let is_wanted = |entry: &Entry| !matches!(entry.kind, Kind::Source | Kind::Other);
    files.into_iter().filter(is_wanted).map(|entry| (entry.name, entry.path.into())).collect()
}
