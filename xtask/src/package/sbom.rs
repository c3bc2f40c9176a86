//! The list of what is in the command (SBOM), in CycloneDX's form: made by cargo-cyclonedx, and held against the crates that cargo
//! builds the command of.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::build::Built;
use super::{Release, tools};
use crate::commands::run_quietly;
use crate::steps::Outcome;

pub(super) fn make(release: &Release, built: &Built) -> Result<Outcome> {
    if !tools::is_there("cyclonedx") {
        return release.without("cargo-cyclonedx");
    }
    let name = format!("{}.cdx", built.name());
    let mut list = Command::new("cargo");
    list.args([
        "cyclonedx",
        "--manifest-path",
        "crates/teeperf/Cargo.toml",
        "--format",
        "json",
        "--spec-version",
        "1.5",
    ]);
    list.args(["--no-build-deps", "--target", &built.triple, "--override-filename", &name]);
    run_quietly(built.prepared(&mut list))?;
    let written = built.sources.join("crates/teeperf").join(format!("{name}.json"));
    let sbom: Value = serde_json::from_slice(
        &fs::read(&written).with_context(|| written.display().to_string())?,
    )?;
    let path = release.dist.join(format!("{name}.json"));
    fs::copy(&written, path)?;

    let mut tree = Command::new("cargo");
    tree.args([
        "tree",
        "--package",
        "teeperf",
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "none",
        "--locked",
    ]);
    tree.args(["--target", &built.triple, "--format", "{p}"]);
    let built_of = crates(&run_quietly(built.prepared(&mut tree))?);
    ensure!(built_of.len() > 20, "cargo tree names {} crates", built_of.len());
    let missing: Vec<_> = built_of.difference(&listed(&sbom)).cloned().collect();
    ensure!(missing.is_empty(), "it does not list {}", missing.join(", "));
    println!("{} crates are in it, and listed", built_of.len());
    Ok(Outcome::Passed)
}

/// `name version` of lines such as `serde v1.0.0 (/a/folder)`.
fn crates(tree: &str) -> BTreeSet<String> {
    let lines = tree.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?))
    });
    lines.collect()
}

/// Those that the list has, and what it is of.
fn listed(sbom: &Value) -> BTreeSet<String> {
    let components = sbom["components"].as_array().into_iter().flatten();
    let all = components.chain(std::iter::once(&sbom["metadata"]["component"]));
    let named = all
        .filter_map(|one| Some(format!("{} {}", one["name"].as_str()?, one["version"].as_str()?)));
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_held_against_what_is_listed() {
        let tree = "teeperf v0.1.0 (/x)\nserde v1.0.2\nserde v1.0.2 (*)\n\n";
        let built = crates(tree);
        assert_eq!(built, ["serde 1.0.2", "teeperf 0.1.0"].map(String::from).into());
        let sbom = serde_json::json!({
            "metadata": {"component": {"name": "teeperf", "version": "0.1.0"}},
            "components": [{"name": "serde", "version": "1.0.2"}],
        });
        assert_eq!(listed(&sbom), built);
        assert!(listed(&Value::Null).is_empty());
    }
}
