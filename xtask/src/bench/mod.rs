//! `cargo xtask bench`: measures the project's figures and writes docs/performance.md.
//! Each figure is one file here; what they share is running, building and telling.

mod copies;
mod debian;
mod document;
mod figures;
mod hooks;
mod lab;
mod machine;
mod measure;
mod mixed;
mod programs;
mod prototype;
mod report;
mod subject;
mod suites;
mod table;
mod truth_programs;

use anyhow::{Result, bail};

use figures::{FIGURES, Figure};
use lab::Lab;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Figures to measure; all when none is named
    names: Vec<String>,
    /// Lists the figures and measures nothing
    #[arg(long)]
    list: bool,
    /// One round and small inputs: shows that all works; nothing is kept
    #[arg(long)]
    quick: bool,
    /// Rounds for each figure, instead of its own number
    #[arg(long)]
    rounds: Option<usize>,
}

/// Measures, prints, and rewrites the document.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let chosen = choose(&arguments.names)?;
    if arguments.list {
        for figure in chosen {
            println!("{:16} {}", figure.name, figure.title);
        }
        return Ok(());
    }
    let lab = Lab::open(arguments.quick, arguments.rounds)?;
    let mut failed = Vec::new();
    for figure in chosen {
        println!("\n══ {}: {} ══", figure.name, figure.title);
        match (figure.measure)(&lab) {
            Ok(rows) => {
                print!("{}", table::markdown(&rows));
                if !lab.quick {
                    document::keep(&lab, figure, rows)?;
                }
            }
            Err(error) => {
                eprintln!("{error:#}");
                failed.push(figure.name);
            }
        }
    }
    if !lab.quick {
        document::write(&lab)?;
    }
    if !failed.is_empty() {
        bail!("could not be measured: {}", failed.join(", "));
    }
    Ok(())
}

fn choose(names: &[String]) -> Result<Vec<&'static Figure>> {
    if names.is_empty() {
        return Ok(FIGURES.iter().collect());
    }
    let find = |name: &String| FIGURES.iter().find(|figure| figure.name == name);
    names
        .iter()
        .map(|name| find(name).ok_or_else(|| anyhow::anyhow!("no figure {name}: see --list")))
        .collect()
}
