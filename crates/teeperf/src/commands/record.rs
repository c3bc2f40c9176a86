//! `teeperf record`: options, the live line and the closing one. Running, draining and writing
//! are `teeperf-record`'s.

use super::amounts;
use super::live::{self, Live};
use crate::{bundle, calibration, recordings, shell};
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use teeperf_record::{Choice, HookCost, Options, Outcome, Output, Period, RecordError, Recorder};
use teeperf_wire::shared;

/// Runs a program and records every call and return of its hooked functions
///
/// Follows the processes that it starts. Its exit status, signals and terminal are the
/// program's own. What was written can be read whatever happens: Ctrl-C, a crash, a full disk.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf record -- ./program arguments           writes program.teeperf
  teeperf record -o slow.teeperf -- make check    a whole tree of processes
  teeperf record --clock cycle -- ./program       for the length of single calls
  teeperf record --limit-time 30s -- ./server     records the first half minute
  teeperf record --paused -- ./server             then: teeperf resume")]
pub(crate) struct Arguments {
    /// The recording; - is standard output [default: the program's name with .teeperf, here]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite a file that is no recording
    #[arg(long)]
    force: bool,
    /// How time is taken: a tick that costs least, or the processor's counter at each event
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
    /// Start paused, until `teeperf resume` or the program itself resumes
    #[arg(long)]
    paused: bool,
    /// Say nothing but errors and warnings
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
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

/// What happens when there is no room for events.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnFull {
    /// The program waits
    Wait,
    /// Events are dropped and counted
    Drop,
    /// Recording stops
    Stop,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let stdout = arguments.output.as_deref() == Some(Path::new("-"));
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => recordings::name_for(&arguments.command[0]),
    };
    if !stdout {
        let begins = &teeperf_wire::packet::SYNC;
        recordings::may_replace(&path, arguments.force, "recording", begins)?;
    }
    // Without, what brings its own hooks is recorded.
    let bundle = bundle::HAS_HOOKS.then(bundle::unpacked).transpose()?;
    let output = if stdout { Output::Stdout } else { Output::File(path.clone()) };
    let mut options = Options::new(output);
    options.clock = match arguments.clock {
        Clock::Auto => Choice::Auto,
        Clock::Tick => Choice::Tick,
        Clock::Cycle => Choice::Cycle,
        Clock::Ordered => Choice::Ordered,
    };
    options.period = arguments.period.map(Period::Sleeping);
    options.on_full = match arguments.on_full {
        OnFull::Wait => shared::OnFull::Wait,
        OnFull::Drop => shared::OnFull::Drop,
        OnFull::Stop => shared::OnFull::Stop,
    };
    options.limit_size = arguments.limit_size;
    options.limit_time = arguments.limit_time;
    options.paused = arguments.paused;
    options.preload = bundle.as_ref().map(|bundle| bundle.library.clone()).filter(|library| {
        let splits = library.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte));
        if splits {
            eprintln!(
                "teeperf: {} cannot be preloaded, because of the space or colon in its path: programs \
                 that are not hooked, with libraries that are, will not be recorded. Set \
                 XDG_CACHE_HOME to a folder without",
                library.display()
            );
        }
        !splits
    });
    options.hook_cost = bundle.map(|bundle| {
        HookCost::new(move |clock| {
            calibration::hook_cost(&bundle, clock)
                .inspect_err(|error| {
                    eprintln!("teeperf: {error:#}; times will hold the cost of the hooks");
                })
                .ok()
        })
    });

    let live = (!arguments.quiet).then(|| Live::show(Arc::clone(&options.stats)));
    let recorded = Recorder::new(options).run(&arguments.command);
    drop(live);
    let outcome = match recorded {
        Ok(outcome) => outcome,
        Err(RecordError::Launch(error)) => {
            eprintln!("teeperf: {error}");
            return Ok(ExitCode::from(error.exit_code()));
        }
        Err(error @ (RecordError::Busy(_) | RecordError::IsProgram(_))) => {
            bail!("{error}; name another with -o")
        }
        Err(error) => return Err(error.into()),
    };
    let is_shared = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    if is_shared && outcome.status.signal() == Some(libc::SIGINT) {
        // The terminal has echoed ^C, and the cursor stands behind it.
        eprintln!();
    }
    tell(&outcome, &path, arguments);
    outcome.pass_on_interrupt();
    Ok(ExitCode::from(outcome.exit_code()))
}

/// What the user should know at the end. Standard output is the program's.
fn tell(outcome: &Outcome, path: &Path, arguments: &Arguments) {
    for notice in &outcome.notices {
        eprintln!("teeperf: {notice}");
    }
    if let Some(error) = &outcome.error {
        eprintln!("teeperf: {}: {error}; the recording ends there", path.display());
    }
    if outcome.processes == 0 {
        tell_of_nothing(outcome);
        return;
    }
    if arguments.quiet {
        return;
    }
    let recorded = &outcome.recorded;
    let mut line = format!(
        "teeperf: {} of {} thread{}, {} in {}",
        live::events(recorded.events as f64),
        recorded.threads,
        if recorded.threads == 1 { "" } else { "s" },
        live::bytes(recorded.bytes),
        path.display(),
    );
    if recorded.lost > 0 {
        line += &format!(", {} LOST", live::events(recorded.lost as f64));
    }
    if !outcome.paused.is_zero() {
        line += &format!(", paused for {:.3} s", outcome.paused.as_secs_f64());
    }
    if let Some(reason) = &outcome.reason {
        line += &format!("; recording ended early: {reason}");
    }
    if recorded.events == 0 && !outcome.paused.is_zero() {
        line += "; next: record again, and `teeperf resume` while the program works";
    } else if path != Path::new("-") {
        line += &format!("; next: teeperf report {}", shell::typed(path));
    }
    eprintln!("{line}");
}

/// Why no process was recorded, where nothing has said so yet.
fn tell_of_nothing(outcome: &Outcome) {
    match &outcome.reason {
        _ if outcome.error.is_some() => {}
        Some(reason) => eprintln!(
            "teeperf: nothing was recorded: {reason} before any process with hooks found the recorder"
        ),
        // One did, and was turned away.
        None if !outcome.notices.is_empty() => eprintln!("teeperf: nothing was recorded"),
        None => eprintln!(
            "teeperf: nothing was recorded: no process with hooks found the recorder. Was it built \
             with CC=\"teeperf cc\" CXX=\"teeperf c++\" (see `teeperf help cc`)? It also needs the \
             environment that it is given, the user that records, and the same network namespace"
        ),
    }
}
