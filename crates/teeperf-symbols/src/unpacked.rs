//! Files that were taken out of an archive, by the paths that recordings name them by.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Files that have no name of their own in the file system, so that nothing is left of them when the process ends.
#[derive(Debug, Default)]
pub struct Unpacked {
    files: BTreeMap<PathBuf, File>,
}

impl Unpacked {
    /// Adds what stands for the file at `path`.
    pub fn add(&mut self, path: PathBuf, file: File) {
        self.files.insert(path, file);
    }

    /// How many files there are.
    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// By what path this process opens what stands for the file at `path`.
    pub(crate) fn place(&self, path: &Path) -> Option<PathBuf> {
        let file = self.files.get(path)?;
        Some(format!("/proc/self/fd/{}", file.as_raw_fd()).into())
    }
}
