//! Which of Debian's packages make the emulated machine: kernel, firmware's source, OP-TEE with its
//! development kit, client, tests, and the libraries that they need. Fetched once, unpacked, and not run here.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::lab::Lab;
use crate::packages::{Packages, Unavailable, Wanted};

/// OP-TEE and what runs in Linux beside it come from one release; the kernel from one in which it is a
/// plain image.
const ENTRIES: [&str; 3] = ["deb trixie", "deb bookworm", "deb-src trixie"];
const KERNEL: &str = "kernel";
const FIRMWARE: &str = "arm-trusted-firmware";
const ZLIB: &str = "zlib";
/// The platform of OP-TEE's that QEMU's machine `virt` is.
const PLATFORM: &str = "vexpress-qemu_armv8a";

const PACKAGES: [&str; 14] = [
    "busybox-static",
    "libc6",
    "libgcc-s1",
    "libssl3t64",
    "zlib1g",
    "libzstd1",
    "libteec2",
    "libckteec0t64",
    "libteeacl0.1.0t64",
    "tee-supplicant",
    "optee-client-dev",
    "optee-os",
    "optee-os-dev",
    "optee-test-qemu",
];

/// The unpacked packages, and what runs them.
pub(super) struct Kit {
    packages: Packages,
    pub(super) emulator: PathBuf,
    /// Sources of TF-A.
    pub(super) firmware: PathBuf,
}

/// Fetches what is missing, but for the emulator.
pub(super) fn fetch(lab: &Lab, emulator: PathBuf) -> Result<Kit> {
    let packages = open(lab);
    let mut wanted: Vec<Wanted<'_>> = PACKAGES.map(Wanted::whole).into();
    let kernel;
    if !packages.has(KERNEL) {
        kernel = kernel_package(&packages.show("linux-image-arm64/bookworm")?)?;
        wanted.push(Wanted { name: KERNEL, package: &kernel, only: None });
    }
    packages.unpack(&wanted)?;
    let firmware = packages.source(FIRMWARE, "arm-trusted-firmware/trixie")?;
    Ok(Kit { packages, emulator, firmware })
}

/// Fetches the sources of the library that one of the applications is built with.
pub(super) fn zlib(lab: &Lab) -> Result<PathBuf> {
    open(lab).source(ZLIB, "zlib/trixie")
}

/// Where they are, if they could be had.
pub(super) fn zlib_folder(lab: &Lab) -> PathBuf {
    open(lab).folder(ZLIB)
}

fn open(lab: &Lab) -> Packages {
    Packages::open(lab.path("packages"), "arm64", &ENTRIES)
}

impl Kit {
    /// Where a package's files are.
    pub(super) fn package(&self, name: &str) -> PathBuf {
        self.packages.folder(name)
    }

    /// All versions, for what is built from several packages.
    pub(super) fn versions(&self) -> Result<String> {
        let names = PACKAGES.iter().chain([&KERNEL, &FIRMWARE]);
        let versions: Result<Vec<String>> = names.map(|name| self.packages.version(name)).collect();
        Ok(versions?.join(" "))
    }

    /// The packaged OP-TEE: three binary files.
    pub(super) fn op_tee(&self) -> PathBuf {
        self.package("optee-os").join("usr/lib/optee").join(PLATFORM)
    }

    /// The packaged kit that trusted applications are built with.
    pub(super) fn development_kit(&self) -> PathBuf {
        self.package("optee-os-dev").join("usr/lib/optee-os-dev").join(PLATFORM)
    }

    /// Folder of the kernel's modules, and the kernel's version, which is its name.
    pub(super) fn modules(&self) -> Result<(PathBuf, String)> {
        for place in ["lib/modules", "usr/lib/modules"] {
            let folder = self.package(KERNEL).join(place);
            if let Some(version) = fs::read_dir(&folder).ok().and_then(|mut all| all.next()) {
                let name = version?.file_name().to_string_lossy().into_owned();
                return Ok((folder.join(&name), name));
            }
        }
        bail!("the package of the kernel has no modules")
    }

    /// The kernel itself.
    pub(super) fn kernel(&self) -> Result<PathBuf> {
        let (_, version) = self.modules()?;
        Ok(self.package(KERNEL).join("boot").join(format!("vmlinuz-{version}")))
    }
}

/// The package of the kernel, of which another that never changes its name says that it needs it.
fn kernel_package(shown: &str) -> Result<String> {
    let depends = shown.lines().find_map(|line| line.strip_prefix("Depends: "));
    let mut names = depends.unwrap_or_default().split([',', ' ']);
    let name = names.find(|name| name.starts_with("linux-image-"));
    let why = || Unavailable("the mirror's lists name no kernel for arm64".into());
    name.map(str::to_owned).with_context(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_what_its_name_depends_on() {
        let shown = "Package: linux-image-arm64\nVersion: 6.1.1-1\n\
                     Depends: linux-image-6.1.0-1-arm64 (= 6.1.1-1)\n";
        assert_eq!(kernel_package(shown).unwrap(), "linux-image-6.1.0-1-arm64");
        assert!(kernel_package("").unwrap_err().is::<Unavailable>());
    }
}
