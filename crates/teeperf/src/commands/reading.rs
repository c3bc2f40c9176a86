//! What the commands that read recordings have in common: which recording, which part of it,
//! and how text may look.

use super::progress::Progress;
use super::servers::Servers;
use super::{amounts, window};
use crate::recordings;
use anyhow::{Result, bail};
use clap::Args;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Cursor, Read};
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use teeperf_edit::{pack, rotate};
use teeperf_interop::calls::Program;
use teeperf_interop::gmon;
use teeperf_interop::perf_data::{self, Reader};
use teeperf_interop::tee_perf::{self, Log};
use teeperf_profile::model::Profile;
use teeperf_profile::paths::PathPattern;
use teeperf_profile::pattern::{Found, Pattern};
use teeperf_profile::selection::{Group, Selection};
use teeperf_profile::{Error, MAX_PATHS, Options, Packets, Recording, packets};
use teeperf_symbols::{Debuginfod, Search, Unpacked};
use teeperf_view::printable;

/// What calls and returns are called where an event is asked for.
pub(crate) const CALLS: &str = "calls";
const MOST_PATHS: NonZeroUsize = NonZeroUsize::new(MAX_PATHS).expect("there is room for some");

/// A recording, and what of it is shown.
#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct Arguments {
    /// The recording; - is standard input [default: the newest *.teeperf in this folder]
    pub(crate) recording: Option<PathBuf>,
    #[command(flatten)]
    part: Part,
}

/// What of a recording is shown, and how it is read.
#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct Part {
    /// Show only call paths through these functions (see `teeperf help patterns`)
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::new)]
    focus: Vec<Pattern>,
    /// Leave out call paths through these functions
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::new)]
    ignore: Vec<Pattern>,
    /// Show only calls whose path, written main;parse;malloc, fits this regular expression
    #[arg(long, value_name = "REGEX", value_parser = PathPattern::new)]
    path: Vec<PathPattern>,
    /// Show call paths from these functions on, summed over all that called them
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::new)]
    root: Vec<Pattern>,
    /// Show functions as one, `[NAME]`, such as alloc=malloc,free,'new*'
    #[arg(long, value_name = "NAME=PATTERN,…", value_parser = Group::new)]
    group: Vec<Group>,
    /// Add the time of code without hooks, such as libraries and the kernel, to the function that
    /// called it
    #[arg(long)]
    fold_unhooked: bool,
    #[command(flatten)]
    window: window::Arguments,
    /// Show only threads of this id or name
    #[arg(long, value_name = "THREAD", value_parser = Pattern::new)]
    thread: Vec<Pattern>,
    /// Of a recording that has calls and samples, or samples of several events, which to show: `calls`, or the event's
    /// name, such as cpu-clock
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// Of samples: functions as they were compiled; what was inlined into them is theirs
    #[arg(long)]
    no_inline: bool,
    #[command(flatten)]
    pub(crate) unsaid: Unsaid,
    /// Most call paths to tell apart, at some 150 bytes of memory each; calls on later ones are
    /// counted by function
    #[arg(long, value_name = "N", default_value_t = MOST_PATHS, hide_short_help = true)]
    most_paths: NonZeroUsize,
    /// What was said of patterns: once, however many recordings are read.
    #[arg(skip)]
    said: RefCell<BTreeSet<String>>,
}

/// What is wanted of a profile beyond the usual.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// Functions are told apart by where their code stands.
    pub(crate) by_place: bool,
    /// Each call is timed.
    pub(crate) lengths: bool,
    /// Samples are counted by source line.
    pub(crate) lines: bool,
}

/// What the file may not say by itself.
#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct Unsaid {
    /// A file that gives names to addresses: the program of a gmon file or of a TEE-Perf log, or an image, such as
    /// a trusted application, whose symbols the recording does not have
    #[arg(long, value_name = "FILE")]
    elf: Vec<PathBuf>,
    /// Where the files of the machine that was sampled are, by the paths that they have there, as perf has it: for a
    /// recording of samples or a perf.data from another machine
    #[arg(long, value_name = "FOLDER")]
    symfs: Option<PathBuf>,
    /// Ask the servers of DEBUGINFOD_URLS, by debuginfod-find of elfutils, for files with names of functions that are not
    /// here. What a server is told is which builds were sampled
    #[arg(long)]
    debuginfod: bool,
    /// Servers, once they were asked for.
    #[arg(skip)]
    servers: OnceLock<Option<Servers>>,
    /// Where the program was loaded, if addresses in a gmon file or a TEE-Perf log are not those of the ELF file:
    /// how much higher they are, such as 0x40000000
    #[arg(long, value_name = "ADDRESS", value_parser = amounts::address)]
    pub(crate) bias: Option<u64>,
    /// How fast the counter of a TEE-Perf log went, such as 400MHz: for times instead of counts
    #[arg(long, value_name = "RATE", value_parser = amounts::frequency)]
    pub(crate) counter_hz: Option<u64>,
}

/// A file that was opened, by how it begins, and its name.
pub(crate) enum Source {
    /// A recording, or what may be one.
    Recording(Recording<Box<dyn Read>>, String),
    /// A log of the original TEE-Perf.
    Log(Box<dyn Read>, String),
    /// A `perf.data`.
    PerfData(Box<dyn Packets>, String),
    /// A file of gprof.
    Gmon(Box<dyn Read>, String),
}

impl Source {
    /// The recording that it is, and its name.
    pub(crate) fn recording(self) -> Result<(Recording<Box<dyn Read>>, String)> {
        match self {
            Self::Recording(recording, name) => Ok((recording, name)),
            Self::Gmon(_, name) => bail!("{name} is a gmon file, of gprof, and no recording"),
            Self::Log(_, name) => bail!("{name} is a log of TEE-Perf, and no recording"),
            Self::PerfData(_, name) => bail!(
                "{name} is a file of perf, and no recording; next: `teeperf report {name}` shows what is in it, \
                 `teeperf diff` compares it with others"
            ),
        }
    }
}

impl Unsaid {
    /// The one file that gives names, if there is one.
    pub(crate) fn program(&self) -> Result<Option<&Path>> {
        match &self.elf[..] {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            _ => bail!("this is of one program or library: name one with --elf"),
        }
    }

    /// Where to look for files with names of functions, of what is read from `path`: an archive has its own.
    pub(crate) fn search(&self, path: &Path) -> Search {
        let unpacked =
            recordings::is_archive(path).then(|| Arc::new(unpacked(path, pack::Of::Samples)));
        let root = self.symfs.clone();
        // With `--kcore` perf keeps the kernel beside its file.
        let kernel = Some(path.join("kcore_dir")).filter(|folder| folder.is_dir());
        let (images, servers) = (self.elf.clone(), self.servers());
        Search { images, root, kernel, unpacked, servers, ..Search::default() }
    }

    /// Where to look for the code of functions that replay of `path` has named already.
    pub(crate) fn search_for_code(&self, path: &Path) -> Search {
        let unpacked =
            recordings::is_archive(path).then(|| Arc::new(unpacked(path, pack::Of::Any)));
        let (root, servers) = (self.symfs.clone(), self.servers());
        Search { root, unpacked, servers, ..Search::default() }
    }

    /// Servers of debug information, where the user allows that they are asked.
    fn servers(&self) -> Option<Arc<Debuginfod>> {
        let found = self.servers.get_or_init(|| {
            let told = self.debuginfod.then(Servers::of_user)?;
            told.inspect_err(|text| note!("teeperf: {text}")).ok()
        });
        found.as_ref().map(Servers::shared)
    }

    /// What a file that was opened has one by one.
    pub(crate) fn packets(&self, source: Source) -> Result<Box<dyn Packets>> {
        let is_told = self.bias.is_some() || self.counter_hz.is_some();
        match source {
            Source::PerfData(_, name) if is_told => bail!(
                "{name} is a file of perf: --bias and --counter-hz are for gmon files and logs of TEE-Perf"
            ),
            Source::PerfData(packets, _) => Ok(packets),
            Source::Recording(_, name) if is_told => bail!(
                "{name} does not begin as a gmon file or a log of TEE-Perf does: --bias and --counter-hz are for these. \
                 {}",
                old_gmon(&name)
            ),
            Source::Recording(recording, _) => Ok(Box::new(recording)),
            Source::Log(file, name) => {
                let program = self.program()?.map(Program::open).transpose()?;
                if program.is_none() && self.bias.is_some() {
                    bail!("--bias says where a program was loaded: name that with --elf");
                }
                let options =
                    tee_perf::Options { program, bias: self.bias, counter_hz: self.counter_hz };
                Ok(Box::new(Log::new(&name, file, options)?))
            }
            Source::Gmon(_, name) => bail!(
                "{name} is a gmon file: it knows who called whom, but no call paths, and this needs them; \
                 `teeperf report {name} --elf PROGRAM` shows what is in it"
            ),
        }
    }
}

impl Arguments {
    /// Reads the recording; the part of its profile that was asked for.
    pub(crate) fn profile(&self) -> Result<Profile> {
        self.profile_of(self.open()?, false)
    }

    /// Opens what is to be read.
    pub(crate) fn open(&self) -> Result<Source> {
        open(&self.path()?)
    }

    /// Reads what was opened; the part of its profile that was asked for. `by_place` has functions told apart by where
    /// their code stands.
    pub(crate) fn profile_of(&self, source: Source, by_place: bool) -> Result<Profile> {
        self.profile_with(source, Wanted { by_place, ..Wanted::default() })
    }

    /// The same, with what is wanted of it.
    pub(crate) fn profile_with(&self, source: Source, wanted: Wanted) -> Result<Profile> {
        self.part.profile_with(source, &self.path()?, wanted)
    }

    pub(crate) fn path(&self) -> Result<PathBuf> {
        recordings::named_or_newest(self.recording.as_deref())
    }
}

impl Deref for Arguments {
    type Target = Part;

    fn deref(&self) -> &Part {
        &self.part
    }
}

impl Part {
    /// Whether a part was asked for that only call paths, threads and events can tell.
    pub(crate) fn is_of_paths(&self) -> bool {
        !self.selection().is_all() || !self.window.is_all()
    }

    /// Which of calls and events was asked for.
    pub(crate) fn event(&self) -> Option<&str> {
        self.event.as_deref()
    }

    /// Reads what was opened, of a file of this path; the part of its profile that was asked for.
    pub(crate) fn profile_with(
        &self,
        source: Source,
        path: &Path,
        wanted: Wanted,
    ) -> Result<Profile> {
        let Wanted { by_place, lengths, lines } = wanted;
        let of_threads = Selection { threads: self.thread.clone(), ..Selection::default() };
        if lengths && self.selection() != of_threads {
            bail!(
                "lengths of calls are known by function and thread, and not by call path: --focus, --ignore, --path, \
                 --root, --group and --fold-unhooked do not go with them; --thread, --since and --until do"
            );
        }
        let mut packets = self.window.packets(source, &self.unsaid, path)?;
        let mut progress = Progress::of("reading", path);
        let mut told = |done: packets::Progress| progress.at(done.bytes);
        let mut options = Options {
            without_inlined: self.no_inline,
            most_paths: self.most_paths.get(),
            by_place,
            lengths,
            lines,
            goes_on: recordings::goes_on(path),
            search: self.unsaid.search(path),
            progress: Some(&mut told),
            ..Options::default()
        };
        let profile = packets::replay(&mut *packets, &mut options)?;
        drop(progress);
        let mut profile = self.of_event(profile, path)?;
        if !self.window.is_all() && profile.threads.is_empty() {
            note!("teeperf: no thread has written anything in this time");
        }
        let selection = self.selection();
        if selection.is_all() {
            return Ok(profile);
        }
        let lists = [&self.focus, &self.ignore, &self.root];
        for pattern in lists.into_iter().flatten() {
            self.found(pattern, &profile);
        }
        for pattern in self.ignore.iter().chain(self.grouped()) {
            if !pattern.among(&profile.functions).any() {
                self.say(format!("no function that was called fits {:?}", pattern.text()));
            }
        }
        let had_calls = has_calls(&profile);
        let beside = std::mem::take(&mut profile.beside);
        let mut part = selection.of(profile);
        part.beside = beside.into_iter().map(|profile| selection.of(profile)).collect();
        if had_calls && !has_calls(&part) {
            bail!(
                "nothing in {} fits: {}; next: name another recording, or `teeperf report {0}` to see what is in it",
                path.display(),
                self.selection_in_words()
            );
        }
        Ok(part)
    }

    /// What was asked for, of calls and events; where nothing was, all of it.
    fn of_event(&self, mut profile: Profile, path: &Path) -> Result<Profile> {
        let Some(wanted) = &self.event else { return Ok(profile) };
        let name = name_of;
        let beside = std::mem::take(&mut profile.beside);
        let (mut found, others): (Vec<_>, Vec<_>) =
            [profile].into_iter().chain(beside).partition(|profile| name(profile) == *wanted);
        match found.pop() {
            Some(found) => Ok(found),
            None => {
                let there: Vec<String> = others.iter().map(name).collect();
                bail!("{} has no {wanted:?}; it has: {}", path.display(), there.join(", "))
            }
        }
    }

    /// Where one event alone is shown of several: which are left out.
    pub(crate) fn say_what_is_left_out(&self, profile: &Profile) {
        left_out(profile).into_iter().for_each(|text| self.say(text));
    }

    /// The functions of a profile that a pattern means; says where it is taken for a part of their names.
    pub(crate) fn found(&self, pattern: &Pattern, profile: &Profile) -> Found {
        let found = pattern.among(&profile.functions);
        if found.is_part {
            let text = pattern.text();
            self.say(format!(
                "no function is called {text:?}: taken for a part of names, '*{text}*'"
            ));
        }
        found
    }

    fn grouped(&self) -> impl Iterator<Item = &Pattern> {
        self.group.iter().flat_map(|group| &group.patterns)
    }

    fn say(&self, text: String) {
        let mut said = self.said.borrow_mut();
        if !said.contains(&text) {
            note!("teeperf: {}", printable(&text));
            said.insert(text);
        }
    }

    fn selection(&self) -> Selection {
        Selection {
            threads: self.thread.clone(),
            focus: self.focus.clone(),
            ignore: self.ignore.clone(),
            paths: self.path.clone(),
            root: self.root.clone(),
            groups: self.group.clone(),
            fold_unhooked: self.fold_unhooked,
        }
    }

    /// The part that was asked for, such as `focus on "parse"`; empty when it is all.
    pub(crate) fn selection_in_words(&self) -> String {
        let mut parts = self.window.in_words();
        parts.extend(self.path.iter().map(|path| format!("paths with {:?}", path.text())));
        for (word, names) in [
            ("focus on", &self.focus),
            ("without", &self.ignore),
            ("from", &self.root),
            ("thread", &self.thread),
        ] {
            parts.extend(names.iter().map(|name| format!("{word} {:?}", name.text())));
        }
        if self.fold_unhooked {
            parts.push("code without hooks in its callers".into());
        }
        let mut names: Vec<&str> = self.group.iter().map(|group| &*group.name).collect();
        names.dedup();
        if !names.is_empty() {
            parts.push(format!("functions as {}", names.join(", ")));
        }
        parts.join(", ")
    }
}

/// Where one event alone is shown of several: which are left out, for people.
pub(crate) fn left_out(profile: &Profile) -> Option<String> {
    let shown = name_of(profile);
    let others: Vec<String> = profile.beside.iter().map(name_of).collect();
    let first = others.first()?;
    let all = others.join(", ");
    Some(format!("shown is {shown}; left out: {all}. --event {first:?} shows that one"))
}

/// What is asked for by `--event`.
fn name_of(profile: &Profile) -> String {
    match profile.info.is_sampled() {
        true => profile.info.event.clone(),
        false => CALLS.to_owned(),
    }
}

/// Files of an archive with code and symbols.
fn unpacked(path: &Path, of: pack::Of) -> Unpacked {
    let mut unpacked = Unpacked::default();
    let mut progress = Progress::of_what_comes("unpacking");
    let done = pack::unpack(path, of, &mut unpacked, &mut |bytes| progress.at(bytes));
    drop(progress);
    if let Err(error) = done {
        let path = path.display().to_string();
        note!(
            "teeperf: {}: {error}: functions of files that could not be unpacked have no names",
            printable(&path)
        );
    }
    unpacked
}

/// All of a recording, with what is wanted of it.
pub(crate) fn whole(source: Source, path: &Path, wanted: Wanted) -> Result<Profile> {
    let mut recording = source.recording()?.0;
    let Wanted { by_place, lengths, lines } = wanted;
    let mut progress = Progress::of("reading", path);
    let mut told = |done: packets::Progress| progress.at(done.bytes);
    let mut options =
        Options { by_place, lengths, lines, progress: Some(&mut told), ..Options::default() };
    Ok(packets::replay(&mut recording, &mut options)?)
}

/// Opens a recording, or a file of another profiler: which it is its first bytes say.
pub(crate) fn open(path: &Path) -> Result<Source> {
    let name = path.display().to_string();
    if path.is_dir() {
        if is_of_perf(path) {
            return Ok(Source::PerfData(Box::new(Reader::of_folder(&name, path)?), name));
        }
        let stream =
            rotate::open(path).map_err(|source| Error::Open { name: name.clone(), source })?;
        return Ok(Source::Recording(Recording::from_read(stream, name.clone()), name));
    }
    let mut file = File::open(path).map_err(|source| Error::Open { name: name.clone(), source })?;
    let mut start = Vec::new();
    (&mut file)
        .take(tee_perf::HEADER as u64)
        .read_to_end(&mut start)
        .map_err(|source| Error::Read { name: name.clone(), offset: 0, source })?;
    if start.is_empty() {
        return Err(Error::Empty { name }.into());
    }
    if start.starts_with(&pack::MAGIC) {
        let stream = pack::open(Cursor::new(start).chain(file)).map_err(|source| Error::Read {
            name: name.clone(),
            offset: 0,
            source,
        })?;
        return Ok(Source::Recording(Recording::from_read(stream, name.clone()), name));
    }
    if perf_data::is_perf_data(&start) {
        // What is known of the run stands at the end of a file, where only a pipe cannot be read first.
        let packets: Box<dyn Packets> = match file.metadata().is_ok_and(|about| about.is_file()) {
            true => Box::new(Reader::of_file(&name, file)?),
            false => Box::new(Reader::from_read(&name, Cursor::new(start).chain(file))?),
        };
        return Ok(Source::PerfData(packets, name));
    }
    // What begins as packets do is a recording, whatever else its numbers could mean.
    let is_recording = start.starts_with(&teeperf_wire::packet::SYNC);
    let is_log = !is_recording && tee_perf::is_log(&start);
    let is_gmon = start.starts_with(gmon::MAGIC);
    let stream: Box<dyn Read> = Box::new(Cursor::new(start).chain(file));
    Ok(match (is_gmon, is_log) {
        (true, _) => Source::Gmon(stream, name),
        (_, true) => Source::Log(stream, name),
        _ => Source::Recording(Recording::from_read(stream, name.clone()), name),
    })
}

/// Whether what stands there begins as something does that [`open`] reads.
pub(crate) fn can_be_read(path: &Path) -> bool {
    if path.is_dir() {
        return rotate::is_recording(path) || is_of_perf(path);
    }
    let mut start = Vec::new();
    // A pipe would not open until somebody writes to it.
    let file = Some(path).filter(|path| path.is_file()).and_then(|path| File::open(path).ok());
    let read = file.map(|file| file.take(tee_perf::HEADER as u64).read_to_end(&mut start));
    let begins = |magic: &[u8]| start.starts_with(magic);
    matches!(read, Some(Ok(_)))
        && (begins(&teeperf_wire::packet::SYNC)
            || begins(&pack::MAGIC)
            || begins(gmon::MAGIC)
            || perf_data::is_perf_data(&start)
            || tee_perf::is_log(&start))
}

/// Whether a folder is one of perf's, as `perf record` makes it with `--threads` and `--kcore`: the first of its files has the head.
fn is_of_perf(folder: &Path) -> bool {
    let head = folder.join(perf_data::HEAD_FILE);
    let mut start = Vec::new();
    let mut read = || {
        let file = File::open(&head).ok()?;
        file.take(perf_data::MAGIC.len() as u64).read_to_end(&mut start).ok()
    };
    folder.join(perf_data::HEAD_FILE).is_file()
        && read().is_some()
        && perf_data::is_perf_data(&start)
}

/// What to do with a file that begins like nothing that is known, and may be of gprof.
pub(crate) fn old_gmon(name: &str) -> String {
    format!(
        "If it is of the old BSD form, `gprof -s PROGRAM {name}` rewrites it as gmon.sum, which can be read"
    )
}

/// Whether there is anything to look at.
pub(crate) fn has_calls(profile: &Profile) -> bool {
    let has_arcs = profile.graph.as_ref().is_some_and(|graph| !graph.arcs.is_empty());
    has_arcs
        || profile.threads.iter().flat_map(|thread| &thread.tree.nodes).any(|node| node.calls > 0)
}
