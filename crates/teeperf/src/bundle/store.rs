//! The folder on disk where the embedded files are unpacked: private, made by us, and named
//! after what is in it, so that two versions never meet. A folder that somebody else owns or
//! can write is never used: what lies in it goes into programs. Root takes none below a folder of
//! another user's either, as `sudo -E` would have it: that user can put another in its place.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A trusted folder of this name, made when it is not there: below `$XDG_CACHE_HOME/teeperf`,
/// else `~/.cache/teeperf`, else, for root, `/var/cache/teeperf`, else a private folder for temporary
/// files.
pub(crate) fn folder(name: &str) -> Result<PathBuf> {
    let absolute = |variable: &str| {
        std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    };
    let of_root = is_root().then(|| PathBuf::from("/var/cache"));
    let of_home = absolute("HOME").map(|home| home.join(".cache"));
    let caches = [absolute("XDG_CACHE_HOME"), of_home, of_root];
    for cache in caches.into_iter().flatten() {
        if is_root() && !is_out_of_reach(&cache) {
            continue;
        }
        let made = std::fs::create_dir_all(&cache).map_err(anyhow::Error::from);
        let own = made.and_then(|()| private(&cache.join("teeperf")));
        if let Ok(found) = own.and_then(|own| private(&own.join(name))) {
            return Ok(found);
        }
    }
    // SAFETY: asks for a number and cannot fail.
    let user = unsafe { libc::geteuid() };
    let own = std::env::temp_dir().join(format!("teeperf-{user}"));
    private(&own).and_then(|own| private(&own.join(name))).context(
        "no private folder for teeperf's files: set XDG_CACHE_HOME to a folder of your own",
    )
}

pub(super) fn is_root() -> bool {
    // SAFETY: asks for a number and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Whether no other user can put another folder in the place of this one, or of one above it that is there: all are
/// root's, and only root writes there, or each user to its own (sticky).
fn is_out_of_reach(path: &Path) -> bool {
    let is_safe = |about: std::fs::Metadata| {
        let is_sticky = about.mode() & 0o1000 != 0;
        let is_roots = about.uid() == 0 && (about.mode() & 0o020 == 0 || about.gid() == 0);
        is_roots && about.mode() & 0o002 == 0 || about.uid() == 0 && is_sticky
    };
    // What symbolic links lead to is looked at: the links themselves are in these folders.
    let Some(there) = path.ancestors().find_map(|folder| folder.canonicalize().ok()) else {
        return false;
    };
    there.ancestors().chain(path.ancestors()).all(|folder| folder.metadata().map_or(true, is_safe))
}

/// Makes a folder that only we can read and write, or checks that we alone can write it.
fn private(path: &Path) -> Result<PathBuf> {
    trusted(path, 0o700)
}

/// Makes a folder of this mode, or checks that it is one that we alone can write.
pub(super) fn trusted(path: &Path, mode: u32) -> Result<PathBuf> {
    match std::fs::DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| format!("cannot make {}", path.display()));
        }
        Err(_) => {}
        // Of what was asked for the umask may have left less.
        Ok(()) => std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?,
    }
    let found = path.symlink_metadata().with_context(|| path.display().to_string())?;
    // SAFETY: asks for a number and cannot fail.
    let user = unsafe { libc::geteuid() };
    if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
        bail!("{} is not a folder that only this user can write", path.display());
    }
    Ok(path.to_owned())
}

/// Writes a file that is either there whole or not at all, however many do it at once.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    let temporary = folder.join(name);
    let written = (|| {
        // One that an earlier process of this number left, or anybody: it is not written into.
        let _ = std::fs::remove_file(&temporary);
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
        file.write_all(bytes)?;
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        drop(file);
        std::fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // The error told below matters more than a file left behind.
        let _ = std::fs::remove_file(&temporary);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_a_private_folder_is_taken() {
        let base = tempfile::tempdir().unwrap();
        let good = base.path().join("good");
        assert_eq!(private(&good).unwrap(), good);
        assert_eq!(private(&good).unwrap(), good);
        std::fs::set_permissions(&good, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(private(&good).is_err());
        let link = base.path().join("link");
        symlink(base.path(), &link).unwrap();
        assert!(private(&link).is_err());
        let foreign = base.path().join("foreign");
        private(&foreign).unwrap();
        match std::os::unix::fs::chown(&foreign, Some(4711), None) {
            Ok(()) => assert!(private(&foreign).is_err()),
            // Only root gives files away; but then the root folder is somebody else's.
            Err(_) => assert!(private(Path::new("/")).is_err()),
        }
    }

    /// Guards: `sudo -E` leaves root the home folder of a user, who may rename what root makes there.
    #[test]
    fn a_folder_below_another_users_is_in_reach() {
        let base = tempfile::tempdir().unwrap();
        let home = base.path().join("home");
        std::fs::create_dir(&home).unwrap();
        if !is_root() {
            assert!(!is_out_of_reach(&home));
            return;
        }
        assert!(is_out_of_reach(&home.join(".cache/none")));
        std::os::unix::fs::chown(&home, Some(4711), None).unwrap();
        assert!(!is_out_of_reach(&home.join(".cache/none")));
        let link = base.path().join("link");
        symlink(&home, &link).unwrap();
        assert!(!is_out_of_reach(&link));
        std::os::unix::fs::chown(&home, Some(0), None).unwrap();
        std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_out_of_reach(&home.join(".cache")));
        std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(is_out_of_reach(&home.join(".cache")));
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("file");
        write_atomically(&path, b"one", 0o644).unwrap();
        write_atomically(&path, b"two", 0o755).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 1);
        assert!(write_atomically(&base.path().join("no/file"), b"", 0o644).is_err());
    }
}
