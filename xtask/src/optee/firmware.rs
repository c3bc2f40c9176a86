//! What the machine starts from: TF-A around an OP-TEE, in one flash image, built from TF-A's source. Linux
//! is not in it: the emulator puts the kernel where TF-A jumps to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::boot::KERNEL_ADDRESS;
use super::fetch::Kit;
use super::lab::Lab;
use crate::limited;
use crate::stamp::Stamp;

/// Where TF-A's first stage looks for the rest, in bytes from the beginning of flash.
const REST: usize = 0x4_0000;
/// It takes some 5 s.
const LIMIT: Duration = Duration::from_secs(240);

/// An OP-TEE that can be booted, and the kits to build for it.
pub(super) struct Firmware {
    /// In names of tests and folders.
    pub(super) name: &'static str,
    /// The flash image.
    pub(super) flash: PathBuf,
    /// What 64-bit trusted applications are built with.
    pub(super) kit: PathBuf,
    /// What 32-bit ones are built with, where there is such a kit.
    pub(super) kit_32: Option<PathBuf>,
    /// Whether it counts calls for gprof.
    pub(super) has_gprof: bool,
    /// Whether Debian has packaged OP-TEE's own tests of this version.
    pub(super) has_tests: bool,
    /// Applications may read the generic timer's counter.
    pub(super) has_timer: bool,
}

impl Firmware {
    /// Around the OP-TEE that Debian has built.
    pub(super) fn packaged(lab: &Lab, kit: &Kit) -> Result<Self> {
        Ok(Self {
            name: "packaged",
            flash: flash(lab, kit, "packaged", &kit.op_tee())?,
            kit: kit.development_kit(),
            kit_32: None,
            has_gprof: false,
            has_tests: true,
            has_timer: false,
        })
    }
}

/// The flash image around the OP-TEE in a folder.
pub(super) fn flash(lab: &Lab, kit: &Kit, name: &str, op_tee: &Path) -> Result<PathBuf> {
    let flash = lab.path("firmware").join(format!("{name}.bin"));
    let stamp = Stamp::of(&flash).word(&kit.versions()?).path(op_tee)?;
    if stamp.is_current() {
        return Ok(flash);
    }
    let built = lab.path("firmware").join(name);
    let mut make = Command::new("make");
    make.arg("-C").arg(&kit.firmware).args(["-j2", "PLAT=qemu", "DEBUG=0", "SPD=opteed"]);
    make.arg(format!("BUILD_BASE={}", built.display()));
    make.args(["CROSS_COMPILE=aarch64-linux-gnu-", "QEMU_USE_GIC_DRIVER=QEMU_GICV3"]);
    for (variable, file) in
        [("BL32", "header"), ("BL32_EXTRA1", "pager"), ("BL32_EXTRA2", "pageable")]
    {
        let file = op_tee.join(format!("tee-{file}_v2.bin"));
        make.arg(format!("{variable}={}", file.display()));
    }
    make.args(["BL32_RAM_LOCATION=tdram", "ARM_LINUX_KERNEL_AS_BL33=1"]);
    make.arg(format!("PRELOADED_BL33_BASE={KERNEL_ADDRESS:#x}")).args(["all", "fip"]);
    fs::create_dir_all(&built)?;
    limited::run(&make, LIMIT, &lab.log(&format!("firmware-{name}")))?;

    let part = |name: &str| {
        let file = built.join("qemu/release").join(name);
        fs::read(&file).with_context(|| file.display().to_string())
    };
    let mut image = part("bl1.bin")?;
    image.resize(REST, 0);
    image.extend(part("fip.bin")?);
    fs::write(&flash, image)?;
    stamp.keep()?;
    Ok(flash)
}
