//! Where everything lies: `$TEEPERF_OPTEE_CACHE`, else `optee` in cargo's target folder. Nothing else is
//! written, and removing it makes the next run begin anew.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::commands;

/// Variable with the folder that is kept from run to run.
const CACHE: &str = "TEEPERF_OPTEE_CACHE";

/// The folder.
pub(crate) struct Lab {
    cache: PathBuf,
}

impl Lab {
    /// Makes it where it is not there yet.
    pub(crate) fn open() -> Result<Self> {
        let cache = match std::env::var_os(CACHE).filter(|value| !value.is_empty()) {
            Some(folder) => std::path::absolute(folder)?,
            None => commands::target()?.join("optee"),
        };
        let lab = Self { cache };
        fs::create_dir_all(lab.log("").parent().context("a log lies in a folder")?)
            .with_context(|| format!("{}: set {CACHE} to another folder", lab.cache.display()))?;
        Ok(lab)
    }

    /// Something in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.cache.join(name)
    }

    /// Where a program's output goes.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.cache.join("logs").join(format!("{name}.log"))
    }
}

/// A new folder, where an old one may be.
pub(super) fn emptied(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}
