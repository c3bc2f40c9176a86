//! The trusted applications and their client in `integrations/optee`, built by their own Makefiles with
//! OP-TEE's development kit. What is there and current is not built again: make sees to that.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::fetch::Kit;
use super::lab::Lab;
use crate::commands::root;
use crate::cross::{ARM64_LINUX, Toolchain};
use crate::limited;

/// They take some seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// How trusted applications are built.
pub(super) struct Build<'a> {
    /// In names of folders.
    pub(super) name: String,
    pub(super) kit: &'a Path,
    pub(super) compiler: &'static str,
    /// Variables of the kit's Makefiles, as `CFG_TA_MCOUNT=y`.
    pub(super) variables: Vec<String>,
    /// Further ways to build them, with the names of folders that they are shared in.
    pub(super) others: Vec<(&'static str, Vec<String>)>,
    /// For those in Rust; without, they are left out.
    pub(super) rust: Option<&'a Toolchain>,
}

/// A built application.
pub(super) struct Application {
    /// Signed, as OP-TEE loads it.
    pub(super) signed: PathBuf,
    /// With its symbols.
    pub(super) linked: PathBuf,
}

impl Build<'_> {
    /// Builds the applications below `ta/`, in the order of their names.
    pub(super) fn applications(&self, lab: &Lab) -> Result<Vec<Application>> {
        self.built(lab, &self.name, &self.variables)
    }

    /// Likewise those that are built in another way.
    pub(super) fn other(
        &self,
        lab: &Lab,
        name: &str,
        variables: &[String],
    ) -> Result<Vec<Application>> {
        self.built(lab, &format!("{}-{name}", self.name), variables)
    }

    fn built(&self, lab: &Lab, name: &str, variables: &[String]) -> Result<Vec<Application>> {
        let out = lab.path("applications").join(name);
        let mut make = Command::new("make");
        make.arg("-C").arg(root().join("integrations/optee/ta")).arg("-j2");
        make.arg(format!("O={}", out.display()));
        make.arg(format!("TA_DEV_KIT_DIR={}", self.kit.display()));
        // The one that has what Debian's packages bring.
        make.arg("PYTHON3=/usr/bin/python3").arg(format!("CROSS_COMPILE={}", self.compiler));
        make.args(variables);
        if let Some(toolchain) = self.rust {
            toolchain.set_for(&mut make, ARM64_LINUX)?;
            // For `-Z instrument-mcount`.
            make.arg("RUST=y").env("RUSTC_BOOTSTRAP", "1");
        }
        limited::run(&make, LIMIT, &lab.log(&format!("applications-{name}")))?;
        let mut found = Vec::new();
        for folder in fs::read_dir(&out)? {
            for file in fs::read_dir(folder?.path())? {
                let signed = file?.path();
                if signed.extension().is_some_and(|extension| extension == "ta") {
                    found.push(Application { linked: signed.with_extension("elf"), signed });
                }
            }
        }
        found.sort_by(|a, b| a.signed.cmp(&b.signed));
        Ok(found)
    }
}

/// Builds the client.
pub(super) fn client(lab: &Lab, kit: &Kit) -> Result<PathBuf> {
    let export = lab.path("client-library");
    if !export.is_dir() {
        client_library(kit, &export)?;
    }
    let out = lab.path("applications/client");
    let mut make = Command::new("make");
    make.arg("-C").arg(root().join("integrations/optee/host"));
    make.arg(format!("O={}", out.display())).arg(format!("TEEC_EXPORT={}", export.display()));
    make.arg("CROSS_COMPILE=aarch64-linux-gnu-");
    limited::run(&make, LIMIT, &lab.log("client"))?;
    Ok(out.join("optee-demo"))
}

/// The hostile normal world, which is built with the client.
pub(super) fn hostile(lab: &Lab) -> PathBuf {
    lab.path("applications/client/optee-hostile")
}

/// Headers and library in one folder, from the packages that have one each.
fn client_library(kit: &Kit, export: &Path) -> Result<()> {
    fs::create_dir_all(export.join("lib"))?;
    let library = kit.package("libteec2").join("usr/lib/aarch64-linux-gnu/libteec.so.2");
    fs::metadata(&library).with_context(|| library.display().to_string())?;
    symlink(library, export.join("lib/libteec.so"))?;
    symlink(kit.package("optee-client-dev").join("usr/include"), export.join("include"))?;
    Ok(())
}
