//! The emulated machine: two processors, a secure world, a folder of this machine, and two consoles whose
//! output is kept. It runs what the folder says and switches itself off; one that does not is ended.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::lab::Lab;
use crate::commands::run_quietly;
use crate::limited;

/// Where TF-A is told to find Linux, and where the emulator puts it.
pub(super) const KERNEL_ADDRESS: u64 = 0x6000_0000;
const INITRAMFS_ADDRESS: u64 = 0x4800_0000;
/// One boot takes 2 s.
const LIMIT: Duration = Duration::from_secs(120);

/// What is booted.
pub(super) struct Machine<'a> {
    pub(super) emulator: &'a Path,
    pub(super) flash: &'a Path,
    pub(super) kernel: &'a Path,
    pub(super) initramfs: &'a Path,
    /// The folder that the guest copies to `/share`.
    pub(super) share: &'a Path,
    /// How long its scripts may take.
    pub(super) scripts: Duration,
}

/// What both worlds have printed.
pub(super) struct Consoles {
    pub(super) normal: String,
    pub(super) secure: String,
}

impl Machine<'_> {
    /// Runs it until it switches itself off.
    pub(super) fn run(&self, lab: &Lab, name: &str) -> Result<Consoles> {
        let tree = self.device_tree(lab, name)?;
        let (normal, secure) =
            (lab.log(&format!("{name}-console")), lab.log(&format!("{name}-secure-console")));
        for file in [&normal, &secure] {
            // Of an earlier run.
            let _ = fs::remove_file(file);
        }
        // A thread of the guest that waits for another's writes sees none while the emulator has to wait for a
        // processor. Who may not go before others goes as they do.
        let mut command = Command::new("nice");
        command.args(["-n", "-10"]).arg(self.emulator);
        command.args(hardware("")).args(["-accel", "tcg,thread=multi"]);
        command.args(["-monitor", "none", "-no-reboot", "-bios"]).arg(self.flash);
        command.arg("-dtb").arg(&tree);
        for (file, address) in [(self.kernel, KERNEL_ADDRESS), (self.initramfs, INITRAMFS_ADDRESS)]
        {
            let what = format!("loader,file={},addr={address:#x},force-raw=on", comma(file));
            command.args(["-device", &what]);
        }
        let folder = format!("local,id=share,path={},security_model=none", comma(self.share));
        command.args(["-fsdev", &folder]);
        command.args(["-device", "virtio-9p-pci,fsdev=share,mount_tag=share"]);
        for file in [&normal, &secure] {
            command.args(["-serial", &format!("file:{}", file.display())]);
        }
        let ended =
            limited::run(&command, LIMIT + self.scripts, &lab.log(&format!("{name}-emulator")));
        let text = |file: &PathBuf| {
            fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        let consoles = Consoles {
            normal: text(&normal).unwrap_or_default(),
            secure: text(&secure).unwrap_or_default(),
        };
        ended.with_context(|| {
            let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
            format!(
                "the machine did not come to its end; the last lines of its consoles, {} and {}, are \
                 {:?} and {:?}",
                normal.display(),
                secure.display(),
                last(&consoles.normal),
                last(&consoles.secure),
            )
        })?;
        Ok(consoles)
    }

    /// The emulator's own description of the machine, with the kernel's command line and the place of its
    /// first file system, which a boot loader would put in.
    fn device_tree(&self, lab: &Lab, name: &str) -> Result<PathBuf> {
        let tree = lab.path(&format!("{name}.dtb"));
        let dump = hardware(&format!(",dumpdtb={}", comma(&tree)));
        limited::run(
            Command::new(self.emulator).args(dump),
            Duration::from_secs(20),
            &lab.log("device-tree"),
        )?;
        let put = |kind: &str, node: &str, property: &str, values: &[&str]| {
            let mut command = Command::new("fdtput");
            command.args(["-t", kind]).arg(&tree).args([node, property]).args(values);
            run_quietly(&mut command).map(drop)
        };
        put("s", "/chosen", "bootargs", &["console=ttyAMA0 quiet panic=-1"])?;
        let end = INITRAMFS_ADDRESS + self.initramfs.metadata()?.len();
        for (property, address) in
            [("linux,initrd-start", INITRAMFS_ADDRESS), ("linux,initrd-end", end)]
        {
            put("x", "/chosen", property, &["0", &format!("{address:x}")])?;
        }
        Ok(tree)
    }
}

/// The machine without what is loaded into it.
fn hardware(more: &str) -> Vec<String> {
    let machine = format!("virt,secure=on,gic-version=3,virtualization=off,acpi=off{more}");
    let words = ["-machine", &machine, "-cpu", "cortex-a57", "-smp", "2", "-m", "1024"];
    words.iter().chain(&["-nographic", "-nodefaults"]).map(|&word| word.to_owned()).collect()
}

/// A path in a list of the emulator's options, where a comma is written twice.
fn comma(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}
