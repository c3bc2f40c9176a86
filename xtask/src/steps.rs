//! A list of steps: each under a heading, all of them run even when one fails, and a line
//! for each at the end.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::commands;

/// How a step ended.
pub(crate) enum Outcome {
    /// It ran, and nothing is wrong.
    Passed,
    /// It could not run here, for this reason.
    Skipped(String),
}

/// A program that runs beside steps. A file below the target folder keeps its output until a step
/// waits for its end.
pub(crate) struct Beside {
    output: PathBuf,
    thread: JoinHandle<(Result<()>, Duration)>,
}

impl Beside {
    /// Starts `command`.
    pub(crate) fn start(name: &str, mut command: Command) -> Result<Self> {
        let output = commands::target()?.join(format!("{name}.log"));
        let file = File::create(&output).with_context(|| output.display().to_string())?;
        command.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file);
        let start = Instant::now();
        let thread = thread::spawn(move || (commands::run(&mut command), start.elapsed()));
        Ok(Self { output, thread })
    }

    /// Waits for the end, shows the output and tells how long the program took.
    fn wait(self) -> Result<(Result<()>, Duration)> {
        let ended = self.thread.join().map_err(|_| anyhow!("the thread that waits panicked"))?;
        let mut output = File::open(&self.output)?;
        io::copy(&mut output, &mut io::stdout())?;
        Ok(ended)
    }
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
        self.end(name, result, start.elapsed());
    }

    /// Waits for a program that ran beside the steps before.
    pub(crate) fn wait(&mut self, name: &str, program: Result<Beside>) {
        println!("\n══ {name}, beside the steps before ══");
        let ended = program.and_then(Beside::wait);
        let (result, took) = ended.unwrap_or_else(|error| (Err(error), Duration::ZERO));
        self.end(name, result.map(|()| Outcome::Passed), took);
    }

    fn end(&mut self, name: &str, result: Result<Outcome>, took: Duration) {
        let seconds = took.as_secs_f64();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_beside_the_steps_is_judged_by_how_it_ends() {
        let mut steps = Steps::default();
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Beside::start("steps-test", command)
        };
        steps.wait("good", shell("echo shown"));
        assert_eq!(steps.failed, 0);
        steps.wait("bad", shell("exit 3"));
        steps.wait("none", Beside::start("steps-test", Command::new("/nowhere")));
        assert_eq!(steps.failed, 2);
        assert!(steps.lines[1].contains("FAILED") && steps.lines[1].contains("exit 3"));
        assert!(steps.finish().is_err());
    }
}
