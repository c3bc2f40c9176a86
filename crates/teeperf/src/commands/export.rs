//! `teeperf export`: a recording in the format of another profiler.

use super::interrupt;
use super::reading::{self, CALLS, Source};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use teeperf_interop::gmon::{self, Export, Names, Which};
use teeperf_interop::perf_data::{self, LeftOut, Paths, WriteError, Written};
use teeperf_profile::Packets;
use teeperf_profile::model::Unit;
use teeperf_view::findings;

/// Writes a recording in the format of another profiler
///
/// gmon: for gprof. Calls are exact; times become samples. A file is of one program or library: of the
/// program that was run, unless --module or --elf names another. Written as gmon.out, or, where that is
/// there already, as gmon.1.out, gmon.2.out and so on.
///
/// perf: for `perf report`, `perf script`, `perf annotate`, and others that read perf.data. Samples, with what they were taken of,
/// as they are: of a recording that has some, or of another perf.data. Of a recording that has none, and with --event calls, the call
/// paths that hooks saw: of each path a sample that weighs the time it has itself, and one that weighs its calls. So figures are exact; when
/// it was is not in them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf export --to gmon && gprof ./program gmon.out      the newest recording in this folder
  teeperf export --to gmon --module libz.so.1 -o libz.gmon  a library that the program used
  teeperf export --to gmon --thread worker -o - | gprof -b ./program -
  teeperf export --to perf -o perf.data && perf report      what was sampled, in perf; or hooks' call paths
  teeperf export --to perf --event calls --thread worker && perf report --no-children -g caller")]
pub(crate) struct Arguments {
    #[command(flatten)]
    recording: reading::Arguments,
    /// Which format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// Where to write; - is standard output [default: gmon.out, or the next free number; perf.data, and what is there becomes perf.data.old]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite a file that is something else
    #[arg(long, requires = "output")]
    force: bool,
    /// Of this module: its path, or its file name [default: the program]
    #[arg(long, value_name = "NAME", conflicts_with = "elf")]
    module: Option<String>,
    /// Samples a second that times become. Files that `gprof -s` is to sum must have the same
    #[arg(long, value_name = "HZ", default_value_t = gmon::RATE, value_parser = rate())]
    rate: u32,
}

/// Formats of others.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// gmon.out, for gprof
    Gmon,
    /// perf.data, for perf and what reads its files
    Perf,
}

/// Where perf writes, and looks.
const PERF_DATA: &str = "perf.data";
/// Why of samples no part is written.
const AS_THEY_ARE: &str = "there are samples and no calls: samples are written as they are, and --event, --focus, --ignore, --path, \
                           --root, --group, --fold-unhooked, --thread, --since and --until do not go with --to perf";
/// Most numbers tried before it is said that there are too many files.
const MOST_NUMBERS: u32 = 10_000;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match arguments.to {
        Format::Gmon => to_gmon(arguments),
        Format::Perf => to_perf(arguments),
    }
}

/// What was sampled, as it is; without samples, and where that is asked for, call paths.
fn to_perf(arguments: &Arguments) -> Result<()> {
    if arguments.module.is_some() {
        bail!("--module is for gmon files, which are of one module: perf's are of all");
    }
    let path = arguments.output.clone().unwrap_or_else(|| PathBuf::from(PERF_DATA));
    if path == Path::new("-") {
        bail!("a perf.data says at its beginning what stands behind it: name a file with -o");
    }
    let recording = &arguments.recording;
    match recording.event() {
        Some(CALLS) => return calls_to_perf(arguments, &path),
        Some(_) => {
            bail!("all events are written, without --event; --event calls writes call paths")
        }
        None => {}
    }
    let source = recording.open()?;
    match source {
        Source::PerfData(..) if recording.is_of_paths() => bail!(AS_THEY_ARE),
        Source::Log(..) => return calls_to_perf(arguments, &path),
        // Samples are written as they are, of paths there can be a part.
        Source::Recording(..) if recording.is_of_paths() => return calls_to_perf(arguments, &path),
        _ => {}
    }
    let path_read = recording.path()?;
    let can_be_read_again = path_read.is_file() || path_read.is_dir();
    let has_calls = matches!(source, Source::Recording(..));
    let mut packets = recording.unsaid.packets(source)?;
    let outcome = match write_for_perf(arguments, &path, &mut *packets) {
        Err(error)
            if has_calls && matches!(error.downcast_ref(), Some(WriteError::NoSamples { .. })) =>
        {
            if !can_be_read_again {
                bail!("{error}; --event calls writes call paths as such");
            }
            return calls_to_perf(arguments, &path);
        }
        outcome => outcome?,
    };
    for warning in packets.take_warnings() {
        note!("teeperf: {}: {warning}", recording.path()?.display());
    }
    say_what_perf_lacks(&outcome);
    let path = path.display();
    super::print(
        format!("wrote {path}, {} samples; to read it: perf report -i {path}\n", outcome.samples)
            .as_bytes(),
    )
}

/// Call paths that hooks saw, as samples that weigh what these took.
fn calls_to_perf(arguments: &Arguments, path: &Path) -> Result<()> {
    let profile = arguments.recording.profile_of(arguments.recording.open()?, true)?;
    if profile.health.events == 0 {
        bail!(
            "there are no samples and no calls in it: nothing to export; next: teeperf doctor {}",
            arguments.recording.path()?.display()
        );
    }
    if profile.info.is_sampled() {
        bail!(AS_THEY_ARE);
    }
    for finding in findings::of(&profile).iter().filter(|finding| finding.warning) {
        note!("teeperf: {}", format!("{} {}", finding.what, finding.next).trim_end());
    }
    let mut paths = Paths::new(&profile);
    let outcome = write_for_perf(arguments, path, &mut paths)?;
    let LeftOut { nameless_ns, all_ns, shortened, missing } = paths.left_out();
    if *nameless_ns > 0.0 {
        note!(
            "teeperf: {:.1} % of the time is of functions whose address is not known: perf calls them [unknown]",
            nameless_ns / all_ns * 100.0
        );
    }
    for module in missing {
        note!(
            "teeperf: {module} is not there, or no longer what was recorded: perf may have no names for it"
        );
    }
    let shortened = shortened + outcome.shortened;
    if shortened > 0 {
        note!(
            "teeperf: {shortened} call paths are too deep for perf: their outermost functions are left out"
        );
    }
    let path = path.display();
    let samples = outcome.samples;
    super::print(
        format!(
            "wrote {path}, {samples} samples, which weigh what call paths took, and their calls; to read it: \
             perf report --no-children -i {path}\n"
        )
        .as_bytes(),
    )
}

/// Writes packets of samples.
fn write_for_perf(
    arguments: &Arguments,
    path: &Path,
    packets: &mut dyn Packets,
) -> Result<Written> {
    const WRITER: &str = concat!("teeperf ", env!("CARGO_PKG_VERSION"));
    let from = arguments.recording.path()?;
    let search = arguments.recording.unsaid.search(&from);
    let (mut outcome, mut failed) = (Written::default(), None);
    let written =
        super::fill(path, arguments.force, &[&from], ("file of perf", perf_data::MAGIC), |out| {
            match perf_data::write(packets, WRITER, search.clone(), out) {
                Ok(written) => {
                    outcome = written;
                    if arguments.output.is_none() {
                        keep()?;
                    }
                }
                Err(WriteError::Output(error)) => return Err(error),
                Err(error) => {
                    failed = Some(error);
                    return Err(ErrorKind::InvalidData.into());
                }
            }
            Ok(())
        });
    match failed {
        Some(error) => Err(error.into()),
        None => written.map(|()| outcome),
    }
}

/// What stands at perf's own name is kept as perf keeps it.
fn keep() -> std::io::Result<()> {
    let (there, old) = (Path::new(PERF_DATA), Path::new("perf.data.old"));
    if !there.is_file() {
        return Ok(());
    }
    match std::fs::remove_file(old) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Of a link, what it leads to is what is written over. Not every file system has a second name for a file.
    let there = there.canonicalize()?;
    std::fs::hard_link(&there, old).or_else(|_| std::fs::copy(&there, old).map(drop))
}

fn say_what_perf_lacks(written: &Written) {
    for (count, what) in [
        (written.of_no_event, "samples are of events that are not named before them, and left out"),
        (
            written.shortened,
            "samples have more than a record of perf's has room for, or than their event is said to have: that is left out",
        ),
        (
            written.late,
            "records come too late to be put in the order of time: perf may complain of them",
        ),
        (written.unreadable, "packets of samples cannot be read, and are left out"),
    ] {
        if count > 0 {
            note!("teeperf: {count} {what}");
        }
    }
}

fn to_gmon(arguments: &Arguments) -> Result<()> {
    let source = arguments.recording.open()?;
    if let (Source::Log(_, name), None) = (&source, arguments.recording.unsaid.program()?) {
        bail!("{name} has addresses and no names, and gprof needs the program: name it with --elf");
    }
    let profile = arguments.recording.profile_of(source, true)?;
    if profile.info.unit == Unit::Counts {
        bail!(
            "gprof's files have seconds, and how fast the clock went is not known: --counter-hz says it of a TEE-Perf log"
        );
    }
    let names = arguments.recording.unsaid.program()?.map(Names::open).transpose()?;
    let which = match (&names, &arguments.module) {
        (Some(names), _) => Which::Elf(names),
        (None, Some(name)) => Which::Named(name),
        (None, None) => Which::Program,
    };
    let export = gmon::export(&profile, which, arguments.rate)?;
    for finding in findings::of(&profile).iter().filter(|finding| finding.warning) {
        note!("teeperf: {}", format!("{} {}", finding.what, finding.next).trim_end());
    }
    say_what_is_left_out(&export);
    if let Some(doubt) = &export.doubt {
        note!(
            "teeperf: {doubt}; what is written is of {} as it was recorded: with any other file gprof names \
             wrong functions",
            export.module
        );
    }
    if arguments.output.as_deref() == Some(Path::new("-")) {
        return super::to_stdout(|out| export.gmon.write(out));
    }
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => interrupt::before_end(|| {
            let path = first_free(Path::new(""))?;
            let taken = path.clone();
            Ok((path, move || give_up(&taken)))
        })?,
    };
    super::fill(&path, arguments.force, &[], ("gmon file", gmon::MAGIC), |out| {
        export.gmon.write(out)
    })
    .inspect_err(|_| give_up(&path))?;
    let program = names.as_ref().and_then(Names::program).map_or(&*export.module, |(path, _)| path);
    let path = path.display();
    let line = match export.doubt {
        Some(_) => format!("wrote {path}; gprof reads it with the file that was recorded\n"),
        None => format!("wrote {path}; to read it: gprof {program} {path}\n"),
    };
    super::print(line.as_bytes())
}

fn say_what_is_left_out(export: &Export) {
    let Export { module, left_out, .. } = export;
    if left_out.ns > 0.0 {
        let others = match left_out.modules.as_slice() {
            [] => "functions without an address".to_owned(),
            modules => modules.join(", "),
        };
        note!(
            "teeperf: {:.1} % of the time is not of {module}, and not in the file, but of {others}",
            left_out.share * 100.0
        );
    }
    if left_out.calls_without_room > 0 {
        note!(
            "teeperf: {} calls found no room on their paths, so that their callers are not known: these are address 0, \
             and gprof does not count the calls",
            left_out.calls_without_room
        );
    }
    if left_out.calls_by_others > 0 {
        note!(
            "teeperf: {} calls came from elsewhere than {module}: their caller is address 0, and gprof does \
             not count them",
            left_out.calls_by_others
        );
    }
}

/// `gmon.out`, or the first of `gmon.1.out`, `gmon.2.out` and so on that is not there.
/// It is there from then on, and empty.
fn first_free(folder: &Path) -> Result<PathBuf> {
    for number in 0..MOST_NUMBERS {
        let path = folder.join(match number {
            0 => "gmon.out".to_owned(),
            number => format!("gmon.{number}.out"),
        });
        match File::create_new(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot write {}", path.display()));
            }
        }
    }
    bail!("there are {MOST_NUMBERS} files gmon.*.out here already; name one with -o")
}

/// Takes away a name that nothing was written under.
fn give_up(path: &Path) {
    if path.metadata().is_ok_and(|about| about.is_file() && about.len() == 0) {
        let _ = std::fs::remove_file(path);
    }
}

fn rate() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(i64::from(*gmon::RATES.start())..=i64::from(*gmon::RATES.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let name = || first_free(folder.path()).unwrap().file_name().unwrap().to_owned();
        assert_eq!([name(), name(), name()], ["gmon.out", "gmon.1.out", "gmon.2.out"]);
        std::fs::remove_file(folder.path().join("gmon.1.out")).unwrap();
        assert_eq!([name(), name()], ["gmon.1.out", "gmon.3.out"]);
    }
}
