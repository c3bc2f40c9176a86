//! QEMU's emulators of whole machines: this machine's own, or Debian's package installed; where something else
//! would have to go for that, such as a newer part of QEMU, the package unpacked into a folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::commands::works;
use crate::lock;
use crate::mirror;
use crate::optee::Lab;
use crate::packages::{Packages, Unavailable};
use crate::tools;

/// What runs the emulator `name`, which `package` has.
pub(crate) fn find(name: &str, package: &str) -> Result<PathBuf> {
    let is_here = || works(name, &["--version"]);
    if is_here() {
        return Ok(name.into());
    }
    let (architecture, triplet) = match std::env::consts::ARCH {
        "x86_64" => ("amd64", "x86_64-linux-gnu"),
        "aarch64" => ("arm64", "aarch64-linux-gnu"),
        other => return Err(Unavailable(format!("no {package} is known for {other}")).into()),
    };
    let entries = mirror::own_entries()?;
    let folder = Lab::open()?.path("emulators");
    let _alone = lock::folder(&folder)?;
    let packages =
        Packages::open(folder.clone(), architecture, &entries.each_ref().map(String::as_str));
    if !packages.has(package) {
        match tools::install(&[package]) {
            Ok(()) if is_here() => return Ok(name.into()),
            Ok(()) => println!("{name} is not in {package}"),
            Err(error) => println!("{error}"),
        }
    }
    let root = packages.unpack_beside(package)?;
    let script = folder.join(name);
    with_libraries(&script, &root, name, triplet)?;
    if !works(&script.to_string_lossy(), &["--version"]) {
        return Err(Unavailable(format!("{} does not run", script.display())).into());
    }
    println!("{name} is run from {}", root.display());
    Ok(script)
}

/// Writes a script that runs the emulator with the libraries that were unpacked with it.
fn with_libraries(script: &Path, root: &Path, name: &str, triplet: &str) -> Result<()> {
    let root = root.display();
    let text = format!(
        "#!/bin/sh\n\
         export LD_LIBRARY_PATH='{root}/usr/lib/{triplet}:{root}/lib/{triplet}'\n\
         exec '{root}/usr/bin/{name}' \"$@\"\n"
    );
    fs::write(script, text).with_context(|| script.display().to_string())?;
    fs::set_permissions(script, fs::Permissions::from_mode(0o755))?;
    Ok(())
}
