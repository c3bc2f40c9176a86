//! Which sources may be shown to others, and what is said of those that were and were not.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use teeperf_edit::pack::Packed;
use teeperf_symbols::Shown;
use teeperf_view::printable;

/// What is said where some are not. It names no folder: the program chose that, too.
pub(super) const HINT: &str = "the program says which files its sources are, and may name any; next, for folders with sources that \
                               you want shown: --sources-from DIR";
/// Most folders that are told of.
const MOST_TOLD: usize = 20;

/// Those of the project that the current folder is in, and of these folders.
pub(super) fn shown(folders: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Shown> {
    let mut shown = Shown::default();
    for folder in folders {
        let folder = folder.as_ref();
        let added = shown.add(folder);
        added.with_context(|| format!("cannot take sources from {}", folder.display()))?;
    }
    if let Ok(here) = std::env::current_dir() {
        // A folder that is no project's has none.
        shown.add_project(&here);
    }
    Ok(shown)
}

/// Says which sources were packed, which were not, and why, by their folders.
pub(super) fn tell(packed: &Packed) {
    list(packed.sources.iter().map(|path| (path, "")), "packed");
    list(packed.left_out.iter().map(|(path, why)| (path, &**why)), "not packed");
    let outside = teeperf_symbols::Refusal::Outside.to_string();
    if packed.left_out.iter().any(|(_, why)| *why == outside) {
        note!("teeperf: {HINT}");
    }
}

fn list<'a>(files: impl Iterator<Item = (&'a PathBuf, &'a str)>, what: &str) {
    let mut folders: BTreeMap<(&Path, &str), Vec<&Path>> = BTreeMap::new();
    for (path, why) in files {
        let folder = path.parent().unwrap_or(Path::new("/"));
        folders.entry((folder, why)).or_default().push(path);
    }
    for ((folder, why), files) in folders.iter().take(MOST_TOLD) {
        let (place, count) = match &files[..] {
            [one] => (one.display().to_string(), String::new()),
            several => (folder.display().to_string(), format!(" ({} sources)", several.len())),
        };
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        note!("teeperf: {what}: {}{count}{}", printable(&place), printable(&why));
    }
    if let Some(more) = folders.len().checked_sub(MOST_TOLD).filter(|&more| more > 0) {
        note!("teeperf: {what}: sources of {more} more folders, which the archive's manifest has");
    }
}
