//! Which source files may be shown to others: packed into an archive, or written where no terminal is.
//!
//! Debug information says which file a function is from, and whoever wrote the program says that (`#line`): it may be a key of the
//! user who reads the recording. So a file is shown where it lies in a folder that the user named, or the project's; and not
//! where debug information says the program was compiled. docs/trust.md has the reasons.

use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// Headers of the system: they are in packages, and anybody may read them.
const SYSTEM: [&str; 2] = ["/usr/include", "/usr/lib/gcc"];
/// Folders that are no project's, though others lie in them.
const SHARED: [&str; 18] = [
    "/", "/boot", "/dev", "/dev/shm", "/etc", "/home", "/media", "/mnt", "/opt", "/proc", "/root",
    "/run", "/srv", "/sys", "/tmp", "/usr", "/var", "/var/tmp",
];
/// Most bytes of a source; they are some kilobytes.
pub(crate) const MAX_SOURCE: u64 = 64 << 20;
/// What stands in a project's folder.
const MARKS: [&str; 3] = ["teeperf.toml", ".git", ".hg"];

/// The folders. None: no file is shown.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Without symbolic links.
    folders: Vec<PathBuf>,
    is_everything: bool,
}

/// Why a file is not shown.
#[derive(Debug)]
pub enum Refusal {
    /// It lies in none of the folders, or a link leads out of them.
    Outside,
    /// It, or a folder that it is in, is hidden.
    Hidden,
    /// It has so many bytes.
    Large(u64),
    /// It cannot be read, or is no file.
    Unread(io::Error),
}

impl Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside => out.write_str("outside of the project's folder"),
            Self::Hidden => out.write_str("hidden: a name in its path begins with a dot"),
            Self::Large(bytes) => {
                write!(out, "{bytes} bytes: a source has {} MiB at most", MAX_SOURCE >> 20)
            }
            Self::Unread(error) => error.fmt(out),
        }
    }
}

impl Shown {
    /// Whatever the user can read: for the user's own eyes alone.
    pub fn everything() -> Self {
        Self { is_everything: true, ..Self::default() }
    }

    /// Files below a folder that the user named.
    ///
    /// # Errors
    ///
    /// Where there is no such folder.
    pub fn add(&mut self, folder: &Path) -> io::Result<()> {
        let folder = folder.canonicalize()?;
        if !folder.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        self.folders.push(folder);
        Ok(())
    }

    /// Files of the project that `here` is in: below the nearest folder with a `teeperf.toml` or a repository, or `here` itself.
    /// A folder that others share, or in which the user's home is, is none. Gives the folder.
    pub fn add_project(&mut self, here: &Path) -> Option<PathBuf> {
        let here = here.canonicalize().ok()?;
        let home = std::env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
        let own = Path::new("/proc/self").metadata().ok()?.uid();
        let is_project = |folder: &&Path| is_marked(folder, own);
        let may_be = |folder: &&Path| !is_shared(folder, home.as_deref());
        let marked = here.ancestors().filter(may_be).find(is_project);
        let folder = marked.or_else(|| Some(&*here).filter(may_be))?;
        self.folders.push(folder.to_owned());
        Some(folder.to_owned())
    }

    /// Opens a file, if it may be shown.
    ///
    /// # Errors
    ///
    /// Why it may not, or cannot.
    pub fn open(&self, path: &Path) -> Result<(File, Metadata), Refusal> {
        // What is no file is not waited for, and nothing happens to a device.
        let there = path.metadata().map_err(Refusal::Unread)?;
        let no_file = || Refusal::Unread(io::Error::other("not a regular file"));
        if !there.is_file() {
            return Err(no_file());
        }
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = file.map_err(Refusal::Unread)?;
        let about = file.metadata().map_err(Refusal::Unread)?;
        if !about.is_file() {
            return Err(no_file());
        }
        // Where what was opened lies: the path may lead elsewhere by now.
        let real = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        self.check(&real.map_err(Refusal::Unread)?, &about)?;
        match about.len() {
            ..=MAX_SOURCE => Ok((file, about)),
            bytes => Err(Refusal::Large(bytes)),
        }
    }

    /// `path` is without symbolic links.
    fn check(&self, path: &Path, about: &Metadata) -> Result<(), Refusal> {
        let is_public = about.uid() == 0 && about.mode() & 0o004 != 0;
        let is_system = || SYSTEM.iter().any(|folder| path.starts_with(folder));
        if self.is_everything || is_public && is_system() {
            return Ok(());
        }
        let below = self.folders.iter().filter_map(|folder| path.strip_prefix(folder).ok());
        let mut refusal = Refusal::Outside;
        for rest in below {
            if !rest.components().any(is_hidden) {
                return Ok(());
            }
            refusal = Refusal::Hidden;
        }
        Err(refusal)
    }
}

fn is_hidden(part: Component<'_>) -> bool {
    part.as_os_str().as_bytes().starts_with(b".")
}

/// Whether the folder is a project's, as those say who alone may write to it: its owner and root.
fn is_marked(folder: &Path, own: u32) -> bool {
    let is_trusted = |about: &Metadata| {
        [own, 0].contains(&about.uid()) && (about.mode() & 0o002 == 0 || about.is_symlink())
    };
    let is_own = |path: &Path| path.symlink_metadata().is_ok_and(|about| is_trusted(&about));
    is_own(folder) && MARKS.iter().any(|mark| is_own(&folder.join(OsStr::new(mark))))
}

fn is_shared(folder: &Path, home: Option<&Path>) -> bool {
    SHARED.iter().any(|shared| folder == Path::new(shared))
        || home.is_some_and(|home| home.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Whether it is shown, or why not.
    fn said(shown: &Shown, path: &Path) -> String {
        shown.open(path).map_or_else(|refusal| refusal.to_string(), |_| "shown".into())
    }

    #[test]
    fn files_of_the_project_are_shown_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["proj/src/a.c", "proj/.env", "proj/.git/config", "proj-2/b.c", ".ssh/id_rsa"] {
            write(&at(path), "text");
        }
        symlink(at(".ssh/id_rsa"), at("proj/src/key.c")).unwrap();
        symlink(at(".ssh"), at("proj/keys")).unwrap();
        symlink(at("proj/src"), at("link")).unwrap();
        let mut shown = Shown::default();
        assert_eq!(said(&shown, &at("proj/src/a.c")), Refusal::Outside.to_string());
        let found = shown.add_project(&at("proj/src")).unwrap();
        assert_eq!(found, at("proj").canonicalize().unwrap(), "the repository");
        let (outside, hidden) = (Refusal::Outside.to_string(), Refusal::Hidden.to_string());
        for (path, wanted) in [
            ("proj/src/a.c", "shown"),
            ("link/a.c", "shown"),
            ("proj/build/../src/a.c", "No such file"),
            ("proj/src/../../proj/src/a.c", "shown"),
            ("proj/.env", &hidden),
            ("proj/.git/config", &hidden),
            ("proj/src/key.c", &outside),
            ("proj/keys/id_rsa", &outside),
            ("proj/../.ssh/id_rsa", &outside),
            ("proj-2/b.c", &outside),
            ("proj/src", "not a regular file"),
        ] {
            assert!(said(&shown, &at(path)).starts_with(wanted), "{path}");
        }
        assert_eq!(said(&shown, Path::new("/etc/passwd")), outside);
        assert_eq!(said(&Shown::everything(), Path::new("/etc/passwd")), "shown");
        shown.add(&at(".ssh")).unwrap();
        assert_eq!(said(&shown, &at("proj/src/key.c")), "shown");
        assert!(shown.add(&at("none")).is_err() && shown.add(&at("proj/src/a.c")).is_err());
    }

    #[test]
    fn a_folder_that_others_share_is_no_projects() {
        for folder in ["/", "/etc", "/tmp", "/home"] {
            assert_eq!(Shown::default().add_project(Path::new(folder)), None, "{folder}");
        }
        assert!(is_shared(Path::new("/data"), Some(Path::new("/data/me"))));
        assert!(is_shared(Path::new("/data/me"), Some(Path::new("/data/me"))));
        assert!(!is_shared(Path::new("/data/me/x"), Some(Path::new("/data/me"))));
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("open/below");
        fs::create_dir_all(&below).unwrap();
        write(&folder.path().join("open/teeperf.toml"), "");
        let mode = |mode| fs::Permissions::from_mode(mode);
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(folder.path().join("open"), mode(0o1777)).unwrap();
        let found = Shown::default().add_project(&below).unwrap();
        assert_eq!(found, below.canonicalize().unwrap(), "anybody can put a mark there");
    }

    /// Guards: a program names a file of any size as its source.
    #[test]
    fn what_is_too_large_for_a_source_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.c");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let large = said(&Shown::everything(), &path);
        assert_eq!(large, "1099511627776 bytes: a source has 64 MiB at most");
    }

    #[test]
    fn headers_of_the_system_are_shown() {
        let Ok(header) = Path::new("/usr/include/stdio.h").canonicalize() else { return };
        assert_eq!(said(&Shown::default(), &header), "shown");
    }
}
