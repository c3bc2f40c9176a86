//! `teeperf selection`: with which patterns a program was built, and which of them fit nothing.

use anyhow::{Context, Result};
use clap::Args;
use object::{Object, ObjectSection};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use teeperf_select::told::{SECTION, Told};
use teeperf_view::printable;

/// Tells which functions a program was built to have hooks in, and which patterns fit none
///
/// That is, what --teeperf-only, --teeperf-exclude and teeperf.toml said when it was built. A pattern fits if it does so in any
/// of the files. Where one fits no function that has hooks, the exit status is 1. `record` says so as well, of a program and
/// the libraries that it began with. Of Rust code that `cargo teeperf` compiled nothing is told.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf selection ./program
  teeperf selection ./program lib/*.so        of all that one teeperf.toml is for
  teeperf selection build/*.o                 of objects, too")]
pub(crate) struct Arguments {
    /// Programs, libraries, objects
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut told = Told::default();
    for path in &arguments.files {
        add(&mut told, path).with_context(|| path.display().to_string())?;
    }
    let (mut text, mut is_met) = (String::new(), true);
    for (pattern, fits) in told.patterns() {
        is_met &= fits;
        let how = if fits { "fits" } else { "fits no function" };
        writeln!(text, "{how:<18}{pattern}")?;
    }
    if text.is_empty() {
        note!(
            "teeperf: no patterns: all functions that are compiled by `teeperf cc` have hooks (`cargo teeperf` does not tell \
             with which patterns it built)"
        );
    }
    super::print(text.as_bytes())?;
    Ok(if is_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Says, once for each, which patterns fit no function of a program and the libraries that it has, if it was built with any.
pub(crate) fn warn(program: &Path, libraries: impl FnOnce() -> Vec<PathBuf>) {
    let unmet = |told: &Told| told.patterns().any(|(_, fits)| !fits);
    let mut told = Told::default();
    if add(&mut told, program).is_err() || !unmet(&told) {
        return;
    }
    for library in libraries() {
        // One that is gone, or no file, says nothing.
        let _ = add(&mut told, &library);
    }
    let unmet: Vec<&str> = told.patterns().filter(|(_, fits)| !fits).map(|one| one.0).collect();
    if !unmet.is_empty() {
        note!("teeperf: {}", printable(&unmet_in_words(&unmet, &program.display().to_string())));
    }
}

/// Patterns that a program was built with and that fit no function of it.
pub(crate) fn unmet(program: &Path) -> Vec<String> {
    let mut told = Told::default();
    // What cannot be read was built with none that are known.
    let _ = add(&mut told, program);
    told.patterns().filter(|(_, fits)| !fits).map(|(pattern, _)| pattern.to_owned()).collect()
}

/// One line, however many they are.
fn unmet_in_words(unmet: &[&str], program: &str) -> String {
    const MOST: usize = 3;
    let named: Vec<String> =
        unmet.iter().take(MOST).map(|pattern| format!("{pattern:?}")).collect();
    let (which, fit) = match unmet.len() {
        1 => (named.join(", "), "fits"),
        count if count <= MOST => (named.join(", "), "fit"),
        count => (format!("{} and {} more", named.join(", "), count - MOST), "fit"),
    };
    format!(
        "{which}, with which {program} was built, {fit} no function of it and the libraries that it began with; `teeperf \
         selection` lists them. After other patterns build from scratch (make clean)"
    )
}

/// Adds what a file says.
fn add(told: &mut Told, path: &Path) -> Result<()> {
    let bytes = std::fs::read(path)?;
    let file = object::File::parse(&*bytes)?;
    if let Some(section) = file.section_by_name(SECTION) {
        told.add(section.data()?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_patterns_make_one_line() {
        assert!(
            unmet_in_words(&["only a"], "p")
                .starts_with("\"only a\", with which p was built, fits no")
        );
        let all = ["only a", "only b", "exclude c", "exclude d", "exclude e"];
        let text = unmet_in_words(&all, "p");
        assert!(
            text.starts_with("\"only a\", \"only b\", \"exclude c\" and 2 more, with which p"),
            "{text}"
        );
        assert!(!text.contains('\n'));
    }
}
