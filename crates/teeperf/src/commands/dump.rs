//! `teeperf dump`: what a recording holds, as lines.

use super::progress::Progress;
use super::reading::{self, Source, Unsaid};
use super::window;
use crate::recordings;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use teeperf_profile::chunks::Decoder;
use teeperf_profile::{Packets as _, SiteNames};
use teeperf_view::dump::Dump;

/// Prints what a recording holds: a line for each packet and each event
///
/// Seven columns: offset, kind, process, thread, seconds, depth, and text to the line's end.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf dump | grep ' call ' | head             the first calls
  teeperf dump --packets                          packets alone
  teeperf dump --since 1.5s --until 1.6s          what happened then
  teeperf dump program.teeperf | awk '$4 == 4711'  one thread
  diff <(teeperf dump a.teeperf | cut -c 50-) <(teeperf dump b.teeperf | cut -c 50-)")]
pub(crate) struct Arguments {
    /// The recording [default: the newest *.teeperf in this folder]
    recording: Option<PathBuf>,
    /// Packets alone, without the events in them
    #[arg(long)]
    packets: bool,
    #[command(flatten)]
    window: window::Arguments,
    #[command(flatten)]
    unsaid: Unsaid,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let path = recordings::named_or_newest(arguments.recording.as_deref())?;
    let source = open(&path)?;
    let mut recording = arguments.window.packets(source, &arguments.unsaid, &path)?;
    let names = match arguments.packets {
        true => SiteNames::default(),
        false => names(&path, &arguments.unsaid)?,
    };
    let mut dump = Dump::new(names, !arguments.packets).context("no memory")?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    // On a terminal the lines themselves tell how far it is.
    let mut progress = (!std::io::stdout().is_terminal()).then(|| Progress::of("dumping", &path));
    loop {
        progress.iter_mut().for_each(|progress| progress.at(recording.offset()));
        let Some(packet) = recording.next_packet()? else { break };
        dump.packet(&packet, &mut out).context(super::STDOUT)?;
    }
    drop(progress);
    out.flush().context(super::STDOUT)?;
    for warning in recording.take_warnings() {
        note!("teeperf: {}: {warning}", path.display());
    }
    Ok(())
}

fn open(path: &Path) -> Result<Source> {
    match reading::open(path)? {
        Source::Gmon(_, name) => bail!(
            "{name} is a gmon file, of gprof, and no recording; `teeperf report {name} --elf PROGRAM` shows \
             what is in it"
        ),
        source => Ok(source),
    }
}

/// Names come behind the events that need them: a pass of their own. Of what is no file (a
/// pipe) there is only one pass, and no names but those of modules.
fn names(path: &Path, unsaid: &Unsaid) -> Result<SiteNames> {
    let mut names = SiteNames::new(unsaid.search(path));
    if path.is_file() || path.is_dir() {
        let mut decoder = Decoder::new().context("no memory")?;
        let mut recording = unsaid.packets(open(path)?)?;
        let mut progress = Progress::of("reading names", path);
        loop {
            progress.at(recording.offset());
            let Some(packet) = recording.next_packet()? else { break };
            names.packet(&packet, &mut decoder);
        }
    }
    Ok(names)
}
