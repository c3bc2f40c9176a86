//! The workflows of the forge: that they are what its schema has, run nothing but xtask, and take others' steps by their hash alone.
//! What only the forge can do is told in docs/releasing.md.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::commands::{root, run_quietly, target, works};
use crate::steps::Outcome;

/// Checks all there are; without the schema's checker only as far as lines tell, which is an error where `is_complete`.
pub(crate) fn check(is_complete: bool) -> Result<Outcome> {
    let folder = root().join(".github/workflows");
    let entries: std::io::Result<Vec<_>> = fs::read_dir(&folder)?.collect();
    let files: Vec<PathBuf> = entries?.iter().map(fs::DirEntry::path).collect();
    ensure!(!files.is_empty(), "{} is empty", folder.display());
    for file in &files {
        if let Some(wrong) = wrong(&fs::read_to_string(file)?) {
            bail!("{}: {wrong}", file.display());
        }
    }
    let Some(checker) = checker()? else {
        let why = "check-jsonschema is not installed (pip install check-jsonschema): pinned steps and permissions alone were looked at";
        ensure!(!is_complete, "{why}");
        return Ok(Outcome::Skipped(why.into()));
    };
    let mut schema = Command::new(checker);
    run_quietly(schema.args(["--builtin-schema", "vendor.github-workflows"]).args(&files))?;
    Ok(Outcome::Passed)
}

/// Where the checker is: in PATH, or in an environment of Python's below the target folder.
fn checker() -> Result<Option<PathBuf>> {
    if works("check-jsonschema", &["--version"]) {
        return Ok(Some("check-jsonschema".into()));
    }
    let own = target()?.join("venv/bin/check-jsonschema");
    Ok(own.is_file().then_some(own))
}

/// What is wrong with a workflow, as far as lines tell.
fn wrong(text: &str) -> Option<String> {
    if !text.lines().any(|line| line == "permissions: {}" || line == "permissions:") {
        return Some("it does not say at its top which permissions it has".into());
    }
    for (number, line) in text.lines().enumerate() {
        let Some(uses) = line.trim().trim_start_matches("- ").strip_prefix("uses: ") else {
            continue;
        };
        let hash = uses
            .split('@')
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next())
            .unwrap_or_default();
        let is_hash = hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hash || !uses.contains(" # v") {
            return Some(format!(
                "line {}: {uses}: a step of others is named by its hash, with its version behind #",
                number + 1
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_others_are_pinned() {
        let hash = "0123456789abcdef0123456789abcdef01234567";
        let good = format!("permissions: {{}}\n  - uses: actions/checkout@{hash} # v4.2.2\n");
        assert_eq!(wrong(&good), None);
        assert!(wrong(&good.replace("permissions", "x")).unwrap().contains("permissions"));
        assert!(wrong(&good.replace(hash, "v4")).unwrap().contains("line 2"));
        assert!(wrong(&good.replace(" # v4.2.2", "")).is_some());
    }

    #[test]
    fn the_workflows_that_there_are() {
        for entry in fs::read_dir(root().join(".github/workflows")).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(wrong(&fs::read_to_string(&path).unwrap()), None, "{}", path.display());
        }
    }
}
