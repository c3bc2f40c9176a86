//! `teeperf completions`: for the shell.

use crate::cli::Cli;
use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Prints completions for a shell
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf completions bash > ~/.local/share/bash-completion/completions/teeperf
  teeperf completions zsh > ~/.zfunc/_teeperf
  teeperf completions fish > ~/.config/fish/completions/teeperf.fish")]
pub(crate) struct Arguments {
    /// Which shell
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "teeperf", &mut text);
    super::print(&text)
}
