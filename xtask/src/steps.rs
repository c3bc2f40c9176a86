//! A list of steps: each under a heading, all of them run even when one fails, and a line
//! for each at the end.

use std::time::Instant;

use anyhow::{Result, bail};

/// How a step ended.
pub(crate) enum Outcome {
    /// It ran, and nothing is wrong.
    Passed,
    /// It could not run here, for this reason.
    Skipped(String),
}

/// Collects the outcomes.
#[derive(Default)]
pub(crate) struct Steps {
    lines: Vec<String>,
    failed: usize,
}

impl Steps {
    /// Runs a step under its heading.
    pub(crate) fn run(&mut self, name: &str, step: impl FnOnce() -> Result<Outcome>) {
        println!("\n══ {name} ══");
        let start = Instant::now();
        let result = step();
        let seconds = start.elapsed().as_secs_f64();
        let line = match result {
            Ok(Outcome::Passed) => format!("xtask: passed   {seconds:6.1} s  {name}"),
            Ok(Outcome::Skipped(why)) => format!("xtask: skipped            {name}: {why}"),
            Err(error) => {
                self.failed += 1;
                eprintln!("{error:#}");
                let first = format!("{error:#}");
                let first = first.lines().next().unwrap_or_default();
                format!("xtask: FAILED   {seconds:6.1} s  {name}: {first}")
            }
        };
        println!("{}", line.trim_start_matches("xtask: "));
        self.lines.push(line);
    }

    /// Prints the summary; an error when a step failed.
    pub(crate) fn finish(self) -> Result<()> {
        println!("\n══ summary ══");
        for line in &self.lines {
            println!("{line}");
        }
        if self.failed > 0 {
            bail!("{} of {} steps failed", self.failed, self.lines.len());
        }
        Ok(())
    }
}
