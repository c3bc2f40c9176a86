//! `teeperf man`: manual pages, made from the same definitions as the help.

use crate::cli::Cli;
use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use std::path::PathBuf;

/// Prints the manual page, or writes one for each subcommand into a folder
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf man | man -l -
  teeperf man ~/.local/share/man/man1")]
pub(crate) struct Arguments {
    /// Folder for the pages
    folder: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.folder {
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
            clap_mangen::generate_to(Cli::command(), folder)
                .with_context(|| format!("cannot write into {}", folder.display()))
        }
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut text)?;
            super::print(&text)
        }
    }
}
