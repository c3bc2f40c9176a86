//! `teeperf pack`: a recording with the files that it names, for another machine.

use super::made;
use super::progress::Progress;
use super::servers::Servers;
use super::sources;
use crate::{recordings, shell};
use anyhow::{Result, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use teeperf_edit::pack::{MAGIC, Pack, pack};
use teeperf_symbols::Search;
use teeperf_view::printable;

/// Packs a recording with the files that it names into one archive, to be read on another machine
///
/// Programs and libraries whose build-ids are those recorded, their debug files, of samples what the kernel says of its functions,
/// and with --sources the sources that functions are from. `teeperf report` and the others read the archive as it is; `tar --zstd -xf` unpacks it.
///
/// The program says which files its sources are. Only those below the project's folder are packed: the nearest folder from here with
/// a teeperf.toml or a repository, or this folder. --sources-from adds folders. Hidden files stay out. What is packed, and what is not, is
/// listed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf pack program.teeperf -o program.tar.zst
  teeperf pack --sources -o slow.tar.zst          the newest recording here, and sources
  teeperf pack --sources --sources-from ~/lib -o slow.tar.zst      those of a library as well
  teeperf report program.tar.zst                  on another machine")]
pub(crate) struct Arguments {
    /// The recording [default: the newest *.teeperf in this folder]
    recording: Option<PathBuf>,
    /// The archive
    #[arg(short, long, value_name = "FILE.tar.zst")]
    output: PathBuf,
    /// Sources too, those below the project's folder
    #[arg(long)]
    sources: bool,
    /// A folder whose sources are packed as well; may be given several times
    #[arg(long, value_name = "DIR", requires = "sources")]
    sources_from: Vec<PathBuf>,
    /// Files of images, such as trusted applications, that the recording does not name
    #[arg(long, value_name = "FILE")]
    elf: Vec<PathBuf>,
    /// Ask the servers of DEBUGINFOD_URLS, by debuginfod-find of elfutils, for files that are not here. What a server
    /// is told is which builds were recorded
    #[arg(long)]
    debuginfod: bool,
    /// Overwrite a file that is no archive
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let output = &arguments.output;
    let path = recordings::named_or_newest_but(arguments.recording.as_deref(), output)?;
    let is_stdin = path == Path::new("/dev/stdin");
    ensure!(
        path.is_dir() || path.is_file() && !is_stdin,
        "{} is no file: pack recordings that are, or folders of `record --rotate`",
        path.display()
    );
    let is_archive = recordings::starts_with(&path, &MAGIC);
    ensure!(!is_archive, "{} is an archive already, and no recording", path.display());
    ensure!(output != Path::new("-"), "an archive is a file: name one with -o");
    let target = made::target(output, arguments.force, &[&path], "archive", &MAGIC)?;
    let mut search = Search::default();
    search.images.clone_from(&arguments.elf);
    let servers = arguments.debuginfod.then(Servers::of_user).transpose();
    let servers = servers.map_err(anyhow::Error::msg)?;
    search.servers = servers.as_ref().map(Servers::shared);
    let sources = arguments.sources.then(|| sources::shown(&arguments.sources_from)).transpose()?;
    let wanted = Pack { sources, search };
    let writer = format!("teeperf {}", env!("CARGO_PKG_VERSION"));
    let mut progress = Progress::of("packing", &path);
    let packed = pack(&path, &wanted, &writer, target.file()?, &mut |bytes| progress.at(bytes))?;
    target.finish()?;
    drop(progress);
    for text in &packed.missing {
        note!("teeperf: not packed: {}", printable(text));
    }
    sources::tell(&packed);
    let bytes = output.metadata().map_or(0, |about| about.len());
    note!(
        "teeperf: the recording and {} file{}, {} in {}; next: teeperf report {}",
        packed.files,
        if packed.files == 1 { "" } else { "s" },
        super::live::bytes(bytes),
        output.display(),
        shell::typed(output),
    );
    Ok(())
}
