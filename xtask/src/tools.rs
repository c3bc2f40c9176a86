//! Debian packages that a stage needs on this machine itself: what is missing is installed where that is
//! allowed. Nothing is ever removed for it.

use std::process::Command;

use anyhow::Result;

use crate::commands::{run_quietly, works};
use crate::packages::{Unavailable, apt_error, persistently};

/// Installs those of `packages` that are not there; the error is [`Unavailable`].
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let missing: Vec<&str> = packages.iter().copied().filter(|name| !is_installed(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    println!("installing {names}");
    // SAFETY: asks for a number and cannot fail.
    let prefix: &[&str] = match unsafe { libc::geteuid() } {
        0 => &[],
        _ if works("sudo", &["-n", "true"]) => &["sudo", "-n"],
        _ => {
            let next = format!("run `apt-get install {names}` as root first");
            return Err(Unavailable(format!("tools are missing; {next}")).into());
        }
    };
    let apt = |words: &[&str]| {
        let start = [prefix, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]].concat();
        let mut command = Command::new(start[0]);
        // Somebody else may be installing: that is waited for.
        command.args(&start[1..]).args(["-o", "DPkg::Lock::Timeout=300"]).args(words);
        command
    };
    persistently(&mut apt(&["update"]))?;
    let install = ["install", "-y", "--no-install-recommends", "--no-remove"];
    // What cannot be done at all is not tried again and again.
    let simulate = [&install[..], &["-s"], &missing].concat();
    run_quietly(&mut apt(&simulate)).map_err(|error| {
        Unavailable(format!("{names} cannot be installed: {}", apt_error(&error)))
    })?;
    persistently(&mut apt(&[&install, &missing[..]].concat())).map(drop)
}

/// The installed version of a package.
pub(crate) fn version(package: &str) -> Option<String> {
    let mut query = Command::new("dpkg-query");
    let output = query.args(["-W", "-f", "${db:Status-Status} ${Version}", package]).output();
    let text = output.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())?;
    Some(text.strip_prefix("installed ")?.to_owned())
}

fn is_installed(package: &str) -> bool {
    version(package).is_some()
}
