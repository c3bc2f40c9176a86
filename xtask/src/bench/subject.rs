//! A real program, run once without and once with the recorder, and the row that tells of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::lab::Lab;
use super::report::Report;
use super::table::{Limit, Row, digits};

/// A program with its arguments, or a script of the shell.
pub(crate) struct Subject {
    pub(crate) id: &'static str,
    pub(crate) what: &'static str,
    pub(crate) words: fn(&Lab) -> Result<Vec<String>>,
}

/// A row for each. One that fails, with or without the recorder, is a row that misses its limit.
pub(crate) fn rows(lab: &Lab, subjects: &[Subject]) -> Vec<Row> {
    let row = |subject: &Subject| match row(lab, subject) {
        Ok(row) => row,
        Err(error) => {
            eprintln!("{}: {error:#}", subject.id);
            let row = Row::new(subject.id, subject.what, "failed".into());
            row.limit(Limit::AtMost(0.0), Some(f64::NAN), "lost")
        }
    };
    subjects.iter().map(row).collect()
}

fn row(lab: &Lab, subject: &Subject) -> Result<Row> {
    let words = (subject.words)(lab)?;
    let recording = lab.scratch(&format!("{}.teeperf", subject.id));
    let plain = lab.run(Command::new(&words[0]).args(&words[1..]))?;
    let recorded = lab.run(lab.record(&recording, &[]).args(&words))?;
    let report = Report::of(lab, &recording)?;
    let told = format!(
        "{} s, {} M events, {} mended, {} MB",
        digits(recorded.seconds),
        digits(report.events / 1e6),
        report.mended,
        digits(fs::metadata(&recording)?.len() as f64 / 1e6)
    );
    fs::remove_file(&recording)?;
    Ok(Row::new(subject.id, subject.what, told)
        .beside(format!("not recorded {} s", digits(plain.seconds)))
        .limit(Limit::AtMost(0.0), Some(report.lost as f64), "lost"))
}

/// Words that run a script.
pub(crate) fn shell(script: String) -> Result<Vec<String>> {
    Ok(vec!["sh".into(), "-ec".into(), script])
}

/// A path as a word.
pub(crate) fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Words before a command of PostgreSQL's, which root may not run: then its own user does.
pub(crate) fn as_postgres() -> &'static str {
    // SAFETY: it takes nothing and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        "setpriv --reuid=postgres --regid=postgres --clear-groups"
    } else {
        ""
    }
}
