//! What is wanted of a build: of which crates which functions. It stands in a folder that is named after it, beside the names
//! by which this command is called, so that cargo, which knows crates' compiler by its path, builds again what another
//! plan built.

use crate::bundle;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use teeperf_select::Selection;

/// What cargo is to call in the compiler's place.
pub(crate) const COMPILER: &str = "teeperf-rustc";
/// What the compiler is to call to link.
pub(super) const LINKER: &str = "teeperf-cc";
const FILE: &str = "plan";
const CRATE: &str = "crate ";
const AFTER_INLINING: &str = "after-inlining";

/// Which functions get hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Crates, as the compiler calls them.
    pub(crate) crates: BTreeSet<String>,
    /// Which of their functions.
    pub(crate) selection: Selection,
    /// Hooks in what is left when functions have been inlined.
    pub(crate) after_inlining: bool,
}

impl Plan {
    /// Whether this is one of the crates.
    pub(super) fn has(&self, name: &str) -> bool {
        self.crates.contains(name)
    }

    /// The folder of this plan, made if it is not there.
    pub(crate) fn folder(&self) -> Result<PathBuf> {
        let own = std::env::current_exe().context("where this command stands")?;
        let text = self.print();
        let key = [text.as_bytes(), own.as_os_str().as_bytes()].concat();
        let name = format!("rust-{:032x}", bundle::fingerprint(&key));
        let folder = bundle::folder()?.join(name);
        std::fs::create_dir_all(&folder)?;
        bundle::write_atomically(&folder.join(FILE), text.as_bytes(), 0o600)?;
        for name in [COMPILER, LINKER] {
            match std::os::unix::fs::symlink(&own, folder.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(error)
                        .with_context(|| format!("cannot make {name} in {}", folder.display()));
                }
                _ => {}
            }
        }
        Ok(folder)
    }

    fn print(&self) -> String {
        let mut text: String = self.crates.iter().map(|name| format!("{CRATE}{name}\n")).collect();
        if self.after_inlining {
            text += AFTER_INLINING;
            text.push('\n');
        }
        text + &self.selection.to_string()
    }

    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        Ok(Self {
            crates: text
                .lines()
                .filter_map(|line| line.strip_prefix(CRATE))
                .map(str::to_owned)
                .collect(),
            selection: text.parse()?,
            after_inlining: text.lines().any(|line| line == AFTER_INLINING),
        })
    }
}

/// Whether this command was called as a compiler of Rust; then the folder of the plan.
pub(crate) fn folder_of(name: &Path) -> Option<PathBuf> {
    let folder = name.parent().filter(|_| name.file_name() == Some(OsStr::new(COMPILER)))?;
    folder.join(FILE).is_file().then(|| folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_from_its_lines() {
        let plan = Plan {
            crates: ["a".into(), "b_c".into()].into(),
            selection: "only a::*\nexclude file:x.rs\n".parse().unwrap(),
            after_inlining: true,
        };
        assert_eq!(Plan::parse(&plan.print()).unwrap(), plan);
        assert_eq!(Plan::parse("").unwrap(), Plan::default());
    }
}
