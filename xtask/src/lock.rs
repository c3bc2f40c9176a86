//! Two runs of `cargo xtask` at once share folders: one of them fills a folder, the other waits.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use anyhow::{Context, Result};

/// Makes the folder where it is missing, and waits until no other process holds its lock. Dropping
/// the returned file ends the lock.
pub(crate) fn folder(folder: &Path) -> Result<File> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let file = folder.join("lock");
    let lock = File::create(&file).with_context(|| file.display().to_string())?;
    // SAFETY: the descriptor is open, and the call touches no memory.
    while unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) } != 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error).with_context(|| format!("cannot lock {}", file.display()));
        }
    }
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_at_a_time_and_ends_with_its_file() {
        let folder = std::env::temp_dir().join(format!("teeperf-lock-{}", std::process::id()));
        let is_free = || {
            let other = File::create(folder.join("lock")).unwrap();
            // SAFETY: the descriptor is open, and the call touches no memory.
            unsafe { libc::flock(other.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
        };
        let first = super::folder(&folder).unwrap();
        assert!(!is_free());
        drop(first);
        assert!(is_free());
        drop(super::folder(&folder).unwrap());
        fs::remove_dir_all(&folder).unwrap();
    }
}
