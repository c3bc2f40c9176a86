//! `teeperf annotate`: source with calls and times in its margin.

use super::reading::{self, Source};
use super::sources as shown;
use crate::recordings;
use anyhow::{Result, bail, ensure};
use clap::Args;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use teeperf_profile::annotate::{Noted, Wanted, annotate};
use teeperf_profile::model::{Function, FunctionId, Place, Profile};
use teeperf_profile::samples::jitted::JITTED;
use teeperf_record::Search;
use teeperf_symbols::{CallSite, Lines, Refusal, Shown, Sources};
use teeperf_view::{annotate as view, printable};

/// Shows the source of functions with calls, self and total time in the margin
///
/// WHAT is a pattern for functions (see `teeperf help patterns`), or a source file: then all its functions that were
/// called. The recording may stand behind it as well.
/// Hooks know who called whom and not from where: what a function calls stands at a line (=>) where that line alone
/// calls it, which compilers say of optimised code with -g; else below the function, with the lines where they are known.
/// Of samples each line has those that were taken there; of a function that was inlined too.
///
/// Sources are looked for under the path that the debug information has, in archives of `teeperf pack --sources`, and
/// where --source-dir says. On a terminal any file that you can read is shown; elsewhere those below the project's folder (the nearest
/// one from here with a teeperf.toml or a repository, or this folder), those that --source-dir leads to, and --sources-from: the
/// program says which files its sources are, and others may read what is written.
#[derive(Args, Debug)]
#[command(
    override_usage = "teeperf annotate [OPTIONS] [RECORDING] WHAT",
    after_help = "\
Examples:
  teeperf annotate parse                           a function, in the newest recording here
  teeperf annotate program.teeperf src/parser.c    all functions of a file
  teeperf annotate program.tar.zst 'ns::Table::*'  packed with sources, on another machine
  teeperf annotate --source-dir /build/x=. parse   the sources were moved"
)]
pub(crate) struct Arguments {
    /// The recording, if it is not the newest *.teeperf in this folder; and a function or a source file
    #[arg(required = true, num_args = 1..=2, value_names = ["RECORDING", "WHAT"])]
    words: Vec<String>,
    #[command(flatten)]
    part: reading::Part,
    /// Where sources are that debug information has below another folder
    #[arg(long, value_name = "FROM=TO", value_parser = moved)]
    source_dir: Vec<(String, String)>,
    /// A folder whose sources are shown where no terminal is; may be given several times
    #[arg(long, value_name = "DIR")]
    sources_from: Vec<PathBuf>,
    /// JSON on one line, without the source. Times are nanoseconds
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (recording, what) = match &arguments.words[..] {
        [what] => {
            ensure!(
                !reading::can_be_read(Path::new(what)),
                "{what} is a recording; next: name a function or a source file of it as well, such \
                 as `teeperf annotate {what} main`"
            );
            (None, what)
        }
        [first, second, ..] if is_behind(first, second) => (Some(Path::new(second)), first),
        [recording, what, ..] => (Some(Path::new(recording)), what),
        [] => bail!("name a function or a source file"),
    };
    let path = recordings::named_or_newest(recording)?;
    let opened = reading::open(&path)?;
    if let Source::Gmon(_, name) = &opened {
        bail!("{name} is a gmon file, of gprof: `teeperf report` shows it, and gprof -A annotates");
    }
    let by_place = reading::Wanted { by_place: true, lines: true, ..reading::Wanted::default() };
    let profile = arguments.part.profile_with(opened, &path, by_place)?;
    arguments.part.say_what_is_left_out(&profile);
    let wanted = Wanted::of(what, &profile)?;
    if let Wanted::Functions(pattern) = &wanted {
        arguments.part.found(pattern, &profile);
    }
    let functions = wanted.functions(&profile);
    ensure!(
        !functions.is_empty(),
        "no function of {} that was called fits {what:?}, nor is there one of a source file of that name; `teeperf \
         report {0}` lists functions",
        path.display()
    );
    let is_terminal = std::io::stdout().is_terminal();
    let moved = arguments.source_dir.iter().map(|(_, to)| Path::new(to));
    let named = arguments.sources_from.iter().map(PathBuf::as_path);
    let mut sources = Sources::default();
    sources.shown = match is_terminal {
        true => Shown::everything(),
        false => shown::shown(named.chain(moved.filter(|to| to.is_dir())))?,
    };
    sources.moved.clone_from(&arguments.source_dir);
    let places: Vec<&Function> =
        functions.iter().map(|id| &profile.functions[id.0 as usize]).collect();
    if recordings::is_archive(&path) {
        let files = places.iter().filter_map(|function| function.file.as_deref());
        recordings::take_from_archive(&mut sources, &path, &files.collect())?;
    }
    let search = arguments.part.unsaid.search_for_code(&path);
    let (sites, highest) = sites(&profile, &functions, &search);
    let noted = annotate(&profile, &functions, &sites, &highest);
    if arguments.json {
        return super::to_stdout(|out| view::write_json(&profile, &noted, out));
    }
    let texts = texts(&noted, &sources);
    super::to_stdout(|out| {
        view::write(&profile, &noted, &texts, &super::terminal::style(), is_terminal, out)
    })
}

/// Whether the second of two words is the recording: it is one, and the first is none; or it alone is a file.
fn is_behind(first: &str, second: &str) -> bool {
    let is_recording = |word: &str| word == "-" || reading::can_be_read(Path::new(word));
    let is_there = |word: &str| Path::new(word).exists();
    !is_recording(first) && (is_recording(second) || !is_there(first) && is_there(second))
}

/// From where each function calls others, and the highest line of its code, as its module's debug information says it; modules that are not there, or
/// are of another build, say nothing.
fn sites(
    profile: &Profile,
    functions: &[FunctionId],
    search: &Search,
) -> (Vec<Option<Vec<CallSite>>>, Vec<Option<u32>>) {
    let mut modules: BTreeMap<&str, Vec<(usize, &Place)>> = BTreeMap::new();
    for (at, id) in functions.iter().enumerate() {
        if let Some(place) = &profile.functions[id.0 as usize].place {
            modules.entry(&place.path).or_default().push((at, place));
        }
    }
    let mut found = vec![None; functions.len()];
    let mut highest = vec![None; functions.len()];
    for (path, places) in modules {
        let build_id = places[0].1.build_id.to_vec();
        let search =
            Search { build_id: Some(build_id).filter(|id| !id.is_empty()), ..search.clone() };
        let lines = Lines::open(Path::new(path), &search);
        let starts: Vec<u64> = places.iter().map(|(_, place)| place.address).collect();
        let ranges: Vec<(u64, u64)> =
            places.iter().map(|(_, place)| (place.address, place.size)).collect();
        let told = lines.and_then(|lines| {
            let told = (lines.call_sites(&starts)?, lines.last_lines(&ranges)?);
            if let Some(missing) = lines.missing() {
                note!("teeperf: {}", printable(&missing));
            }
            Ok(told)
        });
        let (sites, last) = match told {
            Ok(told) => told,
            Err(error) => {
                let error = printable(&error.to_string());
                note!("teeperf: lines of calls are not known: {error}");
                continue;
            }
        };
        for (number, (at, _)) in places.iter().enumerate() {
            highest[*at] = last[number];
            let own = sites.iter().filter(|site| site.caller == number).cloned();
            found[*at] = Some(own.collect());
        }
    }
    (found, highest)
}

/// The sources of these functions. Says which were not found, and what then; and which are newer than the program.
fn texts(noted: &[Noted], sources: &Sources) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let (mut missing, mut is_refused) = (None, false);
    let files: BTreeMap<&str, &Noted> =
        noted.iter().filter_map(|noted| Some((noted.function.file.as_deref()?, noted))).collect();
    for (file, noted) in &files {
        match sources.find(file) {
            Ok(found) => {
                let built = noted.function.place.as_ref().and_then(|place| changed(&place.path));
                if let (Some(built), Some(modified)) = (built, found.modified)
                    && modified > built
                {
                    note!(
                        "teeperf: {} was changed after {} was built: lines may not be those of the figures",
                        printable(file),
                        printable(&noted.function.module)
                    );
                }
                texts.insert((*file).to_owned(), found.text);
            }
            Err((place, error)) => {
                let place = place.display().to_string();
                note!("teeperf: {}: {error}", printable(&place));
                match error {
                    Refusal::Unread(_) => missing = missing.or(Some(*file)),
                    _ => is_refused = true,
                }
            }
        }
    }
    if let Some(file) = missing {
        let folder = Path::new(file).parent().unwrap_or(Path::new("/")).display().to_string();
        let folder = printable(&folder);
        note!(
            "teeperf: say where the sources are with --source-dir {folder}=FOLDER, or pack the recording where they are: \
             `teeperf pack --sources`"
        );
    }
    if is_refused {
        note!("teeperf: {}", shown::HINT);
    }
    let is_jitted = |noted: &&Noted| noted.function.module == JITTED;
    if let Some(first) = noted.iter().find(is_jitted) {
        let name = printable(&first.function.name);
        note!(
            "teeperf: {name} is code that a just-in-time compiler made: nobody says which source lines it is of"
        );
    }
    let mut others = noted.iter().filter(|noted| !is_jitted(noted)).peekable();
    if others.peek().is_some() && others.all(|noted| noted.function.file.is_none()) {
        note!(
            "teeperf: no source file is known of these functions: build with -g, and record again"
        );
    }
    texts
}

fn changed(path: &str) -> Option<SystemTime> {
    PathBuf::from(path).metadata().ok()?.modified().ok()
}

fn moved(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.into(), to.into())),
        _ => Err("not FROM=TO, such as /build/src=/home/me/src".into()),
    }
}
