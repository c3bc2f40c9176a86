//! Starting other programs: where the repository and its target folder are, and whether a
//! tool is there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").to_owned()
}

/// Cargo's target folder: the one in which this program was built.
pub(crate) fn target() -> Result<PathBuf> {
    let me = std::env::current_exe().context("where is this program?")?;
    let profile = me.parent().context("this program lies in no folder")?;
    Ok(profile.parent().context("this program lies in no target folder")?.to_owned())
}

/// The cargo that started this program.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Whether `program arguments…` runs and succeeds; its output is not shown.
pub(crate) fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs to the end; an error names the command line.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", line(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", line(command));
    }
    Ok(())
}

/// Runs to the end without showing its output, of which an error shows the last lines.
pub(crate) fn run_quietly(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", line(command)))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let all: Vec<&str> = text.lines().chain(errors.lines()).collect();
        let last = all[all.len().saturating_sub(20)..].join("\n");
        bail!("{} ended with {}\n{last}", line(command), output.status);
    }
    Ok(text)
}

/// The command as a user would type it, without its environment.
pub(crate) fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
