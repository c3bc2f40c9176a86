//! `[build]` of a project's `teeperf.toml`: how its programs are built.

use super::options::Hooks;
use crate::config::{check_sections, files};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::path::Path;

/// The file: a section for each thing that is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    /// How programs are built.
    pub(crate) build: Build,
}

/// `[build]`: as the wrapper's options of the same names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Build {
    /// Patterns of functions that are hooked.
    pub(crate) only: Vec<String>,
    /// Patterns of functions that are not.
    pub(crate) exclude: Vec<String>,
    /// Least number of instructions.
    pub(crate) min_size: u64,
    /// Where hooks are put.
    pub(crate) hooks: Option<Hooks>,
    /// Hook what is left when functions have been inlined.
    pub(crate) after_inlining: bool,
    /// Hook functions of system headers too.
    pub(crate) system_headers: bool,
}

impl Settings {
    /// Those that hold here; where there is no file, those of an empty one.
    pub(crate) fn here() -> Result<Self> {
        let Some(found) = files::project() else { return Ok(Self::default()) };
        if let Some(text) = found.unused() {
            note!("teeperf: {text}");
            return Ok(Self::default());
        }
        Self::read(&found.path, &found.text()?)
    }

    /// What this text says, of a file of this path.
    fn read(path: &Path, text: &str) -> Result<Self> {
        check_sections(path, text)?;
        toml::from_str(text).with_context(|| path.display().to_string())
    }
}

/// Whether what a file says of builds can be understood.
pub(crate) fn check(path: &Path, text: &str) -> Result<()> {
    Settings::read(path, text).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_can_be_said() {
        let text = "[build]\nonly = ['file:src/', \"main\"]\nexclude = []\nmin-size = 10\nhooks = 'source'\nafter-inlining = true\n\
                    system-headers = true\n";
        let read: Settings = toml::from_str(text).unwrap();
        let build = Build {
            only: vec!["file:src/".into(), "main".into()],
            exclude: Vec::new(),
            min_size: 10,
            hooks: Some(Hooks::Source),
            after_inlining: true,
            system_headers: true,
        };
        assert_eq!(read, Settings { build });
        assert_eq!(toml::from_str::<Settings>("").unwrap(), Settings::default());
    }

    #[test]
    fn what_is_not_known_is_said_with_its_line() {
        for text in ["[build]\n\nexcluded = []\n", "[build]\n\nmin-size = -1\n", "#\n#\n[built]\n"]
        {
            let error = format!("{:#}", Settings::read(Path::new("f"), text).unwrap_err());
            assert!(error.contains("line 3") || error.contains("f:3"), "{error}");
        }
    }
}
