//! Puts the parts together: clock, server, drain, and the command between them.

use crate::arena::{self, Lent, LentFile, Manner};
use crate::attached::AttachError;
use crate::clock::{self, Audience, Chosen, ClockPage, Ticker, Time, Where};
use crate::control::socket_name;
use crate::drain::{Companions, Drain, Event, Limits, Summary};
use crate::filter::Rules;
use crate::filter::desk::{FilterDesk, Means};
use crate::launch::{self, FileLimit, LaunchError, Surroundings};
use crate::link::Link;
use crate::made::Made;
use crate::missing::{Ledger, Lookout};
use crate::newcomers::Newcomers;
use crate::options::{Options, StackWatch, Tree};
use crate::pauses::Pauses;
use crate::process::Attached;
use crate::sample::Refused;
use crate::sampled::{Sampled, Samplers, StartError};
use crate::server::{Server, Terms, arguments_of, random};
use crate::signals::Signals;
use crate::sink::Sink;
use crate::start;
use crate::stats::{Snapshot, Stats};
use crate::symbols::Symbols;
use crate::watch::{Watch, ending};
use crate::writer::{Output, PacketWriter};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use teeperf_wire::hello::flag;
use teeperf_wire::packet::kind;
use teeperf_wire::shared::{ClockKind, PAGE, control};

/// Records a command.
#[derive(Debug)]
pub struct Recorder {
    options: Options,
}

/// What became of the command and of the recording.
#[derive(Debug)]
pub struct Outcome {
    /// How the command ended, where there was one.
    pub status: Option<ExitStatus>,
    /// Why the recording ended before that, if it did: a limit, the user, the output.
    pub reason: Option<String>,
    /// The output's error, if it had one: the recording is not complete.
    pub error: Option<io::Error>,
    /// What else the user should know.
    pub notices: Vec<String>,
    /// Processes that attached. None: nothing in the command was built with hooks.
    pub processes: u64,
    /// So long it was paused from outside.
    pub paused: Duration,
    /// What was recorded.
    pub recorded: Snapshot,
    /// Why this clock.
    pub clock_reason: String,
    /// What was sampled, where that was asked for.
    pub sampled: Option<String>,
}

impl Outcome {
    /// The command's exit status, or 128 and the signal that ended it, as shells have it.
    pub fn exit_code(&self) -> u8 {
        let Some(status) = self.status else { return 0 };
        let signal = status.signal().map(|signal| 128 + signal);
        status.code().or(signal).unwrap_or(1) as u8
    }

    /// Ends this process by the interrupt that ended the command, where one did: a shell that waits
    /// for both in a loop leaves the loop only then. To be called when all else is done.
    pub fn pass_on_interrupt(&self) {
        if self.status.and_then(|status| status.signal()) == Some(libc::SIGINT) {
            // SAFETY: only takes a number. Comes back where the signal is ignored.
            unsafe { libc::raise(libc::SIGINT) };
        }
    }
}

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The command does not run.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The output cannot be opened.
    #[error("{path}: {source}")]
    Output {
        /// Where it was to go.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// Memory that was to be lent cannot be used.
    #[error("{path}: {source}")]
    Memory {
        /// The file or device.
        path: String,
        /// What is wrong.
        source: io::Error,
    },
    /// The output is what another recorder writes to.
    #[error("{0} is being recorded into")]
    Busy(String),
    /// The output is the command's own file.
    #[error("{0} is the program itself")]
    IsProgram(String),
    /// Nothing can be sampled here.
    #[error(transparent)]
    Sampling(#[from] Refused),
    /// The process cannot be traced.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The user insisted on an end, and the recording could not be finished.
    #[error(
        "{0} was not finished: the recorder was interrupted while it waited for the last events and \
         names; next: teeperf report, which reads what was written"
    )]
    GivenUp(String),
    /// The system refuses memory, threads or sockets.
    #[error("recording cannot begin: {0}")]
    System(#[from] io::Error),
}

impl From<StartError> for RecordError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::System(error) => Self::System(error),
            StartError::Attach(error) => Self::Attach(error),
        }
    }
}

impl Recorder {
    /// To record as these options have it.
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// Runs the command and records it, until it and all that it started with hooks have
    /// ended, or the recording is told to end; then waits for the command alone.
    ///
    /// Without a command records what is written into lent memory, until it is told to end.
    ///
    /// # Errors
    ///
    /// When the command or the recording cannot begin. What goes wrong later is in the
    /// outcome.
    pub fn run(self, words: &[OsString]) -> Result<Outcome, RecordError> {
        let mut options = self.options;
        let is_alone = options.lent.is_some() || options.attach.is_some();
        let has_command = !words.is_empty() || !is_alone;
        let found = has_command.then(|| launch::find(words)).transpose()?;
        if let Output::File(path) = &options.output
            && found.as_ref().is_some_and(|found| found.is(path))
        {
            return Err(RecordError::IsProgram(path.display().to_string()));
        }
        let sampled = Sampled::choose(&mut options)?;
        let elsewhere = options.lent.as_ref().and_then(|lent| lent.counter_hz);
        let chosen = match elsewhere {
            Some(hz) => Chosen::elsewhere(hz),
            None => clock::choose(options.clock, options.period),
        };
        let has_counter = chosen.kind == ClockKind::Tick
            && elsewhere.is_none()
            && !options.leaves_processors
            && !options.is_of_samples_alone;
        // It times functions that are chosen now, or perhaps later.
        let window = match options.filter.are_of_timing() {
            true => Duration::from_millis(20),
            false => Duration::from_millis(2),
        };
        let counter_hz = has_counter.then(|| clock::counter_hz(window));
        let path = match &options.output {
            Output::File(path) => path.display().to_string(),
            Output::Stdout | Output::Writer(_) => options.name.take().unwrap_or("output".into()),
        };
        let output_taken = matches!(options.output, Output::Stdout);
        let time =
            if elsewhere.is_some() { Time::start_elsewhere() } else { Time::start(chosen.kind) };
        let (clock_start, zero_ns) = time.now_both();
        // What runs already was started by others.
        let running =
            options.attach.map(|pid| arguments_of(pid).into_iter().map(OsString::from_vec));
        let running: Option<Vec<OsString>> = running.map(Iterator::collect);
        let command = running.as_deref().unwrap_or(words);
        let first = start::payload(&options, &chosen, clock_start, command, counter_hz);
        let writer = PacketWriter::open(options.output).map_err(|source| match source.kind() {
            io::ErrorKind::WouldBlock => RecordError::Busy(path.clone()),
            _ => RecordError::Output { path: path.clone(), source },
        })?;
        let made = writer.made().map(Path::to_owned);
        let signals = if options.signals { Some(Signals::take()?) } else { None };
        let limit = FileLimit::raise();
        let files = limit.as_ref().map(|limit| limit.before);

        let paused = match (&options.trigger, options.paused) {
            (Some(_), _) => control::PAUSED | control::ARMED,
            (None, true) => control::PAUSED,
            (None, false) => 0,
        };
        let page = Arc::new(ClockPage::create(time.now(), paused)?);
        page.set_origin(time.origin_ns());
        let (events, inbox) = channel();
        let means = Means {
            page: Arc::clone(&page),
            clock: chosen.kind,
            counter_is_even: clock::counter_is_even(),
            search: options.search.clone(),
            events: events.clone(),
            time,
        };
        let kinds = options.filter.kinds();
        let is_of_crossings = kinds.crossings && !kinds.calls;
        let crossings = if is_of_crossings { flag::CROSSINGS_ALONE } else { 0 };
        let samples = if options.cpu_samples { flag::SAMPLES } else { 0 };
        let triggers = options.trigger.as_ref().map(Rules::functions).unwrap_or_default();
        let filters = FilterDesk::start(means, options.filter, options.trigger)?;
        let symbols = Symbols::start(options.search, events.clone())?;
        let stats = Arc::clone(&options.stats);
        stats.hz.set(chosen.hz);
        let mut sink = Sink::new(writer, Arc::clone(&page), time, chosen.kind, stats, symbols)?;
        sink.filters = Some(filters.clone());
        // A recording of nothing is in nobody's interest. Behind the file, so that it goes while it is locked.
        let mut made = Made::new(made);
        sink.packet(kind::START, &first);
        for payload in sampled.payloads(zero_ns) {
            sink.packet(kind::SAMPLED, &payload);
        }
        if let Some((level, text)) = sampled.told() {
            sink.notice(level, text, None);
        }
        sink.flush();
        // A reader that is gone already is no reason not to run the command: it might as well have
        // gone a moment later.
        let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        if let Some(source) = sink.take_error_unless(is_gone) {
            return Err(RecordError::Output { path, source });
        }
        let place = if options.leaves_processors { Where::Everywhere } else { Where::Anywhere };
        // Most programs that are sampled have no hooks.
        let audience = Arc::new(Audience::new(matches!(sampled, Sampled::Nothing)));
        let ticker = match chosen.kind {
            // Nobody looks at it.
            _ if options.is_of_samples_alone => None,
            ClockKind::Tick => {
                let page = Arc::clone(&page);
                Some(Ticker::start(page, time, chosen.period, place, &audience)?)
            }
            ClockKind::Cycle => None,
        };
        let sampled_page = Arc::clone(&page);
        let socket = socket_name(options.is_found, random()?);
        // Of samples hooks are no part, and what runs already was started by others.
        let has_hooks = found.is_some() && !options.is_of_samples_alone;
        let ledger = Arc::new(Ledger::default());
        sink.ledger = Some(Arc::clone(&ledger));
        // Without, only processes without the variable do not find it.
        let link = has_hooks.then(|| Link::to(&socket).ok()).flatten().map(Arc::new);
        let terms = Terms {
            page,
            time,
            clock: chosen.kind,
            flags: wishes(&chosen, options.tree, options.stacks) | samples | crossings,
            hz: chosen.hz,
            on_full: options.on_full,
            audience,
            tree: options.tree.map(|tree| tree.bytes.next_multiple_of(PAGE)),
            filters,
            is_elsewhere: options.lent.is_some() || options.leaves_processors,
            ledger: Arc::clone(&ledger),
        };
        // As long as it is recorded.
        let _lent = match &options.lent {
            Some(lent) => Some(lend(lent, &terms, &events)?),
            None => None,
        };
        let ids = Arc::new(AtomicU32::new(options.lent.is_some().into()));
        let server = Server::start(&socket, terms, events.clone(), Arc::clone(&ids))?;
        let is_kept_whole = options.is_kept_whole;
        let interval = options.tree.and_then(|tree| tree.interval);
        let limits = Limits { bytes: options.limit_size, time: options.limit_time };
        let (ended, end) = io::pipe()?;
        let pauses = Pauses::new(paused != 0);
        let sampled_as = sampled.name();
        let means = (sampled_page, Arc::clone(&options.stats), events.clone());
        let Samplers { sampler, gate, desk, tracer, samples } = sampled.start(means)?;
        let lookout =
            has_hooks.then(|| Lookout::start(socket.clone(), link.clone(), ledger)).transpose()?;
        let companions = Companions { server, ticker, sampler, desk, tracer, lookout };
        let newcomers = Newcomers::of(&socket);
        let drain = Drain::new(sink, inbox, limits, pauses, newcomers, companions)
            .numbering(ids)
            .writing_trees(interval)
            .keeping_all(is_kept_whole)
            .with_samples(options.cpu_samples)
            .waiting_for(triggers)
            .into(&path);
        let drain = std::thread::Builder::new().name("teeperf-drain".into()).spawn(move || {
            let summary = drain.run();
            drop(end);
            summary
        })?;

        let watch = Watch { signals: signals.as_ref(), events: &events };
        let Some(found) = found else {
            made.is_to_stay();
            watch.recording(&ended).map_err(|error| given_up(error, &path))?;
            let summary = drain.join().map_err(|_| io::Error::other("the drain failed"))?;
            let outcome = outcome(None, summary, &options.stats, chosen.reason);
            return Ok(Outcome { sampled: sampled_as, ..outcome });
        };
        let socket = (!options.is_of_samples_alone).then_some(socket);
        let surroundings =
            Surroundings { socket, samples, preload: options.preload, output_taken, files };
        let launched = found.start(&surroundings, gate);
        let mut child = match launched {
            Ok(child) => child,
            Err(error) => {
                tell(&events, Event::Stop(error.to_string()));
                drop(made);
                // Whatever it came to, the command has not run.
                let _ = drain.join();
                return Err(error.into());
            }
        };
        made.is_to_stay();
        tell(&events, Event::CommandStarted { pid: child.id() });
        let status = watch.command(&mut child)?;
        tell(&events, Event::CommandEnded(ending(status)));
        watch.recording(&ended).map_err(|error| given_up(error, &path))?;
        let summary = drain.join().map_err(|_| io::Error::other("the drain failed"))?;
        let outcome = outcome(Some(status), summary, &options.stats, chosen.reason);
        Ok(Outcome { sampled: sampled_as, ..outcome })
    }
}

fn outcome(
    status: Option<ExitStatus>,
    summary: Summary,
    stats: &Stats,
    clock_reason: String,
) -> Outcome {
    Outcome {
        status,
        reason: summary.reason,
        error: summary.error,
        notices: summary.notices,
        processes: summary.processes,
        paused: summary.paused,
        recorded: stats.snapshot(),
        clock_reason,
        sampled: None,
    }
}

fn given_up(error: io::Error, path: &str) -> RecordError {
    match error.kind() {
        io::ErrorKind::Interrupted => RecordError::GivenUp(path.to_owned()),
        _ => RecordError::System(error),
    }
}

/// Lends memory that the user named; it stays so until what is returned is dropped.
fn lend(lent: &Lent, terms: &Terms, events: &Sender<Event>) -> Result<LentFile, RecordError> {
    let manner = Manner {
        clock: terms.clock,
        on_full: terms.on_full,
        hz: terms.hz,
        cookie: random()? | 1,
        pid: 0,
    };
    let refused = |source| RecordError::Memory { path: lent.path.display().to_string(), source };
    let file = arena::open(lent, manner, &terms.page).map_err(refused)?;
    tell(events, Event::Attached(Attached::unknown(Arc::clone(&file.segment), &lent.path)));
    Ok(file)
}

/// How processes are to record.
fn wishes(chosen: &Chosen, tree: Option<Tree>, stacks: StackWatch) -> u32 {
    let ordered = if chosen.is_ordered { flag::ORDERED } else { 0 };
    let trees = match tree {
        Some(Tree { folds: true, .. }) => flag::TREE | flag::FOLDS,
        Some(_) => flag::TREE,
        None => 0,
    };
    let stacks = match stacks {
        StackWatch::Auto => 0,
        StackWatch::Watched => flag::STACKS,
        StackWatch::Unwatched => flag::NO_STACKS,
    };
    ordered | flag::RESTARTABLE | trees | stacks
}

fn tell(events: &Sender<Event>, event: Event) {
    // A drain that is gone needs no telling.
    let _ = events.send(event);
}
