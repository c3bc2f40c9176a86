//! Libraries that programs of other users have preloaded: root records these as well, and they cannot read what lies
//! in root's own cache folder.

use super::store::{is_root, trusted, write_atomically};
use std::ffi::{CString, OsStr};
use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Folders that are root's and that everybody can read, of which the first is taken that can be written to.
const SHARED: [&str; 2] = ["/var/cache", "/run"];

/// Where everybody can read this library, if it is root that records: there, or in a copy. Else, or where no copy can
/// be made, the library itself.
pub(crate) fn for_all_users(library: PathBuf) -> PathBuf {
    if !is_root() || is_open(&library) {
        return library;
    }
    copy(&library, SHARED.map(Path::new)).unwrap_or(library)
}

/// Whether everybody can read a file, and pass through all folders above it.
fn is_open(file: &Path) -> bool {
    let mode = |path: &Path| path.metadata().map_or(0, |about| about.mode());
    mode(file) & 0o4 != 0 && file.ancestors().skip(1).all(|folder| mode(folder) & 0o1 != 0)
}

/// A copy below one of these folders, in a folder of the same name as the library's own, which stands for its content.
fn copy<'a>(library: &Path, shared: impl IntoIterator<Item = &'a Path>) -> Option<PathBuf> {
    let version = library.parent().and_then(Path::file_name)?;
    let name = library.file_name()?;
    shared.into_iter().find_map(|shared| copy_below(shared, library, version, name))
}

fn copy_below(shared: &Path, library: &Path, version: &OsStr, name: &OsStr) -> Option<PathBuf> {
    let folder = opened(trusted(&shared.join("teeperf"), 0o755).ok()?)?;
    let path = opened(trusted(&folder.join(version), 0o755).ok()?)?.join(name);
    let content = std::fs::read(library).ok()?;
    if !is_open(&path) || std::fs::read(&path).ok()? != content {
        write_atomically(&path, &content, 0o755).ok()?;
    }
    (is_open(&path) && may_be_executed(&path)).then_some(path)
}

/// Whether code of this file's file system may be executed (mount(8), "noexec").
fn may_be_executed(file: &Path) -> bool {
    let Ok(path) = CString::new(file.as_os_str().as_bytes()) else { return false };
    // SAFETY: numbers alone, of which 0 is one.
    let mut about: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a 0, and the address is that of a statvfs.
    let result = unsafe { libc::statvfs(path.as_ptr(), &raw mut about) };
    result == 0 && about.f_flag & libc::ST_NOEXEC == 0
}

/// Has everybody pass through a folder of ours, and read it.
fn opened(folder: PathBuf) -> Option<PathBuf> {
    let mode = folder.metadata().ok()?.mode();
    if mode & 0o555 != 0o555 {
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).ok()?;
    }
    Some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// A library in a folder that its user alone can pass through, and one that everybody can.
    fn library() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let base = tempfile::tempdir().unwrap();
        set_mode(base.path(), 0o755);
        let (own, shared) = (base.path().join("own"), base.path().join("shared"));
        std::fs::create_dir_all(own.join("v1")).unwrap();
        std::fs::create_dir(&shared).unwrap();
        let library = own.join("v1/lib.so");
        std::fs::write(&library, "content").unwrap();
        set_mode(&own, 0o700);
        (base, library, shared)
    }

    #[test]
    fn a_copy_is_one_that_everybody_can_read() {
        let (_base, library, shared) = library();
        assert!(!is_open(&library));
        let copy = |folders: &[&Path]| copy(&library, folders.iter().copied());
        let copied = copy(&[Path::new("/none"), &shared]).unwrap();
        assert_eq!(copied, shared.join("teeperf/v1/lib.so"));
        assert_eq!(std::fs::read(&copied).unwrap(), b"content");
        assert!(is_open(&copied));
        // As a machine that failed might leave it.
        std::fs::write(&copied, "tnetnoc").unwrap();
        assert_eq!(copy(&[&shared]), Some(copied.clone()));
        assert_eq!(std::fs::read(&copied).unwrap(), b"content");
        assert_eq!(copy(&[&shared]), Some(copied.clone()));
        // As a recorder under a narrow umask might leave it.
        set_mode(&copied, 0o700);
        set_mode(&shared.join("teeperf"), 0o700);
        assert_eq!(copy(&[&shared]), Some(copied.clone()));
        assert!(is_open(&copied));
        assert_eq!(copy(&[]), None);
    }

    /// Guards: what lies in a folder that another user may write to goes into no program.
    #[test]
    fn a_folder_of_others_is_not_taken() {
        let (_base, library, shared) = library();
        std::fs::create_dir(shared.join("teeperf")).unwrap();
        set_mode(&shared.join("teeperf"), 0o777);
        assert_eq!(copy(&library, [&*shared]), None);
    }
}
