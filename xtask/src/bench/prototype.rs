//! The prototype of late hooks among the yardsticks: its own recursion, built by its own script.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::lab::Lab;
use crate::commands::run_quietly;

/// `calls.c` of the yardsticks, without hooks and with the prototype's.
pub(crate) struct Prototype {
    plain: PathBuf,
    late: PathBuf,
}

impl Prototype {
    /// Builds both. `None` where there are no yardsticks.
    pub(crate) fn build(lab: &Lab) -> Result<Option<Self>> {
        let Some(folder) = &lab.yardsticks else { return Ok(None) };
        let out = lab.work.join("prototype");
        std::fs::create_dir_all(&out)?;
        let out = out.join("calls");
        let mut build = Command::new("sh");
        build.arg(folder.join("late/run.sh")).arg(&out).arg("-O2").arg(folder.join("calls.c"));
        run_quietly(&mut build).context("building the prototype of late hooks")?;
        Ok(Some(Self { plain: out.with_extension("plain"), late: out.with_extension("late") }))
    }

    /// Nanoseconds of a call and its return without hooks.
    pub(crate) fn plain(&self, lab: &Lab) -> Result<f64> {
        run(lab, &mut Command::new(&self.plain))
    }

    /// The same with hooks that record nothing.
    pub(crate) fn idle(&self, lab: &Lab) -> Result<f64> {
        run(lab, &mut Command::new(&self.late))
    }

    /// The same with hooks that record.
    pub(crate) fn recording(&self, lab: &Lab) -> Result<f64> {
        run(lab, Command::new(&self.late).env("TP_ON", "1"))
    }
}

fn run(lab: &Lab, command: &mut Command) -> Result<f64> {
    lab.run(command.arg(lab.size("32", "24")))?.number("ns/call")
}
