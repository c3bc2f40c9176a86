//! Where sources are: under the path that debug information has, somewhere else that was told, or in an archive that
//! was made with the recording (`teeperf pack --sources`: `tar` compressed by zstd, files below `files/`).

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::archive;
use crate::shown::{MAX_SOURCE, Refusal, Shown};

/// Most bytes of all sources that are put into an archive, or taken out of it.
pub const MAX_SOURCES: u64 = 256 << 20;

/// Files by the path that they had where the program was built.
#[derive(Debug, Default)]
pub struct Sources {
    /// Beginnings of paths, and what stands there instead; the first that fits counts.
    pub moved: Vec<(String, String)>,
    /// Which files may be taken from where they are.
    pub shown: Shown,
    archived: HashMap<String, Vec<u8>>,
    /// Files of the archive for which there was no room.
    left: BTreeSet<String>,
    /// Other than [`MAX_SOURCES`].
    most: Option<u64>,
}

/// A file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its text, whatever its encoding; what is none is replaced.
    pub text: String,
    /// Where it was; nothing for an archive.
    pub path: Option<PathBuf>,
    /// When it was changed last; nothing for an archive.
    pub modified: Option<SystemTime>,
}

impl Sources {
    /// Takes files out of an archive, those that are there of the ones wanted.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is no such archive.
    pub fn take_from(&mut self, archive: &Path, wanted: &BTreeSet<&str>) -> io::Result<()> {
        let names: HashMap<String, &str> =
            wanted.iter().map(|path| (archive::name_of(Path::new(path)), *path)).collect();
        let mut room = self.room();
        archive::each(File::open(archive)?, |name, size, content| {
            let Some(path) = names.get(name) else { return Ok(ControlFlow::Continue(())) };
            if size > room {
                self.left.insert((*path).to_owned());
                return Ok(ControlFlow::Continue(()));
            }
            let mut bytes = Vec::new();
            content.take(room).read_to_end(&mut bytes)?;
            room -= bytes.len() as u64;
            self.archived.insert((*path).to_owned(), bytes);
            let is_all = self.archived.len() == wanted.len();
            Ok(if is_all { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
    }

    /// Files of the archive for which there was no room beside those that were taken, in all 256 MiB.
    pub fn left(&self) -> impl Iterator<Item = &str> {
        self.left.iter().map(String::as_str)
    }

    /// The source of this path.
    ///
    /// # Errors
    ///
    /// Where it was looked for in vain, and why.
    pub fn find(&self, path: &str) -> Result<Source, (PathBuf, Refusal)> {
        if let Some(bytes) = self.archived.get(path) {
            let text = String::from_utf8_lossy(bytes).into_owned();
            return Ok(Source { text, path: None, modified: None });
        }
        let place = self.place(path);
        let read = || -> Result<Source, Refusal> {
            let (file, about) = self.shown.open(&place)?;
            let mut bytes = Vec::new();
            file.take(MAX_SOURCE).read_to_end(&mut bytes).map_err(Refusal::Unread)?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Ok(Source { text, path: Some(place.clone()), modified: about.modified().ok() })
        };
        read().map_err(|error| (place.clone(), error))
    }

    /// Bytes that may still be taken out of archives.
    fn room(&self) -> u64 {
        let taken: usize = self.archived.values().map(Vec::len).sum();
        self.most.unwrap_or(MAX_SOURCES).saturating_sub(taken as u64)
    }

    /// Where a file is now, by what was told.
    fn place(&self, path: &str) -> PathBuf {
        let moved = self.moved.iter().find_map(|(from, to)| {
            let rest = path.strip_prefix(from.trim_end_matches('/'))?;
            // Folders are told, not beginnings of their names.
            (rest.is_empty() || rest.starts_with('/'))
                .then(|| format!("{}{rest}", to.trim_end_matches('/')))
        });
        moved.map_or_else(|| path.into(), PathBuf::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_moved() {
        let moved =
            vec![("/build/a/".into(), "/home/x".into()), ("/build".into(), "other/".into())];
        let sources = Sources { moved, ..Sources::default() };
        for (path, expected) in [
            ("/build/a/f.c", "/home/x/f.c"),
            ("/build/ab/f.c", "other/ab/f.c"),
            ("/builds/f.c", "/builds/f.c"),
        ] {
            assert_eq!(sources.place(path), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.c");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let sources = Sources { shown: Shown::everything(), ..Sources::default() };
        let found = sources.find(path.to_str().unwrap());
        assert!(found.unwrap_err().1.to_string().contains("not a regular file"));
    }

    #[test]
    fn archives_come_before_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar.zst");
        let mut tar = tar::Builder::new(
            zstd::stream::write::Encoder::new(File::create(&path).unwrap(), 1).unwrap(),
        );
        for (name, text) in
            [("manifest.json", "{}"), ("files/src/a.c", "int a;"), ("files/src/b.c", "int b;")]
        {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            tar.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap();
        let mut sources = Sources::default();
        sources.take_from(&path, &BTreeSet::from(["/src/a.c", "/src/c.c"])).unwrap();
        assert_eq!(sources.find("/src/a.c").unwrap().text, "int a;");
        assert_eq!(sources.find("/src/b.c").unwrap_err().0, Path::new("/src/b.c"));
        let mut small = Sources { most: Some(8), ..Sources::default() };
        small.take_from(&path, &BTreeSet::from(["/src/a.c", "/src/b.c"])).unwrap();
        assert_eq!(small.left().collect::<Vec<_>>(), ["/src/b.c"]);
        assert_eq!(small.find("/src/a.c").unwrap().text, "int a;");
        std::fs::write(&path, b"no archive").unwrap();
        assert!(sources.take_from(&path, &BTreeSet::from(["/src/a.c"])).is_err());
    }
}
