//! Rust for other processors: Debian's compiler, its standard library for 64-bit Arm, and for any other
//! target a core library made of the same version's sources. Everything but the compiler lies in a
//! folder; what is built once is kept. Another compiler's toolchains are neither used nor changed.

#[path = "../../crates/teeperf/src/sdk/core_library.rs"]
mod core_library;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::commands::run_quietly;
use crate::limited;
use crate::lock;
use crate::mirror;
use crate::packages::{Packages, Unavailable, Wanted};
use crate::tools;

/// Debian's current compiler, beside which its older one may be installed.
const COMPILER: &str = "/usr/bin/rustc";
const PACKAGE: &str = "rustc-web";
/// Its own sysroot, with the standard library for this machine.
const INSTALLED: &str = "/usr";
/// 64-bit Arm under Linux, for which Debian has the standard library built.
pub(crate) const ARM64_LINUX: &str = "aarch64-unknown-linux-gnu";

const STANDARD: &str = "standard-library";
const SOURCES: &str = "rust-sources";
/// Compiling the core library takes some 40 s.
const LIMIT: Duration = Duration::from_secs(300);

/// A compiler and the libraries for it.
pub(crate) struct Toolchain {
    folder: PathBuf,
    packages: Packages,
    version: String,
}

impl Toolchain {
    /// Installs the compiler where it is missing. Libraries are fetched and built when they are asked for.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        tools::install(&[PACKAGE])?;
        let version = tools::version(PACKAGE).context("no version of an installed package")?;
        let needed = env!("CARGO_PKG_RUST_VERSION");
        if minor(&version) < minor(needed) {
            let next = format!("run `apt-get install {PACKAGE}` for a newer one");
            let why = format!("{PACKAGE} is {version}, and {needed} is needed; {next}");
            return Err(Unavailable(why).into());
        }
        // Another version's metadata cannot be read, so each has a folder of its own.
        let folder = std::path::absolute(folder)?.join(version.replace('~', "-"));
        let entries = mirror::own_entries()?;
        let entries = entries.each_ref().map(String::as_str);
        let packages = Packages::open(folder.join("packages"), "arm64", &entries);
        Ok(Self { folder, packages, version })
    }

    /// Fetches what libraries are taken from or built of.
    pub(crate) fn fetch(&self) -> Result<()> {
        self.sysroot_for(ARM64_LINUX)?;
        self.sources().map(drop)
    }

    /// For `RUSTC`, and to be run.
    pub(crate) fn compiler(&self) -> &'static str {
        COMPILER
    }

    /// A folder for `--sysroot` with what a target has: for this machine and [`ARM64_LINUX`] the standard
    /// library, for others `core` and what the compiler calls by itself.
    pub(crate) fn sysroot_for(&self, target: &str) -> Result<PathBuf> {
        if Path::new(INSTALLED).join("lib/rustlib").join(target).is_dir() {
            return Ok(INSTALLED.into());
        }
        let sysroots = self.folder.join("sysroots");
        let _alone = lock::folder(&sysroots)?;
        let sysroot = sysroots.join(target);
        if sysroot.is_dir() {
            return Ok(sysroot);
        }
        let new = sysroots.join(format!("{target}.new"));
        if new.is_dir() {
            fs::remove_dir_all(&new)?;
        }
        let libraries = new.join("lib/rustlib").join(target).join("lib");
        fs::create_dir_all(&libraries)?;
        if target == ARM64_LINUX {
            self.link_standard_library(target, &libraries)?;
        } else {
            self.build_core(target, &new)?;
        }
        fs::rename(&new, &sysroot).with_context(|| sysroot.display().to_string())?;
        Ok(sysroot)
    }

    /// Has a command build for a target, if it is cargo or runs it.
    pub(crate) fn set_for(&self, command: &mut Command, target: &str) -> Result<()> {
        command.env("RUSTC", COMPILER);
        // With a target named, these are not for what runs while it is built. A space in the path is no end.
        let flags = format!("--sysroot={}", self.sysroot_for(target)?.display());
        command.env("CARGO_ENCODED_RUSTFLAGS", flags);
        // Of a toolchain manager that has started us: it would have its own compiler taken.
        for variable in ["RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
            command.env_remove(variable);
        }
        Ok(())
    }

    /// Whether the compiler can put in calls of `mcount`.
    pub(crate) fn has_mcount(&self) -> bool {
        let mut ask = Command::new(COMPILER);
        let told = run_quietly(ask.args(["-Z", "help"]).env("RUSTC_BOOTSTRAP", "1"));
        told.is_ok_and(|text| text.contains("instrument-mcount"))
    }

    fn link_standard_library(&self, target: &str, libraries: &Path) -> Result<()> {
        let package = format!("libstd-rust-web-dev={}", self.version);
        self.packages.unpack(&[Wanted { name: STANDARD, package: &package, only: None }])?;
        let built = self.packages.folder(STANDARD).join("usr/lib/rustlib").join(target).join("lib");
        if !built.is_dir() {
            let why = format!("Debian's {package} has no standard library for {target}");
            return Err(Unavailable(why).into());
        }
        for entry in fs::read_dir(&built).with_context(|| built.display().to_string())? {
            let file = entry?;
            symlink(file.path(), libraries.join(file.file_name()))?;
        }
        Ok(())
    }

    fn build_core(&self, target: &str, sysroot: &Path) -> Result<()> {
        let library = self.sources()?;
        println!("building Rust's core library for {target}");
        let commands = core_library::commands(COMPILER.as_ref(), &library, target, sysroot)?;
        for (step, command) in ["core", "builtins"].iter().zip(&commands) {
            limited::run(command, LIMIT, &self.folder.join(format!("{step}-{target}.log")))?;
        }
        Ok(())
    }

    /// The folder `library` of the compiler's sources.
    fn sources(&self) -> Result<PathBuf> {
        let package = format!("rust-web-src={}", self.version);
        let only = Some("./usr/src/*/library/*");
        self.packages.unpack(&[Wanted { name: SOURCES, package: &package, only }])?;
        let folder = self.packages.folder(SOURCES).join("usr/src");
        let version = fs::read_dir(&folder)?.next().context("no sources of Rust's libraries")?;
        let library = version?.path().join("library");
        if !core_library::are_sources(&library) {
            let why = format!("Debian's {package} has not the sources of Rust's core library");
            return Err(Unavailable(why).into());
        }
        Ok(library)
    }
}

/// The middle number of a version.
fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(minor("1.96.0+dfsg1-1~deb12u2"), Some(96));
        assert_eq!(minor(env!("CARGO_PKG_RUST_VERSION")).map(|minor| minor > 80), Some(true));
        assert!(minor("1.9.0") < minor("1.10") && minor("strange") < minor("1.0"));
    }
}
