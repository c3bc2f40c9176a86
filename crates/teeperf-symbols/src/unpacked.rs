//! Files that were taken out of an archive, by the paths that recordings name them by.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Files that have no name of their own in the file system, so that nothing is left of them when the process ends.
#[derive(Debug, Default)]
pub struct Unpacked {
    files: BTreeMap<PathBuf, File>,
    /// Paths of debug files, by the build-id that they are of.
    debug_files: BTreeMap<Vec<u8>, PathBuf>,
}

impl Unpacked {
    /// Adds what stands for the file at `path`.
    pub fn add(&mut self, path: PathBuf, file: File) {
        self.files.insert(path, file);
    }

    /// Adds the debug file of a build. It is found wherever it lay when it was packed.
    pub fn add_debug_file(&mut self, build_id: Vec<u8>, path: PathBuf, file: File) {
        self.debug_files.insert(build_id, path.clone());
        self.add(path, file);
    }

    /// The path that the debug file of a build had.
    pub(crate) fn debug_file(&self, build_id: &[u8]) -> Option<&Path> {
        self.debug_files.get(build_id).map(PathBuf::as_path)
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
