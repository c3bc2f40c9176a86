//! The file that a recording goes to: taken by one recorder at a time, and gone again when
//! nothing came of it, unless it was there before.

use crate::memory::checked;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Debug)]
pub(crate) struct OutputFile {
    pub(crate) file: File,
    /// Where it is, if it was made here.
    made: Option<PathBuf>,
}

impl OutputFile {
    /// Makes the file or empties it. [`io::ErrorKind::WouldBlock`]: another recorder writes to it.
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        let (file, made) = match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => (file, Some(path)),
            // Perhaps a link to where nothing is yet.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let mut options = OpenOptions::new();
                (options.write(true).create(true).truncate(false).open(path)?, None)
            }
            Err(error) => return Err(error),
        };
        if file.metadata()?.is_file() {
            lock(&file)?;
            // Not before: it may be another recorder's.
            file.set_len(0)?;
        }
        Ok(Self { file, made })
    }

    /// Where it is, if it was not there before.
    pub(crate) fn made(&self) -> Option<&Path> {
        self.made.as_deref()
    }
}

/// Takes a file as an output of this process alone. [`io::ErrorKind::WouldBlock`]: it is another's.
///
/// Until the file is closed, however this process ends. The command does not get it: what the
/// standard library opens is closed by exec.
pub fn lock(file: &File) -> io::Result<()> {
    // SAFETY: no pointers are involved.
    match checked(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
        // A file system without locks records as well.
        _ => Ok(()),
    }
}

/// Whether a file is some process's output, as far as the system's list of locks tells (proc_locks(5)): to try would keep
/// away whoever begins just then.
pub fn is_locked(path: &Path) -> bool {
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    path.metadata().is_ok_and(|file| file.is_file() && has_lock(&locks, file.dev(), file.ino()))
}

fn has_lock(locks: &str, device: u64, inode: u64) -> bool {
    let file = format!("{:02x}:{:02x}:{inode}", libc::major(device), libc::minor(device));
    locks.lines().any(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&&file[..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_seen_as_long_as_it_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let output = OutputFile::open(path.clone()).unwrap();
        assert!(is_locked(&path));
        drop(output);
        assert!(!is_locked(&path));
        let list = "1: FLOCK  ADVISORY  WRITE 12 08:01:77 0 EOF\n2: POSIX ADVISORY WRITE 12 08:01:78 0 EOF\n";
        assert!(
            has_lock(list, libc::makedev(8, 1), 77) && !has_lock(list, libc::makedev(8, 1), 78)
        );
        assert!(!has_lock("1: FLOCK", 0, 0));
    }

    #[test]
    fn a_file_is_one_recorders_until_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording");
        std::fs::write(&path, "old").unwrap();
        let first = OutputFile::open(path.clone()).unwrap();
        assert_eq!(first.made(), None);
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        std::fs::write(&path, "packets").unwrap();
        let second = OutputFile::open(path.clone()).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(std::fs::read(&path).unwrap(), b"packets");
        drop(first);
        assert!(OutputFile::open(path).is_ok());
    }

    #[test]
    fn what_is_no_file_is_opened_as_it_is() {
        let both = [(); 2].map(|()| OutputFile::open("/dev/null".into()).unwrap());
        assert_eq!(both.map(|file| file.made), [None, None]);
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        OutputFile::open(link).unwrap();
        assert!(target.exists());
    }
}
