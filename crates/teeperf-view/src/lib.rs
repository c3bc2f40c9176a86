//! Draws a profile. Each form is one module: text for a terminal, JSON, folded stacks,
//! a flame graph as SVG, a page that opens offline, and the lines of a dump.
//!
//! Nothing here reads recordings, files, the terminal or the environment: a profile goes
//! in, text goes out. Names are hostile until they are escaped for the form at hand.

pub mod annotate;
pub mod diff;
pub mod dump;
pub mod findings;
pub mod folded;
pub mod info;
pub mod json;
pub mod page;
pub mod style;
pub mod suggestion;
pub mod svg;
pub mod tables;
pub mod text;

mod about;
mod advice;
mod apart;
mod cells;
mod columns;
mod command;
mod layout;
mod names;
mod palette;
mod prune;
mod timeline;
mod units;

pub use names::{printable, printable_lines};

use teeperf_profile::model::Info;

/// File name of the program that was run, as its module is called; empty when unknown.
fn program(info: &Info) -> &str {
    info.command.first().map_or("", |path| path.rsplit('/').next().unwrap_or_default())
}
