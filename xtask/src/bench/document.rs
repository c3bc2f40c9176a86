//! docs/performance.md: written whole from the results in bench/results, so that figures measured
//! one after the other, and on several machines, stand in one document. Why a limit was not met
//! is written by people, in bench/reasons.md.

use std::fs;
use std::path::{Path, PathBuf};

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

/// A machine, with the figures that were measured on it.
struct Measured {
    /// Name of its folder, and for reasons.
    name: String,
    folder: PathBuf,
    /// What is to be known of it.
    about: Vec<String>,
}

impl Measured {
    fn figure(&self, figure: &Figure) -> Result<Option<Kept>> {
        let path = self.folder.join(format!("{}.json", figure.name));
        let Ok(bytes) = fs::read(&path) else { return Ok(None) };
        serde_json::from_slice(&bytes).with_context(|| path.display().to_string())
    }
}

/// Where results stand, a folder for each machine.
fn results(lab: &Lab) -> PathBuf {
    lab.bench_file("results")
}

/// Keeps a figure's rows with today's date and the commit, and what machine it is.
pub(crate) fn keep(lab: &Lab, figure: &Figure, rows: Vec<Row>) -> Result<()> {
    let folder = results(lab).join(machine::name());
    fs::create_dir_all(&folder)?;
    let kept = Kept { date: machine::today(), commit: machine::commit(&lab.root), rows };
    save(&folder.join(format!("{}.json", figure.name)), &kept)?;
    save(&folder.join(MACHINE), &machine::describe())
}

const MACHINE: &str = "machine.json";

fn save(path: &Path, what: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(what)? + "\n";
    fs::write(path, text).with_context(|| path.display().to_string())
}

fn machines(lab: &Lab) -> Result<Vec<Measured>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(results(lab))? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let about = fs::read(folder.join(MACHINE)).with_context(|| folder.display().to_string())?;
        all.push(Measured { name, about: serde_json::from_slice(&about)?, folder });
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// Writes the document.
pub(crate) fn write(lab: &Lab) -> Result<()> {
    let reasons = fs::read_to_string(lab.bench_file("reasons.md")).unwrap_or_default();
    let machines = machines(lab)?;
    let mut text = String::from(INTRODUCTION);
    for machine in &machines {
        text += &format!("\n**{}**:\n\n", machine.name);
        for line in &machine.about {
            text += &format!("- {line}\n");
        }
    }
    for figure in FIGURES {
        text += &section(&machines, figure, &reasons)?;
    }
    let out = lab.root.join("docs/performance.md");
    fs::create_dir_all(lab.root.join("docs"))?;
    fs::write(&out, text).with_context(|| out.display().to_string())
}

fn section(machines: &[Measured], figure: &Figure, reasons: &str) -> Result<String> {
    let mut text = format!(
        "\n## {}\n\n{}\n\n`cargo xtask bench {}`",
        figure.title, figure.method, figure.name
    );
    let mut is_measured = false;
    for machine in machines {
        let Some(kept) = machine.figure(figure)? else { continue };
        is_measured = true;
        let Kept { date, commit, rows } = kept;
        text += &format!("\n\n{}, {date}, at {commit}:\n\n{}", machine.name, markdown(&rows));
        for row in rows.iter().filter(|row| row.verdict().contains("no")) {
            let id = format!("{}/{}", figure.name, row.id);
            let here = reason(reasons, &format!("{id} on {}", machine.name));
            if let Some(reason) = here.or_else(|| reason(reasons, &id)) {
                text += &format!("\n{}: {reason}\n", row.what);
            }
        }
        text.truncate(text.trim_end().len());
    }
    text += if is_measured { "\n" } else { ": not measured yet.\n" };
    Ok(text)
}

/// The paragraph behind `` `figure/row`: ``, or for one machine `` `figure/row on name`: ``.
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

Measured on these machines:
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
