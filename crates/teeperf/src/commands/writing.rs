//! What the commands that write recordings have in common: how they record, and what they say
//! while they do and at the end.

use super::amounts;
use super::live::{self, Live};
use super::sent;
use super::transport::Place;
use crate::{recordings, shell};
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use teeperf_edit::rotate::{self, Keep};
use teeperf_edit::send::Sender;
use teeperf_record::{
    Choice, Options, Outcome, Output, Period, RecordError, Recorder, StackWatch, Tree,
};
use teeperf_view::printable;
use teeperf_wire::shared;

/// How to record.
#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct Arguments {
    /// The recording; - is standard output [default: the program's name with .teeperf, here]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite a file that is no recording
    #[arg(long)]
    pub(crate) force: bool,
    /// Which clock events have: a tick that costs least, beside samples of CPU time, or the
    /// processor's counter at each event, without samples
    #[arg(long, value_enum, default_value_t = Clock::Auto)]
    clock: Clock,
    /// Mean time between two ticks, such as 50us [default: 100us, up to 500us where waking costs more]
    #[arg(long, value_name = "TIME", value_parser = amounts::period)]
    period: Option<Duration>,
    /// When the program is faster than the disk: let it wait, drop events (and count them), or
    /// stop recording
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = OnFull::Wait)]
    on_full: OnFull,
    /// Stop recording when the file has this size, such as 2G; the program runs on
    #[arg(long, value_name = "SIZE", value_parser = amounts::bytes)]
    limit_size: Option<u64>,
    /// Stop recording after this time, such as 30s; the program runs on
    #[arg(long, value_name = "TIME", value_parser = amounts::time)]
    limit_time: Option<Duration>,
    /// Keep the latest part alone, such as 100M on the disk, or the last 10m: a folder that the commands which read
    /// recordings take, and what is in it reads whole at any moment
    #[arg(long, value_name = "SIZE|TIME", value_parser = amounts::rotation)]
    rotate: Option<Keep>,
    /// Send the recording to `teeperf collect` as it is made: tcp:HOST:PORT or unix:PATH. Where the connection breaks, the
    /// recording ends there, and the program runs on. What the collector kept is told at the end; where it did not keep all,
    /// the exit status is 1 if the program's is 0
    #[arg(long, value_name = "PLACE", value_parser = Place::parse, conflicts_with_all = ["output", "rotate"])]
    to: Option<Place>,
    #[command(flatten)]
    access: super::transport::Access,
    /// Start paused, until `teeperf resume` or the program itself resumes
    #[arg(long, visible_alias = "start-paused")]
    paused: bool,
    /// What is recorded: every event; or calls and times summed for each call path, in memory of a fixed size,
    /// however long the run; or nothing but samples (--sample)
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Probe::Trace)]
    probe: Probe,
    /// Whether hooks look at the stack pointer, so that coroutines are followed whose stacks the program switches by itself,
    /// as boost.context does it; that costs some tenths of a nanosecond a call
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = WatchedStacks::Auto)]
    stacks: WatchedStacks,
    /// Do not interrupt threads to learn where they spend their CPU time. Times are then those of the
    /// clock, with waiting and with what hooks took; as they are with --clock cycle or ordered, and
    /// with --probe tree
    #[arg(long)]
    no_cpu_samples: bool,
    /// With --probe tree: memory for each thread, 4 KiB to 1 GiB, at some 100 bytes a call path, of which only what is
    /// used is taken, and 16 GiB at most by all threads of a process; calls on paths beyond it are counted by
    /// function [default: 1MiB]
    #[arg(long, value_name = "SIZE", value_parser = tree_size)]
    tree_size: Option<u64>,
    /// With --probe tree: calls of functions that are open on the path count there, so that recursion makes no
    /// new paths
    #[arg(long)]
    fold_recursion: bool,
    /// With --probe tree: write what was summed so often, such as 10s, for the time line; in long runs less
    /// often. It is written at the end in any case, and by `teeperf ctl PID snapshot`
    #[arg(long, value_name = "TIME", value_parser = amounts::time)]
    interval: Option<Duration>,
    /// Say nothing but errors and warnings
    #[arg(short, long)]
    quiet: bool,
    /// A file with the symbols of an image that cannot say where its own lies, such as a trusted
    /// application's
    #[arg(long, value_name = "FILE")]
    elf: Vec<PathBuf>,
}

/// Which clock is asked for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Clock {
    /// Chosen by what the machine offers
    Auto,
    /// A word that the recorder moves
    Tick,
    /// A counter that each hook reads
    Cycle,
    /// The same, read when all work before it is done: for calls of some tens of nanoseconds
    Ordered,
}

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Probe {
    /// Every call and return, in order
    Trace,
    /// Sums for each call path
    Tree,
    /// Samples, of programs with hooks too: nothing of the program is changed
    Sample,
}

/// When hooks look at the stack pointer.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum WatchedStacks {
    /// Where the program's code, or a small library's, switches stacks, or a stack is seen that is not the thread's
    Auto,
    /// From the start
    Always,
    /// Never
    Never,
}

fn tree_size(text: &str) -> Result<u64, String> {
    let bytes = amounts::bytes(text)?;
    let fits = usize::try_from(bytes).is_ok_and(|bytes| Tree::BYTES.contains(&bytes));
    if fits { Ok(bytes) } else { Err("it is 4 KiB at least and 1 GiB at most".into()) }
}

/// What happens when there is no room for events.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnFull {
    /// The program waits; where the recorder takes nothing for a second, events are dropped and
    /// counted
    Wait,
    /// Events are dropped and counted
    Drop,
    /// Recording stops
    Stop,
}

impl Arguments {
    /// The recording that was asked for, or the usual one, unless something stands there that is none.
    pub(crate) fn path(&self, usual: impl FnOnce() -> PathBuf) -> Result<PathBuf> {
        let path = self.output.clone().unwrap_or_else(usual);
        if let Some(place) = &self.to {
            // For messages.
            return Ok(place.to_string().into());
        }
        if self.rotate.is_some() {
            if path == Path::new("-") || path.is_file() {
                bail!("--rotate writes a folder: name one with -o, which is no file");
            }
        } else if path != Path::new("-") {
            let begins = &teeperf_wire::packet::SYNC;
            recordings::may_replace(&path, self.force, "recording", begins)?;
        }
        Ok(path)
    }

    /// To record so, into `path`, and who is to say what was kept; an error where options do not go together.
    pub(crate) fn options(&self, path: &Path) -> Result<(Options, Option<Sender>)> {
        let is_stdout = path == Path::new("-");
        let sender = self.to.as_ref().map(|to| to.connect(&self.access)).transpose()?;
        let output = match self.rotate {
            Some(keep) => rotate::output(path, keep).map_err(|error| {
                let path = path.display();
                anyhow!("{path} cannot be recorded into: {error}; name another folder with -o")
            })?,
            None => match &sender {
                Some(sender) => Output::Writer(sender.output().context("a connection")?),
                None if is_stdout => Output::Stdout,
                None => Output::File(path.to_owned()),
            },
        };
        let mut options = Options::new(output);
        options.is_kept_whole = self.rotate.is_none();
        options.name = Some(path.display().to_string()).filter(|_| !is_stdout);
        options.clock = match self.clock {
            Clock::Auto => Choice::Auto,
            Clock::Tick => Choice::Tick,
            Clock::Cycle => Choice::Cycle,
            Clock::Ordered => Choice::Ordered,
        };
        options.period = self.period.map(Period::Sleeping);
        options.on_full = match self.on_full {
            OnFull::Wait => shared::OnFull::Wait,
            OnFull::Drop => shared::OnFull::Drop,
            OnFull::Stop => shared::OnFull::Stop,
        };
        options.limit_size = self.limit_size;
        options.limit_time = self.limit_time;
        options.paused = self.paused;
        options.stacks = match self.stacks {
            WatchedStacks::Auto => StackWatch::Auto,
            WatchedStacks::Always => StackWatch::Watched,
            WatchedStacks::Never => StackWatch::Unwatched,
        };
        options.cpu_samples = self.has_cpu_samples();
        options.tree = self.tree()?;
        options.search.images.clone_from(&self.elf);
        Ok((options, sender))
    }

    /// Whether threads are interrupted: a counter that is asked for tells times itself.
    fn has_cpu_samples(&self) -> bool {
        let is_by_counter = matches!(self.clock, Clock::Cycle | Clock::Ordered);
        !self.no_cpu_samples && self.probe == Probe::Trace && !is_by_counter
    }

    /// Whether nothing is to be recorded but samples.
    pub(crate) fn is_of_samples_alone(&self) -> bool {
        self.probe == Probe::Sample
    }

    fn tree(&self) -> Result<Option<Tree>> {
        if self.probe == Probe::Tree {
            if matches!(self.on_full, OnFull::Stop) {
                bail!("--on-full stop is about events: trees that are full count on, by function");
            }
            let usual = Tree::default();
            let bytes = self.tree_size.map_or(usual.bytes, |bytes| bytes as usize);
            return Ok(Some(Tree { bytes, folds: self.fold_recursion, interval: self.interval }));
        }
        match self.of_trees().iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => bail!("--{name} is about trees: give --probe tree as well"),
            None => Ok(None),
        }
    }

    /// Options that mean something where calls are summed, and whether they are given.
    fn of_trees(&self) -> [(&'static str, bool); 3] {
        [
            ("tree-size", self.tree_size.is_some()),
            ("fold-recursion", self.fold_recursion),
            ("interval", self.interval.is_some()),
        ]
    }

    /// Whether an option means nothing beside the others.
    pub(crate) fn leaves_idle(&self, option: &str) -> bool {
        self.probe != Probe::Tree && self.of_trees().iter().any(|(name, _)| *name == option)
    }

    /// Records, and says what came of it; `tell_of_nothing` where no process attached, or nobody the memory that was
    /// lent.
    pub(crate) fn record(
        &self,
        (options, sender): (Options, Option<Sender>),
        command: &[OsString],
        path: &Path,
        tell_of_nothing: impl FnOnce(&Outcome),
    ) -> Result<ExitCode> {
        let is_lent = options.lent.is_some();
        let live = (!self.quiet).then(|| Live::show(Arc::clone(&options.stats)));
        let recorded = Recorder::new(options).run(command);
        drop(live);
        let outcome = match recorded {
            Ok(outcome) => outcome,
            Err(RecordError::Launch(error)) => {
                note!("teeperf: {error}");
                return Ok(ExitCode::from(error.exit_code()));
            }
            Err(error @ (RecordError::Busy(_) | RecordError::IsProgram(_))) => {
                bail!("{error}; name another with -o")
            }
            Err(error @ RecordError::Output { .. }) if self.to.is_none() => {
                bail!("cannot write {error}; name another place with -o")
            }
            Err(RecordError::Sampling(refused)) => bail!("{refused}; {}", refused.advice()),
            Err(error) => return Err(error.into()),
        };
        let is_shared = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        let signal = outcome.status.and_then(|status| status.signal());
        if is_shared && signal == Some(libc::SIGINT) {
            // The terminal has echoed ^C, and the cursor stands behind it.
            note!();
        }
        let kept = sender.map(|sender| sent::end(sender, &outcome));
        let is_kept = kept.as_ref().is_none_or(Result::is_ok);
        let is_sampled = outcome.sampled.is_some();
        if outcome.processes == 0 && !is_sampled || is_lent && outcome.recorded.threads == 0 {
            tell_of_end(&outcome, path);
            tell_of_nothing(&outcome);
        } else {
            let place = kept.as_ref().and_then(|kept| kept.as_ref().ok());
            self.tell(&outcome, path, place);
        }
        if let Some(Err(why)) = kept {
            note!("teeperf: {why}");
        }
        outcome.pass_on_interrupt();
        Ok(match outcome.exit_code() {
            0 if !is_kept => ExitCode::FAILURE,
            code => ExitCode::from(code),
        })
    }

    /// What the user should know at the end. Standard output is the program's.
    fn tell(&self, outcome: &Outcome, path: &Path, kept: Option<&String>) {
        tell_of_end(outcome, path);
        if self.quiet {
            return;
        }
        let recorded = &outcome.recorded;
        let mut parts = Vec::new();
        if outcome.processes > 0 || outcome.sampled.is_none() {
            parts.push(format!(
                "{} of {} thread{}",
                live::events(recorded.events as f64),
                recorded.threads,
                if recorded.threads == 1 { "" } else { "s" },
            ));
        }
        if let Some(event) = &outcome.sampled {
            parts.push(format!("{} samples of {event}", recorded.samples));
        }
        let (what, bytes) = (parts.join(" and "), live::bytes(recorded.bytes));
        let mut line = format!("teeperf: {what}, {bytes} in {}", path.display());
        if self.rotate.is_some() {
            // What ended before ended at a time that nobody looked at.
            let is_the_last = outcome.reason.is_none();
            line += &kept_of(path, is_the_last).unwrap_or_default();
        }
        if let Some(kept) = kept {
            line += &format!(", all of it kept there as {kept}");
        }
        if recorded.lost > 0 {
            line += &format!(", {} LOST", live::events(recorded.lost as f64));
        }
        if recorded.samples_lost > 0 {
            line += &format!(", {} samples LOST", recorded.samples_lost);
        }
        if recorded.waits > 0 {
            line += &format!(
                ", threads waited {} for the recorder, {:.3} s in all",
                if recorded.waits == 1 {
                    "once".into()
                } else {
                    format!("{} times", recorded.waits)
                },
                recorded.waited.as_secs_f64(),
            );
        }
        if !outcome.paused.is_zero() {
            line += &format!(", paused for {:.3} s", outcome.paused.as_secs_f64());
        }
        if let Some(reason) = &outcome.reason {
            line += &format!("; recording ended early: {reason}");
        }
        if recorded.events + recorded.samples == 0 && !outcome.paused.is_zero() {
            line += "; next: record again, and `teeperf resume` while the program works";
        } else if path != Path::new("-") && self.to.is_none() {
            line += &format!("; next: teeperf report {}", shell::typed(path));
        }
        note!("{line}");
    }
}

/// What a folder has of what was recorded.
fn kept_of(folder: &Path, is_the_last: bool) -> Option<String> {
    let (bytes, began) = rotate::kept(folder).ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let began = began.filter(|_| is_the_last);
    let since = began.and_then(|ns| now.checked_sub(Duration::from_nanos(ns)));
    let span =
        since.map_or(String::new(), |span| format!(" the last {:.1} s,", span.as_secs_f64()));
    Some(format!(", of which{span} {} are kept", live::bytes(bytes)))
}

/// What has been noticed, and what went wrong.
fn tell_of_end(outcome: &Outcome, path: &Path) {
    for notice in &outcome.notices {
        note!("teeperf: {}", printable(notice));
    }
    if let Some(error) = &outcome.error {
        note!("teeperf: {}: {error}; the recording ends there", path.display());
    }
}
