//! What was checked and how it went: a line for each, and one with the sums at the end.

use std::fmt::Write as _;

use anyhow::{Result, bail, ensure};

use crate::packages::Unavailable;
use crate::printed;

/// Counts of what passed, failed and was skipped.
#[derive(Default)]
pub(crate) struct Checks {
    passed: usize,
    failed: usize,
    skipped: usize,
    /// Of what runs more than once, on which.
    on: String,
}

impl Checks {
    /// Says on what the following runs; nothing, where it runs here.
    pub(crate) fn on(&mut self, on: &str) {
        self.on = if on.is_empty() { String::new() } else { format!("{on}: ") };
    }

    /// How a check went. What cannot be had is skipped.
    pub(crate) fn add(&mut self, name: &str, result: Result<()>) {
        let on = &self.on;
        match result {
            Ok(()) => {
                self.passed += 1;
                println!("passed   {on}{name}");
            }
            Err(error) => match error.downcast_ref::<Unavailable>() {
                Some(why) => self.skip(name, &why.to_string()),
                None => {
                    self.failed += 1;
                    println!("FAILED   {on}{name}: {error:#}");
                }
            },
        }
    }

    /// Something did not run, for this reason.
    pub(crate) fn skip(&mut self, name: &str, why: &str) {
        self.skipped += 1;
        println!("skipped  {}{name}: {why}", self.on);
    }

    /// Prints the sums, as the last line of all; says whether nothing failed.
    pub(crate) fn finish(self) -> bool {
        println!("{}", self.sums());
        self.failed == 0
    }

    fn sums(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// An error unless `gprof -q` shows so many calls of one function by another.
pub(crate) fn has_arcs(shown: &str, expected: &[(&str, &str, u64)]) -> Result<()> {
    let (arcs, _) = printed::graph(shown);
    for &(caller, callee, calls) in expected {
        let arc = (caller.to_owned(), callee.to_owned(), calls);
        ensure!(arcs.contains(&arc), "not {calls} calls from {caller} to {callee}:\n{shown}");
    }
    Ok(())
}

/// An error unless both are the same; it shows where they part.
pub(crate) fn same(found: &str, expected: &str) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let mut text = String::new();
    let (mut found, mut expected) = (found.lines(), expected.lines());
    loop {
        match (found.next(), expected.next()) {
            (found, expected) if found != expected => {
                let shown = |line: Option<&str>| line.unwrap_or("the end").to_owned();
                write!(text, "found: {}\nexpected: {}", shown(found), shown(expected))?;
                bail!("{text}");
            }
            (None, _) => bail!("only the ends of lines differ"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_skipped_and_no_failure() {
        let mut checks = Checks::default();
        checks.add("one", Ok(()));
        checks.add("two", Err(Unavailable("no network".into()).into()));
        assert_eq!(checks.sums(), "1 passed, 0 failed, 1 skipped");
        checks.add("three", Err(anyhow::anyhow!("wrong")));
        assert_eq!(checks.sums(), "1 passed, 1 failed, 1 skipped");
        assert!(!checks.finish());
    }

    #[test]
    fn the_first_line_that_differs_is_shown() {
        assert!(same("a\nb\n", "a\nb\n").is_ok());
        let told = same("a\nb\n", "a\nc\n").unwrap_err().to_string();
        assert_eq!(told, "found: b\nexpected: c");
        let told = same("a\n", "a\nc\n").unwrap_err().to_string();
        assert_eq!(told, "found: the end\nexpected: c");
        assert!(same("a", "a\n").is_err());
    }
}
