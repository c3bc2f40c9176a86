//! Whether something was built from exactly what is there now: a file beside the result lists what it was
//! made of. Compares sizes and times of files, and words; never what is in the files.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// What a result is made of.
pub(crate) struct Stamp {
    file: PathBuf,
    text: String,
}

impl Stamp {
    /// For a result, which need not be there yet.
    pub(crate) fn of(result: &Path) -> Self {
        let mut file = result.as_os_str().to_owned();
        file.push(".made-of");
        Self { file: file.into(), text: String::new() }
    }

    /// A version, a flag: anything that changes the result.
    pub(crate) fn word(mut self, word: &str) -> Self {
        self.text += word;
        self.text.push('\n');
        self
    }

    /// A file, or all files of a folder.
    pub(crate) fn path(mut self, path: &Path) -> Result<Self> {
        let found = path.metadata().with_context(|| path.display().to_string())?;
        if found.is_dir() {
            let entries: std::io::Result<Vec<_>> = fs::read_dir(path)?.collect();
            let mut paths: Vec<PathBuf> = entries?.iter().map(fs::DirEntry::path).collect();
            paths.sort();
            return paths.iter().try_fold(self, |stamp, path| stamp.path(path));
        }
        let (size, seconds, nanoseconds) = (found.len(), found.mtime(), found.mtime_nsec());
        writeln!(self.text, "{} {size} {seconds}.{nanoseconds:09}", path.display())?;
        Ok(self)
    }

    /// Whether the result was made of this.
    pub(crate) fn is_current(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|text| text == self.text)
    }

    /// Says that it was, once the result is there whole.
    pub(crate) fn keep(&self) -> Result<()> {
        fs::write(&self.file, &self.text).with_context(|| self.file.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_word_or_file_makes_a_result_old() {
        let folder = std::env::temp_dir().join(format!("xtask-stamp-{}", std::process::id()));
        fs::create_dir_all(folder.join("in/deep")).unwrap();
        fs::write(folder.join("in/deep/a"), "1").unwrap();
        let result = folder.join("result");
        let stamp = |word| Stamp::of(&result).word(word).path(&folder.join("in")).unwrap();
        assert!(!stamp("one").is_current());
        stamp("one").keep().unwrap();
        assert!(stamp("one").is_current() && !stamp("two").is_current());
        fs::write(folder.join("in/deep/b"), "").unwrap();
        assert!(!stamp("one").is_current());
        assert!(Stamp::of(&result).path(&folder.join("nowhere")).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
