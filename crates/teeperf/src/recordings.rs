//! Which recording is meant: names of new ones, and the newest when none is named.

use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::SystemTime;
use teeperf_edit::rotate;
use teeperf_edit::target::is_part_of;
use teeperf_symbols::Sources;
use teeperf_view::printable;

/// Where several recordings are, which one was taken is said once.
static SAID: Once = Once::new();

/// Ending of a recording's name.
const ENDING: &str = "teeperf";

/// Name for a recording of this program: in the present folder.
pub(crate) fn name_for(program: &OsStr) -> PathBuf {
    let stem = Path::new(program).file_name().unwrap_or(OsStr::new("program"));
    let mut name = stem.to_owned();
    name.push(".");
    name.push(ENDING);
    name.into()
}

/// The recording named, or the newest one here.
pub(crate) fn named_or_newest(named: Option<&Path>) -> Result<PathBuf> {
    named_or_newest_but(named, Path::new(""))
}

/// Likewise; the newest but for this one, which a command makes: it is there when the same is typed again.
pub(crate) fn named_or_newest_but(named: Option<&Path>, made: &Path) -> Result<PathBuf> {
    if named == Some(Path::new("-")) {
        return Ok("/dev/stdin".into());
    }
    if let Some(path) = named {
        if let Err(error) = path.metadata() {
            bail!("{}: {error}; make one with `teeperf record -- PROGRAM`", path.display());
        }
        return Ok(path.to_owned());
    }
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    let mut count = 0u64;
    for entry in std::fs::read_dir(".").context("cannot look into the present folder")? {
        let path = entry?.path();
        if path.extension() != Some(OsStr::new(ENDING)) || is_part_of(&path, made) {
            continue;
        }
        let Ok(file) = path.metadata() else { continue };
        let Ok(changed) = file.modified() else { continue };
        let is_recording = file.is_file() || rotate::is_recording(&path);
        count += u64::from(is_recording);
        if is_recording && newest.as_ref().is_none_or(|(time, _)| changed > *time) {
            newest = Some((changed, path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)));
        }
    }
    match newest {
        Some((_, path)) => {
            if count > 1 {
                // Commands ask more than once.
                SAID.call_once(|| {
                    let name = printable(&path.to_string_lossy());
                    note!("teeperf: {name}, the newest of {count} recordings here");
                });
            }
            Ok(path)
        }
        None => bail!(
            "no recording (*.{ENDING}) in this folder; name one, or make one with \
             `teeperf record -- PROGRAM`"
        ),
    }
}

/// Two of these that are the same file, or have the same bytes.
pub(crate) fn same(paths: &[PathBuf]) -> Result<Option<(&Path, &Path)>> {
    for (at, path) in paths.iter().enumerate() {
        let found = path.metadata().with_context(|| path.display().to_string())?;
        for other in &paths[..at] {
            let there = other.metadata().with_context(|| other.display().to_string())?;
            let is_one = (found.dev(), found.ino()) == (there.dev(), there.ino());
            let is_alike = || found.is_file() && there.is_file() && found.len() == there.len();
            if is_one || (is_alike() && have_same_bytes(path, other)?) {
                return Ok(Some((other, path)));
            }
        }
    }
    Ok(None)
}

fn have_same_bytes(a: &Path, b: &Path) -> Result<bool> {
    let open = |path: &Path| File::open(path).with_context(|| path.display().to_string());
    let (mut a, mut b) = (BufReader::new(open(a)?), BufReader::new(open(b)?));
    loop {
        let (here, there) = (a.fill_buf()?, b.fill_buf()?);
        let count = here.len().min(there.len());
        if here[..count] != there[..count] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(here.len() == there.len());
        }
        a.consume(count);
        b.consume(count);
    }
}

/// Whether this is a file that is a recording as it stands, and no archive or folder of one.
pub(crate) fn is_plain(path: &Path) -> bool {
    path.is_file() && starts_with(path, &teeperf_wire::packet::SYNC)
}

/// Whether somebody still records into this file or folder.
pub(crate) fn goes_on(path: &Path) -> bool {
    let lock = if path.is_dir() { path.join(rotate::LOCK) } else { path.to_owned() };
    teeperf_record::writing::is_locked(&lock)
}

/// Whether this is an archive of `teeperf pack`, as far as its beginning tells.
pub(crate) fn is_archive(path: &Path) -> bool {
    path.is_file() && starts_with(path, &teeperf_edit::pack::MAGIC)
}

/// Takes files out of an archive, and says for which of them there was no room.
pub(crate) fn take_from_archive(
    into: &mut Sources,
    archive: &Path,
    wanted: &BTreeSet<&str>,
) -> Result<()> {
    into.take_from(archive, wanted)?;
    for file in into.left() {
        note!(
            "teeperf: {}: of an archive's files 256 MiB are read, and this one has no room beside the others; name fewer functions",
            printable(file)
        );
    }
    Ok(())
}

/// Refuses to write over a file that is something else: not `what`, which begins as told.
pub(crate) fn may_replace(path: &Path, force: bool, what: &str, begins: &[u8]) -> Result<()> {
    let Ok(found) = path.metadata() else { return Ok(()) };
    if found.is_dir() {
        bail!("{} is a folder", path.display());
    }
    if force || !found.is_file() || found.len() == 0 || starts_with(path, begins) {
        return Ok(());
    }
    bail!("{} is there, and is no {what}; --force overwrites it", path.display());
}

/// Refuses memory to be lent that is a recording: laid out, it would be overwritten.
pub(crate) fn may_be_lent(path: &Path, force: bool) -> Result<()> {
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    if force || !is_file || !starts_with(path, &teeperf_wire::packet::SYNC) {
        return Ok(());
    }
    bail!(
        "{} is a recording, and would be overwritten: the memory is named first, and with -o the recording that \
         is to be written. --force overwrites it",
        path.display()
    );
}

/// Whether a file begins so.
pub(crate) fn starts_with(path: &Path, begins: &[u8]) -> bool {
    let mut start = vec![0; begins.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == begins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_named_after_the_program() {
        assert_eq!(name_for(OsStr::new("/usr/bin/sort")), Path::new("sort.teeperf"));
        assert_eq!(name_for(OsStr::new("./a.out")), Path::new("a.out.teeperf"));
    }

    #[test]
    fn the_same_run_under_two_names_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &[u8]| std::fs::write(path(name), text).unwrap();
        write("a", b"one");
        write("b", b"two");
        write("c", b"one");
        std::fs::hard_link(path("b"), path("d")).unwrap();
        let same = |names: &[&str]| {
            let paths: Vec<PathBuf> = names.iter().map(|name| path(name)).collect();
            super::same(&paths).unwrap().is_some()
        };
        assert!(!same(&["a", "b"]) && same(&["a", "a"]) && same(&["a", "b", "c"]));
        assert!(same(&["b", "d"]) && !same(&["a", "d"]));
    }

    #[test]
    fn only_what_is_of_the_kind_is_replaced() {
        let may_replace = |path: &Path, force| may_replace(path, force, "recording", b"TPRF");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert!(may_replace(&path, false).is_ok());
        std::fs::write(&path, b"").unwrap();
        assert!(may_replace(&path, false).is_ok());
        std::fs::write(&path, b"precious").unwrap();
        assert!(may_replace(&path, false).is_err());
        assert!(may_replace(&path, true).is_ok());
        std::fs::write(&path, b"TPRF and so on").unwrap();
        assert!(may_replace(&path, false).is_ok());
        assert!(may_replace(folder.path(), true).is_err());
        assert!(may_replace(Path::new("/dev/null"), false).is_ok());
    }

    #[test]
    fn a_recording_is_not_lent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert!(may_be_lent(&path, false).is_ok());
        std::fs::write(&path, [0; 64]).unwrap();
        assert!(may_be_lent(&path, false).is_ok());
        std::fs::write(&path, b"TPRF and so on").unwrap();
        assert!(may_be_lent(&path, false).is_err());
        assert!(may_be_lent(&path, true).is_ok());
        assert!(may_be_lent(Path::new("/dev/null"), false).is_ok());
    }
}
