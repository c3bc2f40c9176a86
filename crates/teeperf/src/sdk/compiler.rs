//! The Rust compiler that is installed, and whether it can compile for a target.

use super::compile;
use super::core_library;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiler and its libraries.
pub(super) struct Compiler {
    name: OsString,
    sysroot: PathBuf,
    /// The compiler's own, where there may be sources.
    installed: PathBuf,
}

impl Compiler {
    /// `RUSTC`, else `rustc`.
    pub(super) fn find(sysroot: Option<&Path>) -> Result<Self> {
        let name = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let shown = name.to_string_lossy().into_owned();
        let told = Command::new(&name).args(["--print", "sysroot"]).output().with_context(|| {
            format!("cannot run {shown}: install Rust (https://rustup.rs), or set RUSTC to its compiler")
        })?;
        if !told.status.success() {
            bail!("{shown} does not work: {}", String::from_utf8_lossy(&told.stderr).trim());
        }
        let installed = PathBuf::from(String::from_utf8_lossy(&told.stdout).trim());
        let sysroot = match sysroot {
            Some(folder) => std::path::absolute(folder)?,
            None => installed.clone(),
        };
        Ok(Self { name, sysroot, installed })
    }

    /// Its version, as it says it.
    pub(super) fn version(&self) -> Result<String> {
        let told = Command::new(&self.name).arg("--version").output()?;
        Ok(String::from_utf8_lossy(&told.stdout).trim().to_owned())
    }

    /// One of these targets, and a sysroot with the core library for it: an installed one, or made in `work`
    /// of the sources of Rust's libraries.
    pub(super) fn core_for(
        &self,
        triples: &[&'static str],
        work: &Path,
    ) -> Result<(&'static str, PathBuf)> {
        let mut triples_there = triples.iter().filter(|triple| has_core(&self.sysroot, triple));
        if let Some(&triple) = triples_there.next() {
            return Ok((triple, self.sysroot.clone()));
        }
        let Some(&triple) = triples.first() else { bail!("no target is known") };
        let name = self.name.to_string_lossy();
        let roots = [&self.sysroot, &self.installed];
        let sources = roots.map(|root| root.join("lib/rustlib/src/rust/library"));
        let Some(sources) = sources.iter().find(|sources| core_library::are_sources(sources))
        else {
            bail!(
                "{name} has no core library for {triple}: run `rustup target add {triple}`, or give it the \
                 sources of Rust's libraries (`rustup component add rust-src`; Debian's rustc-web: \
                 `apt install rust-web-src`)"
            )
        };
        note!("compiling Rust's core library for {triple}, which takes half a minute");
        let sysroot = work.join("sysroot");
        for mut command in core_library::commands(&self.name, sources, triple, &sysroot)? {
            compile::run(&mut command).map_err(anyhow::Error::msg).with_context(|| {
                format!("{name} cannot compile its core library: run `rustup target add {triple}`")
            })?;
        }
        Ok((triple, sysroot))
    }
}

fn has_core(sysroot: &Path, triple: &str) -> bool {
    let folder = sysroot.join("lib/rustlib").join(triple).join("lib");
    std::fs::read_dir(folder).is_ok_and(|mut entries| {
        entries.any(|entry| {
            entry.is_ok_and(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name.starts_with("libcore") && name.ends_with(".rlib")
            })
        })
    })
}
