//! `teeperf demo`: the whole way once, on a bundled program, with every command shown so that
//! the user can type it afterwards.

use crate::bundle;
use crate::config::files;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The bundled program.
const SOURCE: &str = include_str!("../../demo/library.c");
const SOURCE_NAME: &str = "library.c";

/// Builds a bundled program with hooks, records it, prints the report and draws the flame graph
#[derive(Args, Debug)]
#[command(after_help = "\
Needs a C compiler and nothing else. Each command is shown before it runs.

Examples:
  teeperf demo
  teeperf demo --folder /tmp/demo")]
pub(crate) struct Arguments {
    /// Where to build; made when it is not there
    #[arg(long, value_name = "FOLDER", default_value = "teeperf-demo")]
    folder: PathBuf,
}

/// What is run, as the user would type it behind `teeperf`.
const STEPS: &[(&str, &[&str])] = &[
    ("build it with hooks", &["cc", "-O2", "-g", SOURCE_NAME, "-o", "library", "-pthread"]),
    ("run it and record every call", &["record", "--", "./library"]),
    ("see where the time went", &["report", "--limit", "12", "library.teeperf"]),
    ("draw it", &["flame", "library.teeperf"]),
];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    bundle::needs_hooks()?;
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let source = folder.join(SOURCE_NAME);
    std::fs::write(&source, SOURCE)
        .with_context(|| format!("cannot write {}", source.display()))?;
    say(&format!("{} is a small search engine in C with three threads.", source.display()))?;
    say(&format!("\n$ cd {}", folder.display()))?;
    for (aim, words) in STEPS {
        step(folder, aim, words)?;
    }
    say(&format!(
        "\nOpen {} in a browser. Then build a program of your own:\n\n  make CC=\"teeperf cc\"\n",
        folder.join("flame.html").display()
    ))
}

fn step(folder: &Path, aim: &str, words: &[&str]) -> Result<()> {
    say(&format!("\n# {aim}\n$ teeperf {}", words.join(" ")))?;
    let own = std::env::current_exe().context("cannot find teeperf's own file")?;
    let status = Command::new(own)
        .args(words)
        .current_dir(folder)
        // As shown, whatever files set.
        .env(files::VARIABLE, "")
        .status()
        .context("cannot run teeperf once more")?;
    if !status.success() {
        bail!("`teeperf {}` in {} failed: {status}", words.join(" "), folder.display());
    }
    Ok(())
}

/// A line for the user, before what the next command prints.
fn say(line: &str) -> Result<()> {
    super::print(format!("{line}\n").as_bytes())
}
