//! The folder that the guest shares: what is put there for it, and what it has left there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::optee::lab::emptied;

/// The folder: `ta/` has applications to be installed, `bin/` programs, `run/` scripts, `out/` what they
/// print and how they end.
pub(super) struct Share {
    folder: PathBuf,
}

impl Share {
    /// Empty, whatever a former machine has left there.
    pub(super) fn anew(folder: PathBuf) -> Result<Self> {
        emptied(&folder)?;
        for name in ["ta", "linked", "bin", "run", "out"] {
            fs::create_dir(folder.join(name))?;
        }
        Ok(Self { folder })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Copies a file into one of the folders, or into a further one.
    pub(super) fn put(&self, file: &Path, to: &str) -> Result<()> {
        let name = file.file_name().context("a file has a name")?;
        let to = self.folder.join(to);
        fs::create_dir_all(&to)?;
        let copied = fs::copy(file, to.join(name));
        copied.map(drop).with_context(|| file.display().to_string())
    }

    /// A script that the guest runs.
    pub(super) fn script(&self, name: &str, text: &str) -> Result<()> {
        Ok(fs::write(self.folder.join("run").join(name), text)?)
    }

    /// What came of a script.
    pub(super) fn ran(&self, name: &str) -> Result<Ran> {
        let read = |kind: &str| {
            let bytes = fs::read(self.folder.join("out").join(format!("{name}.{kind}")));
            let bytes = bytes.context("the guest did not run it");
            anyhow::Ok(String::from_utf8_lossy(&bytes?).into_owned())
        };
        let status = read("status")?.trim().to_owned();
        Ok(Ran { folder: self.folder.clone(), text: read("txt")?, status })
    }
}

/// A script that has run.
pub(super) struct Ran {
    /// The shared folder.
    pub(super) folder: PathBuf,
    /// What it printed.
    pub(super) text: String,
    /// Its exit status.
    pub(super) status: String,
}

impl Ran {
    /// Whether it ended well; an error has the end of what it printed.
    pub(super) fn succeeded(&self) -> Result<()> {
        let lines: Vec<&str> = self.text.lines().collect();
        let last = lines[lines.len().saturating_sub(8)..].join("\n");
        ensure!(self.status == "0", "the script ended with {}:\n{last}", self.status);
        Ok(())
    }

    /// What stands behind a word, which only one line begins with.
    pub(super) fn line(&self, word: &str) -> Result<&str> {
        let mut lines =
            self.text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
        let (Some(line), None) = (lines.next(), lines.next()) else {
            bail!("not one line of {word}, but:\n{}", self.text);
        };
        Ok(line)
    }

    /// The lines behind `## word`, up to the next such mark.
    pub(super) fn section(&self, word: &str) -> Result<String> {
        let mut lines = self.text.lines().skip_while(|line| line.strip_prefix("## ") != Some(word));
        lines.next().with_context(|| format!("nothing of {word} in:\n{}", self.text))?;
        Ok(lines
            .take_while(|line| !line.starts_with("## "))
            .map(|line| format!("{line}\n"))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(text: &str) -> Ran {
        Ran { folder: PathBuf::new(), text: text.into(), status: "0".into() }
    }

    #[test]
    fn a_line_is_found_by_its_first_word() {
        let ran = ran("calls a=1 b=x\ncallsign a=2\ntwice a=1\ntwice a=2\n");
        assert_eq!(ran.line("calls").unwrap(), "a=1 b=x");
        assert!(ran.line("twice").is_err() && ran.line("none").is_err());
    }

    #[test]
    fn sections_end_where_the_next_begins() {
        let ran = ran("before\n## one\na\nb\n## two\n");
        assert_eq!(ran.section("one").unwrap(), "a\nb\n");
        assert_eq!(ran.section("two").unwrap(), "");
        assert!(ran.section("three").is_err());
    }
}
