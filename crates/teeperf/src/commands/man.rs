//! `teeperf man`: manual pages, made from the same definitions as the help.

use crate::manual;
use anyhow::{Context, Result};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Prints a manual page, or writes all of them into a folder
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf man | man -l -                         teeperf(1)
  teeperf man record | man -l -                  teeperf-record(1)
  teeperf man --dir ~/.local/share/man/man1      all, for man to find")]
pub(crate) struct Arguments {
    /// A command, such as record or ctl-pause [default: the first page]
    #[arg(conflicts_with = "dir")]
    command: Option<String>,
    /// Write all pages into this folder, which is made if it is not there
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let definition = manual::definition();
    let pages = manual::pages(&definition);
    let Some(folder) = &arguments.dir else {
        let wanted = match &arguments.command {
            Some(name) => format!("teeperf-{name}"),
            None => "teeperf".into(),
        };
        let found = pages.iter().find(|(name, _)| *name == wanted);
        let (name, command) = found.with_context(|| format!("there is no page {wanted}(1)"))?;
        return super::print(manual::page(name, command).as_bytes());
    };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, command) in pages {
        let page = manual::page(&name, command);
        // The page that `cargo help teeperf` opens has a name of its own.
        let other = (name == "teeperf-cargo").then(|| "cargo-teeperf".to_owned());
        for name in [Some(name), other].into_iter().flatten() {
            let path = folder.join(format!("{name}.1"));
            std::fs::write(&path, &page)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}
