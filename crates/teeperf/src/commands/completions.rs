//! `teeperf completions`: for the shell.

use crate::completions;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum, ValueHint};
use clap_complete::Shell as Generator;
use std::path::PathBuf;

/// Prints completions for a shell, or writes those for all into a folder
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf completions bash > ~/.local/share/bash-completion/completions/teeperf
  teeperf completions zsh > ~/.zfunc/_teeperf
  teeperf completions fish > ~/.config/fish/completions/teeperf.fish
  teeperf completions elvish > ~/.config/elvish/lib/teeperf.elv
  teeperf completions --dir completions")]
pub(crate) struct Arguments {
    /// Which shell
    #[arg(required_unless_present = "dir", conflicts_with = "dir")]
    shell: Option<Shell>,
    /// Write those for all shells into this folder, each under the name that its shell looks for
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

/// Shells with completions.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    /// GNU bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
    /// Elvish
    Elvish,
}

impl Shell {
    /// What makes them, and the name of the file that the shell looks for.
    fn known(self) -> (Generator, &'static str) {
        match self {
            Self::Bash => (Generator::Bash, "teeperf"),
            Self::Zsh => (Generator::Zsh, "_teeperf"),
            Self::Fish => (Generator::Fish, "teeperf.fish"),
            Self::Elvish => (Generator::Elvish, "teeperf.elv"),
        }
    }

    fn script(self) -> String {
        completions::script(self.known().0)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(shell) = arguments.shell {
        return super::print(shell.script().as_bytes());
    }
    let Some(folder) = &arguments.dir else { return Ok(()) };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for shell in Shell::value_variants() {
        let path = folder.join(shell.known().1);
        std::fs::write(&path, shell.script())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
