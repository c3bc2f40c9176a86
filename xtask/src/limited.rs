//! Running a program no longer than it may take, with its output in a file. It and what it has started
//! end with this program, however that ends. Nothing is ever found by name and ended.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::commands::line;

/// What `timeout` answers when the time was over.
const TIME_IS_OVER: i32 = 124;
/// Lines of output that an error shows.
const SHOWN: usize = 25;

/// Runs to the end; an error shows the last lines of the output, and names the file with all.
pub(crate) fn run(command: &Command, limit: Duration, log: &Path) -> Result<()> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut limited = within(limit, command);
    limited.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let status = limited.status().context("cannot start timeout, which is part of coreutils")?;
    if status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&std::fs::read(log)?).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
    let ended = if status.code() == Some(TIME_IS_OVER) {
        format!("took more than {} s", limit.as_secs())
    } else {
        format!("ended with {status}")
    };
    bail!("{} {ended}; all of its output is in {}\n{last}", line(command), log.display())
}

/// The same command under `timeout`, which ends a whole group of processes and dies with us.
fn within(limit: Duration, command: &Command) -> Command {
    let mut limited = Command::new("timeout");
    limited.arg("--kill-after=5").arg(limit.as_secs().to_string());
    limited.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    // SAFETY: between fork and exec only a system call is made.
    unsafe {
        limited.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    limited
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit: u64, name: &str) -> Result<()> {
        let log = std::env::temp_dir().join(format!("xtask-limited-{name}-{}", std::process::id()));
        let mut command = Command::new("sh");
        let result =
            run(command.args(["-c", script]).env("WORD", "told"), Duration::from_secs(limit), &log);
        std::fs::remove_file(&log).unwrap();
        result
    }

    #[test]
    fn what_fails_or_takes_too_long_is_told_with_its_output() {
        assert!(sh("exit 0", 20, "passes").is_ok());
        let error = sh("echo $WORD; exit 3", 20, "fails").unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.ends_with("told"), "{error}");
        let error = sh("echo begun; sleep 60", 1, "takes-long").unwrap_err().to_string();
        assert!(error.contains("more than 1 s") && error.ends_with("begun"), "{error}");
    }
}
