//! What the commands that read recordings have in common: which recording, which part of it,
//! and how text may look.

use super::terminal;
use crate::recordings;
use anyhow::{Result, bail};
use clap::Args;
use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use teeperf_profile::model::Profile;
use teeperf_profile::selection::Selection;
use teeperf_profile::{MAX_PATHS, Options, Recording};
use teeperf_view::style::Style;

const MOST_PATHS: NonZeroUsize = NonZeroUsize::new(MAX_PATHS).expect("there is room for some");

/// A recording, and what of it is shown.
#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct Arguments {
    /// The recording; - is standard input [default: the newest *.teeperf in this folder]
    pub(crate) recording: Option<PathBuf>,
    /// Show only call paths through functions whose name contains this; * stands for anything
    #[arg(long, value_name = "NAME")]
    focus: Vec<String>,
    /// Leave out call paths through functions whose name contains this
    #[arg(long, value_name = "NAME")]
    ignore: Vec<String>,
    /// Show only threads of this id or name
    #[arg(long, value_name = "THREAD")]
    thread: Vec<String>,
    /// Leave the cost of the hooks in the times
    #[arg(long)]
    keep_hook_cost: bool,
    /// Most call paths to tell apart, at some 150 bytes of memory each; calls on later ones are
    /// counted by function
    #[arg(long, value_name = "N", default_value_t = MOST_PATHS, hide_short_help = true)]
    most_paths: NonZeroUsize,
}

impl Arguments {
    /// Reads the recording; the part of its profile that was asked for.
    pub(crate) fn profile(&self) -> Result<Profile> {
        let path = recordings::named_or_newest(self.recording.as_deref())?;
        let mut options = Options {
            keep_hook_cost: self.keep_hook_cost,
            most_paths: self.most_paths.get(),
            ..Options::default()
        };
        let profile = Recording::open(path)?.replay(&mut options)?;
        let selection = self.selection();
        if selection.is_all() {
            return Ok(profile);
        }
        let had_calls = has_calls(&profile);
        let part = selection.of(profile);
        if had_calls && !has_calls(&part) {
            bail!("nothing in the recording fits: {}", self.selection_in_words());
        }
        Ok(part)
    }

    fn selection(&self) -> Selection {
        Selection {
            threads: self.thread.clone(),
            focus: self.focus.clone(),
            ignore: self.ignore.clone(),
        }
    }

    /// The part that was asked for, such as `focus on "parse"`; empty when it is all.
    pub(crate) fn selection_in_words(&self) -> String {
        let mut parts = Vec::new();
        for (word, names) in
            [("focus on", &self.focus), ("without", &self.ignore), ("thread", &self.thread)]
        {
            parts.extend(names.iter().map(|name| format!("{word} {name:?}")));
        }
        parts.join(", ")
    }
}

fn has_calls(profile: &Profile) -> bool {
    profile.threads.iter().flat_map(|thread| &thread.tree.nodes).any(|node| node.calls > 0)
}

/// Colour on terminals only, and as wide as they are; see <https://no-color.org>.
pub(crate) fn style() -> Style {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return Style::default();
    }
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|text| !text.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
    let width = terminal::size(&out).map_or(Style::default().width, |(_, columns)| columns.into());
    Style { colour: !no_colour && !dumb, width }
}
