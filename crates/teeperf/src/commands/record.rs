//! `teeperf record`: runs a program. Running, draining and writing are `teeperf-record`'s.

use super::{filtering, sampling, selection, writing};
use crate::{bundle, recordings};
use anyhow::{Result, bail, ensure};
use clap::Args;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use teeperf_profile::info::Info;
use teeperf_record::{Choice, Events, Options, Outcome, Rules};

/// Runs a program and records every call and return of its hooked functions
///
/// Follows the processes that it starts. Its exit status, signals and terminal are the
/// program's own. What was written can be read whatever happens: Ctrl-C, a crash, a full disk.
/// SIGUSR1 to the recorder pauses the recording or resumes it; SIGUSR2 has what is there so far
/// written, so that it can be read.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf record -- ./program arguments           writes program.teeperf
  teeperf record -o slow.teeperf -- make check    a whole tree of processes
  teeperf record --timed 'handle*' -- ./server    with the exact lengths of some functions' calls
  teeperf record --events marks -- ./game         its own marks and counters, for report --time-line
  teeperf record --clock cycle -- ./program       with those of all calls, at six times the cost
  teeperf record --limit-time 30s -- ./server     records the first half minute
  teeperf record --paused -- ./server             then: teeperf resume
  teeperf record --trigger 'load*' -- ./server    from the first call of such a function on
  teeperf record --probe tree -- ./server         for days: calls and times summed by call path
  teeperf record --sample -- ./program            samples of any program, with hooks or without
  teeperf record --probe sample -- make           nothing else, of all that make runs
  teeperf record --sgx --module enclave.signed.so -- ./app  inside SGX enclaves too, whatever they were built with
  teeperf record --sgx --attach 4711              a host of enclaves that runs already
  teeperf record --sample=4000 --call-graph fp -- ./p  more often, with frame pointers
  teeperf record --optee --elf 8aaaf200-2450-11e4-abe2-0002a5d5c51b.elf -- optee_example_hello_world")]
pub(crate) struct Arguments {
    /// The program is a client of trusted applications of OP-TEE: records those that were built with hooks,
    /// and the calls into them. The client stays as it is
    #[arg(long)]
    optee: bool,
    #[command(flatten)]
    filter: filtering::Arguments,
    /// Record only these kinds of events, with commas between them: calls (calls and returns of functions), marks (what the
    /// program says of itself by teeperf.h: marks, counters, notes, scopes with a name), crossings (with --optee and
    /// --sgx, calls between the worlds: sessions, commands, what the supplicant is asked for; ECALLs and OCALLs). Functions that are left out so cost little
    /// more than without a recorder
    #[arg(long, value_name = "KINDS", default_value = "all", hide_default_value = true)]
    events: Events,
    /// Time single calls of these functions by the processor's counter, beside CPU time by
    /// samples: a name, a glob, a /regular expression/, @ and a module, as for --only. Other
    /// functions stay as cheap as they are, or nearly. `report --lengths` and --histogram then have their lengths to some nanoseconds
    #[arg(long, value_name = "FUNCTION")]
    timed: Vec<String>,
    #[command(flatten)]
    sampling: sampling::Arguments,
    #[command(flatten)]
    writing: writing::Arguments,
    /// Record nothing until this function is called for the first time, in whichever thread or process, written as for
    /// --only; then that call and all that comes behind it. Until then hooks cost about as much as those of functions
    /// that are left out. `teeperf resume`, and SIGUSR1 to the recorder, have it begin as well; `signal` waits for that alone
    #[arg(long, value_name = "FUNCTION|signal", conflicts_with = "paused")]
    trigger: Vec<String>,
    /// With --sgx: sample a process that runs already, by its id, and all that it starts from then on, from outside. It goes on when the
    /// recording ends, by Ctrl-C or a limit
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    attach: Option<u32>,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM",
        value_hint = clap::ValueHint::CommandWithArguments
    )]
    command: Vec<OsString>,
}

impl Arguments {
    /// Whether an option means nothing without hooks.
    fn asks_for_hooks(&self) -> bool {
        let has_words = !self.timed.is_empty() || !self.trigger.is_empty();
        self.optee || has_words || self.events != Events::ALL
    }

    /// What recording waits for.
    fn trigger(&self) -> Result<Option<Rules>> {
        let mut functions = Rules::default();
        for text in self.trigger.iter().filter(|text| *text != SIGNAL) {
            functions.function(false, text)?;
        }
        Ok(Some(functions).filter(|functions| !functions.is_empty()))
    }
}

/// What stands for no function in --trigger.
const SIGNAL: &str = "signal";

impl Arguments {
    /// Whether an option means nothing beside the others.
    pub(crate) fn leaves_idle(&self, option: &str) -> bool {
        let is_alone = self.writing.is_of_samples_alone();
        self.writing.leaves_idle(option) || self.sampling.leaves_idle(option, is_alone)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let command = &arguments.command;
    let name = || match (arguments.attach, command.first()) {
        (None, Some(program)) => recordings::name_for(program),
        (pid, _) => format!("{}.teeperf", pid.unwrap_or_default()).into(),
    };
    let path = arguments.writing.path(name)?;
    let (mut options, sender) = arguments.writing.options(&path)?;
    options.filter = arguments.filter.rules()?;
    let is_of_samples_alone = arguments.writing.is_of_samples_alone();
    options.sample = arguments.sampling.sampling(is_of_samples_alone)?;
    sample(&mut options, &arguments.sampling)?;
    if let Some(pid) = arguments.attach {
        ensure!(
            options.sgx.is_some(),
            "--attach is for hosts of enclaves, with --sgx; of other processes that run, perf record -p {pid} takes samples, and \
             teeperf report reads its perf.data"
        );
        ensure!(
            !arguments.asks_for_hooks() && options.filter.is_empty(),
            "--attach takes samples, and a process that runs has no recorder for its hooks: --optee, --timed, --trigger, --events, \
             --only and --exclude are about those"
        );
        options.attach = Some(pid);
        options.is_of_samples_alone = true;
        return arguments.writing.record((options, sender), command, &path, tell_of_nothing);
    }
    if is_of_samples_alone {
        ensure!(
            !arguments.asks_for_hooks() && options.filter.is_empty(),
            "--probe sample leaves hooks alone: --optee, --timed, --trigger, --events, --only and --exclude are about those; \
             --sample takes samples beside them"
        );
        options.is_of_samples_alone = true;
        return arguments.writing.record((options, sender), command, &path, tell_of_nothing);
    }
    let Events { calls, marks, crossings } = arguments.events;
    if arguments.optee {
        ensure!(
            crossings && (calls || !marks),
            "--optee records calls between the worlds, and what trusted applications call meanwhile: --events crossings \
             leaves the latter out"
        );
    } else {
        ensure!(
            calls || marks || arguments.sampling.is_of_enclaves(),
            "--events crossings: calls between worlds are those of a client of trusted applications, with --optee, or of a \
             host of enclaves, with --sgx"
        );
        ensure!(
            calls || options.tree.is_none(),
            "--probe tree sums calls, and no marks: record these without it"
        );
    }
    if !arguments.timed.is_empty() {
        ensure!(
            !arguments.optee,
            "trusted applications do not ask which functions are timed: leave out --timed, or --clock cycle times all calls"
        );
        ensure!(
            options.tree.is_none(),
            "--probe tree sums calls, and --timed times single ones: leave out one of the two"
        );
        ensure!(
            matches!(options.clock, Choice::Auto | Choice::Tick),
            "--clock cycle and ordered time every call: leave out --timed"
        );
        options.clock = Choice::Tick;
        filtering::time(&mut options.filter, &arguments.timed)?;
    }
    options.trigger = arguments.trigger()?;
    options.paused |= !arguments.trigger.is_empty();
    if arguments.optee {
        ensure!(
            options.trigger.is_none(),
            "--optee records all from the start: --paused, and then teeperf resume, leaves out a beginning"
        );
        ensure!(
            options.filter.is_empty(),
            "--optee records all functions that trusted applications were built with: name what is to have hooks when they are built"
        );
        match options.clock {
            // A trusted application may not have the counter that Linux has: the tick lies in the memory lent to it.
            Choice::Auto => options.clock = Choice::Tick,
            Choice::Tick | Choice::Cycle => {}
            Choice::Ordered => {
                bail!("trusted applications read the counter as they come: --clock cycle")
            }
        }
        options.leaves_processors = true;
        options.filter.events(arguments.events);
        options.preload = vec![bundle::for_all_users(bundle::for_clients()?)];
        let is_kept = options.preload.iter().all(|library| can_be_preloaded(library));
        ensure!(is_kept, "set XDG_CACHE_HOME to a folder without space and colon in its path");
        return arguments.writing.record((options, sender), command, &path, tell_of_no_client);
    }
    if crossings && arguments.sampling.is_of_enclaves() {
        record_crossings(&mut options)?;
    }
    options.filter.events(Events { crossings: true, ..arguments.events });
    // Without, what brings its own hooks is recorded.
    let bundle = bundle::HAS_HOOKS.then(bundle::unpacked).transpose()?;
    let library = bundle.as_ref().map(|bundle| bundle::for_all_users(bundle.library.clone()));
    options.preload.extend(library);
    options.preload.retain(|library| {
        let is_kept = can_be_preloaded(library);
        if !is_kept {
            note!(
                "teeperf: {} cannot be preloaded, because of the space or colon in its path: programs \
                 that are not hooked, with libraries that are, will not be recorded. Set \
                 XDG_CACHE_HOME to a folder without",
                library.display()
            );
        }
        is_kept
    });

    let ended = arguments.writing.record((options, sender), command, &path, tell_of_nothing)?;
    if let Some(program) = program(&command[0]) {
        selection::warn(&program, || modules(&path));
    }
    Ok(ended)
}

/// Hosts of enclaves are sampled in place of the program's threads alone; where the kernel lets nothing be sampled, within it too.
fn sample(options: &mut Options, sampling: &sampling::Arguments) -> Result<()> {
    options.sgx = options.sample.and_then(|how| sampling.sgx(how));
    if options.sample.is_none() {
        return Ok(());
    }
    if sampling.is_from_outside() {
        return Ok(());
    }
    let library = bundle::for_sampling()?.map(bundle::for_all_users);
    options.inside = library.filter(|library| can_be_preloaded(library));
    options.is_sampled_within = sampling.sample_within;
    ensure!(
        options.sgx.is_none() || options.inside.is_some(),
        "--sgx has a library preloaded: there is one on x86-64, from a folder without space and colon in its path \
         (XDG_CACHE_HOME)"
    );
    Ok(())
}

/// Hosts of enclaves have their ECALLs and OCALLs recorded, beside all else.
fn record_crossings(options: &mut Options) -> Result<()> {
    let library = bundle::for_enclave_hosts()?.map(bundle::for_all_users);
    options.preload.extend(library.filter(|library| can_be_preloaded(library)));
    if options.clock == Choice::Auto {
        // An enclave may not have the counter that Linux has: the tick lies in the memory lent to it.
        options.clock = Choice::Tick;
    }
    Ok(())
}

/// The file that a command is.
pub(crate) fn program(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(name.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Files of code that a recording tells of where threads begin. A folder, or what was sent, is not read once more.
fn modules(recording: &Path) -> Vec<PathBuf> {
    let info = recordings::is_plain(recording).then(|| Info::skim(recording, &mut |_| {}));
    let modules = info.and_then(Result::ok).map(|info| info.modules).unwrap_or_default();
    modules.into_iter().map(|(_, path)| path.into()).collect()
}

/// Whether `LD_PRELOAD` can have this path in it.
pub(crate) fn can_be_preloaded(library: &Path) -> bool {
    !library.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte))
}

/// Why no client was recorded, where nothing has said so yet.
fn tell_of_no_client(outcome: &Outcome) {
    if outcome.error.is_none() {
        note!(
            "teeperf: nothing was recorded: the program opened no session with a trusted application, \
             does not use the shared library libteec, or may not be preloaded into (set-user-id); next: teeperf doctor \
             PROGRAM, and teeperf doctor alone for this machine"
        );
    }
}

/// Why no process was recorded, where nothing has said so yet.
fn tell_of_nothing(outcome: &Outcome) {
    match &outcome.reason {
        _ if outcome.error.is_some() => {}
        Some(reason) => note!(
            "teeperf: nothing was recorded: {reason} before any process with hooks found the recorder"
        ),
        // One did, and was turned away.
        None if !outcome.notices.is_empty() => note!("teeperf: nothing was recorded"),
        None => note!(
            "teeperf: nothing was recorded: no process with hooks found the recorder. Was it built \
             with CC=\"teeperf cc\" CXX=\"teeperf c++\" (see `teeperf help cc`)? It also needs the \
             environment that it is given, the user that records unless that is root, no other rights (set-user-ID, \
             capabilities), and the same network namespace; next: teeperf doctor PROGRAM, and teeperf doctor alone for this machine"
        ),
    }
}
