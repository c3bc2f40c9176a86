//! docs/performance.md: written whole from the results kept in the target folder, so that
//! figures measured one after the other stand in one document. Why a limit was not met is
//! written by people, in bench/reasons.md.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::figures::{FIGURES, Figure};
use super::lab::Lab;
use super::machine;
use super::table::{Row, markdown};

/// What is kept of one figure.
#[derive(Serialize, Deserialize)]
struct Kept {
    date: String,
    /// Commit of the repository.
    commit: String,
    rows: Vec<Row>,
}

fn path(lab: &Lab, figure: &Figure) -> PathBuf {
    lab.work.join("results").join(format!("{}.json", figure.name))
}

/// Keeps a figure's rows with today's date and the commit.
pub(crate) fn keep(lab: &Lab, figure: &Figure, rows: Vec<Row>) -> Result<()> {
    let path = path(lab, figure);
    fs::create_dir_all(lab.work.join("results"))?;
    let kept = Kept { date: machine::today(), commit: machine::commit(&lab.root), rows };
    fs::write(&path, serde_json::to_vec_pretty(&kept)?).with_context(|| path.display().to_string())
}

/// Writes the document.
pub(crate) fn write(lab: &Lab) -> Result<()> {
    let reasons = fs::read_to_string(lab.bench_file("reasons.md")).unwrap_or_default();
    let mut text = String::from(INTRODUCTION);
    text += "\nMeasured on:\n\n";
    for line in machine::describe() {
        text += &format!("- {line}\n");
    }
    if lab.yardsticks.is_none() {
        text += "\nThe yardsticks were not there: rows that need them say \"not measured\".\n";
    }
    for figure in FIGURES {
        text += &section(lab, figure, &reasons)?;
    }
    let out = lab.root.join("docs/performance.md");
    fs::create_dir_all(lab.root.join("docs"))?;
    fs::write(&out, text).with_context(|| out.display().to_string())
}

fn section(lab: &Lab, figure: &Figure, reasons: &str) -> Result<String> {
    let mut text = format!("\n## {}\n\n{}\n\n", figure.title, figure.method);
    let Ok(bytes) = fs::read(path(lab, figure)) else {
        return Ok(text + "Not measured yet on this machine.\n");
    };
    let kept: Kept = serde_json::from_slice(&bytes)?;
    text += &markdown(&kept.rows);
    text += &format!("\n`cargo xtask bench {}`, {}, at {}.\n", figure.name, kept.date, kept.commit);
    for row in kept.rows.iter().filter(|row| row.verdict().contains("no")) {
        let id = format!("{}/{}", figure.name, row.id);
        if let Some(reason) = reason(reasons, &id) {
            text += &format!("\n{}: {reason}\n", row.what);
        }
    }
    Ok(text)
}

/// The paragraph behind `` `figure/row`: ``.
fn reason<'a>(reasons: &'a str, id: &str) -> Option<&'a str> {
    let mark = format!("`{id}`:");
    reasons.split("\n\n").find_map(|paragraph| paragraph.trim().strip_prefix(&mark)).map(str::trim)
}

const INTRODUCTION: &str = "\
# Performance

Written by `cargo xtask bench`; not edited by hand. Figures travel badly between machines,
ratios well: whatever is compared ran in turn within one run (A B A B …), and a ratio is the
median of the ratios of neighbours. `word_hook`, `cycle_hook`, `drain_hook` and `replay_loop`
are yardsticks in C that do the least that any tracer of that kind must do; they are no part of
the project, and are found in the folder that `TEEPERF_YARDSTICKS` names. How each figure is
measured, and with what programs, is in `bench/README.md`.
";

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn a_reason_is_found_by_its_row() {
        let text = "# Reasons\n\n`a/b`: because\nof this.\n\n`a/c`: other.\n";
        assert_eq!(reason(text, "a/b"), Some("because\nof this."));
        assert_eq!(reason(text, "a/c"), Some("other."));
        assert_eq!(reason(text, "a/d"), None);
    }
}
