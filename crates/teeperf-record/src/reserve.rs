//! Room on a disk that is kept back while a recording grows, for names and the recording's end: blocks
//! behind the end of the file (fallocate(2)), which become the file's own as it grows.

use crate::memory::checked;
use crate::room::free;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// See the module.
#[derive(Debug)]
pub(crate) struct Reserve {
    /// Bytes that are kept back.
    bytes: u64,
    /// Up to here the file has blocks; 0: it has none but those that it needs.
    held_to: u64,
    /// Whether the file system can be asked for blocks.
    takes_requests: bool,
}

/// Most bytes kept back: names of some ten thousand functions.
const MOST: u64 = 1 << 20;
/// Least.
const LEAST: u64 = 16 << 10;
/// No more than one part in so many of what is free, or of the longest file that is allowed.
const SHARE: u64 = 8;
/// Blocks are asked for ahead, so many times as much at once as is kept back.
const AHEAD: u64 = 4;

impl Reserve {
    /// For a file that is empty. Nothing is kept back for what is none, such as a device.
    pub(crate) fn of(file: &File) -> Self {
        if !file.metadata().is_ok_and(|about| about.is_file()) {
            return Self { bytes: 0, held_to: 0, takes_requests: false };
        }
        let room = free(file).map_or(MOST, |free| free / SHARE);
        let most = room.min(longest_file() / SHARE);
        Self { bytes: most.clamp(LEAST, MOST), held_to: 0, takes_requests: true }
    }

    /// Whether blocks are held that are to be given back.
    pub(crate) fn is_held(&self) -> bool {
        self.held_to > 0
    }

    /// Makes sure that the file can grow to this length, and by what is kept back.
    pub(crate) fn hold(&mut self, file: &File, length: u64) -> io::Result<()> {
        let end = length.saturating_add(self.bytes);
        if self.bytes == 0 || end <= self.held_to {
            return Ok(());
        }
        if end > longest_file() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if self.takes_requests {
            let ahead = end.saturating_add(self.bytes * AHEAD).min(longest_file());
            match self.request(file, ahead).or_else(|_| self.request(file, end)) {
                Err(error) if is_full(&error) => return Err(error),
                // Not every file system can (Linux's man page names those that do).
                result => self.takes_requests = result.is_ok(),
            }
        }
        if !self.takes_requests && free(file).is_some_and(|free| free < self.bytes) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn request(&mut self, file: &File, end: u64) -> io::Result<()> {
        let (from, length) = (self.held_to, end - self.held_to);
        let (from, length) = (from as libc::off_t, length as libc::off_t);
        // SAFETY: no pointers are involved.
        checked(unsafe {
            libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, from, length)
        })?;
        self.held_to = end;
        Ok(())
    }
}

/// Whether an error says that there is no room.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// `ulimit -f`.
fn longest_file() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the address is that of a limit.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    if result == 0 && limit.rlim_cur != libc::RLIM_INFINITY { limit.rlim_cur } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn blocks_are_there_behind_the_end_until_they_are_given_back() {
        let file = tempfile::tempfile().unwrap();
        let mut reserve = Reserve::of(&file);
        reserve.hold(&file, 5000).unwrap();
        if !reserve.takes_requests {
            eprintln!("skipped: the file system of temporary files keeps nothing back");
            return;
        }
        let blocks = || file.metadata().unwrap().blocks() * 512;
        assert_eq!(file.metadata().unwrap().len(), 0);
        assert!(reserve.is_held() && blocks() >= 5000 + LEAST, "{reserve:?} {}", blocks());
        file.set_len(0).unwrap();
        assert_eq!(blocks(), 0);
    }

    #[test]
    fn what_is_no_file_has_nothing_kept_back() {
        let file = File::options().write(true).open("/dev/null").unwrap();
        let mut reserve = Reserve::of(&file);
        reserve.hold(&file, u64::MAX).unwrap();
        assert!(!reserve.is_held());
    }
}
