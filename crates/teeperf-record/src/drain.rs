//! The thread that drains: from attached processes to the recording, until the command and
//! all traced processes are gone, or recording is told to end.

use crate::attached::Tracer;
use crate::clock::Ticker;
use crate::control::Asker;
use crate::families::Families;
use crate::filter::desk::{Answers, Job};
use crate::intervals::Intervals;
use crate::missing::{Lookout, Missing};
use crate::newcomers::Newcomers;
use crate::pauses::Pauses;
use crate::process::{Attached, Ending, LOOK_IN, Process};
use crate::sample::{Parcel, Sampler};
use crate::segment::Segment;
use crate::server::Server;
use crate::sgx::Desk;
use crate::sink::Sink;
use crate::{Level, packets::Payload};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use teeperf_wire::body::end;
use teeperf_wire::packet::kind;
use teeperf_wire::shared::{ClockKind, control};

/// What others tell the drain.
#[derive(Debug)]
pub(crate) enum Event {
    /// A process attached.
    Attached(Attached),
    /// The process of this number is gone since this time; `replaced`: it runs another program.
    Gone { id: u32, at: u64, replaced: bool },
    /// The command runs.
    CommandStarted { pid: u32 },
    /// The command has ended.
    CommandEnded(Ending),
    /// Recording was paused from outside, or resumed.
    Paused(bool),
    /// It is to be paused, or, where it is, to be resumed.
    Turn,
    /// It goes on, which it waited for, for this reason; by this process, or 0.
    Began { why: String, process: u32 },
    /// What chunks and trees have is to be written out now; who waits for that, if somebody does.
    Snapshot(Option<Asker>),
    /// The symbols of all that a snapshot wrote were sent.
    SnapshotSymbols(Option<Asker>),
    /// Recording is to end, for this reason.
    Stop(String),
    /// How it goes is to be answered.
    Status(Asker),
    /// The filter has these rules.
    Rules(Vec<String>),
    /// A packet of this kind.
    Packet(u16, Vec<u8>),
    /// A packet of the sampler's.
    Sampled(Parcel),
    /// All symbols asked for were sent.
    SymbolsDone,
    /// Something the user should know; process 0: about none.
    Notice { level: Level, text: String, process: u32 },
}

/// When recording ends by itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) bytes: Option<u64>,
    pub(crate) time: Option<Duration>,
}

/// What a recording came to.
#[derive(Debug)]
pub(crate) struct Summary {
    /// Why recording ended before the command, if it did.
    pub(crate) reason: Option<String>,
    /// The output's error, if that was why.
    pub(crate) error: Option<io::Error>,
    pub(crate) notices: Vec<String>,
    /// Processes that attached.
    pub(crate) processes: u64,
    /// Time in pauses from outside.
    pub(crate) paused: Duration,
}

/// Threads that end with the recording.
#[derive(Debug)]
pub(crate) struct Companions {
    pub(crate) server: Server,
    pub(crate) ticker: Option<Ticker>,
    pub(crate) sampler: Option<Sampler>,
    /// Who samples within programs.
    pub(crate) desk: Option<Desk>,
    /// Who samples them from outside.
    pub(crate) tracer: Option<Tracer>,
    /// The thread that looks for processes which nobody records.
    pub(crate) lookout: Option<Lookout>,
}

/// See the module.
pub(crate) struct Drain {
    sink: Sink,
    /// Until the end.
    companions: Option<Companions>,
    events: Receiver<Event>,
    limits: Limits,
    /// Whether the recording has all words at the end.
    is_kept_whole: bool,
    pauses: Pauses,
    processes: Vec<Process>,
    attached: u64,
    command: Option<u32>,
    ending: Option<Ending>,
    stop: Option<String>,
    /// Where the recording goes.
    output: String,
    /// Those of the filter, as text.
    rules: Vec<String>,
    /// What it waits for, or waited.
    triggers: Vec<String>,
    /// Threads are sampled, which tells their times.
    takes_samples: bool,
    symbols_done: bool,
    /// Processes that are gone, but the command's ending is not known yet.
    leaving: Vec<Leaving>,
    /// First segments of processes that are gone, but left children that have not attached yet.
    inherited: Vec<Arc<Segment>>,
    newcomers: Newcomers,
    families: Families,
    /// When memory that nobody has any more was looked for.
    families_looked_at: Instant,
    /// Processes of these that were recorded.
    heirs: u64,
    /// When trees are written.
    intervals: Intervals,
    /// When sums of arenas are, which nobody has any more if the recorder is killed.
    of_sums: Intervals,
    /// Since when the command is gone and no process attached, or known as the child of one that was.
    alone_since: Instant,
}

/// A process that is gone.
struct Leaving {
    id: u32,
    /// When that was seen, clock units.
    at: u64,
    replaced: bool,
    /// When the drain heard of it.
    since: Instant,
}

/// Pause when nothing was found; half the time one thread needs to fill its chunks.
const IDLE: Duration = Duration::from_micros(500);
/// Pause when nothing was found for long.
const LONG_IDLE: Duration = Duration::from_millis(1);
/// Pause while no process is attached: what others tell ends it.
const NOBODY: Duration = Duration::from_millis(10);
/// Rounds without a find until then.
const LONG: u32 = 100;
/// Programs that a status tells of.
const MOST_PROGRAMS: usize = 100;
/// First look into chunks that are not full; the next come later and later.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// One that attached is heard of within this time.
const GRACE: Duration = Duration::from_millis(20);
/// Longest wait for programs that were left behind to attach: most of them have no hooks.
const NEWCOMERS: Duration = Duration::from_millis(500);
/// Longest wait for the command's ending to be known.
const ENDING_KNOWN: Duration = Duration::from_millis(200);
/// Threads that are recorded see within this time that recording has ended.
const HEED: Duration = Duration::from_millis(2);
/// Interval of sums of arenas, unless another was asked for.
const SUMS: Duration = Duration::from_secs(1);
/// Longest wait for what code inside of arenas has summed.
const ANSWERS: Duration = Duration::from_millis(100);
/// Between two looks for memory that nobody has any more.
const LET_GO: Duration = Duration::from_secs(1);
/// Longest wait at the end for the next symbols, and for all of them.
const SYMBOLS: Duration = Duration::from_secs(5);
const ALL_SYMBOLS: Duration = Duration::from_secs(60);

impl Drain {
    pub(crate) fn new(
        sink: Sink,
        events: Receiver<Event>,
        limits: Limits,
        pauses: Pauses,
        newcomers: Newcomers,
        companions: Companions,
    ) -> Self {
        Self {
            sink,
            companions: Some(companions),
            events,
            limits,
            is_kept_whole: true,
            pauses,
            processes: Vec::new(),
            attached: 0,
            command: None,
            ending: None,
            stop: None,
            output: String::new(),
            rules: Vec::new(),
            triggers: Vec::new(),
            takes_samples: false,
            symbols_done: false,
            leaving: Vec::new(),
            inherited: Vec::new(),
            newcomers,
            families: Families::default(),
            families_looked_at: Instant::now(),
            heirs: 0,
            intervals: Intervals::default(),
            of_sums: Intervals::every(Some(SUMS)),
            alone_since: Instant::now(),
        }
    }

    /// Names the output, to those who ask.
    pub(crate) fn into(mut self, output: &str) -> Self {
        self.output = output.to_owned();
        self
    }

    /// Numbers processes that nobody attaches along with those that attach.
    pub(crate) fn numbering(mut self, ids: Arc<AtomicU32>) -> Self {
        self.families = Families::numbered(ids);
        self
    }

    /// Says whether threads are sampled.
    pub(crate) fn with_samples(mut self, takes_samples: bool) -> Self {
        self.takes_samples = takes_samples;
        self
    }

    /// Names what recording waits for, to those who ask.
    pub(crate) fn waiting_for(mut self, triggers: Vec<String>) -> Self {
        self.triggers = triggers;
        self
    }

    /// Writes trees now and then, for the time line.
    pub(crate) fn writing_trees(mut self, interval: Option<Duration>) -> Self {
        self.intervals = Intervals::every(interval);
        self.of_sums = Intervals::every(interval.or(Some(SUMS)));
        self
    }

    /// The output does not keep all of it.
    pub(crate) fn keeping_all(mut self, is_kept_whole: bool) -> Self {
        self.is_kept_whole = is_kept_whole;
        self
    }

    /// Drains until the end.
    pub(crate) fn run(mut self) -> Summary {
        let mut pause = Duration::ZERO;
        let mut idle_rounds = 0;
        let mut look_in = FIRST_LOOK;
        let mut looked_in = Instant::now();
        loop {
            self.hear(pause);
            self.adopt();
            let drained = self.round();
            self.see_off();
            if looked_in.elapsed() >= look_in {
                self.processes.iter_mut().for_each(|process| process.look_in(&mut self.sink));
                self.processes.iter().for_each(Process::ask_for_sums);
                looked_in = Instant::now();
                look_in = (look_in * 2).min(LOOK_IN);
            }
            if self.intervals.is_due() {
                self.processes.iter_mut().for_each(|process| process.take_trees(&mut self.sink));
            }
            if self.of_sums.is_due() {
                self.processes.iter_mut().for_each(|process| process.take_sums(&mut self.sink));
            }
            self.sink.flush_old();
            if self.is_over() {
                return self.end();
            }
            idle_rounds = if drained > 0 { 0 } else { idle_rounds + 1 };
            pause = match idle_rounds {
                0 => Duration::ZERO,
                _ if self.processes.is_empty()
                    && self.ending.is_none()
                    && !self.families.may_be_there() =>
                {
                    NOBODY
                }
                1..LONG => IDLE,
                _ => LONG_IDLE,
            };
            if let Some(limit) = self.limits.time {
                pause = pause.min(limit.saturating_sub(self.sink.time.elapsed()));
            }
        }
    }

    /// Takes what others have said, and waits up to `pause` for the first of it.
    fn hear(&mut self, pause: Duration) {
        let mut next = if pause.is_zero() {
            self.events.try_recv().ok()
        } else {
            match self.events.recv_timeout(pause) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    // Everybody else is gone: there is nothing more to come.
                    self.stop.get_or_insert_with(|| "the recorder was given up".into());
                    None
                }
            }
        };
        while let Some(event) = next {
            self.take(event);
            next = self.events.try_recv().ok();
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Attached(mut attached) => {
                self.attached += 1;
                if let Some(id) = self.families.attached(&attached) {
                    attached.exec_of = id;
                    self.is_gone(id, true);
                }
                self.processes.push(Process::new(attached, &mut self.sink));
                self.sink.stats.processes.set(self.processes.len() as u64);
            }
            Event::Gone { id, at, replaced } => {
                let gone = self.processes.iter_mut().find(|process| process.id == id);
                gone.into_iter().for_each(Process::is_leaving);
                self.leaving.push(Leaving { id, at, replaced, since: Instant::now() });
            }
            Event::CommandStarted { pid } => self.command = Some(pid),
            Event::CommandEnded(ending) => {
                self.ending = Some(ending);
                self.alone_since = Instant::now();
            }
            Event::Turn if self.sink.page.is_armed() => {
                let (why, answers) = ("it was resumed".into(), Answers::Nobody);
                if let Some(filters) = &self.sink.filters {
                    filters.ask(Job::Begin { why, process: 0, answers });
                }
            }
            Event::Began { why, process } => {
                let now = self.sink.time.elapsed();
                self.pauses.turn(false, now);
                let text = format!("recording began after {:.3} s: {why}", now.as_secs_f64());
                self.sink.notice(Level::Information, text, (process != 0).then_some(process));
            }
            Event::Turn => {
                let is_paused = !self.pauses.is_paused();
                self.sink.page.turn(is_paused, self.sink.time.now());
                self.take(Event::Paused(is_paused));
            }
            Event::Paused(is_paused) => {
                if let Some(text) = self.pauses.turn(is_paused, self.sink.time.elapsed()) {
                    self.sink.notice(Level::Information, text, None);
                }
            }
            Event::Snapshot(asker) => {
                self.gather_sums();
                for process in &mut self.processes {
                    // Modules before trees that name their functions.
                    process.look_in(&mut self.sink);
                    process.tell_time(&mut self.sink);
                    process.take_trees(&mut self.sink);
                    process.take_sums(&mut self.sink);
                }
                self.sink.flush();
                self.sink.symbols.report(asker);
            }
            Event::SnapshotSymbols(asker) => {
                self.sink.flush();
                asker.into_iter().for_each(Asker::answer);
            }
            Event::Stop(reason) => _ = self.stop.get_or_insert(reason),
            Event::Status(asker) => {
                let status = self.status();
                asker.answer_with(&status);
            }
            Event::Rules(rules) => self.rules = rules,
            Event::Packet(kind, payload) => self.sink.packet(kind, &payload),
            Event::Sampled(parcel) => self.sink.packet(parcel.kind, &parcel.payload),
            Event::SymbolsDone => self.symbols_done = true,
            Event::Notice { level, text, process } => {
                self.sink.notice(level, text, (process != 0).then_some(process));
            }
        }
    }

    /// Takes in processes that record in memory of others, and sees them end.
    fn adopt(&mut self) -> bool {
        if !self.families.may_be_there() {
            return false;
        }
        let is_due = self.families_looked_at.elapsed() >= LET_GO;
        if is_due {
            self.families_looked_at = Instant::now();
            self.families.look_for_what_is_let_go();
        }
        let newcomers = self.families.newcomers();
        let are_new = !newcomers.is_empty();
        for attached in newcomers {
            self.heirs += 1;
            self.processes.push(Process::new(attached, &mut self.sink));
            self.sink.stats.processes.set(self.processes.len() as u64);
        }
        for id in self.families.gone() {
            self.is_gone(id, false);
        }
        for refusal in self.families.refusals() {
            self.sink.tell_unrecorded(refusal.text, refusal.processes);
        }
        if is_due {
            self.families.give_up_what_is_let_go();
        }
        are_new
    }

    fn is_gone(&mut self, id: u32, replaced: bool) {
        self.take(Event::Gone { id, at: self.sink.time.now(), replaced });
    }

    /// [`crate::control::Status`].
    fn status(&self) -> String {
        let stats = self.sink.stats.snapshot();
        let state = match (self.sink.page.is_armed(), self.pauses.is_paused()) {
            (true, _) => "waiting",
            (_, true) => "paused",
            _ => "recording",
        };
        let clock = match self.sink.clock {
            ClockKind::Tick => "tick",
            ClockKind::Cycle => "cycle",
        };
        let mut status = format!(
            "state: {state}\noutput: {}\nclock: {clock}\nseconds: {:.3}\nevents: {}\nlost: {}\nbytes: {}\n\
             processes: {}\nthreads: {}\nwaits: {}\nwaited: {:.3}\n",
            self.output,
            self.sink.time.elapsed().as_secs_f64(),
            stats.events,
            stats.lost,
            self.sink.bytes(),
            stats.processes,
            stats.threads,
            stats.waits,
            stats.waited.as_secs_f64(),
        );
        for trigger in &self.triggers {
            status += &format!("trigger: {trigger}\n");
        }
        for process in self.processes.iter().take(MOST_PROGRAMS) {
            status += &format!("program: {} {}\n", process.pid, process.name);
        }
        for rule in &self.rules {
            status += &format!("rule: {rule}\n");
        }
        status
    }

    /// Takes what code inside of arenas has summed. Who calls nothing meanwhile does not answer.
    fn gather_sums(&mut self) {
        self.processes.iter().for_each(Process::ask_for_sums);
        let asked = Instant::now();
        loop {
            let waits = asked.elapsed() < ANSWERS && self.processes.iter().any(Process::owes_sums);
            // What was handed over until this look; of all, who may wait for room. Where nobody has an arena, a limit on the
            // size is kept at the end, too.
            if self.processes.iter().any(Process::has_arenas) {
                self.round();
            }
            if !waits {
                return;
            }
            std::thread::sleep(IDLE);
        }
    }

    /// Drains what was handed over; says how many chunks.
    fn round(&mut self) -> usize {
        self.processes.iter_mut().map(|process| process.round(&mut self.sink)).sum()
    }

    /// Finishes with processes that are gone.
    fn see_off(&mut self) {
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.retain(|&Leaving { id, at: gone, replaced, since }| {
            let Some(at) = self.processes.iter().position(|process| process.id == id) else {
                return false;
            };
            let is_command = !replaced && Some(self.processes[at].pid) == self.command;
            let ending = if is_command { self.ending } else { None };
            if is_command && ending.is_none() && since.elapsed() < ENDING_KNOWN {
                return true;
            }
            let mut process = self.processes.remove(at);
            process.finish(Some(ending.unwrap_or_default()), gone, &mut self.sink);
            self.families.finished(id);
            self.inherited.push(process.first_segment());
            self.inherited.retain(|segment| segment.is_lent());
            self.sink.symbols.forget(id);
            self.sink.stats.processes.set(self.processes.len() as u64);
            self.alone_since = Instant::now();
            false
        });
        self.leaving = leaving;
    }

    fn is_over(&mut self) -> bool {
        let reason = if let Some(error) = self.sink.error() {
            Some(output_failed(error))
        } else if self.limits.bytes.is_some_and(|limit| self.sink.bytes() >= limit) {
            Some("the size limit was reached".into())
        } else if self.limits.time.is_some_and(|limit| self.sink.time.elapsed() >= limit) {
            Some("the time limit was reached".into())
        } else {
            None
        };
        if let Some(reason) = reason {
            self.stop.get_or_insert(reason);
        }
        if self.stop.is_some() || self.ending.is_none() {
            return self.stop.is_some();
        }
        let is_alone = self.is_alone();
        self.sink.stats.rounds_behind.add(u64::from(!is_alone));
        is_alone
    }

    /// Whether no process is attached, nor about to; then none attaches any more.
    fn is_alone(&mut self) -> bool {
        if !self.processes.iter().all(Process::is_unknown) {
            return false;
        }
        let heirs = self.inherited.len();
        self.inherited.retain(|segment| segment.is_lent());
        if self.inherited.len() < heirs {
            self.alone_since = Instant::now();
        }
        let grace = if self.attached == 0 { Duration::ZERO } else { GRACE };
        let alone = self.alone_since.elapsed();
        // Who was seen to have let go of it may have claimed a place before.
        let are_heirs = self.families.are_there() || self.adopt();
        if are_heirs {
            self.alone_since = Instant::now();
        }
        !are_heirs
            && self.inherited.is_empty()
            && alone >= grace
            && (alone >= NEWCOMERS || !self.newcomers.are_there())
            && self.companions.as_ref().is_none_or(|all| all.server.close(self.attached))
    }

    fn end(mut self) -> Summary {
        self.adopt();
        self.gather_sums();
        self.processes.iter_mut().for_each(|process| process.look_for_threads(&mut self.sink));
        let (ended, at) = (self.sink.time.elapsed(), self.sink.time.now());
        if let Some(Companions { server, ticker, sampler, desk, tracer, lookout }) =
            self.companions.take()
        {
            // A process that begins behind the end is not missing.
            drop(lookout);
            // What it has left is heard before the last symbols are.
            drop(sampler);
            drop(desk);
            drop(tracer);
            drop(server);
            self.sink.page.control(control::STOPPED, 0);
            let lateness = ticker.as_ref().and_then(|ticker| ticker.lateness(ended));
            drop(ticker);
            // Samples tell times, where they are taken.
            if let Some(text) = lateness.filter(|_| !self.takes_samples) {
                self.sink.notice(Level::Information, text, None);
            }
        }
        if !self.processes.is_empty() {
            std::thread::sleep(HEED);
        }
        for process in &mut self.processes {
            process.finish(None, at, &mut self.sink);
        }
        let told = self.families.libraries_told();
        if let Some(ledger) = self.sink.ledger.take() {
            for Missing { number, text } in ledger.missing(told) {
                self.sink.tell_unrecorded(text, number);
            }
            for text in ledger.doubts() {
                self.sink.notice(Level::Warning, text, None);
            }
        }
        if let Some(filters) = &self.sink.filters {
            filters.finish();
        }
        self.sink.symbols.finish();
        let asked = Instant::now();
        let mut heard = asked;
        while !self.symbols_done && self.sink.takes_names() {
            let for_next = SYMBOLS.saturating_sub(heard.elapsed());
            let left = ALL_SYMBOLS.saturating_sub(asked.elapsed()).min(for_next);
            if left.is_zero() {
                let text = "symbols took too long to read: some functions stand under their addresses, and counts by name \
                    lack the calls of these; next: record fewer processes at a time, or programs with less debug information";
                self.sink.notice(Level::Warning, text.into(), None);
                break;
            }
            match self.events.recv_timeout(left) {
                // Nothing is made of a process that comes now.
                Ok(Event::Attached(_)) | Err(RecvTimeoutError::Timeout) => {}
                // All is written, and to write it once more would count it twice.
                Ok(Event::Snapshot(asker)) => asker.into_iter().for_each(Asker::answer),
                Ok(event) => {
                    heard = Instant::now();
                    self.take(event);
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if self.sink.page.is_armed() {
            let what = self.triggers.join(", ");
            let text =
                format!("recording was paused from its start to its end: {what} was not called");
            self.sink.notice(Level::Warning, text, None);
        } else if let Some(text) = self.pauses.end(ended) {
            self.sink.notice(Level::Warning, text, None);
        }
        // Names and the end find room that was kept back, other packets may have found none.
        self.sink.flush();
        if let (Some(error), None) = (self.sink.error(), &self.stop) {
            self.stop = Some(output_failed(error));
        }
        let ending = self.ending.unwrap_or_default();
        let mut packet = Payload::default()
            .number(end::TIME, at)
            .maybe(end::WORDS, self.is_kept_whole.then(|| self.sink.stats.snapshot().words))
            .maybe(end::EXIT_STATUS, ending.exit_status)
            .maybe(end::SIGNAL, ending.signal)
            .number(end::RECORDER_CPU_NS, crate::machine::own_cpu_ns());
        if let Some(reason) = &self.stop {
            packet = packet.bytes(end::REASON, reason.as_bytes());
        }
        self.sink.packet(kind::END, &packet.finish());
        self.sink.flush();
        let (error, notices) = self.sink.close();
        if let (Some(error), None) = (&error, &self.stop) {
            self.stop = Some(output_failed(error));
        }
        let paused = self.pauses.in_all(ended);
        Summary { reason: self.stop, error, notices, processes: self.attached + self.heirs, paused }
    }
}

/// Why recording ends where the output takes no more.
fn output_failed(error: &io::Error) -> String {
    format!("the output failed: {error}")
}
