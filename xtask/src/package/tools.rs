//! cargo's tools for releases: where they are installed, or below the target folder, in a place of their own.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::commands::{run, works};

const TOOLS: [(&str, &str); 3] =
    [("deb", "cargo-deb"), ("cyclonedx", "cargo-cyclonedx"), ("auditable", "cargo-auditable")];

/// Has those in `folder` be found, and installs there what is missing, if that is wanted.
pub(super) fn find(folder: &Path, installs: bool) -> Result<()> {
    let root = folder.join("tools");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(root.join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders)?;
    // SAFETY: nothing else runs in this process yet.
    unsafe { std::env::set_var("PATH", path) };
    for (_, package) in TOOLS.iter().filter(|(name, _)| installs && !is_there(name)) {
        let mut install = Command::new("cargo");
        install.args(["install", "--quiet", "--locked", "--root"]).arg(&root);
        run(install.arg("--target-dir").arg(root.join("target")).arg(package))?;
    }
    Ok(())
}

/// Whether `cargo NAME` is there.
pub(super) fn is_there(name: &str) -> bool {
    // `cargo auditable` has no options of its own, but its program answers.
    works("cargo", &[name, "--version"])
        || works(&format!("cargo-{name}"), &[name, "--version"])
        || works(&format!("cargo-{name}"), &["--version"])
}
