//! `teeperf suggest`: what to leave out when the program is built again.

use super::amounts;
use super::reading::Arguments as Reading;
use crate::compiler::exclusions;
use crate::config::files;
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::fmt::Write;
use std::io::Write as _;
use teeperf_edit::target::Target;
use teeperf_profile::suggest::{self, Options};
use teeperf_select::Pattern;
use teeperf_view::suggestion;

/// Suggests functions to leave out of a build: most events, least told
#[derive(Args, Debug)]
#[command(after_help = "\
Each call that is recorded costs its hooks, and most calls are of a few small functions. Without its hooks a
function's own time is its caller's (MOVED), and of the paths through it a level is gone (LEVELS: of the time
at the end of a path with n functions each tells an nth). Functions are left out in the order of events for
what they tell, most first, until so many events are gone. Totals of what stays remain as they are.

Times of small functions are what is known least: their bounds stand in the report.

Examples:
  teeperf suggest                             a table, of the newest recording in this folder
  teeperf suggest --shares 5%                 but to no function may more than 5 % of the time move
  teeperf suggest --write                     for the next build: adds the list to the project's teeperf.toml; then `make clean` first
  TEEPERF_CC_OPTIONS=\"$(teeperf suggest --flags)\" make CC=\"teeperf cc\"")]
pub(crate) struct Arguments {
    #[command(flatten)]
    recording: Reading,
    /// The part of all events that is to go
    #[arg(long, value_name = "PART", default_value = "90%", value_parser = amounts::part)]
    events: f64,
    /// The most of the time that may move to any one function that stays, and for which one may be
    /// a level of its paths
    #[arg(long, value_name = "PART", default_value = "100%", value_parser = amounts::part)]
    shares: f64,
    /// A whole teeperf.toml: a section `[build]` with the list. Where there is a file, --write adds to it
    #[arg(long, conflicts_with_all = ["flags", "json"])]
    toml: bool,
    /// Adds the list to the teeperf.toml that holds here, which is made if there is none; what is in it stays
    #[arg(long, conflicts_with_all = ["toml", "flags", "json"])]
    write: bool,
    /// Options of `teeperf cc` on one line, for TEEPERF_CC_OPTIONS
    #[arg(long, conflicts_with = "json")]
    flags: bool,
    /// JSON on one line. Times are nanoseconds
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let profile = arguments.recording.profile()?;
    ensure!(
        !profile.info.is_sampled(),
        "this is of samples: `suggest` is about hooks, of which samples know nothing; next: record the program with hooks"
    );
    let options = Options { events: arguments.events, shares: arguments.shares };
    let found = suggest::suggest(&profile, &options);
    ensure!(found.calls > 0, "the recording has no calls of which the paths are known");
    if arguments.json {
        return super::to_stdout(|out| suggestion::write_json(&found, out));
    }
    let patterns = found.functions.iter().map(|left| Pattern::of_name(&left.name).to_string());
    if arguments.toml {
        let mut text =
            "# A whole teeperf.toml. To add this to one that is there: teeperf suggest --write\n\
                        [build]\nexclude = [\n"
                .to_owned();
        for pattern in patterns {
            writeln!(text, "    {},", toml::Value::String(pattern))?;
        }
        text += "]\n";
        return super::print(text.as_bytes());
    }
    if arguments.write {
        return write(&patterns.collect::<Vec<_>>());
    }
    if arguments.flags {
        let quoted = |pattern: String| {
            let text = pattern.replace('\\', r"\\").replace('"', r#"\""#);
            format!("\"--teeperf-exclude={text}\"")
        };
        let line: Vec<String> = patterns.map(quoted).collect();
        return super::print((line.join(" ") + "\n").as_bytes());
    }
    super::to_stdout(|out| suggestion::write(&found, &options, &super::terminal::style(), out))
}

/// Adds patterns to the settings that hold here.
fn write(patterns: &[String]) -> Result<()> {
    let path = files::place()?;
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.with_context(|| path.display().to_string())?,
    };
    let (text, added) = exclusions(&text, patterns).with_context(|| path.display().to_string())?;
    if added > 0 {
        let target = Target::open(&path, &[])?;
        target.file()?.write_all(text.as_bytes()).with_context(|| path.display().to_string())?;
        target.finish()?;
    }
    let were_there = match patterns.len() - added {
        0 => String::new(),
        count => format!(", {count} were there"),
    };
    let s = if added == 1 { "" } else { "s" };
    note!(
        "teeperf: {added} function{s} added to {}{were_there}; next: build again from scratch, as after `make clean`, since \
         objects that are there keep their hooks",
        path.display()
    );
    Ok(())
}
