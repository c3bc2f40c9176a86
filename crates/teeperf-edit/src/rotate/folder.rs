//! What is in the folder of a recording that keeps its latest part alone: which files are its own, and how they read as one.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use teeperf_profile::Recording;
use teeperf_profile::contents::Body;
use teeperf_record::writing::lock as lock_file;
use teeperf_wire::packet::SYNC;

pub(super) const SEGMENT: &str = "segment";
pub(super) const HEAD: &str = "head";
/// A head that is not whole yet.
pub(crate) const MAKING: &str = "making";
/// The file that who records holds locked, and how it begins.
pub const LOCK: &str = "lock";
const MARK: &[u8] = b"teeperf record --rotate\n";
/// Most files that are looked at.
const MOST_FILES: usize = 1 << 16;
/// So often the files are looked for that a recorder may remove meanwhile.
const TRIES: u32 = 10;

/// Takes a folder, which is made, or emptied of an older recording. What is returned is to be kept open while it is written.
pub(super) fn take(folder: &Path) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    // Nothing is touched before all of it is known to be a recorder's.
    own_files(folder)?;
    let mut options = OpenOptions::new();
    let mut lock =
        options.read(true).append(true).create(true).truncate(false).open(folder.join(LOCK))?;
    lock_file(&lock).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(error.kind(), "it is being recorded into"),
        _ => error,
    })?;
    if lock.metadata()?.len() == 0 {
        lock.write_all(MARK)?;
    }
    own_files(folder)?.iter().try_for_each(fs::remove_file)?;
    Ok(lock)
}

/// The files of a recording in a folder that has nothing else in it, but for the lock.
fn own_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut own = Vec::new();
    let mut has_bare_lock = false;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let start = match beginning(&path) {
            // A recorder that writes here has removed it; it has the lock.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            start => start?,
        };
        let is_lock = path.file_name().is_some_and(|name| name == LOCK);
        let is_ours = match &start {
            None => false,
            Some(start) if is_lock => start.is_empty() || *start == MARK,
            // One that was killed may have written less.
            Some(start) => {
                let most = start.len().min(SYNC.len());
                is_named(&path) && start[..most] == SYNC[..most]
            }
        };
        if !is_ours || own.len() >= MOST_FILES {
            return Err(foreign(&path));
        }
        if is_lock {
            has_bare_lock = start.is_some_and(|start| start.is_empty());
        } else {
            own.push(path);
        }
    }
    // Others have such files, too.
    if has_bare_lock && own.is_empty() {
        return Err(foreign(&folder.join(LOCK)));
    }
    Ok(own)
}

fn foreign(path: &Path) -> io::Error {
    let text = format!(
        "{} is there, and is no part of a recording that --rotate made; next: name a folder that is empty, or not \
         there yet",
        path.display()
    );
    io::Error::new(io::ErrorKind::AlreadyExists, text)
}

/// How a file begins; nothing where it is none, such as a link.
fn beginning(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(None);
    }
    let mut start = Vec::new();
    File::open(path)?.take(MARK.len() as u64).read_to_end(&mut start)?;
    Ok(Some(start))
}

pub(super) fn name(number: u64, ending: &str) -> String {
    format!("{number:010}.{ending}")
}

fn is_named(path: &Path) -> bool {
    [SEGMENT, HEAD, MAKING].iter().any(|ending| number_of(path, ending).is_some())
}

/// The number of a file whose name is just as this recorder has it.
fn number_of(path: &Path, ending: &str) -> Option<u64> {
    let number = path.file_stem()?.to_str()?.parse().ok()?;
    (path.file_name()? == name(number, ending).as_str()).then_some(number)
}

/// Whether a folder has a recording in it.
pub fn is_recording(folder: &Path) -> bool {
    segments(folder).is_ok_and(|segments| !segments.is_empty())
}

/// The recording in a folder, as one stream; what a recorder removes meanwhile stays in it.
///
/// # Errors
///
/// When there is none.
pub fn open(folder: &Path) -> io::Result<Box<dyn Read>> {
    Ok(Box::new(Chain(files(folder)?.into())))
}

/// Bytes of the recording in a folder, and since when it has what happened: nanoseconds since 1970, where it says so.
///
/// # Errors
///
/// When there is none.
pub fn kept(folder: &Path) -> io::Result<(u64, Option<u64>)> {
    let files = files(folder)?;
    let mut bytes = 0;
    for file in &files {
        bytes += file.metadata()?.len();
    }
    let mut recording = Recording::from_read(Chain(files.into()), folder.display().to_string());
    let first = recording.next_packet().map_err(io::Error::other)?;
    let began = first.and_then(|packet| match packet.body {
        Body::Start(start) => Some(start.wall_ns).filter(|&ns| ns > 0),
        _ => None,
    });
    Ok((bytes, began))
}

/// Its files, in their order.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<File>> {
    let mut tries = 0;
    loop {
        tries += 1;
        let segments = segments(folder)?;
        if segments.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the folder has no recording in it: no segment that begins with a head",
            ));
        }
        match segments.iter().map(File::open).collect() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries < TRIES => {}
            opened => return opened,
        }
    }
}

/// The files of it in their order, from the oldest segment on of which a reader knows the beginning.
fn segments(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        numbers.extend(number_of(&entry?.path(), SEGMENT));
    }
    numbers.sort_unstable();
    let head = |number: u64| folder.join(name(number, HEAD));
    let first = numbers.iter().position(|&number| number == 1 || head(number).is_file());
    let Some(first) = first else { return Ok(Vec::new()) };
    let begins = Some(head(numbers[first])).filter(|head| head.is_file());
    let rest = numbers[first..].iter().map(|&number| folder.join(name(number, SEGMENT)));
    Ok(begins.into_iter().chain(rest).collect())
}

/// Files, one behind the other.
pub(crate) struct Chain(pub(crate) VecDeque<File>);

impl Read for Chain {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(file) = self.0.front_mut() {
            match file.read(into)? {
                0 if !into.is_empty() => self.0.pop_front(),
                read => return Ok(read),
            };
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is in a folder, by name.
    fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let mut content: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), fs::read(&path).unwrap_or_default()))
            .collect();
        content.sort();
        content
    }

    #[test]
    fn what_others_have_in_a_folder_stays() {
        for (name, text) in [
            ("lock", "4711\n"),
            ("lock", ""),
            ("7.segment", "TPRF"),
            ("+3.head", "TPRF"),
            ("0000000007.segment", "a part of a ring"),
            ("0000000007.head", "TP of something else"),
            ("notes", ""),
        ] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(name), text).unwrap();
            if name != "lock" {
                fs::write(folder.path().join("0000000001.segment"), "TPRF and so on").unwrap();
            }
            let before = content(folder.path());
            let refused = take(folder.path()).unwrap_err().to_string();
            assert!(refused.contains(name), "{refused}");
            assert_eq!(content(folder.path()), before);
        }
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("lock")).unwrap();
        assert!(take(folder.path()).is_err());
    }

    #[test]
    fn what_a_recorder_left_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        drop(take(&folder.path().join("new")).unwrap());
        let folder = folder.path().join("new");
        for (name, text) in [("0000000009.head", "TPRF"), ("0000000010.making", "TP")] {
            fs::write(folder.join(name), text).unwrap();
        }
        fs::write(folder.join("0000000009.segment"), "TPRF and so on").unwrap();
        let _taken = take(&folder).unwrap();
        assert_eq!(content(&folder), [(folder.join(LOCK), MARK.to_vec())]);
        assert_eq!(take(&folder).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
