//! `teeperf install-wrappers`: for builds that take a compiler's name but no words behind it.

use crate::bundle;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::PathBuf;

/// Makes `teeperf-cc` and `teeperf-c++` in a folder, which do the same as `teeperf cc` and
/// `teeperf c++`, and `cargo-teeperf`, by which cargo knows `cargo teeperf`
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf install-wrappers ~/bin
  cmake -B build -D CMAKE_C_COMPILER=$HOME/bin/teeperf-cc")]
pub(crate) struct Arguments {
    /// Where to make them
    folder: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    bundle::needs_hooks()?;
    let own = std::env::current_exe().context("cannot find teeperf's own file")?;
    std::fs::create_dir_all(&arguments.folder)
        .with_context(|| format!("cannot make {}", arguments.folder.display()))?;
    for name in ["teeperf-cc", "teeperf-c++", "cargo-teeperf"] {
        let link = arguments.folder.join(name);
        match link.symlink_metadata() {
            Ok(found) if !found.is_symlink() => {
                bail!("{} is there already, and is no link", link.display())
            }
            Ok(_) => std::fs::remove_file(&link)?,
            Err(_) => {}
        }
        std::os::unix::fs::symlink(&own, &link)
            .with_context(|| format!("cannot make {}", link.display()))?;
        super::print(format!("{}\n", link.display()).as_bytes())?;
    }
    Ok(())
}
