//! `teeperf diff`: what changed between two sides of runs, and whether that is too much.

use super::reading::{self, Source};
use super::{amounts, gmon};
use crate::recordings;
use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use teeperf_profile::diff::condition::{Condition, Wrong};
use teeperf_profile::diff::outcome::Outcome;
use teeperf_profile::diff::{Comparison, Diff, Options, Side, Sides};
use teeperf_profile::model::Profile;
use teeperf_view::diff::{self as view, Sort};
use teeperf_view::page;

/// Compares runs: which functions take longer or less than before, and which merely seem to
///
/// One recording a side, or several, with `--` between the sides: from several it is known how much runs differ
/// without a change. What is no more than that, or than samples and ticks explain, is shown with ≈ and never
/// counts as a change. Functions are matched by name and module, whatever versions and paths the files have.
#[derive(Args, Debug)]
#[command(
    override_usage = "teeperf diff [OPTIONS] BEFORE AFTER\n       teeperf diff [OPTIONS] BEFORE... -- AFTER...",
    after_help = "\
Conditions of --fail-if:
  'self(parse) > +5%'                   the function itself takes over 5 % longer than before
  'total(parse) > +10ms'                with all it calls it takes over 10 ms longer, in the mean of runs
  'total > +3%'                         all functions together do
  'calls(malloc) > 1000'                without a sign: what is so after, not the change
  'self(parse) > 20%'                   and in percent of all functions' time
  'any self > +10% and any self > 10ms'  any one function for which both is so
With a sign only changes count that are more than noise. A name is a pattern (see `teeperf help patterns`), '<' is less than.

Where runs differ among themselves by more than a condition asks for, so that such a change would not be seen, there is no
answer: more runs a side see smaller ones.

Exit status: 0, or 1 when a condition of --fail-if is met, or 2 when there is no answer.

Examples:
  teeperf diff before.teeperf after.teeperf
  teeperf diff old/*.teeperf -- new/*.teeperf    several runs a side: recorded in turn, at best
  teeperf diff --html diff.html a.teeperf b.teeperf
  teeperf diff --fail-if 'total > +3%' --fail-if 'any self > +10% and any self > 10ms' a?.teeperf -- b?.teeperf"
)]
pub(crate) struct Arguments {
    /// Recordings of before; of two in all, the second is of after
    #[arg(required = true)]
    before: Vec<PathBuf>,
    /// Recordings of after
    #[arg(last = true)]
    after: Vec<PathBuf>,
    #[command(flatten)]
    part: reading::Part,
    /// Exit with 1 when this is so; several may be given
    #[arg(long, value_name = "CONDITION", value_parser = condition)]
    fail_if: Vec<Condition>,
    /// What comes of a condition of --fail-if where runs differ among themselves by more than it asks for
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = IfUnsure::Error)]
    unsure: IfUnsure,
    /// What functions are sorted by: the size of the change
    #[arg(long, value_enum, default_value_t = By::SelfTime)]
    sort: By,
    /// Most functions
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Leave out functions whose self time changed by less than this part
    #[arg(long, value_name = "PERCENT", value_parser = amounts::part, default_value = "0%")]
    threshold: f64,
    /// How much single runs differ without a change (standard deviation), where there are not several to tell
    #[arg(long, value_name = "PERCENT", value_parser = amounts::part, default_value = "3%")]
    noise: f64,
    /// Compare shares: as if all runs had taken as long as those of after
    #[arg(long)]
    normalize: bool,
    /// JSON on one line. Times are nanoseconds
    #[arg(long, conflicts_with_all = ["csv", "sort", "limit", "threshold"])]
    json: bool,
    /// Comma-separated values, a line for each function. Times are nanoseconds
    #[arg(long, conflicts_with_all = ["limit", "threshold"])]
    csv: bool,
    /// Write a page with the differential flame graph too; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write a picture of it too
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write folded stacks too, each with the time before and after, as difffolded.pl does
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// In page and picture, frames as wide as they were before, so that what is gone is seen (the page has a switch)
    #[arg(long)]
    widths_before: bool,
    /// Overwrite files that are something else
    #[arg(long)]
    force: bool,
}

/// What comes of a condition that runs do not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum IfUnsure {
    /// Exit with 2: there is no answer
    Error,
    /// As if it were not met
    Pass,
    /// As if it were met
    Fail,
}

/// What a table is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// Self time
    #[value(name = "self")]
    SelfTime,
    /// Total time
    Total,
    /// Number of calls
    Calls,
    /// Name
    Name,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let sides = arguments.sides()?;
    let mut comparison = Comparison::default();
    for (side, paths) in [(Side::Before, &sides.before), (Side::After, &sides.after)] {
        for path in paths {
            let (name, profile) = (path.display().to_string(), arguments.profile(path)?);
            // Nothing would be too much for any condition.
            ensure!(reading::has_calls(&profile), "{name} has no calls; `teeperf report` says why");
            comparison.add(side, name, profile);
        }
    }
    let options = Options { noise: arguments.noise, normalize: arguments.normalize };
    let diff = comparison.finish(&options);
    for condition in &arguments.fail_if {
        if let Some(name) = condition.unknown_names(&diff).first() {
            bail!("--fail-if '{}': no function of either side is called {name:?}", condition.text);
        }
    }
    arguments.show(&diff)?;
    Ok(arguments.verdict(&diff))
}

impl Arguments {
    fn sides(&self) -> Result<Sides<Vec<PathBuf>>> {
        let (mut before, mut after) = (self.before.clone(), self.after.clone());
        if after.is_empty() {
            match before.len() {
                0 | 1 => {
                    bail!("two sides are compared: name a recording of before and one of after")
                }
                2 => after.extend(before.pop()),
                all => bail!(
                    "of {all} recordings it is not known which are of before and which of after: put `--` between them"
                ),
            }
        }
        for path in
            after.iter().filter(|path| path.as_os_str().as_encoded_bytes().starts_with(b"--"))
        {
            if !path.exists() {
                bail!(
                    "{} stands behind `--`, where there are only recordings of after: put options in front of these",
                    path.display()
                );
            }
        }
        for path in before.iter_mut().chain(&mut after) {
            *path = recordings::named_or_newest(Some(path))?;
        }
        for (side, paths) in [("before", &before), ("after", &after)] {
            if let Some((one, other)) = recordings::same(paths)? {
                bail!(
                    "{} and {} are the same run, named twice for {side}: runs that do not differ would make anything a change",
                    one.display(),
                    other.display()
                );
            }
        }
        Ok(Sides { before, after })
    }

    fn profile(&self, path: &Path) -> Result<Profile> {
        match reading::open(path)? {
            Source::Gmon(file, name) => {
                ensure!(
                    !self.part.is_of_paths(),
                    "{name} is a gmon file: it knows neither call paths nor threads, which --thread, --focus and --ignore \
                     are about"
                );
                let unsaid = &self.part.unsaid;
                gmon::profile(file, &name, &[], unsaid.program()?, unsaid.bias.unwrap_or_default())
            }
            source => {
                let wanted = reading::Wanted::default();
                let profile = self.part.profile_with(source, path, wanted)?;
                self.part.say_what_is_left_out(&profile);
                Ok(profile)
            }
        }
    }

    fn show(&self, diff: &Diff) -> Result<()> {
        let widths = if self.widths_before { Side::Before } else { Side::After };
        let page = |out: &mut dyn Write| {
            view::page::write(diff, widths, &page::Options::default(), &mut { out })
        };
        let picture = |out: &mut dyn Write| view::svg::write(diff, widths, &mut { out });
        let folded = |out: &mut dyn Write| view::folded::write(diff, &mut { out });
        let files: [(&Option<PathBuf>, &str, &[u8], Draw<'_>); 3] = [
            (&self.html, "page", b"<!doctype html>", &page),
            (&self.svg, "picture", b"<svg", &picture),
            (&self.folded, "file *.folded", b"\0", &folded),
        ];
        let mut is_shown = false;
        for (path, what, begins, write) in files {
            let Some(path) = path else { continue };
            if path == Path::new("-") {
                ensure!(!is_shown, "standard output is named twice");
                is_shown = true;
                super::to_stdout(|out| write(out))?;
                continue;
            }
            let begins = if path.extension() == Some("folded".as_ref()) { b"" } else { begins };
            super::fill(path, self.force, &[], (what, begins), |out| write(out))?;
            note!("teeperf: wrote {}", path.display());
        }
        let sort = match self.sort {
            By::SelfTime => Sort::SelfTime,
            By::Total => Sort::Total,
            By::Calls => Sort::Calls,
            By::Name => Sort::Name,
        };
        let options = view::text::Options {
            sort,
            limit: self.limit,
            threshold: self.threshold,
            selection: self.part.selection_in_words(),
        };
        let written = match () {
            () if is_shown => return Ok(()),
            () if self.json => super::to_stdout(|out| view::json::write(diff, out)),
            () if self.csv => super::to_stdout(|out| view::csv::write(diff, sort, out)),
            () => super::to_stdout(|out| {
                view::text::write(diff, &options, &super::terminal::style(), out)
            }),
        };
        match written {
            // Who read our output has seen enough; what is too much is not known by that.
            Err(error) if !self.fail_if.is_empty() && super::is_broken_pipe(&error) => Ok(()),
            written => written,
        }
    }

    /// What comes of the conditions: says which are met, or have no answer, and why.
    fn verdict(&self, diff: &Diff) -> ExitCode {
        let (mut is_too_much, mut is_unsure) = (false, false);
        for condition in &self.fail_if {
            match condition.outcome(diff) {
                Outcome::Met(met) => {
                    is_too_much = true;
                    for line in view::failures::of(condition, &met, diff) {
                        note!("teeperf: {line}");
                    }
                }
                Outcome::Unsure(found) => {
                    is_unsure |= self.unsure == IfUnsure::Error;
                    is_too_much |= self.unsure == IfUnsure::Fail;
                    note!("teeperf: {}", view::failures::unsure(condition, &found, diff));
                }
                Outcome::Not => {}
            }
        }
        match (is_too_much, is_unsure) {
            (true, _) => ExitCode::FAILURE,
            (false, true) => ExitCode::from(2),
            (false, false) => ExitCode::SUCCESS,
        }
    }
}

/// Writes a form of the comparison.
type Draw<'a> = &'a dyn Fn(&mut dyn Write) -> std::io::Result<()>;

fn condition(text: &str) -> Result<Condition, Wrong> {
    Condition::parse(text)
}
