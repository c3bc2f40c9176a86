//! `teeperf flame`: the call tree as a picture.

use super::reading;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::{Path, PathBuf};
use teeperf_profile::aggregate;
use teeperf_profile::model::Profile;
use teeperf_view::{folded, page, svg};

/// Draws a flame graph: one HTML file that opens offline, with search, zoom, threads, and the program's marks and counters
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf flame                                flame.html from the newest recording here
  teeperf flame --svg -o slow.svg slow.teeperf
  teeperf flame --since 50% --path ';parse;'   the second half, what parse called
  teeperf flame --inverted --svg               functions first, their callers on top
  teeperf flame --folded -o - | sort           one line for each call path, for other tools")]
pub(crate) struct Arguments {
    #[command(flatten)]
    recording: reading::Arguments,
    /// Overwrite a file that is something else
    #[arg(long)]
    force: bool,
    /// Where to write; - is standard output [default: flame.html, flame.svg or flame.folded]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Which form
    #[arg(long, value_enum, default_value_t = Format::Html, conflicts_with_all = ["svg", "folded"])]
    format: Format,
    /// The same as --format svg
    #[arg(long, conflicts_with = "folded")]
    svg: bool,
    /// The same as --format folded
    #[arg(long)]
    folded: bool,
    /// Functions by their own time, then their callers (the page has a button for it)
    #[arg(long)]
    inverted: bool,
}

/// Forms of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A page with search, zoom and threads
    Html,
    /// A picture
    Svg,
    /// Lines of call paths and nanoseconds
    Folded,
}

impl Arguments {
    fn format(&self) -> Format {
        match (self.svg, self.folded) {
            (true, _) => Format::Svg,
            (_, true) => Format::Folded,
            _ => self.format,
        }
    }

    /// Whether an option means nothing beside the others.
    pub(crate) fn leaves_idle(&self, option: &str) -> bool {
        option == "inverted" && self.format() == Format::Folded
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let format = arguments.format();
    if format == Format::Folded && arguments.inverted {
        bail!("folded stacks have the caller first: --inverted is for pages and pictures");
    }
    let mut profile = arguments.recording.profile()?;
    arguments.recording.say_what_is_left_out(&profile);
    // Whoever reads the page did not see what the command said.
    profile.health.warnings.extend(reading::left_out(&profile));
    let output = arguments.output.clone().unwrap_or_else(|| match format {
        Format::Html => "flame.html".into(),
        Format::Svg => "flame.svg".into(),
        Format::Folded => "flame.folded".into(),
    });
    if output == Path::new("-") {
        return super::to_stdout(|out| draw(&profile, format, arguments.inverted, out));
    }
    let (what, begins) = match format {
        Format::Html => ("page", &b"<!doctype html>"[..]),
        Format::Svg => ("picture", &b"<svg"[..]),
        // Lines like any others: the name has to say that they are not missed.
        Format::Folded if output.extension() == Some("folded".as_ref()) => {
            ("folded stacks", &b""[..])
        }
        Format::Folded => ("file *.folded", &b"\0"[..]),
    };
    super::fill(&output, arguments.force, &[], (what, begins), |out| {
        draw(&profile, format, arguments.inverted, out)
    })?;
    super::print(format!("wrote {}\n", output.display()).as_bytes())
}

fn draw(
    profile: &Profile,
    format: Format,
    inverted: bool,
    out: &mut impl Write,
) -> std::io::Result<()> {
    match format {
        Format::Html => {
            page::write(profile, &page::Options { bottom_up: inverted, ..Default::default() }, out)
        }
        Format::Folded => folded::write(profile, folded::Unit::Nanoseconds, out),
        Format::Svg => {
            let whole = aggregate::merged(&profile.threads);
            let (tree, note) = if inverted {
                (aggregate::bottom_up(&whole), "functions by their own time, callers above")
            } else {
                (whole, "")
            };
            let options = svg::Options {
                title: profile.info.command.join(" "),
                note: note.to_owned(),
                ..svg::Options::default()
            };
            svg::write(&tree, &profile.functions, &profile.info, &options, out)
        }
    }
}
