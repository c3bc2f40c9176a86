//! The guest's file system: busybox, the libraries, OP-TEE's supplicant and tests, the kernel's modules that
//! reach OP-TEE and the shared folder, and `integrations/optee/guest/init`. The same for every boot: what
//! differs comes by the shared folder.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::fetch::Kit;
use super::lab::{Lab, emptied};
use crate::commands::{root, run_quietly};
use crate::stamp::Stamp;

const LIBRARIES: &str = "usr/lib/aarch64-linux-gnu";
const LOADER: &str = "ld-linux-aarch64.so.1";
/// What is loaded, with all that it needs.
const MODULES: [&str; 4] = ["optee", "virtio_pci", "9p", "9pnet_virtio"];
/// Packages with libraries, and which: whole names, or all when there are none.
const WITH_LIBRARIES: [(&str, &[&str]); 8] = [
    ("libc6", &[LOADER, "libc.so.6", "libm.so.6"]),
    ("libgcc-s1", &[]),
    ("libssl3t64", &["libcrypto.so.3"]),
    ("zlib1g", &[]),
    ("libzstd1", &[]),
    ("libteec2", &[]),
    ("libckteec0t64", &[]),
    ("libteeacl0.1.0t64", &[]),
];
/// Single files, with their places.
const FILES: [(&str, &str); 2] =
    [("tee-supplicant", "usr/sbin/tee-supplicant"), ("optee-test-qemu", "usr/bin/xtest")];
/// Folders of OP-TEE's own tests.
const FOLDERS: [&str; 2] = ["usr/lib/optee_armtz", "usr/lib/tee-supplicant/plugins"];
/// Empty folders.
const EMPTY: [&str; 10] = [
    "bin",
    "sbin",
    "proc",
    "sys",
    "dev",
    "tmp",
    "host",
    "share",
    "modules",
    "var/lib/optee-client/data/tee",
];

/// The archive, made anew when something in it has changed.
pub(super) fn archive(lab: &Lab, kit: &Kit) -> Result<PathBuf> {
    let archive = lab.path("initramfs.cpio");
    let init = root().join("integrations/optee/guest/init");
    let stamp = Stamp::of(&archive).word(&kit.versions()?).path(&init)?;
    if stamp.is_current() {
        return Ok(archive);
    }
    let tree = lab.path("initramfs");
    emptied(&tree)?;
    for folder in EMPTY.iter().chain(&FOLDERS).chain(&[LIBRARIES]) {
        fs::create_dir_all(tree.join(folder))?;
    }
    symlink("usr/lib", tree.join("lib"))?;
    symlink(format!("aarch64-linux-gnu/{LOADER}"), tree.join("usr/lib").join(LOADER))?;
    program(&init, &tree.join("init"))?;
    let busybox = ["bin/busybox", "usr/bin/busybox"];
    let busybox = busybox.map(|place| kit.package("busybox-static").join(place));
    let busybox =
        busybox.iter().find(|file| file.is_file()).context("no busybox in its package")?;
    program(busybox, &tree.join("bin/busybox"))?;
    for (package, names) in WITH_LIBRARIES {
        libraries(&kit.package(package), names, &tree)?;
    }
    for (package, place) in FILES {
        let to = tree.join(place);
        fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
        program(&kit.package(package).join(place), &to)?;
    }
    for folder in FOLDERS {
        for entry in fs::read_dir(kit.package("optee-test-qemu").join(folder))? {
            let file = entry?;
            fs::copy(file.path(), tree.join(folder).join(file.file_name()))?;
        }
    }
    modules(kit, &tree.join("modules"))?;
    pack(&tree, &archive)?;
    stamp.keep()?;
    Ok(archive)
}

fn program(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(0o755))?)
}

/// Libraries of a package, each under the name that programs ask for.
fn libraries(package: &Path, names: &[&str], tree: &Path) -> Result<()> {
    let folder = [LIBRARIES, "lib/aarch64-linux-gnu"].map(|place| package.join(place));
    let folder = folder.iter().find(|folder| folder.is_dir());
    let folder = folder.with_context(|| format!("no libraries in {}", package.display()))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_wanted = names.contains(&name.as_str()) || names.is_empty() && name.contains(".so.");
        if is_wanted && entry.path().is_file() {
            program(&entry.path(), &tree.join(LIBRARIES).join(name))?;
        }
    }
    Ok(())
}

/// The modules, unpacked, and their order in `list`.
fn modules(kit: &Kit, to: &Path) -> Result<()> {
    let (folder, version) = kit.modules()?;
    // What knows modules looks for them below this folder, whatever else leads there.
    let base = to.with_file_name("module-tree");
    emptied(&base.join("lib/modules"))?;
    symlink(&folder, base.join("lib/modules").join(&version))?;
    run_quietly(Command::new("/sbin/depmod").arg("-b").arg(&base).arg(&version))?;
    let mut list: Vec<String> = Vec::new();
    for module in MODULES {
        let mut ask = Command::new("/sbin/modprobe");
        ask.arg("-d").arg(&base).args(["-S", &version, "--show-depends", module]);
        let shown = run_quietly(&mut ask)?;
        let files = in_order(&shown);
        ensure!(!files.is_empty(), "the kernel has no module {module}");
        for file in files {
            let name = file.file_name().context("a module has a name")?.to_string_lossy();
            let plain = name.strip_suffix(".xz").unwrap_or(&name).to_owned();
            if list.contains(&plain) {
                continue;
            }
            let into = fs::File::create(to.join(&plain))?;
            let (tool, option) = if *name == plain { ("cat", "--") } else { ("xz", "-dc") };
            let mut unpack = Command::new(tool);
            let unpacked = unpack.arg(option).arg(&file).stdout(into).status()?;
            ensure!(unpacked.success(), "cannot unpack {}", file.display());
            list.push(plain);
        }
    }
    fs::write(to.join("list"), list.join("\n") + "\n")?;
    Ok(fs::remove_dir_all(base)?)
}

/// What `modprobe --show-depends` says: what is needed comes before what needs it.
fn in_order(shown: &str) -> Vec<PathBuf> {
    let files = shown.lines().filter_map(|line| line.trim().strip_prefix("insmod "));
    files.filter_map(|rest| Some(PathBuf::from(rest.split_whitespace().next()?))).collect()
}

/// A folder as the archive that the kernel unpacks.
fn pack(tree: &Path, archive: &Path) -> Result<()> {
    let mut find = Command::new("find");
    let mut find = find.arg(".").current_dir(tree).stdout(Stdio::piped()).spawn()?;
    let names = find.stdout.take().context("find has no output")?;
    let mut cpio = Command::new("cpio");
    cpio.args(["--create", "--quiet", "--format=newc", "--owner=+0:+0"]).current_dir(tree);
    let packed = cpio.stdin(names).stdout(fs::File::create(archive)?).status();
    let packed = packed.context("cannot start cpio")?;
    ensure!(find.wait()?.success() && packed.success(), "cannot pack {}", tree.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_loaded_in_the_order_shown() {
        let shown = "insmod /a/tee.ko.xz \ninsmod /a/optee.ko.xz option=1\nbuiltin virtio\n";
        assert_eq!(in_order(shown), ["/a/tee.ko.xz", "/a/optee.ko.xz"].map(PathBuf::from));
    }
}
