//! Where a new file goes. It is written beside its place, under another name, and gets its own when it is whole: what was
//! there before stays until then, and nothing is left of what was not finished. What is no file, such as a pipe or a device,
//! is written as it is.
//!
//! Nothing that is read is written over, whatever names it has.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use teeperf_record::writing::{Output, lock};

use crate::error::EditError;

/// See the module.
#[derive(Debug)]
pub struct Target {
    named: PathBuf,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Stdout,
    /// No file, or a name that nothing can be put in the place of.
    AsItIs,
    Beside {
        made: PathBuf,
        real: PathBuf,
    },
}

/// Which file it is, whatever its names are.
type Identity = (u64, u64);

impl Target {
    /// The file of this name, or standard output for `-`, while these files and folders are read.
    ///
    /// # Errors
    ///
    /// When it is one of those, or in one of those, a folder, a file that a recorder writes to, or cannot be made.
    pub fn open(named: &Path, read: &[&Path]) -> Result<Self, EditError> {
        let is_stdout = named == Path::new("-");
        let place = if is_stdout { Path::new("/dev/stdout") } else { named };
        let shown = named.display();
        if read.iter().any(|read| is_part_of(place, read)) {
            return Err(EditError::Refused(format!("{shown} is read: name another with -o")));
        }
        let mut target = Self { named: named.to_owned(), way: Way::AsItIs };
        if is_stdout {
            target.way = Way::Stdout;
            return Ok(target);
        }
        let there = place.metadata().ok();
        if there.as_ref().is_some_and(Metadata::is_dir) {
            return Err(EditError::Refused(format!("{shown} is a folder")));
        }
        // Names of open files, whose places may be another's by now.
        let is_system = ["/dev", "/proc"].iter().any(|folder| place.starts_with(folder));
        let is_link = place.is_symlink();
        if is_system || there.as_ref().is_some_and(|there| !there.is_file()) {
            return Ok(target);
        }
        let real = match (is_link, &there) {
            (true, Some(_)) => place.canonicalize().map_err(|source| target.failed(source))?,
            // A link to where nothing is yet.
            (true, None) => return Ok(target),
            (false, _) => place.to_owned(),
        };
        let made = match beside(&real, there.as_ref()) {
            Err(source) if source.kind() == io::ErrorKind::WouldBlock => {
                return Err(EditError::Refused(format!("{shown} is being recorded into")));
            }
            made => made.map_err(|source| target.failed(source))?,
        };
        target.way = Way::Beside { made, real };
        Ok(target)
    }

    /// To write to.
    pub fn output(&self) -> Output {
        match &self.way {
            Way::Stdout => Output::Stdout,
            Way::AsItIs => Output::File(self.named.clone()),
            Way::Beside { made, .. } => Output::File(made.clone()),
        }
    }

    /// The file to write to.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub fn file(&self) -> Result<File, EditError> {
        let path = self.unfinished().unwrap_or(match self.way {
            Way::Stdout => Path::new("/dev/stdout"),
            _ => &self.named,
        });
        File::create(path).map_err(|source| self.failed(source))
    }

    /// What is there until the file is whole: to be removed where the process ends before.
    pub fn unfinished(&self) -> Option<&Path> {
        match &self.way {
            Way::Beside { made, .. } => Some(made),
            _ => None,
        }
    }

    /// The file is whole, and gets its name.
    ///
    /// # Errors
    ///
    /// When the system refuses; what was there before stays.
    pub fn finish(self) -> Result<(), EditError> {
        match &self.way {
            Way::Beside { made, real } => {
                fs::rename(made, real).map_err(|source| self.failed(source))
            }
            _ => Ok(()),
        }
    }

    fn failed(&self, source: io::Error) -> EditError {
        EditError::Write { name: self.named.display().to_string(), source }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(made) = self.unfinished() {
            // Gone already where it has its name.
            let _ = fs::remove_file(made);
        }
    }
}

/// Whether both are the same file, by whatever names, or the first is in the folder that the second is.
pub fn is_part_of(path: &Path, of: &Path) -> bool {
    let own = identity(path);
    if !of.is_dir() {
        return own.is_some() && own == identity(of);
    }
    let folder = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return false,
    };
    let is_in = [folder, of].map(fs::canonicalize);
    if matches!(is_in, [Ok(folder), Ok(of)] if folder == of) {
        return true;
    }
    let Ok(entries) = fs::read_dir(of) else { return false };
    let mut entries = entries.filter_map(Result::ok);
    own.is_some() && entries.any(|entry| identity(&entry.path()) == own)
}

/// Of files alone: a terminal is read and written at once.
fn identity(path: &Path) -> Option<Identity> {
    let about = path.metadata().ok().filter(Metadata::is_file)?;
    Some((about.dev(), about.ino()))
}

/// An empty file in the folder of another, which may be there, and then is nobody's who writes to it; with its permissions.
fn beside(real: &Path, there: Option<&Metadata>) -> io::Result<PathBuf> {
    if there.is_some() {
        // Who may not write to it may not put another in its place.
        lock(&OpenOptions::new().write(true).open(real)?)?;
    }
    for number in 0.. {
        let made = real.with_file_name(format!(".teeperf-{}-{number}.part", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&made) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => {
                let opened = opened?;
                if let Some(there) = there {
                    // A file system without permissions has none to keep.
                    let _ = opened.set_permissions(there.permissions());
                }
                return Ok(made);
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_was_there_stays_until_all_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), "old").unwrap();
        fs::set_permissions(at("old"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("old", at("link")).unwrap();
        for finishes in [false, true] {
            let target = Target::open(&at("link"), &[]).unwrap();
            target.file().unwrap().write_all(b"new").unwrap();
            assert_eq!(fs::read(at("old")).unwrap(), b"old");
            if finishes {
                target.finish().unwrap();
            } else {
                drop(target);
            }
            assert_eq!(names(folder.path()), ["link", "old"]);
        }
        assert_eq!(fs::read(at("old")).unwrap(), b"new");
        assert!(at("link").is_symlink());
        assert_eq!(at("old").metadata().unwrap().permissions().mode() & 0o777, 0o640);
        // Beside nothing, too.
        Target::open(&at("fresh"), &[&at("old")]).unwrap().finish().unwrap();
        assert!(at("fresh").is_file());
    }

    #[test]
    fn what_is_read_is_refused_by_all_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("kept")).unwrap();
        fs::write(at("kept/1"), "a segment").unwrap();
        fs::write(at("file"), "a recording").unwrap();
        fs::hard_link(at("file"), at("hard")).unwrap();
        fs::hard_link(at("kept/1"), at("of kept")).unwrap();
        symlink("file", at("soft")).unwrap();
        for name in ["file", "hard", "soft", "kept/1", "kept/new", "of kept"] {
            let refused = Target::open(&at(name), &[&at("file"), &at("kept")]);
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("is read"), "{name}: {refused}");
        }
        assert!(Target::open(&at("other"), &[&at("file"), &at("kept")]).is_ok());
        assert_eq!(fs::read(at("file")).unwrap(), b"a recording");
    }

    #[test]
    fn what_is_no_file_is_written_as_it_is() {
        for name in ["/dev/null", "-"] {
            let target = Target::open(Path::new(name), &[Path::new("/dev/null")]).unwrap();
            assert_eq!(target.unfinished(), None);
            target.finish().unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        assert!(Target::open(folder.path(), &[]).is_err());
        let path = folder.path().join("recorded");
        let recorded = File::create(&path).unwrap();
        lock(&recorded).unwrap();
        let refused = Target::open(&path, &[]).unwrap_err().to_string();
        assert!(refused.contains("being recorded"), "{refused}");
    }
}
