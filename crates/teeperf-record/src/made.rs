//! Files that go again unless they are to stay.

use std::path::PathBuf;

/// A file that was made, if one was: it is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Made(Option<PathBuf>);

impl Made {
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self(path)
    }

    pub(crate) fn is_to_stay(&mut self) {
        self.0 = None;
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Where that fails, it stays; nobody is worse off.
            let _ = std::fs::remove_file(path);
        }
    }
}
